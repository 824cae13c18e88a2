//! The entries that writers of all formats are given, and the table they give back.

use drumlin_base::key::{
    TAG_BYTES, ValueKind, append_internal, compare_internal, split_internal, tag_kind,
};
use drumlin_base::limits::{KEY_BYTES_MAX, VALUE_BYTES_MAX};
use drumlin_base::{Error, ErrorKind, KeyOrder, Result, SeqNo};

use super::properties::TableProperties;

/// A table that was written, synced and closed.
#[derive(Clone, Debug)]
pub struct FinishedTable {
    /// Bytes of the file.
    pub size: u64,
    /// Bytes behind the data blocks, which a reader loads to open the file.
    pub tail_size: u64,
    /// The table's properties.
    pub properties: TableProperties,
}

/// Checks an entry to be added after the internal key `last` (empty for the first entry). Gives its user key
/// and tag.
///
/// # Errors
/// `InvalidArgument` when the key is not after `last`, is no internal key, or is a range tombstone's;
/// `TooLarge`.
#[inline]
pub(crate) fn check_entry<'a>(
    order: &KeyOrder,
    last: &[u8],
    internal_key: &'a [u8],
    value: &[u8],
) -> Result<(&'a [u8], u64)> {
    let Some((user_key, tag)) = split_internal(internal_key) else {
        return Err(Error::invalid_argument("internal key shorter than its tag"));
    };
    if internal_key.len() > KEY_BYTES_MAX + TAG_BYTES || value.len() > VALUE_BYTES_MAX {
        let (key, value) = (internal_key.len(), value.len());
        let message = format!("a key of {key} and a value of {value} bytes");
        return Err(Error::new(ErrorKind::TooLarge, message));
    }
    if tag_kind(tag) == ValueKind::RangeDeletion as u8 {
        return Err(Error::invalid_argument(
            "a range tombstone among the entries of a table",
        ));
    }
    if !last.is_empty() && compare_internal(order, last, internal_key).is_ge() {
        return Err(Error::invalid_argument("entries of a table do not ascend"));
    }
    Ok((user_key, tag))
}

/// The internal key of a range tombstone to be added after the one of key `last` (empty for the first).
///
/// # Errors
/// `InvalidArgument` when it is not after `last` or its range is empty.
pub(crate) fn tombstone_key(
    order: &KeyOrder,
    last: &[u8],
    begin: &[u8],
    end: &[u8],
    seqno: SeqNo,
) -> Result<Vec<u8>> {
    if order.compare(begin, end).is_ge() {
        return Err(Error::invalid_argument("a range tombstone over nothing"));
    }
    let mut key = Vec::with_capacity(begin.len() + TAG_BYTES);
    append_internal(&mut key, begin, seqno, ValueKind::RangeDeletion as u8);
    if !last.is_empty() && compare_internal(order, last, &key).is_ge() {
        return Err(Error::invalid_argument("range tombstones do not ascend"));
    }
    debug_assert_eq!(key.len(), begin.len() + TAG_BYTES);
    Ok(key)
}

/// The error of a code given to a table with another model.
#[cold]
pub(crate) fn foreign_code() -> Error {
    Error::invalid_argument("the code of a value for a table that does not name its model")
}
