//! When a thread's next operation shall begin.

use std::time::Duration;

use drumlin_fs::Clock;

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
}
