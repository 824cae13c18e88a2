//! Holds writers to a number of bytes a second.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use drumlin_fs::Clock;

/// How far the schedule may lag and still be made up for. A writer held up for longer does not
/// answer with a burst.
const CATCH_UP_NANOS: u64 = 100_000_000;
/// Waits shorter than this are not worth a sleep; the next request waits for them.
const SLEEP_NANOS_MIN: u64 = 1_000_000;

/// A schedule shared by all writers: each request books its bytes at the end of it and waits for
/// its turn. Thread-safe and lock-free.
#[derive(Debug)]
pub struct RateLimit {
    clock: Arc<dyn Clock>,
    bytes_per_second: u64,
    booked_until_nanos: AtomicU64,
}

impl RateLimit {
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
    fn requests_take_the_time_their_bytes_cost() {
        let clock = Arc::new(ManualClock::new(0));
        let limit = RateLimit::new(1_000_000, clock.clone()).expect("a limit");
        for _ in 0..10_000 {
            limit.request(200);
        }
        let took = clock.monotonic().as_secs_f64();
        assert!((1.99..=2.0).contains(&took), "{took}");
    }

    #[test]
    fn a_long_pause_is_not_made_up_for() {
        let clock = Arc::new(ManualClock::new(0));
        let limit = RateLimit::new(1_000_000, clock.clone()).expect("a limit");
        clock.sleep(Duration::from_secs(60));
        for _ in 0..10_000 {
            limit.request(200);
        }
        let took = clock.monotonic().as_secs_f64() - 60.0;
        assert!((1.89..=2.0).contains(&took), "{took}");
    }
}
