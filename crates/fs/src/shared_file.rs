//! The descriptor of a file being written, shared by its owner and its syncers.
//!
//! Invariant: once a call on a [`SharedFile`] has failed, every later one fails with the same error; a sync
//! of bytes written before a failed write does not. Syncs of one file run one at a time, see
//! [`SharedFile::sync`].

use std::fmt;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use drumlin_base::{Error, Result};
use parking_lot::Mutex;

use crate::file_system::FileSyncer;
use crate::process::Process;
use crate::syscalls;

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
        // Acquire pairs with the release in `fail`: a thread that sees the flag sees the error.
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
    /// One at a time: the kernel reports a lost page to one sync of a descriptor only, so a second
    /// one running beside it could return `Ok` for pages that were reported lost to the first.
    ///
    /// A failed write or reservation leaves earlier bytes as they were, so only a failed sync
    /// prevents it.
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

/// Covers the bytes that have reached the kernel, which for a buffered file are fewer than were
/// appended.
impl FileSyncer for SharedFile {
    fn sync(&self) -> Result<()> {
        Self::sync(self)
    }
}

/// Whether the file system does not offer the call at all, as opposed to the call having failed.
pub(crate) fn is_unsupported(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::EOPNOTSUPP | libc::ENOSYS | libc::EINVAL | libc::ENODEV | libc::ESPIPE)
    )
}
