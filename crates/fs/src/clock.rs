//! The clock, as a trait, so that a test can stop it or make it jump.

use std::fmt::Debug;
use std::time::Duration;

/// A clock. Durations and deadlines use the monotonic reading, file times the wall reading.
pub trait Clock: Send + Sync + Debug {
    /// Time since some fixed moment of this process; never goes back.
    fn monotonic(&self) -> Duration;
    /// Seconds since 1970-01-01 UTC; may jump.
    fn unix_seconds(&self) -> u64;
    /// Blocks the calling thread (or, under simulation, lets time pass).
    fn sleep(&self, duration: Duration);
}
