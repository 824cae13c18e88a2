//! Files of the operating system: random reads, alone or in batches, and buffered appends.

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use drumlin_base::bytes::ResidentBytes;
use drumlin_base::{Error, Result};

use crate::file_system::{FileKind, FileSyncer, RandomAccessFile, WritableFile, copy_to_memory};
use crate::mapping::Mapping;
use crate::read_queue::{BatchRead, PendingRead, ReadQueue};
use crate::ring;
use crate::shared_file::SharedFile;
use crate::syscalls;
use crate::writeback::Writeback;

/// Tables and blobs gather this much before a write call. A multiple of every page size, and writes
/// begin and end at multiples of it, so that no page of a reused file has to be read to be filled.
const BUFFER_BYTES: usize = 256 << 10;

/// A file being written by write calls: tables and blobs through a buffer, others at once.
#[derive(Debug)]
pub(crate) struct PosixWriter {
    shared: Arc<SharedFile>,
    buffer: Vec<u8>,
    buffer_bytes_max: usize,
    /// Bytes handed to the kernel; the buffer's come after them.
    written: u64,
    /// The progress of writeback, for tables and blob files.
    writeback: Option<Writeback>,
    cuts_at_close: bool,
}

impl PosixWriter {
    /// A writer from the front of `shared`. `cuts_at_close`: there may be bytes or blocks past the
    /// end that will be written.
    pub(crate) fn new(shared: Arc<SharedFile>, kind: FileKind, cuts_at_close: bool) -> Self {
        let bulk = matches!(kind, FileKind::Table | FileKind::Blob);
        Self {
            shared,
            buffer: Vec::new(),
            buffer_bytes_max: if bulk { BUFFER_BYTES } else { 0 },
            written: 0,
            writeback: bulk.then(Writeback::new),
            cuts_at_close,
        }
    }

    fn flush(&mut self) -> Result<()> {
        if !self.buffer.is_empty() {
            self.shared.write_at(&self.buffer, self.written)?;
            self.written += self.buffer.len() as u64;
            self.buffer.clear();
        }
        Ok(())
    }

    /// Fills the buffer, writes it whenever it is full, and leaves the rest in it.
    fn gather(&mut self, mut bytes: &[u8]) -> Result<()> {
        if self.buffer.capacity() == 0 {
            self.buffer.reserve_exact(self.buffer_bytes_max);
        }
        while self.buffer.len() + bytes.len() >= self.buffer_bytes_max {
            debug_assert!(
                self.buffer.len() < self.buffer_bytes_max,
                "a full buffer is written at once"
            );
            let room = self.buffer_bytes_max - self.buffer.len();
            let (now, later) = bytes.split_at(room);
            self.buffer.extend_from_slice(now);
            self.flush()?;
            bytes = later;
        }
        self.buffer.extend_from_slice(bytes);
        Ok(())
    }
}

impl WritableFile for PosixWriter {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.shared.check()?;
        if self.buffer_bytes_max == 0 {
            self.shared.write_at(bytes, self.written)?;
            self.written += bytes.len() as u64;
        } else {
            self.gather(bytes)?;
        }
        match &mut self.writeback {
            Some(writeback) => writeback.advance(&self.shared, self.written),
            None => Ok(()),
        }
    }

    fn sync(&mut self) -> Result<()> {
        self.shared.check()?;
        self.flush()?;
        self.shared.sync()
    }

    fn close(mut self: Box<Self>) -> Result<()> {
        self.flush()?;
        assert!(self.len() == self.written, "everything is with the kernel");
        if self.cuts_at_close {
            self.shared.cut(self.written)?;
        }
        self.shared.close()
    }

    fn len(&self) -> u64 {
        self.written + self.buffer.len() as u64
    }

    fn syncer(&self) -> Arc<dyn FileSyncer> {
        Arc::clone(&self.shared) as Arc<dyn FileSyncer>
    }
}

/// A file read at any offset.
#[derive(Debug)]
pub(crate) struct PosixReader {
    file: File,
    path: PathBuf,
    size: u64,
}

impl PosixReader {
    pub(crate) fn new(file: File, path: &Path, size: u64) -> Self {
        Self {
            file,
            path: path.to_path_buf(),
            size,
        }
    }

    /// As [`RandomAccessFile::read_at`], with the first `read` bytes read already.
    fn read_rest(&self, offset: u64, buffer: &mut [u8], mut read: usize) -> Result<usize> {
        while let Some(rest) = buffer.get_mut(read..).filter(|rest| !rest.is_empty()) {
            let at = offset.saturating_add(read as u64);
            let n = syscalls::retry(|| self.file.read_at(rest, at))
                .map_err(|source| Error::io("read", &self.path, source).with_offset(at))?;
            if n == 0 {
                break;
            }
            debug_assert!(n <= rest.len(), "the kernel fills no more than the buffer");
            read += n;
        }
        Ok(read)
    }
}

impl RandomAccessFile for PosixReader {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        self.read_rest(offset, buffer, 0)
    }

    fn queue_read<'a>(&'a self, offset: u64, buffer: &'a mut [u8], queue: &mut ReadQueue<'a>) {
        queue.push(self, offset, buffer);
    }

    fn size(&self) -> u64 {
        self.size
    }

    fn is_in_page_cache(&self, offset: u64, len: u64) -> bool {
        syscalls::is_in_page_cache(&self.file, offset, len)
    }

    fn will_need(&self, offset: u64, len: u64) {
        if len > 0 {
            syscalls::will_need(&self.file, offset, len);
        }
    }

    /// A file of a disk is copied: a mapping would turn an error of the disk into a signal.
    fn resident(&self) -> Result<ResidentBytes> {
        if self.size > 0 && syscalls::lies_in_memory(&self.file) {
            let mapping = Mapping::of(&self.file, self.size)
                .map_err(|source| Error::io("map", &self.path, source))?;
            return Ok(ResidentBytes::new(mapping));
        }
        copy_to_memory(self.size, |bytes| self.read_at(0, bytes))
    }
}

/// Through an io_uring if the kernel has one; else it is advised of all reads before the first one waits
/// for the disk.
impl BatchRead for PosixReader {
    fn descriptor(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    fn read_together(&self, reads: &mut [&mut PendingRead<'_>]) {
        if !ring::read_all(reads) {
            for read in reads {
                syscalls::will_need(
                    read.file.descriptor(),
                    read.offset,
                    read.buffer.len() as u64,
                );
            }
        }
    }

    fn finish(&self, offset: u64, buffer: &mut [u8], answer: Option<i32>) -> Result<usize> {
        let read = match answer {
            Some(0) => return Ok(0),
            Some(answer) if answer > 0 => {
                let read = answer as usize;
                assert!(
                    read <= buffer.len(),
                    "the kernel fills no more than the buffer"
                );
                read
            }
            Some(answer) if !is_passing(-answer) => {
                let source = std::io::Error::from_raw_os_error(-answer);
                return Err(Error::io("read", &self.path, source).with_offset(offset));
            }
            _ => 0,
        };
        self.read_rest(offset, buffer, read)
    }
}

/// Whether a read that ended with this error is to be repeated, outside the batch.
fn is_passing(errno: i32) -> bool {
    matches!(
        errno,
        libc::EINTR | libc::EAGAIN | libc::ECANCELED | libc::EOPNOTSUPP | libc::EINVAL
    )
}
