//! Distributions of times that cost a thread two stores to memory of its own.
//!
//! Striped as the counters of [`crate::metrics`] are: each of the first threads has its own buckets, which nobody else
//! writes. A stripe's memory (1.4 KB) is made by the first time that is recorded on it. Reading adds the stripes up and is
//! not a snapshot in time.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::metrics::{OWN_STRIPES, STRIPES, own_stripe};

/// Buckets for each doubling: a quantile is at most a quarter too high.
const STEPS: usize = 4;
/// Doublings of a nanosecond that have a bucket of their own: almost five hours.
const DOUBLINGS: usize = 44;
/// All buckets.
const BUCKETS: usize = STEPS * DOUBLINGS;

/// One thread's part, or that of the threads without one of their own.
#[derive(Debug)]
struct Stripe {
    buckets: [AtomicU64; BUCKETS],
    nanos: AtomicU64,
    longest: AtomicU64,
}

impl Default for Stripe {
    fn default() -> Self {
        Self {
            buckets: std::array::from_fn(|_| AtomicU64::new(0)),
            nanos: AtomicU64::new(0),
            longest: AtomicU64::new(0),
        }
    }
}

impl Stripe {
    // Relaxed, all: no other memory is published by a time.
    fn record_alone(&self, nanos: u64, times: u64) {
        let add = |to: &AtomicU64, n: u64| {
            to.store(
                to.load(Ordering::Relaxed).wrapping_add(n),
                Ordering::Relaxed,
            );
        };
        if let Some(bucket) = self.buckets.get(bucket_of(nanos)) {
            add(bucket, times);
        }
        add(&self.nanos, nanos.wrapping_mul(times));
        if nanos > self.longest.load(Ordering::Relaxed) {
            self.longest.store(nanos, Ordering::Relaxed);
        }
    }

    fn record_shared(&self, nanos: u64, times: u64) {
        if let Some(bucket) = self.buckets.get(bucket_of(nanos)) {
            bucket.fetch_add(times, Ordering::Relaxed);
        }
        let sum = nanos.wrapping_mul(times);
        self.nanos.fetch_add(sum, Ordering::Relaxed);
        self.longest.fetch_max(nanos, Ordering::Relaxed);
    }
}

/// A distribution that many threads record to.
#[derive(Debug, Default)]
pub struct Histogram {
    stripes: [OnceLock<Box<Stripe>>; STRIPES],
}

impl Histogram {
    /// Records one time.
    pub fn record(&self, time: Duration) {
        self.record_for(time, 1);
    }

    /// Records one time that stands for `times` of about its length.
    pub fn record_for(&self, time: Duration, times: u64) {
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let at = own_stripe();
        let Some(stripe) = self.stripes.get(at) else {
            return;
        };
        let stripe = stripe.get_or_init(Box::default);
        match at < OWN_STRIPES {
            true => stripe.record_alone(nanos, times),
            false => stripe.record_shared(nanos, times),
        }
    }

    /// The times so far.
    pub fn read(&self) -> Times {
        let mut times = Times::default();
        let made = self.stripes.iter().filter_map(OnceLock::get);
        let made = made.take(match crate::bug!("times-of-the-first-stripe-only") {
            true => 1,
            false => STRIPES,
        });
        for stripe in made {
            for (sum, bucket) in times.buckets.iter_mut().zip(&stripe.buckets) {
                *sum += bucket.load(Ordering::Relaxed);
            }
            let nanos = stripe.nanos.load(Ordering::Relaxed);
            times.nanos = times.nanos.wrapping_add(nanos);
            times.longest = times.longest.max(stripe.longest.load(Ordering::Relaxed));
        }
        times
    }
}

/// What a [`Histogram`] held when it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Times {
    buckets: [u64; BUCKETS],
    nanos: u64,
    longest: u64,
}

impl Default for Times {
    fn default() -> Self {
        Self {
            buckets: [0; BUCKETS],
            nanos: 0,
            longest: 0,
        }
    }
}

impl Times {
    /// How many there were.
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// All of them together.
    pub fn total(&self) -> Duration {
        Duration::from_nanos(self.nanos)
    }

    /// The longest.
    pub fn longest(&self) -> Duration {
        Duration::from_nanos(self.longest)
    }

    /// A time that `share` (0 to 1) of them did not exceed, at most a quarter too high; zero when there were none.
    pub fn quantile(&self, share: f64) -> Duration {
        let wanted = (self.count() as f64 * share).ceil().max(1.0) as u64;
        let mut seen = 0;
        for (index, bucket) in self.buckets.iter().enumerate() {
            seen += bucket;
            if seen >= wanted {
                return Duration::from_nanos(bucket_end(index).min(self.longest));
            }
        }
        self.longest()
    }

    /// For each doubling from about a microsecond to about a minute: its end in seconds, and how many times were not
    /// longer. What is longer than the last is in [`Times::count`] alone.
    pub fn up_to(&self) -> impl Iterator<Item = (f64, u64)> {
        let mut seen = 0;
        self.buckets
            .chunks(STEPS)
            .enumerate()
            .map(move |(doubling, buckets)| {
                seen += buckets.iter().sum::<u64>();
                ((2u64 << doubling) as f64 / 1e9, seen)
            })
            .skip(9)
            .take(27)
    }
}

/// The bucket of a number of nanoseconds.
fn bucket_of(nanos: u64) -> usize {
    let nanos = nanos.max(1);
    let doubling = nanos.ilog2();
    let below = u128::from(nanos - (1 << doubling));
    let step = (below * STEPS as u128) >> doubling;
    let bucket = doubling as usize * STEPS + step as usize;
    bucket.min(BUCKETS - 1)
}

/// The largest number of nanoseconds in a bucket.
fn bucket_end(index: usize) -> u64 {
    let below = 1u64 << (index / STEPS);
    below + (below * (index % STEPS + 1) as u64).div_ceil(STEPS as u64) - 1
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn every_time_lies_in_a_bucket_that_ends_little_above_it() {
        for nanos in (1..5000).chain([u64::from(u32::MAX), 1 << 43]) {
            let end = bucket_end(bucket_of(nanos));
            assert!(end >= nanos && end <= nanos + nanos / 4, "{nanos} {end}");
        }
        assert_eq!((bucket_of(0), bucket_of(u64::MAX)), (0, BUCKETS - 1));
    }

    #[test]
    fn nothing_is_lost_however_many_threads_record() {
        let histogram = Histogram::default();
        std::thread::scope(|scope| {
            for thread in 0..3 * OWN_STRIPES as u64 {
                let histogram = &histogram;
                scope.spawn(move || {
                    for _ in 0..100 {
                        histogram.record(Duration::from_nanos(1000 + thread));
                    }
                });
            }
        });
        let times = histogram.read();
        let threads = 3 * OWN_STRIPES as u64;
        assert_eq!(times.count(), 100 * threads);
        let sum: u64 = (0..threads).map(|thread| 100 * (1000 + thread)).sum();
        assert_eq!(times.total(), Duration::from_nanos(sum));
        assert_eq!(times.longest(), Duration::from_nanos(999 + threads));
        assert_eq!(times.quantile(1.0), times.longest());
    }

    #[test]
    fn ends_grow_and_count_what_is_not_longer() {
        let histogram = Histogram::default();
        for micros in [0, 1, 2, 500, 90_000_000] {
            histogram.record(Duration::from_micros(micros));
        }
        let ends: Vec<_> = histogram.read().up_to().collect();
        assert!(ends.is_sorted_by(|a, b| a.0 < b.0 && a.1 <= b.1));
        let seen = |end: f64| {
            ends.iter()
                .find(|(it, _)| *it >= end)
                .map(|(_, seen)| *seen)
        };
        assert_eq!(
            (seen(1e-6), seen(2.1e-6), seen(1e-3)),
            (Some(2), Some(3), Some(4))
        );
        assert_eq!(
            ends.last().map(|(_, seen)| *seen),
            Some(4),
            "one is longer than all"
        );
        assert!(ends.first().is_some_and(|(end, _)| *end < 2e-6));
    }
}
