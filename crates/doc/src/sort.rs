//! Sort orders of documents.

use crate::index::{append, keys_of, plain_key};
use crate::path::{Path, index_of};
use crate::raw::{Document, Kind, Value};
use crate::refusal::{Outcome, Refusal};

/// Fields to sort by, in order, and whether each goes downwards.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sort(pub Vec<(Path, bool)>);

impl Sort {
    /// The order that `document` describes: `{ field: 1, other: -1 }`.
    ///
    /// # Errors
    /// `BadValue` for other directions, `$meta` among them.
    pub fn new(document: Document<'_>) -> Outcome<Self> {
        let field = |element: crate::raw::Element<'_>| {
            let name = element.name_str();
            let wrong =
                || Refusal::bad_value(format!("the sort direction of {name:?} has to be 1 or -1"));
            if name.is_empty() || name.split('.').any(str::is_empty) {
                return Err(Refusal::bad_value("a sort needs names of fields"));
            }
            match element.value.as_whole() {
                Some(1) => Ok((Path::new(name), false)),
                Some(-1) => Ok((Path::new(name), true)),
                _ => Err(wrong()),
            }
        };
        document.iter().map(field).collect::<Outcome<_>>().map(Self)
    }

    /// Whether it says nothing.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Bytes that sort documents in this order: the least key that the document would have in an index of these fields, so that a sort
    /// and an index give the same order. Where there can be none, as a path names a place in an array or different arrays would have to
    /// be combined, each field counts alone.
    pub fn key_of(&self, document: Document<'_>) -> Vec<u8> {
        if let Some(key) = plain_key(&self.0, document) {
            return key;
        }
        let is_plain = !self.0.iter().any(|(path, _)| path.has_numbers());
        let keys = is_plain.then(|| keys_of(&self.0, document).ok()).flatten();
        let least = keys.and_then(|keys| keys.keys.into_iter().next());
        least.unwrap_or_else(|| self.key_by_field(document))
    }

    /// Each field by its own least key.
    fn key_by_field(&self, document: Document<'_>) -> Vec<u8> {
        let least = |field: &(Path, bool)| {
            let is_plain = !field.0.has_numbers();
            let keys = is_plain.then(|| keys_of(std::slice::from_ref(field), document).ok());
            let keys = keys.flatten().and_then(|keys| keys.keys.into_iter().next());
            keys.unwrap_or_else(|| least_at(document, field))
        };
        self.0.iter().flat_map(least).collect()
    }
}

/// The least element of what lies at a path, downwards the greatest.
fn least_at(document: Document<'_>, (path, is_descending): &(Path, bool)) -> Vec<u8> {
    let key = |value: Value<'_>| {
        let mut bytes = Vec::new();
        append(&mut bytes, value, *is_descending);
        bytes
    };
    let mut best: Option<Vec<u8>> = None;
    let mut see = |value: Value<'_>| {
        let bytes = key(value);
        if best.as_ref().is_none_or(|best| bytes < *best) {
            best = Some(bytes);
        }
    };
    let whole = Value {
        kind: Kind::Document,
        bytes: document.0,
    };
    each_at(whole, path.parts(), &mut see);
    best.unwrap_or_else(|| key(Value::NULL))
}

/// Shows what an index would have of `value` at the path `parts`: of an array the place that a part names, where it has that, or else what
/// each of its elements has; null where there is nothing.
fn each_at<'a>(value: Value<'a>, parts: &[Box<[u8]>], see: &mut dyn FnMut(Value<'a>)) {
    let Some((first, rest)) = parts.split_first() else {
        return match value.as_array() {
            Some(elements) if elements.is_empty() => see(Value {
                kind: Kind::Undefined,
                bytes: &[],
            }),
            Some(elements) => elements.iter().for_each(|element| see(element.value)),
            None => see(value),
        };
    };
    match value.kind {
        Kind::Document => {
            let mut fields = Document(value.bytes).iter();
            match fields.find(|field| *field.name == **first) {
                Some(field) => each_at(field.value, rest, see),
                None => see(Value::NULL),
            }
        }
        Kind::Array => {
            let elements = Document(value.bytes);
            if let Some(place) = index_of(first).and_then(|at| elements.iter().nth(at)) {
                return each_at(place.value, rest, see);
            }
            for element in elements {
                match element.value.kind {
                    Kind::Document => each_at(element.value, parts, see),
                    _ => see(Value::NULL),
                }
            }
        }
        _ => see(Value::NULL),
    }
}
