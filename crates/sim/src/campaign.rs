//! Many seeds, one line of JSON.

use std::fmt::Write as _;
use std::time::Duration;

use crate::setup::Case;
use crate::world::Report;

/// The sums over many runs.
#[derive(Clone, Debug, Default)]
pub struct Totals {
    /// Runs.
    pub runs: u64,
    /// Their reports, added up.
    pub sum: Report,
    /// Runs made twice, all with equal hashes.
    pub repeated: u64,
    /// The case that failed, and why.
    pub failed: Option<(Case, String)>,
}

impl Totals {
    /// Runs `case` by `run`, twice when `twice`; false when it failed.
    pub fn run(&mut self, case: &Case, twice: bool, run: impl Fn(&Case) -> Report) -> bool {
        let report = run(case);
        self.runs += 1;
        self.sum.batches += report.batches;
        self.sum.checks += report.checks;
        self.sum.cuts += report.cuts;
        self.sum.images += report.images;
        self.sum.refused += report.refused;
        self.sum.injected += report.injected;
        self.sum.steps += report.steps;
        self.sum.virtual_time += report.virtual_time;
        let mut failure = report.failure;
        if twice && failure.is_none() {
            let again = run(case);
            self.repeated += 1;
            if again.hash != report.hash {
                let (one, other) = (report.hash, again.hash);
                failure = Some(format!("not repeatable: {one:x}, then {other:x}"));
            }
        }
        self.failed = failure.map(|why| (case.clone(), why));
        self.failed.is_none()
    }

    /// The line of the campaign `name` that ran seeds `from` up to `to` in `took`.
    pub fn json(&self, name: &str, from: u64, to: u64, took: Duration) -> String {
        let sum = &self.sum;
        let mut line = format!("{{\"campaign\":\"{name}\",\"from\":{from},\"to\":{to}");
        let counts = [
            ("runs", self.runs),
            ("repeated", self.repeated),
            ("batches", sum.batches),
            ("checks", sum.checks),
            ("cuts", sum.cuts),
            ("images", sum.images),
            ("refused", sum.refused),
            ("injected", sum.injected),
            ("steps", sum.steps),
            ("virtual_seconds", sum.virtual_time.as_secs()),
        ];
        for (name, count) in counts {
            // Writing to a string cannot fail.
            let _ = write!(line, ",\"{name}\":{count}");
        }
        let _ = write!(line, ",\"seconds\":{:.1}", took.as_secs_f64());
        if let Some((case, why)) = &self.failed {
            let why = why.replace(['"', '\\'], "'");
            let _ = write!(line, ",\"failed\":\"{}\"", case.arguments());
            let _ = write!(line, ",\"why\":\"{why}\"");
        }
        line.push('}');
        line
    }
}

/// The seed after the last one of the campaigns called `name` in `lines`.
pub fn next_seed(lines: &str, name: &str) -> u64 {
    let start = format!("{{\"campaign\":\"{name}\"");
    let seeds = lines.lines().filter_map(|line| {
        let (_, to) = line.strip_prefix(&start)?.split_once("\"to\":")?;
        to.split(',').next()?.parse().ok()
    });
    seeds.max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_campaign_goes_on_where_the_last_one_ended() {
        let line = Totals::default().json("sim", 3, 17, Duration::from_secs(1));
        let other = Totals::default().json("cuts", 0, 40, Duration::from_secs(1));
        let lines = format!("{line}\n{other}\n");
        assert_eq!(
            (next_seed(&lines, "sim"), next_seed(&lines, "cuts")),
            (17, 40)
        );
        assert_eq!(next_seed("", "sim"), 0);
    }
}
