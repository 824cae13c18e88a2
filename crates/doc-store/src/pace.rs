//! Whether a write may wait.

use drumlin::{Error, ErrorKind, ReadOptions, ReadTier, WriteOptions};

use crate::validator::Validation;

/// Whether a write may wait: for other writers of its keys, for the disk, for room in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// It may.
    InTurn,
    /// It must not: where it would, nothing of it is done, and the error is `Incomplete`.
    AtOnce,
}

/// How a write is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Manner {
    /// Whether it may wait.
    pub pace: Pace,
    /// Whether the collection's validator looks at it.
    pub validation: Validation,
}

impl Manner {
    /// It may wait, and is looked at.
    pub(crate) const CHECKED: Self = Self {
        pace: Pace::InTurn,
        validation: Validation::Checked,
    };
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
