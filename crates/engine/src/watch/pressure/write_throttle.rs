//! The debt of writers for the bytes they wrote: a token bucket in time, kept by the leader.
//!
//! Bytes are paid for after they were written, by the next group; bytes written while writers were
//! free cost nothing, even when writers are slowed later. No sleep is much shorter than a
//! millisecond, so little debts add up first.

use std::time::Duration;

/// Debts below this are not worth a sleep.
const STEP_MIN: Duration = Duration::from_micros(500);
/// The longest sleep at once; after it the speed may be another.
const STEP_MAX: Duration = Duration::from_millis(1);
/// Time a writer that did not use its speed may make up for.
const BURST: Duration = Duration::from_millis(4);

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct WriteThrottle {
    /// Bytes written that were not turned into time yet.
    unpaid: u64,
    /// When all that was turned into time is paid; `None` while writes are not throttled.
    paid_at: Option<Duration>,
}

impl WriteThrottle {
    /// Notes that `bytes` were written.
    pub(crate) fn add(&mut self, bytes: u64) {
        self.unpaid = self.unpaid.saturating_add(bytes);
    }

    /// Notes that writes are not throttled: bytes that were not turned into time cost nothing.
    pub(crate) fn lift(&mut self) {
        self.paid_at = None;
    }

    /// Bytes that were not turned into time yet.
    pub(crate) fn owed_bytes(&self) -> u64 {
        self.unpaid
    }

    /// How long to sleep before the next group, at `bytes_per_second`; zero to go on. Ask again
    /// after the sleep.
    pub(crate) fn wait(&mut self, now: Duration, bytes_per_second: f64) -> Duration {
        let unpaid = std::mem::take(&mut self.unpaid) as f64;
        if !bytes_per_second.is_finite() {
            self.paid_at = None;
            return Duration::ZERO;
        }
        let burst = now.saturating_sub(BURST);
        let Some(paid_at) = self.paid_at else {
            self.paid_at = Some(burst);
            return Duration::ZERO;
        };
        // Nothing costs nothing, also where the disk stands still and no speed is left to divide by.
        let cost = match unpaid > 0.0 {
            true => Duration::try_from_secs_f64(unpaid / bytes_per_second).unwrap_or(COST_MAX),
            false => Duration::ZERO,
        };
        let from = paid_at.max(burst);
        // Debt from a much lower speed is forgiven.
        let paid_at = (from + cost.min(COST_MAX)).min(now + COST_MAX);
        self.paid_at = Some(paid_at);
        let owed = paid_at.saturating_sub(now);
        if owed < STEP_MIN {
            return Duration::ZERO;
        }
        owed.min(STEP_MAX)
    }
}

/// Nobody waits longer than this for others' writes.
const COST_MAX: Duration = Duration::from_millis(50);

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes groups of `bytes` at `rate` for `seconds`; bytes written and the longest sleep.
    fn run(bytes: u64, rate: f64, seconds: u64) -> (u64, Duration) {
        let mut throttle = WriteThrottle::default();
        let mut now = Duration::from_secs(100);
        let end = now + Duration::from_secs(seconds);
        let (mut written, mut longest) = (0, Duration::ZERO);
        while now < end {
            let mut slept = Duration::ZERO;
            loop {
                let wait = throttle.wait(now, rate);
                if wait.is_zero() {
                    break;
                }
                now += wait;
                slept += wait;
            }
            longest = longest.max(slept);
            throttle.add(bytes);
            written += bytes;
            now += Duration::from_nanos(500);
        }
        (written, longest)
    }

    #[test]
    fn over_time_the_speed_is_what_was_allowed() {
        for (bytes, rate) in [(100, 1e6), (100, 50e6), (10_000, 50e6), (10_000, 400e6)] {
            let (written, longest) = run(bytes, rate, 2);
            let share = written as f64 / (2.0 * rate);
            assert!((0.98..1.03).contains(&share), "{bytes} {rate}: {share}");
            assert!(longest <= Duration::from_millis(2), "{longest:?}");
        }
    }

    #[test]
    fn free_writers_owe_nothing_and_do_not_save_up() {
        let mut throttle = WriteThrottle::default();
        let now = Duration::from_secs(5);
        throttle.add(1 << 30);
        assert_eq!(throttle.wait(now, f64::INFINITY), Duration::ZERO);
        throttle.add(1 << 20);
        assert_eq!(throttle.wait(now, 1e6), Duration::ZERO);
        throttle.add(10_000);
        assert_eq!(throttle.wait(now, 1e6), STEP_MAX);
        throttle.lift();
        throttle.add(100_000);
        assert_eq!(throttle.wait(now, 1e6), Duration::ZERO);
    }

    #[test]
    fn a_disk_that_stands_still_holds_nobody_for_ever() {
        let (mut throttle, mut now) = (WriteThrottle::default(), Duration::from_secs(1));
        assert!(throttle.wait(now, 0.0).is_zero());
        throttle.add(1);
        let begin = now;
        loop {
            let wait = throttle.wait(now, 0.0);
            if wait.is_zero() {
                break;
            }
            now += wait;
            assert!(now - begin <= COST_MAX);
        }
    }

    #[test]
    fn a_huge_group_at_a_tiny_speed_costs_a_bounded_wait() {
        let mut throttle = WriteThrottle::default();
        let mut now = Duration::from_secs(5);
        let begin = now;
        assert!(throttle.wait(now, 1000.0).is_zero());
        throttle.add(1 << 30);
        loop {
            let wait = throttle.wait(now, 1000.0);
            if wait.is_zero() {
                break;
            }
            now += wait;
        }
        assert!(now - begin <= COST_MAX);
    }
}
