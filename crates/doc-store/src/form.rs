//! Documents as they are stored: without `_id` where the key gives it back.

use std::borrow::Cow;

use drumlin::{Error, Result};
use drumlin_doc::{Builder, Document, Kind, keystring};

/// The lowest bits of the first byte, which are on disk (`docs/format/mongo.md`).
const WHOLE: u8 = 0;
const WITHOUT_ID: u8 = 1;
const FORM_BITS: u32 = 2;

/// The stored bytes of `document`, whose first field is `_id`.
pub(crate) fn encode(document: Document<'_>) -> Vec<u8> {
    let mut fields = document.iter();
    let id = fields
        .next()
        .filter(|first| first.name == b"_id" && keystring::is_reversible(first.value));
    let Some(id) = id else {
        return whole(document);
    };
    // Types that a key gives back are below 64.
    let kind = id.value.kind as u8;
    let skipped = 4 + 1 + id.name.len() + 1 + id.value.bytes.len();
    let rest = document.0.get(skipped..).unwrap_or_default();
    let mut out = Vec::with_capacity(rest.len() + 1);
    out.push((kind << FORM_BITS) | WITHOUT_ID);
    out.extend_from_slice(rest);
    out
}

/// The stored bytes of `document` with all its fields.
pub(crate) fn whole(document: Document<'_>) -> Vec<u8> {
    [&[WHOLE], document.0].concat()
}

/// The document that is stored as `stored` under the key of its `_id`.
///
/// # Errors
/// `Corruption` where key and bytes do not go together.
pub(crate) fn decode<'a>(id_key: &[u8], stored: &'a [u8]) -> Result<Cow<'a, [u8]>> {
    let damaged = || Error::corruption("a stored document does not go with its key");
    let (form, rest) = stored.split_first().ok_or_else(damaged)?;
    match form & ((1 << FORM_BITS) - 1) {
        WHOLE => Ok(Cow::Borrowed(rest)),
        WITHOUT_ID => {
            let kind = Kind::of(form >> FORM_BITS).ok_or_else(damaged)?;
            let id = keystring::decode(kind, id_key).ok_or_else(damaged)?;
            let mut out = Builder::with_room(rest.len() + id.bytes.len() + 16);
            out.value("_id", id.get());
            Ok(Cow::Owned(out.finish_with(rest)))
        }
        _ => Err(damaged()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_come_back_with_and_without_their_id() {
        let mut out = Builder::new();
        out.i32("_id", 7)
            .str("a", "x")
            .open(Kind::Document, "b")
            .close();
        let with_number = out.finish();
        let mut out = Builder::new();
        out.open(Kind::Document, "_id")
            .i32("a", 1)
            .close()
            .i32("b", 2);
        for document in [with_number, out.finish()] {
            let stored = encode(Document(&document));
            let id = Document(&document).get("_id").expect("an id");
            assert_eq!(
                decode(&keystring::key_of(id), &stored)
                    .expect("whole")
                    .as_ref(),
                document
            );
            assert!(stored.len() <= document.len() + 1);
        }
    }

    #[test]
    fn a_document_under_a_foreign_key_is_damage() {
        let mut out = Builder::new();
        out.i32("_id", 7);
        let stored = encode(Document(&out.finish()));
        for key in [&b"\x3Ca"[..], &[], &[0xFF]] {
            assert!(decode(key, &stored).expect_err("damage").is_corruption());
        }
        assert!(decode(b"", b"").expect_err("damage").is_corruption());
        assert!(decode(b"", &[3]).expect_err("damage").is_corruption());
    }
}
