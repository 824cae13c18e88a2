//! Times of single operations, and their distribution in db_bench's words.

use hdrhistogram::Histogram;

/// Times in nanoseconds, kept to three digits. One per thread, merged at the end.
#[derive(Clone, Debug)]
pub struct Latencies {
    nanos: Histogram<u64>,
}

impl Default for Latencies {
    fn default() -> Self {
        Self::new()
    }
}

impl Latencies {
    const NANOS_MAX: u64 = 3_600_000_000_000;

    /// No times yet. About 300 KB.
    pub fn new() -> Self {
        let nanos = Histogram::new_with_bounds(1, Self::NANOS_MAX, 3)
            .expect("the bounds are constants that the histogram takes");
        Self { nanos }
    }

    /// Records one time; more than an hour counts as an hour.
    #[inline]
    pub fn record(&mut self, nanos: u64) {
        self.nanos.saturating_record(nanos);
    }

    /// Forgets all times, and keeps the memory.
    pub fn clear(&mut self) {
        self.nanos.reset();
    }

    /// Takes over the times of `other`.
    pub fn merge(&mut self, other: &Self) {
        self.nanos
            .add(&other.nanos)
            .expect("both histograms have the same bounds");
    }

    /// How many times were recorded.
    pub fn count(&self) -> u64 {
        self.nanos.len()
    }

    /// The time in microseconds that `percent` of the operations did not exceed.
    pub fn percentile_us(&self, percent: f64) -> f64 {
        self.nanos.value_at_percentile(percent) as f64 / 1000.0
    }

    /// The mean, in microseconds; 0 of no times.
    pub fn mean_us(&self) -> f64 {
        self.nanos.mean() / 1000.0
    }

    /// The shortest time, in microseconds.
    pub fn min_us(&self) -> f64 {
        self.nanos.min() as f64 / 1000.0
    }

    /// The longest time, in microseconds.
    pub fn max_us(&self) -> f64 {
        self.nanos.max() as f64 / 1000.0
    }

    /// The distribution, laid out as db_bench's with P95 added, in microseconds. Unlike there,
    /// percentiles are read from the recorded times and not interpolated within a bucket.
    pub fn report(&self) -> String {
        let micros = |percent| self.percentile_us(percent);
        let mut text = format!(
            "Count: {} Average: {:.4}  StdDev: {:.2}\nMin: {:.0}  Median: {:.4}  Max: {:.0}\n\
             Percentiles: P50: {:.2} P75: {:.2} P95: {:.2} P99: {:.2} P99.9: {:.2} P99.99: {:.2}\n\
             ------------------------------------------------------\n",
            self.count(),
            self.mean_us(),
            self.nanos.stdev() / 1000.0,
            self.min_us(),
            micros(50.0),
            self.max_us(),
            micros(50.0),
            micros(75.0),
            micros(95.0),
            micros(99.0),
            micros(99.9),
            micros(99.99),
        );
        self.report_buckets(&mut text);
        text
    }

    fn report_buckets(&self, text: &mut String) {
        let total = self.count().max(1) as f64;
        let mut recorded = self.nanos.iter_recorded().peekable();
        let (mut below, mut done) = (0u64, 0u64);
        for limit_us in bucket_limits_us() {
            let mut count = 0;
            while let Some(step) =
                recorded.next_if(|step| step.value_iterated_to() <= limit_us.saturating_mul(1000))
            {
                count += step.count_since_last_iteration();
            }
            if count > 0 {
                done += count;
                let percent = count as f64 / total * 100.0;
                text.push_str(&format!(
                    "{} {below:7}, {limit_us:7} ] {count:8} {percent:7.3}% {:7.3}% {}\n",
                    if below == 0 { '[' } else { '(' },
                    done as f64 / total * 100.0,
                    "#".repeat((percent / 5.0 + 0.5) as usize),
                ));
            }
            below = limit_us;
        }
    }
}

/// Upper bounds of the printed buckets in microseconds: each about half as large again as the one
/// before, cut to two digits, as in the peer's report.
fn bucket_limits_us() -> impl Iterator<Item = u64> {
    let mut exact = 2.0f64;
    let grown = std::iter::from_fn(move || {
        exact *= 1.5;
        let mut limit = exact as u64;
        let mut scale = 1;
        while limit / 10 > 10 {
            limit /= 10;
            scale *= 10;
        }
        Some(limit * scale)
    });
    [1, 2]
        .into_iter()
        .chain(grown)
        .take_while(|limit| *limit <= Latencies::NANOS_MAX / 1000 * 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bucket_limits_are_the_peers() {
        let first: Vec<u64> = bucket_limits_us().take(12).collect();
        assert_eq!(first, [1, 2, 3, 4, 6, 10, 15, 22, 34, 51, 76, 110]);
    }

    #[test]
    fn the_report_counts_every_time_once() {
        let mut latencies = Latencies::new();
        for nanos in [300, 900, 1500, 1500, 2500, 80_000] {
            latencies.record(nanos);
        }
        let report = latencies.report();
        let expected = "\
[       0,       1 ]        2  33.333%  33.333% #######
(       1,       2 ]        2  33.333%  66.667% #######
(       2,       3 ]        1  16.667%  83.333% ###
(      76,     110 ]        1  16.667% 100.000% ###
";
        assert!(report.ends_with(expected), "{report}");
        assert!(report.starts_with("Count: 6 Average: 14.4"), "{report}");
    }

    #[test]
    fn merging_is_the_same_as_recording_in_one() {
        let (mut one, mut left, mut right) = (Latencies::new(), Latencies::new(), Latencies::new());
        for nanos in 1..5000u64 {
            one.record(nanos * 37);
            if nanos % 3 == 0 {
                &mut left
            } else {
                &mut right
            }
            .record(nanos * 37);
        }
        left.merge(&right);
        assert_eq!(left.report(), one.report());
    }
}
