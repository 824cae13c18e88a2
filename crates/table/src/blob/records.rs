//! All records of a blob file in order, for tools that dump, check or salvage.
//!
//! Thread safety: one owner. Memory: one record, never more than the rest of the file.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use drumlin_base::{Error, Result};
use drumlin_fs::{FileSystem, RandomAccessFile, SequentialReader};

use super::format::{BLOB_HEADER_BYTES, BLOB_RECORD_HEADER_BYTES};
use super::format::{BlobHeader, BlobIndex, BlobRecordHeader};
use super::reader::{BlobReader, make_room, unpack};

/// Walks the records of a file.
///
/// [`BlobRecords::next`] moves to the next record; the other methods read the present one.
#[derive(Debug)]
pub struct BlobRecords {
    reader: SequentialReader,
    path: PathBuf,
    number: u64,
    header: BlobHeader,
    /// Where records end.
    end: u64,
    /// The number of records that the footer tells, if there is one.
    expected: Option<u64>,
    passed: u64,
    key: Vec<u8>,
    stored: Vec<u8>,
    /// Offset of the value the walk stands on.
    offset: u64,
}

impl BlobReader {
    /// All records, front to back.
    pub fn records(&self) -> BlobRecords {
        BlobRecords::new(Arc::clone(&self.file), &self.path, self.number, self.header)
            .ending_at(self.data_end(), self.footer.blob_count)
    }
}

impl BlobRecords {
    /// The records of a file that may lack its footer: a file being salvaged. The walk ends with an
    /// error where the records do.
    ///
    /// # Errors
    /// `NotFound`, `Io`; `Corruption` and `NotSupported` for a file without a header of ours.
    pub fn open_unfinished(files: &dyn FileSystem, path: &Path, number: u64) -> Result<Self> {
        let file = files.open(path)?;
        let mut bytes = [0; BLOB_HEADER_BYTES];
        let read = file.read_at(0, &mut bytes)?;
        let header = BlobHeader::decode(bytes.get(..read).expect("no more is read than asked for"));
        let header = header.map_err(|error| error.with_file(path))?;
        Ok(Self::new(file, path, number, header))
    }

    pub(super) fn new(
        file: Arc<dyn RandomAccessFile>,
        path: &Path,
        number: u64,
        header: BlobHeader,
    ) -> Self {
        let end = file.size();
        Self {
            reader: SequentialReader::new(file, BLOB_HEADER_BYTES as u64),
            path: path.to_path_buf(),
            number,
            header,
            end,
            expected: None,
            passed: 0,
            key: Vec::new(),
            stored: Vec::new(),
            offset: 0,
        }
    }

    pub(super) fn ending_at(mut self, end: u64, blob_count: u64) -> Self {
        self.end = end;
        self.expected = Some(blob_count);
        self
    }

    /// Moves to the next record and checks it; false at the end.
    ///
    /// # Errors
    /// `Io`; `Corruption` naming file and offset: a damaged record, or another count of records
    /// than the footer has. The walk cannot go on.
    #[expect(
        clippy::should_implement_trait,
        reason = "what it yields is borrowed from the walk"
    )]
    pub fn next(&mut self) -> Result<bool> {
        let at = self.reader.position();
        self.advance()
            .map_err(|error| error.with_file(&self.path).with_offset(at))
    }

    fn advance(&mut self) -> Result<bool> {
        let at = self.reader.position();
        if at >= self.end {
            return match self.expected {
                Some(expected) if expected != self.passed => Err(Error::corruption(format!(
                    "the file holds {} blobs, its footer says {expected}",
                    self.passed
                ))),
                _ => Ok(false),
            };
        }
        let mut bytes = [0; BLOB_RECORD_HEADER_BYTES];
        let left = (self.end - at).checked_sub(BLOB_RECORD_HEADER_BYTES as u64);
        let left = left.ok_or_else(|| Error::corruption("a blob's header is cut off"))?;
        self.read_into_header(&mut bytes)?;
        let header = BlobRecordHeader::decode(&bytes)?;
        // Both are below 5 GiB, so the sum is sound.
        if header.key_bytes + header.value_bytes > left {
            return Err(Error::corruption("a blob is longer than its file"));
        }
        fill(&mut self.reader, &mut self.key, header.key_bytes)?;
        self.offset = self.reader.position();
        fill(&mut self.reader, &mut self.stored, header.value_bytes)?;
        header.check(&self.key, &self.stored)?;
        self.passed += 1;
        Ok(true)
    }

    fn read_into_header(&mut self, bytes: &mut [u8]) -> Result<()> {
        let read = self.reader.read(bytes)?;
        if read < bytes.len() {
            return Err(Error::corruption("a blob's header is cut off"));
        }
        Ok(())
    }

    /// The file's header.
    pub fn header(&self) -> BlobHeader {
        self.header
    }

    /// The user key.
    pub fn key(&self) -> &[u8] {
        &self.key
    }

    /// The reference a table would have for this value.
    pub fn index(&self) -> BlobIndex {
        BlobIndex {
            file: self.number,
            offset: self.offset,
            size: self.stored.len() as u64,
            codec: self.header.codec,
        }
    }

    /// The value as it is stored.
    pub fn stored(&self) -> &[u8] {
        &self.stored
    }

    /// The value, unpacked.
    ///
    /// # Errors
    /// `Corruption`.
    pub fn value(&self) -> Result<Vec<u8>> {
        unpack(self.header.codec, &self.stored)
            .map_err(|error| error.with_file(&self.path).with_offset(self.offset))
    }
}

/// Reads the next `len` bytes, of which the caller knows that the file has them, into `out`.
fn fill(reader: &mut SequentialReader, out: &mut Vec<u8>, len: u64) -> Result<()> {
    let len = usize::try_from(len).map_err(|_| Error::corruption("a blob larger than memory"))?;
    make_room(out, len)?;
    let read = reader.read(out)?;
    if read < len {
        return Err(Error::corruption("a blob is cut off"));
    }
    Ok(())
}
