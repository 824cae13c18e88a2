//! A cursor over a memtable's point entries.

use std::fmt;
use std::sync::Arc;

use drumlin_base::key::split_internal;
use drumlin_base::{InternalIterator, PinnedSlice, Result, SeqNo};

use crate::entry::Entry;
use crate::memtable::Memtable;
use crate::step_function::CoveredSpan;
use crate::tree::{Position, Tree};

/// Walks a memtable both ways; owns an `Arc` of it.
///
/// Entries added while it stands somewhere do not move it: `next` and `prev` lead to the neighbours
/// the present entry has by then.
pub struct MemtableIter {
    memtable: Arc<Memtable>,
    at: Position,
    within_prefix: bool,
}

impl MemtableIter {
    pub(crate) fn new(memtable: Arc<Memtable>) -> Self {
        Self {
            memtable,
            at: Position::END,
            within_prefix: false,
        }
    }

    /// From now on the caller wants only entries of the prefix it seeks, or all again: if the memtable has
    /// none of the prefix, a seek may find nothing although entries of other prefixes follow.
    #[inline]
    pub fn stay_within_prefix(&mut self, only: bool) {
        self.within_prefix = only;
    }

    /// The end of a seek to `user_key`: the place `find` returns, unless the filter rules the key
    /// out.
    #[inline]
    fn sought(&self, user_key: &[u8], find: impl FnOnce(&Tree) -> Position) -> Position {
        if self.within_prefix && !self.memtable.may_contain_prefix(user_key) {
            return Position::END;
        }
        find(self.memtable.tree())
    }

    #[inline]
    fn entry(&self) -> Entry<'_> {
        self.memtable
            .tree()
            .entry(&self.at)
            .expect("called only while the cursor is valid")
    }

    /// As [`Memtable::covering`].
    pub fn covering(&self, user_key: &[u8], read_seqno: SeqNo) -> CoveredSpan<'_> {
        self.memtable.covering(user_key, read_seqno)
    }

    /// Counts `entries` of this memtable that a walk stepped over in vain.
    pub fn note_dead_walked(&self, entries: usize) {
        self.memtable.note_dead_walked(entries);
    }

    /// The value under the cursor without a copy, keeping the memtable alive.
    ///
    /// # Panics
    /// When the cursor is not valid.
    pub fn pin_value(&self) -> PinnedSlice {
        // SAFETY: the value of an entry in this memtable.
        unsafe { self.memtable.pin(self.value()) }
    }
}

impl InternalIterator for MemtableIter {
    #[inline]
    fn valid(&self) -> bool {
        !self.at.is_end()
    }

    fn seek_to_first(&mut self) {
        self.at = self.memtable.tree().first();
    }

    fn seek_to_last(&mut self) {
        self.at = self.memtable.tree().last();
    }

    fn seek(&mut self, target: &[u8]) {
        let (user_key, tag) = split_internal(target).unwrap_or((target, 0));
        self.at = self.sought(user_key, |tree| tree.at_or_after(user_key, tag));
    }

    fn seek_for_prev(&mut self, target: &[u8]) {
        let (user_key, tag) = split_internal(target).unwrap_or((target, 0));
        self.at = self.sought(user_key, |tree| tree.at_or_before(user_key, tag));
    }

    #[inline]
    fn next(&mut self) {
        self.at = self.memtable.tree().next(&self.at);
    }

    fn prev(&mut self) {
        self.at = self.memtable.tree().prev(&self.at);
    }

    #[inline]
    fn key(&self) -> &[u8] {
        self.entry().key()
    }

    #[inline]
    fn value(&self) -> &[u8] {
        self.entry().value()
    }

    fn status(&self) -> Result<()> {
        Ok(())
    }
}

impl fmt::Debug for MemtableIter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemtableIter")
            .field("memtable", &self.memtable)
            .field("valid", &self.valid())
            .finish()
    }
}
