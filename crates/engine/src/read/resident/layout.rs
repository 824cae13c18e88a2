//! The tables of a version in memory, laid out for lookups: which tables may hold a key, found in a few cache
//! lines, and handles of the tables.
//!
//! The idea: the smallest and largest keys of all tables cut the order of keys into cells. In each cell the
//! tables that may hold a key are the same.
//!
//! ```text
//! bounds     c     g       m     p     t     w
//! L0               [------ x ----]
//! L1         [---- a ------]           [- b -]
//! cell     0    1      2      3     4     5    6
//! tables   -    a     x a     x     -     b    -       newest first
//!
//! cell(key):  prefix = the 8 bytes behind the bytes that all keys share
//!             at     = number of bounds below prefix      one search, whatever the number of runs
//!             the tables of cells[at]
//! ```
//!
//! Tricks, and what each buys:
//!
//! - A search over eight bytes a bound instead of whole keys: it reads a few cache lines. A key equal to a
//!   bound in these eight is compared whole, run by run.
//! - The search begins at a place that the first byte of the prefix gives ([`Bounds`]), and then compares the same
//!   number of times for every key: no branch to mispredict.
//! - The tables are held open: a guard on each table's slot would cost a batch of lookups more than the search.
//!   Tables that the table cache closes meanwhile stay in memory until the next super version. So that this is
//!   not much, a version is not laid out where its tables take more of our own memory than open tables may.
//!
//! Only plain tables in bytewise order, all of them open, none with range tombstones. Any other version has no
//! layout, and is read on the general path.
//!
//! Thread safety: immutable.

use std::sync::Arc;

use drumlin_base::KeyOrder;
use drumlin_base::key::user_key_prefix;
use drumlin_base::limits::LEVELS;
use drumlin_table::{PlainTable, Table};

use crate::version::{FileMeta, Version};

/// Runs at most: a lookup has a place for each.
pub(crate) const RUNS_MAX: usize = 16;

/// The sorted runs of a version, newest first.
pub struct ResidentRuns {
    common: Common,
    bounds: Bounds,
    /// Where the tables of each cell begin and end in `tables`. The cell at an index is before the bound
    /// there, the last cell behind all bounds.
    cells: Box<[(u32, u32)]>,
    /// The tables of all cells, cell by cell, the newest first.
    tables: Box<[Arc<PlainTable>]>,
    runs: Box<[Run]>,
}

/// The prefixes of all tables' smallest and largest keys, ascending, each once.
///
/// A search begins at the first of them in the same 256th part of the order as the prefix sought, seldom more
/// than a few before its place.
struct Bounds {
    /// Followed by [`COMPARED`] of the largest numbers, so that a search need not look where they end.
    prefixes: Box<[u64]>,
    /// Their number, without those.
    len: usize,
    first: u64,
    /// Bits by which a prefix, less the first, is shifted to fill a word.
    shift: u32,
    /// The number of bounds before each part.
    before: Box<[u32; PARTS]>,
    /// Whether no part has more than [`COMPARED`].
    is_spread: bool,
}

/// Parts of the order of prefixes in which a search begins: the values of a byte.
const PARTS: usize = 256;
/// Bounds that are compared from where a part begins. Where a part has more, a search halves all bounds.
const COMPARED: usize = 7;

/// The bytes that all keys begin with.
struct Common {
    bytes: Box<[u8]>,
    /// The first eight of these bytes, as a number.
    word: u64,
    /// The bits of them in it.
    mask: u64,
}

/// The tables of one sorted run that is not empty, in order.
type Run = Box<[Held]>;

struct Held {
    table: Arc<PlainTable>,
    /// Its bounds tell apart keys that begin alike.
    file: Arc<FileMeta>,
}

/// The tables of a run that a key may be in.
enum Reach<'a> {
    Nowhere,
    In(&'a PlainTable),
    /// Its versions may be in two tables.
    Straddles,
}

impl ResidentRuns {
    /// The runs of `version`, whose open tables `open` gives. `None` when it should not be laid out: see
    /// the module. Cost: its tables, times its runs.
    pub fn of(
        version: &Version,
        order: &KeyOrder,
        resident_bytes_max: usize,
        mut open: impl FnMut(&Arc<FileMeta>) -> Option<Arc<Table>>,
    ) -> Option<Self> {
        if !matches!(order, KeyOrder::Bytewise) {
            return None;
        }
        let mut resident_bytes = 0;
        let mut hold = |file: &Arc<FileMeta>| {
            let table = open(file)?;
            let Table::Plain(plain) = &*table else {
                return None;
            };
            resident_bytes += table.resident_bytes();
            let has_none = table.range_tombstones().is_empty()
                || drumlin_base::bug!("laid-out-with-range-tombstones");
            (resident_bytes <= resident_bytes_max && has_none).then(|| Held {
                table: Arc::clone(plain),
                file: Arc::clone(file),
            })
        };
        let single = version.level(0).iter().map(std::slice::from_ref);
        let levels = (1..LEVELS).map(|level| version.level(level));
        let runs = single.chain(levels).filter(|files| !files.is_empty());
        let runs = runs.map(|files| files.iter().map(&mut hold).collect::<Option<_>>());
        let runs: Box<[Run]> = runs.collect::<Option<_>>()?;
        (runs.len() <= RUNS_MAX).then(|| Self::new(runs))
    }

    fn new(runs: Box<[Run]>) -> Self {
        let common = Common::of(&runs);
        let ends = |held: &Held| {
            let file = &held.file;
            [file.smallest_user_key(), file.largest_user_key()].map(|key| common.prefix_behind(key))
        };
        let mut bounds: Vec<u64> = runs.iter().flatten().flat_map(ends).collect();
        bounds.sort_unstable();
        bounds.dedup();
        let (mut cells, mut tables) = (Vec::with_capacity(bounds.len() + 1), Vec::new());
        // The table of each run that the walk along the bounds has come to.
        let mut reached = vec![0; runs.len()];
        for bound in bounds.iter().map(Some).chain([None]) {
            let from = tables.len() as u32;
            for (run, at) in runs.iter().zip(&mut reached) {
                let ends_before = |held: &Held| bound.is_none_or(|bound| ends(held)[1] < *bound);
                *at += run
                    .iter()
                    .skip(*at)
                    .take_while(|held| ends_before(held))
                    .count();
                // It reaches up to the bound, and nothing begins or ends within a cell.
                let begun = |held: &&Held| bound.is_some_and(|bound| ends(held)[0] < *bound);
                tables.extend(
                    run.get(*at)
                        .filter(begun)
                        .map(|held| Arc::clone(&held.table)),
                );
            }
            cells.push((from, tables.len() as u32));
        }
        Self {
            bounds: Bounds::new(bounds),
            cells: cells.into(),
            tables: tables.into(),
            common,
            runs,
        }
    }

    /// The table at `index` of the run at `run`, newest first: runs of L0 have one each, levels with tables
    /// follow.
    pub fn table(&self, run: usize, index: usize) -> &Arc<PlainTable> {
        &self.runs[run][index].table
    }

    /// The table of each run that may hold `user_key`, newest first. `None` for keys that eight bytes do
    /// not distinguish from a table's smallest or largest: see [`ResidentRuns::each_table`].
    #[inline(always)]
    pub fn cell(&self, user_key: &[u8]) -> Option<&[Arc<PlainTable>]> {
        let Some(prefix) = self.common.prefix_of(user_key) else {
            return Some(&[]);
        };
        let at = self.bounds.first_from(prefix);
        if self.bounds.prefixes.get(at) == Some(&prefix) {
            return None;
        }
        let (from, end) = self.cells[at];
        Some(&self.tables[from as usize..end as usize])
    }

    /// Calls `visit` with the table of each run that may hold `user_key`, newest first. False when more
    /// than one table of a run may hold it; then not all were called.
    #[inline]
    pub fn each_table<'a>(
        &'a self,
        user_key: &[u8],
        mut visit: impl FnMut(&'a PlainTable),
    ) -> bool {
        let Some(tables) = self.cell(user_key) else {
            return self.each_by_whole_keys(user_key, &mut visit);
        };
        tables.iter().for_each(|table| visit(table));
        true
    }

    #[inline(never)]
    fn each_by_whole_keys<'a>(
        &'a self,
        user_key: &[u8],
        visit: &mut impl FnMut(&'a PlainTable),
    ) -> bool {
        for run in &self.runs {
            match reach_of(run, user_key) {
                Reach::Nowhere => {}
                Reach::In(table) => visit(table),
                Reach::Straddles => return false,
            }
        }
        true
    }
}

impl Bounds {
    /// Requires: `prefixes` ascend.
    fn new(mut prefixes: Vec<u64>) -> Self {
        let (first, last) = (
            prefixes.first().map_or(0, |prefix| *prefix),
            prefixes.last().map_or(0, |prefix| *prefix),
        );
        let len = prefixes.len();
        prefixes.resize(len + COMPARED, u64::MAX);
        let mut bounds = Self {
            first,
            shift: (last - first).leading_zeros().min(u64::BITS - 1),
            before: Box::new([0; PARTS]),
            is_spread: true,
            prefixes: prefixes.into(),
            len,
        };
        let mut counts = [0; PARTS];
        for prefix in bounds.sorted() {
            counts[bounds.part_of(*prefix)] += 1;
        }
        let mut sum = 0;
        for (before, count) in bounds.before.iter_mut().zip(counts) {
            *before = sum;
            sum += count;
            bounds.is_spread &= count as usize <= COMPARED;
        }
        bounds
    }

    fn sorted(&self) -> &[u64] {
        &self.prefixes[..self.len]
    }

    #[inline(always)]
    fn part_of(&self, prefix: u64) -> usize {
        let span = u64::MAX >> self.shift;
        let along = prefix.saturating_sub(self.first).min(span) << self.shift;
        (along >> (u64::BITS - PARTS.ilog2())) as usize
    }

    /// The index of the first bound at or after `prefix`.
    #[inline(always)]
    fn first_from(&self, prefix: u64) -> usize {
        if !self.is_spread {
            return self.sorted().partition_point(|bound| *bound < prefix);
        }
        let begin = self.before[self.part_of(prefix)] as usize;
        let near = self.prefixes[begin..].first_chunk();
        let near = near.expect("the bounds are followed by as many numbers as are compared");
        begin + count_below(near, prefix)
    }
}

/// How many of `bounds`, which ascend, are below `prefix`: the same few instructions for every key.
#[inline(always)]
fn count_below(bounds: &[u64; COMPARED], prefix: u64) -> usize {
    let reach = u64::from(drumlin_base::bug!("equal-bound-counted-below"));
    let below = |at: usize| usize::from(bounds[at] < prefix.saturating_add(reach));
    let mut count = 4 * below(3);
    count += 2 * below(count + 1);
    count + below(count)
}

impl Common {
    /// The bytes that the keys of `runs` begin with.
    fn of(runs: &[Run]) -> Self {
        let keys = || {
            let held = runs.iter().flatten();
            held.flat_map(|held| [held.file.smallest_user_key(), held.file.largest_user_key()])
        };
        // In order, so all share the common prefix of the outermost two. Nothing, where there are no tables.
        let smallest = keys().min().unwrap_or_default();
        let largest = keys().max().unwrap_or_default();
        let alike = smallest.iter().zip(largest).take_while(|(a, b)| a == b);
        let bytes: Box<[u8]> = alike.map(|(byte, _)| *byte).collect();
        let bits = 8 * bytes.len().min(8) as u32;
        Self {
            word: user_key_prefix(&bytes),
            mask: !u64::MAX.checked_shr(bits).unwrap_or(0),
            bytes,
        }
    }

    /// Eight bytes of a key behind what it has in common with all, as a number in their order; `None`
    /// for a key that does not begin so, which no table has.
    #[inline]
    fn prefix_of(&self, user_key: &[u8]) -> Option<u64> {
        match (user_key.first_chunk::<8>(), self.bytes.len()) {
            (Some(first), ..=8) if (u64::from_be_bytes(*first) ^ self.word) & self.mask == 0 => {}
            (Some(_), ..=8) => return None,
            _ if user_key.starts_with(&self.bytes) => {}
            _ => return None,
        }
        Some(self.prefix_behind(user_key))
    }

    /// Requires: `user_key` begins as all do.
    #[inline]
    fn prefix_behind(&self, user_key: &[u8]) -> u64 {
        user_key_prefix(&user_key[self.bytes.len()..])
    }
}

/// The tables of `run` that may hold `user_key`.
fn reach_of<'a>(run: &'a Run, user_key: &[u8]) -> Reach<'a> {
    let first = run.partition_point(|held| held.file.largest_user_key() < user_key);
    let mut reaching = run.iter().skip(first);
    let begins = |held: &&Held| held.file.smallest_user_key() <= user_key;
    match (
        reaching.next().filter(begins),
        reaching.next().filter(begins),
    ) {
        (None, _) => Reach::Nowhere,
        (Some(held), None) => Reach::In(&held.table),
        (Some(_), Some(_)) => Reach::Straddles,
    }
}

impl std::fmt::Debug for ResidentRuns {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ResidentRuns({})", self.runs.len())
    }
}

#[cfg(test)]
mod tests {
    use drumlin_base::rng::Rng;

    use super::*;

    #[test]
    fn bounds_are_found_wherever_they_lie() {
        for seed in 0..300 {
            let mut rng = Rng::new(seed);
            // Close together, anywhere, or a few crowds.
            let mut draw = |seed: u64| match seed % 3 {
                0 => 7_000 + rng.below(400),
                1 => rng.next_u64(),
                _ => (rng.below(3) << 60) + rng.below(100),
            };
            let mut prefixes: Vec<u64> = (0..seed / 4).map(|_| draw(seed)).collect();
            prefixes.sort_unstable();
            prefixes.dedup();
            let bounds = Bounds::new(prefixes.clone());
            let beside =
                |prefix: &u64| [prefix.saturating_sub(1), *prefix, prefix.saturating_add(1)];
            let mut asked: Vec<u64> = prefixes.iter().flat_map(beside).collect();
            asked.extend((0..200).map(|_| draw(seed)));
            asked.extend([0, u64::MAX]);
            for prefix in asked {
                let want = prefixes.partition_point(|bound| *bound < prefix);
                assert_eq!(bounds.first_from(prefix), want, "seed {seed}, {prefix}");
            }
        }
    }
}
