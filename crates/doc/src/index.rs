//! The keys that a document has in an index.

use crate::code::Code;
use crate::keystring;
use crate::path::Path;
use crate::raw::{Document, Kind, Value};
use crate::refusal::{Outcome, Refusal};

/// The most keys that one document may have in one index, and the most bytes of them together.
const KEYS_MAX: usize = 1 << 20;
const KEYS_BYTES_MAX: usize = 64 << 20;

/// The fields of an index, in order, and whether each is sorted downwards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexFields(pub Vec<(Path, bool)>);

/// Refuses more keys of one document in one index than there may be, or more bytes of them together.
///
/// # Errors
/// `CannotBuildIndexKeys`.
pub fn check_keys(keys: usize, size_bytes: usize) -> Outcome<()> {
    let refuse = |most: String| {
        let text = format!("a document has more than {most} in an index");
        Err(Refusal::new(Code::CannotBuildIndexKeys, text))
    };
    match () {
        () if keys > KEYS_MAX => refuse(format!("{KEYS_MAX} keys")),
        () if size_bytes > KEYS_BYTES_MAX => refuse(format!("{KEYS_BYTES_MAX} bytes of keys")),
        () => Ok(()),
    }
}

/// The keys of a document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IndexKeys {
    /// Sorted, each once.
    pub keys: Vec<Vec<u8>>,
    /// Whether an array made them: there may be several, and none tells all of the document.
    pub is_multikey: bool,
    /// Whether the document has none of the fields.
    pub is_absent: bool,
}

const UNDEFINED: Value<'static> = Value {
    kind: Kind::Undefined,
    bytes: &[],
};

/// What is known of one field.
#[derive(Clone, Copy)]
enum Slot<'a> {
    Done(Value<'a>),
    /// No such field.
    Absent,
    /// The rest of the path is to be looked for in a document.
    Below(Document<'a>, usize),
    /// An array at a part of the path, of which the elements are to be looked at.
    Array(Document<'a>, usize),
}

impl IndexFields {
    /// The keys of `document`: one for each element of an array that lies on a path, or null where there is nothing, undefined
    /// for an empty array.
    ///
    /// # Errors
    /// `CannotIndexParallelArrays` where two different arrays would have to be combined; `CannotBuildIndexKeys` beyond 2^20 keys or
    /// 64 MiB of them.
    pub fn keys_of(&self, document: Document<'_>) -> Outcome<IndexKeys> {
        keys_of(&self.0, document)
    }
}

/// As [`IndexFields::keys_of`].
pub(crate) fn keys_of(fields: &[(Path, bool)], document: Document<'_>) -> Outcome<IndexKeys> {
    let mut found = IndexKeys {
        is_absent: true,
        ..IndexKeys::default()
    };
    let slots = vec![Slot::Below(document, 0); fields.len()];
    Fields(fields).expand(slots, &mut found, &mut 0)?;
    found.keys.sort_unstable();
    found.keys.dedup();
    Ok(found)
}

/// The key of a document that has no array on any of the paths, which is its only one.
pub(crate) fn plain_key(fields: &[(Path, bool)], document: Document<'_>) -> Option<Vec<u8>> {
    let mut key = Vec::new();
    for (path, is_descending) in fields {
        let value = match advance(Slot::Below(document, 0), path) {
            Slot::Done(value) => value,
            Slot::Array(..) => return None,
            Slot::Absent | Slot::Below(..) => Value::NULL,
        };
        append(&mut key, value, *is_descending);
    }
    Some(key)
}

/// Appends a field of a key.
pub(crate) fn append(key: &mut Vec<u8>, value: Value<'_>, is_descending: bool) {
    match is_descending {
        true => keystring::append_descending(key, value),
        false => keystring::append(key, value),
    }
}

/// Paths, and whether each is sorted downwards.
struct Fields<'f>(&'f [(Path, bool)]);

impl Fields<'_> {
    /// Recurses once for each array on the way.
    fn expand<'a>(
        &self,
        mut slots: Vec<Slot<'a>>,
        found: &mut IndexKeys,
        size_bytes: &mut usize,
    ) -> Outcome<()> {
        let mut array: Option<Document<'a>> = None;
        for (slot, (path, _)) in slots.iter_mut().zip(self.0) {
            *slot = advance(*slot, path);
            if let Slot::Array(elements, _) = slot {
                let is_other = array.is_some_and(|it| !std::ptr::eq(it.0, elements.0));
                if is_other {
                    let fields: Vec<_> = self.0.iter().map(|(path, _)| path.to_string()).collect();
                    let text = format!("cannot index parallel arrays: {}", fields.join(", "));
                    return Err(Refusal::new(Code::CannotIndexParallelArrays, text));
                }
                array = Some(*elements);
            }
        }
        let Some(array) = array else {
            return self.finish(&slots, found, size_bytes);
        };
        found.is_multikey = true;
        let mut is_empty = true;
        for element in array {
            is_empty = false;
            let slots = self.with_element(&slots, Some(element.value));
            self.expand(slots, found, size_bytes)?;
        }
        match is_empty {
            true => self.expand(self.with_element(&slots, None), found, size_bytes),
            false => Ok(()),
        }
    }

    /// The slots with an element in place of the array.
    fn with_element<'a>(&self, slots: &[Slot<'a>], element: Option<Value<'a>>) -> Vec<Slot<'a>> {
        let one = |(slot, (path, _)): (&Slot<'a>, &(Path, bool))| {
            let Slot::Array(_, at) = slot else {
                return *slot;
            };
            let is_end = *at == path.parts().len();
            match element {
                None if is_end => Slot::Done(UNDEFINED),
                None => Slot::Absent,
                Some(value) if is_end => Slot::Done(value),
                Some(value) if value.kind == Kind::Document => {
                    Slot::Below(Document(value.bytes), *at)
                }
                Some(_) => Slot::Absent,
            }
        };
        slots.iter().zip(self.0).map(one).collect()
    }

    fn finish(
        &self,
        slots: &[Slot<'_>],
        found: &mut IndexKeys,
        size_bytes: &mut usize,
    ) -> Outcome<()> {
        let mut key = Vec::new();
        for (slot, (_, is_descending)) in slots.iter().zip(self.0) {
            let value = match slot {
                Slot::Done(value) => {
                    found.is_absent = false;
                    *value
                }
                _ => Value::NULL,
            };
            append(&mut key, value, *is_descending);
        }
        *size_bytes += key.len();
        found.keys.push(key);
        check_keys(found.keys.len(), *size_bytes)
    }
}

/// Follows the path up to a value, an array or nothing.
fn advance<'a>(slot: Slot<'a>, path: &Path) -> Slot<'a> {
    let Slot::Below(mut document, mut at) = slot else {
        return slot;
    };
    while let Some(part) = path.parts().get(at) {
        let mut fields = document.iter();
        let Some(element) = fields.find(|element| *element.name == **part) else {
            return Slot::Absent;
        };
        at += 1;
        match element.value.kind {
            Kind::Array => return Slot::Array(Document(element.value.bytes), at),
            _ if at == path.parts().len() => return Slot::Done(element.value),
            Kind::Document => document = Document(element.value.bytes),
            _ => return Slot::Absent,
        }
    }
    Slot::Absent
}
