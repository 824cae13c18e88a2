//! Dotted paths, and what a document has at them: arrays on the way fan out.

use crate::raw::{Document, Kind, Value};

/// A path such as `a.b.0`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Path {
    parts: Vec<Box<[u8]>>,
}

impl Path {
    /// The path that `text` has with dots between its parts.
    pub fn new(text: &str) -> Self {
        let parts = text.split('.').map(|part| part.as_bytes().into());
        Self {
            parts: parts.collect(),
        }
    }

    /// The path of these parts.
    pub(crate) fn of(parts: Vec<Box<[u8]>>) -> Self {
        Self { parts }
    }

    /// Its parts.
    pub fn parts(&self) -> &[Box<[u8]>] {
        &self.parts
    }

    /// Whether a part is a number, which may be a place in an array.
    pub fn has_numbers(&self) -> bool {
        self.parts.iter().any(|part| index_of(part).is_some())
    }
}

/// The place in an array that `part` names.
pub(crate) fn index_of(part: &[u8]) -> Option<usize> {
    let is_plain = part.len() == 1 || part.first() != Some(&b'0');
    let digits = is_plain && part.iter().all(u8::is_ascii_digit);
    let text = digits.then(|| std::str::from_utf8(part).ok()).flatten()?;
    text.parse().ok()
}

/// Calls `visit` with each value that `document` has at `path`, and with `None` for each place where it has none, until
/// `visit` returns true; whether it did. An array at the end of the path is one value; one on the way stands for its
/// elements, and for the one whose place the path names.
pub fn candidates<'a>(
    document: Document<'a>,
    path: &Path,
    visit: &mut dyn FnMut(Option<Value<'a>>) -> bool,
) -> bool {
    in_document(document, path.parts(), visit)
}

fn in_document<'a>(
    document: Document<'a>,
    parts: &[Box<[u8]>],
    visit: &mut dyn FnMut(Option<Value<'a>>) -> bool,
) -> bool {
    let Some((first, rest)) = parts.split_first() else {
        return false;
    };
    let mut fields = document.iter();
    match fields.find(|element| *element.name == **first) {
        Some(element) => below(element.value, rest, visit),
        None => visit(None),
    }
}

fn below<'a>(
    value: Value<'a>,
    parts: &[Box<[u8]>],
    visit: &mut dyn FnMut(Option<Value<'a>>) -> bool,
) -> bool {
    let Some((first, rest)) = parts.split_first() else {
        return visit(Some(value));
    };
    match value.kind {
        Kind::Document => in_document(Document(value.bytes), parts, visit),
        Kind::Array => {
            let place = index_of(first);
            for (at, element) in Document(value.bytes).iter().enumerate() {
                if place == Some(at) && below(element.value, rest, visit) {
                    return true;
                }
                let inner = (element.value.kind == Kind::Document).then_some(element.value.bytes);
                if inner.is_some_and(|inner| in_document(Document(inner), parts, visit)) {
                    return true;
                }
            }
            false
        }
        _ => visit(None),
    }
}

/// The value at `path` where no array is on the way, or where the path names places in those.
pub fn value_at<'a>(document: Document<'a>, path: &Path) -> Option<Value<'a>> {
    let (first, rest) = path.parts().split_first()?;
    let field = |document: Document<'a>, name: &[u8]| {
        let mut fields = document.iter();
        fields
            .find(|element| element.name == name)
            .map(|element| element.value)
    };
    let mut value = field(document, first)?;
    for part in rest {
        value = match value.kind {
            Kind::Document => field(Document(value.bytes), part)?,
            Kind::Array => Document(value.bytes).iter().nth(index_of(part)?)?.value,
            _ => return None,
        };
    }
    Some(value)
}

impl std::fmt::Display for Path {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let parts: Vec<_> = self
            .parts
            .iter()
            .map(|part| String::from_utf8_lossy(part))
            .collect();
        f.write_str(&parts.join("."))
    }
}
