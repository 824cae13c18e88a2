//! One second of a watched load.

use crate::histogram::Latencies;
use crate::sample::Sample;

/// A few points of a distribution of write times, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Times {
    /// Half of the writes took no longer.
    pub p50_us: f64,
    /// 99 % took no longer.
    pub p99_us: f64,
    /// 99.9 % took no longer.
    pub p999_us: f64,
    /// The longest.
    pub max_us: f64,
}

impl Times {
    /// Those of `latencies`; all 0 when nothing was recorded.
    pub fn of(latencies: &Latencies) -> Self {
        Self {
            p50_us: latencies.percentile_us(50.0),
            p99_us: latencies.percentile_us(99.0),
            p999_us: latencies.percentile_us(99.9),
            max_us: latencies.max_us(),
        }
    }
}

/// One second of a watched load. A write belongs to the second in which it returned.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Second {
    /// Seconds from the start to its end.
    pub end: f64,
    /// Its length in seconds: 1 but for the last, which may be a part.
    pub length: f64,
    /// Writes that returned.
    pub writes: u64,
    /// How long they took.
    pub times: Times,
    /// Whether the manual compaction was running in any part of it.
    pub is_compacting: bool,
    /// Microseconds writers were held back, summed over them, by the store's own account.
    pub waited_micros: Option<u64>,
    /// The store at its end.
    pub sample: Sample,
    /// Bytes of the store's files on disk at its end, logs left out.
    pub disk_bytes: u64,
    /// Bytes of the keys and values a reader would see at its end.
    pub live_bytes: u64,
}

impl Second {
    /// Writes a second.
    pub fn rate(&self) -> f64 {
        self.writes as f64 / self.length.max(1e-9)
    }

    /// Bytes on disk for each byte a reader would see; `None` before the first byte.
    pub fn space_amplification(&self) -> Option<f64> {
        (self.live_bytes > 0).then(|| self.disk_bytes as f64 / self.live_bytes as f64)
    }
}

/// How many different keys `writes` uniform draws from `keys` have hit, in expectation. The spread
/// is below the square root of the result, so the share it can be off is nothing for large stores.
pub(super) fn distinct_keys(keys: u64, writes: u64) -> f64 {
    let keys = keys.max(1) as f64;
    // keys * (1 - (1 - 1/keys)^writes), without losing the difference from 1 for large `keys`.
    -keys * (writes as f64 * (-1.0 / keys).ln_1p()).exp_m1()
}

#[cfg(test)]
mod tests {
    use drumlin_base::rng::Rng;

    use super::*;

    #[test]
    fn expected_keys_are_those_a_count_of_draws_finds() {
        let mut rng = Rng::new(5);
        let mut seen = vec![false; 10_000];
        for writes in 1..=30_000u64 {
            seen[rng.below(10_000) as usize] = true;
            if writes % 10_000 == 0 {
                let counted = seen.iter().filter(|seen| **seen).count() as f64;
                let expected = distinct_keys(10_000, writes);
                assert!((counted - expected).abs() < 150.0, "{counted} {expected}");
            }
        }
        assert_eq!(distinct_keys(100, 0), 0.0);
        assert_eq!(distinct_keys(1, 5), 1.0);
        assert!((distinct_keys(1 << 50, 1) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn a_part_of_a_second_has_the_rate_of_a_whole_one() {
        let second = Second {
            length: 0.5,
            writes: 400,
            disk_bytes: 30,
            live_bytes: 20,
            ..Second::default()
        };
        assert_eq!(second.rate(), 800.0);
        assert_eq!(second.space_amplification(), Some(1.5));
        assert_eq!(Second::default().space_amplification(), None);
    }
}
