//! A reply as a client has it, and how it is shown.

use std::fmt::{self, Write as _};

/// A reply of a server.
///
/// Null strings and null arrays of RESP2 differ, though they mean the same, since they are different bytes. So do
/// doubles that are equal and differ in their texts.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Value {
    /// A simple string.
    Simple(Vec<u8>),
    /// An error, code and sentence; a blob error of RESP3 too.
    Error(Vec<u8>),
    /// An integer.
    Integer(i64),
    /// A string of any bytes.
    Bulk(Vec<u8>),
    /// Nothing, of RESP3; no string, of RESP2.
    Null,
    /// No array, of RESP2.
    NullArray,
    /// An array.
    Array(Vec<Value>),
    /// Names and values in the order of their arrival. Names may repeat.
    Map(Vec<(Value, Value)>),
    /// Members in the order of their arrival. They may repeat.
    Set(Vec<Value>),
    /// A double, as its text; see [`Value::as_double`].
    Double(Vec<u8>),
    /// True or false.
    Bool(bool),
    /// An integer of any size, as its text.
    BigNumber(Vec<u8>),
    /// A text and its format, `txt` or `mkd`.
    Verbatim([u8; 3], Vec<u8>),
    /// What no command asked for.
    Push(Vec<Value>),
    /// A reply, and the attributes that came in front of it.
    Attributed(Vec<(Value, Value)>, Box<Value>),
}

impl Value {
    /// The number, if this is a double.
    pub fn as_double(&self) -> Option<f64> {
        match self {
            Self::Double(text) => double(text),
            _ => None,
        }
    }

    /// The bytes, if this is a string of whatever kind; an error is none.
    pub fn as_bytes(&self) -> Option<&[u8]> {
        match self {
            Self::Simple(text) | Self::Bulk(text) | Self::Verbatim(_, text) => Some(text),
            Self::Double(text) | Self::BigNumber(text) => Some(text),
            _ => None,
        }
    }

    /// The items, if this is an array, a set or a push.
    pub fn as_items(&self) -> Option<&[Self]> {
        match self {
            Self::Array(items) | Self::Set(items) | Self::Push(items) => Some(items),
            _ => None,
        }
    }
}

/// The number that a double's text is.
pub(crate) fn double(text: &[u8]) -> Option<f64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// As redis-cli shows it to people: every kind looks different, and every byte is seen.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.show(f, 0)
    }
}

impl Value {
    /// Lines but the first begin with so many spaces. Recurses no deeper than the parser let the value be.
    fn show(&self, f: &mut fmt::Formatter<'_>, indent: usize) -> fmt::Result {
        match self {
            Self::Simple(text) => write!(f, "{}", Plain(text)),
            Self::Error(text) => write!(f, "(error) {}", Plain(text)),
            Self::Integer(number) => write!(f, "(integer) {number}"),
            Self::Bulk(text) => write!(f, "\"{}\"", Plain(text)),
            Self::Null => f.write_str("(nil)"),
            Self::NullArray => f.write_str("(nil array)"),
            Self::Double(text) => write!(f, "(double) {}", Plain(text)),
            Self::Bool(value) => write!(f, "({value})"),
            Self::BigNumber(text) => write!(f, "(big number) {}", Plain(text)),
            Self::Verbatim(format, text) => {
                write!(f, "({}) \"{}\"", Plain(format), Plain(text))
            }
            Self::Array(items) => list(f, items, indent, (')', "(empty array)")),
            Self::Set(items) => list(f, items, indent, ('~', "(empty set)")),
            Self::Push(items) => list(f, items, indent, ('>', "(empty push)")),
            Self::Map(pairs) => map(f, pairs, indent, ('#', "(empty hash)")),
            Self::Attributed(pairs, value) => {
                map(f, pairs, indent, ('|', "(no attributes)"))?;
                write!(f, "\n{:indent$}", "")?;
                value.show(f, indent)
            }
        }
    }
}

/// What an item's number ends with, and what stands for no items.
type Manner = (char, &'static str);

fn list(f: &mut fmt::Formatter<'_>, items: &[Value], indent: usize, manner: Manner) -> fmt::Result {
    if items.is_empty() {
        return f.write_str(manner.1);
    }
    for (number, item) in (1..).zip(items) {
        let begun = begin(f, number, items.len(), indent, manner)?;
        item.show(f, begun)?;
    }
    Ok(())
}

fn map(
    f: &mut fmt::Formatter<'_>,
    pairs: &[(Value, Value)],
    indent: usize,
    manner: Manner,
) -> fmt::Result {
    if pairs.is_empty() {
        return f.write_str(manner.1);
    }
    for (number, (name, value)) in (1..).zip(pairs) {
        let begun = begin(f, number, pairs.len(), indent, manner)?;
        name.show(f, begun)?;
        f.write_str(" => ")?;
        value.show(f, begun)?;
    }
    Ok(())
}

/// Writes the number of an item, in a new line but for the first, and returns the indent of what it holds.
fn begin(
    f: &mut fmt::Formatter<'_>,
    number: usize,
    count: usize,
    indent: usize,
    (end, _): Manner,
) -> Result<usize, fmt::Error> {
    if number > 1 {
        write!(f, "\n{:indent$}", "")?;
    }
    let width = count.ilog10() as usize + 1;
    write!(f, "{number:width$}{end} ")?;
    Ok(indent + width + 2)
}

/// Bytes that print, and escapes for the others.
struct Plain<'a>(&'a [u8]);

impl fmt::Display for Plain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for byte in self.0 {
            match byte {
                b'\\' | b'"' => write!(f, "\\{}", char::from(*byte))?,
                b'\n' => f.write_str("\\n")?,
                b'\r' => f.write_str("\\r")?,
                b'\t' => f.write_str("\\t")?,
                0x07 => f.write_str("\\a")?,
                0x08 => f.write_str("\\b")?,
                b' '..=b'~' => f.write_char(char::from(*byte))?,
                other => write!(f, "\\x{other:02x}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bulk(text: &str) -> Value {
        Value::Bulk(text.into())
    }

    #[test]
    fn values_are_shown_as_redis_cli_shows_them() {
        let shown = |value: Value| value.to_string();
        assert_eq!(shown(Value::Simple(b"OK".to_vec())), "OK");
        assert_eq!(shown(Value::Error(b"ERR no".to_vec())), "(error) ERR no");
        assert_eq!(shown(Value::Integer(-3)), "(integer) -3");
        assert_eq!(
            shown(Value::Bulk(b"a\"\\\n\r\t\x07\x08\x00\xff".to_vec())),
            r#""a\"\\\n\r\t\a\b\x00\xff""#
        );
        assert_eq!(shown(Value::Null), "(nil)");
        assert_eq!(shown(Value::Array(vec![])), "(empty array)");
        assert_eq!(shown(Value::Bool(true)), "(true)");
        assert_eq!(shown(Value::Double(b"1.5".to_vec())), "(double) 1.5");
    }

    #[test]
    fn items_are_numbered_and_what_they_hold_is_indented() {
        let inner = Value::Array(vec![Value::Integer(1), bulk("x")]);
        let mut items = vec![inner, Value::Map(vec![(bulk("k"), Value::Set(vec![]))])];
        assert_eq!(
            Value::Array(items.clone()).to_string(),
            "1) 1) (integer) 1\n   2) \"x\"\n2) 1# \"k\" => (empty set)"
        );
        items.resize(10, Value::Null);
        let shown = Value::Push(items).to_string();
        assert!(
            shown.starts_with(" 1> 1) (integer) 1\n    2) \"x\"\n"),
            "{shown}"
        );
        assert!(shown.ends_with("\n10> (nil)"), "{shown}");
    }
}
