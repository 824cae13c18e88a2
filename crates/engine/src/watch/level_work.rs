//! Work of flushes and compactions, by the level that their outputs went into.

use std::sync::atomic::{AtomicU64, Ordering};

use drumlin_base::limits::LEVELS;

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

/// Counters of one level. A job counts once, at its end: stripes for each thread, 4 KiB a counter, would gain nothing.
#[derive(Debug, Default)]
struct OfLevel {
    jobs: AtomicU64,
    bytes_read: AtomicU64,
    bytes_written: AtomicU64,
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
            // Relaxed, all: no other memory is published by a count.
            of.jobs.fetch_add(1, Ordering::Relaxed);
            of.bytes_read.fetch_add(bytes_read, Ordering::Relaxed);
            of.bytes_written.fetch_add(bytes_written, Ordering::Relaxed);
        }
    }

    /// The counts, from L0 on.
    pub(crate) fn read(&self) -> Vec<LevelWork> {
        let levels = self.levels.iter();
        let read = levels.map(|of| LevelWork {
            jobs: of.jobs.load(Ordering::Relaxed),
            bytes_read: of.bytes_read.load(Ordering::Relaxed),
            bytes_written: of.bytes_written.load(Ordering::Relaxed),
        });
        read.collect()
    }
}
