//! The entries that survive a flush or a compaction, in order: [`super::keep`]'s verdicts carried
//! out over a cursor.
//!
//! The common entry (a value of a new key) is passed through in place: its key is copied once,
//! because it is compared with the next, its value not at all. The rest (merges, single deletions,
//! deletions at the bottom) need a look ahead and are put together in buffers that are reused.
//!
//! Invariant: while `pending` is false the input stands on the first entry not yet judged.

use std::fmt;
use std::ops::{AddAssign, Range};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use drumlin_base::key::{TAG_BYTES, pack_tag, seek_key, split_internal, tag_kind, tag_seqno};
use drumlin_base::{
    CompactionFilter, Error, ErrorKind, FilterDecision, InternalIterator, KeyOrder, MergeOperator,
    PinnedSlice, Result, SEQNO_MAX, SeqNo, ValueCode, ValueKind,
};
use drumlin_table::blob::BlobIndex;

use super::blob_inputs::BlobInputs;
use super::cover::Cover;
use super::keep::{Below, Keep, Stripes, Verdict};

/// The state a job starts with: everything the rules ask for beside the entries.
pub(crate) struct StreamOptions {
    /// The order of user keys.
    pub order: KeyOrder,
    /// The snapshots alive.
    pub stripes: Stripes,
    /// The data below the output.
    pub below: Below,
    /// The range tombstones of the inputs; `None` when there are none.
    pub cover: Option<Cover>,
    /// Combines operands; without one they are carried as they are.
    pub merge_operator: Option<Arc<dyn MergeOperator>>,
    /// Looks at values no snapshot protects.
    pub filter: Option<Arc<dyn CompactionFilter>>,
    /// Whether entries that the filter removes with a range need not be read one by one.
    pub may_skip: bool,
    /// The level the output goes to, passed to the filter.
    pub output_level: u32,
    /// Where keys end with timestamps: the oldest at which anybody reads.
    pub full_history_ts_low: Option<Arc<Vec<u8>>>,
    /// The blob files the tables refer to; `None` when there are none.
    pub blobs: Option<BlobInputs>,
}

impl fmt::Debug for StreamOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StreamOptions")
            .field("order", &self.order)
            .field("stripes", &self.stripes)
            .field("output_level", &self.output_level)
            .finish_non_exhaustive()
    }
}

/// Counts of the entries so far, by their fate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct StreamCounts {
    /// Entries read.
    pub input: u64,
    /// Entries dropped because a newer one hides them.
    pub hidden: u64,
    /// Entries dropped because a range tombstone covers them.
    pub covered: u64,
    /// Tombstones dropped because nothing was left to hide.
    pub obsolete: u64,
    /// Operands combined away.
    pub merged: u64,
    /// Entries the filter removed and that were read.
    pub filtered: u64,
    /// Whether it also removed entries that were not read.
    pub skipped: bool,
}

impl AddAssign for StreamCounts {
    fn add_assign(&mut self, other: Self) {
        self.input += other.input;
        self.hidden += other.hidden;
        self.covered += other.covered;
        self.obsolete += other.obsolete;
        self.merged += other.merged;
        self.filtered += other.filtered;
        self.skipped |= other.skipped;
    }
}

/// The place of the present entry's value.
#[derive(Clone, Copy, Debug)]
enum Place {
    Input,
    Nowhere,
    Buffer,
    Held,
}

/// Entries put together ahead of their turn: bytes in one buffer, ranges into it.
#[derive(Debug, Default)]
struct Held {
    bytes: Vec<u8>,
    /// Tag and value of each entry of the current key, newest first.
    entries: Vec<(u64, Range<usize>)>,
    next: usize,
}

impl Held {
    fn clear(&mut self) {
        self.bytes.clear();
        self.entries.clear();
        self.next = 0;
    }

    fn push(&mut self, tag: u64, value: &[u8]) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(value);
        self.entries.push((tag, start..self.bytes.len()));
    }

    fn value(&self, index: usize) -> &[u8] {
        self.entries
            .get(index)
            .and_then(|(_, range)| self.bytes.get(range.clone()))
            .expect("a held value is a range of the bytes")
    }
}

/// How a run of merge operands ended.
enum RunEnd {
    /// On a value: the operands apply to it. The input stands on it.
    Base,
    /// On the reference to a value kept apart, for which the same holds.
    BaseApart,
    /// Where the key had no value.
    NoValue,
    /// Where an older version may follow that must not be touched.
    Open,
}

/// Why a version at an old timestamp goes.
#[derive(Clone, Copy, Debug)]
enum OldVersion {
    /// A newer one hides it from all who read at a timestamp that may still be read at.
    Hidden,
    /// It is a deletion, and there is nothing below that it hides.
    Obsolete,
}

/// Of versions before the oldest timestamp at which anybody reads, only the newest is seen.
struct OldVersions {
    low: Arc<Vec<u8>>,
    /// That of keys without timestamps.
    order: KeyOrder,
    /// The newest old version met last, and its stripe.
    last: Vec<u8>,
    stripe: Option<SeqNo>,
}

impl OldVersions {
    fn new(order: &KeyOrder, low: Arc<Vec<u8>>) -> Self {
        Self {
            low,
            order: order.without_timestamps(),
            last: Vec::new(),
            stripe: None,
        }
    }

    /// Whether the timestamp of `user_key` is below the lowest. The newer one comes first.
    fn is_old(&self, order: &KeyOrder, user_key: &[u8]) -> bool {
        let at = user_key.len().saturating_sub(self.low.len());
        let timestamp = user_key.get(at..).unwrap_or_default();
        order.compare(timestamp, &self.low).is_gt() && !drumlin_base::bug!("history-never-old")
    }

    fn is_behind_another(&self, user_key: &[u8], stripe: SeqNo) -> bool {
        drumlin_base::bug!("old-versions-all-go")
            || self.stripe == Some(stripe) && self.order.compare(&self.last, user_key).is_eq()
    }
}

/// A cursor over the entries that stay.
pub(crate) struct Stream<I> {
    input: I,
    keep: Keep,
    options: StreamOptions,
    bottommost: bool,
    /// The internal key of the present entry; its user key equals the one being judged.
    key: Vec<u8>,
    has_key: bool,
    /// Whether no entry of the user key came out yet.
    fresh: bool,
    /// Whether the present entry is the first of its user key that came out.
    first: bool,
    pending: bool,
    place: Place,
    buffer: Vec<u8>,
    held: Held,
    /// Entries below this user key that no snapshot protects are removed.
    removed_until: Option<Vec<u8>>,
    /// What passes over versions that no reader at a timestamp sees.
    old_versions: Option<OldVersions>,
    counts: StreamCounts,
}

impl<I> fmt::Debug for Stream<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stream")
            .field("options", &self.options)
            .field("key", &self.key)
            .field("counts", &self.counts)
            .finish_non_exhaustive()
    }
}

impl<I: InternalIterator> Stream<I> {
    /// The survivors of `input`, which stands on the first entry to be judged.
    pub(crate) fn new(input: I, mut options: StreamOptions) -> Self {
        let stripes = std::mem::take(&mut options.stripes);
        let low = options.full_history_ts_low.take();
        Self {
            input,
            old_versions: low.map(|low| OldVersions::new(&options.order, low)),
            keep: Keep::new(stripes),
            bottommost: options.below.is_nothing(),
            options,
            key: Vec::with_capacity(64),
            has_key: false,
            fresh: true,
            first: false,
            pending: false,
            place: Place::Nowhere,
            buffer: Vec::new(),
            held: Held::default(),
            removed_until: None,
            counts: StreamCounts::default(),
        }
    }

    /// The internal key of the present entry.
    #[inline]
    pub(crate) fn key(&self) -> &[u8] {
        &self.key
    }

    /// The value of the present entry.
    #[inline]
    pub(crate) fn value(&self) -> &[u8] {
        match self.place {
            Place::Input => self.input.value(),
            Place::Nowhere => &[],
            Place::Buffer => &self.buffer,
            Place::Held => self.held.value(self.held.next.wrapping_sub(1)),
        }
    }

    /// The code of the present entry's value, if the input gives it and the value is as it was there.
    #[inline]
    pub(crate) fn code(&self) -> Option<ValueCode<'_>> {
        match self.place {
            Place::Input => self.input.code(),
            _ => None,
        }
    }

    /// Whether the present entry is the first that came out for its user key: the only places where
    /// an output file may be cut.
    #[inline]
    pub(crate) fn starts_user_key(&self) -> bool {
        self.first
    }

    /// The cursor the entries come from.
    pub(crate) fn input_mut(&mut self) -> &mut I {
        &mut self.input
    }

    /// The counts so far.
    pub(crate) fn counts(&self) -> StreamCounts {
        self.counts
    }

    /// Moves to the next entry that stays; false at the end.
    ///
    /// # Errors
    /// Errors of reading the input; `Corruption` for an entry no engine writes; errors of the merge
    /// operator. The walk is over after an error.
    pub(crate) fn advance(&mut self) -> Result<bool> {
        if self.held.next < self.held.entries.len() {
            return Ok(self.take_held());
        }
        loop {
            if self.pending {
                self.input.next();
                self.pending = false;
            }
            if !self.input.valid() {
                self.input.status()?;
                return Ok(false);
            }
            self.counts.input += 1;
            if self.judge()? {
                self.first = std::mem::replace(&mut self.fresh, false);
                return Ok(true);
            }
        }
    }

    fn take_held(&mut self) -> bool {
        if let Some(&(tag, _)) = self.held.entries.get(self.held.next) {
            self.set_tag(tag);
        }
        self.held.next += 1;
        self.place = Place::Held;
        self.first = std::mem::replace(&mut self.fresh, false);
        true
    }

    /// Judges the entry under the input; whether something came out.
    #[inline]
    fn judge(&mut self) -> Result<bool> {
        let (user_key, tag) = split_internal(self.input.key()).ok_or_else(short_key)?;
        if !self.has_key || !same_key(&self.options.order, user_key, current(&self.key)) {
            self.key.clear();
            self.key.extend_from_slice(self.input.key());
            self.has_key = true;
            self.fresh = true;
            self.keep.start_key();
        } else if matches!(self.options.order, KeyOrder::Custom(_)) {
            // Each entry keeps the bytes it was written with: its blob has them too.
            self.key.clear();
            self.key.extend_from_slice(self.input.key());
        } else {
            self.set_tag(tag);
        }
        self.pending = true;
        let kind = kind_of(tag)?;
        let seqno = tag_seqno(tag);
        let stripe = self.keep.stripes().of(seqno);
        if self.removed_until.is_some() && stripe == SEQNO_MAX && self.is_in_removed_range() {
            self.counts.filtered += 1;
            return Ok(false);
        }
        if self.old_versions.is_some()
            && let Some(passed) = self.pass_old_version(kind, stripe)
        {
            match passed {
                OldVersion::Hidden => self.counts.hidden += 1,
                OldVersion::Obsolete => self.counts.obsolete += 1,
            }
            return Ok(false);
        }
        let covered = self.is_covered(seqno, stripe);
        match self.keep.judge(stripe, kind, covered) {
            Verdict::Keep => self.keep_value(seqno, kind),
            Verdict::Hidden => {
                self.counts.hidden += 1;
                Ok(false)
            }
            Verdict::Covered => {
                self.counts.covered += 1;
                Ok(false)
            }
            Verdict::Delete => self.delete(seqno, stripe),
            Verdict::DeleteSingle { hidden } => self.delete_single(seqno, stripe, hidden),
            Verdict::Merge => self.merge(tag, stripe),
        }
    }

    /// Whether the present entry is a version that no reader at a timestamp sees.
    fn pass_old_version(&mut self, kind: ValueKind, stripe: SeqNo) -> Option<OldVersion> {
        let old = self.old_versions.as_mut()?;
        let user_key = current(&self.key);
        if !old.is_old(&self.options.order, user_key) {
            return None;
        }
        if old.is_behind_another(user_key, stripe) {
            return Some(OldVersion::Hidden);
        }
        old.last.clear();
        old.last.extend_from_slice(user_key);
        old.stripe = Some(stripe);
        // With snapshots, an older version may be seen by one that does not see the deletion.
        let is_obsolete = kind == ValueKind::DeletionWithTimestamp
            && self.keep.stripes().snapshots().is_empty()
            && (drumlin_base::bug!("old-deletion-goes-early")
                || !self.options.below.may_hold(&old.order, user_key));
        is_obsolete.then_some(OldVersion::Obsolete)
    }

    #[inline]
    fn keep_value(&mut self, seqno: SeqNo, kind: ValueKind) -> Result<bool> {
        self.place = Place::Input;
        let unprotected = self.keep.stripes().of(seqno) == SEQNO_MAX;
        let is_value = matches!(kind, ValueKind::Value | ValueKind::BlobIndex);
        if self.options.filter.is_some() && is_value && unprotected {
            return self.filter(seqno, kind);
        }
        self.settle(seqno, kind);
        Ok(true)
    }

    /// Whether the present key is in the range that the filter removed. Forgets the range once it is passed.
    fn is_in_removed_range(&mut self) -> bool {
        let order = &self.options.order;
        let until = self.removed_until.as_ref();
        let is_in = until.is_some_and(|until| {
            let compared = order.compare(current(&self.key), until);
            compared.is_lt()
                || (compared.is_eq() && drumlin_base::bug!("removed-range-takes-its-end"))
        });
        if !is_in {
            self.removed_until = None;
        }
        is_in
    }

    fn filter(&mut self, seqno: SeqNo, kind: ValueKind) -> Result<bool> {
        match self.ask_filter(kind)? {
            FilterDecision::Keep => self.settle(seqno, kind),
            FilterDecision::Change(value) => {
                self.buffer = value;
                self.place = Place::Buffer;
                self.settle(seqno, ValueKind::Value);
            }
            FilterDecision::Remove => {
                self.counts.filtered += 1;
                return self.delete(seqno, SEQNO_MAX);
            }
            FilterDecision::RemoveUntil(until) => {
                let order = &self.options.order;
                if order.compare(current(&self.key), &until).is_ge() {
                    self.settle(seqno, kind);
                    return Ok(true);
                }
                self.remove_until(until);
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The filter's decision on the entry under the input.
    fn ask_filter(&mut self, kind: ValueKind) -> Result<FilterDecision> {
        let Some(filter) = self.options.filter.clone() else {
            return Ok(FilterDecision::Keep);
        };
        let apart = match kind {
            ValueKind::BlobIndex if !filter.reads_blobs() => return Ok(FilterDecision::Keep),
            ValueKind::BlobIndex => Some(self.value_apart()?),
            _ => None,
        };
        let value = apart.as_deref().unwrap_or_else(|| self.input.value());
        let (level, key) = (self.options.output_level, current(&self.key));
        let asked = AssertUnwindSafe(|| filter.filter(level, key, value));
        catch_unwind(asked).map_err(|_| {
            let message = format!("the compaction filter {:?} panicked", filter.name());
            Error::new(ErrorKind::Aborted, message)
        })
    }

    /// Drops the present entry and those after it that no snapshot protects, up to the user key `until`.
    fn remove_until(&mut self, until: Vec<u8>) {
        self.counts.filtered += 1;
        if self.options.may_skip {
            self.input.seek(&seek_key(&until, SEQNO_MAX));
            self.pending = false;
            self.counts.skipped = true;
        }
        self.removed_until = Some(until);
    }

    /// The value that the reference under the input refers to. The input's own key is the blob's: the one
    /// being judged may have other bytes.
    fn value_apart(&mut self) -> Result<PinnedSlice> {
        let Some(blobs) = &mut self.options.blobs else {
            return Err(Error::corruption("a reference to a blob where none can be"));
        };
        let index = BlobIndex::decode(self.input.value())?;
        blobs.value(current(self.input.key()), &index)
    }

    /// Gives an entry that every reader sees, at the end of the tree, the sequence number zero: it
    /// compresses better, and nothing is left that its age would be compared with.
    #[inline]
    fn settle(&mut self, seqno: SeqNo, kind: ValueKind) {
        let settled = self.bottommost && self.keep.stripes().oldest_holds(seqno);
        let seqno = if settled { 0 } else { seqno };
        self.set_tag(pack_tag(seqno, kind as u8));
    }

    /// A deletion at `seqno`: it goes when there is nothing older left to hide.
    fn delete(&mut self, seqno: SeqNo, stripe: SeqNo) -> Result<bool> {
        let hides_something = self.may_hold_below()
            || (!self.keep.stripes().oldest_holds(seqno) && self.older_stripe_follows(stripe)?);
        if !hides_something {
            self.counts.obsolete += 1;
            return Ok(false);
        }
        self.put_tombstone(seqno, ValueKind::Deletion);
        Ok(true)
    }

    /// Skips the entries that the stripe hides; whether an older stripe of the key follows.
    fn older_stripe_follows(&mut self, stripe: SeqNo) -> Result<bool> {
        while let Some((tag, _)) = self.step_in_key()? {
            if self.keep.stripes().of(tag_seqno(tag)) != stripe {
                return Ok(true);
            }
            self.counts.input += 1;
            self.counts.hidden += 1;
            self.pending = true;
        }
        Ok(false)
    }

    /// A single deletion looks at the entry after it.
    fn delete_single(&mut self, seqno: SeqNo, stripe: SeqNo, hidden: bool) -> Result<bool> {
        let next = self.step_in_key()?;
        let Some((tag, kind)) = next else {
            if self.may_hold_below() {
                self.put_tombstone(seqno, ValueKind::SingleDeletion);
                return Ok(true);
            }
            self.counts.obsolete += 1;
            return Ok(false);
        };
        if self.keep.stripes().of(tag_seqno(tag)) != stripe {
            self.put_tombstone(seqno, ValueKind::SingleDeletion);
            return Ok(true);
        }
        match kind {
            // The entry that follows says the same, and more.
            ValueKind::Deletion | ValueKind::SingleDeletion => {
                self.counts.obsolete += 1;
                Ok(false)
            }
            ValueKind::Merge | ValueKind::RangeDeletion => {
                // Single deletions are not meant for this. A plain deletion hides it all.
                self.delete_plainly(seqno, stripe, hidden)
            }
            ValueKind::Value
            | ValueKind::BlobIndex
            | ValueKind::DeletionWithTimestamp
            | ValueKind::WideColumnEntity => self.annihilate(seqno, stripe, hidden),
        }
    }

    /// Takes the value under a single deletion along with it. The input stands on the value.
    fn annihilate(&mut self, seqno: SeqNo, stripe: SeqNo, hidden: bool) -> Result<bool> {
        self.counts.input += 1;
        self.counts.obsolete += 2;
        self.pending = true;
        let Some((_, kind)) = self.step_in_key()? else {
            return Ok(false);
        };
        let is_put = !matches!(kind, ValueKind::Deletion | ValueKind::SingleDeletion);
        if is_put {
            // The key was put twice, against the rule. Readers saw no value, and must go on to see none.
            return self.delete_plainly(seqno, stripe, hidden);
        }
        Ok(false)
    }

    fn delete_plainly(&mut self, seqno: SeqNo, stripe: SeqNo, hidden: bool) -> Result<bool> {
        if hidden {
            return Ok(false);
        }
        self.keep.close(stripe);
        self.delete(seqno, stripe)
    }

    /// Collects the operands of the stripe, and applies them if their base is known.
    fn merge(&mut self, tag: u64, stripe: SeqNo) -> Result<bool> {
        let Some(operator) = self.options.merge_operator.clone() else {
            self.place = Place::Input;
            return Ok(true);
        };
        self.held.clear();
        self.held.push(tag, self.input.value());
        let end = self.collect_operands(stripe)?;
        match end {
            RunEnd::Open => self.combine_operands(&*operator),
            RunEnd::Base | RunEnd::BaseApart | RunEnd::NoValue => {
                let apart = match end {
                    RunEnd::BaseApart => Some(self.value_apart()?),
                    _ => None,
                };
                let mut operands: Vec<&[u8]> = (0..self.held.entries.len())
                    .rev()
                    .map(|index| self.held.value(index))
                    .collect();
                if drumlin_base::bug!("compaction-reorders-operands") {
                    operands.reverse();
                }
                let base = match end {
                    RunEnd::Base => Some(self.input.value()),
                    _ => apart.as_deref(),
                };
                let merged = operator
                    .full_merge(current(&self.key), base, &operands)
                    .map_err(|error| error.context("merging operands in a compaction"))?;
                self.counts.merged += operands.len() as u64;
                self.buffer = merged;
                self.held.clear();
                self.keep.close(stripe);
                self.place = Place::Buffer;
                self.settle(tag_seqno(tag), ValueKind::Value);
                return Ok(true);
            }
        }
        self.place = Place::Held;
        self.held.next = 1;
        if let Some(&(tag, _)) = self.held.entries.first() {
            self.set_tag(tag);
        }
        Ok(true)
    }

    fn collect_operands(&mut self, stripe: SeqNo) -> Result<RunEnd> {
        while let Some((tag, kind)) = self.step_in_key()? {
            let seqno = tag_seqno(tag);
            if self.keep.stripes().of(seqno) != stripe {
                return Ok(RunEnd::Open);
            }
            if self.is_covered(seqno, stripe) {
                return Ok(RunEnd::NoValue);
            }
            match kind {
                ValueKind::Merge => {
                    self.held.push(tag, self.input.value());
                    self.counts.input += 1;
                    self.pending = true;
                }
                ValueKind::Value => return Ok(RunEnd::Base),
                ValueKind::BlobIndex => return Ok(RunEnd::BaseApart),
                ValueKind::Deletion
                | ValueKind::DeletionWithTimestamp
                | ValueKind::SingleDeletion => return Ok(RunEnd::NoValue),
                ValueKind::WideColumnEntity | ValueKind::RangeDeletion => {
                    return Ok(RunEnd::Open);
                }
            }
        }
        Ok(if self.may_hold_below() {
            RunEnd::Open
        } else {
            RunEnd::NoValue
        })
    }

    /// Combines neighbours of the run where the operator can. The result has the sequence number of
    /// its newest operand: no reader tells the members of one stripe apart.
    fn combine_operands(&mut self, operator: &dyn MergeOperator) {
        let count = self.held.entries.len();
        if count < 2 {
            return;
        }
        let mut combined: Vec<(u64, Vec<u8>)> = Vec::with_capacity(count);
        for index in (0..count).rev() {
            let tag = self.held.entries.get(index).map_or(0, |&(tag, _)| tag);
            let newer = self.held.value(index);
            let merged = combined
                .last()
                .and_then(|(_, older)| operator.partial_merge(current(&self.key), older, newer));
            match (merged, combined.last_mut()) {
                (Some(merged), Some(last)) => {
                    *last = (tag, merged);
                    self.counts.merged += 1;
                }
                _ => combined.push((tag, newer.to_vec())),
            }
        }
        self.held.clear();
        for (tag, value) in combined.iter().rev() {
            self.held.push(*tag, value);
        }
    }

    /// Moves the input on; tag and kind of the entry there if it has the same user key. The input
    /// then stands on an entry not yet judged.
    fn step_in_key(&mut self) -> Result<Option<(u64, ValueKind)>> {
        if self.pending {
            self.input.next();
            self.pending = false;
        }
        if !self.input.valid() {
            self.input.status()?;
            return Ok(None);
        }
        let (user_key, tag) = split_internal(self.input.key()).ok_or_else(short_key)?;
        if !same_key(&self.options.order, user_key, current(&self.key)) {
            return Ok(None);
        }
        Ok(Some((tag, kind_of(tag)?)))
    }

    #[inline]
    fn is_covered(&mut self, seqno: SeqNo, stripe: SeqNo) -> bool {
        match &mut self.options.cover {
            None => false,
            Some(cover) => cover.covers(&self.options.order, current(&self.key), seqno, stripe),
        }
    }

    fn may_hold_below(&mut self) -> bool {
        let user_key = current(&self.key);
        self.options.below.may_hold(&self.options.order, user_key)
    }

    fn put_tombstone(&mut self, seqno: SeqNo, kind: ValueKind) {
        self.set_tag(pack_tag(seqno, kind as u8));
        self.place = Place::Nowhere;
    }

    #[inline]
    fn set_tag(&mut self, tag: u64) {
        if let Some(place) = self.key.last_chunk_mut::<TAG_BYTES>() {
            *place = tag.to_le_bytes();
        }
    }
}

/// The user key of an internal key that is known to be long enough.
#[inline]
fn current(internal: &[u8]) -> &[u8] {
    drumlin_base::key::user_key(internal)
}

#[inline]
fn same_key(order: &KeyOrder, a: &[u8], b: &[u8]) -> bool {
    match order {
        KeyOrder::Bytewise | KeyOrder::ReverseBytewise => a == b,
        KeyOrder::Custom(_) => order.compare(a, b).is_eq(),
    }
}

#[inline]
fn kind_of(tag: u64) -> Result<ValueKind> {
    let kind = ValueKind::from_byte(tag_kind(tag))?;
    if kind == ValueKind::RangeDeletion {
        return Err(Error::corruption(
            "a range deletion stands among the point entries",
        ));
    }
    Ok(kind)
}

#[cold]
fn short_key() -> Error {
    Error::corruption("internal key shorter than its tag")
}
