//! The figures of a watched load: pure arithmetic over its seconds.

use super::second::{Second, Times};
use crate::histogram::Latencies;

/// Length of the windows at the beginning and the end that are compared, in seconds; less when the
/// load lasted less than two of them.
const WINDOW_SECONDS: f64 = 60.0;

/// The manual compaction, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Compaction {
    /// When it was asked for, from the start of the load.
    pub asked_at: f64,
    /// How long it took; it may have gone on after the writers ended.
    pub took: f64,
}

/// The slowest second beside the median second, in writes a second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Floor {
    /// The slowest.
    pub slowest: f64,
    /// The middle one, or the mean of the two middle ones.
    pub median: f64,
    /// How many seconds there were.
    pub seconds: usize,
}

impl Floor {
    /// Of `seconds`; `None` when there are none.
    pub fn of<'s>(seconds: impl Iterator<Item = &'s Second>) -> Option<Self> {
        let mut rates: Vec<f64> = seconds.map(Second::rate).collect();
        rates.sort_by(f64::total_cmp);
        let upper = rates.get(rates.len() / 2)?;
        let lower = rates.get((rates.len() - 1) / 2)?;
        Some(Self {
            slowest: *rates.first()?,
            median: lower.midpoint(*upper),
            seconds: rates.len(),
        })
    }

    /// The slowest over the median: 1 when no second is slower than another, 0 when writes stood
    /// still for a second.
    pub fn ratio(&self) -> f64 {
        if self.median > 0.0 {
            self.slowest / self.median
        } else {
            0.0
        }
    }
}

/// Rates of the first and the last window, in writes a second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ends {
    /// Over the first window.
    pub first: f64,
    /// Over the last window.
    pub last: f64,
    /// Length of each in seconds.
    pub window: f64,
}

/// Everything a watched load showed.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Second by second.
    pub seconds: Vec<Second>,
    /// Seconds from the start until the writers were told to stop, or had ended.
    pub length: f64,
    /// Writes of all threads.
    pub writes: u64,
    /// Times of all writes.
    pub all: Latencies,
    /// Times of the writes in seconds during which the manual compaction ran.
    pub compacting: Latencies,
    /// The manual compaction, if one was asked for.
    pub compaction: Option<Compaction>,
    /// Bytes of keys and values the writers wrote.
    pub user_bytes: u64,
    /// Bytes the store wrote for them until it was at rest, by its own account.
    pub written_bytes: Option<u64>,
    /// Seconds from the end of the writers (and of the manual compaction) until the store was at
    /// rest.
    pub settle_seconds: f64,
    /// Bytes of its files then, logs left out.
    pub disk_bytes: u64,
    /// Bytes of keys and values a reader would see then.
    pub live_bytes: u64,
}

impl Report {
    /// Writes a second over the whole load.
    pub fn rate(&self) -> f64 {
        self.writes as f64 / self.length.max(1e-9)
    }

    /// Percentiles over all writes.
    pub fn times(&self) -> Times {
        Times::of(&self.all)
    }

    /// Percentiles over the writes beside the manual compaction; `None` if there were none.
    pub fn compacting_times(&self) -> Option<Times> {
        (self.compacting.count() > 0).then(|| Times::of(&self.compacting))
    }

    /// Slowest and median of all seconds.
    pub fn floor(&self) -> Option<Floor> {
        Floor::of(self.seconds.iter())
    }

    /// Slowest and median of the seconds during which the manual compaction ran.
    pub fn compacting_floor(&self) -> Option<Floor> {
        Floor::of(self.seconds.iter().filter(|second| second.is_compacting))
    }

    /// Rates of the first and of the last minute, or of the halves of a shorter load.
    pub fn ends(&self) -> Option<Ends> {
        let window = WINDOW_SECONDS.min(self.length / 2.0);
        Some(Ends {
            first: rate_over(self.seconds.iter(), window)?,
            last: rate_over(self.seconds.iter().rev(), window)?,
            window,
        })
    }

    /// Bytes written to disk for each byte the writers wrote: log, flushes, compactions.
    pub fn write_amplification(&self) -> Option<f64> {
        let written = self.written_bytes?;
        (self.user_bytes > 0).then(|| written as f64 / self.user_bytes as f64)
    }

    /// Bytes on disk for each byte a reader would see, at rest.
    pub fn space_amplification(&self) -> Option<f64> {
        (self.live_bytes > 0).then(|| self.disk_bytes as f64 / self.live_bytes as f64)
    }

    /// The greatest space amplification at the end of any second.
    pub fn space_amplification_max(&self) -> Option<f64> {
        let seconds = self.seconds.iter();
        seconds
            .filter_map(Second::space_amplification)
            .max_by(f64::total_cmp)
    }

    /// The greatest debt at the end of any second.
    pub fn debt_bytes_max(&self) -> Option<u64> {
        let seconds = self.seconds.iter();
        seconds.filter_map(|second| second.sample.debt_bytes).max()
    }

    /// Seconds writers were held back, summed over them, by the store's own account.
    pub fn waited_seconds(&self) -> Option<f64> {
        let waited = self.seconds.iter().map(|second| second.waited_micros);
        let micros: u64 = waited.sum::<Option<u64>>()?;
        Some(micros as f64 / 1e6)
    }
}

/// Writes a second over `seconds` until they come to `window` seconds.
fn rate_over<'s>(seconds: impl Iterator<Item = &'s Second>, window: f64) -> Option<f64> {
    let (mut writes, mut length) = (0, 0.0);
    for second in seconds {
        if length >= window {
            break;
        }
        writes += second.writes;
        length += second.length;
    }
    (length > 0.0).then(|| writes as f64 / length)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Seconds of these many writes; the one marked with `compacting` runs beside a compaction.
    fn seconds(writes: &[(u64, bool)]) -> Vec<Second> {
        let second = |(index, (writes, compacting)): (usize, &(u64, bool))| Second {
            end: (index + 1) as f64,
            length: 1.0,
            writes: *writes,
            is_compacting: *compacting,
            ..Second::default()
        };
        writes.iter().enumerate().map(second).collect()
    }

    fn report(writes: &[(u64, bool)]) -> Report {
        Report {
            seconds: seconds(writes),
            length: writes.len() as f64,
            writes: writes.iter().map(|(writes, _)| writes).sum(),
            ..Report::default()
        }
    }

    #[test]
    fn the_floor_is_the_slowest_second_over_the_median_one() {
        let report = report(&[(100, false), (80, true), (90, true), (120, false)]);
        let floor = report.floor().expect("seconds");
        assert_eq!((floor.slowest, floor.median), (80.0, 95.0));
        assert!((floor.ratio() - 80.0 / 95.0).abs() < 1e-12);
        let floor = report.compacting_floor().expect("seconds");
        assert_eq!(
            (floor.slowest, floor.median, floor.seconds),
            (80.0, 85.0, 2)
        );
        assert_eq!(report.rate(), 97.5);
    }

    #[test]
    fn a_second_without_writes_makes_the_floor_zero() {
        let stuck = report(&[(100, false), (0, false), (100, false)]);
        assert_eq!(stuck.floor().map(|floor| floor.ratio()), Some(0.0));
        assert_eq!(stuck.compacting_floor(), None);
        let dead = Report::default();
        assert_eq!(dead.floor(), None);
        assert_eq!((dead.rate(), dead.ends()), (0.0, None));
    }

    #[test]
    fn ends_are_minutes_or_halves() {
        let ends = report(&[(100, false), (90, false), (80, false), (70, false)]).ends();
        let expected = Ends {
            first: 95.0,
            last: 75.0,
            window: 2.0,
        };
        assert_eq!(ends, Some(expected));
        let long: Vec<(u64, bool)> = (0..200).map(|second| (1000 - second, false)).collect();
        let ends = report(&long).ends().expect("seconds");
        assert_eq!((ends.first, ends.last), (970.5, 830.5));
    }

    #[test]
    fn amplifications_are_bytes_over_bytes() {
        let mut report = Report {
            user_bytes: 100,
            written_bytes: Some(250),
            disk_bytes: 60,
            live_bytes: 50,
            ..report(&[(1, false), (1, false)])
        };
        report.seconds[0].disk_bytes = 30;
        report.seconds[0].live_bytes = 10;
        report.seconds[1].disk_bytes = 60;
        report.seconds[1].live_bytes = 50;
        assert_eq!(report.write_amplification(), Some(2.5));
        assert_eq!(report.space_amplification(), Some(1.2));
        assert_eq!(report.space_amplification_max(), Some(3.0));
        assert_eq!(report.waited_seconds(), None);
        report.seconds[0].waited_micros = Some(1_500_000);
        report.seconds[1].waited_micros = Some(500_000);
        assert_eq!(report.waited_seconds(), Some(2.0));
    }
}
