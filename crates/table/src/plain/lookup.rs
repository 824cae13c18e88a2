//! Lookups of one key.
//!
//! The idea: a hash leads to one cache line of the index, the index to the record.
//!
//! ```text
//! key    = hash(user key)
//! bucket = index[home(key)]                      prefetch       1st cache miss
//! for each place in bucket with key's fingerprint
//!     record = records[place]                    find_record    2nd cache miss
//!     if record is of the user key: newest version at or before seqno, and those behind it
//! ```
//!
//! Tricks, and the gain of each:
//!
//! - *Prefetching by hash.* The index line follows from the key alone, so a caller with several tables or
//!   several keys prefetches all lines before it reads the first ([`PlainTable::prefetch`], [`PlainProbe`]):
//!   it waits once.
//! - *A guess.* If keys are numbers, the record's place follows from the key as well
//!   ([`super::guess`]): both cache misses overlap ([`PlainTable::prefetch_guess`]).
//! - *The short way* ([`PlainTable::newest`]) for one key whose newest version is visible and a value, in a
//!   record of short lengths, in a table whose entries have their own sequence numbers. It makes no call and
//!   returns in registers: while a core waits for a record it sees some four hundred instructions ahead, and
//!   so reaches the prefetches of the next lookup. All else is left to [`PlainTable::get`].

use std::ops::ControlFlow;

use drumlin_base::key::{ValueKind, is_same_bytes, seek_key, tag_kind, tag_seqno};
use drumlin_base::{PinnedSlice, Result, SEQNO_MAX, SeqNo};

use super::hash_index::{INDEX_LINES, KeyHash};
use super::record::{RECORD_LINES, Record, offset};
use super::table::PlainTable;

/// The hash of a user key, or of a prefix; the same for every plain table.
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

/// A value in its table.
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

    /// The bytes with the file's memory pinned: no copy.
    #[inline]
    pub fn pin(&self) -> PinnedSlice {
        self.table.pin(self.record.value_range())
    }

    /// As [`PlainValue::pin`], into `slice`.
    #[inline(always)]
    pub fn pin_to(&self, slice: &mut PinnedSlice) {
        if !slice.copy_small(self.bytes()) {
            *slice = self.pin();
        }
    }
}

/// The newest version of a key in a table.
#[derive(Clone, Copy, Debug)]
pub enum Newest<'a> {
    /// Nothing.
    Absent,
    /// This value.
    Value(PlainValue<'a>),
    /// Left to [`PlainProbe::get`].
    Unusual,
}

impl PlainTable {
    /// Prefetches the index's cache lines for the key of `hint`.
    #[inline]
    pub fn prefetch(&self, hint: KeyHint) {
        self.probe(hint).prefetch_index();
    }

    /// Prefetches the record of `user_key`, or memory near it, where the key tells about where it is. For a
    /// lookup with nothing else to do while the index's line arrives.
    #[inline]
    pub fn prefetch_guess(&self, user_key: &[u8]) {
        match self.anchors.guess(user_key) {
            Some((at, 1)) => self.resident.prefetch(at, 1),
            Some((at, _)) => self.resident.prefetch(at, RECORD_LINES),
            None => {}
        }
    }

    /// The newest version of `user_key` whose sequence number is at most `seqno`, if it can be told on the
    /// short way.
    ///
    /// Requires: `hint` is the one of `user_key`.
    #[inline(always)]
    pub fn newest(&self, user_key: &[u8], hint: KeyHint, seqno: SeqNo) -> Newest<'_> {
        let (Some(keys), None) = (&self.keys, self.global_seqno) else {
            return Newest::Unusual;
        };
        let records = self.records();
        for place in keys.places(self.resident.bytes(), hint.hash()) {
            let at = offset(place);
            // All its lines at once: the value is behind the key.
            self.resident.prefetch(at, RECORD_LINES);
            let Some(record) = Record::short_at(records, at) else {
                return Newest::Unusual;
            };
            let (found, tag) = record.key_parts(records);
            if !is_same_bytes(found, user_key) {
                continue;
            }
            if tag_kind(tag) != ValueKind::Value as u8 || tag_seqno(tag) > seqno {
                return Newest::Unusual;
            }
            return Newest::Value(self.value_of(record));
        }
        Newest::Absent
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
            Some(_) => self
                .probe(KeyHint::of(user_key))
                .get(user_key, seqno, visit),
            None => self.get_in_order(user_key, seqno, visit),
        }
    }

    /// The lookup of the key of `hint`, to be taken in stages.
    #[inline]
    pub fn probe(&self, hint: KeyHint) -> PlainProbe<'_> {
        let at = self.keys.as_ref().map_or(0, |keys| keys.home_at(hint.0));
        PlainProbe {
            table: self,
            hint,
            at,
        }
    }

    /// Whether `user_key` may be in the table: by its fingerprint alone.
    pub fn may_contain(&self, user_key: &[u8]) -> bool {
        self.probe(KeyHint::of(user_key)).find_record()
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

    /// A lookup without hashes: under an order in which keys of different bytes may be equal.
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
            let (found, tag) = record.key_parts(self.records());
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
            let (_, tag) = record.key_parts(self.records());
            if tag_seqno(tag) <= seqno && self.show(record, tag, &mut visit)? {
                return Ok(());
            }
            if record.next_at() >= self.records_end {
                return Ok(());
            }
            record = self.record(record.next_at())?;
            if record.key_parts(self.records()).0 != user_key {
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
    fn value_of(&self, record: Record) -> PlainValue<'_> {
        PlainValue {
            table: self,
            record,
        }
    }

    /// The sequence number to look for in the file, for a caller that reads at `seqno`; `None` when
    /// it sees no entry.
    #[inline]
    fn stored_seqno(&self, seqno: SeqNo) -> Option<SeqNo> {
        match self.global_seqno {
            None => Some(seqno),
            Some(global) => (seqno >= global).then_some(SEQNO_MAX),
        }
    }
}

/// A lookup in stages, each of which a batch takes with all its keys before the next.
///
/// ```text
/// for each key     probe            a multiplication
/// for each probe   prefetch_index
/// for each probe   find_record      reads the index
/// for each probe   prefetch_record
/// for each probe   newest, or get   reads the record
/// ```
///
/// Each prefetch is a loop of its own that does nothing else, because the core sees few instructions ahead
/// while it waits for an address to be translated.
#[derive(Clone, Copy, Debug)]
pub struct PlainProbe<'a> {
    table: &'a PlainTable,
    hint: KeyHint,
    /// Where in the table's file the next stage reads.
    at: usize,
}

impl<'a> PlainProbe<'a> {
    /// The table.
    #[inline]
    pub fn table(&self) -> &'a PlainTable {
        self.table
    }

    /// The hint of the key.
    #[inline]
    pub fn hint(&self) -> KeyHint {
        self.hint
    }

    /// Prefetches the index's cache lines.
    #[inline]
    pub fn prefetch_index(&self) {
        self.table.resident.prefetch(self.at, INDEX_LINES);
    }

    /// Finds the record's place by the key's fingerprint. False when the key is not in the table; true for a
    /// table without an index, where it is not known.
    #[inline]
    pub fn find_record(&mut self) -> bool {
        let Some(keys) = &self.table.keys else {
            return true;
        };
        let mut places = keys.places(self.table.resident.bytes(), self.hint.0);
        let place = places.next();
        if let Some(place) = place {
            self.at = offset(place);
        }
        place.is_some()
    }

    /// Prefetches the record that [`PlainProbe::find_record`] found.
    #[inline]
    pub fn prefetch_record(&self) {
        self.table.resident.prefetch(self.at, RECORD_LINES);
    }

    /// The last stage: as [`PlainTable::get`].
    ///
    /// Requires: the hint is the one of `user_key`.
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
        let table = self.table;
        let Some(keys) = &table.keys else {
            return table.get_in_order(user_key, seqno, visit);
        };
        let Some(seqno) = table.stored_seqno(seqno) else {
            return Ok(());
        };
        for place in keys.places(table.resident.bytes(), self.hint.0) {
            let at = offset(place);
            // All its lines at once: the value is behind the key.
            table.resident.prefetch(at, RECORD_LINES);
            let record = table.record(at)?;
            if record.key_parts(table.records()).0 == user_key {
                return table.visit_versions(record, user_key, seqno, visit);
            }
        }
        Ok(())
    }
}
