//! Why there is a compaction.

/// Why a compaction is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// L0 has too many tables or bytes.
    L0Full,
    /// L0 has too many tables, and the level below is busy: they become fewer where they are.
    L0Crowded,
    /// A level is larger than it should be.
    LevelFull,
    /// Sorted runs of like size are merged.
    RunsAlike,
    /// There are too many sorted runs.
    RunsMany,
    /// Too much space is wasted.
    Space,
    /// Tables are too old, or too many, to be kept at all.
    Expired,
    /// A table asks for it: it has many deletions.
    Marked,
    /// A table is old.
    Aged,
    /// A table refers to blob files that hold too much garbage.
    BlobGarbage,
    /// Tables of L0 may hide much garbage in blob files of a store that is not written.
    Hidden,
    /// Reads over several runs cost more than merging them.
    Reads,
    /// Tables that were written cheaply under pressure are written well.
    Recode,
    /// The user asked for it.
    Manual,
}

impl Reason {
    /// Whether only a quiet store does it, and gives it up for anything else.
    pub(crate) fn can_wait(self) -> bool {
        matches!(self, Self::Hidden | Self::Reads | Self::Recode)
    }

    /// Whether writers may come to wait for it.
    pub(crate) fn is_for_writers(self) -> bool {
        self != Self::Manual && !self.can_wait()
    }
}
