//! How long operations took and how they ended, by kind, and YCSB's report of it.

use std::fmt::Write as _;
use std::time::Duration;

use drumlin_base::{Error, Result};
use drumlin_bench::histogram::Latencies;

/// Kinds of operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// One record.
    Read,
    /// Several records at once.
    BatchRead,
    /// Fields of a record.
    Update,
    /// A new record.
    Insert,
    /// Records in order.
    Scan,
    /// A read and an update of the same record, together.
    ReadModifyWrite,
    /// A comparison of the value read with the one written.
    Verify,
}

impl Kind {
    const ALL: [Self; 7] = [
        Self::Read,
        Self::BatchRead,
        Self::Update,
        Self::Insert,
        Self::Scan,
        Self::ReadModifyWrite,
        Self::Verify,
    ];

    /// The report's word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "READ",
            Self::BatchRead => "BATCH-READ",
            Self::Update => "UPDATE",
            Self::Insert => "INSERT",
            Self::Scan => "SCAN",
            Self::ReadModifyWrite => "READ-MODIFY-WRITE",
            Self::Verify => "VERIFY",
        }
    }
}

/// How an operation ended, where it was no error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Return {
    /// As it should.
    Ok,
    /// The record was not there.
    NotFound,
    /// The record was found, but differs from the one written.
    UnexpectedState,
}

impl Return {
    const ALL: [Self; 3] = [Self::Ok, Self::NotFound, Self::UnexpectedState];

    fn name(self) -> &'static str {
        match self {
            Self::Ok => "OK",
            Self::NotFound => "NOT_FOUND",
            Self::UnexpectedState => "UNEXPECTED_STATE",
        }
    }
}

/// The times that are reported (`measurement.interval`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interval {
    /// From the moment an operation began.
    Operation,
    /// From the moment it should have begun under the target rate: the wait for a slow operation
    /// before is counted (the correction of coordinated omission).
    Intended,
    /// Both.
    Both,
}

impl Interval {
    /// Of the property's text.
    ///
    /// # Errors
    /// `InvalidArgument`.
    pub fn parse(text: &str) -> Result<Self> {
        match text {
            "op" => Ok(Self::Operation),
            "intended" => Ok(Self::Intended),
            "both" => Ok(Self::Both),
            _ => {
                let message =
                    format!("measurement.interval={text}: there is op, intended and both");
                Err(Error::invalid_argument(message))
            }
        }
    }
}

#[derive(Clone, Debug)]
struct Measured {
    kind: Kind,
    operation: Latencies,
    intended: Latencies,
    returns: [u64; Return::ALL.len()],
}

/// Measurements of one thread, or of all together.
#[derive(Clone, Debug, Default)]
pub struct Measurements {
    kinds: Vec<Measured>,
}

impl Measurements {
    /// An operation began at `began`, should have begun at `intended`, and returned at `ended`.
    pub fn record(
        &mut self,
        kind: Kind,
        intended: Duration,
        began: Duration,
        ended: Duration,
        how: Return,
    ) {
        let at = match self.kinds.iter().position(|measured| measured.kind == kind) {
            Some(at) => at,
            None => {
                self.kinds.push(Measured {
                    kind,
                    operation: Latencies::new(),
                    intended: Latencies::new(),
                    returns: [0; Return::ALL.len()],
                });
                self.kinds.len() - 1
            }
        };
        let Some(measured) = self.kinds.get_mut(at) else {
            return;
        };
        let nanos = |since: Duration| {
            u64::try_from(ended.saturating_sub(since).as_nanos()).unwrap_or(u64::MAX)
        };
        measured.operation.record(nanos(began));
        measured.intended.record(nanos(intended.min(began)));
        measured.returns[how as usize] += 1;
    }

    /// Takes over the measurements of another thread.
    pub fn merge(&mut self, other: &Self) {
        for theirs in &other.kinds {
            match self.kinds.iter_mut().find(|ours| ours.kind == theirs.kind) {
                Some(ours) => {
                    ours.operation.merge(&theirs.operation);
                    ours.intended.merge(&theirs.intended);
                    for (ours, theirs) in ours.returns.iter_mut().zip(theirs.returns) {
                        *ours += theirs;
                    }
                }
                None => self.kinds.push(theirs.clone()),
            }
        }
    }

    /// How many operations of `kind` there were, and their times from their beginnings.
    pub fn times(&self, kind: Kind) -> Option<&Latencies> {
        let found = self.kinds.iter().find(|measured| measured.kind == kind);
        found.map(|measured| &measured.operation)
    }

    /// The same from the moments they should have begun.
    pub fn intended_times(&self, kind: Kind) -> Option<&Latencies> {
        let found = self.kinds.iter().find(|measured| measured.kind == kind);
        found.map(|measured| &measured.intended)
    }

    /// How many operations did not end with OK.
    pub fn failed(&self) -> u64 {
        let bad = |measured: &Measured| measured.returns.iter().skip(1).sum::<u64>();
        self.kinds.iter().map(bad).sum()
    }

    /// YCSB's report: `[OVERALL]` and a block for each kind, with the percentiles asked for. Times are
    /// microseconds with a fraction, where YCSB has whole ones: an embedded store takes less than one.
    pub fn report(
        &self,
        took: Duration,
        operations: u64,
        interval: Interval,
        percentiles: &[f64],
    ) -> String {
        let mut text = String::new();
        let mut say = |name: &str, what: &str, value: String| {
            writeln!(text, "[{name}], {what}, {value}").expect("a String takes everything");
        };
        let seconds = took.as_secs_f64();
        say("OVERALL", "RunTime(ms)", format!("{:.0}", seconds * 1e3));
        let rate = operations as f64 / seconds.max(1e-9);
        say("OVERALL", "Throughput(ops/sec)", format!("{rate:.1}"));
        for kind in Kind::ALL {
            let Some(measured) = self.kinds.iter().find(|measured| measured.kind == kind) else {
                continue;
            };
            let name = kind.name();
            let intended = format!("Intended-{name}");
            let blocks: &[(&str, &Latencies)] = match interval {
                Interval::Operation => &[(name, &measured.operation)],
                Interval::Intended => &[(&intended, &measured.intended)],
                Interval::Both => &[(name, &measured.operation), (&intended, &measured.intended)],
            };
            for (name, times) in blocks {
                say(name, "Operations", times.count().to_string());
                say(
                    name,
                    "AverageLatency(us)",
                    format!("{:.3}", times.mean_us()),
                );
                say(name, "MinLatency(us)", format!("{:.3}", times.min_us()));
                say(name, "MaxLatency(us)", format!("{:.3}", times.max_us()));
                for percent in percentiles {
                    let what = format!("{}PercentileLatency(us)", ordinal(*percent));
                    say(name, &what, format!("{:.3}", times.percentile_us(*percent)));
                }
            }
            for (how, count) in Return::ALL.into_iter().zip(measured.returns) {
                if count > 0 {
                    say(name, &format!("Return={}", how.name()), count.to_string());
                }
            }
        }
        text
    }
}

/// `95th`, `99.9`: whole numbers have YCSB's ending.
fn ordinal(percent: f64) -> String {
    if percent.fract() != 0.0 {
        return percent.to_string();
    }
    let ending = match percent as u64 {
        11..=13 => "th",
        whole => match whole % 10 {
            1 => "st",
            2 => "nd",
            3 => "rd",
            _ => "th",
        },
    };
    format!("{percent}{ending}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(micros: u64) -> Duration {
        Duration::from_micros(micros)
    }

    #[test]
    fn the_report_has_ycsbs_lines() {
        let mut one = Measurements::default();
        one.record(Kind::Read, at(0), at(50), at(60), Return::Ok);
        let mut other = Measurements::default();
        other.record(Kind::Read, at(80), at(80), at(100), Return::NotFound);
        other.record(Kind::Insert, at(0), at(0), at(1), Return::Ok);
        one.merge(&other);
        assert_eq!(one.failed(), 1);
        let text = one.report(at(2_000_000), 3, Interval::Both, &[95.0, 99.9]);
        let expected = [
            "[OVERALL], RunTime(ms), 2000",
            "[OVERALL], Throughput(ops/sec), 1.5",
            "[READ], Operations, 2",
            "[READ], AverageLatency(us), 15",
            "[READ], MinLatency(us), 10.0",
            "[READ], MaxLatency(us), 20.0",
            "[READ], 95thPercentileLatency(us), 20.0",
            "[READ], 99.9PercentileLatency(us), 20.0",
            "[Intended-READ], Operations, 2",
            "[Intended-READ], AverageLatency(us), 40",
            "[Intended-READ], MinLatency(us), 20.0",
            "[Intended-READ], MaxLatency(us), 60.0",
        ];
        for (line, begin) in text.lines().zip(expected) {
            assert!(line.starts_with(begin), "{line} {begin}");
        }
        assert!(
            text.contains("[READ], Return=OK, 1\n[READ], Return=NOT_FOUND, 1\n[INSERT], "),
            "{text}"
        );
    }

    #[test]
    fn percentiles_have_their_endings() {
        assert_eq!(
            [1.0, 92.0, 93.0, 11.0, 99.0, 99.99].map(ordinal),
            ["1st", "92nd", "93rd", "11th", "99th", "99.99"]
        );
        assert!(Interval::parse("both").is_ok() && Interval::parse("").is_err());
    }
}
