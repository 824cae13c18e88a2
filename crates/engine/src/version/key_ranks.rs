//! How many keys of a table come before a key: counts at every few keys, learned by reading the table once.
//!
//! Invariant: a sample is a user key, and its counts are of all user keys before it. So a rank is a binary search and a
//! walk over few entries, in tables of every format.

use drumlin_base::budget::Charge;
use drumlin_base::key::seek_key;
use drumlin_base::{InternalIterator, Result, SEQNO_MAX, SeqNo};
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
    total: KeyCounts,
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
            total: KeyCounts::default(),
            charge,
        };
        let mut cursor = of.table.iter(TableReadOptions {
            fill_cache: false,
            ..TableReadOptions::default()
        });
        cursor.seek_to_first();
        let mut walk = of.walk(cursor);
        let mut next_at = 0;
        loop {
            let steps = walk.steps();
            let Some(key) = walk.here()? else { break };
            if steps >= next_at {
                next_at = steps + SAMPLE_EVERY;
                ranks.add_sample(key.user_key);
            }
            ranks.total.add(&key);
            walk.leave()?;
        }
        ranks.keys.shrink_to_fit();
        ranks.samples.shrink_to_fit();
        let samples = ranks.samples.capacity() * size_of::<(u32, KeyCounts)>();
        let bytes = size_of::<Self>() + ranks.keys.capacity() + samples;
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

    /// The keys before `user_key` of the table that this was learned from.
    ///
    /// # Errors
    /// `Corruption`, `Io`. Cost: a seek and some dozen entries.
    pub fn before(&self, of: Ranked<'_>, user_key: &[u8]) -> Result<KeyCounts> {
        let order = of.table.order();
        let (mut low, mut high) = (0, self.samples.len());
        while low < high {
            let middle = low + (high - low) / 2;
            match order.compare(self.sample(middle), user_key).is_lt() {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        if low == 0 {
            return Ok(KeyCounts::default());
        }
        let is_end = |key: &NewestEntry<'_>, _| order.compare(key.user_key, user_key).is_ge();
        let late = usize::from(drumlin_base::bug!("ranks-from-the-next-sample"));
        let (counts, _) = self.walk_from(low - 1 + late, of, is_end)?;
        Ok(counts)
    }

    /// The key of the table that `rank` live ones come before; `None` where there are no more.
    ///
    /// # Errors
    /// As [`KeyRanks::before`].
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
        Ok(self.walk_from(after - 1, of, is_end)?.1)
    }

    /// From a sample on, to the first key of which `is_end` holds: the counts before it, and the key if there is one.
    fn walk_from(
        &self,
        at: usize,
        of: Ranked<'_>,
        is_end: impl Fn(&NewestEntry<'_>, KeyCounts) -> bool,
    ) -> Result<(KeyCounts, Option<Vec<u8>>)> {
        let (_, mut counts) = self.samples.get(at).copied().unwrap_or_default();
        let mut cursor = of.table.iter(TableReadOptions::default());
        cursor.seek(&seek_key(self.sample(at), SEQNO_MAX));
        let mut walk = of.walk(cursor);
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
