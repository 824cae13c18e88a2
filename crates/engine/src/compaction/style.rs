//! The ways tables are rearranged in the background, as a user names them.

use drumlin_base::limits::LEVELS;
use drumlin_base::{Error, Result};

/// How tables are rearranged in the background.
///
/// A directory may be opened with another style than before: every style goes on from the
/// tables it finds, and brings them into its own shape as it works.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum CompactionStyle {
    /// As the directory's OPTIONS file says; leveled where there is none.
    #[default]
    Auto,
    /// Sorted runs of growing size, one a level (`L1` to `L6`), with dynamic level sizes. Reads
    /// look at few tables and little space is wasted; each entry is rewritten about ten times a
    /// level.
    Leveled,
    /// Sorted runs that are merged with others of their size. Each entry is rewritten only a few
    /// times; reads look at more runs, and space is wasted up to the limit in the options.
    Universal(UniversalOptions),
    /// Tables stay as they were flushed, and the oldest are dropped, entries and all: for logs and
    /// caches. **Loses data by design.**
    Fifo(FifoOptions),
    /// Only on request, by `compact_range`. Reads slow down as L0 grows.
    Manual,
}

impl CompactionStyle {
    /// Checks the options of the style.
    ///
    /// # Errors
    /// `InvalidArgument` naming the option.
    pub fn validate(&self) -> Result<()> {
        let refuse = |what: &str| Err(Error::invalid_argument(what));
        match self {
            Self::Universal(limits) if limits.runs_trigger < 2 => {
                refuse("runs_trigger of universal compaction must be at least 2")
            }
            Self::Universal(limits) if limits.merge_width_min < 2 => {
                refuse("merge_width_min of universal compaction must be at least 2")
            }
            Self::Universal(limits) if limits.merge_width_max < limits.merge_width_min => {
                refuse("merge_width_max of universal compaction is below merge_width_min")
            }
            Self::Universal(limits) if !(1..=LEVELS).contains(&limits.levels_max) => {
                refuse("levels_max of universal compaction must be between 1 and 7")
            }
            Self::Fifo(limits) if limits.table_bytes_max == 0 => {
                refuse("table_bytes_max of FIFO compaction must be more than 0")
            }
            _ => Ok(()),
        }
    }

    /// Whether the background makes L0 lower, so that slowing writers down helps it.
    pub fn drains_l0(&self) -> bool {
        !matches!(self, Self::Fifo(_) | Self::Manual)
    }
}

/// The triggers and bounds of universal merges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UniversalOptions {
    /// Sorted runs (each table of L0 is one, each deeper level is one) at which they are
    /// merged: fewer let reads look at fewer, more let an entry be rewritten less often. With 4,
    /// RocksDB's number, entries are rewritten no less than under the leveled style. Default: 8.
    pub runs_trigger: usize,
    /// A run joins the newer ones before it when it is at most this much larger than all of them
    /// together, in percent. Default: 1.
    pub size_ratio_percent: u32,
    /// Fewest runs that are merged for their size. Default: 2.
    pub merge_width_min: usize,
    /// Most runs that are merged at once, but for space. Default: no limit.
    pub merge_width_max: usize,
    /// Bytes of all runs but the oldest, in percent of the oldest, from which everything is merged
    /// into one: the bound on wasted space. Default: 100; RocksDB's 200 writes no less.
    pub space_percent_max: u32,
    /// Levels there may be, with L0: RocksDB's `num_levels`, which refuses a directory with more. With 1
    /// all runs are tables of L0, also the largest. Runs that another style left deeper stay there until
    /// everything is merged at once. Default and most: 7.
    pub levels_max: usize,
}

impl Default for UniversalOptions {
    fn default() -> Self {
        Self {
            runs_trigger: 8,
            size_ratio_percent: 1,
            merge_width_min: 2,
            merge_width_max: usize::MAX,
            space_percent_max: 100,
            levels_max: LEVELS,
        }
    }
}

/// The rules by which FIFO drops tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FifoOptions {
    /// Bytes of all tables from which the oldest are dropped. Default: 1 GiB, as RocksDB's.
    pub table_bytes_max: u64,
    /// Seconds after which a table is dropped whatever the size; `None` is never. Default: never.
    pub ttl_seconds: Option<u64>,
    /// Whether small tables are merged with their neighbours in age, so that reads look at fewer.
    /// Default: false.
    pub merge_small: bool,
}

impl Default for FifoOptions {
    fn default() -> Self {
        Self {
            table_bytes_max: 1 << 30,
            ttl_seconds: None,
            merge_small: false,
        }
    }
}
