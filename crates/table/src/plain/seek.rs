//! Where a walk begins: the first record at or after a key.
//!
//! ```text
//! anchor = the last anchor not after the target      a search in a sorted array of key prefixes
//! walk from its record to the first at or after the target
//! ```
//!
//! Where prefixes are indexed and the records of each are contiguous, a seek within a prefix looks the prefix
//! up by its hash instead and walks from its first record: one cache line of the index and the record, however
//! large the table is. A prefix of more than [`PREFIX_WALK_MAX`] records before the target is searched by
//! anchors after all.

use drumlin_base::key::{compare_bytes, compare_internal, is_same_bytes, split_internal, user_key};
use drumlin_base::{KeyOrder, Result};

use super::anchors::ANCHOR_BYTES;
use super::hash_index::{INDEX_LINES, KeyHash};
use super::record::{RECORD_LINES, offset};
use super::table::PlainTable;

/// Cache lines that are prefetched where a walk within a prefix begins: the rest follows while these are read.
const WALK_LINES: usize = 12;

/// Records of a prefix walked before a search in the order of keys is cheaper.
const PREFIX_WALK_MAX: usize = 12;

impl PlainTable {
    /// Where the first record at or after `target`, an internal key, begins; the end of the records
    /// if there is none.
    #[inline]
    pub(super) fn seek(&self, target: &[u8]) -> Result<usize> {
        match self.seek_by_prefix(target)? {
            Some(at) => Ok(at),
            None => self.seek_in_order(target),
        }
    }

    pub(super) fn seek_in_order(&self, target: &[u8]) -> Result<usize> {
        let anchor = self.anchors.find(&self.order, self.records(), target);
        let Some(at) = self.anchors.at(anchor) else {
            return Ok(self.records_end);
        };
        self.resident.prefetch(at, ANCHOR_BYTES / 64);
        let found = self.walk_to(at, target, usize::MAX)?;
        Ok(found.expect("a walk without a bound ends at a record or behind the last"))
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
            let at = offset(place);
            self.resident.prefetch(at, RECORD_LINES + 1);
            let record = self.record(at)?;
            let first = record.key_parts(self.records()).0;
            if by.prefix(first) == Some(prefix) {
                return self.walk_to(at, target, PREFIX_WALK_MAX);
            }
        }
        Ok(None)
    }

    /// Whether it indexes prefixes, and the records of each are contiguous.
    #[inline]
    pub(super) fn knows_prefixes(&self) -> bool {
        self.prefixes_contiguous && self.prefix.is_some() && self.prefixes.is_some()
    }

    /// First stage of a walk within the prefix of `hash`: prefetches the prefix index's line, and the place
    /// where `user_key`, with which the walk begins, may be.
    #[inline]
    pub(super) fn prefetch_prefix(&self, user_key: &[u8], hash: KeyHash) {
        if let Some(prefixes) = &self.prefixes {
            let home = prefixes.home_at(hash);
            self.resident.prefetch(home, INDEX_LINES);
        }
        self.prefetch_guess(user_key);
    }

    /// Second stage: prefetches the first records of the prefix, if there are any.
    #[inline]
    pub(super) fn prefetch_prefix_records(&self, hash: KeyHash) {
        let Some(prefixes) = &self.prefixes else {
            return;
        };
        if let Some(place) = prefixes.places(self.resident.bytes(), hash).next() {
            self.resident.prefetch(offset(place), WALK_LINES);
        }
    }

    /// Last stage: as [`PlainTable::seek`]; `None` when no record is of the target's prefix.
    ///
    /// Requires: [`PlainTable::knows_prefixes`]; `prefix` is that of `target`, which begins with it, and
    /// `hash` that of `prefix`.
    #[inline]
    pub(super) fn seek_within(
        &self,
        target: &[u8],
        prefix: &[u8],
        hash: KeyHash,
    ) -> Result<Option<usize>> {
        let known = self.prefix.as_ref().zip(self.prefixes.as_ref());
        let (by, prefixes) = known.expect("the caller asked whether prefixes are known");
        for place in prefixes.places(self.resident.bytes(), hash) {
            let at = offset(place);
            let record = self.record(at)?;
            let first = record.key_parts(self.records()).0;
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

    /// The place of the first record at or after `target`, from the record at `at` on, which is not
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

    /// About where in the file the entries at or after `internal_key` begin.
    pub fn approximate_offset(&self, internal_key: &[u8]) -> u64 {
        // Behind the records where they are damaged: an estimate reports no error.
        self.seek_in_order(internal_key).unwrap_or(self.records_end) as u64
    }
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
        _ => compare_internal(order, key, target).is_ge(),
    }
}
