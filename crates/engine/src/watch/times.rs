//! How long calls and jobs take.
//!
//! Thread safety: any thread records; reading is not a snapshot in time.

use std::cell::Cell;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use drumlin_base::histogram::{Histogram, Times};
use drumlin_base::sampler::Sampler;
use drumlin_fs::Clock;

/// Which times are kept (`Options::timings`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Timings {
    /// Those of flushes, compactions, syncs and waits of writers, which take microseconds at least.
    #[default]
    Jobs,
    /// Those of a sample of the calls too: one in 32 gets, multi-gets, seeks and writes of a thread, at
    /// random distances. Each stands for that many: counts and sums are right on average, a longest time may be missed.
    Sampled,
    /// Those of all calls too. Each reads the clock twice, which a get from memory notices.
    Calls,
}

/// Calls of a thread to each one that [`Timings::Sampled`] times, on average: the two readings of the clock are then a
/// thousandth of a call of a microsecond or two.
const CALLS_PER_SAMPLE: u32 = 32;

type CallSampler = Sampler<CALLS_PER_SAMPLE>;

thread_local! {
    static SAMPLER: Cell<CallSampler> = const { Cell::new(CallSampler::new()) };
}

/// Times of calls. With the clock, as the reader of a time has nothing else of the store at hand.
pub struct CallTimes {
    clock: Arc<dyn Clock>,
    /// How many calls one that is timed stands for.
    stands_for: u64,
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
    /// The time at which a call begins, where it is one that is timed.
    #[inline]
    pub(crate) fn begin(&self) -> Option<Duration> {
        let is_timed = self.stands_for == 1 || is_sampled();
        is_timed.then(|| self.clock.monotonic())
    }

    /// The call that began at `begun` ends: recorded in `histogram`.
    #[cold]
    pub(crate) fn end(&self, begun: Duration, histogram: &Histogram) {
        let time = self.clock.monotonic().saturating_sub(begun);
        histogram.record_for(time, self.stands_for);
    }

    /// Calls `work` and records how long it took, where that is timed.
    #[inline]
    pub(crate) fn time<T>(&self, histogram: &Histogram, work: impl FnOnce() -> T) -> T {
        let begun = self.begin();
        let result = work();
        if let Some(begun) = begun {
            self.end(begun, histogram);
        }
        result
    }
}

/// Whether this call of the thread is one of the sample.
#[inline]
fn is_sampled() -> bool {
    SAMPLER.with(|cell| {
        let mut sampler = cell.get();
        let picked = sampler.count(1);
        cell.set(sampler);
        picked.is_some()
    })
}

/// Times of everything that is timed in a store.
pub(crate) struct StoreTimes {
    calls: Option<CallTimes>,
    pub(crate) flush: Histogram,
    pub(crate) compaction: Histogram,
    pub(crate) sync: Histogram,
    pub(crate) stall: Histogram,
}

impl StoreTimes {
    pub(crate) fn new(timings: Timings, clock: &Arc<dyn Clock>) -> Self {
        let stands_for = match timings {
            Timings::Jobs => None,
            Timings::Sampled => Some(u64::from(CALLS_PER_SAMPLE)),
            Timings::Calls => Some(1),
        };
        let calls = |stands_for| CallTimes {
            clock: Arc::clone(clock),
            stands_for,
            get: Histogram::default(),
            multi_get: Histogram::default(),
            seek: Histogram::default(),
            write: Histogram::default(),
        };
        Self {
            calls: stands_for.map(calls),
            flush: Histogram::default(),
            compaction: Histogram::default(),
            sync: Histogram::default(),
            stall: Histogram::default(),
        }
    }

    /// The times of calls, where these are kept.
    #[inline]
    pub(crate) fn calls(&self) -> Option<&CallTimes> {
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
