//! Keys on disk; `docs/format/mongo.md` is their page.

use drumlin_doc::{Value, keystring};

/// The name of what has keys of its own: a collection or an index. Given once and never again.
pub(crate) type Ident = u32;

/// Keys of the default family. These bytes are on disk.
pub(crate) const FORMAT: &[u8] = b"v";
pub(crate) const NEXT_IDENT: &[u8] = b"n";
pub(crate) const ENTRY: u8 = b'c';
pub(crate) const COUNT: u8 = b's';
pub(crate) const MULTIKEY: u8 = b'm';
pub(crate) const BUILDING: u8 = b'b';

/// The catalog's key of a collection.
pub(crate) fn entry_key(database: &str, collection: &str) -> Vec<u8> {
    [&[ENTRY], database.as_bytes(), &[0], collection.as_bytes()].concat()
}

/// The counters of a collection: of documents, and of their bytes.
pub(crate) fn count_keys(ident: Ident) -> [Vec<u8>; 2] {
    [b'd', b'b'].map(|which| [&[COUNT], ident.to_be_bytes().as_slice(), &[which]].concat())
}

/// A mark of an index.
pub(crate) fn mark_key(mark: u8, ident: Ident) -> Vec<u8> {
    [&[mark], ident.to_be_bytes().as_slice()].concat()
}

/// The first key of an ident, and the first behind all of them.
pub(crate) fn range_of(ident: Ident) -> (Vec<u8>, Vec<u8>) {
    let behind = ident.checked_add(1).map(Ident::to_be_bytes);
    (
        ident.to_be_bytes().to_vec(),
        behind.map_or(vec![0xFF; 5], |bytes| bytes.to_vec()),
    )
}

/// `rest` under an ident.
pub(crate) fn under(ident: Ident, rest: &[u8]) -> Vec<u8> {
    [ident.to_be_bytes().as_slice(), rest].concat()
}

/// The part of a document's key behind the ident: that of its `_id`.
pub(crate) fn id_key(id: Value<'_>) -> Vec<u8> {
    keystring::key_of(id)
}
