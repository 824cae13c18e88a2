//! The small parts that both directions of a walk share.

use drumlin_base::key::{append_internal, is_same_bytes, split_internal};
use drumlin_base::{Error, InternalIterator, KeyOrder, PinnedSlice, Result, SeqNo, ValueKind};
use drumlin_memtable::Note;

use crate::iter::merging::MergingIterator;
use crate::read::source::Source;

/// Hidden entries stepped over one by one before a seek leaves the rest behind: a step costs some
/// tens of nanoseconds, a seek about a microsecond.
pub(in crate::read) const HIDDEN_STEPS_MAX: u32 = 8;

/// Dead entries in a row that are reported at once to the table or memtable that holds them. Shorter runs
/// cost too little to count.
pub(in crate::read) const DEAD_STRETCH: u32 = 64;

/// Values up to this size are copied when the walk goes backward; longer ones are pinned.
const COPY_BYTES_MAX: usize = 1024;

/// Most capacity, in bytes, of a key or value buffer that one walk leaves to the next.
pub(in crate::read) const KEPT_BYTES_MAX: usize = 4096;

/// Where a walk stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::read) enum Place {
    Nowhere,
    /// Forward, on the entry itself: key and value are read from the source, nothing is copied.
    Direct,
    /// As `Direct`, with a reference to a blob for a value. The blob is read by the first call for the
    /// value, see [`crate::read::lazy_blob`].
    DirectBlob,
    /// Forward, on a key whose value had to be made (merge, entity). The cursor stands on some entry of
    /// that key or past it.
    Saved,
    /// Backward: key and value are copies, the cursor stands before every version of the key.
    Behind,
    /// As `Behind`, with a reference to a blob for a value, as in `DirectBlob`.
    BehindBlob,
}

impl Place {
    /// `BehindBlob` if `is_blob`, else `Behind`.
    pub(in crate::read) fn behind(is_blob: bool) -> Self {
        if is_blob {
            Self::BehindBlob
        } else {
            Self::Behind
        }
    }
}

/// The outcome for an entry or a key.
pub(in crate::read) enum Decision {
    Shown(Place),
    Hidden,
    Failed(Error),
}

/// A range tombstone hides an entry; it is in the source of rank `rank`.
#[derive(Clone, Copy)]
pub(in crate::read) struct Covering {
    pub(in crate::read) rank: usize,
}

/// What a walk knows of the dead keys that it is among.
#[derive(Debug, Default)]
pub(in crate::read) struct DeadWalk {
    /// Open while the walk goes on.
    pub(in crate::read) note: Option<Note>,
    /// The end of the span that it went past last.
    pub(in crate::read) after: Option<Vec<u8>>,
}

/// A value that outlives the cursor's next move.
pub(in crate::read) enum SavedValue {
    Copied(Vec<u8>),
    Pinned(PinnedSlice),
}

impl SavedValue {
    pub(in crate::read) fn bytes(&self) -> &[u8] {
        match self {
            Self::Copied(bytes) => bytes,
            Self::Pinned(bytes) => bytes,
        }
    }

    pub(in crate::read) fn copy_from(&mut self, bytes: &[u8]) {
        match self {
            Self::Copied(buffer) => {
                buffer.clear();
                buffer.extend_from_slice(bytes);
            }
            Self::Pinned(_) => *self = Self::Copied(bytes.to_vec()),
        }
    }

    /// Drops the value; keeps a small buffer.
    pub(in crate::read) fn shrink(&mut self) {
        match self {
            Self::Copied(buffer) if buffer.capacity() <= KEPT_BYTES_MAX => {}
            _ => *self = Self::default(),
        }
    }

    /// Keeps the value under `cursor`.
    pub(in crate::read) fn keep(&mut self, cursor: &MergingIterator<Source>) {
        match cursor.value() {
            value if value.len() > COPY_BYTES_MAX => {
                *self = Self::Pinned(cursor.current().pin_value());
            }
            value => self.copy_from(value),
        }
    }
}

impl Default for SavedValue {
    fn default() -> Self {
        Self::Copied(Vec::new())
    }
}

/// User key and tag of the entry under `cursor`.
///
/// Requires: the walk came to the entry before, and found its key to be long enough for a tag.
#[inline]
pub(in crate::read) fn checked_parts(cursor: &MergingIterator<Source>) -> (&[u8], u64) {
    split_internal(cursor.key()).expect("the walk checked the key when it came to it")
}

#[inline]
pub(in crate::read) fn is_same(order: &KeyOrder, a: &[u8], b: &[u8]) -> bool {
    match order {
        KeyOrder::Custom(_) => order.compare(a, b).is_eq(),
        _ => a == b,
    }
}

/// As [`is_same`], where the key prefixes of the two keys are known as well.
#[inline]
pub(in crate::read) fn is_same_by_prefix(
    order: &KeyOrder,
    a: (u64, &[u8]),
    b: (u64, &[u8]),
) -> bool {
    match order {
        KeyOrder::Custom(_) => order.compare(a.1, b.1).is_eq(),
        _ => a.0 == b.0 && is_same_bytes(a.1, b.1),
    }
}

#[inline]
pub(in crate::read) fn set_key(key: &mut Vec<u8>, user_key: &[u8]) {
    key.clear();
    key.extend_from_slice(user_key);
}

pub(in crate::read) fn set_target(target: &mut Vec<u8>, user_key: &[u8], seqno: SeqNo, kind: u8) {
    target.clear();
    append_internal(target, user_key, seqno, kind);
}

#[cold]
pub(in crate::read) fn short_key() -> Error {
    Error::corruption("internal key shorter than its tag")
}

/// Refuses a deletion with a timestamp where the order of keys knows of no timestamps: it would be shown as a value.
pub(in crate::read) fn check_deletion(order: &KeyOrder) -> Result<()> {
    match order.timestamp_bytes() {
        0 => Err(Error::not_supported(
            "deletions with timestamps in an order of keys that has none",
        )),
        _ => Ok(()),
    }
}

/// An entry of `kind` where only values, deletions and operands belong.
#[cold]
pub(in crate::read) fn misplaced(kind: ValueKind) -> Error {
    Error::corruption(format!("an entry of kind {kind:?} among point entries"))
}
