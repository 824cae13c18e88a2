//! One key: newest source to oldest, stopping at the first entry that decides.
//!
//! The usual get takes no lock, allocates nothing and touches no counter that other readers touch:
//! memtables are searched in place, an open table is borrowed from its slot, and a small value is
//! copied into the answer. A value too large to copy is pinned in place, which counts a reference on
//! its block.
//!
//! Each source is older than the one before in every key they share. Hence the first value or
//! tombstone decides, merge operands pile up in order, and once a range tombstone covers the key no
//! older source can hold anything that shows.

use std::ops::ControlFlow;
use std::sync::Arc;

use drumlin_base::key::{SEEK_KIND, TAG_BYTES, pack_tag};
use drumlin_base::limits::LEVELS;
use drumlin_base::perf::{self, Measure, timed};
use drumlin_base::{Error, PinnedSlice, Result, SeqNo, ValueKind};
use drumlin_memtable::MemValue;
use drumlin_table::blob::BlobIndex;
use drumlin_table::{Hint, Table, TableReadOptions, TableValue};

use super::context::{Answer, ReadView, value_in};
use super::entity::default_column;
use super::own_key::or_under_own_key;
use super::resident;
use super::sampling::{self, Searched};
use super::walk::{check_deletion, misplaced};
use crate::iter::merge_operands::MergeOperands;
use crate::version::FileMeta;

/// Writes into `answer`, which is `Ok(None)`, the value of `user_key`; leaves it when there is none. Holding the
/// value keeps its memtable or block in memory.
///
/// The answer is written where the caller has it, and not returned: see [`value_in`].
///
/// # Errors
/// Into `answer`: `Corruption` and `Io` from tables, `InvalidArgument` for merge operands without an
/// operator, `NotSupported` for entries only another engine serves.
#[inline(always)]
pub(crate) fn get_to(
    read: ReadView<'_>,
    user_key: &[u8],
    options: impl FnOnce() -> TableReadOptions,
    answer: &mut Answer,
) {
    get_stored(read, user_key, options, answer);
    if let Some(ttl) = &read.context.ttl {
        ttl.give(ttl.now(), user_key, answer);
    }
}

/// As [`get_to`], with the time behind the value where the family has times.
#[inline(always)]
fn get_stored(
    read: ReadView<'_>,
    user_key: &[u8],
    options: impl FnOnce() -> TableReadOptions,
    answer: &mut Answer,
) {
    let mut sampled = None;
    // A thread that counts what it reads goes where that is counted.
    if read.context.in_memory && !perf::is_on() {
        let is_sampled = || *sampled.insert(sampling::is_get_sampled());
        if resident::get(read, user_key, is_sampled, answer) {
            return;
        }
    }
    if sampled.unwrap_or_else(sampling::is_get_sampled) {
        get_charged(read, user_key, &options(), answer);
    } else {
        get_by_sources(read, user_key, &options(), answer);
    }
}

/// As [`get_to`], source by source: the way that serves every kind of table and entry.
pub(super) fn get_by_sources(
    read: ReadView<'_>,
    user_key: &[u8],
    options: &TableReadOptions,
    answer: &mut Answer,
) {
    Lookup::new(read, user_key, answer).run(options, |_| {});
}

/// As [`get_by_sources`], and charges each table that was searched before another.
#[cold]
pub(super) fn get_charged(
    read: ReadView<'_>,
    user_key: &[u8],
    options: &TableReadOptions,
    answer: &mut Answer,
) {
    let mut searched = Searched::new(read.context.in_memory);
    Lookup::new(read, user_key, answer).run(options, |file| {
        if file.may_hold(&read.context.order, user_key) {
            searched.note(file);
        }
    });
}

/// The state of one key's search.
pub(super) struct Lookup<'a> {
    read: ReadView<'a>,
    user_key: &'a [u8],
    answer: &'a mut Answer,
    /// The newest visible range tombstone over the key in the sources searched so far.
    covering: SeqNo,
    operands: MergeOperands,
    outcome: Outcome,
}

/// The outcome of a search, as far as it is known.
enum Outcome {
    /// Nothing decides yet.
    Searching,
    /// The value is in the answer.
    Found,
    /// The value, or the one that the operands apply to, is in a blob file.
    Blob(BlobIndex),
    Absent,
    Failed(Error),
}

impl<'a> Lookup<'a> {
    /// A search for `user_key`, which leaves `answer` to [`Lookup::finish`]: `Ok(None)` until then, or the
    /// value as soon as it is found.
    pub(super) fn new(read: ReadView<'a>, user_key: &'a [u8], answer: &'a mut Answer) -> Self {
        *answer = Ok(None);
        Self {
            read,
            user_key,
            answer,
            covering: 0,
            operands: MergeOperands::default(),
            outcome: Outcome::Searching,
        }
    }

    pub(super) fn user_key(&self) -> &'a [u8] {
        self.user_key
    }

    /// Whether no older source can change the answer: a range tombstone hides all there is of the key in older ones.
    #[inline]
    pub(super) fn is_decided(&self) -> bool {
        self.covering > 0 || !matches!(self.outcome, Outcome::Searching)
    }

    /// Searches all sources and completes the answer. Calls `is_next` with each table before it is searched.
    #[inline]
    fn run(mut self, options: &TableReadOptions, is_next: impl FnMut(&'a FileMeta)) {
        if let Err(error) = self.search(options, is_next) {
            self.fail(error);
        }
        self.finish(options);
    }

    /// Searches memtables and tables, newest first, until the answer is decided.
    #[inline]
    fn search(
        &mut self,
        options: &TableReadOptions,
        is_next: impl FnMut(&'a FileMeta),
    ) -> Result<()> {
        if timed(Measure::MemtableGetNanos, || self.search_memtables()) {
            return Ok(());
        }
        timed(Measure::TableGetNanos, || {
            self.search_tables(options, is_next)
        })
    }

    /// The same, of tables.
    #[inline]
    fn search_tables(
        &mut self,
        options: &TableReadOptions,
        mut is_next: impl FnMut(&'a FileMeta),
    ) -> Result<()> {
        let ReadView {
            context,
            super_version,
            ..
        } = self.read;
        let user_key = self.user_key;
        for file in super_version.version.level(0) {
            if !file.may_hold(&context.order, user_key) {
                continue;
            }
            is_next(file);
            if self.search_file(file, None, options)? {
                return Ok(());
            }
        }
        let target = SeekKey::new(user_key, self.read.seqno);
        for level in 1..LEVELS {
            let files = super_version.version.level(level);
            if files.is_empty() {
                continue;
            }
            let found = super_version
                .version
                .find_file(&context.order, level, target.bytes());
            let Some(index) = found else { continue };
            is_next(&files[index]);
            if self.search_run(&files[index..], None, options)? {
                break;
            }
        }
        Ok(())
    }

    /// Searches the memtables, newest first; whether the answer is decided.
    fn search_memtables(&mut self) -> bool {
        for (index, memtable) in self.read.super_version.memtables().enumerate() {
            if memtable.range_tombstone_count() > 0 {
                self.cover(index);
            }
            memtable.get(self.user_key, self.read.seqno, |seqno, kind, value| {
                self.visit_in_memtable(seqno, kind, value)
            });
            if self.is_decided() {
                return true;
            }
        }
        false
    }

    /// Notes the newest range tombstone over the key in the memtable at `index`.
    pub(super) fn cover(&mut self, index: usize) {
        let ReadView {
            super_version,
            seqno,
            ..
        } = self.read;
        let covering = super_version.covering_seqno(index, self.user_key, seqno);
        self.covering = self.covering.max(covering);
    }

    /// Visits the next older version of the key, found in a memtable.
    #[inline]
    pub(super) fn visit_in_memtable(
        &mut self,
        seqno: SeqNo,
        kind: ValueKind,
        value: MemValue<'_>,
    ) -> ControlFlow<()> {
        self.visit(seqno, kind, value)
    }

    /// As [`Lookup::visit_in_memtable`], found in a table without range tombstones that looked up many keys at once.
    #[inline]
    pub(super) fn visit_in_table(&mut self, seqno: SeqNo, kind: ValueKind, value: TableValue<'_>) {
        // Such a table gives one version of a key at most.
        let _ = self.visit(seqno, kind, value);
    }

    /// Ends the search with an error.
    pub(super) fn fail(&mut self, error: Error) {
        self.outcome = Outcome::Failed(error);
    }

    /// Searches `files`, a sorted run's tables from the first that ends at or after the key on, with a hint for
    /// the first of them; whether the answer is decided. More than one is searched only when the key's versions
    /// straddle tables.
    pub(super) fn search_run(
        &mut self,
        files: &[Arc<FileMeta>],
        mut hint: Option<&Hint>,
        options: &TableReadOptions,
    ) -> Result<bool> {
        let order = &self.read.context.order;
        for file in files {
            if order
                .compare(file.smallest_user_key(), self.user_key)
                .is_gt()
            {
                break;
            }
            self.search_file(file, hint.take(), options)?;
            // A range tombstone alone does not end the search here: where the key straddles, the
            // next table of the run may hold versions newer than the tombstone.
            if !matches!(self.outcome, Outcome::Searching)
                || drumlin_base::bug!("straddling-versions-unread")
                || order
                    .compare(file.largest_user_key(), self.user_key)
                    .is_ne()
            {
                break;
            }
        }
        Ok(self.is_decided())
    }

    /// Searches one table, with the hint of the steps taken in it; whether the answer is decided.
    #[inline]
    pub(super) fn search_file(
        &mut self,
        file: &Arc<FileMeta>,
        hint: Option<&Hint>,
        options: &TableReadOptions,
    ) -> Result<bool> {
        // Under a guard: cloning the `Arc` would make every reader of the table write to one cache line.
        match file.table.load() {
            Some(table) => self.search_table(file, &table, hint, options)?,
            None => {
                let table = self.read.context.tables.find_for(file, options)?;
                self.search_table(file, &table, hint, options)?;
            }
        }
        Ok(self.is_decided())
    }

    #[inline]
    fn search_table(
        &mut self,
        file: &FileMeta,
        table: &Table,
        hint: Option<&Hint>,
        options: &TableReadOptions,
    ) -> Result<()> {
        if !table.range_tombstones().is_empty() {
            let order = &self.read.context.order;
            let covering = file.fragments_of(order, table).map_or(0, |fragments| {
                fragments.max_covering_seqno(order, self.user_key, self.read.seqno)
            });
            self.covering = self.covering.max(covering);
        }
        let (user_key, seqno) = (self.user_key, self.read.seqno);
        let visit = |seqno, kind, value: TableValue<'_>| self.visit(seqno, kind, value);
        match hint {
            Some(hint) => table.get_hinted(hint, user_key, seqno, options, visit),
            None => table.get(user_key, seqno, options, visit),
        }
    }

    /// Visits the next older version of the key.
    #[inline]
    fn visit(&mut self, seqno: SeqNo, kind: ValueKind, value: impl Lent) -> ControlFlow<()> {
        debug_assert!(seqno <= self.read.seqno);
        if seqno < self.covering {
            self.decide(None);
            return ControlFlow::Break(());
        }
        match kind {
            ValueKind::Value if self.operands.is_empty() => {
                self.outcome = Outcome::Found;
                let slice = value_in(self.answer);
                if !slice.copy_small(value.bytes()) {
                    *slice = value.pin();
                }
            }
            ValueKind::Value => self.decide(Some(value.bytes())),
            ValueKind::Deletion | ValueKind::SingleDeletion => self.decide(None),
            ValueKind::DeletionWithTimestamp => match check_deletion(&self.read.context.order) {
                Ok(()) => self.decide(None),
                Err(error) => self.fail(error),
            },
            ValueKind::Merge => {
                self.operands.push_older(value.pin());
                return ControlFlow::Continue(());
            }
            ValueKind::WideColumnEntity => match default_column(value.bytes()) {
                Ok(column) => self.decide(Some(column)),
                Err(error) => self.outcome = Outcome::Failed(error),
            },
            ValueKind::BlobIndex => {
                self.outcome = match BlobIndex::decode(value.bytes()) {
                    Ok(index) => Outcome::Blob(index),
                    Err(error) => Outcome::Failed(error),
                };
            }
            ValueKind::RangeDeletion => self.outcome = Outcome::Failed(misplaced(kind)),
        }
        ControlFlow::Break(())
    }

    /// Ends the search with `existing` under the operands met so far.
    fn decide(&mut self, existing: Option<&[u8]>) {
        let value = match existing {
            _ if !self.operands.is_empty() => {
                let operator = self.read.context.merge_operator.as_deref();
                match self.operands.apply(operator, self.user_key, existing) {
                    Ok(value) => value,
                    Err(error) => return self.fail(error),
                }
            }
            Some(value) => value.to_vec(),
            None => {
                self.outcome = Outcome::Absent;
                return;
            }
        };
        self.outcome = Outcome::Found;
        *self.answer = Ok(Some(PinnedSlice::owned(value)));
    }

    /// The blob that [`Lookup::finish`] would read, if the search ended at one.
    pub(super) fn wanted_blob(&self) -> Option<BlobIndex> {
        match self.outcome {
            Outcome::Blob(index) => Some(index),
            _ => None,
        }
    }

    /// Completes the answer once every source was searched or one decided.
    #[inline]
    pub(super) fn finish(self, options: &TableReadOptions) {
        if !matches!(self.outcome, Outcome::Found) {
            self.finish_slowly(options);
        }
    }

    #[inline(never)]
    fn finish_slowly(mut self, options: &TableReadOptions) {
        match self.outcome {
            Outcome::Blob(index) => {
                let ReadView {
                    context,
                    super_version,
                    ..
                } = self.read;
                let read =
                    context
                        .blobs
                        .read(&super_version.version, self.user_key, &index, options);
                return self.finish_with_blob(&index, read, options);
            }
            Outcome::Searching => self.decide(None),
            Outcome::Found | Outcome::Absent | Outcome::Failed(_) => {}
        }
        self.give_error();
    }

    /// As [`Lookup::finish`], where the search ended at the blob `index` and reading it under the key
    /// gave `read`.
    pub(super) fn finish_with_blob(
        mut self,
        index: &BlobIndex,
        read: Result<PinnedSlice>,
        options: &TableReadOptions,
    ) {
        match or_under_own_key(read, self.read, self.user_key, index, options) {
            Ok(blob) if self.operands.is_empty() => *self.answer = Ok(Some(blob)),
            Ok(blob) => self.decide(Some(&*blob)),
            Err(error) => self.fail(error),
        }
        self.give_error();
    }

    /// Answers with the error that ended the search, if one did.
    fn give_error(self) {
        if let Outcome::Failed(error) = self.outcome {
            *self.answer = Err(error);
        }
    }
}

/// A value as a source lends it.
trait Lent {
    fn bytes(&self) -> &[u8];
    fn pin(self) -> PinnedSlice;
}

impl Lent for MemValue<'_> {
    #[inline]
    fn bytes(&self) -> &[u8] {
        MemValue::bytes(self)
    }
    #[inline]
    fn pin(self) -> PinnedSlice {
        MemValue::pin(&self)
    }
}

impl Lent for TableValue<'_> {
    #[inline]
    fn bytes(&self) -> &[u8] {
        TableValue::bytes(self)
    }
    #[inline]
    fn pin(self) -> PinnedSlice {
        TableValue::pin(self)
    }
}

/// Longest user key whose seek key needs no allocation.
const INLINE_KEY_BYTES: usize = 120;

/// The internal key before every version of a user key visible at a sequence number.
pub(super) struct SeekKey {
    inline: [u8; INLINE_KEY_BYTES + TAG_BYTES],
    len: usize,
    heap: Vec<u8>,
}

impl SeekKey {
    #[inline]
    pub(super) fn new(user_key: &[u8], seqno: SeqNo) -> Self {
        let mut key = Self {
            inline: [0; INLINE_KEY_BYTES + TAG_BYTES],
            len: user_key.len() + TAG_BYTES,
            heap: Vec::new(),
        };
        let tag = pack_tag(seqno, SEEK_KIND).to_le_bytes();
        let spaces = key
            .inline
            .get_mut(..key.len)
            .and_then(|all| all.split_at_mut_checked(user_key.len()));
        match spaces {
            Some((user_space, tag_space)) => {
                user_space.copy_from_slice(user_key);
                tag_space.copy_from_slice(&tag);
            }
            None => key.heap = [user_key, &tag].concat(),
        }
        key
    }

    #[inline]
    pub(super) fn bytes(&self) -> &[u8] {
        self.inline.get(..self.len).unwrap_or(&self.heap)
    }
}

#[cfg(test)]
mod unit_tests {
    use super::*;
    use drumlin_base::key::seek_key;

    #[test]
    fn seek_keys_of_every_length_are_the_allocated_ones() {
        for len in [0, 1, 8, 119, 120, 121, 128, 129, 500] {
            let user_key = vec![b'k'; len];
            assert_eq!(SeekKey::new(&user_key, 77).bytes(), seek_key(&user_key, 77));
        }
    }
}
