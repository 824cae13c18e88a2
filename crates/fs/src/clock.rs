//! The clock, as a trait, so that a test can stop it or make it jump.

use std::fmt::Debug;
use std::time::Duration;

/// A clock. Durations and deadlines use the monotonic reading, file times the wall reading.
pub trait Clock: Send + Sync + Debug {
    /// Time since some fixed moment of this process; never goes back.
    fn monotonic(&self) -> Duration;
    /// Time since 1970-01-01 UTC; may jump, forth and back. Zero where the clock stands before that.
    fn unix_time(&self) -> Duration;
    /// [`Clock::unix_time`] in whole seconds.
    fn unix_seconds(&self) -> u64 {
        self.unix_time().as_secs()
    }
    /// [`Clock::unix_time`] in whole milliseconds, as expiry times are written.
    fn unix_millis(&self) -> u64 {
        u64::try_from(self.unix_time().as_millis()).unwrap_or(u64::MAX)
    }
    /// Blocks the calling thread (or, under simulation, lets time pass).
    fn sleep(&self, duration: Duration);
}
