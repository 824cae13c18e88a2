//! The words of a line, as shells cut it: blanks part them, `'…'` keeps all as it is, within `"…"` and outside a backslash keeps
//! the next letter. But for quotes, blanks and itself a backslash stays: `\t` and `\x00` mean bytes to the commands.

/// Cuts a line; nothing behind a `#` at the beginning of a word.
///
/// # Errors
/// What is not closed.
pub(super) fn words(line: &str) -> Result<Vec<String>, &'static str> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut letters = line.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '#' if word.is_none() => break,
            letter if letter.is_whitespace() => words.extend(word.take()),
            '\'' => {
                let word = word.get_or_insert_default();
                loop {
                    match letters.next().ok_or("a ' is not closed")? {
                        '\'' => break,
                        letter => word.push(letter),
                    }
                }
            }
            '"' => {
                let word = word.get_or_insert_default();
                loop {
                    match letters.next().ok_or("a \" is not closed")? {
                        '"' => break,
                        '\\' => escape(word, letters.next()),
                        letter => word.push(letter),
                    }
                }
            }
            '\\' => escape(word.get_or_insert_default(), letters.next()),
            letter => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    Ok(words)
}

fn escape(word: &mut String, letter: Option<char>) {
    match letter {
        Some(letter @ ('"' | '\'' | ' ' | '#')) => word.push(letter),
        letter => {
            word.push('\\');
            word.extend(letter);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_cut_as_shells_cut_them() {
        for (line, wanted) in [
            ("", &[][..]),
            ("  # all of it", &[]),
            ("put a b # rest", &["put", "a", "b"]),
            ("put 'a b' \"c 'd'\" e\\ f", &["put", "a b", "c 'd'", "e f"]),
            ("get a#b ''", &["get", "a#b", ""]),
            ("put k \\x00\\t\"\\\"\\n\"", &["put", "k", "\\x00\\t\"\\n"]),
        ] {
            assert_eq!(
                words(line).as_deref(),
                Ok(&wanted.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>()[..]),
                "{line}"
            );
        }
        assert!(words("get 'a").is_err());
        assert!(words("get \"a\\\"").is_err());
    }
}
