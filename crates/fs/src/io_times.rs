//! The time spent waiting for the disk: in writes, syncs and reads.
//!
//! Thread safety: adding is a few relaxed adds; a reading is not a snapshot of one moment.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The total time of the calls of one kind.
#[derive(Debug, Default)]
pub struct CallTimes {
    calls: AtomicU64,
    nanos: AtomicU64,
    longest_nanos: AtomicU64,
}

impl CallTimes {
    /// Adds `calls` that took `time` together.
    pub fn add(&self, calls: u64, time: Duration) {
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.calls.fetch_add(calls, Ordering::Relaxed);
        self.nanos.fetch_add(nanos, Ordering::Relaxed);
        self.longest_nanos.fetch_max(nanos, Ordering::Relaxed);
    }

    /// How many calls there were.
    pub fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    /// Their total time.
    pub fn total(&self) -> Duration {
        Duration::from_nanos(self.nanos.load(Ordering::Relaxed))
    }

    /// The longest time that was added at once.
    pub fn longest(&self) -> Duration {
        Duration::from_nanos(self.longest_nanos.load(Ordering::Relaxed))
    }

    /// The mean time of a call; `None` before the first.
    pub fn mean(&self) -> Option<Duration> {
        let nanos = self.nanos.load(Ordering::Relaxed);
        nanos.checked_div(self.calls()).map(Duration::from_nanos)
    }
}

/// The times of one job, of many, or of a file.
#[derive(Debug, Default)]
pub struct IoTimes {
    /// Appends. Most only fill a buffer.
    pub writes: CallTimes,
    /// Syncs.
    pub syncs: CallTimes,
    /// Reads.
    pub reads: CallTimes,
}

impl IoTimes {
    /// Everything together. More than time passed where several threads waited at once.
    pub fn total(&self) -> Duration {
        self.writes.total() + self.syncs.total() + self.reads.total()
    }
}
