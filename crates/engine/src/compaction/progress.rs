//! The progress of a running job, and the requests made to it on the way.
//!
//! Thread safety: parts of a job add from several threads; anyone reads.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use drumlin_base::Result;
use drumlin_fs::IoTimes;

/// How far a job is. All counts are relaxed: they publish nothing.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    bytes_total: u64,
    entries_total: AtomicU64,
    entries_done: AtomicU64,
    io: Arc<IoTimes>,
}

impl Progress {
    /// Of a job over `bytes_total` bytes of input.
    pub(crate) fn new(bytes_total: u64) -> Arc<Self> {
        Arc::new(Self {
            bytes_total,
            ..Self::default()
        })
    }

    /// Notes how many entries the inputs hold, as far as their properties say.
    pub(crate) fn expect_entries(&self, entries: u64) {
        self.entries_total.store(entries, Ordering::Relaxed);
    }

    /// Notes that `entries` more were passed.
    pub(crate) fn add_entries(&self, entries: u64) {
        self.entries_done.fetch_add(entries, Ordering::Relaxed);
    }

    /// How long the job waited for the disk.
    pub(crate) fn io(&self) -> &Arc<IoTimes> {
        &self.io
    }

    /// Bytes of all inputs.
    pub(crate) fn bytes_total(&self) -> u64 {
        self.bytes_total
    }

    /// The share of the entries that was passed; 0 while it is not known how many there are.
    pub(crate) fn share(&self) -> f64 {
        let total = self.entries_total.load(Ordering::Relaxed);
        if total == 0 {
            return 0.0;
        }
        let done = self.entries_done.load(Ordering::Relaxed);
        (done as f64 / total as f64).min(1.0)
    }

    /// About how many bytes of the inputs were passed.
    pub(crate) fn bytes_done(&self) -> u64 {
        (self.bytes_total as f64 * self.share()) as u64
    }
}

/// Asked now and then by the thread that carries a job out.
pub(crate) trait Watcher: Send + Sync {
    /// Returns when the job may go on; it may do something more urgent first.
    ///
    /// # Errors
    /// Why the job is to end.
    fn check(&self) -> Result<()>;
}

/// Bytes of entries between two checks of a job for requests, each of which notes its progress and gives way.
const BYTES_PER_CHECK: usize = 256 << 10;
/// Bytes charged per entry beside its own, so that many small ones are no long wait.
const ENTRY_COST: usize = 64;

/// Counts entries until the next check is due.
#[derive(Debug, Default)]
pub(crate) struct CheckTimer {
    passed: usize,
    entries_noted: u64,
}

impl CheckTimer {
    /// Counts an entry of `bytes`; whether it is time to look.
    #[inline]
    pub(crate) fn is_due(&mut self, bytes: usize) -> bool {
        self.passed += bytes + ENTRY_COST;
        if self.passed < BYTES_PER_CHECK {
            return false;
        }
        self.passed = 0;
        true
    }

    /// Notes in `progress` that `entries` were passed since the walk began.
    pub(crate) fn note(&mut self, progress: &Progress, entries: u64) {
        progress.add_entries(entries.saturating_sub(self.entries_noted));
        self.entries_noted = entries;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_done_follow_the_share_of_entries() {
        let progress = Progress::new(1000);
        progress.add_entries(5);
        assert_eq!(progress.bytes_done(), 0);
        progress.expect_entries(20);
        assert_eq!(progress.bytes_done(), 250);
        progress.add_entries(100);
        assert_eq!(progress.bytes_done(), 1000);
    }

    #[test]
    fn checks_come_by_bytes_and_by_entries() {
        let mut timer = CheckTimer::default();
        let large = (1..).find(|_| timer.is_due(100 << 10));
        assert_eq!(large, Some(3));
        let small = (1..).find(|_| timer.is_due(0));
        assert_eq!(small, Some(BYTES_PER_CHECK / ENTRY_COST));
    }
}
