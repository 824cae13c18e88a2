//! The file system of the operating system.
//!
//! Logs are written through memory ([`crate::posix_wal`]), everything else by write calls
//! ([`crate::posix_file`]). The system calls behind both are in [`crate::syscalls`].

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use drumlin_base::{Error, Result};

use crate::file_system::{
    CreateOptions, FileInfo, FileKind, FileLock, FileSystem, RandomAccessFile, WritableFile,
    has_second_name,
};
use crate::posix_direct::{DirectReader, DirectWriter};
use crate::posix_file::{PosixReader, PosixWriter};
use crate::posix_lock;
use crate::posix_wal::PosixWal;
use crate::shared_file::{SharedFile, is_unsupported};
use crate::syscalls;

/// The operating system's files. Holds nothing; every value is the same.
#[derive(Clone, Copy, Debug, Default)]
pub struct PosixFileSystem;

impl PosixFileSystem {
    /// The operating system's files.
    pub fn new() -> Self {
        Self
    }
}

impl FileSystem for PosixFileSystem {
    fn create(&self, path: &Path, options: CreateOptions) -> Result<Box<dyn WritableFile>> {
        let mut how = OpenOptions::new();
        how.read(true).write(true).mode(0o644);
        match options.kind.is_made_once() {
            true => how.create_new(true),
            false => how.create(true).truncate(true),
        };
        let file = how
            .open(path)
            .map_err(|source| Error::io("create", path, source))?;
        writer(file, path, options, false)
    }

    fn reuse(
        &self,
        old: &Path,
        new: &Path,
        options: CreateOptions,
    ) -> Result<Box<dyn WritableFile>> {
        // Opened first: when that fails the old name still stands.
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(libc::O_NOFOLLOW)
            .open(old)
            .map_err(|source| match source.raw_os_error() {
                Some(libc::ELOOP) => is_a_link(old),
                _ => Error::io("open for reuse", old, source),
            })?;
        let facts = file
            .metadata()
            .map_err(|source| Error::io("look at", old, source))?;
        if facts.nlink() > 1 && !drumlin_base::bug!("file-with-two-names-reused") {
            return Err(has_second_name(old));
        }
        // Readers of logs know that these are recycled.
        if options.kind != FileKind::Wal && syscalls::is_open_elsewhere(&file) {
            let error = Error::not_supported("somebody has the file open, so it cannot be reused");
            return Err(error.with_file(old));
        }
        self.rename(old, new)?;
        writer(file, new, options, true)
    }

    fn open(&self, path: &Path) -> Result<Arc<dyn RandomAccessFile>> {
        let fail = |source| Error::io("open", path, source);
        let file = File::open(path).map_err(fail)?;
        let facts = file.metadata().map_err(fail)?;
        if facts.is_dir() {
            return Err(fail(io::Error::from_raw_os_error(libc::EISDIR)));
        }
        Ok(Arc::new(PosixReader::new(file, path, facts.len())))
    }

    fn open_direct(&self, path: &Path) -> Result<Arc<dyn RandomAccessFile>> {
        let fail = |source| Error::io("open", path, source);
        let file = File::open(path).map_err(fail)?;
        if syscalls::set_direct(&file, true).is_err() {
            return self.open(path);
        }
        let size = file.metadata().map_err(fail)?.len();
        Ok(Arc::new(DirectReader::new(file, path.to_path_buf(), size)))
    }

    fn takes_direct(&self, path: &Path) -> Result<bool> {
        let file = File::open(path).map_err(|source| Error::io("open", path, source))?;
        if syscalls::set_direct(&file, true).is_err() {
            return Ok(false);
        }
        // Some take the switch and refuse the call.
        let reader = DirectReader::new(file, path.to_path_buf(), 0);
        match reader.read_at(0, &mut [0; 1]) {
            Ok(_) => Ok(true),
            Err(error) if error.os_code() == Some(libc::EINVAL) => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn list(&self, dir: &Path) -> Result<Vec<PathBuf>> {
        let fail = |source| Error::io("list", dir, source);
        std::fs::read_dir(dir)
            .map_err(fail)?
            .map(|entry| Ok(PathBuf::from(entry.map_err(fail)?.file_name())))
            .collect()
    }

    fn info(&self, path: &Path) -> Result<FileInfo> {
        let fail = |source| Error::io("look at", path, source);
        let named = std::fs::symlink_metadata(path).map_err(fail)?;
        let is_symlink = named.is_symlink();
        let facts = match is_symlink {
            true => std::fs::metadata(path).map_err(fail)?,
            false => named,
        };
        Ok(FileInfo {
            size: facts.len(),
            is_dir: facts.is_dir(),
            links: facts.nlink(),
            is_symlink,
        })
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        std::fs::rename(from, to)
            .map_err(|source| Error::io(&format!("rename to {}", to.display()), from, source))
    }

    fn link(&self, from: &Path, to: &Path) -> Result<()> {
        let linked = rustix::fs::linkat(
            rustix::fs::CWD,
            from,
            rustix::fs::CWD,
            to,
            rustix::fs::AtFlags::SYMLINK_FOLLOW,
        );
        linked.map_err(|errno| {
            let source = io::Error::from(errno);
            let refused = matches!(
                source.raw_os_error(),
                Some(libc::EXDEV | libc::EPERM | libc::EOPNOTSUPP | libc::ENOSYS | libc::EMLINK)
            );
            let error = Error::io(&format!("link to {}", to.display()), from, source);
            if refused {
                error.with_kind(drumlin_base::ErrorKind::NotSupported)
            } else {
                error
            }
        })
    }

    fn remove(&self, path: &Path) -> Result<()> {
        std::fs::remove_file(path).map_err(|source| Error::io("remove", path, source))
    }

    fn create_dir_all(&self, dir: &Path) -> Result<()> {
        std::fs::create_dir_all(dir)
            .map_err(|source| Error::io("create the directory", dir, source))
    }

    fn create_dir(&self, dir: &Path) -> Result<bool> {
        match std::fs::create_dir(dir) {
            Err(source) if source.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            Err(source) => Err(Error::io("create the directory", dir, source)),
            Ok(()) => Ok(true),
        }
    }

    fn remove_dir(&self, dir: &Path) -> Result<()> {
        std::fs::remove_dir(dir).map_err(|source| Error::io("remove the directory", dir, source))
    }

    fn sync_dir(&self, dir: &Path) -> Result<()> {
        let fail = |source| Error::io("sync the directory", dir, source);
        let file = File::open(dir).map_err(fail)?;
        syscalls::retry(|| file.sync_all()).map_err(fail)
    }

    fn sync_file(&self, path: &Path) -> Result<()> {
        let fail = |source| Error::io("sync", path, source);
        let file = File::open(path).map_err(fail)?;
        syscalls::retry(|| file.sync_data()).map_err(fail)
    }

    fn truncate(&self, path: &Path, size: u64) -> Result<()> {
        let fail = |source| Error::io("truncate", path, source);
        let mut how = OpenOptions::new();
        how.write(true).custom_flags(libc::O_NOFOLLOW);
        let file = how.open(path).map_err(fail)?;
        syscalls::retry(|| file.set_len(size)).map_err(fail)
    }

    fn is_open_elsewhere(&self, path: &Path) -> Result<bool> {
        let mut how = OpenOptions::new();
        how.read(true).write(true).custom_flags(libc::O_NOFOLLOW);
        let file = how
            .open(path)
            .map_err(|source| Error::io("open", path, source))?;
        Ok(syscalls::is_open_elsewhere(&file))
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn FileLock>> {
        Ok(Box::new(posix_lock::lock(path)?))
    }

    fn free_space(&self, path: &Path) -> Result<u64> {
        syscalls::free_space(path)
            .map_err(|source| Error::io("ask for the free space of", path, source))
    }
}

/// The writer for a file of this kind. `used`: the file has bytes that are to be overwritten.
fn writer(
    file: File,
    path: &Path,
    options: CreateOptions,
    used: bool,
) -> Result<Box<dyn WritableFile>> {
    let shared = SharedFile::new(file, path);
    if options.kind == FileKind::Wal {
        return Ok(Box::new(PosixWal::new(shared, options.preallocate_bytes)?));
    }
    let reserved = options.preallocate_bytes > 0 && reserve(&shared, options.preallocate_bytes)?;
    let cuts_at_close = used || reserved;
    if options.direct && syscalls::set_direct(shared.file(), true).is_ok() {
        return Ok(Box::new(DirectWriter::new(shared, cuts_at_close)));
    }
    Ok(Box::new(PosixWriter::new(
        shared,
        options.kind,
        cuts_at_close,
    )))
}

/// Why a name that leads elsewhere is not recycled: the file there is somebody else's.
fn is_a_link(path: &Path) -> Error {
    Error::not_supported("a symbolic link cannot be reused").with_file(path)
}

/// Reserves blocks past the file's end; whether the file system could.
fn reserve(shared: &SharedFile, bytes: u64) -> Result<bool> {
    match syscalls::fallocate(shared.file(), 0, bytes, false) {
        Ok(()) => Ok(true),
        Err(error) if is_unsupported(&error) => Ok(false),
        Err(error) => Err(shared.fail("reserve space", error)),
    }
}
