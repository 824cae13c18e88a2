//! Keys and values as text, one entry a line: key, TAB, value.
//!
//! Plain: a backslash escapes `\t` `\n` `\r` `\\`, other control bytes and bytes that are no UTF-8
//! are `\xNN`; everything else stands for itself. Hex (`--hex`): `0x` and two digits a byte. Both
//! hold any bytes, and reading gives back exactly the bytes written. On input any byte may be
//! written as `\xNN`, and the `0x` may be left out.

use std::borrow::Cow;

/// Why a text stands for no bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BadText {
    /// Byte offset in the text.
    pub(crate) at: usize,
    /// The fault at that place.
    pub(crate) what: &'static str,
}

/// One of the two ways to write bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Plain,
    Hex,
}

impl Form {
    /// The form `--hex` asks for.
    pub(crate) fn new(hex: bool) -> Self {
        if hex { Self::Hex } else { Self::Plain }
    }

    /// Appends `bytes` as text.
    pub(crate) fn write(self, bytes: &[u8], out: &mut Vec<u8>) {
        match self {
            Self::Plain => write_plain(bytes, out),
            Self::Hex => {
                out.extend_from_slice(b"0x");
                bytes.iter().for_each(|byte| push_hex(*byte, out));
            }
        }
    }

    /// `bytes` as text, for messages.
    pub(crate) fn show(self, bytes: &[u8]) -> String {
        let mut out = Vec::new();
        self.write(bytes, &mut out);
        String::from_utf8_lossy(&out).into_owned()
    }

    /// The bytes `text` stands for; borrowed when they are the text itself.
    pub(crate) fn read(self, text: &[u8]) -> Result<Cow<'_, [u8]>, BadText> {
        match self {
            Self::Plain if text.contains(&b'\\') => read_plain(text).map(Cow::Owned),
            Self::Plain => Ok(Cow::Borrowed(text)),
            Self::Hex => read_hex(text).map(Cow::Owned),
        }
    }
}

fn push_hex(byte: u8, out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    out.push(DIGITS[usize::from(byte >> 4)]);
    out.push(DIGITS[usize::from(byte & 15)]);
}

fn write_plain(bytes: &[u8], out: &mut Vec<u8>) {
    for chunk in bytes.utf8_chunks() {
        for byte in chunk.valid().bytes() {
            match byte {
                b'\t' => out.extend_from_slice(b"\\t"),
                b'\n' => out.extend_from_slice(b"\\n"),
                b'\r' => out.extend_from_slice(b"\\r"),
                b'\\' => out.extend_from_slice(b"\\\\"),
                0..0x20 | 0x7f => push_escaped(byte, out),
                _ => out.push(byte),
            }
        }
        chunk
            .invalid()
            .iter()
            .for_each(|byte| push_escaped(*byte, out));
    }
}

fn push_escaped(byte: u8, out: &mut Vec<u8>) {
    out.extend_from_slice(b"\\x");
    push_hex(byte, out);
}

fn read_plain(text: &[u8]) -> Result<Vec<u8>, BadText> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.iter().copied().enumerate();
    while let Some((at, byte)) = bytes.next() {
        if byte != b'\\' {
            out.push(byte);
            continue;
        }
        let what = "a backslash must begin \\t, \\n, \\r, \\\\ or \\x and two hex digits";
        let bad = BadText { at, what };
        match bytes.next() {
            Some((_, b't')) => out.push(b'\t'),
            Some((_, b'n')) => out.push(b'\n'),
            Some((_, b'r')) => out.push(b'\r'),
            Some((_, b'\\')) => out.push(b'\\'),
            Some((_, b'x')) => {
                let high = bytes.next().and_then(|(_, digit)| hex_value(digit));
                let low = bytes.next().and_then(|(_, digit)| hex_value(digit));
                match (high, low) {
                    (Some(high), Some(low)) => out.push(high << 4 | low),
                    _ => return Err(bad),
                }
            }
            _ => return Err(bad),
        }
    }
    Ok(out)
}

fn read_hex(text: &[u8]) -> Result<Vec<u8>, BadText> {
    let skipped = match text.get(..2) {
        Some(b"0x" | b"0X") => 2,
        _ => 0,
    };
    let digits = text.get(skipped..).unwrap_or_default();
    if digits.len() % 2 == 1 {
        let what = "hex needs an even number of digits";
        return Err(BadText {
            at: text.len(),
            what,
        });
    }
    let byte = |(index, pair): (usize, &[u8])| match pair {
        [high, low] => match (hex_value(*high), hex_value(*low)) {
            (Some(high), Some(low)) => Ok(high << 4 | low),
            _ => Err(BadText {
                at: skipped + index * 2,
                what: "this is no pair of hex digits",
            }),
        },
        _ => Err(BadText {
            at: text.len(),
            what: "hex needs an even number of digits",
        }),
    };
    digits.chunks(2).enumerate().map(byte).collect()
}

fn hex_value(digit: u8) -> Option<u8> {
    char::from(digit)
        .to_digit(16)
        .and_then(|value| u8::try_from(value).ok())
}

#[cfg(test)]
mod tests {
    use drumlin_base::rng::Rng;
    use drumlin_testkit::{check_cases, untidy_bytes};

    use super::*;

    #[test]
    fn any_bytes_survive_being_written_and_read() {
        let mut rng = Rng::new(11);
        for _ in 0..2000 {
            let bytes = untidy_bytes(&mut rng, 40);
            for form in [Form::Plain, Form::Hex] {
                let mut text = Vec::new();
                form.write(&bytes, &mut text);
                assert!(!text.contains(&b'\n') && !text.contains(&b'\t'), "{text:?}");
                assert_eq!(form.read(&text).as_deref(), Ok(&bytes[..]), "{form:?}");
            }
        }
    }

    #[test]
    fn text_reads_as_documented() {
        check_cases(include_str!("../tests/cases/escape.txt"), |case| {
            let form = Form::new(case.command.starts_with("hex"));
            let mut output = String::new();
            for line in case.input.lines() {
                match form.read(line.as_bytes()) {
                    Ok(bytes) => output.push_str(&format!("[{}]\n", bytes.escape_ascii())),
                    Err(bad) => output.push_str(&format!("at {}: {}\n", bad.at, bad.what)),
                }
            }
            output
        });
    }

    #[test]
    fn text_that_is_utf8_stays_readable() {
        assert_eq!(
            Form::Plain.show("h\u{fc}gel\t\u{1}".as_bytes()),
            "h\u{fc}gel\\t\\x01"
        );
        assert_eq!(Form::Plain.show(b"\xff\xc3"), "\\xFF\\xC3");
        assert_eq!(Form::Hex.show(b"a\xff"), "0x61FF");
    }
}
