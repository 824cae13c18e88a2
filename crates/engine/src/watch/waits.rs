//! Time that writers waited, by cause.
//!
//! Thread safety: recording is two relaxed adds and a maximum; reading is not a snapshot in time.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Why a writer waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WaitCause {
    /// Memtables fill faster than they are flushed: the writer was slowed.
    Memtables,
    /// L0 has many tables: the writer was slowed.
    Level0,
    /// Compaction has much to rewrite: the writer was slowed.
    Debt,
    /// Files nobody needs are removed, and blobs moved out of garbage, too slowly: the writer was
    /// slowed.
    Waste,
    /// Every memtable was full: the writer waited for a flush to end.
    FullLine,
}

impl WaitCause {
    /// Every cause.
    pub const ALL: [Self; 5] = [
        Self::Memtables,
        Self::Level0,
        Self::Debt,
        Self::Waste,
        Self::FullLine,
    ];

    /// The name shown to users.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Memtables => "memtables fill faster than they are flushed",
            Self::Level0 => "L0 waits for a compaction",
            Self::Debt => "compaction is behind",
            Self::Waste => "the disk fills with what nobody needs faster than it is freed",
            Self::FullLine => "every memtable waits for a flush",
        }
    }

    /// A word for tables and properties.
    pub fn name(self) -> &'static str {
        match self {
            Self::Memtables => "memtables",
            Self::Level0 => "level0",
            Self::Debt => "debt",
            Self::Waste => "waste",
            Self::FullLine => "full-line",
        }
    }
}

/// Buckets for each doubling: a percentile is at most a quarter too high.
const STEPS: usize = 4;
/// Doublings of a microsecond that have a bucket of their own: over a day.
const DOUBLINGS: usize = 37;

/// The distribution of waits for one cause.
pub struct Waits {
    buckets: [AtomicU64; STEPS * DOUBLINGS],
    micros: AtomicU64,
    longest: AtomicU64,
}

impl Default for Waits {
    fn default() -> Self {
        Self {
            buckets: std::array::from_fn(|_| AtomicU64::new(0)),
            micros: AtomicU64::new(0),
            longest: AtomicU64::new(0),
        }
    }
}

impl Waits {
    pub(crate) fn record(&self, wait: Duration) {
        let micros = u64::try_from(wait.as_micros()).unwrap_or(u64::MAX);
        if let Some(bucket) = self.buckets.get(bucket_of(micros)) {
            bucket.fetch_add(1, Ordering::Relaxed);
        }
        self.micros.fetch_add(micros, Ordering::Relaxed);
        self.longest.fetch_max(micros, Ordering::Relaxed);
    }

    /// How many waits there were.
    pub fn count(&self) -> u64 {
        self.buckets
            .iter()
            .map(|bucket| bucket.load(Ordering::Relaxed))
            .sum()
    }

    /// All of them together.
    pub fn total(&self) -> Duration {
        Duration::from_micros(self.micros.load(Ordering::Relaxed))
    }

    /// The longest.
    pub fn longest(&self) -> Duration {
        Duration::from_micros(self.longest.load(Ordering::Relaxed))
    }

    /// A duration that `share` (0 to 1) of the waits did not exceed, at most a quarter too high; zero when
    /// there were none.
    pub fn quantile(&self, share: f64) -> Duration {
        let wanted = (self.count() as f64 * share).ceil().max(1.0) as u64;
        let mut seen = 0;
        for (index, bucket) in self.buckets.iter().enumerate() {
            seen += bucket.load(Ordering::Relaxed);
            if seen >= wanted {
                return Duration::from_micros(bucket_end(index)).min(self.longest());
            }
        }
        self.longest()
    }
}

impl fmt::Debug for Waits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Waits({self})")
    }
}

impl fmt::Display for Waits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = |time: Duration| time.as_secs_f64() * 1000.0;
        write!(
            f,
            "{} waits, {:.3} s, p50 {:.2} ms, p99 {:.2} ms, p99.9 {:.2} ms, max {:.2} ms",
            self.count(),
            self.total().as_secs_f64(),
            millis(self.quantile(0.5)),
            millis(self.quantile(0.99)),
            millis(self.quantile(0.999)),
            millis(self.longest()),
        )
    }
}

/// The distributions of all causes. About 5 KB.
#[derive(Debug, Default)]
pub struct WaitsByCause {
    causes: [Waits; WaitCause::ALL.len()],
}

impl WaitsByCause {
    /// The waits for `cause`.
    pub fn of(&self, cause: WaitCause) -> &Waits {
        let [memtables, level0, debt, waste, full_line] = &self.causes;
        match cause {
            WaitCause::Memtables => memtables,
            WaitCause::Level0 => level0,
            WaitCause::Debt => debt,
            WaitCause::Waste => waste,
            WaitCause::FullLine if drumlin_base::bug!("waits-of-the-full-line-elsewhere") => {
                memtables
            }
            WaitCause::FullLine => full_line,
        }
    }

    /// Every cause with its waits.
    pub fn iter(&self) -> impl Iterator<Item = (WaitCause, &Waits)> {
        WaitCause::ALL.into_iter().zip(&self.causes)
    }
}

fn bucket_of(micros: u64) -> usize {
    let value = micros.max(1);
    let doubling = value.ilog2() as usize;
    let below = 1u64 << doubling;
    let step = ((value - below) as u128 * STEPS as u128 / u128::from(below)) as usize;
    let step = step + usize::from(drumlin_base::bug!("wait-a-bucket-up"));
    (doubling * STEPS + step).min(STEPS * DOUBLINGS - 1)
}

/// The largest number of microseconds in the bucket.
fn bucket_end(index: usize) -> u64 {
    let below = 1u64 << (index / STEPS);
    below + (below * (index % STEPS + 1) as u64).div_ceil(STEPS as u64) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_time_lies_in_a_bucket_that_ends_little_above_it() {
        for micros in (1..2000).chain([u64::from(u32::MAX), 1 << 36]) {
            let end = bucket_end(bucket_of(micros));
            assert!(
                end >= micros && end <= micros + micros / 4,
                "{micros} {end}"
            );
        }
        assert!(bucket_of(u64::MAX) < STEPS * DOUBLINGS);
        assert_eq!(bucket_of(0), 0);
    }

    #[test]
    fn quantiles_are_those_of_the_waits() {
        let waits = Waits::default();
        assert_eq!(waits.quantile(0.5), Duration::ZERO);
        for millis in 1..=1000 {
            waits.record(Duration::from_millis(millis));
        }
        let near = |share: f64, millis: f64| {
            let found = waits.quantile(share).as_secs_f64() * 1000.0;
            assert!(
                found >= millis && found <= millis * 1.26,
                "{share}: {found}"
            );
        };
        near(0.5, 500.0);
        near(0.99, 990.0);
        assert_eq!(waits.quantile(1.0), Duration::from_secs(1));
        assert_eq!(waits.longest(), Duration::from_secs(1));
        assert_eq!(waits.count(), 1000);
    }

    #[test]
    fn causes_are_kept_apart() {
        let waits = WaitsByCause::default();
        for (index, cause) in WaitCause::ALL.into_iter().enumerate() {
            for _ in 0..=index {
                waits.of(cause).record(Duration::from_micros(5));
            }
        }
        let counts: Vec<u64> = waits.iter().map(|(_, waits)| waits.count()).collect();
        assert_eq!(counts, [1, 2, 3, 4, 5]);
    }
}
