//! The walk a user takes: user keys ascending or descending as of one sequence number, each with
//! its value, without the versions, tombstones and operands below.
//!
//! The cursor under it yields internal keys: newest version first within a user key. So forward,
//! the first visible entry of a key decides and the rest is skipped; backward, the versions come
//! oldest first, and all visible ones must be seen before the last of them decides.
//!
//! Where the walk stands, by [`Place`]:
//! - `Direct`: forward, on the entry itself; key and value are read from the source, nothing is
//!   copied.
//! - `Saved`: forward, on a key whose value had to be made (merge, entity). The cursor stands on
//!   some entry of that key or past it.
//! - `Behind`: backward; key and value are copies, the cursor stands before every version of it.
//!
//! Steps kept cheap: an entry with sequence number 0 is the only version of its key (compaction
//! gives 0 only then), so the key need not be remembered to skip the others; more than
//! [`STEPS_MAX`] hidden entries in a row are left by a seek; keys under a range tombstone are left
//! by a seek past its end in all sources older than the tombstone.
//!
//! Owns its super version, so flushes, compactions, drops and closing do not disturb it. One thread
//! at a time.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use drumlin_base::key::{SEEK_KIND, append_internal, split_internal, tag_kind, tag_seqno};
use drumlin_base::{
    Error, InternalIterator, KeyOrder, PinnedSlice, Result, SEQNO_MAX, SeqNo, ValueKind,
};
use drumlin_table::TableReadOptions;

use super::context::ReadContext;
use super::entity::default_column;
use super::get::unserved;
use crate::iter::merge_operands::MergeOperands;
use crate::iter::merging::MergingIterator;
use crate::iter::run::RunOptions;
use crate::iter::source::{Source, TombstoneCursor};
use crate::snapshot::Snapshot;
use crate::super_version::SuperVersion;

/// Hidden entries stepped over one by one before a seek leaves the rest behind: a step costs some
/// tens of nanoseconds, a seek about a microsecond.
const STEPS_MAX: u32 = 8;

/// Values up to this size are copied when the walk goes backward; longer ones are pinned.
const COPY_BYTES_MAX: usize = 1024;

/// How to walk.
#[derive(Clone, Debug)]
pub struct IteratorOptions {
    /// The first user key that may be met.
    pub lower_bound: Option<Vec<u8>>,
    /// The first user key past the last that may be met.
    pub upper_bound: Option<Vec<u8>>,
    /// End the walk where the prefix of the key sought ends. Needs a prefix extractor.
    pub prefix_same_as_start: bool,
    /// How blocks are read.
    pub table: TableReadOptions,
}

/// Where an iterator finds the present state when it is refreshed.
pub trait ViewSource: Send + Sync {
    /// The present super version and, taken after it, the published sequence number.
    fn view(&self) -> (Arc<SuperVersion>, SeqNo);
}

/// What a walk had to pass over; for explaining why one is slow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IteratorCounters {
    /// Entries stepped over: older versions, newer than the snapshot, or under a tombstone.
    pub entries_hidden: u64,
    /// Point tombstones met.
    pub tombstones: u64,
    /// Entries met under a range tombstone.
    pub range_deleted: u64,
    /// Seeks made to leave hidden entries behind.
    pub seeks: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Nowhere,
    Direct,
    Saved,
    Behind,
}

/// A walk over one family. See the module for how it works and [`InternalIterator`] for the shape
/// of its contract, which is the same: position first, read and move only while valid, and an end
/// is an end only if `status()` is `Ok`.
pub struct DbIterator {
    context: Arc<ReadContext>,
    options: IteratorOptions,
    source: Option<Arc<dyn ViewSource>>,
    snapshot: Option<Snapshot>,
    view: Arc<SuperVersion>,
    seqno: SeqNo,
    cursor: MergingIterator<Source>,
    /// Whether any source was found to hold range tombstones; else no key is checked for them.
    tombstones_seen: Arc<AtomicBool>,
    tombstone_cursors: Vec<TombstoneCursor>,
    place: Place,
    /// The user key of `Saved` and `Behind`; while skipping, the key whose versions are skipped.
    key: Vec<u8>,
    value: SavedValue,
    operands: MergeOperands,
    /// The internal key sought last, kept for its room.
    target: Vec<u8>,
    prefix: Option<Vec<u8>>,
    error: Option<Error>,
    /// Entries met in a row under range tombstones and left by steps.
    covered_in_a_row: u32,
    counters: IteratorCounters,
}

impl DbIterator {
    /// A walk over `view` as a reader at `seqno` sees it. `snapshot`, if given, is held to keep
    /// `seqno` pinned through refreshes; `source` is asked by [`DbIterator::refresh`].
    pub fn new(
        context: Arc<ReadContext>,
        view: Arc<SuperVersion>,
        seqno: SeqNo,
        options: IteratorOptions,
    ) -> Self {
        let tombstones_seen = Arc::new(AtomicBool::new(false));
        let cursor = open_cursor(&context, &view, &options, &tombstones_seen);
        Self {
            tombstone_cursors: vec![TombstoneCursor::default(); cursor.children().len()],
            cursor,
            tombstones_seen,
            context,
            options,
            source: None,
            snapshot: None,
            view,
            seqno,
            place: Place::Nowhere,
            key: Vec::new(),
            value: SavedValue::default(),
            operands: MergeOperands::default(),
            target: Vec::new(),
            prefix: None,
            error: None,
            covered_in_a_row: 0,
            counters: IteratorCounters::default(),
        }
    }

    /// The same walk, holding `snapshot` for as long as it lives.
    #[must_use]
    pub fn with_snapshot(mut self, snapshot: Snapshot) -> Self {
        self.snapshot = Some(snapshot);
        self
    }

    /// The same walk, able to [`DbIterator::refresh`] from `source`.
    #[must_use]
    pub fn with_source(mut self, source: Arc<dyn ViewSource>) -> Self {
        self.source = Some(source);
        self
    }

    /// Whether the walk stands on a key.
    #[inline]
    pub fn valid(&self) -> bool {
        self.place != Place::Nowhere
    }

    /// The user key; empty while the walk is not valid.
    #[inline]
    pub fn key(&self) -> &[u8] {
        match self.place {
            Place::Direct => split_internal(self.cursor.key()).map_or(&[], |(key, _)| key),
            Place::Saved | Place::Behind => &self.key,
            Place::Nowhere => &[],
        }
    }

    /// The value; empty while the walk is not valid.
    #[inline]
    pub fn value(&self) -> &[u8] {
        match self.place {
            Place::Direct => self.cursor.value(),
            Place::Saved | Place::Behind => self.value.bytes(),
            Place::Nowhere => &[],
        }
    }

    /// The value, to be kept past the next move: pinned where it lies, or copied if it was copied
    /// or made already.
    pub fn pin_value(&self) -> PinnedSlice {
        match (self.place, self.cursor.current()) {
            (Place::Direct, Some(source)) => source.pin_value(),
            _ => PinnedSlice::owned(self.value().to_vec()),
        }
    }

    /// The error that ended the walk, if one did.
    ///
    /// # Errors
    /// `Corruption` and `Io` from tables, `InvalidArgument` for merge operands without an operator,
    /// `NotSupported` for entries only another engine serves, `Incomplete` when only cached blocks
    /// may be read.
    pub fn status(&self) -> Result<()> {
        match &self.error {
            Some(error) => Err(error.duplicate()),
            None => Ok(()),
        }
    }

    /// What was passed over so far.
    pub fn counters(&self) -> IteratorCounters {
        self.counters
    }

    /// The sequence number whose state the walk shows.
    pub fn seqno(&self) -> SeqNo {
        self.seqno
    }

    /// The super version walked over.
    pub fn view(&self) -> &Arc<SuperVersion> {
        &self.view
    }

    /// Takes up the present state of the database; the walk must be positioned anew. With a
    /// snapshot, the state shown stays that of the snapshot.
    ///
    /// # Errors
    /// `NotSupported` when the walk was made without a source.
    pub fn refresh(&mut self) -> Result<()> {
        let Some(source) = &self.source else {
            return Err(Error::not_supported(
                "refreshing an iterator over a fixed view",
            ));
        };
        let (view, seqno) = source.view();
        self.seqno = self.snapshot.as_ref().map_or(seqno, Snapshot::seqno);
        self.view = view;
        self.tombstones_seen = Arc::new(AtomicBool::new(false));
        self.cursor = open_cursor(
            &self.context,
            &self.view,
            &self.options,
            &self.tombstones_seen,
        );
        self.tombstone_cursors = vec![TombstoneCursor::default(); self.cursor.children().len()];
        self.begin();
        Ok(())
    }

    /// Stands on the first key.
    pub fn seek_to_first(&mut self) {
        self.begin();
        match &self.options.lower_bound {
            Some(lower) => {
                set_target(&mut self.target, lower, self.seqno, SEEK_KIND);
                self.cursor.seek(&self.target);
            }
            None => self.cursor.seek_to_first(),
        }
        self.find_forward(false);
        self.take_prefix_of_current();
    }

    /// Stands on the last key.
    pub fn seek_to_last(&mut self) {
        self.begin();
        self.cursor_to_last();
        self.find_backward();
        self.take_prefix_of_current();
    }

    /// Stands on the first key at or after `key`.
    pub fn seek(&mut self, key: &[u8]) {
        self.begin();
        self.take_prefix_of(key);
        let order = &self.context.order;
        let from = match &self.options.lower_bound {
            Some(lower) if order.compare(key, lower).is_lt() => lower,
            _ => key,
        };
        set_target(&mut self.target, from, self.seqno, SEEK_KIND);
        self.cursor.seek(&self.target);
        self.find_forward(false);
    }

    /// Stands on the last key at or before `key`.
    pub fn seek_for_prev(&mut self, key: &[u8]) {
        self.begin();
        self.take_prefix_of(key);
        let order = &self.context.order;
        match &self.options.upper_bound {
            Some(upper) if order.compare(key, upper).is_ge() => self.cursor_to_last(),
            _ => {
                set_target(&mut self.target, key, 0, 0);
                self.cursor.seek_for_prev(&self.target);
            }
        }
        self.find_backward();
    }

    /// Moves to the next key.
    ///
    /// Requires: `valid()`; otherwise nothing happens.
    #[inline]
    pub fn next(&mut self) {
        match self.place {
            Place::Direct => {
                let (user_key, tag) = split_internal(self.cursor.key()).unwrap_or_default();
                let has_older = tag_seqno(tag) != 0;
                if has_older {
                    set_key(&mut self.key, user_key);
                }
                self.cursor.next();
                self.find_forward(has_older);
            }
            Place::Saved => self.find_forward(true),
            Place::Behind => {
                set_target(&mut self.target, &self.key, 0, 0);
                self.cursor.seek(&self.target);
                self.find_forward(true);
            }
            Place::Nowhere => debug_assert!(false, "next needs a valid iterator"),
        }
    }

    /// Moves to the key before.
    ///
    /// Requires: `valid()`; otherwise nothing happens.
    #[inline]
    pub fn prev(&mut self) {
        match self.place {
            Place::Behind => {}
            Place::Direct => {
                let (user_key, _) = split_internal(self.cursor.key()).unwrap_or_default();
                set_key(&mut self.key, user_key);
                self.leave_key_backward();
            }
            Place::Saved => self.seek_before_key(),
            Place::Nowhere => {
                debug_assert!(false, "prev needs a valid iterator");
                return;
            }
        }
        self.find_backward();
    }
}

/// Forward.
impl DbIterator {
    /// From where the cursor stands, goes on to the first entry that shows. With `skip`, entries of
    /// `self.key` are passed over.
    #[inline]
    fn find_forward(&mut self, mut skip: bool) {
        let mut passed = 0;
        while self.cursor.valid() {
            let Some((user_key, tag)) = split_internal(self.cursor.key()) else {
                return self.fail(short_key());
            };
            if !self.within_upper(user_key) {
                return self.end();
            }
            let seqno = tag_seqno(tag);
            if skip && is_same(&self.context.order, user_key, &self.key) {
                passed += 1;
                self.pass_older(&mut passed);
                continue;
            }
            if seqno > self.seqno {
                self.pass_newer(&mut passed);
                // The key of `self.key` is behind; what is remembered there now is another.
                skip = false;
                continue;
            }
            passed = 0;
            if tag_kind(tag) == ValueKind::Value as u8
                && !self.tombstones_seen.load(Ordering::Relaxed)
            {
                self.place = Place::Direct;
                return;
            }
            match self.decide_forward(seqno, tag_kind(tag)) {
                Decision::Shown(place) => {
                    self.place = place;
                    return;
                }
                Decision::Failed(error) => return self.fail(error),
                Decision::Hidden => skip = true,
            }
        }
        self.end();
    }

    /// What becomes of the newest visible entry of a key, under the cursor. A hidden one is left
    /// behind with its key in `self.key`.
    fn decide_forward(&mut self, seqno: SeqNo, kind: u8) -> Decision {
        let (user_key, _) = split_internal(self.cursor.key()).unwrap_or_default();
        set_key(&mut self.key, user_key);
        if let Some(covering) = self.covering(seqno) {
            self.counters.range_deleted += 1;
            self.leave_covered_forward(covering);
            return Decision::Hidden;
        }
        self.covered_in_a_row = 0;
        let kind = match ValueKind::from_byte(kind) {
            Ok(kind) => kind,
            Err(error) => return Decision::Failed(error),
        };
        match kind {
            ValueKind::Value => Decision::Shown(Place::Direct),
            ValueKind::Deletion | ValueKind::SingleDeletion => {
                self.counters.tombstones += 1;
                self.cursor.next();
                Decision::Hidden
            }
            ValueKind::Merge => self.merge_forward(),
            ValueKind::WideColumnEntity => match default_column(self.cursor.value()) {
                Ok(column) => {
                    self.value.copy_from(column);
                    Decision::Shown(Place::Saved)
                }
                Err(error) => Decision::Failed(error),
            },
            ValueKind::BlobIndex | ValueKind::RangeDeletion => Decision::Failed(unserved(kind)),
        }
    }

    /// Gathers the operands of `self.key` from the cursor on, and makes its value.
    fn merge_forward(&mut self) -> Decision {
        self.operands.clear();
        loop {
            if let Some(source) = self.cursor.current() {
                self.operands.push_older(source.pin_value());
            }
            self.cursor.next();
            if !self.cursor.valid() {
                break;
            }
            let Some((user_key, tag)) = split_internal(self.cursor.key()) else {
                return Decision::Failed(short_key());
            };
            if !is_same(&self.context.order, user_key, &self.key)
                || self.covering(tag_seqno(tag)).is_some()
            {
                break;
            }
            let kind = match ValueKind::from_byte(tag_kind(tag)) {
                Ok(kind) => kind,
                Err(error) => return Decision::Failed(error),
            };
            let existing = match kind {
                ValueKind::Merge => continue,
                ValueKind::Deletion | ValueKind::SingleDeletion => break,
                ValueKind::Value => Ok(self.cursor.value()),
                ValueKind::WideColumnEntity => default_column(self.cursor.value()),
                ValueKind::BlobIndex | ValueKind::RangeDeletion => Err(unserved(kind)),
            };
            let operator = self.context.merge_operator.as_deref();
            let merged =
                existing.and_then(|value| self.operands.apply(operator, &self.key, Some(value)));
            return self.show_merged(merged);
        }
        if let Err(error) = self.cursor.status() {
            return Decision::Failed(error);
        }
        let operator = self.context.merge_operator.as_deref();
        let merged = self.operands.apply(operator, &self.key, None);
        self.show_merged(merged)
    }

    fn show_merged(&mut self, merged: Result<Vec<u8>>) -> Decision {
        match merged {
            Ok(value) => {
                self.value = SavedValue::Copied(value);
                Decision::Shown(Place::Saved)
            }
            Err(error) => Decision::Failed(error),
        }
    }

    /// Leaves an older version of `self.key`; once `passed` is past the limit, all of them.
    fn pass_older(&mut self, passed: &mut u32) {
        self.counters.entries_hidden += 1;
        if *passed <= STEPS_MAX {
            self.cursor.next();
            return;
        }
        *passed = 0;
        set_target(&mut self.target, &self.key, 0, 0);
        self.counters.seeks += 1;
        self.cursor.seek(&self.target);
        // An entry of kind 0 and sequence number 0 is at the target itself: it is passed over next.
    }

    /// Leaves an entry too new to be seen; when many in a row belong to one key, goes straight to
    /// its newest visible version. Remembers the key of the first in a row in `self.key`.
    fn pass_newer(&mut self, passed: &mut u32) {
        self.counters.entries_hidden += 1;
        let (user_key, _) = split_internal(self.cursor.key()).unwrap_or_default();
        *passed += 1;
        if *passed == 1 || !is_same(&self.context.order, user_key, &self.key) {
            set_key(&mut self.key, user_key);
            *passed = 1;
        }
        if *passed <= STEPS_MAX {
            self.cursor.next();
            return;
        }
        *passed = 0;
        set_target(&mut self.target, &self.key, self.seqno, SEEK_KIND);
        self.counters.seeks += 1;
        self.cursor.seek(&self.target);
    }

    /// Leaves an entry under a range tombstone: to the tombstone's end in all sources older than
    /// its own, else by one step.
    fn leave_covered_forward(&mut self, covering: Covering) {
        if !self.is_jump_due(covering) {
            self.cursor.next();
            return;
        }
        let end = self
            .cursor
            .children()
            .get(covering.rank)
            .zip(self.tombstone_cursors.get_mut(covering.rank))
            .and_then(|(source, at)| {
                source.covering(&self.context.order, at, &self.key, self.seqno)
            })
            .map_or(&[][..], |(_, fragment)| fragment.end);
        set_target(&mut self.target, end, SEQNO_MAX, SEEK_KIND);
        self.counters.seeks += 1;
        self.cursor.skip_older_to(covering.rank + 1, &self.target);
    }
}

/// Backward.
impl DbIterator {
    /// From where the cursor stands, goes back to the first key that shows.
    fn find_backward(&mut self) {
        while self.cursor.valid() {
            let Some((user_key, tag)) = split_internal(self.cursor.key()) else {
                return self.fail(short_key());
            };
            if !self.within_lower(user_key) {
                return self.end();
            }
            set_key(&mut self.key, user_key);
            match self.covering(tag_seqno(tag)) {
                Some(covering) if self.is_jump_due(covering) => {
                    self.counters.range_deleted += 1;
                    self.leave_covered_backward(covering);
                    continue;
                }
                Some(_) => {}
                None => self.covered_in_a_row = 0,
            }
            match self.gather_backward() {
                Decision::Shown(_) => {
                    self.place = Place::Behind;
                    return;
                }
                Decision::Failed(error) => return self.fail(error),
                Decision::Hidden => {}
            }
        }
        self.end();
    }

    /// Looks at all versions of `self.key`, oldest first, and leaves the cursor before them.
    fn gather_backward(&mut self) -> Decision {
        self.operands.clear();
        let mut has_value = false;
        let mut steps = 0;
        while self.cursor.valid() {
            let Some((user_key, tag)) = split_internal(self.cursor.key()) else {
                return Decision::Failed(short_key());
            };
            if !is_same(&self.context.order, user_key, &self.key) {
                break;
            }
            if tag_seqno(tag) > self.seqno {
                self.leave_key_backward();
                break;
            }
            steps += 1;
            if steps > STEPS_MAX {
                return self.gather_by_seek();
            }
            if let Err(error) = self.take_older(tag, &mut has_value) {
                return Decision::Failed(error);
            }
            self.cursor.prev();
        }
        if let Err(error) = self.cursor.status() {
            return Decision::Failed(error);
        }
        self.decide_backward(has_value)
    }

    /// Takes in the entry under the cursor, newer than all of its key taken in before.
    fn take_older(&mut self, tag: u64, has_value: &mut bool) -> Result<()> {
        if self.covering(tag_seqno(tag)).is_some() {
            self.counters.range_deleted += 1;
            self.operands.clear();
            *has_value = false;
            return Ok(());
        }
        let kind = ValueKind::from_byte(tag_kind(tag))?;
        match kind {
            ValueKind::Value => {
                self.operands.clear();
                *has_value = true;
                self.value.keep(&self.cursor);
            }
            ValueKind::Merge => {
                if let Some(source) = self.cursor.current() {
                    self.operands.push_newer(source.pin_value());
                }
            }
            ValueKind::Deletion | ValueKind::SingleDeletion => {
                self.counters.tombstones += 1;
                self.operands.clear();
                *has_value = false;
            }
            ValueKind::WideColumnEntity => {
                self.operands.clear();
                *has_value = true;
                self.value.copy_from(default_column(self.cursor.value())?);
            }
            ValueKind::BlobIndex | ValueKind::RangeDeletion => return Err(unserved(kind)),
        }
        Ok(())
    }

    /// The value of `self.key` from what was taken in.
    fn decide_backward(&mut self, has_value: bool) -> Decision {
        if self.operands.is_empty() {
            return match has_value {
                true => Decision::Shown(Place::Behind),
                false => Decision::Hidden,
            };
        }
        let existing = has_value.then(|| self.value.bytes());
        let operator = self.context.merge_operator.as_deref();
        let merged = self.operands.apply(operator, &self.key, existing);
        self.show_merged(merged)
    }

    /// Finds the value of `self.key`, which has many versions, from its newest visible one; leaves
    /// the cursor before all of them.
    fn gather_by_seek(&mut self) -> Decision {
        set_target(&mut self.target, &self.key, self.seqno, SEEK_KIND);
        self.counters.seeks += 1;
        self.cursor.seek(&self.target);
        let decision = match self
            .cursor
            .valid()
            .then(|| split_internal(self.cursor.key()))
        {
            Some(Some((user_key, tag))) if is_same(&self.context.order, user_key, &self.key) => {
                self.decide_forward(tag_seqno(tag), tag_kind(tag))
            }
            _ => match self.cursor.status() {
                Ok(()) => Decision::Hidden,
                Err(error) => Decision::Failed(error),
            },
        };
        if matches!(decision, Decision::Shown(Place::Direct)) {
            self.value.keep(&self.cursor);
        }
        self.seek_before_key();
        decision
    }

    /// Moves the cursor, which stands on a version of `self.key`, before all versions of it.
    fn leave_key_backward(&mut self) {
        for _ in 0..STEPS_MAX {
            self.cursor.prev();
            let left = !self.cursor.valid()
                || split_internal(self.cursor.key())
                    .is_none_or(|(user_key, _)| !is_same(&self.context.order, user_key, &self.key));
            if left {
                return;
            }
            self.counters.entries_hidden += 1;
        }
        self.seek_before_key();
    }

    fn seek_before_key(&mut self) {
        set_target(&mut self.target, &self.key, SEQNO_MAX, SEEK_KIND);
        self.counters.seeks += 1;
        self.cursor.seek_for_prev(&self.target);
    }

    /// Leaves an entry under a range tombstone of a newer source: to before the tombstone's begin
    /// in all sources older than its own.
    fn leave_covered_backward(&mut self, covering: Covering) {
        let begin = self
            .cursor
            .children()
            .get(covering.rank)
            .zip(self.tombstone_cursors.get_mut(covering.rank))
            .and_then(|(source, at)| {
                source.covering(&self.context.order, at, &self.key, self.seqno)
            })
            .map_or(&[][..], |(_, fragment)| fragment.begin);
        set_target(&mut self.target, begin, SEQNO_MAX, SEEK_KIND);
        self.counters.seeks += 1;
        self.cursor
            .skip_older_back_to(covering.rank + 1, &self.target);
    }

    /// Moves the cursor to the last entry below the upper bound.
    fn cursor_to_last(&mut self) {
        match &self.options.upper_bound {
            Some(upper) => {
                set_target(&mut self.target, upper, SEQNO_MAX, SEEK_KIND);
                self.cursor.seek_for_prev(&self.target);
            }
            None => self.cursor.seek_to_last(),
        }
    }
}

/// Bounds, tombstones, ends.
impl DbIterator {
    /// The newest source with a range tombstone over the key under the cursor (which is
    /// `self.key`, or the same in order) that is newer than `seqno`.
    fn covering(&mut self, seqno: SeqNo) -> Option<Covering> {
        if !self.tombstones_seen.load(Ordering::Relaxed) {
            return None;
        }
        let sources = self
            .cursor
            .children()
            .iter()
            .zip(&mut self.tombstone_cursors);
        // Older sources hold only tombstones older than the entry.
        for (rank, (source, at)) in sources.enumerate().take(self.cursor.current_rank() + 1) {
            let covering = source.covering(&self.context.order, at, &self.key, self.seqno);
            if covering.is_some_and(|(newest, _)| newest > seqno) {
                return Some(Covering { rank });
            }
        }
        None
    }

    /// Whether to jump over what `covering` hides rather than step: after [`STEPS_MAX`] steps, and
    /// only where the entry under the cursor moves with the jump.
    fn is_jump_due(&mut self, covering: Covering) -> bool {
        self.covered_in_a_row += 1;
        if self.covered_in_a_row <= STEPS_MAX || self.cursor.current_rank() <= covering.rank {
            return false;
        }
        self.covered_in_a_row = 0;
        true
    }

    #[inline]
    fn within_upper(&self, user_key: &[u8]) -> bool {
        let below = match &self.options.upper_bound {
            Some(upper) => self.context.order.compare(user_key, upper).is_lt(),
            None => true,
        };
        below && self.within_prefix(user_key)
    }

    #[inline]
    fn within_lower(&self, user_key: &[u8]) -> bool {
        let above = match &self.options.lower_bound {
            Some(lower) => self.context.order.compare(user_key, lower).is_ge(),
            None => true,
        };
        above && self.within_prefix(user_key)
    }

    #[inline]
    fn within_prefix(&self, user_key: &[u8]) -> bool {
        let Some(prefix) = &self.prefix else {
            return true;
        };
        let extractor = self.context.prefix.as_deref();
        extractor.and_then(|extractor| extractor.prefix(user_key)) == Some(prefix)
    }

    /// Stays within the prefix of `key` from now on, if asked to and if it has one.
    fn take_prefix_of(&mut self, key: &[u8]) {
        if self.options.prefix_same_as_start {
            let extractor = self.context.prefix.as_deref();
            self.prefix = extractor
                .and_then(|extractor| extractor.prefix(key))
                .map(<[u8]>::to_vec);
        }
    }

    fn take_prefix_of_current(&mut self) {
        if self.options.prefix_same_as_start && self.valid() {
            let key = self.key().to_vec();
            self.take_prefix_of(&key);
        }
    }

    /// Forgets where the walk stood.
    fn begin(&mut self) {
        self.place = Place::Nowhere;
        self.error = None;
        self.prefix = None;
        self.operands.clear();
    }

    /// The walk is over: at an end, or at the cursor's error.
    fn end(&mut self) {
        self.place = Place::Nowhere;
        self.error = self.cursor.status().err();
    }

    #[cold]
    fn fail(&mut self, error: Error) {
        self.place = Place::Nowhere;
        self.error = Some(error);
    }
}

impl fmt::Debug for DbIterator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DbIterator")
            .field("seqno", &self.seqno)
            .field("place", &self.place)
            .field("key", &self.key())
            .finish_non_exhaustive()
    }
}

/// What an entry or a key comes to.
enum Decision {
    Shown(Place),
    Hidden,
    Failed(Error),
}

/// A range tombstone hides an entry; it lies in the source of rank `rank`.
#[derive(Clone, Copy)]
struct Covering {
    rank: usize,
}

/// A value that outlives the cursor's next move.
enum SavedValue {
    Copied(Vec<u8>),
    Pinned(PinnedSlice),
}

impl SavedValue {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Copied(bytes) => bytes,
            Self::Pinned(bytes) => bytes,
        }
    }

    fn copy_from(&mut self, bytes: &[u8]) {
        match self {
            Self::Copied(room) => {
                room.clear();
                room.extend_from_slice(bytes);
            }
            Self::Pinned(_) => *self = Self::Copied(bytes.to_vec()),
        }
    }

    /// Keeps the value under `cursor`.
    fn keep(&mut self, cursor: &MergingIterator<Source>) {
        match cursor.current() {
            Some(source) if cursor.value().len() > COPY_BYTES_MAX => {
                *self = Self::Pinned(source.pin_value());
            }
            _ => self.copy_from(cursor.value()),
        }
    }
}

impl Default for SavedValue {
    fn default() -> Self {
        Self::Copied(Vec::new())
    }
}

fn open_cursor(
    context: &ReadContext,
    view: &SuperVersion,
    options: &IteratorOptions,
    tombstones_seen: &Arc<AtomicBool>,
) -> MergingIterator<Source> {
    let bound = |bound: &Option<Vec<u8>>| bound.as_deref().map(Arc::from);
    let run = RunOptions {
        order: context.order.clone(),
        tables: Arc::clone(&context.tables),
        table: options.table,
        lower_bound: bound(&options.lower_bound),
        upper_bound: bound(&options.upper_bound),
        tombstones_seen: Arc::clone(tombstones_seen),
    };
    let sources = Source::all(view, &run);
    if sources.iter().any(Source::has_tombstones) {
        tombstones_seen.store(true, Ordering::Relaxed);
    }
    MergingIterator::new(context.order.clone(), sources)
}

#[inline]
fn is_same(order: &KeyOrder, a: &[u8], b: &[u8]) -> bool {
    match order {
        KeyOrder::Custom(_) => order.compare(a, b).is_eq(),
        _ => a == b,
    }
}

#[inline]
fn set_key(key: &mut Vec<u8>, user_key: &[u8]) {
    key.clear();
    key.extend_from_slice(user_key);
}

fn set_target(target: &mut Vec<u8>, user_key: &[u8], seqno: SeqNo, kind: u8) {
    target.clear();
    append_internal(target, user_key, seqno, kind);
}

#[cold]
fn short_key() -> Error {
    Error::corruption("internal key shorter than its tag")
}
