//! An open plain table: lookups by hash, and what cursors start from.
//!
//! A lookup that finds its key reads one line of the index and the record; one that does not, one
//! line of the index. Nothing is written but the counter of a pin, which threads do not share (see
//! [`ResidentBytes`]). Many lookups at once ask for what they will need before they need it
//! ([`PlainTable::ask`]), so that their cache misses overlap.
//!
//! Thread safety: immutable after open. The bytes live as long as the table or any value pinned in
//! it; the file's name may be removed meanwhile, its bytes may not change.

use std::ops::{ControlFlow, Range};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use drumlin_base::bytes::ResidentBytes;
use drumlin_base::key::{
    ValueKind, compare_bytes, is_same_bytes, seek_key, split_internal, tag_kind, tag_seqno,
    user_key,
};
use drumlin_base::{
    Error, KeyOrder, MemoryBudget, MemoryUse, PinnedSlice, PrefixExtractor, RangeTombstone, Result,
    SEQNO_MAX, SeqNo,
};
use drumlin_fs::RandomAccessFile;

use super::anchors::Anchors;
use super::cursor::PlainTableIter;
use super::hash_index::{HashIndex, KeyHash};
use super::open::open;
use super::record::{Record, UNIT_BYTES};
use crate::format::TableProperties;
use crate::options::{TableReadOptions, TableReaderOptions};

/// Cache lines of a record that are asked for at once: most records are no longer.
pub(super) const RECORD_LINES: usize = 3;

/// Cache lines of the index that are asked for at once: one key in ten is not in its own bucket, and
/// mostly in the next.
const INDEX_LINES: usize = 2;

/// Cache lines that are asked for at once where a walk begins: the rest follows while these are read.
const WALK_LINES: usize = 12;

/// Records of a prefix walked before a search in the order of keys is cheaper.
const PREFIX_WALK_MAX: usize = 12;

/// An open plain table. See the module for cost and thread safety.
pub struct PlainTable {
    pub(super) resident: ResidentBytes,
    /// To be read again by [`PlainTable::verify`].
    pub(super) file: Arc<dyn RandomAccessFile>,
    pub(super) path: PathBuf,
    /// Where the records end in the file.
    pub(super) records_end: usize,
    /// Point entries and different user keys, as the footer tells.
    pub(super) counts: (u64, u64),
    pub(super) keys: Option<HashIndex>,
    /// There only if `prefix` is.
    pub(super) prefixes: Option<HashIndex>,
    /// Set only when it is the extractor that the table was written with.
    pub(super) prefix: Option<Arc<dyn PrefixExtractor>>,
    pub(super) prefixes_contiguous: bool,
    pub(super) anchors: Anchors,
    pub(super) order: KeyOrder,
    pub(super) properties: TableProperties,
    pub(super) range_tombstones: Vec<RangeTombstone>,
    /// What every entry's sequence number is, in an ingested table.
    pub(super) global_seqno: Option<SeqNo>,
    pub(super) budget: Arc<MemoryBudget>,
    pub(super) resident_bytes: usize,
    pub(super) size: u64,
}

/// A value where it lies in its table.
#[derive(Clone, Copy, Debug)]
pub struct PlainValue<'a> {
    table: &'a PlainTable,
    record: Record,
}

impl<'a> PlainValue<'a> {
    /// The bytes.
    #[inline]
    pub fn bytes(&self) -> &'a [u8] {
        self.record.value(self.table.records())
    }

    /// The bytes with the file's memory kept: no copy.
    #[inline]
    pub fn pin(&self) -> PinnedSlice {
        self.table.pin(self.record.value_range())
    }
}

/// What was found out for a lookup ahead of it; see [`PlainTable::ask`].
#[derive(Clone, Copy, Debug)]
pub struct KeyHint(KeyHash);

impl KeyHint {
    /// The hint for `user_key`, in any plain table.
    #[inline]
    pub fn of(user_key: &[u8]) -> Self {
        Self(KeyHash::of(user_key))
    }

    #[inline]
    pub(super) fn hash(self) -> KeyHash {
        self.0
    }
}

impl PlainTable {
    /// Takes `file` into memory and checks all of it. Memory of our own that it takes (none for the
    /// records on a file system in memory, which are mapped) is charged to the budget.
    ///
    /// # Errors
    /// `Corruption` for damage, `NotSupported` for another version, `InvalidArgument` when the table
    /// is sorted by another order, `TooLarge` without memory for it, `Io`. Cost: a scan of the file.
    pub fn open(file: Arc<dyn RandomAccessFile>, options: TableReaderOptions) -> Result<Arc<Self>> {
        open(file, options)
    }

    /// Makes `seqno` the sequence number of all entries, of a table that was made outside a database and
    /// opened before it got one.
    pub(crate) fn number(&mut self, seqno: SeqNo) {
        self.global_seqno = Some(seqno);
    }

    /// The file up to the end of its records.
    #[inline]
    pub(super) fn records(&self) -> &[u8] {
        let file = self.resident.bytes();
        file.get(..self.records_end).unwrap_or_default()
    }

    #[inline]
    pub(super) fn pin(&self, range: Range<usize>) -> PinnedSlice {
        let pinned = self.resident.pin(range);
        pinned.unwrap_or_else(|| PinnedSlice::owned(Vec::new()))
    }

    /// Visits the versions of `user_key` with a sequence number of at most `seqno`, newest first,
    /// until `visit` breaks. Range tombstones are not consulted.
    ///
    /// # Errors
    /// `Corruption`.
    #[inline]
    pub fn get(
        &self,
        user_key: &[u8],
        seqno: SeqNo,
        visit: impl FnMut(SeqNo, ValueKind, PlainValue<'_>) -> ControlFlow<()>,
    ) -> Result<()> {
        match &self.keys {
            Some(_) => self.get_hinted(user_key, KeyHint::of(user_key), seqno, visit),
            None => self.get_in_order(user_key, seqno, visit),
        }
    }

    /// Whether it tells the records of a prefix, which then lie behind each other.
    #[inline]
    pub(super) fn knows_prefixes(&self) -> bool {
        self.prefixes_contiguous && self.prefix.is_some() && self.prefixes.is_some()
    }

    /// The first of the steps of a walk within a prefix: asks for the line of the index, and for where
    /// `user_key`, with which the walk begins, may be, or some memory beside it. `hint` is that of the
    /// prefix.
    #[inline]
    pub fn ask_prefix(&self, user_key: &[u8], hint: KeyHint) {
        if let Some(prefixes) = &self.prefixes {
            self.prefetch_index(prefixes.home_at(hint.0));
        }
        self.guess(user_key);
    }

    /// The second step: asks for the first records of the prefix, if there are any.
    #[inline]
    pub fn ask_prefix_records(&self, hint: KeyHint) {
        let Some(prefixes) = &self.prefixes else {
            return;
        };
        if let Some(place) = prefixes.places(self.resident.bytes(), hint.0).next() {
            self.resident
                .prefetch(place as usize * UNIT_BYTES, WALK_LINES);
        }
    }

    /// The last step: as [`PlainTable::seek`]; `None` when no record is of the target's prefix.
    ///
    /// Requires: [`PlainTable::knows_prefixes`]; `prefix` is that of `target`, which begins with it, and
    /// `hint` that of `prefix`.
    #[inline]
    pub(super) fn seek_within(
        &self,
        target: &[u8],
        prefix: &[u8],
        hint: KeyHint,
    ) -> Result<Option<usize>> {
        let known = self.prefix.as_ref().zip(self.prefixes.as_ref());
        let Some((by, prefixes)) = known else {
            return Ok(None);
        };
        for place in prefixes.places(self.resident.bytes(), hint.0) {
            let at = place as usize * UNIT_BYTES;
            let record = self.record(at)?;
            let first = user_key(record.key(self.records()));
            if by
                .prefix(first)
                .is_some_and(|own| is_same_bytes(own, prefix))
            {
                return match self.walk_to(at, target, PREFIX_WALK_MAX)? {
                    None => self.seek_in_order(target).map(Some),
                    found => Ok(found),
                };
            }
        }
        Ok(None)
    }

    /// The first of the steps of a lookup among many: asks for the line of the index.
    #[inline]
    pub fn ask(&self, hint: KeyHint) {
        self.prefetch_index(self.index_at(hint));
    }

    /// Where in the file a lookup looks first, for [`PlainTable::prefetch_index`].
    #[inline]
    pub fn index_at(&self, hint: KeyHint) -> usize {
        self.keys.as_ref().map_or(0, |keys| keys.home_at(hint.0))
    }

    /// Asks for the lines of the index at `at`. To ask for many, call this in a loop that does nothing
    /// else: the processor sees few instructions ahead while it waits for an address to be translated.
    #[inline]
    pub fn prefetch_index(&self, at: usize) {
        self.resident.prefetch(at, INDEX_LINES);
    }

    /// Asks for the record of `user_key`, or for some memory beside it, where keys tell about where it
    /// is: for a lookup that has nothing else to do while the index's line comes.
    #[inline]
    pub fn guess(&self, user_key: &[u8]) {
        match self.anchors.guess(user_key) {
            Some((at, 1)) => self.resident.prefetch(at, 1),
            Some((at, _)) => self.resident.prefetch(at, RECORD_LINES),
            None => {}
        }
    }

    /// The second step: where the record lies, if there is one; an end of the file where that cannot
    /// be told. `None` when the key is not there. For [`PlainTable::prefetch_record`].
    #[inline]
    pub fn record_at(&self, hint: KeyHint) -> Option<usize> {
        let Some(keys) = &self.keys else {
            return Some(0);
        };
        let place = keys.places(self.resident.bytes(), hint.0).next()?;
        Some(place as usize * UNIT_BYTES)
    }

    /// Asks for the record at `at`; to be called as [`PlainTable::prefetch_index`].
    #[inline]
    pub fn prefetch_record(&self, at: usize) {
        self.resident.prefetch(at, RECORD_LINES);
    }

    /// The second step as a whole: asks for the record, if there is one. False when the key is not
    /// there.
    #[inline]
    pub fn ask_record(&self, hint: KeyHint) -> bool {
        let at = self.record_at(hint);
        if let Some(at) = at {
            self.prefetch_record(at);
        }
        at.is_some()
    }

    /// The last step: as [`PlainTable::get`].
    ///
    /// Requires: `hint` is the one of `user_key`.
    ///
    /// # Errors
    /// `Corruption`.
    #[inline]
    pub fn get_hinted(
        &self,
        user_key: &[u8],
        hint: KeyHint,
        seqno: SeqNo,
        visit: impl FnMut(SeqNo, ValueKind, PlainValue<'_>) -> ControlFlow<()>,
    ) -> Result<()> {
        let Some(keys) = &self.keys else {
            return self.get_in_order(user_key, seqno, visit);
        };
        let Some(seqno) = self.stored_seqno(seqno) else {
            return Ok(());
        };
        for place in keys.places(self.resident.bytes(), hint.0) {
            let at = place as usize * UNIT_BYTES;
            // Asked for at once: the value lies behind the key.
            self.resident.prefetch(at, RECORD_LINES);
            let record = self.record(at)?;
            if is_of(record.key(self.records()), user_key) {
                return self.visit_versions(record, user_key, seqno, visit);
            }
        }
        Ok(())
    }

    /// A lookup without hashes: under an order by which different bytes may be equal.
    fn get_in_order(
        &self,
        user_key: &[u8],
        seqno: SeqNo,
        mut visit: impl FnMut(SeqNo, ValueKind, PlainValue<'_>) -> ControlFlow<()>,
    ) -> Result<()> {
        let Some(seqno) = self.stored_seqno(seqno) else {
            return Ok(());
        };
        let mut at = self.seek_in_order(&seek_key(user_key, seqno))?;
        while at < self.records_end {
            let record = self.record(at)?;
            let (found, tag) = split_internal(record.key(self.records())).unwrap_or((&[], 0));
            if self.order.compare(found, user_key).is_ne() || self.show(record, tag, &mut visit)? {
                break;
            }
            at = record.next_at();
        }
        Ok(())
    }

    /// Visits `record`, the newest of its user key, and those that follow it.
    #[inline]
    fn visit_versions(
        &self,
        mut record: Record,
        user_key: &[u8],
        seqno: SeqNo,
        mut visit: impl FnMut(SeqNo, ValueKind, PlainValue<'_>) -> ControlFlow<()>,
    ) -> Result<()> {
        loop {
            let (_, tag) = split_internal(record.key(self.records())).unwrap_or((&[], 0));
            if tag_seqno(tag) <= seqno && self.show(record, tag, &mut visit)? {
                return Ok(());
            }
            if record.next_at() >= self.records_end {
                return Ok(());
            }
            record = self.record(record.next_at())?;
            if !is_of(record.key(self.records()), user_key) {
                return Ok(());
            }
        }
    }

    /// Whether the caller wants no further version.
    #[inline(always)]
    fn show(
        &self,
        record: Record,
        tag: u64,
        visit: &mut impl FnMut(SeqNo, ValueKind, PlainValue<'_>) -> ControlFlow<()>,
    ) -> Result<bool> {
        let kind =
            ValueKind::from_byte(tag_kind(tag)).map_err(|error| error.with_file(&self.path))?;
        let seqno = self.global_seqno.unwrap_or(tag_seqno(tag));
        Ok(visit(seqno, kind, self.value_of(record)).is_break())
    }

    #[inline(always)]
    pub(super) fn value_of(&self, record: Record) -> PlainValue<'_> {
        PlainValue {
            table: self,
            record,
        }
    }

    /// The sequence number to look for in the file so that the caller sees what `seqno` may see;
    /// `None` when that is nothing.
    #[inline]
    fn stored_seqno(&self, seqno: SeqNo) -> Option<SeqNo> {
        match self.global_seqno {
            None => Some(seqno),
            Some(global) => (seqno >= global).then_some(SEQNO_MAX),
        }
    }

    /// The record that begins at `at`.
    #[inline]
    pub(super) fn record(&self, at: usize) -> Result<Record> {
        Record::at(self.records(), at).ok_or_else(|| self.damaged(at))
    }

    #[cold]
    fn damaged(&self, at: usize) -> Error {
        Error::corruption("no record where the index says there is one")
            .with_file(&self.path)
            .with_offset(at as u64)
    }

    /// Where the first record at or after `target`, an internal key, begins; the end of the records
    /// if there is none.
    #[inline]
    pub(super) fn seek(&self, target: &[u8]) -> Result<usize> {
        match self.seek_by_prefix(target)? {
            Some(at) => Ok(at),
            None => self.seek_in_order(target),
        }
    }

    fn seek_in_order(&self, target: &[u8]) -> Result<usize> {
        let anchor = self.anchors.find(&self.order, self.records(), target);
        let Some(at) = self.anchors.at(anchor) else {
            return Ok(self.records_end);
        };
        self.resident
            .prefetch(at, super::anchors::ANCHOR_BYTES / 64);
        self.walk_to(at, target, usize::MAX)
            .map(|found| found.unwrap_or(self.records_end))
    }

    /// As [`PlainTable::seek`], from the first record of the target's prefix on. `None` when the
    /// table knows no such prefix, or the record is not near its first.
    #[inline]
    fn seek_by_prefix(&self, target: &[u8]) -> Result<Option<usize>> {
        let user_key = user_key(target);
        let known = self.prefix.as_ref().zip(self.prefixes.as_ref());
        let Some((by, prefixes)) = known.filter(|_| self.prefixes_contiguous) else {
            return Ok(None);
        };
        let Some(prefix) = by.prefix(user_key).filter(|p| user_key.starts_with(p)) else {
            return Ok(None);
        };
        for place in prefixes.places(self.resident.bytes(), KeyHash::of(prefix)) {
            let at = place as usize * UNIT_BYTES;
            self.resident.prefetch(at, RECORD_LINES + 1);
            let record = self.record(at)?;
            let first = drumlin_base::key::user_key(record.key(self.records()));
            if by.prefix(first) == Some(prefix) {
                return self.walk_to(at, target, PREFIX_WALK_MAX);
            }
        }
        Ok(None)
    }

    /// Where the first record at or after `target` begins, from the record at `at` on, which is not
    /// after it or the first there could be. `None` when there is none among `max` records.
    #[inline]
    fn walk_to(&self, mut at: usize, target: &[u8], max: usize) -> Result<Option<usize>> {
        let records = self.records();
        for _ in 0..max {
            if at >= self.records_end {
                return Ok(Some(self.records_end));
            }
            let record = self.record(at)?;
            if is_at_or_after(&self.order, record.key(records), target) {
                return Ok(Some(at));
            }
            at = record.next_at();
        }
        Ok(None)
    }

    /// Whether `user_key` may be in the table: by its fingerprint alone.
    pub fn may_contain(&self, user_key: &[u8]) -> bool {
        let places = |keys: &HashIndex| {
            let mut places = keys.places(self.resident.bytes(), KeyHash::of(user_key));
            places.next().is_some()
        };
        self.keys.as_ref().is_none_or(places)
    }

    /// Whether a key with `key`'s prefix may be in the table. True when it cannot tell: without
    /// prefixes, with another extractor, or when `key` has none.
    pub fn may_contain_prefix(&self, key: &[u8]) -> bool {
        let known = self.prefix.as_ref().zip(self.prefixes.as_ref());
        let Some((by, prefixes)) = known else {
            return true;
        };
        by.prefix(key).is_none_or(|prefix| {
            let mut places = prefixes.places(self.resident.bytes(), KeyHash::of(prefix));
            places.next().is_some()
        })
    }

    /// A cursor over the table's entries, not yet positioned.
    pub fn iter(self: &Arc<Self>, _options: TableReadOptions) -> PlainTableIter {
        PlainTableIter::new(Arc::clone(self))
    }

    /// Every range tombstone in the table, as stored: by begin ascending, then newest first.
    #[inline]
    pub fn range_tombstones(&self) -> &[RangeTombstone] {
        &self.range_tombstones
    }

    /// What the table says about itself.
    pub fn properties(&self) -> &TableProperties {
        &self.properties
    }

    /// About where in the file the entries at or after `internal_key` begin.
    pub fn approximate_offset(&self, internal_key: &[u8]) -> u64 {
        self.seek_in_order(internal_key).unwrap_or(self.records_end) as u64
    }

    /// At most `count_max` user keys that cut the table's records into parts of about one size,
    /// ascending.
    pub fn key_samples(&self, count_max: usize) -> Vec<Vec<u8>> {
        let step = self.anchors.len().div_ceil(count_max + 1).max(1);
        let cuts = (step..self.anchors.len()).step_by(step);
        let keys = cuts.filter_map(|at| Record::at(self.records(), self.anchors.at(at)?));
        keys.map(|record| user_key(record.key(self.records())).to_vec())
            .collect()
    }

    /// The file's size in bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Memory of this process that the table takes while it is open, charged to the budget as
    /// `TableMeta`: the copy of a file of a disk, not a mapping of one in memory.
    pub fn resident_bytes(&self) -> usize {
        self.resident_bytes
    }

    /// The order of the table's keys.
    pub fn order(&self) -> &KeyOrder {
        &self.order
    }

    /// Point entries and different user keys, as the footer tells.
    pub(crate) fn counts(&self) -> (u64, u64) {
        self.counts
    }

    /// Where it lies, for messages.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether a lookup meets an entry of `user_key`.
    pub(crate) fn holds(&self, user_key: &[u8]) -> Result<bool> {
        let mut found = false;
        self.get(user_key, SEQNO_MAX, |_, _, _| {
            found = true;
            ControlFlow::Break(())
        })?;
        Ok(found)
    }

    /// The same file taken into memory and checked again.
    pub(crate) fn reopen(&self) -> Result<Arc<Self>> {
        let budget = MemoryBudget::new(usize::MAX / 2);
        let cache = crate::cache::BlockCache::new(Arc::clone(&budget));
        let mut options = TableReaderOptions::new(self.path.clone(), 0, cache, budget);
        options.order = self.order.clone();
        options.prefix = self.prefix.clone();
        options.largest_seqno = self.global_seqno;
        Self::open(Arc::clone(&self.file), options)
    }
}

/// Whether the internal key `found` is of `user_key`.
#[inline]
fn is_of(found: &[u8], user_key: &[u8]) -> bool {
    split_internal(found).is_some_and(|(found, _)| found == user_key)
}

#[inline]
fn is_at_or_after(order: &KeyOrder, key: &[u8], target: &[u8]) -> bool {
    match order {
        KeyOrder::Bytewise => {
            let (key, tag) = split_internal(key).unwrap_or((key, 0));
            let (wanted, wanted_tag) = split_internal(target).unwrap_or((target, 0));
            let ordering = compare_bytes(key, wanted);
            ordering.is_gt() || (tag <= wanted_tag && ordering.is_eq())
        }
        _ => drumlin_base::key::compare_internal(order, key, target).is_ge(),
    }
}

impl Drop for PlainTable {
    fn drop(&mut self) {
        self.budget
            .release(MemoryUse::TableMeta, self.resident_bytes);
    }
}

impl std::fmt::Debug for PlainTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PlainTable")
            .field("path", &self.path)
            .field("size", &self.size)
            .finish_non_exhaustive()
    }
}
