//! Writes one blob file.
//!
//! Every value is stored under the file's one codec, even where that makes it longer: readers take
//! the codec from the header and refuse a reference that says another. Nothing of the file counts
//! before [`BlobWriter::finish`] has returned; a file without its footer is refused by RocksDB and
//! by us, so a crash while writing leaves a file that nothing refers to.
//!
//! Thread safety: one owner. Memory: one value as it is stored.

use drumlin_base::{Error, Result};
use drumlin_fs::WritableFile;

use super::format::{BLOB_HEADER_BYTES, BlobFooter, BlobHeader, BlobIndex, BlobRecordHeader};
use crate::compress::{Codec, Compression, compress_always};

/// A finished file's facts, for the MANIFEST.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlobFileInfo {
    /// Number of the file.
    pub number: u64,
    /// Values inside.
    pub blob_count: u64,
    /// Bytes of all records: headers, keys and stored values. The MANIFEST accounts for these; the
    /// file is longer by its header and footer.
    pub blob_bytes: u64,
    /// Bytes of the whole file.
    pub file_bytes: u64,
}

/// Appends values to one new file.
///
/// After an error the file is useless: drop the writer and remove the file.
#[derive(Debug)]
pub struct BlobWriter {
    file: Box<dyn WritableFile>,
    number: u64,
    compression: Compression,
    /// The record's header and key, then the next one's. Kept for its memory.
    front: Vec<u8>,
    /// The value compressed. Kept for its memory.
    stored: Vec<u8>,
    blob_count: u64,
    blob_bytes: u64,
}

impl BlobWriter {
    /// A writer of the values of family `family_id` to `file`, whose name has `number`. Writes the
    /// header. A dictionary is not used: values are compressed each by itself.
    ///
    /// # Errors
    /// `NoSpace`, `Io`.
    pub fn new(
        mut file: Box<dyn WritableFile>,
        number: u64,
        family_id: u32,
        compression: Compression,
    ) -> Result<Self> {
        let mut front = Vec::new();
        let header = BlobHeader {
            family_id,
            codec: compression.codec,
        };
        header.encode(&mut front);
        file.append(&front)?;
        Ok(Self {
            file,
            number,
            compression,
            front,
            stored: Vec::new(),
            blob_count: 0,
            blob_bytes: 0,
        })
    }

    /// Appends `value` of `user_key`; the reference to put into the table.
    ///
    /// # Errors
    /// `NoSpace`, `Io`; `TooLarge` for a value no codec takes.
    pub fn add(&mut self, user_key: &[u8], value: &[u8]) -> Result<BlobIndex> {
        if self.compression.codec == Codec::None {
            return self.add_stored(user_key, value);
        }
        let mut stored = std::mem::take(&mut self.stored);
        stored.clear();
        let Compression { codec, level, .. } = self.compression;
        let added = compress_always(codec, level, value, &mut stored)
            .and_then(|()| self.add_stored(user_key, &stored));
        self.stored = stored;
        added
    }

    /// Appends a value that is compressed by this file's codec already, such as one from another
    /// blob file with [`super::BlobReader::stored`].
    ///
    /// # Errors
    /// `NoSpace`, `Io`.
    pub fn add_stored(&mut self, user_key: &[u8], stored: &[u8]) -> Result<BlobIndex> {
        let header = BlobRecordHeader::of(user_key, stored);
        self.front.clear();
        header.encode(&mut self.front);
        self.front.extend_from_slice(user_key);
        self.file.append(&self.front)?;
        let offset = self.file.len();
        assert_eq!(
            offset,
            BLOB_HEADER_BYTES as u64 + self.blob_bytes + self.front.len() as u64,
            "records follow each other"
        );
        self.file.append(stored)?;
        self.blob_count += 1;
        self.blob_bytes += (self.front.len() + stored.len()) as u64;
        Ok(BlobIndex {
            file: self.number,
            offset,
            size: stored.len() as u64,
            codec: self.compression.codec,
        })
    }

    /// Number of the file.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// How its values are compressed.
    pub fn codec(&self) -> Codec {
        self.compression.codec
    }

    /// Bytes written so far, the header included.
    pub fn len(&self) -> u64 {
        self.file.len()
    }

    /// Whether no value was added.
    pub fn is_empty(&self) -> bool {
        self.blob_count == 0
    }

    /// Values added so far.
    pub fn count(&self) -> u64 {
        self.blob_count
    }

    /// Writes the footer, syncs and closes. The file's name is the caller's to make durable.
    ///
    /// # Errors
    /// `NoSpace`, `Io`; `InvalidArgument` for a file without values.
    pub fn finish(mut self) -> Result<BlobFileInfo> {
        if self.is_empty() {
            return Err(Error::invalid_argument("a blob file without blobs"));
        }
        let footer = BlobFooter {
            blob_count: self.blob_count,
        };
        self.front.clear();
        footer.encode(&mut self.front);
        self.file.append(&self.front)?;
        self.file.sync()?;
        let file_bytes = self.file.len();
        self.file.close()?;
        Ok(BlobFileInfo {
            number: self.number,
            blob_count: self.blob_count,
            blob_bytes: self.blob_bytes,
            file_bytes,
        })
    }
}
