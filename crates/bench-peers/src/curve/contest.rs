//! The comparisons, smallest store first.

use std::io::Write;

use drumlin_base::Result;
use drumlin_fs::Env;

use super::{drawing, report};
use crate::compare;

/// What to measure.
#[derive(Debug)]
pub(crate) struct Contest {
    /// The comparison at each size.
    pub(crate) sizes: Vec<compare::Contest>,
}

/// The medians of one line.
#[derive(Debug)]
pub(crate) struct Curves {
    /// The line's name.
    pub(crate) line: String,
    /// By engine, in microseconds an operation: one for each size; `None` where the engine has no
    /// such line.
    pub(crate) engines: Vec<(String, Vec<Option<f64>>)>,
}

/// All that was measured.
#[derive(Debug)]
pub(crate) struct Standing {
    /// Entries, ascending.
    pub(crate) sizes: Vec<u64>,
    /// One for each line.
    pub(crate) curves: Vec<Curves>,
    /// Versions, machine and flags, a line each.
    pub(crate) setting: Vec<String>,
}

impl Standing {
    /// A row for each line and engine, a column for each size.
    pub(crate) fn to_markdown(&self) -> String {
        report::markdown(self)
    }

    /// The same numbers as JSON.
    pub(crate) fn to_json(&self) -> String {
        report::json(self)
    }

    /// The drawing.
    ///
    /// # Errors
    /// `Aborted` when there is nothing to draw.
    pub(crate) fn to_svg(&self) -> Result<String> {
        drawing::svg(self)
    }
}

/// Runs all comparisons, telling `progress` of every line.
///
/// # Errors
/// The first error of an engine, naming it and the line.
pub(crate) fn run(contest: &Contest, env: &Env, progress: &mut dyn Write) -> Result<Standing> {
    let mut standing = Standing {
        sizes: Vec::new(),
        curves: Vec::new(),
        setting: Vec::new(),
    };
    for size in &contest.sizes {
        let measured = compare::run(size, env, progress)?;
        standing.add(size.flags.num, &measured);
    }
    Ok(standing)
}

impl Standing {
    /// Takes over what was measured at `entries` entries.
    fn add(&mut self, entries: u64, measured: &compare::Standing) {
        if self.sizes.is_empty() {
            self.setting.extend(measured.versions.iter().cloned());
        }
        for line in &measured.setting {
            if !self.setting.contains(line) {
                self.setting.push(line.clone());
            }
        }
        for (row, line) in measured.lines.iter().enumerate() {
            if self.curves.len() <= row {
                let engines = measured.engines.iter().cloned();
                self.curves.push(Curves {
                    line: line.clone(),
                    engines: engines
                        .map(|name| (name, vec![None; self.sizes.len()]))
                        .collect(),
                });
            }
            for (column, (_, points)) in self.curves[row].engines.iter_mut().enumerate() {
                let summary = measured.rounds[row][column].micros();
                points.push(summary.map(|summary| summary.median));
            }
        }
        self.sizes.push(entries);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::{Outcome, Rounds};

    fn measured(micros: f64) -> compare::Standing {
        let outcome = Outcome {
            micros,
            operations: 1,
            ..Outcome::default()
        };
        compare::Standing {
            engines: vec!["drumlin".to_owned(), "lmdb".to_owned()],
            versions: Vec::new(),
            lines: vec!["overwrite".to_owned()],
            writes: vec![true],
            rounds: vec![vec![Rounds(vec![outcome]), Rounds::default()]],
            setting: vec!["machine".to_owned()],
        }
    }

    #[test]
    fn a_curve_has_a_point_for_each_size_or_a_gap() {
        let mut standing = Standing {
            sizes: Vec::new(),
            curves: Vec::new(),
            setting: Vec::new(),
        };
        standing.add(10, &measured(1.5));
        standing.add(100, &measured(2.5));
        assert_eq!(standing.sizes, [10, 100]);
        let engines = &standing.curves[0].engines;
        assert_eq!(engines[0].1, [Some(1.5), Some(2.5)]);
        assert_eq!(engines[1].1, [None, None]);
        assert_eq!(standing.setting, ["machine"]);
    }
}
