//! Loads held to a rate. There are two schedules, since they answer lateness differently.
//!
//! [`Pace`] is one thread's and counts operations. It keeps every due time, so operations that wait
//! behind a slow one are late too, and their latencies include it (the correction of coordinated
//! omission).
//!
//! [`WritePace`] is shared by all writers and counts bytes, as db_bench's write limit does. A writer that was
//! held up makes good at most a tenth of a second, so that a stall does not end in a burst. It sleeps a
//! millisecond or more at a time: at 80,000 writes a second a sleep for each write would cost more than the
//! writes. The engine's own limiter (`drumlin_fs::RateLimiter`) has priorities and sleeps for each request.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use drumlin_fs::Clock;

/// How far the schedule may lag and still be made up for. A writer held up for longer does not
/// answer with a burst.
const CATCH_UP_NANOS: u64 = 100_000_000;
/// Waits shorter than this are not worth a sleep; the next request waits for them.
const SLEEP_NANOS_MIN: u64 = 1_000_000;

/// A thread's schedule under a target rate, or none.
#[derive(Debug)]
pub struct Pace {
    tick: Option<Duration>,
    start: Duration,
    begun: u32,
}

impl Pace {
    /// `operations_per_second` of this thread from `start` on; 0: as many as it can.
    pub fn new(operations_per_second: f64, start: Duration) -> Self {
        let tick = (operations_per_second > 0.0)
            .then(|| Duration::from_secs_f64(1.0 / operations_per_second));
        Self {
            tick,
            start,
            begun: 0,
        }
    }

    /// Waits until the next operation may begin, and returns when it should have. A thread that fell
    /// behind does not wait until it has caught up; operations are as late as they are.
    pub fn wait(&mut self, clock: &dyn Clock) -> Duration {
        let now = clock.monotonic();
        let Some(tick) = self.tick else {
            return now;
        };
        if self.begun == u32::MAX {
            // The schedule begins anew where it stands; a product would overflow.
            self.start += tick * self.begun;
            self.begun = 0;
        }
        let due = self.start + tick * self.begun;
        self.begun += 1;
        if due > now {
            clock.sleep(due - now);
        }
        due
    }
}

/// A schedule shared by all writers: each request books its bytes at the end of it and waits for
/// its turn. Thread-safe and lock-free.
#[derive(Debug)]
pub struct WritePace {
    clock: Arc<dyn Clock>,
    bytes_per_second: u64,
    booked_until_nanos: AtomicU64,
}

impl WritePace {
    /// A schedule of `bytes_per_second`; `None` for 0, which means no limit.
    pub fn new(bytes_per_second: u64, clock: Arc<dyn Clock>) -> Option<Self> {
        (bytes_per_second > 0).then(|| Self {
            booked_until_nanos: AtomicU64::new(nanos(clock.monotonic())),
            clock,
            bytes_per_second,
        })
    }

    /// Books `bytes` and waits until they may be written.
    pub fn request(&self, bytes: u64) {
        let cost = u128::from(bytes) * 1_000_000_000 / u128::from(self.bytes_per_second);
        let cost = u64::try_from(cost).unwrap_or(u64::MAX);
        let now = nanos(self.clock.monotonic());
        let oldest = now.saturating_sub(CATCH_UP_NANOS);
        // Relaxed: the schedule publishes no other memory.
        let booked = self
            .booked_until_nanos
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |until| {
                Some(until.max(oldest).saturating_add(cost))
            })
            .unwrap_or(oldest);
        let wait = booked.max(oldest).saturating_sub(now);
        if wait >= SLEEP_NANOS_MIN {
            self.clock.sleep(Duration::from_nanos(wait));
        }
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use drumlin_fs::ManualClock;

    use super::*;

    #[test]
    fn operations_behind_a_slow_one_keep_their_due_times() {
        let clock = ManualClock::new(0);
        let mut pace = Pace::new(100.0, Duration::ZERO);
        let millis = |time: Duration| time.as_millis();
        assert_eq!(millis(pace.wait(&clock)), 0);
        assert_eq!(millis(pace.wait(&clock)), 10);
        clock.sleep(Duration::from_millis(35));
        assert_eq!([0; 3].map(|_| millis(pace.wait(&clock))), [20, 30, 40]);
        assert_eq!(millis(clock.monotonic()), 45);
        assert_eq!(
            (millis(pace.wait(&clock)), millis(clock.monotonic())),
            (50, 50)
        );
        let mut free = Pace::new(0.0, Duration::ZERO);
        assert_eq!(free.wait(&clock), clock.monotonic());
    }

    #[test]
    fn requests_take_the_time_their_bytes_cost() {
        let clock = Arc::new(ManualClock::new(0));
        let limit = WritePace::new(1_000_000, clock.clone()).expect("a limit");
        for _ in 0..10_000 {
            limit.request(200);
        }
        let took = clock.monotonic().as_secs_f64();
        assert!((1.99..=2.0).contains(&took), "{took}");
    }

    #[test]
    fn a_long_pause_is_not_made_up_for() {
        let clock = Arc::new(ManualClock::new(0));
        let limit = WritePace::new(1_000_000, clock.clone()).expect("a limit");
        clock.sleep(Duration::from_secs(60));
        for _ in 0..10_000 {
            limit.request(200);
        }
        let took = clock.monotonic().as_secs_f64() - 60.0;
        assert!((1.89..=2.0).contains(&took), "{took}");
    }
}
