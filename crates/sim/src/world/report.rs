//! The report of a run, and its form as one line between processes.

use std::time::Duration;

/// The report of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// All that happened, in one number.
    pub hash: u64,
    /// Why it failed.
    pub failure: Option<String>,
    /// Batches written or tried.
    pub batches: u64,
    /// Times something read was compared with the model.
    pub checks: u64,
    /// Power cuts and kills, those during recovery counted.
    pub cuts: u64,
    /// Power cuts imagined, and those of recoveries after them; kills are not counted.
    pub images: u64,
    /// Those of them after which a torn write was taken for a flipped bit, and the directory opened only
    /// when told to give up later records.
    pub refused: u64,
    /// Operations of the file system that were made to fail.
    pub injected: u64,
    /// Places a switch was possible at.
    pub steps: u64,
    /// Virtual time that passed.
    pub virtual_time: Duration,
}

/// Begins the line.
const MARK: &str = "run";

impl Report {
    /// A run that failed before it could be looked at.
    pub fn failed(why: String) -> Self {
        Self {
            failure: Some(why),
            ..Self::default()
        }
    }

    /// The report in one line.
    pub fn to_line(&self) -> String {
        let why = self.failure.as_deref().unwrap_or("");
        format!(
            "{MARK} {} {} {} {} {} {} {} {} {} {}",
            self.hash,
            self.batches,
            self.checks,
            self.cuts,
            self.images,
            self.refused,
            self.injected,
            self.steps,
            self.virtual_time.as_micros(),
            why.replace('\n', " "),
        )
    }

    /// The report whose line is in `text`.
    pub fn of_line(text: &str) -> Option<Self> {
        let line = text.lines().find(|line| line.starts_with(MARK))?;
        let mut words = line.splitn(11, ' ').skip(1);
        let mut number = || words.next()?.parse::<u64>().ok();
        let mut report = Self {
            hash: number()?,
            batches: number()?,
            checks: number()?,
            cuts: number()?,
            images: number()?,
            refused: number()?,
            injected: number()?,
            steps: number()?,
            virtual_time: Duration::from_micros(number()?),
            failure: None,
        };
        report.failure = words
            .next()
            .map(str::to_owned)
            .filter(|why| !why.is_empty());
        Some(report)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_all_of_a_report() {
        let mut report = Report {
            hash: u64::MAX,
            batches: 1,
            checks: 2,
            cuts: 3,
            images: 7,
            refused: 8,
            injected: 4,
            steps: 5,
            virtual_time: Duration::from_micros(6),
            failure: None,
        };
        assert_eq!(Report::of_line(&report.to_line()).as_ref(), Some(&report));
        report.failure = Some("what went wrong".into());
        assert_eq!(Report::of_line(&report.to_line()), Some(report));
        assert_eq!(Report::of_line("nothing"), None);
    }
}
