//! The merge operators that RocksDB ships and stores by name, so that a directory written with one
//! reads the same here.
//!
//! Both are stateless: any thread, any number at once.

use std::sync::Arc;

use drumlin_base::{MergeOperator, Result};

/// Adds 64-bit little-endian numbers, wrapping. Stored as `UInt64AddOperator`.
///
/// As in RocksDB, an operand or a value that is not eight bytes long counts as 0.
#[derive(Clone, Copy, Debug, Default)]
pub struct UInt64Add;

impl UInt64Add {
    const NAME: &str = "UInt64AddOperator";
    /// RocksDB's other name for it, which options files of its tools may hold.
    const SHORT_NAME: &str = "uint64add";
}

impl MergeOperator for UInt64Add {
    fn name(&self) -> &str {
        Self::NAME
    }

    fn full_merge(
        &self,
        _key: &[u8],
        existing: Option<&[u8]>,
        operands: &[&[u8]],
    ) -> Result<Vec<u8>> {
        let numbers = existing.iter().chain(operands);
        let sum = numbers.fold(0, |sum: u64, bytes| {
            match drumlin_base::bug!("sum-saturates") {
                true => sum.saturating_add(number(bytes)),
                false => sum.wrapping_add(number(bytes)),
            }
        });
        Ok(sum.to_le_bytes().to_vec())
    }

    fn partial_merge(&self, _key: &[u8], left: &[u8], right: &[u8]) -> Option<Vec<u8>> {
        let sum = number(left).wrapping_add(number(right));
        Some(sum.to_le_bytes().to_vec())
    }
}

fn number(bytes: &[u8]) -> u64 {
    bytes.try_into().map_or(0, u64::from_le_bytes)
}

/// Appends operands to the value, a delimiter between any two. Stored as `StringAppendOperator`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StringAppend {
    delimiter: String,
}

impl StringAppend {
    const NAME: &str = "StringAppendOperator";
    const SHORT_NAME: &str = "stringappend";
    /// The same rule under another name, which RocksDB's tools use too.
    const TEST_NAME: &str = "StringAppendTESTOperator";
    const TEST_SHORT_NAME: &str = "stringappendtest";

    /// Appends with `delimiter` in between, which may be empty.
    pub fn new(delimiter: impl Into<String>) -> Self {
        Self {
            delimiter: delimiter.into(),
        }
    }
}

impl Default for StringAppend {
    /// A comma, as in RocksDB.
    fn default() -> Self {
        Self::new(",")
    }
}

impl MergeOperator for StringAppend {
    fn name(&self) -> &str {
        Self::NAME
    }

    fn options_text(&self) -> String {
        format!(
            "{{id={};delimiter={};}}",
            Self::NAME,
            quoted(&self.delimiter)
        )
    }

    fn full_merge(
        &self,
        _key: &[u8],
        existing: Option<&[u8]>,
        operands: &[&[u8]],
    ) -> Result<Vec<u8>> {
        let mut parts: Vec<&[u8]> = existing.iter().chain(operands).copied().collect();
        if drumlin_base::bug!("no-delimiter-after-empty") {
            parts.retain(|part| !part.is_empty());
        }
        Ok(parts.join(self.delimiter.as_bytes()))
    }

    fn partial_merge(&self, _key: &[u8], left: &[u8], right: &[u8]) -> Option<Vec<u8>> {
        Some([left, right].join(self.delimiter.as_bytes()))
    }
}

/// The built-in operator that an options file describes; `None` when it is none of them.
pub(crate) fn from_options(text: &str) -> Option<Arc<dyn MergeOperator>> {
    let (id, settings) = match text.strip_prefix("{id=") {
        Some(rest) => rest
            .strip_suffix('}')?
            .split_once(';')
            .unwrap_or((rest, "")),
        None => (text, ""),
    };
    match id.trim_end_matches('}') {
        UInt64Add::NAME | UInt64Add::SHORT_NAME => Some(Arc::new(UInt64Add)),
        StringAppend::NAME
        | StringAppend::SHORT_NAME
        | StringAppend::TEST_NAME
        | StringAppend::TEST_SHORT_NAME => Some(Arc::new(string_append(settings))),
        _ => None,
    }
}

/// `settings` is `delimiter=..;`, or empty for the default. RocksDB writes a delimiter as it is, a
/// semicolon too, and since there is no other setting, all up to the last semicolon is one.
fn string_append(settings: &str) -> StringAppend {
    match settings.strip_prefix("delimiter=") {
        Some(rest) => StringAppend::new(unquoted(rest.strip_suffix(';').unwrap_or(rest))),
        None => StringAppend::default(),
    }
}

/// `text` as a value that RocksDB reads back: characters that end or nest a value are escaped or in braces.
fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    for letter in text.chars() {
        if matches!(letter, '\\' | '#' | ':' | '{' | '}') {
            out.push('\\');
        }
        out.push(letter);
    }
    match text.contains([';', '=']) || text.trim() != text {
        true => format!("{{{out}}}"),
        false => out,
    }
}

fn unquoted(text: &str) -> String {
    let inner = text
        .strip_prefix('{')
        .and_then(|text| text.strip_suffix('}'));
    let mut out = String::with_capacity(text.len());
    let mut letters = inner.unwrap_or(text).chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => out.extend(letters.next()),
            _ => out.push(letter),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_add_up_and_wrap_and_what_is_no_number_counts_as_nothing() {
        let (one, most) = (1u64.to_le_bytes(), u64::MAX.to_le_bytes());
        let merge = |existing: Option<&[u8]>, operands: &[&[u8]]| {
            number(&UInt64Add.full_merge(b"k", existing, operands).unwrap())
        };
        assert_eq!(merge(None, &[&one, &one]), 2);
        assert_eq!(merge(Some(&most), &[&one, &one]), 1);
        assert_eq!(merge(Some(b"three"), &[&one, b""]), 1);
        let both = UInt64Add.partial_merge(b"k", &most, &one).unwrap();
        assert_eq!(number(&both), 0);
    }

    #[test]
    fn a_delimiter_stands_between_any_two_even_after_an_empty_value() {
        let append = StringAppend::new("::");
        let merge = |existing: Option<&[u8]>, operands: &[&[u8]]| {
            append.full_merge(b"k", existing, operands).unwrap()
        };
        assert_eq!(merge(None, &[b"a"]), b"a");
        assert_eq!(merge(None, &[b"a", b"b"]), b"a::b");
        assert_eq!(merge(Some(b""), &[b"a"]), b"::a");
        assert_eq!(append.partial_merge(b"k", b"a", b"").unwrap(), b"a::");
    }

    #[test]
    fn options_text_leads_back_to_the_same_operator() {
        let joined = |text: &str| {
            let operator = from_options(text).unwrap_or_else(|| panic!("{text}"));
            let merged = operator.full_merge(b"k", Some(b"1"), &[b"2"]).unwrap();
            String::from_utf8(merged).unwrap()
        };
        for delimiter in [
            "", ",", ";", "::", "a b", "}", " ", "{x}", "\\", "#", "a=b;",
        ] {
            let text = StringAppend::new(delimiter).options_text();
            assert_eq!(joined(&text), format!("1{delimiter}2"), "{text}");
        }
        // As RocksDB 7.8 writes them.
        assert_eq!(joined("{id=StringAppendOperator;delimiter=;;}"), "1;2");
        assert_eq!(joined("{id=StringAppendOperator;delimiter=\\:;}"), "1:2");
        assert_eq!(joined("{id=StringAppendTESTOperator}"), "1,2");
        assert_eq!(joined("stringappend"), "1,2");
        assert_eq!(
            from_options("UInt64AddOperator").unwrap().name(),
            "UInt64AddOperator"
        );
        assert!(from_options("mine").is_none());
        assert!(from_options("{id=mine;delimiter=,;}").is_none());
    }
}
