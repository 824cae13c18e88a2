//! A limit on bytes per second, for background writes.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use crate::clock::Clock;

/// What may be taken at once after a pause, as a share of a second.
const BURST: Duration = Duration::from_millis(100);

/// A token bucket: bytes are taken before they are written, and who takes more than there is
/// sleeps until the debt is paid. Any number of threads; they are served in the order they ask,
/// because each one's sleep covers the debts before it.
#[derive(Debug)]
pub struct RateLimiter {
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// 0: no limit.
    bytes_per_second: u64,
    /// When all that was taken will have been paid for.
    paid_at: Duration,
}

impl RateLimiter {
    /// A limiter; `bytes_per_second` 0 lets everything through.
    pub fn new(clock: Arc<dyn Clock>, bytes_per_second: u64) -> Self {
        let paid_at = clock.monotonic();
        Self {
            clock,
            state: Mutex::new(State {
                bytes_per_second,
                paid_at,
            }),
        }
    }

    /// Changes the limit for what is taken from now on.
    pub fn set_bytes_per_second(&self, bytes_per_second: u64) {
        self.state.lock().bytes_per_second = bytes_per_second;
    }

    /// Takes `bytes`, sleeping as long as the limit asks for; how long that was.
    pub fn take(&self, bytes: u64) -> Duration {
        let wait = self.debt_after(bytes);
        if !wait.is_zero() {
            self.clock.sleep(wait);
        }
        wait
    }

    /// Takes `bytes` without sleeping; how long the caller should wait before it writes them.
    pub fn debt_after(&self, bytes: u64) -> Duration {
        let mut state = self.state.lock();
        if state.bytes_per_second == 0 {
            return Duration::ZERO;
        }
        let now = self.clock.monotonic();
        let nanos = u128::from(bytes) * 1_000_000_000 / u128::from(state.bytes_per_second);
        let cost = Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
        // Unused time is kept up to the burst.
        state.paid_at = state
            .paid_at
            .max(now.saturating_sub(BURST))
            .saturating_add(cost);
        state.paid_at.saturating_sub(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ManualClock;

    fn limiter(bytes_per_second: u64) -> (ManualClock, RateLimiter) {
        let clock = ManualClock::new(0);
        clock.advance(Duration::from_secs(10));
        let limiter = RateLimiter::new(Arc::new(clock.clone()), bytes_per_second);
        (clock, limiter)
    }

    #[test]
    fn over_time_no_more_than_the_limit_gets_through() {
        let (clock, limiter) = limiter(1 << 20);
        let begin = clock.monotonic();
        for _ in 0..64 {
            limiter.take(64 << 10);
        }
        assert_eq!(clock.monotonic() - begin, Duration::from_secs(4));
    }

    #[test]
    fn a_pause_saves_up_no_more_than_the_burst() {
        let (clock, limiter) = limiter(1000);
        clock.advance(Duration::from_secs(100));
        assert_eq!(limiter.take(100), Duration::ZERO);
        assert_eq!(limiter.take(500), Duration::from_millis(500));
    }

    #[test]
    fn the_limit_can_change_and_vanish() {
        let (_, limiter) = limiter(1000);
        assert_eq!(limiter.debt_after(1000), Duration::from_secs(1));
        limiter.set_bytes_per_second(2000);
        assert_eq!(limiter.debt_after(2000), Duration::from_secs(2));
        limiter.set_bytes_per_second(0);
        assert_eq!(limiter.take(u64::MAX), Duration::ZERO);
    }
}
