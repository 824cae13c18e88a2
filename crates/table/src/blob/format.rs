//! The pieces of a blob file, and the reference to a value in one, to and from bytes.
//!
//! All integers are little-endian, all checksums masked CRC-32C. The file's header has no checksum:
//! a damaged family id or codec shows when it is compared with the reference's and the MANIFEST's.

use drumlin_base::checksum::{crc32c, crc32c_extend, mask};
use drumlin_base::coding::{Reader, put_fixed32, put_fixed64, put_varint64};
use drumlin_base::limits::{KEY_BYTES_MAX, VALUE_BYTES_MAX};
use drumlin_base::{Error, Result};

use crate::compress::Codec;
use crate::format::TableStyle;

/// Bytes of a file's header.
pub const BLOB_HEADER_BYTES: usize = 30;
/// Bytes of a file's footer.
pub const BLOB_FOOTER_BYTES: usize = 32;
/// Bytes in front of the key of each record.
pub const BLOB_RECORD_HEADER_BYTES: usize = 32;

/// The first four bytes of a header and of a footer. On disk.
const MAGIC: u32 = 0x0024_8f37;
/// The only version there is. On disk.
const VERSION: u32 = 1;
/// The kinds of a reference. On disk.
mod kind {
    pub(super) const INLINED_TTL: u8 = 0;
    pub(super) const BLOB: u8 = 1;
    pub(super) const BLOB_TTL: u8 = 2;
}

/// Most a stored value can measure: the longest value in the codec that stretches it most.
const STORED_BYTES_MAX: u64 = VALUE_BYTES_MAX as u64 + (VALUE_BYTES_MAX as u64 >> 6) + 1024;

/// The byte that stands for `codec`.
fn codec_id(codec: Codec) -> u8 {
    codec
        .id(TableStyle::RocksDb)
        .expect("RocksDB's files hold every codec")
}

/// A reference to a value, which a table has in its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BlobIndex {
    /// Number of the blob file.
    pub file: u64,
    /// Offset in it of the value's first byte, behind the record's header and key.
    pub offset: u64,
    /// Bytes of the value as it is stored, compressed or not.
    pub size: u64,
    /// How it is compressed; always as the file's header says.
    pub codec: Codec,
}

impl BlobIndex {
    /// Appends the reference to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.push(kind::BLOB);
        put_varint64(out, self.file);
        put_varint64(out, self.offset);
        put_varint64(out, self.size);
        out.push(codec_id(self.codec));
    }

    /// The reference stored as `bytes`, all of them.
    ///
    /// # Errors
    /// `NotSupported`, by name, for the kinds of the older stacked BlobDB and for values embedded
    /// in their own table; `Corruption` for anything else that is not a reference.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let mut reader = Reader::new(bytes);
        match reader.u8() {
            Some(kind::BLOB) => {}
            Some(kind::INLINED_TTL) => {
                return Err(Error::not_supported(
                    "a value that expires, written by stacked BlobDB",
                ));
            }
            Some(kind::BLOB_TTL) => {
                return Err(Error::not_supported(
                    "a reference that expires, written by stacked BlobDB",
                ));
            }
            Some(other) => {
                return Err(Error::corruption(format!(
                    "unknown kind {other} of a reference to a blob"
                )));
            }
            None => return Err(Error::corruption("an empty reference to a blob")),
        }
        let fields = (reader.varint64(), reader.varint64(), reader.varint64());
        let (Some(file), Some(offset), Some(size)) = fields else {
            return Err(Error::corruption("a reference to a blob ends early"));
        };
        let (Some(codec), true) = (reader.u8(), reader.is_empty()) else {
            return Err(Error::corruption("a reference to a blob of a wrong length"));
        };
        if file == 0 {
            return Err(Error::not_supported("a blob embedded in its own table"));
        }
        let codec = Codec::from_id(codec, TableStyle::RocksDb)?;
        Ok(Self {
            file,
            offset,
            size,
            codec,
        })
    }

    /// Bytes of the record that holds the value of `user_key` in its file.
    pub fn record_bytes(&self, user_key: &[u8]) -> u64 {
        (BLOB_RECORD_HEADER_BYTES as u64 + user_key.len() as u64).saturating_add(self.size)
    }
}

/// The front of a blob file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlobHeader {
    /// Id of the column family whose values these are.
    pub family_id: u32,
    /// How every value of the file is compressed.
    pub codec: Codec,
}

impl BlobHeader {
    /// Appends the header to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        put_fixed32(out, MAGIC);
        put_fixed32(out, VERSION);
        put_fixed32(out, self.family_id);
        out.push(0); // No flags: nothing expires.
        out.push(codec_id(self.codec));
        put_fixed64(out, 0); // No earliest expiration,
        put_fixed64(out, 0); // and no latest.
    }

    /// The header in the first bytes of a file.
    ///
    /// # Errors
    /// `Corruption`; `NotSupported` for other versions, flags, and values that expire.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let mut reader = Reader::new(bytes);
        let mut fields = || {
            let words = (reader.fixed32()?, reader.fixed32()?, reader.fixed32()?);
            let bytes = (reader.u8()?, reader.u8()?);
            let expiration = (reader.fixed64()?, reader.fixed64()?);
            Some((words, bytes, expiration))
        };
        let Some(((magic, version, family_id), (flags, codec), expiration)) = fields() else {
            return Err(Error::corruption("the header of a blob file ends early"));
        };
        if magic != MAGIC {
            return Err(Error::corruption("this is not a blob file"));
        }
        if version != VERSION {
            return Err(Error::not_supported(format!(
                "version {version} of a blob file"
            )));
        }
        if flags != 0 || expiration != (0, 0) {
            return Err(Error::not_supported(
                "a blob file of values that expire, written by stacked BlobDB",
            ));
        }
        let codec = Codec::from_id(codec, TableStyle::RocksDb)?;
        Ok(Self { family_id, codec })
    }
}

/// The end of a blob file that was finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlobFooter {
    /// Records in the file.
    pub blob_count: u64,
}

impl BlobFooter {
    /// Appends the footer to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let start = out.len();
        put_fixed32(out, MAGIC);
        put_fixed64(out, self.blob_count);
        put_fixed64(out, 0);
        put_fixed64(out, 0);
        let checksum = mask(crc32c(out.get(start..).expect("it was appended")));
        put_fixed32(out, checksum);
        assert_eq!(
            out.len() - start,
            BLOB_FOOTER_BYTES,
            "footers have one size"
        );
    }

    /// The footer in the last bytes of a file.
    ///
    /// # Errors
    /// `Corruption`; `NotSupported` for values that expire.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let damaged = || Error::corruption("the footer of a blob file is damaged or missing");
        let (covered, stored) = bytes.split_last_chunk::<4>().ok_or_else(damaged)?;
        let mut reader = Reader::new(covered);
        let mut fields = || {
            let (magic, blob_count) = (reader.fixed32()?, reader.fixed64()?);
            let expiration = (reader.fixed64()?, reader.fixed64()?);
            Some((magic, blob_count, expiration))
        };
        let (magic, blob_count, expiration) = fields().ok_or_else(damaged)?;
        if magic != MAGIC || mask(crc32c(covered)) != u32::from_le_bytes(*stored) {
            return Err(damaged());
        }
        if expiration != (0, 0) || !reader.is_empty() {
            return Err(Error::not_supported(
                "a blob file of values that expire, written by stacked BlobDB",
            ));
        }
        Ok(Self { blob_count })
    }
}

/// The header before each key and value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlobRecordHeader {
    /// Bytes of the user key.
    pub key_bytes: u64,
    /// Bytes of the value as it is stored.
    pub value_bytes: u64,
    /// Masked checksum over key and stored value.
    pub checksum: u32,
}

impl BlobRecordHeader {
    /// The header of the record of `user_key` and `stored`.
    pub fn of(user_key: &[u8], stored: &[u8]) -> Self {
        Self {
            key_bytes: user_key.len() as u64,
            value_bytes: stored.len() as u64,
            checksum: mask(crc32c_extend(crc32c(user_key), stored)),
        }
    }

    /// Appends the header to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let start = out.len();
        put_fixed64(out, self.key_bytes);
        put_fixed64(out, self.value_bytes);
        put_fixed64(out, 0); // Never expires.
        let checksum = mask(crc32c(out.get(start..).expect("it was appended")));
        put_fixed32(out, checksum);
        put_fixed32(out, self.checksum);
        debug_assert_eq!(out.len() - start, BLOB_RECORD_HEADER_BYTES);
    }

    /// The header in the first bytes of a record. Its lengths are below the limits of keys and
    /// values; whether the file holds as much is for the caller to check.
    ///
    /// # Errors
    /// `Corruption`; `NotSupported` for a value that expires.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let mut reader = Reader::new(bytes);
        let mut fields = || {
            let lengths = (reader.fixed64()?, reader.fixed64()?, reader.fixed64()?);
            Some((lengths, reader.fixed32()?, reader.fixed32()?))
        };
        let Some(((key_bytes, value_bytes, expiration), own_checksum, checksum)) = fields() else {
            return Err(Error::corruption("the header of a blob ends early"));
        };
        let covered = bytes.get(..24).expect("its fields were read");
        if mask(crc32c(covered)) != own_checksum {
            return Err(Error::corruption("the checksum of a blob's header"));
        }
        if expiration != 0 {
            return Err(Error::not_supported("a blob that expires"));
        }
        if key_bytes > KEY_BYTES_MAX as u64 || value_bytes > STORED_BYTES_MAX {
            return Err(Error::corruption(format!(
                "a blob with a key of {key_bytes} and a value of {value_bytes} bytes"
            )));
        }
        Ok(Self {
            key_bytes,
            value_bytes,
            checksum,
        })
    }

    /// Checks the bytes read against the header's checksum.
    ///
    /// # Errors
    /// `Corruption`.
    pub fn check(&self, user_key: &[u8], stored: &[u8]) -> Result<()> {
        let found = mask(crc32c_extend(crc32c(user_key), stored));
        if found != self.checksum {
            return Err(Error::corruption(format!(
                "blob checksum does not match: stored {:#010x}, expected {found:#010x}",
                self.checksum
            )));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use drumlin_base::ErrorKind;

    use super::*;

    const INDEX: BlobIndex = BlobIndex {
        file: 300,
        offset: 70_000,
        size: 5,
        codec: Codec::Lz4,
    };

    fn bytes_of(encode: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
        let mut out = Vec::new();
        encode(&mut out);
        out
    }

    #[test]
    fn a_reference_has_the_bytes_rocksdb_gives_it() {
        let bytes = bytes_of(|out| INDEX.encode(out));
        assert_eq!(bytes, [1, 0xAC, 0x02, 0xF0, 0xA2, 0x04, 5, 4]);
        assert_eq!(BlobIndex::decode(&bytes).unwrap(), INDEX);
        assert_eq!(INDEX.record_bytes(b"key"), 40);
    }

    #[test]
    fn references_cut_stretched_or_of_other_kinds_are_refused_by_name() {
        let bytes = bytes_of(|out| INDEX.encode(out));
        for cut in 0..bytes.len() {
            assert!(BlobIndex::decode(&bytes[..cut]).is_err(), "cut at {cut}");
        }
        let longer = [&bytes[..], &[0]].concat();
        assert!(BlobIndex::decode(&longer).unwrap_err().is_corruption());
        for old in [0, 2] {
            let mut other = bytes.clone();
            other[0] = old;
            let error = BlobIndex::decode(&other).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::NotSupported, "{error}");
        }
        let mut unknown = bytes.clone();
        unknown[0] = 3;
        assert!(BlobIndex::decode(&unknown).unwrap_err().is_corruption());
        let embedded = BlobIndex { file: 0, ..INDEX };
        let embedded = bytes_of(|out| embedded.encode(out));
        let error = BlobIndex::decode(&embedded).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotSupported, "{error}");
    }

    #[test]
    fn a_header_with_any_bit_flipped_is_refused_or_names_another_family_or_codec() {
        let header = BlobHeader {
            family_id: 7,
            codec: Codec::Zstd,
        };
        let bytes = bytes_of(|out| header.encode(out));
        assert_eq!(bytes.len(), BLOB_HEADER_BYTES);
        assert_eq!(BlobHeader::decode(&bytes).unwrap(), header);
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            if let Ok(found) = BlobHeader::decode(&flipped) {
                assert_ne!(found, header, "bit {bit}");
                assert!((8..12).contains(&(bit / 8)) || bit / 8 == 13, "bit {bit}");
            }
        }
    }

    #[test]
    fn a_footer_or_record_header_with_any_bit_flipped_is_refused() {
        let footer = BlobFooter { blob_count: 12 };
        let bytes = bytes_of(|out| footer.encode(out));
        assert_eq!(bytes.len(), BLOB_FOOTER_BYTES);
        assert_eq!(BlobFooter::decode(&bytes).unwrap(), footer);
        let record = BlobRecordHeader::of(b"key", b"value");
        let record_bytes = bytes_of(|out| record.encode(out));
        assert_eq!(record_bytes.len(), BLOB_RECORD_HEADER_BYTES);
        assert_eq!(BlobRecordHeader::decode(&record_bytes).unwrap(), record);
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(BlobFooter::decode(&flipped).is_err(), "bit {bit}");
            let mut flipped = record_bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            let checked = BlobRecordHeader::decode(&flipped);
            let checked = checked.and_then(|header| header.check(b"key", b"value"));
            assert!(checked.is_err(), "bit {bit}");
        }
        for cut in 0..bytes.len() {
            assert!(BlobFooter::decode(&bytes[..cut]).is_err());
            assert!(BlobRecordHeader::decode(&record_bytes[..cut]).is_err());
        }
    }

    #[test]
    fn lengths_past_every_limit_are_refused_even_with_a_sound_checksum() {
        let hostile = [
            (u64::MAX, 1),
            (KEY_BYTES_MAX as u64 + 1, 1),
            (1, u64::MAX),
            (1, STORED_BYTES_MAX + 1),
        ];
        for (key_bytes, value_bytes) in hostile {
            let header = BlobRecordHeader {
                key_bytes,
                value_bytes,
                checksum: 0,
            };
            let bytes = bytes_of(|out| header.encode(out));
            assert!(
                BlobRecordHeader::decode(&bytes)
                    .unwrap_err()
                    .is_corruption()
            );
        }
    }
}
