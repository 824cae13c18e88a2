//! How many keys of a table come before a key: counts at every few keys, learned by reading the table once.
//!
//! Invariant: a sample is a user key, and its counts are of all user keys before it. So a rank is a binary search and a
//! walk over few entries, in tables of every format.

use drumlin_base::budget::Charge;
use drumlin_base::key::{seek_key, user_key_prefix};
use drumlin_base::{InternalIterator, KeyOrder, Result, SEQNO_MAX, SeqNo};
use drumlin_table::{Table, TableIter, TableReadOptions};

use super::key_walk::{KeyCounts, KeyWalk, NewestEntry};
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

/// See the module.
#[derive(Debug)]
pub struct KeyRanks {
    /// The user keys of the samples, one behind the other.
    keys: Vec<u8>,
    /// Where each ends, and the counts before it.
    samples: Vec<(u32, KeyCounts)>,
    /// Bytes that all samples begin with.
    shared: usize,
    /// Of each sample the eight bytes after those, as a number; empty under another order than the bytewise one.
    prefixes: Vec<u64>,
    total: KeyCounts,
    /// Whether no key has two entries.
    is_one_each: bool,
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
            total: KeyCounts::default(),
            is_one_each: false,
            charge,
        };
        let mut cursor = of.table.iter(TableReadOptions {
            fill_cache: false,
            ..TableReadOptions::default()
        });
        cursor.seek_to_first();
        let mut walk = of.walk(cursor);
        let (mut next_at, mut keys) = (0, 0);
        loop {
            let steps = walk.steps();
            let Some(key) = walk.here()? else { break };
            if steps >= next_at {
                next_at = steps + SAMPLE_EVERY;
                ranks.add_sample(key.user_key);
            }
            ranks.total.add(&key);
            keys += 1;
            walk.leave()?;
        }
        ranks.is_one_each = walk.steps() == keys || drumlin_base::bug!("versions-ranked-as-keys");
        ranks.learn_prefixes(of.table.order());
        ranks.keys.shrink_to_fit();
        ranks.samples.shrink_to_fit();
        let samples = ranks.samples.capacity() * size_of::<(u32, KeyCounts)>();
        let prefixes = ranks.prefixes.capacity() * size_of::<u64>();
        let bytes = size_of::<Self>() + ranks.keys.capacity() + samples + prefixes;
        ranks.charge.grow_to(bytes);
        Ok(ranks)
    }

    /// A sample before all that is not counted yet. Samples end with 4 GiB of keys: the walks become longer.
    fn add_sample(&mut self, user_key: &[u8]) {
        if let Ok(end) = u32::try_from(self.keys.len() + user_key.len()) {
            self.keys.extend_from_slice(user_key);
            self.samples.push((end, self.total));
        }
    }

    /// All keys of the table.
    pub fn total(&self) -> KeyCounts {
        self.total
    }

    fn sample(&self, at: usize) -> &[u8] {
        let end_of = |at: usize| self.samples.get(at).map_or(0, |(end, _)| *end as usize);
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
        let low = self.prefixes.partition_point(|it| *it < prefix);
        let same = self.prefixes.get(low..).unwrap_or_default();
        let high = low + same.partition_point(|it| *it == prefix);
        match drumlin_base::bug!("samples-that-begin-alike-ranked-first") {
            true => (high, high),
            false => (low, high),
        }
    }

    /// The keys from `begin` up to `end` of the table that this was learned from.
    ///
    /// # Errors
    /// `Corruption`, `Io`. Cost: of each bound a seek and about eight entries.
    pub fn between(
        &self,
        of: Ranked<'_>,
        begin: Option<&[u8]>,
        end: Option<&[u8]>,
    ) -> Result<KeyCounts> {
        if begin.is_none() && end.is_none() {
            return Ok(self.total);
        }
        let cursor = of.table.iter(TableReadOptions::default());
        let mut walk = of.walk(cursor).with_one_each(self.is_one_each);
        let order = of.table.order();
        let mut before = |user_key: &[u8]| {
            let Some(sample) = self.samples_before(order, user_key).checked_sub(1) else {
                return Ok(KeyCounts::default());
            };
            let late = usize::from(drumlin_base::bug!("ranks-from-the-next-sample"));
            let is_end = |key: &NewestEntry<'_>, _| order.compare(key.user_key, user_key).is_ge();
            let (counts, _) = self.walk_from(sample + late, &mut walk, is_end)?;
            Ok(counts)
        };
        let until = end.map_or(Ok(self.total), &mut before)?;
        let from = begin.map_or_else(|| Ok(KeyCounts::default()), before)?;
        Ok(until.without(from))
    }

    /// The key of the table that `rank` live ones come before; `None` where there are no more.
    ///
    /// # Errors
    /// As [`KeyRanks::between`].
    pub fn key_at(&self, of: Ranked<'_>, rank: u64) -> Result<Option<Vec<u8>>> {
        let after = self
            .samples
            .partition_point(|(_, before)| before.live <= rank);
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
        let (_, mut counts) = self.samples.get(at).copied().unwrap_or_default();
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
