//! The work of a thread, operation by operation.

use std::time::Duration;

use drumlin_base::Result;
use drumlin_base::rng::Rng;
use drumlin_fs::Clock;

use crate::binding::Client;
use crate::measurements::{Kind, Measurements, Return};

/// A thread's measurements, and the moment its present operation should have begun.
#[derive(Debug)]
pub(crate) struct Stopwatch<'c> {
    pub(crate) clock: &'c dyn Clock,
    pub(crate) measurements: Measurements,
    pub(crate) intended: Duration,
}

impl Stopwatch<'_> {
    /// Times `operation` and counts how it ended.
    pub(crate) fn time<T>(
        &mut self,
        kind: Kind,
        operation: impl FnOnce() -> Result<(T, Return)>,
    ) -> Result<T> {
        let began = self.clock.monotonic();
        let (value, how) = operation()?;
        let ended = self.clock.monotonic();
        self.measurements
            .record(kind, self.intended, began, ended, how);
        Ok(value)
    }
}

/// `OK` when it was there.
pub(crate) fn found(is_there: bool) -> Return {
    if is_there {
        Return::Ok
    } else {
        Return::NotFound
    }
}

/// The random draws of thread `index`, apart from those of every other under one `seed`.
pub(crate) fn rng_of_thread(seed: u64, index: u64) -> Rng {
    Rng::new(seed ^ (index + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

/// A workload, shared by threads.
pub(crate) trait Workload: Sync {
    /// State of a thread.
    type Thread: Send;

    /// The state that thread `index` begins with.
    fn thread(&self, index: u64) -> Self::Thread;

    /// Adds one record of the load; false when there is none left.
    fn load_one(
        &self,
        thread: &mut Self::Thread,
        client: &mut impl Client,
        watch: &mut Stopwatch<'_>,
    ) -> Result<bool>;

    /// Carries out one operation of the run.
    fn run_one(
        &self,
        thread: &mut Self::Thread,
        client: &mut impl Client,
        watch: &mut Stopwatch<'_>,
    ) -> Result<()>;
}
