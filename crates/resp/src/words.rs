//! The words of a line: how Redis splits inline commands and the lines of its configuration file.
//!
//! Words are parted by blanks. A quote opens a quoted part, and where that closes, the word must end:
//!
//! - `"..."`: `\n`, `\r`, `\t`, `\b`, `\a` and `\xHH` mean what they do in C; a backslash before anything else
//!   stands for what follows it.
//! - `'...'`: `\'` is a quote, and a backslash is a backslash.
//!
//! A NUL ends the line, since it does in C.

use std::ops::Range;

/// Splits `line` as Redis splits an inline command. None if its quotes do not balance.
pub fn split_words(line: &[u8]) -> Option<Vec<Vec<u8>>> {
    let (mut text, mut ranges) = (Vec::new(), Vec::new());
    split_into(line, &mut text, &mut ranges)?;
    let words = ranges.into_iter();
    Some(
        words
            .map(|range| text.get(range).unwrap_or_default().to_vec())
            .collect(),
    )
}

/// Appends the words of `line` to `text`, and where each is to `ranges`. None if its quotes do not balance; what was
/// appended then means nothing.
pub(crate) fn split_into(
    line: &[u8],
    text: &mut Vec<u8>,
    ranges: &mut Vec<Range<usize>>,
) -> Option<()> {
    let mut rest = line.split(|byte| *byte == 0).next().unwrap_or_default();
    loop {
        let Some(first) = rest.iter().position(|byte| !is_blank(*byte)) else {
            return Some(());
        };
        let start = text.len();
        rest = word(rest.get(first..).unwrap_or_default(), text)?;
        ranges.push(start..text.len());
    }
}

/// What C's `isspace` says.
const fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}

/// Appends the word that `rest` begins with, and returns what is behind it.
fn word<'a>(mut rest: &'a [u8], text: &mut Vec<u8>) -> Option<&'a [u8]> {
    while let Some((byte, behind)) = rest.split_first() {
        match byte {
            // Not all blanks: a vertical tab begins no word, but is in one.
            b' ' | b'\n' | b'\r' | b'\t' => return Some(behind),
            b'"' => return double_quoted(behind, text),
            b'\'' => return single_quoted(behind, text),
            other => text.push(*other),
        }
        rest = behind;
    }
    Some(rest)
}

fn double_quoted<'a>(mut rest: &'a [u8], text: &mut Vec<u8>) -> Option<&'a [u8]> {
    loop {
        let (byte, behind) = rest.split_first()?;
        rest = match (byte, behind) {
            (b'"', _) => return closed(behind),
            (b'\\', [b'x', high, low, after @ ..])
                if let (Some(high), Some(low)) = (hex(*high), hex(*low)) =>
            {
                text.push(high << 4 | low);
                after
            }
            (b'\\', [escaped, after @ ..]) => {
                text.push(unescaped(*escaped));
                after
            }
            (other, _) => {
                text.push(*other);
                behind
            }
        };
    }
}

fn single_quoted<'a>(mut rest: &'a [u8], text: &mut Vec<u8>) -> Option<&'a [u8]> {
    loop {
        let (byte, behind) = rest.split_first()?;
        rest = match (byte, behind) {
            (b'\'', _) => return closed(behind),
            (b'\\', [b'\'', after @ ..]) => {
                text.push(b'\'');
                after
            }
            (other, _) => {
                text.push(*other);
                behind
            }
        };
    }
}

/// `behind` a closing quote, if the word ends there.
fn closed(behind: &[u8]) -> Option<&[u8]> {
    let ends = behind.first().is_none_or(|next| is_blank(*next));
    (ends || drumlin_base::bug!("quote-closes-within-a-word")).then_some(behind)
}

const fn unescaped(byte: u8) -> u8 {
    match byte {
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'b' => 8,
        b'a' => 7,
        other => other,
    }
}

fn hex(digit: u8) -> Option<u8> {
    let value = char::from(digit).to_digit(16)?;
    u8::try_from(value).ok()
}

#[cfg(test)]
mod tests {
    use drumlin_base::rng::Rng;

    use super::*;

    fn split(line: &str) -> Option<Vec<String>> {
        let words = split_words(line.as_bytes())?;
        let text = |word| String::from_utf8(word).unwrap();
        Some(words.into_iter().map(text).collect())
    }

    fn words(words: &[&str]) -> Option<Vec<String>> {
        Some(words.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn blanks_part_words() {
        assert_eq!(split(""), words(&[]));
        assert_eq!(split(" \t\r\n\u{b}\u{c}"), words(&[]));
        assert_eq!(split(" SET\tkey  value "), words(&["SET", "key", "value"]));
        assert_eq!(split("a\rb\nc"), words(&["a", "b", "c"]));
        assert_eq!(split("a\u{b}b \u{c}c\u{c}"), words(&["a\u{b}b", "c\u{c}"]));
        assert_eq!(split("a\0b c"), words(&["a"]));
    }

    #[test]
    fn quotes_hold_blanks_and_escapes() {
        assert_eq!(split(r#""" ''"#), words(&["", ""]));
        assert_eq!(split(r#"a"b c""#), words(&["ab c"]));
        assert_eq!(split(r"a'b c' d"), words(&["ab c", "d"]));
        assert_eq!(split(r#""\n\r\t\b\a""#), words(&["\n\r\t\u{8}\u{7}"]));
        assert_eq!(split(r#""\x41\x6a\x6Ab""#), words(&["Ajjb"]));
        assert_eq!(split(r#""\x4\xg1\q\"\\""#), words(&["x4xg1q\"\\"]));
        assert_eq!(split(r#"'\n\x41\'"'"#), words(&[r#"\n\x41'""#]));
        assert_eq!(split(r"a\nb"), words(&[r"a\nb"]));
        assert_eq!(split_words(br#""\xff\x00""#), Some(vec![vec![0xff, 0]]));
    }

    #[test]
    fn a_quote_closes_at_the_end_of_a_word_or_not_at_all() {
        for line in [
            r#"""#,
            "'",
            r#""a"#,
            "'a",
            r#""a"b"#,
            "'a'b",
            r#""a""b""#,
            r#""a'"#,
            r#""a\""#,
            r"'a\'",
            r#""a\"#,
            r#"a b" c"#,
        ] {
            assert_eq!(split(line), None, "{line}");
        }
        assert_eq!(split("\"a\"\u{b}b"), words(&["a", "b"]));
    }

    /// The same rules as a machine that takes one byte at a time.
    fn naive(line: &[u8]) -> Option<Vec<Vec<u8>>> {
        let at = |place: usize| line.get(place).copied().unwrap_or(0);
        let blank = |byte: u8| b" \t\n\x0b\x0c\r".contains(&byte);
        let (mut words, mut word) = (Vec::new(), None::<Vec<u8>>);
        let (mut place, mut quote) = (0, 0);
        loop {
            let byte = at(place);
            let Some(held) = &mut word else {
                if byte == 0 {
                    return Some(words);
                }
                if blank(byte) {
                    place += 1;
                } else {
                    word = Some(Vec::new());
                }
                continue;
            };
            let mut taken = 1;
            if quote == 0 {
                match byte {
                    0 => taken = 0,
                    b'"' | b'\'' => quote = byte,
                    b' ' | b'\t' | b'\n' | b'\r' => {}
                    other => held.push(other),
                }
                if matches!(byte, 0 | b' ' | b'\t' | b'\n' | b'\r') {
                    words.extend(word.take());
                }
            } else if byte == 0 {
                return None;
            } else if byte == quote {
                if at(place + 1) != 0 && !blank(at(place + 1)) {
                    return None;
                }
                quote = 0;
                words.extend(word.take());
            } else if byte == b'\\' && quote == b'\'' && at(place + 1) == b'\'' {
                held.push(b'\'');
                taken = 2;
            } else if byte == b'\\' && quote == b'"' && at(place + 1) != 0 {
                let digits = [at(place + 2), at(place + 3)];
                if at(place + 1) == b'x' && digits.iter().all(u8::is_ascii_hexdigit) {
                    let digits = std::str::from_utf8(&digits).unwrap();
                    held.push(u8::from_str_radix(digits, 16).unwrap());
                    taken = 4;
                } else {
                    let escapes = [b"nrtba", b"\n\r\t\x08\x07"];
                    let known = escapes[0].iter().position(|known| *known == at(place + 1));
                    held.push(known.map_or(at(place + 1), |known| escapes[1][known]));
                    taken = 2;
                }
            } else {
                held.push(byte);
            }
            place += taken;
        }
    }

    #[test]
    fn lines_of_quotes_and_escapes_split_as_a_byte_wise_machine_says() {
        let letters = b"aax4 \"\"''\\\\\tnr\x0b\r";
        for seed in 0..20_000 {
            let mut rng = Rng::new(seed);
            let len = rng.below(14);
            let letter = |rng: &mut Rng| letters[rng.below(letters.len() as u64) as usize];
            let line: Vec<u8> = (0..len).map(|_| letter(&mut rng)).collect();
            let shown = String::from_utf8_lossy(&line);
            assert_eq!(split_words(&line), naive(&line), "seed {seed}: {shown:?}");
        }
    }
}
