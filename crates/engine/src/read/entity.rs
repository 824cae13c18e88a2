//! Wide-column entities as RocksDB stores them, read for their default column.
//!
//! Version 1: varint32 version, varint32 count, then per column its length-prefixed name and the
//! varint32 size of its value, then the values one after another. Columns ascend by name, so the
//! default column, whose name is empty, comes first.

use drumlin_base::coding::Reader;
use drumlin_base::{Error, Result};

const VERSION: u32 = 1;

/// The value of the default column of `entity`; empty when it has none, as RocksDB answers a get.
///
/// # Errors
/// `Corruption` when the bytes do not follow the format, `NotSupported` for another version.
pub(crate) fn default_column(entity: &[u8]) -> Result<&[u8]> {
    let mut reader = Reader::new(entity);
    match reader.varint32() {
        Some(VERSION) => {}
        Some(version) => {
            let message = format!("wide-column entities of version {version}");
            return Err(Error::not_supported(message));
        }
        None => return Err(malformed()),
    }
    let count = reader.varint32().ok_or_else(malformed)?;
    let mut default_size = None;
    for index in 0..count {
        // Each column takes two bytes at least, so a false count ends here soon.
        let name_size = reader.varint32().ok_or_else(malformed)?;
        let name = reader.bytes(name_size as usize).ok_or_else(malformed)?;
        let value_size = reader.varint32().ok_or_else(malformed)?;
        if index == 0 && name.is_empty() {
            default_size = Some(value_size as usize);
        }
    }
    match default_size {
        Some(size) => reader.bytes(size).ok_or_else(malformed),
        None => Ok(&[]),
    }
}

#[cold]
fn malformed() -> Error {
    Error::corruption("a wide-column entity does not follow its format")
}

#[cfg(test)]
mod tests {
    use super::*;
    use drumlin_base::ErrorKind;

    #[test]
    fn the_default_column_is_found_and_may_be_missing() {
        let with = b"\x01\x02\x00\x03\x01a\x02onetw";
        assert_eq!(default_column(with).unwrap(), b"one");
        let without = b"\x01\x01\x01a\x02tw";
        assert_eq!(default_column(without).unwrap(), b"");
    }

    #[test]
    fn every_cut_of_an_entity_is_refused_or_still_holds_the_default() {
        let whole = b"\x01\x02\x00\x03\x01a\x02onetw";
        for cut in 0..whole.len() {
            match default_column(&whole[..cut]) {
                Ok(value) => assert_eq!(value, b"one"),
                Err(error) => assert!(error.is_corruption()),
            }
        }
        let error = default_column(b"\x02\x00").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotSupported);
    }
}
