//! Appends records to a file.
//!
//! One owner appends; nothing is shared. A record is framed into one reused buffer and handed to
//! the file with one append, so that a record of 100 bytes costs one copy, one CRC and one call.
//! Records past [`APPEND_BYTES_MAX`] are handed over in pieces, to bound the buffer.

use std::sync::Arc;

use drumlin_base::Result;
use drumlin_base::checksum::{crc32c, mask};
use drumlin_fs::{FileSyncer, WritableFile};

use super::{BLOCK_BYTES, COVERED_FROM, HEADER_BYTES, RECYCLABLE_HEADER_BYTES, RECYCLABLE_OFFSET};

/// Most framed bytes gathered before they are handed to the file.
const APPEND_BYTES_MAX: usize = 1 << 20;

/// On disk: the bytes of a fragment's CRC, at its front.
const CRC_BYTES: usize = 4;
const FULL: u8 = 1;
const FIRST: u8 = 2;
const MIDDLE: u8 = 3;
const LAST: u8 = 4;

/// Writes records front to back.
///
/// After an error the file is broken, as [`WritableFile`] says: every later call fails.
#[derive(Debug)]
pub struct RecordWriter {
    file: Box<dyn WritableFile>,
    /// The low 32 bits of the log's number when every fragment carries it.
    recyclable: Option<u32>,
    block_offset: usize,
    buffer: Vec<u8>,
}

impl RecordWriter {
    /// Writes to `file`, which is empty.
    pub fn new(file: Box<dyn WritableFile>) -> Self {
        Self::with(file, None)
    }

    /// Writes to `file`, which may hold an earlier log's records past what will be written: every
    /// fragment carries `log_number`, so that readers stop where this log stops.
    pub fn recyclable(file: Box<dyn WritableFile>, log_number: u64) -> Self {
        Self::with(file, Some(log_number as u32))
    }

    fn with(file: Box<dyn WritableFile>, recyclable: Option<u32>) -> Self {
        debug_assert!(file.is_empty(), "records begin at the front of a file");
        Self {
            file,
            recyclable,
            block_offset: 0,
            buffer: Vec::new(),
        }
    }

    /// Appends one record of `payload`.
    ///
    /// # Errors
    /// `NoSpace`, `Io`; the file is then broken.
    #[inline]
    pub fn append(&mut self, payload: &[u8]) -> Result<()> {
        self.append_parts(&[payload])
    }

    /// Appends one record whose payload is `parts`, one after the other.
    ///
    /// # Errors
    /// As [`RecordWriter::append`].
    #[inline]
    pub fn append_parts(&mut self, parts: &[&[u8]]) -> Result<()> {
        self.frame(parts)?;
        self.hand_over()
    }

    /// Frames one record of `payload` without handing it to the file, so that several records go
    /// with one append. [`RecordWriter::hand_over`] follows.
    ///
    /// # Errors
    /// As [`RecordWriter::append`].
    pub fn gather(&mut self, payload: &[u8]) -> Result<()> {
        self.frame(&[payload])
    }

    /// Hands the gathered bytes to the file.
    ///
    /// # Errors
    /// As [`RecordWriter::append`].
    #[inline]
    pub fn hand_over(&mut self) -> Result<()> {
        let result = self.file.append(&self.buffer);
        self.buffer.clear();
        result
    }

    /// Makes everything handed over outlive a power cut.
    ///
    /// # Errors
    /// `Io`; the file is then broken.
    pub fn sync(&mut self) -> Result<()> {
        self.file.sync()
    }

    /// A handle to sync with while this writer goes on.
    pub fn syncer(&self) -> Arc<dyn FileSyncer> {
        self.file.syncer()
    }

    /// Closes the file without a sync.
    ///
    /// # Errors
    /// `Io`.
    pub fn close(self) -> Result<()> {
        debug_assert!(self.buffer.is_empty(), "gathered records were handed over");
        self.file.close()
    }

    /// Bytes handed to the file.
    #[inline]
    pub fn len(&self) -> u64 {
        self.file.len()
    }

    /// Whether nothing was handed to the file.
    pub fn is_empty(&self) -> bool {
        self.file.is_empty()
    }

    fn header_bytes(&self) -> usize {
        match self.recyclable {
            None => HEADER_BYTES,
            Some(_) => RECYCLABLE_HEADER_BYTES,
        }
    }

    /// Cuts the payload into fragments, at least one, and puts them in the buffer.
    fn frame(&mut self, parts: &[&[u8]]) -> Result<()> {
        let header_bytes = self.header_bytes();
        let mut left: usize = parts.iter().map(|part| part.len()).sum();
        let fragments = 2 + left / (BLOCK_BYTES - RECYCLABLE_HEADER_BYTES);
        let framed = left + fragments * 2 * RECYCLABLE_HEADER_BYTES;
        self.buffer
            .reserve(framed.min(APPEND_BYTES_MAX + BLOCK_BYTES));

        let mut rest = Parts { parts, head: &[] };
        let mut first = true;
        loop {
            let room = BLOCK_BYTES - self.block_offset;
            if room < header_bytes + usize::from(drumlin_base::bug!("no-header-at-block-ends")) {
                self.buffer.resize(self.buffer.len() + room, 0);
                self.block_offset = 0;
            }
            let len = left.min(BLOCK_BYTES - self.block_offset - header_bytes);
            left -= len;
            let kind = match (first, left == 0) {
                (true, true) => FULL,
                (true, false) => FIRST,
                (false, false) => MIDDLE,
                (false, true) => LAST,
            };
            self.put_fragment(kind, len, &mut rest);
            self.block_offset += header_bytes + len;
            if left == 0 {
                return Ok(());
            }
            first = false;
            if self.buffer.len() >= APPEND_BYTES_MAX {
                self.hand_over()?;
            }
        }
    }

    /// Puts one fragment of `len` payload bytes in the buffer.
    fn put_fragment(&mut self, kind: u8, len: usize, rest: &mut Parts<'_>) {
        let start = self.buffer.len();
        let length = (len as u16).to_le_bytes(); // Below a block's length.
        self.buffer.extend_from_slice(&[0; CRC_BYTES]);
        self.buffer.extend_from_slice(&length);
        match self.recyclable {
            None => self.buffer.push(kind),
            Some(log_number) => {
                self.buffer.push(kind + RECYCLABLE_OFFSET);
                self.buffer.extend_from_slice(&log_number.to_le_bytes());
            }
        }
        rest.take(len, &mut self.buffer);
        let (before, covered) = self.buffer[start..].split_at_mut(COVERED_FROM);
        before[..CRC_BYTES].copy_from_slice(&mask(crc32c(covered)).to_le_bytes());
    }
}

/// The rest of a payload in parts.
struct Parts<'a> {
    parts: &'a [&'a [u8]],
    head: &'a [u8],
}

impl Parts<'_> {
    /// Moves the next `len` bytes to `out`.
    #[inline]
    fn take(&mut self, mut len: usize, out: &mut Vec<u8>) {
        loop {
            let (taken, rest) = self.head.split_at(len.min(self.head.len()));
            out.extend_from_slice(taken);
            self.head = rest;
            len -= taken.len();
            if len == 0 {
                return;
            }
            let next = self.parts.split_first();
            let (next, others) = next.expect("fragments add up to the payload");
            self.head = next;
            self.parts = others;
        }
    }
}
