//! Anchors: places of records, one about every [`ANCHOR_BYTES`] bytes, to find places in the order
//! of keys.
//!
//! In memory each has a number beside it: the eight bytes of its key behind the prefix that all keys of the
//! table share. So a search reads a few cache lines of numbers and compares whole keys only if eight bytes
//! do not distinguish them.

use std::cmp::Ordering;

use drumlin_base::coding::fixed32_at;
use drumlin_base::key::{compare_internal, user_key, user_key_prefix};
use drumlin_base::{Error, KeyOrder, Result};

use super::guess::Guess;
use super::record::{Record, UNIT_BYTES, offset};
use crate::block::common_prefix;
use crate::block::sorted_words::{SAMPLE_EVERY, lower_bound};

/// A record becomes an anchor when this many bytes have passed since the last.
pub(super) const ANCHOR_BYTES: usize = 1024;

/// Anchors at most this far apart are not checked when a table is opened: a lookup may read so much. Only long
/// records put anchors farther apart.
const NEAR_BYTES: usize = 8 * ANCHOR_BYTES;

/// The anchors of an open table.
///
/// Invariant: `prefixes` is as long as `places`, or empty; there is an anchor if there is a record, and
/// the first is the first record.
#[derive(Debug)]
pub(super) struct Anchors {
    /// In [`UNIT_BYTES`].
    places: Vec<u32>,
    /// The bytes that every key of the table begins with.
    common: Vec<u8>,
    /// Empty under a user's own order.
    prefixes: Vec<u64>,
    samples: Vec<u64>,
    guess: Option<Guess>,
}

impl Anchors {
    /// Reads the section `stored`, and the keys it refers to in `records`, which have `count` of them.
    ///
    /// # Errors
    /// `Corruption` when the places do not ascend, name no records, or are so far apart that lookups would take
    /// long; or when the first is not `first`.
    pub(super) fn read(
        order: &KeyOrder,
        stored: &[u8],
        records: &[u8],
        first: usize,
        count: usize,
    ) -> Result<Self> {
        let damaged = || Error::corruption("damaged anchors of a plain table");
        let places: Vec<u32> = (0..stored.len() / 4)
            .map_while(|index| fixed32_at(stored, 4 * index))
            .collect();
        let begins = places.first().map(|place| offset(*place));
        let expected = (records.len() > first).then_some(first);
        if !stored.len().is_multiple_of(4)
            || begins != expected
            || !places.is_sorted_by(|a, b| a < b)
            || !are_dense(&places, records)
        {
            return Err(damaged());
        }
        let mut keys = Vec::with_capacity(places.len());
        for place in &places {
            let record = Record::at(records, offset(*place)).ok_or_else(damaged)?;
            keys.push(user_key(record.key(records)));
        }
        let last = last_record(&places, records).ok_or_else(damaged)?;
        let mut anchors = Self {
            places: Vec::new(),
            common: Vec::new(),
            prefixes: Vec::new(),
            samples: Vec::new(),
            guess: None,
        };
        if let (Some(first), Some(last)) = (keys.first(), last) {
            let shared = common_prefix(first, user_key(last.key(records)));
            let (common, _) = first.split_at(shared);
            anchors.common = common.to_vec();
        }
        if !matches!(order, KeyOrder::Custom(_)) {
            let prefixes = keys.iter().map(|key| anchors.prefix(order, key));
            anchors.prefixes = prefixes.collect::<Option<_>>().ok_or_else(damaged)?;
            let samples = anchors.prefixes.iter().step_by(SAMPLE_EVERY);
            anchors.samples = samples.copied().collect();
        }
        if matches!(order, KeyOrder::Bytewise) {
            anchors.guess = Guess::new(&keys, count, &places);
        }
        anchors.places = places;
        Ok(anchors)
    }

    /// Eight bytes of a key as a number that ascends with `order`; `None` when it does not begin as
    /// the table's keys do.
    #[inline]
    fn prefix(&self, order: &KeyOrder, user_key: &[u8]) -> Option<u64> {
        let rest = user_key.strip_prefix(self.common.as_slice())?;
        let prefix = user_key_prefix(rest);
        Some(match order {
            KeyOrder::ReverseBytewise => !prefix,
            _ => prefix,
        })
    }

    /// Number of anchors.
    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    /// Where the record of anchor `index` begins.
    #[inline]
    pub(super) fn at(&self, index: usize) -> Option<usize> {
        self.places.get(index).map(|place| offset(*place))
    }

    /// The last anchor whose record begins before `at`.
    pub(super) fn before(&self, at: usize) -> Option<usize> {
        let index = self.places.partition_point(|place| offset(*place) < at);
        index.checked_sub(1)
    }

    /// The last anchor whose key is not after `target`, an internal key; the first one when all are.
    #[inline]
    pub(super) fn find(&self, order: &KeyOrder, records: &[u8], target: &[u8]) -> usize {
        let (from, to) = match self.prefix(order, user_key(target)) {
            Some(prefix) if !self.prefixes.is_empty() => {
                let from = lower_bound(&self.prefixes, &self.samples, prefix);
                let to = match (
                    self.prefixes.get(from) == Some(&prefix),
                    prefix.checked_add(1),
                ) {
                    (false, _) => from,
                    (true, None) => self.prefixes.len(),
                    (true, Some(next)) => lower_bound(&self.prefixes, &self.samples, next),
                };
                (from, to)
            }
            _ => (0, self.places.len()),
        };
        // None where the prefixes do not ascend, which only a damaged table's do not.
        let ties = self.places.get(from..to).unwrap_or_default();
        let not_after = ties.partition_point(|place| {
            let record = Record::at(records, offset(*place));
            let record = record.expect("checked when the table was opened");
            compare_internal(order, record.key(records), target) != Ordering::Greater
        });
        (from + not_after).saturating_sub(1)
    }

    /// Where the record of `user_key` may well begin, in tables whose keys tell, and how many cache
    /// lines are worth asking for there.
    #[inline]
    pub(super) fn guess(&self, user_key: &[u8]) -> Option<(usize, usize)> {
        let guess = self.guess.as_ref()?;
        let place = guess.place(user_key)?;
        Some((place as usize * UNIT_BYTES, guess.lines()))
    }

    /// Memory it takes.
    pub(super) fn resident_bytes(&self) -> usize {
        let guess = self.guess.as_ref().map_or(0, Guess::resident_bytes);
        let words = self.prefixes.len() + self.samples.len();
        self.places.len() * 4 + words * 8 + self.common.len() + guess
    }
}

/// Whether no record between two of `places` that are far apart, or behind the last, should have been one too.
fn are_dense(places: &[u32], records: &[u8]) -> bool {
    let ends = places.iter().skip(1).map(|place| offset(*place));
    let mut spans = places.iter().zip(ends.chain([records.len()]));
    spans.all(|(place, end)| {
        let start = offset(*place);
        let Some(gap) = end.checked_sub(start) else {
            return false;
        };
        let mut at = start;
        while gap > NEAR_BYTES && at < end && at - start < ANCHOR_BYTES {
            match Record::at(records, at) {
                Some(record) => at = record.next_at(),
                None => return false,
            }
        }
        // The first record that is far enough is where the next anchor is.
        gap <= NEAR_BYTES || at >= end
    })
}

/// The last record, found from the last anchor on; `Some(None)` when there is no anchor, `None` for
/// damage.
#[expect(clippy::option_option, reason = "damage and emptiness are two things")]
fn last_record(places: &[u32], records: &[u8]) -> Option<Option<Record>> {
    let Some(place) = places.last() else {
        return Some(None);
    };
    let mut record = Record::at(records, offset(*place))?;
    while record.next_at() < records.len() {
        record = Record::at(records, record.next_at())?;
    }
    Some(Some(record))
}

#[cfg(test)]
mod tests {
    use drumlin_base::ValueKind;
    use drumlin_base::key::internal_key;

    use super::super::record::append_record;
    use super::*;

    /// Records with values of these lengths, and the places of the anchors that belong to them.
    fn records(lengths: &[usize]) -> (Vec<u8>, Vec<u32>) {
        let (mut bytes, mut places) = (Vec::new(), Vec::<u32>::new());
        for (number, len) in lengths.iter().enumerate() {
            let is_far = |place: &u32| bytes.len() - offset(*place) >= ANCHOR_BYTES;
            if places.last().is_none_or(is_far) {
                places.push((bytes.len() / UNIT_BYTES) as u32);
            }
            let key = (number as u64).to_be_bytes();
            let key = internal_key(&key, 0, ValueKind::Value);
            append_record(&mut bytes, &key, &vec![b'v'; *len]);
        }
        (bytes, places)
    }

    fn read(bytes: &[u8], places: &[u32]) -> Result<Anchors> {
        let stored: Vec<u8> = places.iter().flat_map(|it| it.to_le_bytes()).collect();
        Anchors::read(&KeyOrder::Bytewise, &stored, bytes, 0, 1)
    }

    #[test]
    fn anchors_that_are_left_out_are_missed_before_lookups_take_long() {
        let mut lengths = vec![30; 3000];
        lengths[70] = 100_000;
        lengths[1500] = 9_000;
        lengths[2999] = 50_000;
        let (bytes, places) = records(&lengths);
        assert!(read(&bytes, &places).is_ok());
        let beyond = [&places[..], &[bytes.len() as u32]].concat();
        assert!(read(&bytes, &beyond).is_err());
        for left in [1, places.len() / 3, places.len() / 2, places.len()] {
            let few: Vec<u32> = places.iter().copied().take(left).collect();
            let is_whole = left == places.len();
            assert_eq!(read(&bytes, &few).is_ok(), is_whole, "{left}");
        }
        for gap in 0..places.len() - 40 {
            let mut fewer = places.clone();
            fewer.drain(gap + 1..gap + 20);
            let error = read(&bytes, &fewer).expect_err("more than 8 KiB are left out");
            assert!(error.is_corruption());
        }
    }
}
