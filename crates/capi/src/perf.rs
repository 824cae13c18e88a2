//! `rocksdb_perfcontext_t`: what the calling thread read and waited for. Each thread has one, whichever handle asks.

use std::cell::Cell;
use std::sync::{Arc, OnceLock};

use drumlin::Env;
use drumlin_base::perf::{self, Level, Measure};
use drumlin_fs::Clock;

/// One of the numbers.
struct Metric {
    name: &'static str,
    /// As `rocksdb_perfcontext_metric` asks for it.
    number: Option<i32>,
    /// None where nothing like it is counted here.
    measure: Option<Measure>,
    is_reported: bool,
}

include!(concat!(env!("OUT_DIR"), "/perf.rs"));

impl Metric {
    fn value(&self) -> u64 {
        self.measure.map_or(0, perf::read)
    }
}

/// What the handle holds: nothing, for the numbers are the thread's.
#[derive(Debug, Default)]
pub(crate) struct PerfContext;

/// RocksDB's levels.
const COUNTS: i32 = 2;
const TIMES_EXCEPT_MUTEX: i32 = 3;

/// The clock of measured times.
fn nanos() -> u64 {
    static CLOCK: OnceLock<Arc<dyn Clock>> = OnceLock::new();
    let clock = CLOCK.get_or_init(|| Env::system().clock);
    u64::try_from(clock.monotonic().as_nanos()).unwrap_or(u64::MAX)
}

thread_local! {
    /// Whether the thread said what it wants.
    static IS_TOLD: Cell<bool> = const { Cell::new(false) };
}

/// A thread that asks for its numbers, and never said how much it wants, has them counted from here on: in RocksDB that is so
/// from the beginning.
fn count_from_now() {
    if !IS_TOLD.get() {
        perf::set_level(Level::Counts, nanos);
    }
}

pub(crate) mod calls {
    use super::{
        COUNTS, IS_TOLD, Level, METRICS, PerfContext, TIMES_EXCEPT_MUTEX, count_from_now, nanos,
        perf,
    };

    pub(crate) fn set_perf_level(level: i32) {
        let level = match level {
            TIMES_EXCEPT_MUTEX.. => Level::Times,
            COUNTS => Level::Counts,
            _ => Level::Off,
        };
        IS_TOLD.set(true);
        perf::set_level(level, nanos);
    }

    pub(crate) fn perfcontext_create() -> PerfContext {
        count_from_now();
        PerfContext
    }

    pub(crate) fn perfcontext_reset(_context: &PerfContext) {
        perf::reset();
    }

    pub(crate) fn perfcontext_report(
        _context: &PerfContext,
        without_zeros: bool,
    ) -> Option<String> {
        let told = METRICS.iter().filter(|metric| metric.is_reported);
        let told = told.map(|metric| (metric.name, metric.value()));
        let told = told.filter(|(_, value)| !without_zeros || *value > 0);
        let told = told.map(|(name, value)| format!("{name} = {value}"));
        Some(told.collect::<Vec<_>>().join(", "))
    }

    pub(crate) fn perfcontext_metric(_context: &PerfContext, number: i32) -> u64 {
        let found = METRICS.iter().find(|metric| metric.number == Some(number));
        found.map_or(0, |metric| metric.value())
    }
}
