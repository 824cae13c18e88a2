//! The tables of a version that lie in memory, laid out for lookups: what a get needs to know of a
//! sorted run to find the one table to ask, in a few cache lines, and the tables themselves.
//!
//! Only plain tables in bytewise order, all of them open, none with range tombstones: then a lookup asks
//! each run for its table, each table for the key, and that is all. Anything else is looked up as in
//! every family.
//!
//! The tables are held open: a loan for each of them, and the way to it through a file's slot, would cost
//! a batch of lookups more than the search. Tables that the table cache closes meanwhile stay in memory
//! until the next super version; so that this is not much, a version whose tables take more memory of
//! our own than open tables may is not laid out.
//!
//! Thread safety: immutable.

use std::sync::Arc;

use drumlin_base::KeyOrder;
use drumlin_base::limits::LEVELS;
use drumlin_table::{PlainTable, Table};

use crate::version::{FileMeta, Version, key_head as head};

/// Runs at most: a lookup has a place for each.
pub(crate) const RUNS_MAX: usize = 16;

/// The sorted runs of a version, newest first.
pub struct ResidentRuns {
    runs: Box<[Run]>,
}

/// One sorted run that is not empty.
struct Run {
    /// What all its keys begin with.
    common: Box<[u8]>,
    /// The eight bytes behind that of each table's smallest and largest user key, as numbers in their
    /// order.
    firsts: Box<[u64]>,
    lasts: Box<[u64]>,
    tables: Box<[Held]>,
}

struct Held {
    table: Arc<PlainTable>,
    /// Whose bounds tell keys apart that begin alike.
    file: Arc<FileMeta>,
}

/// Where in a run a key may be.
enum Place<'a> {
    Nowhere,
    In(&'a PlainTable),
    /// Its versions may lie in two tables.
    Straddles,
}

impl ResidentRuns {
    /// The runs of `version`, whose open tables `open` gives. `None` when it is not to be laid out: see
    /// the module.
    pub fn of(
        version: &Version,
        order: &KeyOrder,
        own_bytes_max: usize,
        mut open: impl FnMut(&Arc<FileMeta>) -> Option<Arc<Table>>,
    ) -> Option<Self> {
        if !matches!(order, KeyOrder::Bytewise) {
            return None;
        }
        let mut own_bytes = 0;
        let mut hold = |file: &Arc<FileMeta>| {
            let table = open(file)?;
            let Table::Plain(plain) = &*table else {
                return None;
            };
            own_bytes += table.resident_bytes();
            (own_bytes <= own_bytes_max && table.range_tombstones().is_empty()).then(|| Held {
                table: Arc::clone(plain),
                file: Arc::clone(file),
            })
        };
        let single = version.level(0).iter().map(std::slice::from_ref);
        let levels = (1..LEVELS).map(|level| version.level(level));
        let runs = single.chain(levels).filter(|files| !files.is_empty());
        let runs = runs.map(|files| {
            let tables = files.iter().map(&mut hold).collect::<Option<_>>()?;
            Some(Run::new(tables))
        });
        let runs: Box<[Run]> = runs.collect::<Option<_>>()?;
        (runs.len() <= RUNS_MAX).then_some(Self { runs })
    }

    /// Calls `ask` with the table of each run that may hold `user_key`, newest first. False when more
    /// than one table of a run may hold it; then not all were called.
    #[inline]
    pub fn each_table<'a>(&'a self, user_key: &[u8], mut ask: impl FnMut(&'a PlainTable)) -> bool {
        for run in &self.runs {
            match run.find(user_key) {
                Place::Nowhere => {}
                Place::In(table) => ask(table),
                Place::Straddles => return false,
            }
        }
        true
    }
}

impl Run {
    /// Requires: `tables` are not none, and ascend.
    fn new(tables: Box<[Held]>) -> Self {
        let smallest = tables.first().map(|held| held.file.smallest_user_key());
        let largest = tables.last().map(|held| held.file.largest_user_key());
        let (smallest, largest) = (smallest.unwrap_or(&[]), largest.unwrap_or(&[]));
        // In order, so what the outermost two begin with all do.
        let common = smallest.iter().zip(largest).take_while(|(a, b)| a == b);
        let common: Box<[u8]> = common.map(|(byte, _)| *byte).collect();
        let head_of = |key: &[u8]| head(key.get(common.len()..).unwrap_or_default());
        Self {
            firsts: tables
                .iter()
                .map(|held| head_of(held.file.smallest_user_key()))
                .collect(),
            lasts: tables
                .iter()
                .map(|held| head_of(held.file.largest_user_key()))
                .collect(),
            common,
            tables,
        }
    }

    #[inline]
    fn find(&self, user_key: &[u8]) -> Place<'_> {
        let Some(rest) = user_key.strip_prefix(&*self.common) else {
            return Place::Nowhere;
        };
        let head = head(rest);
        let at = self.lasts.partition_point(|last| *last < head);
        match (self.lasts.get(at), self.firsts.get(at), self.tables.get(at)) {
            (Some(last), Some(first), Some(held)) if *first < head && head < *last => {
                Place::In(&held.table)
            }
            (_, Some(first), _) if head < *first => Place::Nowhere,
            _ => self.find_among_ties(at, user_key),
        }
    }

    /// From the table at `from` on, which all those before do not reach.
    #[inline(never)]
    fn find_among_ties(&self, from: usize, user_key: &[u8]) -> Place<'_> {
        let tables = self.tables.get(from..).unwrap_or_default();
        let first = tables.partition_point(|held| held.file.largest_user_key() < user_key);
        let mut reaching = tables.iter().skip(first);
        let begins = |held: &&Held| held.file.smallest_user_key() <= user_key;
        match (
            reaching.next().filter(begins),
            reaching.next().filter(begins),
        ) {
            (None, _) => Place::Nowhere,
            (Some(held), None) => Place::In(&held.table),
            (Some(_), Some(_)) => Place::Straddles,
        }
    }
}

impl std::fmt::Debug for ResidentRuns {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ResidentRuns({})", self.runs.len())
    }
}
