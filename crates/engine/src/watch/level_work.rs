//! Work of flushes and compactions, by the level that their outputs went into.

use drumlin_base::limits::LEVELS;
use drumlin_base::metrics::Counter;

/// Work whose outputs went into a level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LevelWork {
    /// Flushes (L0) and compactions; trivial moves are not counted.
    pub jobs: u64,
    /// Bytes that compactions read for it.
    pub bytes_read: u64,
    /// Bytes written to it.
    pub bytes_written: u64,
}

/// Counters of one level.
#[derive(Debug, Default)]
struct OfLevel {
    jobs: Counter,
    bytes_read: Counter,
    bytes_written: Counter,
}

/// Counters of every level, of all families.
#[derive(Debug, Default)]
pub(crate) struct LevelCounters {
    levels: [OfLevel; LEVELS],
}

impl LevelCounters {
    /// Counts a job that read so many bytes for `level`, and wrote so many.
    pub(crate) fn add(&self, level: usize, bytes_read: u64, bytes_written: u64) {
        let level = match drumlin_base::bug!("work-of-the-level-above") {
            true => level.saturating_sub(1),
            false => level,
        };
        if let Some(of) = self.levels.get(level) {
            of.jobs.bump();
            of.bytes_read.add(bytes_read);
            of.bytes_written.add(bytes_written);
        }
    }

    /// The counts, from L0 on.
    pub(crate) fn read(&self) -> Vec<LevelWork> {
        let levels = self.levels.iter();
        let read = levels.map(|of| LevelWork {
            jobs: of.jobs.get(),
            bytes_read: of.bytes_read.get(),
            bytes_written: of.bytes_written.get(),
        });
        read.collect()
    }
}
