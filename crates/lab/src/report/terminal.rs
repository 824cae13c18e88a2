//! The figures as a table of text.

use std::fmt::Write as _;

use crate::outcome::{Cell, Outcome};
use crate::pairs::conclusion;

/// A line for each figure, a column for each engine: the median, its spread in percent, and for the
/// peers how many times better the first engine is (`?`: the rounds cannot tell).
pub fn table(outcome: &Outcome) -> String {
    let mut text = format!("\n{}\n", outcome.title);
    let mut stage = "";
    for figure in &outcome.figures {
        if figure.stage != stage {
            stage = &figure.stage;
            write!(text, "\n{stage:<36}").expect("a String takes everything");
            for engine in &outcome.engines {
                write!(text, " {engine:>24}").expect("a String takes everything");
            }
            text.push('\n');
        }
        write!(text, "  {:<34}", figure.name).expect("a String takes everything");
        for cell in &figure.cells {
            write!(text, " {:>24}", show(cell)).expect("a String takes everything");
        }
        text.push('\n');
    }
    push_pairs(&mut text, outcome);
    for warning in &outcome.warnings {
        writeln!(text, "\nwarning: {warning}").expect("a String takes everything");
    }
    text
}

/// A line for each pair, and their combined verdict.
fn push_pairs(text: &mut String, outcome: &Outcome) {
    let Some(conclusion) = conclusion(&outcome.pairs) else {
        return;
    };
    writeln!(
        text,
        "\n{:<36} {:>8} {:>14} {:>12}",
        "round by round", "ratio", "from .. to", "own spread"
    )
    .expect("a String takes everything");
    for pair in &outcome.pairs {
        let range = format!("{:.2} .. {:.2}", pair.ratio.min, pair.ratio.max);
        writeln!(
            text,
            "  {:<34} {:>8.2} {range:>14} {:>11.0}%  {}",
            pair.stage,
            pair.ratio.median,
            pair.own_spread * 100.0,
            pair.verdict.words()
        )
        .expect("a String takes everything");
    }
    writeln!(text, "{conclusion}").expect("a String takes everything");
}

fn show(cell: &Cell) -> String {
    let Some(summary) = cell.summary else {
        return "-".to_owned();
    };
    let mut text = number(summary.median);
    if summary.rounds > 1 {
        write!(text, " ±{:.0}%", summary.spread() * 50.0).expect("a String takes everything");
    }
    if let Some(ratio) = cell.ratio {
        let mark = if ratio.is_undecided { "?" } else { "" };
        write!(text, " {:.2}x{mark}", ratio.median).expect("a String takes everything");
    }
    text
}

/// Three digits or more.
fn number(value: f64) -> String {
    match value.abs() {
        100.0.. => format!("{value:.0}"),
        10.0.. => format!("{value:.1}"),
        1.0.. => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::outcome::{Point, Round, StageOutcome};
    use crate::protocol::{Act, Done, RoleDone};

    /// Two engines, a stage of writes, two rounds each; the second engine takes twice the time.
    pub(crate) fn outcome() -> Outcome {
        let round = |seconds: f64| Round {
            done: Done {
                roles: vec![RoleDone {
                    operations: 1000,
                    ..RoleDone::default()
                }],
                seconds,
                ..Done::default()
            },
            settle_seconds: 0.5,
            resident_bytes: 5_000_000,
            disk_bytes: [0, 1],
            held_bytes: None,
            cpu_seconds: 1.0,
            times_full: None,
            points: vec![Point {
                t: 1.0,
                rates: vec![100.0],
                times: vec![[1.0, 2.0, 3.0, 4.0]],
                memory_mb: [5.0, 4.0, 100.0],
                cpu: vec![("flush".to_owned(), 0.5)],
                disk_mb: [0.0, 1.0],
                size_mb: 3.0,
                held_mb: None,
                debt_mb: None,
                levels: vec![1, 0, 2],
                compacting: false,
            }],
        };
        let stage = StageOutcome {
            label: "fill".to_owned(),
            entries: Some(1000),
            acts: vec![Act::PutRandom],
            roles: vec!["writes"],
            engines: vec![vec![round(1.0), round(1.1)], vec![round(2.0), round(2.2)]],
        };
        Outcome {
            title: "R3".to_owned(),
            notes: vec!["a note".to_owned()],
            command: "drumlin lab r3".to_owned(),
            setting: vec!["machine: one".to_owned()],
            warnings: vec!["noise".to_owned()],
            engines: vec!["drumlin".to_owned(), "rocksdb".to_owned()],
            figures: stage.figures(),
            pairs: Vec::new(),
            stages: vec![stage],
        }
    }

    #[test]
    fn a_line_has_medians_spreads_and_ratios() {
        let text = table(&outcome());
        let line = text
            .lines()
            .find(|line| line.contains("writes/s"))
            .expect("a line");
        let words: Vec<&str> = line.split_whitespace().collect();
        assert_eq!(words, ["writes/s", "955", "±5%", "477", "±5%", "2.00x"]);
        let memory = text
            .lines()
            .find(|line| line.contains("resident"))
            .expect("a line");
        assert!(memory.trim_end().ends_with("1.00x"), "{memory}");
        assert!(text.contains("warning: noise"));
    }

    #[test]
    fn numbers_keep_three_digits() {
        assert_eq!(
            [1234.5, 45.67, 1.234, 0.1234].map(number),
            ["1234", "45.7", "1.23", "0.123"]
        );
    }
}
