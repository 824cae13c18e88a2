//! The one error type: few kinds, the data that explains them, and the source.
//!
//! `Display` is a sentence a user can act on. Kinds map one to one to RocksDB's status codes where
//! those exist, so that tools written against either read the same.

use std::error::Error as StdError;
use std::fmt;
use std::path::{Path, PathBuf};

/// The result of everything that can fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The kind of a failure, as a caller would branch on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The thing asked for does not exist (a family, a file, a database).
    NotFound,
    /// Bytes on disk differ from those written.
    Corruption,
    /// The bytes are sound, but use a feature this build cannot read faithfully.
    NotSupported,
    /// The caller's argument cannot be served.
    InvalidArgument,
    /// A key, value or batch is larger than its limit; nothing was written.
    TooLarge,
    /// The operating system refused an operation.
    Io,
    /// The disk (or quota) is full. Reads go on; writes resume once space is free.
    NoSpace,
    /// An earlier failure closed the database for writing; reads go on, reopening recovers.
    Poisoned,
    /// Another process or handle holds the database.
    Locked,
    /// The database or its file system is read-only.
    ReadOnly,
    /// A conflicting operation is under way.
    Busy,
    /// A deadline passed.
    TimedOut,
    /// The time of a transaction is over; nothing of it was written.
    Expired,
    /// Transactions wait for each other; this one must give way. It may be run again.
    Deadlock,
    /// The operation was given up, for example because it was cancelled.
    Aborted,
    /// The result is not complete, for example because blocks were not in the cache.
    Incomplete,
    /// The database is being closed.
    Shutdown,
}

struct Repr {
    kind: ErrorKind,
    message: String,
    file: Option<PathBuf>,
    offset: Option<u64>,
    source: Option<Box<dyn StdError + Send + Sync>>,
    os_code: Option<i32>,
}

/// An operating error: its kind, a sentence, and the file and offset it concerns.
///
/// One pointer wide, so that results stay small on hot paths.
pub struct Error(Box<Repr>);

impl Error {
    /// An error of `kind` explained by `message`.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self(Box::new(Repr {
            kind,
            message: message.into(),
            file: None,
            offset: None,
            source: None,
            os_code: None,
        }))
    }

    /// Damaged bytes.
    pub fn corruption(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Corruption, message)
    }

    /// A feature that cannot be read faithfully.
    pub fn not_supported(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::NotSupported, message)
    }

    /// Memory that the system does not give: of kind [`ErrorKind::Io`], since the bytes asked for may be sound.
    #[cold]
    pub fn no_memory(bytes: usize) -> Self {
        let message = format!("the system gives no memory for {bytes} bytes");
        Self::new(ErrorKind::Io, message)
    }

    /// A caller's mistake.
    pub fn invalid_argument(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::InvalidArgument, message)
    }

    /// A failed system call `op` on `file`. A full disk or quota becomes [`ErrorKind::NoSpace`],
    /// a missing file [`ErrorKind::NotFound`], a read-only file system [`ErrorKind::ReadOnly`].
    pub fn io(op: &str, file: &Path, source: std::io::Error) -> Self {
        Self::system(op, source).with_file(file)
    }

    /// As [`Error::io`], of a call that concerns no file.
    pub fn system(op: &str, source: std::io::Error) -> Self {
        let kind = match (source.kind(), source.raw_os_error()) {
            (std::io::ErrorKind::NotFound, _) => ErrorKind::NotFound,
            (std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded, _) => {
                ErrorKind::NoSpace
            }
            (std::io::ErrorKind::ReadOnlyFilesystem, _) => ErrorKind::ReadOnly,
            _ => ErrorKind::Io,
        };
        let mut error = Self::new(kind, format!("cannot {op}: {source}"));
        error.0.os_code = source.raw_os_error();
        error.0.source = Some(Box::new(source));
        error
    }

    /// The same error, naming the file it concerns.
    #[must_use]
    pub fn with_file(mut self, file: &Path) -> Self {
        self.0.file.get_or_insert_with(|| file.to_path_buf());
        self
    }

    /// The same error, naming the byte offset in its file.
    #[must_use]
    pub fn with_offset(mut self, offset: u64) -> Self {
        self.0.offset.get_or_insert(offset);
        self
    }

    /// The same error with `context` put before its sentence.
    #[must_use]
    pub fn context(mut self, context: impl fmt::Display) -> Self {
        self.0.message = format!("{context}: {}", self.0.message);
        self
    }

    /// The same error under another kind: a missing table makes a version corrupt, for example.
    #[must_use]
    pub fn with_kind(mut self, kind: ErrorKind) -> Self {
        self.0.kind = kind;
        self
    }

    /// The kind of failure.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The file concerned, if one is.
    pub fn file(&self) -> Option<&Path> {
        self.0.file.as_deref()
    }

    /// The byte offset in [`Error::file`], if one is known.
    pub fn offset(&self) -> Option<u64> {
        self.0.offset
    }

    /// The operating system's error number, if a system call failed.
    pub fn os_code(&self) -> Option<i32> {
        self.0.os_code
    }

    /// Whether this is [`ErrorKind::Corruption`].
    pub fn is_corruption(&self) -> bool {
        self.0.kind == ErrorKind::Corruption
    }

    /// Whether a file was not made because its name is taken.
    pub fn is_taken(&self) -> bool {
        let kind = |code| std::io::Error::from_raw_os_error(code).kind();
        self.os_code().map(kind) == Some(std::io::ErrorKind::AlreadyExists)
    }

    /// Whether this is [`ErrorKind::NotFound`].
    pub fn is_not_found(&self) -> bool {
        self.0.kind == ErrorKind::NotFound
    }

    /// A copy for a second receiver, such as each member of a write group. The source is kept as
    /// its sentence, which the message already holds.
    #[must_use]
    pub fn duplicate(&self) -> Self {
        Self(Box::new(Repr {
            kind: self.0.kind,
            message: self.0.message.clone(),
            file: self.0.file.clone(),
            offset: self.0.offset,
            source: None,
            os_code: self.0.os_code,
        }))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.message)?;
        if let Some(file) = &self.0.file {
            write!(f, " (file {}", file.display())?;
            if let Some(offset) = self.0.offset {
                write!(f, ", offset {offset}")?;
            }
            write!(f, ")")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {self}", self.0.kind)
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0
            .source
            .as_deref()
            .map(|source| source as &(dyn StdError + 'static))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_its_file_and_offset_once() {
        let error = Error::corruption("block checksum does not fit")
            .with_file(Path::new("000007.sst"))
            .with_offset(4096)
            .with_file(Path::new("other"));
        assert_eq!(
            error.to_string(),
            "block checksum does not fit (file 000007.sst, offset 4096)"
        );
        assert_eq!(error.duplicate().kind(), ErrorKind::Corruption);
    }

    #[test]
    fn a_full_disk_is_told_from_other_io_errors() {
        let full = std::io::Error::from_raw_os_error(28);
        assert_eq!(
            Error::io("write", Path::new("x"), full).kind(),
            ErrorKind::NoSpace
        );
        let broken = std::io::Error::from_raw_os_error(5);
        let error = Error::io("write", Path::new("x"), broken);
        assert_eq!((error.kind(), error.os_code()), (ErrorKind::Io, Some(5)));
    }
}
