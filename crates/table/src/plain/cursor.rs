//! A cursor over a plain table: from record to record, in place.
//!
//! Forwards the next record begins where the present one ends. Backwards the cursor goes through the
//! records from the anchor before once, and notes where each begins. Not shared between threads; see
//! [`InternalIterator`] for the contract.

use std::sync::Arc;

use drumlin_base::key::{compare_internal, pack_tag, seek_key, split_internal, tag_kind, user_key};
use drumlin_base::{Error, InternalIterator, PinnedSlice, Result, SEQNO_MAX, SeqNo};

use super::lookup::KeyHint;
use super::record::Record;
use super::table::PlainTable;
use crate::options::TableReadOptions;

/// Walks a table's entries both ways.
pub struct PlainTableIter {
    table: Arc<PlainTable>,
    /// Where the present record begins; the end of the records when there is none.
    at: usize,
    record: Record,
    valid: bool,
    /// Where records before the present one begin, the nearest last, from an anchor on. Empty when
    /// they are not known.
    before: Vec<usize>,
    error: Option<Error>,
    global_seqno: Option<SeqNo>,
    /// The present key with the table's global sequence number in it, if it has one.
    patched: Vec<u8>,
}

impl PlainTable {
    /// A cursor over the table's entries, not yet positioned.
    pub fn iter(self: &Arc<Self>, _options: TableReadOptions) -> PlainTableIter {
        PlainTableIter::new(Arc::clone(self))
    }
}

impl PlainTableIter {
    fn new(table: Arc<PlainTable>) -> Self {
        Self {
            at: table.records_end,
            record: Record::default(),
            valid: false,
            before: Vec::new(),
            error: None,
            global_seqno: table.global_seqno,
            patched: Vec::new(),
            table,
        }
    }

    /// The value under the cursor with the file's memory kept: no copy.
    ///
    /// Requires: the cursor is valid.
    pub fn pin_value(&self) -> PinnedSlice {
        self.table.pin(self.record.value_range())
    }

    /// User key and tag under the cursor, for callers that need both.
    ///
    /// Requires: the cursor is valid.
    #[inline]
    pub fn parts(&self) -> (&[u8], u64) {
        split_internal(self.key()).expect("the key of a valid cursor has a tag")
    }

    /// The table walked.
    pub fn table(&self) -> &Arc<PlainTable> {
        &self.table
    }

    /// Moves to `table`, standing nowhere, and leaves the former table in its place. So a walk goes through the
    /// tables of a run without changing their reference counts.
    #[inline]
    pub fn switch(&mut self, table: &mut Arc<PlainTable>) {
        self.leave();
        std::mem::swap(&mut self.table, table);
        self.at = self.table.records_end;
        self.global_seqno = self.table.global_seqno;
    }

    /// First stage of a walk within a prefix, which a caller with several tables takes with all of them before
    /// the next: prefetches the prefix index's line, and the place where `user_key`, with which the walk begins,
    /// may be. `hint` is that of the prefix.
    #[inline]
    pub fn prefetch_prefix(&self, user_key: &[u8], hint: KeyHint) {
        self.table.prefetch_prefix(user_key, hint.hash());
    }

    /// Second stage: prefetches the first records of the prefix, if there are any.
    #[inline]
    pub fn prefetch_prefix_records(&self, hint: KeyHint) {
        self.table.prefetch_prefix_records(hint.hash());
    }

    /// Stands nowhere.
    #[inline]
    pub fn leave(&mut self) {
        self.reset();
    }

    /// Last stage: as [`InternalIterator::seek`], for a walk that stays within `prefix`. Stands nowhere, and returns
    /// false, when the table has none of it.
    ///
    /// Requires: `prefix` is that of `target`, which begins with it, by the family's extractor, and `hint`
    /// that of `prefix`.
    #[inline]
    pub fn seek_within(&mut self, target: &[u8], prefix: &[u8], hint: KeyHint) -> bool {
        if self.global_seqno.is_some() || !self.table.knows_prefixes() {
            self.reset();
            let may_hold = self.table.may_contain_prefix(user_key(target));
            if may_hold {
                self.seek(target);
            }
            return may_hold;
        }
        self.reset();
        match self.table.seek_within(target, prefix, hint.hash()) {
            Ok(None) => false,
            Ok(Some(at)) => {
                self.enter(at);
                true
            }
            Err(error) => {
                self.enter_found(Err(error));
                true
            }
        }
    }

    /// Stands on the record at `at`, or nowhere at the end.
    #[inline]
    fn enter(&mut self, at: usize) {
        self.at = at;
        self.valid = at < self.table.records_end;
        if self.valid {
            match Record::at(self.table.records(), at) {
                Some(record) => self.record = record,
                None => self.fail(),
            }
        }
        if let Some(global) = self.global_seqno {
            self.patch(global);
        }
    }

    #[cold]
    fn fail(&mut self) {
        let damage = self.table.record(self.at);
        self.valid = false;
        self.error = Some(damage.expect_err("the record did not decode"));
    }

    fn enter_found(&mut self, found: Result<usize>) {
        match found {
            Ok(at) => self.enter(at),
            Err(error) => {
                self.valid = false;
                self.error = Some(error);
            }
        }
    }

    /// Forgets where the cursor was and any error.
    fn reset(&mut self) {
        self.error = None;
        self.valid = false;
        self.before.clear();
    }

    /// Puts the global sequence number into the present key.
    #[inline(never)]
    fn patch(&mut self, global: SeqNo) {
        if !self.valid {
            return;
        }
        let (user_key, tag) = self.record.key_parts(self.table.records());
        self.patched.clear();
        self.patched.extend_from_slice(user_key);
        let tag = pack_tag(global.min(SEQNO_MAX), tag_kind(tag));
        self.patched.extend_from_slice(&tag.to_le_bytes());
    }

    /// Notes where the records before the present place begin, from the anchor before it on.
    #[inline(never)]
    fn note_before(&mut self) -> Result<()> {
        self.before.clear();
        let anchor = self.table.anchors.before(self.at);
        let Some(mut at) = anchor.and_then(|anchor| self.table.anchors.at(anchor)) else {
            return Ok(()); // Nothing is before it.
        };
        while at < self.at {
            self.before.push(at);
            at = self.table.record(at)?.next_at();
        }
        Ok(())
    }

    /// Stands on the record before the present place.
    fn step_back(&mut self) {
        if self.before.is_empty()
            && let Err(error) = self.note_before()
        {
            self.before.clear();
            self.valid = false;
            self.error = Some(error);
            return;
        }
        match self.before.pop() {
            Some(at) => self.enter(at),
            None => self.valid = false,
        }
    }
}

impl InternalIterator for PlainTableIter {
    #[inline]
    fn valid(&self) -> bool {
        self.valid
    }

    fn seek_to_first(&mut self) {
        self.reset();
        let first = self.table.anchors.at(0);
        self.enter(first.unwrap_or(self.table.records_end));
    }

    fn seek_to_last(&mut self) {
        self.reset();
        self.at = self.table.records_end;
        self.step_back();
    }

    #[inline]
    fn seek(&mut self, target: &[u8]) {
        self.reset();
        let Some(global) = self.global_seqno else {
            let found = self.table.seek(target);
            return self.enter_found(found);
        };
        // Stored entries have other sequence numbers than they show: start at the key's first
        // version and go on from there.
        let first = seek_key(user_key(target), SEQNO_MAX);
        let found = self.table.seek(&first);
        self.enter_found(found);
        self.patch(global);
        while self.valid && compare_internal(self.table.order(), &self.patched, target).is_lt() {
            self.next();
        }
    }

    fn seek_for_prev(&mut self, target: &[u8]) {
        self.seek(target);
        if self.error.is_some() {
            return;
        }
        if !self.valid {
            self.seek_to_last();
        } else if compare_internal(self.table.order(), self.key(), target).is_gt() {
            self.prev();
        }
    }

    #[inline]
    fn next(&mut self) {
        debug_assert!(self.valid());
        if !self.before.is_empty() {
            self.before.clear();
        }
        self.enter(self.record.next_at());
    }

    fn prev(&mut self) {
        debug_assert!(self.valid());
        self.step_back();
    }

    #[inline]
    fn key(&self) -> &[u8] {
        match self.global_seqno {
            None => self.record.key(self.table.records()),
            Some(_) => &self.patched,
        }
    }

    #[inline]
    fn value(&self) -> &[u8] {
        self.record.value(self.table.records())
    }

    fn status(&self) -> Result<()> {
        match &self.error {
            Some(error) => Err(error.duplicate()),
            None => Ok(()),
        }
    }
}

impl std::fmt::Debug for PlainTableIter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PlainTableIter")
            .field("table", &self.table)
            .field("valid", &self.valid)
            .finish_non_exhaustive()
    }
}
