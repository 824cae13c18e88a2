//! Whether a write may wait.

use drumlin::{Error, ErrorKind, ReadOptions, ReadTier, WriteOptions};

/// Whether a write may wait: for other writers of its keys, for the disk, for room in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// It may.
    InTurn,
    /// It must not: where it would, nothing of it is done, and the error is `Incomplete`.
    AtOnce,
}

impl Pace {
    pub(crate) fn read_options(self) -> ReadOptions {
        let tier = match self {
            Self::InTurn => ReadTier::Disk,
            Self::AtOnce => ReadTier::PageCache,
        };
        ReadOptions {
            tier,
            ..ReadOptions::default()
        }
    }

    pub(crate) fn write_options(self) -> WriteOptions {
        WriteOptions {
            no_stall: self == Self::AtOnce,
            ..WriteOptions::default()
        }
    }
}

/// The error of a write that would have to wait and must not.
pub(crate) fn not_at_once() -> Error {
    Error::new(ErrorKind::Incomplete, "the write would have to wait")
}
