//! How long calls and jobs take.
//!
//! Thread safety: any thread records; reading is not a snapshot in time.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use drumlin_base::histogram::{Histogram, Times};
use drumlin_fs::Clock;

/// Which times are kept (`Options::timings`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Timings {
    /// Those of flushes, compactions, syncs and waits of writers, which take microseconds at least.
    #[default]
    Jobs,
    /// Those of calls too: gets, multi-gets, seeks and writes. Each reads the clock twice, which a get from memory
    /// notices.
    Calls,
}

/// Times of calls. With the clock, as the reader of a time has nothing else of the store at hand.
pub(crate) struct CallTimes {
    clock: Arc<dyn Clock>,
    /// Of single gets.
    pub(crate) get: Histogram,
    /// Of batches of keys.
    pub(crate) multi_get: Histogram,
    /// Of seeks of iterators, to a key or an end.
    pub(crate) seek: Histogram,
    /// Of writes, waits included.
    pub(crate) write: Histogram,
}

impl fmt::Debug for CallTimes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallTimes").finish_non_exhaustive()
    }
}

impl CallTimes {
    /// Calls `work` and records how long it took.
    pub(crate) fn time<T>(&self, histogram: &Histogram, work: impl FnOnce() -> T) -> T {
        let begin = self.clock.monotonic();
        let result = work();
        histogram.record(self.clock.monotonic().saturating_sub(begin));
        result
    }
}

/// Times of everything that is timed in a store.
pub(crate) struct StoreTimes {
    calls: Option<Arc<CallTimes>>,
    pub(crate) flush: Histogram,
    pub(crate) compaction: Histogram,
    pub(crate) sync: Histogram,
    pub(crate) stall: Histogram,
}

impl StoreTimes {
    pub(crate) fn new(timings: Timings, clock: &Arc<dyn Clock>) -> Self {
        let calls = CallTimes {
            clock: Arc::clone(clock),
            get: Histogram::default(),
            multi_get: Histogram::default(),
            seek: Histogram::default(),
            write: Histogram::default(),
        };
        Self {
            calls: (timings == Timings::Calls).then(|| Arc::new(calls)),
            flush: Histogram::default(),
            compaction: Histogram::default(),
            sync: Histogram::default(),
            stall: Histogram::default(),
        }
    }

    /// The times of calls, where these are kept.
    #[inline]
    pub(crate) fn calls(&self) -> Option<&Arc<CallTimes>> {
        self.calls.as_ref()
    }

    /// Each under RocksDB's name; those of calls only where they are kept.
    pub(crate) fn read(&self) -> Vec<(&'static str, Times)> {
        let mut list = vec![
            ("rocksdb.db.flush.micros", self.flush.read()),
            ("rocksdb.compaction.times.micros", self.compaction.read()),
            ("rocksdb.wal.file.sync.micros", self.sync.read()),
            ("rocksdb.db.write.stall", self.stall.read()),
        ];
        if let Some(calls) = &self.calls {
            list.extend([
                ("rocksdb.db.get.micros", calls.get.read()),
                ("rocksdb.db.multiget.micros", calls.multi_get.read()),
                ("rocksdb.db.seek.micros", calls.seek.read()),
                ("rocksdb.db.write.micros", calls.write.read()),
            ]);
        }
        list
    }
}

/// A time that began. What fails on the way is not recorded.
pub(crate) struct Span<'a> {
    clock: &'a dyn Clock,
    begin: Duration,
}

impl<'a> Span<'a> {
    pub(crate) fn begin(clock: &'a dyn Clock) -> Self {
        Self {
            clock,
            begin: clock.monotonic(),
        }
    }

    /// The end: recorded in `histogram`.
    pub(crate) fn end(self, histogram: &Histogram) {
        histogram.record(self.clock.monotonic().saturating_sub(self.begin));
    }
}
