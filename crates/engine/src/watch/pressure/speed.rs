//! How fast something works: bytes a second of work, averaged over the work of the last while.

use std::time::Duration;

/// A moving average of a speed. Over less work than its horizon it is the plain average, so that the
/// first figure is as good as it can be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Speed {
    horizon_seconds: f64,
    /// Seconds of work the average stands for.
    seen_seconds: f64,
    bytes_per_second: f64,
    /// Bytes done in no time: at the end of a job between two looks, on a coarse clock.
    early_bytes: f64,
}

impl Speed {
    /// A speed nothing is known of, averaged over `horizon` of work.
    pub(crate) fn new(horizon: Duration) -> Self {
        Self {
            horizon_seconds: horizon.as_secs_f64(),
            seen_seconds: 0.0,
            bytes_per_second: 0.0,
            early_bytes: 0.0,
        }
    }

    /// Notes that `bytes` were done in `work`.
    pub(crate) fn record(&mut self, bytes: f64, work: Duration) {
        let seconds = work.as_secs_f64();
        if seconds <= 0.0 {
            if !drumlin_base::bug!("work-in-no-time-lost") {
                self.early_bytes += bytes;
            }
            return;
        }
        let bytes = bytes + std::mem::take(&mut self.early_bytes);
        self.seen_seconds = (self.seen_seconds + seconds).min(self.horizon_seconds.max(seconds));
        let share = seconds / self.seen_seconds;
        self.bytes_per_second += share * (bytes / seconds - self.bytes_per_second);
    }

    /// Bytes a second; `None` while no work was seen.
    pub(crate) fn get(&self) -> Option<f64> {
        (self.seen_seconds > 0.0).then_some(self.bytes_per_second)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_figures_are_plain_averages() {
        let mut speed = Speed::new(Duration::from_secs(10));
        assert_eq!(speed.get(), None);
        speed.record(100.0, Duration::from_secs(1));
        assert_eq!(speed.get(), Some(100.0));
        speed.record(300.0, Duration::from_secs(1));
        assert_eq!(speed.get(), Some(200.0));
    }

    #[test]
    fn old_work_is_forgotten_after_the_horizon() {
        let mut speed = Speed::new(Duration::from_secs(2));
        for _ in 0..100 {
            speed.record(1000.0, Duration::from_millis(100));
        }
        for _ in 0..100 {
            speed.record(1.0, Duration::from_millis(100));
        }
        assert!(speed.get().is_some_and(|now| now < 100.0));
    }

    #[test]
    fn work_that_took_no_time_counts_with_the_next() {
        let mut speed = Speed::new(Duration::from_secs(2));
        speed.record(1000.0, Duration::ZERO);
        assert_eq!(speed.get(), None);
        speed.record(0.0, Duration::from_secs(1));
        assert_eq!(speed.get(), Some(1000.0));
    }
}
