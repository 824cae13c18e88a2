//! The settings of a database that may change while it runs, and that no family has.
//!
//! Thread safety: atomic, each by itself; set under the state's lock.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crate::options::settings::Options;

/// See the module.
#[derive(Debug)]
pub(crate) struct StoreSettings {
    /// Threads for flushes and compactions.
    threads: AtomicUsize,
    /// The bound of WAL files; 0 for the one that follows from the memtables.
    wal_bytes_max: AtomicU64,
}

impl StoreSettings {
    /// Those that a database is opened with.
    pub(crate) fn new(options: &Options) -> Self {
        Self {
            threads: AtomicUsize::new(options.background_threads_count()),
            wal_bytes_max: AtomicU64::new(options.tuning.wal_bytes_max.unwrap_or(0)),
        }
    }

    pub(crate) fn threads(&self) -> usize {
        self.threads.load(Ordering::Relaxed)
    }

    pub(crate) fn set_threads(&self, count: usize) {
        self.threads.store(count, Ordering::Relaxed);
    }

    pub(crate) fn wal_bytes_max(&self) -> Option<u64> {
        let bytes = self.wal_bytes_max.load(Ordering::Relaxed);
        (bytes > 0).then_some(bytes)
    }

    /// Sets the bound; 0 for the one that follows from the memtables.
    pub(crate) fn set_wal_bytes_max(&self, bytes: u64) {
        self.wal_bytes_max.store(bytes, Ordering::Relaxed);
    }
}
