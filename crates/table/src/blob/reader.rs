//! A value of a blob file by its reference.
//!
//! A checked read reads the whole record (header, key and value) into the buffer that is handed out, with
//! one call; the caller sees the value alone. An unchecked read reads only the value. A
//! record whose checksum does not match is read once more before it is called corrupt, as blocks
//! of tables are.
//!
//! Thread safety: shared freely.

use std::cell::RefCell;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use drumlin_base::limits::VALUE_BYTES_MAX;
use drumlin_base::perf::{Measure, count, timed};
use drumlin_base::{Error, PinnedSlice, Result};
use drumlin_fs::{FileSystem, RandomAccessFile};

use super::format::{
    BLOB_FOOTER_BYTES, BLOB_HEADER_BYTES, BLOB_RECORD_HEADER_BYTES, BlobFooter, BlobHeader,
    BlobIndex, BlobRecordHeader,
};
use crate::compress::{Codec, Framing, decompress, zeros};
use crate::format::TableStyle;

/// Largest buffer for compressed values that a thread keeps.
const SCRATCH_BYTES_MAX: usize = 1 << 20;
/// Most bytes of a key and a value, with the bytes that a codec adds.
const RECORD_BYTES_MAX: usize = VALUE_BYTES_MAX.saturating_add(1 << 30);
/// Memory for larger records is asked for fallibly.
const USUAL_BYTES_MAX: usize = 64 << 20;

thread_local! {
    /// Where a thread reads compressed values before it unpacks them.
    static SCRATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// An open blob file.
#[derive(Debug)]
pub struct BlobReader {
    pub(super) file: Arc<dyn RandomAccessFile>,
    pub(super) path: PathBuf,
    pub(super) number: u64,
    pub(super) header: BlobHeader,
    pub(super) footer: BlobFooter,
}

impl BlobReader {
    /// Opens blob file `number` at `path`, checking its header and footer.
    ///
    /// # Errors
    /// `NotFound`, `Io`; `Corruption`, also for a file that was never finished; `NotSupported` for
    /// records that only stacked BlobDB writes.
    pub fn open(files: &dyn FileSystem, path: &Path, number: u64) -> Result<Self> {
        Self::over(files.open(path)?, path, number)
    }

    /// As [`BlobReader::open`], over a file that is open already.
    ///
    /// # Errors
    /// As there.
    pub fn over(file: Arc<dyn RandomAccessFile>, path: &Path, number: u64) -> Result<Self> {
        Self::checked(file, path, number).map_err(|error| error.with_file(path))
    }

    fn checked(file: Arc<dyn RandomAccessFile>, path: &Path, number: u64) -> Result<Self> {
        let size = file.size();
        if size < (BLOB_HEADER_BYTES + BLOB_FOOTER_BYTES) as u64 {
            return Err(Error::corruption(format!(
                "a blob file of {size} bytes has no room for header and footer"
            )));
        }
        let mut bytes = [0; BLOB_HEADER_BYTES];
        read_exactly(&*file, 0, &mut bytes)?;
        let header = BlobHeader::decode(&bytes)?;
        let mut bytes = [0; BLOB_FOOTER_BYTES];
        let footer_at = size - BLOB_FOOTER_BYTES as u64;
        read_exactly(&*file, footer_at, &mut bytes)?;
        let footer = BlobFooter::decode(&bytes).map_err(|error| error.with_offset(footer_at))?;
        Ok(Self {
            file,
            path: path.to_path_buf(),
            number,
            header,
            footer,
        })
    }

    /// Number of the file.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The file's header. It has no checksum: compare the family with the one whose
    /// tables refer to this file.
    pub fn header(&self) -> BlobHeader {
        self.header
    }

    /// Values in the file, as its footer says.
    pub fn blob_count(&self) -> u64 {
        self.footer.blob_count
    }

    /// Bytes of all records, as the MANIFEST counts them.
    pub fn blob_bytes(&self) -> u64 {
        self.data_end() - BLOB_HEADER_BYTES as u64
    }

    /// Bytes of the whole file.
    pub fn file_bytes(&self) -> u64 {
        self.file.size()
    }

    /// The value of `user_key` that `index` refers to, unpacked. `verify` checks the record's
    /// checksums and that it belongs to `user_key`.
    ///
    /// Costs one read; one allocation, the value's.
    ///
    /// # Errors
    /// `Io`; `Corruption` naming file and offset.
    pub fn get(&self, user_key: &[u8], index: &BlobIndex, verify: bool) -> Result<PinnedSlice> {
        self.located(index, || {
            if self.header.codec == Codec::None {
                return self.read(user_key, index, verify);
            }
            SCRATCH.with_borrow_mut(|scratch| {
                let skipped = self.fill(user_key, index, verify, scratch)?;
                let stored = scratch.get(skipped..).expect("what is skipped was read");
                let value = unpack(index.codec, stored);
                if scratch.capacity() > SCRATCH_BYTES_MAX {
                    *scratch = Vec::new();
                }
                Ok(value?.into())
            })
        })
    }

    /// The value as it is stored, compressed by the file's codec; for moving it to another file.
    ///
    /// # Errors
    /// As [`BlobReader::get`].
    pub fn stored(&self, user_key: &[u8], index: &BlobIndex, verify: bool) -> Result<PinnedSlice> {
        self.located(index, || self.read(user_key, index, verify))
    }

    /// Where the record that `index` refers to is.
    pub(super) fn record_place(&self, user_key: &[u8], index: &BlobIndex) -> Result<Range<u64>> {
        self.located(index, || self.check_place(user_key, index))?;
        let front = (BLOB_RECORD_HEADER_BYTES + user_key.len()) as u64;
        Ok(index.offset - front..index.offset + index.size)
    }

    /// Tells the system that `place` will be read soon.
    pub(super) fn will_need(&self, place: &Range<u64>) {
        self.file.will_need(place.start, place.end - place.start);
    }

    /// Reads `place`, which is within the file, into `bytes`.
    pub(super) fn read_place(&self, place: &Range<u64>, bytes: &mut Vec<u8>) -> Result<()> {
        let len = usize::try_from(place.end - place.start)
            .map_err(|_| Error::corruption("a blob larger than memory"))?;
        make_room(bytes, len).map_err(|error| error.with_file(&self.path))?;
        let read = read_exactly(&*self.file, place.start, bytes);
        read.map_err(|error| error.with_file(&self.path))
    }

    /// Where the footer begins.
    pub(super) fn data_end(&self) -> u64 {
        self.file.size() - BLOB_FOOTER_BYTES as u64
    }

    fn located<T>(&self, index: &BlobIndex, run: impl FnOnce() -> Result<T>) -> Result<T> {
        run().map_err(|error| error.with_file(&self.path).with_offset(index.offset))
    }

    fn read(&self, user_key: &[u8], index: &BlobIndex, verify: bool) -> Result<PinnedSlice> {
        let mut bytes = Vec::new();
        let skipped = self.fill(user_key, index, verify, &mut bytes)?;
        PinnedSlice::tail(bytes, skipped).ok_or_else(|| Error::corruption("a blob read short"))
    }

    /// Reads into `bytes`: the record if it is to be checked, else the value. Gives the number of bytes before
    /// the value.
    fn fill(
        &self,
        user_key: &[u8],
        index: &BlobIndex,
        verify: bool,
        bytes: &mut Vec<u8>,
    ) -> Result<usize> {
        self.check_place(user_key, index)?;
        let skipped = if verify {
            BLOB_RECORD_HEADER_BYTES + user_key.len()
        } else {
            0
        };
        let size = usize::try_from(index.size)
            .map_err(|_| Error::corruption("a blob larger than memory"))?;
        make_room(bytes, skipped.saturating_add(size))?;
        let at = index.offset - skipped as u64;
        read_exactly(&*self.file, at, bytes)?;
        if verify && check_record(user_key, index, bytes).is_err() {
            if !drumlin_base::bug!("damaged-blob-not-read-again") {
                read_exactly(&*self.file, at, bytes)?;
            }
            check_record(user_key, index, bytes)?;
        }
        Ok(skipped)
    }

    /// Whether `index` names this file and a place between its header and footer.
    fn check_place(&self, user_key: &[u8], index: &BlobIndex) -> Result<()> {
        if index.file != self.number || index.codec != self.header.codec {
            return Err(Error::corruption(format!(
                "a reference to a {} blob in file {} reached the {} file {}",
                index.codec, index.file, self.header.codec, self.number
            )));
        }
        let before = (BLOB_HEADER_BYTES + BLOB_RECORD_HEADER_BYTES + user_key.len()) as u64;
        let end = index.offset.checked_add(index.size);
        if index.offset < before || end.is_none_or(|end| end > self.data_end()) {
            return Err(Error::corruption(format!(
                "a reference to {} bytes outside the blobs of a file of {} bytes",
                index.size,
                self.file.size()
            )));
        }
        Ok(())
    }
}

/// Makes `bytes` `len` long, with any contents.
///
/// # Errors
/// `Corruption` for more bytes than a blob can have (only a file with a hole has room for them); `Io` when the
/// system gives no memory.
pub(super) fn make_room(bytes: &mut Vec<u8>, len: usize) -> Result<()> {
    if len > RECORD_BYTES_MAX {
        return Err(Error::corruption(format!(
            "a blob of {len} bytes, more than any has"
        )));
    }
    if bytes.capacity() >= len {
        bytes.resize(len, 0);
    } else if len <= USUAL_BYTES_MAX {
        *bytes = vec![0; len]; // the system zeroes large buffers, and no byte is moved
    } else {
        *bytes = zeros(len)?;
    }
    Ok(())
}

/// Checks that `record` is sound, belongs to `user_key` and agrees with `index`.
pub(super) fn check_record(user_key: &[u8], index: &BlobIndex, record: &[u8]) -> Result<()> {
    let header = BlobRecordHeader::decode(record)?;
    let body = record.get(BLOB_RECORD_HEADER_BYTES..);
    let body = body.expect("a header was decoded from it");
    let lengths = (header.key_bytes, header.value_bytes);
    let split = body.split_at_checked(user_key.len());
    let Some((key, stored)) = split.filter(|_| lengths == (user_key.len() as u64, index.size))
    else {
        return Err(Error::corruption("a reference to a blob of another length"));
    };
    if key != user_key && !drumlin_base::bug!("blob-of-another-key") {
        return Err(Error::corruption("a reference to the blob of another key"));
    }
    header.check(key, stored)
}

/// The value stored as `stored` under `codec`.
pub(super) fn unpack(codec: Codec, stored: &[u8]) -> Result<Vec<u8>> {
    let id = codec
        .id(TableStyle::RocksDb)
        .expect("RocksDB has a number for each codec");
    decompress(id, stored, None, Framing::SizePrefix, VALUE_BYTES_MAX)
}

fn read_exactly(file: &dyn RandomAccessFile, offset: u64, buffer: &mut [u8]) -> Result<()> {
    let read = timed(Measure::BlobReadNanos, || file.read_at(offset, buffer))?;
    count(Measure::BlobReads, 1);
    count(Measure::BlobReadBytes, buffer.len() as u64);
    if read < buffer.len() {
        return Err(Error::corruption(format!(
            "the file ends {} bytes inside a blob",
            buffer.len() - read
        ))
        .with_offset(offset));
    }
    Ok(())
}
