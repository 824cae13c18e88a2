//! How many keys of a table come before a key: counts at every few keys, learned by reading the table once.
//!
//! Invariant: a sample is a user key, and its counts are of all user keys before it. So a rank is a binary search and a
//! walk over few entries, in tables of every format.
//!
//! A block-based table also tells where the samples lie. There the first entry of each block is one, so that no walk
//! leaves its block: it is fetched by its number and walked from the sample on ([`BlockTable::visit_before`]), where a
//! seek would search the index and the block, and a cursor would rebuild every key.

use drumlin_base::budget::Charge;
use drumlin_base::key::{seek_key, user_key_prefix};
use drumlin_base::{InternalIterator, KeyOrder, Result, SEQNO_MAX, SeqNo};
use drumlin_table::{BlockTable, Place, Table, TableIter, TableReadOptions, sorted_words};

use super::key_walk::{KeyCounts, KeyWalk, NewestEntry, deletes};
use crate::iter::range_tombstone::Fragments;

/// Entries between two samples, about.
const SAMPLE_EVERY: u64 = 16;

/// A table, with its range tombstones that count.
#[derive(Clone, Copy, Debug)]
pub struct Ranked<'a> {
    /// The open table.
    pub table: &'a Table,
    /// See [`super::FileMeta::fragments_of`].
    pub fragments: Option<&'a Fragments>,
}

impl<'a> Ranked<'a> {
    /// A walk from `cursor` on.
    fn walk(self, cursor: TableIter) -> KeyWalk<'a, TableIter, impl Fn(&[u8]) -> SeqNo> {
        let order = self.table.order();
        let covering = move |key: &[u8]| {
            let fragments = self.fragments;
            fragments.map_or(0, |them| them.max_covering_seqno(order, key, SEQNO_MAX))
        };
        KeyWalk::new(cursor, order, SEQNO_MAX, covering)
    }
}

/// A key that is known.
#[derive(Clone, Copy, Debug, Default)]
struct Sample {
    /// Where it ends in [`KeyRanks::keys`].
    end: u32,
    /// Where its newest entry is; used only if the ranks are placed.
    place: Place,
    /// What is before it.
    before: KeyCounts,
}

/// A key to count up to, and the last sample before it.
#[derive(Clone, Copy, Debug)]
struct Bound<'a> {
    user_key: &'a [u8],
    at: usize,
}

/// See the module.
#[derive(Debug)]
pub struct KeyRanks {
    /// The user keys of the samples, one behind the other.
    keys: Vec<u8>,
    samples: Vec<Sample>,
    /// Bytes that all samples begin with.
    shared: usize,
    /// Of each sample the eight bytes after those, as a number; empty under another order than the bytewise one.
    prefixes: Vec<u64>,
    /// Every [`sorted_words::SAMPLE_EVERY`]th of those.
    prefix_samples: Vec<u64>,
    total: KeyCounts,
    /// Whether no key has two entries.
    is_one_each: bool,
    /// Whether the samples have places, and each block begins with one; in bytewise order, and no key has two entries.
    is_placed: bool,
    /// Dropped last: the charge outlasts the memory.
    charge: Charge,
}

impl KeyRanks {
    /// Reads all of a table. The memory is charged to `charge`.
    ///
    /// # Errors
    /// `Corruption`, `Io`.
    pub fn learn(of: Ranked<'_>, charge: Charge) -> Result<Self> {
        let mut ranks = Self {
            keys: Vec::new(),
            samples: Vec::new(),
            shared: 0,
            prefixes: Vec::new(),
            prefix_samples: Vec::new(),
            total: KeyCounts::default(),
            is_one_each: false,
            is_placed: true,
            charge,
        };
        let mut cursor = of.table.iter(TableReadOptions {
            fill_cache: false,
            ..TableReadOptions::default()
        });
        cursor.seek_to_first();
        let mut walk = of.walk(cursor);
        let (mut sampled_at, mut keys) = (0, 0);
        loop {
            let (steps, place) = (walk.steps(), walk.cursor().place());
            let Some(key) = walk.here()? else { break };
            let since = steps - sampled_at;
            if ranks.wants_sample(keys == 0 || since >= SAMPLE_EVERY, since, place) {
                sampled_at = steps;
                ranks.add_sample(key.user_key, place);
            }
            ranks.total.add(&key);
            keys += 1;
            walk.leave()?;
        }
        ranks.is_one_each = walk.steps() == keys || drumlin_base::bug!("versions-ranked-as-keys");
        ranks.learn_prefixes(of.table.order());
        ranks.is_placed &= ranks.is_one_each && !ranks.prefixes.is_empty();
        ranks.keys.shrink_to_fit();
        ranks.samples.shrink_to_fit();
        let samples = ranks.samples.capacity() * size_of::<Sample>();
        let words = ranks.prefixes.capacity() + ranks.prefix_samples.capacity();
        let prefixes = words * size_of::<u64>();
        let bytes = size_of::<Self>() + ranks.keys.capacity() + samples + prefixes;
        ranks.charge.grow_to(bytes);
        Ok(ranks)
    }

    /// Whether the entry at `place`, `since` entries behind the last sample, is to be one: where one `is_due`, and at
    /// the first entry of a block. If the last sample has few entries of the block before, it goes.
    fn wants_sample(&mut self, is_due: bool, since: u64, place: Option<Place>) -> bool {
        let (Some(place), Some(last)) = (place, self.samples.last()) else {
            return is_due;
        };
        if place.is_in_block_of(last.place) || drumlin_base::bug!("blocks-begin-without-a-sample") {
            return is_due;
        }
        if since < SAMPLE_EVERY / 2
            && let [.., before, last] = &self.samples[..]
            && before.place.is_in_block_of(last.place)
        {
            self.keys.truncate(before.end as usize);
            self.samples.pop();
        }
        true
    }

    /// A sample before all that is not counted yet. Samples end with 4 GiB of keys: the walks become longer.
    fn add_sample(&mut self, user_key: &[u8], place: Option<Place>) {
        let end = u32::try_from(self.keys.len() + user_key.len());
        self.is_placed &= place.is_some() && end.is_ok();
        if let Ok(end) = end {
            self.keys.extend_from_slice(user_key);
            self.samples.push(Sample {
                end,
                place: place.unwrap_or_default(),
                before: self.total,
            });
        }
    }

    /// All keys of the table.
    pub fn total(&self) -> KeyCounts {
        self.total
    }

    fn known(&self, at: usize) -> Sample {
        self.samples.get(at).copied().unwrap_or_default()
    }

    /// The key of a sample.
    fn sample(&self, at: usize) -> &[u8] {
        let end_of = |at: usize| self.samples.get(at).map_or(0, |sample| sample.end as usize);
        let start = at.checked_sub(1).map_or(0, end_of);
        self.keys.get(start..end_of(at)).unwrap_or_default()
    }

    fn learn_prefixes(&mut self, order: &KeyOrder) {
        let Some(last) = self.samples.len().checked_sub(1) else {
            return;
        };
        if !matches!(order, KeyOrder::Bytewise) {
            return;
        }
        let ends = self.sample(0).iter().zip(self.sample(last));
        self.shared = ends.take_while(|(first, last)| first == last).count();
        let behind = |at| self.sample(at).get(self.shared..).unwrap_or_default();
        self.prefixes = (0..=last).map(|at| user_key_prefix(behind(at))).collect();
        let prefix_samples = self.prefixes.iter().step_by(sorted_words::SAMPLE_EVERY);
        self.prefix_samples = prefix_samples.copied().collect();
    }

    /// How many samples are before `user_key`.
    fn samples_before(&self, order: &KeyOrder, user_key: &[u8]) -> usize {
        let (mut low, mut high) = self.candidates(user_key);
        while low < high {
            let middle = low + (high - low) / 2;
            match order.compare(self.sample(middle), user_key).is_lt() {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        low
    }

    /// The samples of which the prefixes do not tell whether they are before `user_key`. All before them are.
    fn candidates(&self, user_key: &[u8]) -> (usize, usize) {
        let count = self.samples.len();
        if self.prefixes.is_empty() {
            return (0, count);
        }
        let shared = self.sample(0).get(..self.shared).unwrap_or_default();
        let Some(rest) = user_key.strip_prefix(shared) else {
            let is_before =
                user_key < shared || drumlin_base::bug!("bounds-of-another-front-ranked-first");
            let at = if is_before { 0 } else { count };
            return (at, at);
        };
        let prefix = user_key_prefix(rest);
        let low = sorted_words::lower_bound(&self.prefixes, &self.prefix_samples, prefix);
        let mut high = low;
        if self.prefixes.get(low) == Some(&prefix) {
            let same = self.prefixes.get(low..).unwrap_or_default();
            high += same.partition_point(|it| *it == prefix);
        }
        match drumlin_base::bug!("samples-that-begin-alike-ranked-first") {
            true => (high, high),
            false => (low, high),
        }
    }

    /// The keys from `begin` up to `end` of the table that this was learned from.
    ///
    /// # Errors
    /// `Corruption`, `Io`. Cost: of each bound a binary search in memory and about eight entries, and where the ranks are
    /// not placed a seek.
    pub fn between(
        &self,
        of: Ranked<'_>,
        begin: Option<&[u8]>,
        end: Option<&[u8]>,
    ) -> Result<KeyCounts> {
        if begin.is_none() && end.is_none() {
            return Ok(self.total);
        }
        let order = of.table.order();
        let until = self.bound(order, end);
        let from = self.bound(order, begin);
        let is_covered =
            of.fragments.is_some() && !drumlin_base::bug!("covered-keys-counted-in-blocks");
        let [from, until] = match of.table {
            Table::Block(table) if self.is_placed && !is_covered => {
                // Memory is waited for once, not once for each bound.
                for bound in [from, until].iter().flatten() {
                    table.prefetch(self.known(bound.at).place);
                }
                [
                    self.before_in_block(table, from)?,
                    self.before_in_block(table, until)?,
                ]
            }
            _ => self.before_by_cursor(of, [from, until])?,
        };
        let until = if end.is_some() { until } else { self.total };
        Ok(until.without(from))
    }

    /// `None` where there is no bound, or no sample before it.
    fn bound<'k>(&self, order: &KeyOrder, user_key: Option<&'k [u8]>) -> Option<Bound<'k>> {
        let user_key = user_key?;
        let at = self.samples_before(order, user_key).checked_sub(1)?;
        let late = usize::from(drumlin_base::bug!("ranks-from-the-next-sample"));
        let at = at + late;
        Some(Bound { user_key, at })
    }

    /// What is before a bound, by placed ranks of a table without range tombstones.
    fn before_in_block(&self, table: &BlockTable, bound: Option<Bound<'_>>) -> Result<KeyCounts> {
        let Some(Bound { user_key, at }) = bound else {
            return Ok(KeyCounts::default());
        };
        let Sample { place, before, .. } = self.known(at);
        let mut counts = before;
        let count = |kind, bytes| counts.add_uncovered(deletes(kind), bytes);
        table.visit_before(place, self.sample(at), user_key, count)?;
        Ok(counts)
    }

    /// What is before each bound, in any table.
    fn before_by_cursor(
        &self,
        of: Ranked<'_>,
        bounds: [Option<Bound<'_>>; 2],
    ) -> Result<[KeyCounts; 2]> {
        let cursor = of.table.iter(TableReadOptions::default());
        let mut walk = of.walk(cursor).with_one_each(self.is_one_each);
        let order = of.table.order();
        let mut counts = [KeyCounts::default(); 2];
        for (bound, counts) in bounds.iter().zip(&mut counts) {
            let Some(Bound { user_key, at }) = *bound else {
                continue;
            };
            let is_end = |key: &NewestEntry<'_>, _| order.compare(key.user_key, user_key).is_ge();
            *counts = self.walk_from(at, &mut walk, is_end)?.0;
        }
        Ok(counts)
    }

    /// The key of the table that `rank` live ones come before; `None` where there are no more.
    ///
    /// # Errors
    /// As [`KeyRanks::between`].
    pub fn key_at(&self, of: Ranked<'_>, rank: u64) -> Result<Option<Vec<u8>>> {
        let after = self
            .samples
            .partition_point(|sample| sample.before.live <= rank);
        if after == 0 {
            return Ok(None);
        }
        let is_end = |key: &NewestEntry<'_>, mut counts: KeyCounts| {
            counts.add(key);
            counts.live > rank
        };
        let cursor = of.table.iter(TableReadOptions::default());
        let mut walk = of.walk(cursor).with_one_each(self.is_one_each);
        Ok(self.walk_from(after - 1, &mut walk, is_end)?.1)
    }

    /// From a sample on, to the first key of which `is_end` holds: the counts before it, and the key if there is one.
    fn walk_from(
        &self,
        at: usize,
        walk: &mut KeyWalk<'_, TableIter, impl Fn(&[u8]) -> SeqNo>,
        is_end: impl Fn(&NewestEntry<'_>, KeyCounts) -> bool,
    ) -> Result<(KeyCounts, Option<Vec<u8>>)> {
        let mut counts = self.known(at).before;
        walk.seek(&seek_key(self.sample(at), SEQNO_MAX));
        while let Some(key) = walk.here()? {
            if is_end(&key, counts) {
                return Ok((counts, Some(key.user_key.to_vec())));
            }
            counts.add(&key);
            walk.leave()?;
        }
        Ok((counts, None))
    }
}
