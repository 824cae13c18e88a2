//! Other engines as [`Store`](drumlin_bench::Store)s, one a file.
//!
//! Each is set up as its documentation advises for the memory the flags give it; the README lists
//! the choices. A flag that an engine has no option for is left at its default.

mod engine;
pub(crate) mod fjall;
#[cfg(feature = "rocksdb")]
pub(crate) mod kvrocks;
pub(crate) mod leveldb;
mod leveldb_sys;
pub(crate) mod lmdb;
mod pending;
pub(crate) mod quiet;
pub(crate) mod redb;
#[cfg(feature = "rocksdb")]
pub(crate) mod rocksdb;
#[cfg(test)]
mod tests;
mod walk;
#[cfg(feature = "wiredtiger")]
pub(crate) mod wiredtiger;

use std::fmt::Display;
use std::path::Path;

use drumlin_base::{Error, ErrorKind, Result};
pub(crate) use engine::{Engine, with_store};

/// Types of a C library that are known by address only.
macro_rules! opaque {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[repr(C)]
        pub(super) struct $name {
            _private: [u8; 0],
        }
    )*};
}
use opaque;

/// The peer `engine` failed with `error`.
pub(crate) fn failed(engine: &str, error: impl Display) -> Error {
    Error::new(ErrorKind::Io, format!("{engine}: {error}"))
}

/// Removes the directory of a store and all in it; no error if it is not there.
///
/// # Errors
/// `InvalidArgument` when `dir` is no directory of a store by the look of it; `Io`.
pub(crate) fn remove_store(dir: &str, marks: &[&str]) -> Result<()> {
    let dir = Path::new(dir);
    let mut entries = match std::fs::read_dir(dir) {
        Ok(entries) => entries.peekable(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(Error::io("list directory", dir, error)),
    };
    let made_here = [drumlin_bench::mark::NAME];
    let known = marks
        .iter()
        .chain(&made_here)
        .any(|mark| dir.join(mark).exists());
    if entries.peek().is_some() && !known {
        let message = format!(
            "{} is not empty and holds none of {}: not a store of this engine, left alone",
            dir.display(),
            marks.join(", ")
        );
        return Err(Error::invalid_argument(message));
    }
    std::fs::remove_dir_all(dir).map_err(|error| Error::io("remove directory", dir, error))
}

/// `bytes` as a `usize`, or `default` when the flag was not given (0 or negative).
fn given(bytes: i64, default: usize) -> usize {
    match usize::try_from(bytes) {
        Ok(0) | Err(_) => default,
        Ok(bytes) => bytes,
    }
}
