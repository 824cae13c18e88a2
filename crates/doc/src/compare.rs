//! The order of values: MongoDB's, over all types.

use std::cmp::Ordering;

use crate::number::Number;
use crate::raw::{Document, Kind, Value};

/// The class of a type: values of different classes are ordered by it, and comparisons of filters match within one.
pub fn class(kind: Kind) -> u8 {
    match kind {
        Kind::MinKey => 1,
        Kind::Undefined => 2,
        Kind::Null => 3,
        Kind::Double | Kind::Int32 | Kind::Int64 | Kind::Decimal => 4,
        Kind::String | Kind::Symbol => 5,
        Kind::Document => 6,
        Kind::Array => 7,
        Kind::Binary => 8,
        Kind::ObjectId => 9,
        Kind::Bool => 10,
        Kind::Date => 11,
        Kind::Timestamp => 12,
        Kind::Regex => 13,
        Kind::DbPointer => 14,
        Kind::Code => 15,
        Kind::CodeWithScope => 16,
        Kind::MaxKey => 17,
    }
}

/// The order of two values. Recurses as deep as they are nested.
pub fn compare(a: Value<'_>, b: Value<'_>) -> Ordering {
    let by_class = class(a.kind).cmp(&class(b.kind));
    if by_class.is_ne() {
        return by_class;
    }
    match a.kind {
        Kind::MinKey | Kind::Undefined | Kind::Null | Kind::MaxKey => Ordering::Equal,
        Kind::Double | Kind::Int32 | Kind::Int64 | Kind::Decimal => {
            match (Number::of(a), Number::of(b)) {
                (Some(a), Some(b)) => a.compare(b),
                _ => Ordering::Equal,
            }
        }
        Kind::String | Kind::Symbol | Kind::Code => a.text().cmp(&b.text()),
        Kind::Document => compare_documents(Document(a.bytes), Document(b.bytes), true),
        Kind::Array => compare_documents(Document(a.bytes), Document(b.bytes), false),
        Kind::Binary => compare_binary(a.bytes, b.bytes),
        Kind::ObjectId | Kind::Bool => a.bytes.cmp(b.bytes),
        Kind::Date => a.fixed_i64().cmp(&b.fixed_i64()),
        Kind::Timestamp => unsigned(a).cmp(&unsigned(b)),
        Kind::Regex => regex_parts(a.bytes).cmp(&regex_parts(b.bytes)),
        Kind::DbPointer => pointer_parts(a).cmp(&pointer_parts(b)),
        Kind::CodeWithScope => {
            let (code_a, scope_a) = scope_parts(a.bytes);
            let (code_b, scope_b) = scope_parts(b.bytes);
            let by_code = code_a.cmp(code_b);
            by_code.then_with(|| compare_documents(scope_a, scope_b, true))
        }
    }
}

/// Whether two values are the same key.
pub fn equal(a: Value<'_>, b: Value<'_>) -> bool {
    compare(a, b).is_eq()
}

/// Pair by pair: class, name where it counts, value; then the shorter one first.
fn compare_documents(a: Document<'_>, b: Document<'_>, with_names: bool) -> Ordering {
    let (mut a, mut b) = (a.iter(), b.iter());
    loop {
        match (a.next(), b.next()) {
            (None, None) => return Ordering::Equal,
            (None, Some(_)) => return Ordering::Less,
            (Some(_), None) => return Ordering::Greater,
            (Some(a), Some(b)) => {
                let order = class(a.value.kind).cmp(&class(b.value.kind));
                let names = || match with_names {
                    true => a.name.cmp(b.name),
                    false => Ordering::Equal,
                };
                let order = order.then_with(names);
                let order = order.then_with(|| compare(a.value, b.value));
                if order.is_ne() {
                    return order;
                }
            }
        }
    }
}

/// By length, then subtype and bytes.
fn compare_binary(a: &[u8], b: &[u8]) -> Ordering {
    a.len()
        .cmp(&b.len())
        .then_with(|| a.get(4..).cmp(&b.get(4..)))
}

pub(crate) fn unsigned(value: Value<'_>) -> u64 {
    value
        .bytes
        .first_chunk::<8>()
        .map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

/// Pattern and options.
pub(crate) fn regex_parts(bytes: &[u8]) -> (&[u8], &[u8]) {
    let mut parts = bytes.split(|byte| *byte == 0);
    let pattern = parts.next().unwrap_or_default();
    (pattern, parts.next().unwrap_or_default())
}

/// Name and id.
pub(crate) fn pointer_parts(value: Value<'_>) -> (&[u8], &[u8]) {
    let at = value.bytes.len().saturating_sub(12);
    let id = value.bytes.get(at..).unwrap_or_default();
    (value.text().unwrap_or_default(), id)
}

/// Text and scope.
pub(crate) fn scope_parts(bytes: &[u8]) -> (&[u8], Document<'_>) {
    let inner = bytes.get(4..).unwrap_or_default();
    let text = Value {
        kind: Kind::String,
        bytes: inner,
    };
    let text = text.text().unwrap_or_default();
    let scope = inner
        .get(text.len() + 5..)
        .map_or(Document::EMPTY, Document);
    (text, scope)
}
