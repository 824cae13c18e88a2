//! The traits of files and file systems.
//!
//! Production uses [`crate::PosixFileSystem`]; tests use the strict in-memory file system or the
//! fault-injecting wrapper instead. All methods may be called from many threads at once.

use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use drumlin_base::bytes::ResidentBytes;
use drumlin_base::{Error, ErrorKind, Result};

use crate::read_queue::ReadQueue;

/// The purpose of a file. Implementations choose a write method by it, fault rules match it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FileKind {
    /// A write-ahead log: small appends that must outlive the process without a sync.
    Wal,
    /// The MANIFEST: small appends, each synced.
    Manifest,
    /// A table: large appends, synced once at the end.
    Table,
    /// A blob file.
    Blob,
    /// CURRENT, IDENTITY, OPTIONS and temporary files.
    Other,
}

impl FileKind {
    /// Whether a file of this kind is never made over an existing one: its name has a unique number, so
    /// a file of that name is foreign, or one of ours that is still needed.
    pub fn is_made_once(self) -> bool {
        matches!(self, Self::Wal | Self::Table | Self::Blob)
    }
}

/// How a file is created.
#[derive(Clone, Copy, Debug)]
pub struct CreateOptions {
    /// The purpose of the file.
    pub kind: FileKind,
    /// Disk space to reserve at once, in bytes; 0 reserves nothing. The reserved tail reads as
    /// zeros after a crash and is cut off by [`WritableFile::close`].
    pub preallocate_bytes: u64,
    /// Write past the page cache, where the file system can; see [`FileSystem::takes_direct`].
    pub direct: bool,
    /// Approximate number of bytes that will be appended; 0 if it is not known. A hint: an
    /// implementation that recycles old files picks one of that size.
    pub expected_bytes: u64,
}

impl CreateOptions {
    /// A file of `kind` without reserved space.
    pub fn new(kind: FileKind) -> Self {
        Self {
            kind,
            preallocate_bytes: 0,
            direct: false,
            expected_bytes: 0,
        }
    }

    /// The same, of a file that will have about this many bytes.
    #[must_use]
    pub fn expecting(self, bytes: u64) -> Self {
        Self {
            expected_bytes: bytes,
            ..self
        }
    }
}

/// A file being written front to back by one owner.
///
/// After any error the file is broken: later calls fail, nothing is retried on it (a kernel marks
/// pages clean after a failed sync, so a retry that succeeds proves nothing).
pub trait WritableFile: Send + Debug {
    /// Appends `bytes`. When it returns, the bytes are with the operating system: they outlive
    /// this process, though not a power cut. (Tables may be buffered until `sync` or `close`.)
    ///
    /// # Errors
    /// `NoSpace`, `Io`.
    fn append(&mut self, bytes: &[u8]) -> Result<()>;

    /// Makes everything appended so far outlive a power cut.
    ///
    /// # Errors
    /// `Io`; the file is then broken for good.
    fn sync(&mut self) -> Result<()>;

    /// Cuts off space that was reserved and not used, and closes. Does not sync.
    ///
    /// # Errors
    /// `Io`, like a failed sync.
    fn close(self: Box<Self>) -> Result<()>;

    /// Bytes appended so far.
    fn len(&self) -> u64;

    /// Whether nothing was appended.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A handle that syncs the bytes appended before its call, for use by another thread while this
    /// one goes on appending. Of a table or blob file it covers only the bytes that have left the
    /// buffer. It may outlive the file's closing, and still syncs then.
    fn syncer(&self) -> Arc<dyn FileSyncer>;
}

/// Works on a file that another thread is appending to.
pub trait FileSyncer: Send + Sync + Debug {
    /// Makes everything appended before the call outlive a power cut. An append that failed does not
    /// stand in its way, a sync that failed does.
    ///
    /// # Errors
    /// `Io`; the file is then broken for good.
    fn sync(&self) -> Result<()>;

    /// Prepares the space behind the appended bytes, as far as possible: the work that an append
    /// there would otherwise wait for. Promises nothing: a failure here is met again, and reported,
    /// by the append. Not for files that are synced often: a sync would write all of the space.
    /// Of a file that was closed, it lets go of what was prepared.
    fn prepare(&self) {}
}

/// A file read at any offset by many threads at once.
pub trait RandomAccessFile: Send + Sync + Debug {
    /// Reads at `offset` until `buffer` is full or the file ends, and returns the number of bytes
    /// read.
    ///
    /// # Errors
    /// `Io`.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize>;

    /// Adds a read, otherwise as [`RandomAccessFile::read_at`], to `queue`, which carries it out with
    /// the others in it. A file that cannot take part in a queue reads now; that is the default.
    fn queue_read<'a>(&'a self, offset: u64, buffer: &'a mut [u8], queue: &mut ReadQueue<'a>) {
        queue.push_done(self.read_at(offset, buffer));
    }

    /// Whether the system has all of these bytes in memory, as far as it tells: a read of them waits for no disk. False
    /// where that cannot be known; that is the default. Costs a call of the system for each 4 KiB.
    fn is_in_page_cache(&self, offset: u64, len: u64) -> bool {
        let _ = (offset, len);
        false
    }

    /// The file's size in bytes when it was opened.
    fn size(&self) -> u64;

    /// Tells the operating system that `len` bytes from `offset` will be read soon.
    fn will_need(&self, offset: u64, len: u64) {
        let _ = (offset, len);
    }

    /// All of the file in memory: mapped if the file system keeps its bytes in memory, so that a
    /// read cannot fail, else copied.
    ///
    /// Requires: nothing changes or cuts the file while the bytes, or any pin of them, are held.
    /// Removing its name is fine.
    ///
    /// # Errors
    /// `Corruption` when the file is shorter than it was, `TooLarge` when there is no memory for it,
    /// `Io`.
    fn resident(&self) -> Result<ResidentBytes> {
        copy_to_memory(self.size(), |bytes| self.read_at(0, bytes))
    }
}

/// A file of `size` bytes in memory of our own, read by `read`.
pub(crate) fn copy_to_memory(
    size: u64,
    read: impl FnOnce(&mut [u8]) -> Result<usize>,
) -> Result<ResidentBytes> {
    let no_room = || {
        let message = format!("no memory for a file of {size} bytes");
        Error::new(ErrorKind::TooLarge, message)
    };
    let len = usize::try_from(size).map_err(|_| no_room())?;
    let filled = ResidentBytes::filled(len, |bytes| {
        if read(bytes)? < len {
            return Err(Error::corruption("the file ends before its size"));
        }
        Ok(())
    });
    filled.ok_or_else(no_room)?
}

/// Why a file is not recycled.
pub(crate) fn has_second_name(path: &Path) -> Error {
    Error::not_supported("the file has a second name and cannot be reused").with_file(path)
}

/// Held while a directory is locked; dropping it unlocks.
pub trait FileLock: Send + Sync + Debug {}

/// The attributes of a file, known without opening it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileInfo {
    /// Size in bytes.
    pub size: u64,
    /// Whether it is a directory.
    pub is_dir: bool,
    /// How many names it has: more than 1 once it was linked.
    pub links: u64,
    /// Whether the name is a symbolic link; the other fields describe its target.
    pub is_symlink: bool,
}

/// A tree of files and directories.
pub trait FileSystem: Send + Sync + Debug {
    /// Creates `path`, or empties it if it exists and is not of a kind that is made once. The new name
    /// outlives a power cut only after [`FileSystem::sync_dir`].
    ///
    /// # Errors
    /// `NoSpace`, `Io`, `ReadOnly`; `Io` where the name is taken, see [`FileKind::is_made_once`].
    fn create(&self, path: &Path, options: CreateOptions) -> Result<Box<dyn WritableFile>>;

    /// Renames `old` to `new` and opens it for writing from its front, keeping its bytes and its
    /// disk space. WAL files are recycled this way.
    ///
    /// # Errors
    /// As [`FileSystem::create`]; `NotFound`; `NotSupported`, with nothing done, when the file has a
    /// second name (in a checkpoint, say, whose bytes would change with it), or when it is no log and
    /// somebody has it open (a process that reads beside the owner, say).
    fn reuse(
        &self,
        old: &Path,
        new: &Path,
        options: CreateOptions,
    ) -> Result<Box<dyn WritableFile>>;

    /// Opens `path` for reading.
    ///
    /// # Errors
    /// `NotFound`, `Io`.
    fn open(&self, path: &Path) -> Result<Arc<dyn RandomAccessFile>>;

    /// Opens `path` for reading past the page cache, where the file system can. For large reads:
    /// nothing is read ahead, nothing is kept.
    ///
    /// # Errors
    /// As [`FileSystem::open`].
    fn open_direct(&self, path: &Path) -> Result<Arc<dyn RandomAccessFile>>;

    /// Whether the file system of the file `path` reads and writes past the page cache. Where it does
    /// not, requests to bypass the cache go through it.
    ///
    /// # Errors
    /// As [`FileSystem::open`].
    fn takes_direct(&self, path: &Path) -> Result<bool>;

    /// The names (not paths) in a directory, in no order.
    ///
    /// # Errors
    /// `NotFound`, `Io`.
    fn list(&self, dir: &Path) -> Result<Vec<PathBuf>>;

    /// Size and type of `path`.
    ///
    /// # Errors
    /// `NotFound`, `Io`.
    fn info(&self, path: &Path) -> Result<FileInfo>;

    /// Gives `from` the name `to`, replacing the file that had it.
    ///
    /// # Errors
    /// `NotFound`, `Io`.
    fn rename(&self, from: &Path, to: &Path) -> Result<()>;

    /// Gives the file `from` a second name `to`; if `from` is a symbolic link, its target.
    ///
    /// # Errors
    /// `NotSupported` where links cannot be made (other device), `Io`.
    fn link(&self, from: &Path, to: &Path) -> Result<()>;

    /// Removes a file.
    ///
    /// # Errors
    /// `NotFound`, `Io`.
    fn remove(&self, path: &Path) -> Result<()>;

    /// Creates a directory and its parents; no error if it exists.
    ///
    /// # Errors
    /// `Io`, `NoSpace`, `ReadOnly`.
    fn create_dir_all(&self, dir: &Path) -> Result<()>;

    /// Creates the directory `dir` in an existing one; false if the name is taken.
    ///
    /// # Errors
    /// `NotFound`, `Io`, `NoSpace`, `ReadOnly`.
    fn create_dir(&self, dir: &Path) -> Result<bool>;

    /// Removes an empty directory.
    ///
    /// # Errors
    /// `NotFound`, `Io`.
    fn remove_dir(&self, dir: &Path) -> Result<()>;

    /// Makes the names in `dir` outlive a power cut.
    ///
    /// # Errors
    /// `Io`.
    fn sync_dir(&self, dir: &Path) -> Result<()>;

    /// Makes the content of an existing file outlive a power cut, no matter which process wrote it.
    /// Recovery does this before it reads.
    ///
    /// # Errors
    /// `NotFound`, `Io`.
    fn sync_file(&self, path: &Path) -> Result<()>;

    /// Cuts or zero-extends an existing file to `size` bytes.
    ///
    /// # Errors
    /// `NotFound`, `Io`.
    fn truncate(&self, path: &Path, size: u64) -> Result<()>;

    /// Whether somebody else, here or in another process, has the file open, so that cutting it would take
    /// bytes from them. True where that cannot be determined; false in memory.
    ///
    /// # Errors
    /// `NotFound`, `Io`.
    fn is_open_elsewhere(&self, path: &Path) -> Result<bool> {
        let _ = path;
        Ok(false)
    }

    /// Locks the file `path` (created if missing) against every other opener, in this process and
    /// others.
    ///
    /// # Errors
    /// `Locked`, its message naming the holder's process id; `Io`.
    fn lock(&self, path: &Path) -> Result<Box<dyn FileLock>>;

    /// Bytes free for use on the file system that holds `path`.
    ///
    /// # Errors
    /// `Io`.
    fn free_space(&self, path: &Path) -> Result<u64>;

    /// Whether a new file has its name only once it is whole: from its first sync on, or its closing. Such a file needs
    /// no name for the time before. So it is in stores of objects.
    fn names_whole_files(&self) -> bool {
        false
    }

    /// The names in a directory with their attributes, in no order; without names that go meanwhile.
    ///
    /// # Errors
    /// `NotFound`, `Io`.
    fn list_with_infos(&self, dir: &Path) -> Result<Vec<(PathBuf, FileInfo)>> {
        let mut found = Vec::new();
        for name in self.list(dir)? {
            match self.info(&dir.join(&name)) {
                Err(error) if error.is_not_found() => {}
                info => found.push((name, info?)),
            }
        }
        Ok(found)
    }

    /// Whether `path` exists.
    ///
    /// # Errors
    /// `Io`, when that cannot be determined.
    fn exists(&self, path: &Path) -> Result<bool> {
        match self.info(path) {
            Ok(_) => Ok(true),
            Err(error) if error.is_not_found() => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// The whole content of a small file, at most `limit_bytes`.
    ///
    /// # Errors
    /// `NotFound`, `Io`; `TooLarge` past the limit.
    fn read_file(&self, path: &Path, limit_bytes: u64) -> Result<Vec<u8>> {
        let file = self.open(path)?;
        let size = file.size();
        if size > limit_bytes {
            let message = format!("the file has {size} bytes, more than {limit_bytes}");
            return Err(Error::new(ErrorKind::TooLarge, message).with_file(path));
        }
        let len = usize::try_from(size).unwrap_or(usize::MAX);
        let mut bytes = Vec::new();
        bytes
            .try_reserve_exact(len)
            .map_err(|_| Error::no_memory(len).with_file(path))?;
        bytes.resize(len, 0);
        let read = file.read_at(0, &mut bytes)?;
        bytes.truncate(read);
        Ok(bytes)
    }
}

/// The methods of [`FileSystem`] that open no file, for a wrapper that passes them on unchanged to the
/// file system in its field `below`.
#[macro_export]
macro_rules! forward_files {
    ($below:ident) => {
        fn takes_direct(&self, path: &::std::path::Path) -> ::drumlin_base::Result<bool> {
            self.$below.takes_direct(path)
        }

        fn list(
            &self,
            dir: &::std::path::Path,
        ) -> ::drumlin_base::Result<Vec<::std::path::PathBuf>> {
            self.$below.list(dir)
        }

        fn info(&self, path: &::std::path::Path) -> ::drumlin_base::Result<$crate::FileInfo> {
            self.$below.info(path)
        }

        $crate::forward_changes!($below);
    };
}

/// The part of [`forward_files!`] without questions about a named file: changes, and properties of the
/// file system.
#[macro_export]
macro_rules! forward_changes {
    ($below:ident) => {
        fn rename(
            &self,
            from: &::std::path::Path,
            to: &::std::path::Path,
        ) -> ::drumlin_base::Result<()> {
            self.$below.rename(from, to)
        }

        fn link(
            &self,
            from: &::std::path::Path,
            to: &::std::path::Path,
        ) -> ::drumlin_base::Result<()> {
            self.$below.link(from, to)
        }

        fn remove(&self, path: &::std::path::Path) -> ::drumlin_base::Result<()> {
            self.$below.remove(path)
        }

        fn create_dir_all(&self, dir: &::std::path::Path) -> ::drumlin_base::Result<()> {
            self.$below.create_dir_all(dir)
        }

        fn create_dir(&self, dir: &::std::path::Path) -> ::drumlin_base::Result<bool> {
            self.$below.create_dir(dir)
        }

        fn remove_dir(&self, dir: &::std::path::Path) -> ::drumlin_base::Result<()> {
            self.$below.remove_dir(dir)
        }

        fn sync_dir(&self, dir: &::std::path::Path) -> ::drumlin_base::Result<()> {
            self.$below.sync_dir(dir)
        }

        fn sync_file(&self, path: &::std::path::Path) -> ::drumlin_base::Result<()> {
            self.$below.sync_file(path)
        }

        fn truncate(&self, path: &::std::path::Path, size: u64) -> ::drumlin_base::Result<()> {
            self.$below.truncate(path, size)
        }

        fn is_open_elsewhere(&self, path: &::std::path::Path) -> ::drumlin_base::Result<bool> {
            self.$below.is_open_elsewhere(path)
        }

        fn lock(
            &self,
            path: &::std::path::Path,
        ) -> ::drumlin_base::Result<Box<dyn $crate::FileLock>> {
            self.$below.lock(path)
        }

        fn free_space(&self, path: &::std::path::Path) -> ::drumlin_base::Result<u64> {
            self.$below.free_space(path)
        }

        fn names_whole_files(&self) -> bool {
            self.$below.names_whole_files()
        }
    };
}
