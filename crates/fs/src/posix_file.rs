//! Open files of the operating system: the shared descriptor, random reads, buffered appends.
//!
//! Invariant: once a call on a [`SharedFile`] has failed, every later one fails with the same
//! error; a sync of what was written before a failed write does not. Syncs of one file run one after the other, see [`SharedFile::sync`].

use std::fmt;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use drumlin_base::bytes::ResidentBytes;
use drumlin_base::{Error, Result};
use parking_lot::Mutex;

use crate::file_system::{FileKind, FileSyncer, RandomAccessFile, WritableFile, copy_to_memory};
use crate::mapping::Mapping;
use crate::process::Process;
use crate::read_queue::ReadQueue;
use crate::syscalls;
use crate::writeback::Writeback;

/// Tables and blobs gather this much before a write call. A multiple of every page size, and writes
/// begin and end at multiples of it, so that no page of a reused file has to be read to be filled.
const BUFFER_BYTES: usize = 256 << 10;

/// A descriptor for writing, shared between the file's owner and its syncers.
pub(crate) struct SharedFile {
    file: File,
    path: PathBuf,
    /// The only one that may write: a forked child has the same descriptor.
    process: Process,
    failed: AtomicBool,
    failure: Mutex<Option<Error>>,
    /// Held during a sync; whether one failed.
    syncing: Mutex<bool>,
}

impl SharedFile {
    pub(crate) fn new(file: File, path: &Path) -> Arc<Self> {
        Arc::new(Self {
            file,
            path: path.to_path_buf(),
            process: Process::current(),
            failed: AtomicBool::new(false),
            failure: Mutex::new(None),
            syncing: Mutex::new(false),
        })
    }

    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// The first failure again, if there was one; an error in a forked child.
    #[inline]
    pub(crate) fn check(&self) -> Result<()> {
        self.process.check()?;
        // Acquire pairs with the release in `fail`: whoever sees the flag sees the error.
        if self.failed.load(Ordering::Acquire) {
            return Err(self.first_failure());
        }
        Ok(())
    }

    #[cold]
    fn first_failure(&self) -> Error {
        let failure = self.failure.lock();
        let first = failure.as_ref().expect("the flag is set after the error");
        first
            .duplicate()
            .context("an earlier call on this file failed")
    }

    /// Breaks the file for good; the error to hand to the caller.
    #[cold]
    pub(crate) fn fail(&self, op: &str, source: io::Error) -> Error {
        let error = Error::io(op, &self.path, source);
        self.failure.lock().get_or_insert_with(|| error.duplicate());
        // Release pairs with the acquire in `check`.
        self.failed.store(true, Ordering::Release);
        error
    }

    /// Writes all of `bytes` at `offset`.
    pub(crate) fn write_at(&self, bytes: &[u8], offset: u64) -> Result<()> {
        self.check()?;
        // `write_all_at` loops over short writes and signals; a partial write that ends in an
        // error breaks the file, so its bytes are never taken for written.
        self.file
            .write_all_at(bytes, offset)
            .map_err(|source| self.fail("write", source))
    }

    /// Makes everything with the kernel outlive a power cut, size included.
    ///
    /// One at a time: the kernel reports a lost page to one sync of a descriptor only, so a
    /// second one running beside it could return `Ok` for pages the first was told are lost.
    ///
    /// A failed write or reservation leaves what was written before it as it was, so only a failed
    /// sync stands in the way.
    pub(crate) fn sync(&self) -> Result<()> {
        self.process.check()?;
        let mut failed = self.syncing.lock();
        if *failed {
            return Err(self.first_failure());
        }
        syscalls::retry(|| self.file.sync_data()).map_err(|source| {
            *failed = true;
            self.fail("sync", source)
        })
    }

    /// Cuts the file to `size` bytes, which also gives back blocks reserved past its end.
    pub(crate) fn cut(&self, size: u64) -> Result<()> {
        self.check()?;
        syscalls::retry(|| self.file.set_len(size)).map_err(|source| self.fail("truncate", source))
    }

    /// Closes the descriptor, if no syncer holds it; else the last syncer closes it.
    pub(crate) fn close(self: Arc<Self>) -> Result<()> {
        self.check()?;
        let Some(last) = Arc::into_inner(self) else {
            return Ok(());
        };
        syscalls::close(last.file).map_err(|source| Error::io("close", &last.path, source))
    }
}

impl fmt::Debug for SharedFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedFile")
            .field("path", &self.path)
            .field("failed", &self.failed)
            .finish_non_exhaustive()
    }
}

/// Covers what has reached the kernel, which for a buffered file is not all that was appended.
impl FileSyncer for SharedFile {
    fn sync(&self) -> Result<()> {
        Self::sync(self)
    }
}

/// A file being written by write calls: tables and blobs through a buffer, others at once.
#[derive(Debug)]
pub(crate) struct PosixWriter {
    shared: Arc<SharedFile>,
    buffer: Vec<u8>,
    buffer_bytes_max: usize,
    /// Bytes handed to the kernel; the buffer's come after them.
    written: u64,
    /// Of tables and blobs: how far they are on their way to the disk.
    writeback: Option<Writeback>,
    cuts_at_close: bool,
}

impl PosixWriter {
    /// A writer from the front of `shared`. `cuts_at_close`: there may be bytes or blocks past
    /// what will be written.
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

    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// As [`RandomAccessFile::read_at`], of which the first `read` bytes are there.
    pub(crate) fn read_rest(
        &self,
        offset: u64,
        buffer: &mut [u8],
        mut read: usize,
    ) -> Result<usize> {
        while let Some(rest) = buffer.get_mut(read..).filter(|rest| !rest.is_empty()) {
            let at = offset.saturating_add(read as u64);
            let n = syscalls::retry(|| self.file.read_at(rest, at))
                .map_err(|source| Error::io("read", &self.path, source).with_offset(at))?;
            if n == 0 {
                break;
            }
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

/// Whether the file system does not offer the call at all, as opposed to the call having failed.
pub(crate) fn is_unsupported(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::EOPNOTSUPP | libc::ENOSYS | libc::EINVAL | libc::ENODEV | libc::ESPIPE)
    )
}
