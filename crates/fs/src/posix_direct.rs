//! Files that are read and written under O_DIRECT, so that the page cache is left to other readers.
//!
//! A file system takes such calls only for whole blocks at block boundaries, in memory as in the file. So
//! bytes pass through an aligned buffer. The tail of a file that does not fill a block is written through the
//! page cache, for which the file is switched back: then the size is right at once, and the tail of a table is
//! its footer, which its first reader wants anyway.

use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;

use drumlin_base::{Error, Result};
use parking_lot::Mutex;

use crate::file_system::{FileSyncer, RandomAccessFile, WritableFile};
use crate::shared_file::SharedFile;
use crate::syscalls;

/// A multiple of the blocks of every disk that is sold, and the size of a page.
pub(crate) const BLOCK_BYTES: usize = 4096;
/// Bytes of one write: nothing below gathers small writes, and the writer waits for each.
const WRITE_BYTES: usize = 1 << 20;
/// Most bytes of one read.
const READ_BYTES_MAX: usize = 1 << 20;

/// Memory that begins at a multiple of [`BLOCK_BYTES`].
#[derive(Debug, Default)]
struct AlignedBuffer {
    memory: Vec<u8>,
    start: usize,
}

impl AlignedBuffer {
    /// At least `len` bytes, with the content of earlier uses.
    fn bytes(&mut self, len: usize) -> &mut [u8] {
        if self.memory.len() < self.start + len {
            // Not grown in place: growing may move it and lose its alignment.
            self.memory = vec![0; len + BLOCK_BYTES];
            self.start = self.memory.as_ptr().align_offset(BLOCK_BYTES);
        }
        let all = self.memory.get_mut(self.start..self.start + len);
        let bytes = all.expect("the memory was made for as much, and an aligned start");
        assert!(
            bytes.as_ptr().addr().is_multiple_of(BLOCK_BYTES),
            "begins at a block"
        );
        bytes
    }
}

/// A file being written past the page cache.
#[derive(Debug)]
pub(crate) struct DirectWriter {
    shared: Arc<SharedFile>,
    buffer: AlignedBuffer,
    /// Bytes in the buffer; fewer than [`WRITE_BYTES`].
    filled: usize,
    /// Bytes handed to the kernel; the buffer's come after them. A multiple of [`BLOCK_BYTES`] while
    /// `direct`.
    written: u64,
    /// Whether the descriptor is still switched to direct writes.
    direct: bool,
    cuts_at_close: bool,
}

impl DirectWriter {
    /// A writer from the front of `shared`, which is switched to direct writes. `cuts_at_close`: there
    /// may be bytes or blocks past the end that will be written.
    pub(crate) fn new(shared: Arc<SharedFile>, cuts_at_close: bool) -> Self {
        Self {
            shared,
            buffer: AlignedBuffer::default(),
            filled: 0,
            written: 0,
            direct: true,
            cuts_at_close,
        }
    }

    /// Writes the first `len` bytes of the buffer and keeps the rest.
    fn write(&mut self, len: usize) -> Result<()> {
        let filled = self.filled;
        assert!(len <= filled, "no more is written than was appended");
        assert!(
            !self.direct
                || (len.is_multiple_of(BLOCK_BYTES)
                    && self.written.is_multiple_of(BLOCK_BYTES as u64)),
            "what goes past the page cache is whole blocks at a block's boundary"
        );
        let bytes = self.buffer.bytes(WRITE_BYTES);
        let (front, rest) = bytes.split_at_mut(len);
        self.shared.check()?;
        let written = self.shared.file().write_all_at(front, self.written);
        match written {
            // A file system that takes the switch and refuses the write.
            Err(error) if self.direct && error.raw_os_error() == Some(libc::EINVAL) => {
                leave_direct(&self.shared)?;
                self.direct = false;
                self.shared.write_at(front, self.written)?;
            }
            written => written.map_err(|source| self.shared.fail("write", source))?,
        }
        self.written += front.len() as u64;
        self.filled = filled - front.len();
        debug_assert!(self.filled <= rest.len(), "the rest is in the buffer");
        self.buffer.bytes(WRITE_BYTES).copy_within(len..filled, 0);
        Ok(())
    }

    /// Hands everything to the kernel.
    fn flush(&mut self) -> Result<()> {
        if self.direct {
            let whole = self.filled / BLOCK_BYTES * BLOCK_BYTES;
            if whole > 0 {
                self.write(whole)?;
            }
            if self.filled > 0 {
                leave_direct(&self.shared)?;
                self.direct = false;
            }
        }
        match self.filled {
            0 => Ok(()),
            filled => self.write(filled),
        }
    }
}

/// Switches a file back to the page cache.
fn leave_direct(shared: &SharedFile) -> Result<()> {
    syscalls::set_direct(shared.file(), false)
        .map_err(|source| shared.fail("leave direct writes of", source))
}

impl WritableFile for DirectWriter {
    fn append(&mut self, mut bytes: &[u8]) -> Result<()> {
        self.shared.check()?;
        while !bytes.is_empty() {
            assert!(
                self.filled < WRITE_BYTES,
                "a full buffer is written at once"
            );
            let (_, room) = self.buffer.bytes(WRITE_BYTES).split_at_mut(self.filled);
            let (now, later) = bytes.split_at(room.len().min(bytes.len()));
            let (to, _) = room.split_at_mut(now.len());
            to.copy_from_slice(now);
            self.filled += now.len();
            bytes = later;
            if self.filled == WRITE_BYTES {
                self.write(WRITE_BYTES)?;
            }
        }
        Ok(())
    }

    fn sync(&mut self) -> Result<()> {
        self.shared.check()?;
        self.flush()?;
        // Bytes written past the cache need it too, for the file's size, its blocks and the disk's
        // own cache.
        self.shared.sync()
    }

    fn close(mut self: Box<Self>) -> Result<()> {
        self.flush()?;
        if self.cuts_at_close {
            self.shared.cut(self.written)?;
        }
        self.shared.close()
    }

    fn len(&self) -> u64 {
        self.written + self.filled as u64
    }

    fn syncer(&self) -> Arc<dyn FileSyncer> {
        Arc::clone(&self.shared) as Arc<dyn FileSyncer>
    }
}

/// A file read past the page cache. Reads of several threads wait for each other.
#[derive(Debug)]
pub(crate) struct DirectReader {
    file: std::fs::File,
    path: PathBuf,
    size: u64,
    buffer: Mutex<AlignedBuffer>,
}

impl DirectReader {
    /// A reader of `file`, which is switched to direct reads.
    pub(crate) fn new(file: std::fs::File, path: PathBuf, size: u64) -> Self {
        Self {
            file,
            path,
            size,
            buffer: Mutex::default(),
        }
    }

    /// Reads once, at most [`READ_BYTES_MAX`]; 0 at the end of the file.
    fn read_once(&self, offset: u64, out: &mut [u8]) -> io::Result<usize> {
        let before = (offset % BLOCK_BYTES as u64) as usize;
        let wanted = (before + out.len()).min(READ_BYTES_MAX);
        let mut buffer = self.buffer.lock();
        let bytes = buffer.bytes(wanted.next_multiple_of(BLOCK_BYTES));
        let begin = offset - before as u64;
        assert!(
            begin.is_multiple_of(BLOCK_BYTES as u64),
            "reads begin at a block"
        );
        let read = syscalls::retry(|| self.file.read_at(bytes, begin))?;
        assert!(
            read <= bytes.len(),
            "the kernel fills no more than the buffer"
        );
        // A file that ends in the block before `offset` has nothing there.
        let found = bytes.get(before..read.min(wanted)).unwrap_or_default();
        let (to, _) = out.split_at_mut(found.len());
        to.copy_from_slice(found);
        Ok(found.len())
    }
}

impl RandomAccessFile for DirectReader {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        let mut read = 0;
        while let Some(rest) = buffer.get_mut(read..).filter(|rest| !rest.is_empty()) {
            let at = offset.saturating_add(read as u64);
            let n = self
                .read_once(at, rest)
                .map_err(|source| Error::io("read", &self.path, source).with_offset(at))?;
            if n == 0 {
                break;
            }
            read += n;
        }
        Ok(read)
    }

    fn size(&self) -> u64 {
        self.size
    }
}
