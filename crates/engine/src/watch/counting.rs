//! How many keys a range has, from counts that tables keep of themselves and from the ranks of their keys.
//!
//! Each sorted run is counted by itself: the memtables, each table of L0, each level. A key of a run is there unless a
//! newer run deletes it, and counts once however many runs have it. So with `live` keys in a run and `deleted` ones in the runs
//! above it,
//!
//! ```text
//! max over the runs of (live - deleted above)  <=  keys of the range  <=  sum over the runs of live
//! ```
//!
//! and where one run has the range these two are one number, if that run knows its own exactly. A table that lies in the range
//! whole knows by its properties; one that a bound cuts by its ranks, which are learned when they are first asked for.

use std::ops::RangeInclusive;
use std::sync::Arc;

use drumlin_base::key::seek_key;
use drumlin_base::limits::LEVELS;
use drumlin_base::{InternalIterator, KeyOrder, MemoryBudget, Result, SEQNO_MAX, SeqNo};
use drumlin_memtable::Memtable;
use drumlin_table::Table;

use crate::caches::table_cache::TableCache;
use crate::db::handle::Db;
use crate::family::column_family::ColumnFamily;
use crate::family::super_version::SuperVersion;
use crate::version::{FileMeta, KeyCounts, KeyWalk, Ranked};

/// Entries of a memtable that are counted one by one. Of a range with more only bounds are known.
const MEMTABLE_STEPS_MAX: u64 = 64;

/// How much is in a range of keys: at least and at most.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RangeCount {
    /// Keys that a reader finds.
    pub keys: RangeInclusive<u64>,
    /// Bytes of these keys and of their values, uncompressed. Of a merged value the newest operand counts, of one in a
    /// blob file the reference.
    pub bytes: RangeInclusive<u64>,
}

impl RangeCount {
    /// Whether the number of keys is known.
    pub fn is_exact(&self) -> bool {
        self.keys.start() == self.keys.end()
    }
}

/// A key, and how many come before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RankedKey {
    /// The key.
    pub key: Vec<u8>,
    /// Keys before it: at least and at most.
    pub rank: RangeInclusive<u64>,
}

/// What one sorted run has in the range.
#[derive(Clone, Copy, Debug, Default)]
struct Run {
    live: (u64, u64),
    bytes: (u64, u64),
    /// Keys it deletes one by one, at most.
    deleted: u64,
    /// Whether it may delete ranges.
    deletes_ranges: bool,
}

impl Run {
    fn exactly(counts: KeyCounts) -> Self {
        Self {
            live: (counts.live, counts.live),
            bytes: (counts.bytes, counts.bytes),
            deleted: counts.deleted,
            deletes_ranges: false,
        }
    }

    fn is_empty(&self) -> bool {
        self.live.1 == 0 && self.deleted == 0 && !self.deletes_ranges
    }

    /// Adds the next table of the run. With `shared`, its first key may be the last one of the table before.
    fn add(&mut self, next: Self, shared: bool) {
        let twice = u64::from(shared);
        self.live.0 += next.live.0.saturating_sub(twice);
        self.live.1 += next.live.1;
        self.bytes.0 += if shared { 0 } else { next.bytes.0 };
        self.bytes.1 += next.bytes.1;
        self.deleted += next.deleted;
        self.deletes_ranges |= next.deletes_ranges;
    }
}

/// The runs of a family, from the newest on, added up.
#[derive(Debug, Default)]
struct Sum {
    keys: (u64, u64),
    bytes: (u64, u64),
    deleted: u64,
    deletes_ranges: bool,
    /// Whether a run had something in the range.
    is_begun: bool,
}

impl Sum {
    fn add(&mut self, run: Run) {
        if run.is_empty() {
            return;
        }
        if !self.deletes_ranges {
            let left = run.live.0.saturating_sub(self.deleted);
            self.keys.0 = self.keys.0.max(left);
        }
        if !self.is_begun {
            self.bytes.0 = run.bytes.0;
        }
        self.is_begun = true;
        self.keys.1 += run.live.1;
        self.bytes.1 += run.bytes.1;
        self.deleted += match drumlin_base::bug!("counted-in-spite-of-newer-deletions") {
            true => 0,
            false => run.deleted,
        };
        self.deletes_ranges |= run.deletes_ranges;
    }
}

impl Db {
    /// How many keys and bytes of `family` are from `begin` up to, not including, `end`; `None` is unbounded. Exact where
    /// one sorted run has the range, as after a compaction; else bounds that hold. Counted is what is committed; what a
    /// compaction filter would drop counts until it is dropped. In a family with a time to live at least 0, since all may have expired.
    ///
    /// Cost: for each of the two bounds in each run a binary search in memory and a walk over about eight entries of one
    /// block, which is read if it is not cached; and a look at the properties of each table inside the range. A table that
    /// has several versions of a key, range tombstones, another order than the bytewise one or another format than the
    /// block-based one is sought in besides. The first time that a bound cuts a table, the table is read whole, and the
    /// ranks of its keys are kept with it and charged to the budget: with keys of 16 bytes about four bytes an entry, in
    /// blocks of few entries 64 a block. Of a memtable's entries 64 are looked at.
    ///
    /// # Errors
    /// `InvalidArgument` for a family of another database; `Io` and `Corruption` of a table that has to be read.
    pub fn count_range(
        &self,
        family: &ColumnFamily,
        begin: Option<&[u8]>,
        end: Option<&[u8]>,
    ) -> Result<RangeCount> {
        let _call = self.engine.store.begin_call()?;
        self.engine.store.check_own(&family.0)?;
        let super_version = family.0.super_version.load_full();
        let seqno = self.latest_seqno();
        let count = self
            .runs_of(family)
            .count(&super_version, seqno, (begin, end))?;
        Ok(without_expired(family, count))
    }

    /// The key of `family` that `rank` others come before, about: with what is known of its rank. Exact where one sorted
    /// run has the family, as after a compaction. `None` where there are no more than `rank` keys, or no table.
    ///
    /// Cost: as of [`Db::count_range`], twice.
    ///
    /// # Errors
    /// As [`Db::count_range`].
    pub fn key_at_rank(&self, family: &ColumnFamily, rank: u64) -> Result<Option<RankedKey>> {
        let _call = self.engine.store.begin_call()?;
        self.engine.store.check_own(&family.0)?;
        let super_version = family.0.super_version.load_full();
        let seqno = self.latest_seqno();
        let runs = self.runs_of(family);
        let all = runs.count(&super_version, seqno, (None, None))?;
        if rank >= *all.keys.end() {
            return Ok(None);
        }
        let Some(key) = runs.key_near(&super_version, rank, *all.keys.end())? else {
            return Ok(None);
        };
        let before = runs.count(&super_version, seqno, (None, Some(&key)))?;
        let rank = without_expired(family, before).keys;
        Ok(Some(RankedKey { key, rank }))
    }

    fn runs_of<'a>(&'a self, family: &'a ColumnFamily) -> Runs<'a> {
        Runs {
            order: family.order(),
            tables: &family.0.reads.tables,
            budget: &self.engine.store.caches.budget,
        }
    }
}

/// The count of a family whose values may have expired, which tables do not count.
fn without_expired(family: &ColumnFamily, count: RangeCount) -> RangeCount {
    match family.ttl().is_some_and(|ttl| !ttl.is_zero()) {
        false => count,
        true => RangeCount {
            keys: 0..=*count.keys.end(),
            bytes: 0..=*count.bytes.end(),
        },
    }
}

type Bounds<'a> = (Option<&'a [u8]>, Option<&'a [u8]>);

struct Runs<'a> {
    order: &'a KeyOrder,
    tables: &'a TableCache,
    budget: &'a Arc<MemoryBudget>,
}

impl Runs<'_> {
    fn count(
        &self,
        super_version: &SuperVersion,
        seqno: SeqNo,
        bounds: Bounds<'_>,
    ) -> Result<RangeCount> {
        let mut sum = Sum::default();
        let is_empty = matches!(bounds, (Some(begin), Some(end))
            if self.order.compare(begin, end).is_ge());
        if !is_empty {
            for memtable in super_version.memtables() {
                sum.add(self.in_memtable(memtable, seqno, bounds)?);
            }
            for file in super_version.version.level(0) {
                sum.add(self.in_tables(std::slice::from_ref(file), bounds)?);
            }
            for level in 1..LEVELS {
                sum.add(self.in_tables(super_version.version.level(level), bounds)?);
            }
        }
        Ok(RangeCount {
            keys: sum.keys.0..=sum.keys.1,
            bytes: sum.bytes.0..=sum.bytes.1,
        })
    }

    fn in_memtable(
        &self,
        memtable: &Arc<Memtable>,
        seqno: SeqNo,
        (begin, end): Bounds<'_>,
    ) -> Result<Run> {
        let mut cursor = memtable.iter();
        match begin {
            Some(begin) => cursor.seek(&seek_key(begin, SEQNO_MAX)),
            None => cursor.seek_to_first(),
        }
        let covering = |key: &[u8]| memtable.covering_seqno(key, seqno);
        let mut walk = KeyWalk::new(cursor, self.order, seqno, covering);
        let mut counts = KeyCounts::default();
        let deletes_ranges = memtable.range_tombstone_count() > 0;
        loop {
            let steps = walk.steps();
            let is_past = |key: &[u8]| end.is_some_and(|end| self.order.compare(key, end).is_ge());
            match walk.here()? {
                Some(key) if !is_past(key.user_key) => counts.add(&key),
                _ => break,
            }
            if steps >= MEMTABLE_STEPS_MAX {
                return Ok(Run {
                    live: (counts.live, memtable.entries() as u64),
                    bytes: (counts.bytes, memtable.bytes() as u64),
                    deleted: memtable.deletions() as u64,
                    deletes_ranges,
                });
            }
            walk.leave()?;
        }
        Ok(Run {
            deletes_ranges,
            ..Run::exactly(counts)
        })
    }

    /// What tables that do not overlap, in the order of their keys, have in the range.
    fn in_tables(&self, files: &[Arc<FileMeta>], (begin, end): Bounds<'_>) -> Result<Run> {
        let compare = |a: &[u8], b: &[u8]| self.order.compare(a, b);
        let first = begin.map_or(0, |begin| {
            files.partition_point(|file| compare(file.largest_user_key(), begin).is_lt())
        });
        let mut run = Run::default();
        let mut before: Option<&Arc<FileMeta>> = None;
        for file in files.get(first..).unwrap_or_default() {
            if end.is_some_and(|end| compare(file.smallest_user_key(), end).is_ge()) {
                break;
            }
            let cut_begin = begin.filter(|begin| compare(file.smallest_user_key(), begin).is_lt());
            let cut_end = end.filter(|end| compare(file.largest_user_key(), end).is_ge());
            let shared = before.is_some_and(|before| {
                compare(before.largest_user_key(), file.smallest_user_key()).is_eq()
            });
            run.add(self.in_table(file, (cut_begin, cut_end))?, shared);
            before = Some(file);
        }
        Ok(run)
    }

    /// What a table has between the bounds that cut it.
    fn in_table(&self, file: &Arc<FileMeta>, (begin, end): Bounds<'_>) -> Result<Run> {
        let table = self.tables.find(file)?;
        let fragments = file.fragments_of(self.order, &table);
        let mut run = match (begin, end) {
            (None, None) if file.ranks().is_none() => whole(&table),
            _ => {
                let ranks = file.ranks_of(&table, self.budget)?;
                let of = Ranked {
                    table: &table,
                    fragments,
                };
                Run::exactly(ranks.between(of, begin, end)?)
            }
        };
        run.deletes_ranges = fragments.is_some();
        Ok(run)
    }

    /// The key of the run with the most keys that lies at the same share of it as `rank` does of `keys`.
    fn key_near(
        &self,
        super_version: &SuperVersion,
        rank: u64,
        keys: u64,
    ) -> Result<Option<Vec<u8>>> {
        let version = &super_version.version;
        let singles = version.level(0).iter().map(std::slice::from_ref);
        let levels = (1..LEVELS).map(|level| version.level(level));
        let mut largest = (0, &[][..]);
        for files in singles.chain(levels) {
            let live = self.in_tables(files, (None, None))?.live.1;
            if live > largest.0 {
                largest = (live, files);
            }
        }
        let (live, files) = largest;
        let mut left = (u128::from(rank) * u128::from(live) / u128::from(keys.max(1))) as u64;
        for file in files {
            let table = self.tables.find(file)?;
            let ranks = file.ranks_of(&table, self.budget)?;
            if left < ranks.total().live {
                let of = Ranked {
                    table: &table,
                    fragments: file.fragments_of(self.order, &table),
                };
                return ranks.key_at(of, left);
            }
            left -= ranks.total().live;
        }
        Ok(None)
    }
}

/// What is in a table by its properties.
fn whole(table: &Table) -> Run {
    let counts = table.properties();
    let ranges = match counts.counts_tombstones() {
        true => counts.num_range_deletions,
        false => 0,
    };
    let entries = counts.num_entries.saturating_sub(ranges);
    let deleted = counts.num_deletions.saturating_sub(ranges).min(entries);
    let keys = table.user_keys().filter(|keys| *keys <= entries);
    let most = keys.unwrap_or(entries).min(entries - deleted);
    let least = match keys {
        Some(keys) if counts.num_range_deletions == 0 => keys.saturating_sub(deleted),
        _ => 0,
    };
    let tags = entries * drumlin_base::key::TAG_BYTES as u64;
    let bytes = counts.raw_key_size.saturating_sub(tags) + counts.raw_value_size;
    let is_all_live = keys == Some(entries) && deleted == 0 && counts.num_range_deletions == 0;
    Run {
        live: (least, most),
        bytes: (if is_all_live { bytes } else { 0 }, bytes),
        deleted,
        deletes_ranges: counts.num_range_deletions > 0,
    }
}
