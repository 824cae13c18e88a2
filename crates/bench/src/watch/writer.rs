//! One writing thread of a watched load.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use drumlin_base::Result;
use drumlin_fs::Clock;

use crate::flags::Flags;
use crate::gate::Gate;
use crate::histogram::Latencies;
use crate::keygen::KeyShape;
use crate::mersenne::Mersenne64;
use crate::pace::WritePace;
use crate::store::{Session, Store};
use crate::values::Values;

/// State shared by the writers and the watcher.
#[derive(Debug)]
pub(super) struct Board {
    /// Where writers wait for the start.
    pub(super) gate: Gate,
    /// Told to the writers: write no more.
    pub(super) stop: AtomicBool,
    /// Writers still writing.
    pub(super) running: AtomicUsize,
    /// The writers' schedule, if they have one.
    pub(super) limit: Option<WritePace>,
    /// When the load began. Set before the gate opens.
    started: OnceLock<Duration>,
    /// Each writer's times by the second in which the write returned, counted from 0, until the
    /// watcher takes them. The writers tell the seconds apart, not the watcher, which may wake
    /// late. The lock is free but for the moment of taking, so a write pays an uncontended lock.
    times: Vec<Mutex<Times>>,
    failed: Mutex<Option<drumlin_base::Error>>,
}

/// The times of one writer.
#[derive(Debug)]
struct Times {
    by_second: Vec<(u64, Latencies)>,
    /// Without times, for seconds to come: they are large enough that an allocator maps them, which is not to be seen among
    /// what the store does.
    empty: Vec<Latencies>,
}

impl Default for Times {
    fn default() -> Self {
        Self {
            by_second: Vec::new(),
            empty: vec![Latencies::new(); 3],
        }
    }
}

impl Board {
    /// For `writers` writers.
    pub(super) fn new(writers: usize, limit: Option<WritePace>) -> Self {
        Self {
            gate: Gate::default(),
            stop: AtomicBool::new(false),
            running: AtomicUsize::new(writers),
            limit,
            started: OnceLock::new(),
            times: (0..writers).map(|_| Mutex::default()).collect(),
            failed: Mutex::new(None),
        }
    }

    /// Lets the writers go; the load begins at `now`.
    pub(super) fn start(&self, writers: usize, now: Duration) {
        self.started.get_or_init(|| now);
        self.gate.open(writers);
    }

    /// Merges into `sum` all writers' times of second `last` and of those before that were not
    /// taken yet, and forgets them.
    pub(super) fn take_times(&self, last: u64, sum: &mut Latencies) {
        for times in &self.times {
            let lock = || times.lock().unwrap_or_else(PoisonError::into_inner);
            let is_taken = |of: &mut (u64, Latencies)| of.0 <= last;
            let taken: Vec<_> = lock().by_second.extract_if(.., is_taken).collect();
            for (_, mut latencies) in taken {
                sum.merge(&latencies);
                latencies.clear();
                lock().empty.push(latencies);
            }
        }
    }

    /// The first error a writer met.
    pub(super) fn failure(&self) -> Option<drumlin_base::Error> {
        self.failed
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }

    /// The body of writer `index`: writes `writes_max` times or until told to stop.
    pub(super) fn write<S: Store>(
        &self,
        store: &S,
        flags: &Flags,
        clock: &dyn Clock,
        index: usize,
        writes_max: u64,
    ) {
        if self.gate.wait() {
            let written = self.write_all(store, flags, clock, index, writes_max);
            if let Err(error) = written {
                // The others would only write into a broken store.
                self.stop.store(true, Ordering::Relaxed);
                let mut failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
                failed.get_or_insert(error);
            }
        }
        // Relaxed: only the number matters; joining the threads orders the rest.
        self.running.fetch_sub(1, Ordering::Relaxed);
    }

    fn write_all<S: Store>(
        &self,
        store: &S,
        flags: &Flags,
        clock: &dyn Clock,
        index: usize,
        writes_max: u64,
    ) -> Result<()> {
        let mut random = Mersenne64::new(flags.seed.wrapping_add(index as u64 + 1));
        let mut values = Values::new(flags.compression_ratio, flags.value_size);
        let shape = KeyShape::new(flags, 0);
        let mut key = shape.buffer();
        let mut session = store.session(flags);
        let entry_bytes = (flags.key_size + flags.value_size) as u64;
        let mut written = 0;
        // Relaxed: the flag publishes nothing.
        while written < writes_max && !self.stop.load(Ordering::Relaxed) {
            shape.write(random.next_u64() % flags.num, &mut key);
            let value = values.next(flags.value_size);
            if let Some(limit) = &self.limit {
                limit.request(entry_bytes);
            }
            let asked = clock.monotonic();
            session.put(&key, value)?;
            self.record(index, asked, clock.monotonic());
            written += 1;
        }
        Ok(())
    }

    #[inline]
    fn record(&self, index: usize, asked: Duration, returned: Duration) {
        let nanos = u64::try_from((returned - asked).as_nanos()).unwrap_or(u64::MAX);
        let started = self.started.get().copied().unwrap_or(asked);
        let second = returned.saturating_sub(started).as_secs();
        let Some(times) = self.times.get(index) else {
            return;
        };
        let mut times = times.lock().unwrap_or_else(PoisonError::into_inner);
        match times.by_second.last_mut() {
            Some((open, latencies)) if *open == second => latencies.record(nanos),
            _ => {
                let mut latencies = times.empty.pop().unwrap_or_default();
                latencies.record(nanos);
                times.by_second.push((second, latencies));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_belongs_to_the_second_in_which_it_returned() {
        let board = Board::new(2, None);
        let at = |millis: u64| Duration::from_millis(10_000 + millis);
        board.started.get_or_init(|| at(0));
        board.record(0, at(100), at(200));
        board.record(1, at(900), at(3100));
        board.record(0, at(1000), at(1001));
        let count = |last| {
            let mut sum = Latencies::new();
            board.take_times(last, &mut sum);
            (sum.count(), (sum.max_us() / 1e5).round())
        };
        assert_eq!(count(0), (1, 1.0));
        assert_eq!(count(0), (0, 0.0));
        assert_eq!(count(2), (1, 0.0));
        assert_eq!(count(3), (1, 22.0));
    }
}
