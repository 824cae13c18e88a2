//! The numbers behind the curves, as Markdown and as JSON.

use std::fmt::Write as _;

use super::contest::Standing;
use crate::compare::{quoted, squeeze};

/// A row for each line and engine, a column for each size, and the growth from the first size to
/// the last.
pub(super) fn markdown(standing: &Standing) -> String {
    let mut text = String::from("Microseconds an operation against entries.\n\n| line | engine |");
    for entries in &standing.sizes {
        write!(text, " {} |", short(*entries)).expect("a String takes everything");
    }
    text.push_str(" last / first |\n| --- | --- |");
    text.push_str(&" ---: |".repeat(standing.sizes.len() + 1));
    text.push('\n');
    for curves in &standing.curves {
        for (engine, points) in &curves.engines {
            write!(text, "| {} | {engine} |", curves.line).expect("a String takes everything");
            for point in points {
                let cell = point.map_or_else(|| "-".to_owned(), |micros| format!("{micros:.2}"));
                write!(text, " {cell} |").expect("a String takes everything");
            }
            let growth = growth(points).map_or_else(|| "-".to_owned(), |x| format!("{x:.2}x"));
            writeln!(text, " {growth} |").expect("a String takes everything");
        }
    }
    text.push('\n');
    for line in &standing.setting {
        writeln!(text, "- {}", squeeze(line)).expect("a String takes everything");
    }
    text
}

/// How much more the last size costs than the first.
fn growth(points: &[Option<f64>]) -> Option<f64> {
    let (first, last) = ((*points.first()?)?, (*points.last()?)?);
    (first > 0.0).then(|| last / first)
}

/// Entries in a few characters: `10 M`.
pub(super) fn short(entries: u64) -> String {
    match entries {
        1_000_000.. if entries.is_multiple_of(1_000_000) => format!("{} M", entries / 1_000_000),
        1_000.. if entries.is_multiple_of(1_000) => format!("{} k", entries / 1_000),
        _ => entries.to_string(),
    }
}

/// Every point; `null` where an engine has no such line.
pub(super) fn json(standing: &Standing) -> String {
    let setting: Vec<String> = standing
        .setting
        .iter()
        .map(|line| quoted(&squeeze(line)))
        .collect();
    let mut curves = Vec::new();
    for line in &standing.curves {
        for (engine, points) in &line.engines {
            let micros: Vec<String> = points
                .iter()
                .map(|point| point.map_or_else(|| "null".to_owned(), |x| format!("{x:.4}")))
                .collect();
            curves.push(format!(
                "{{\"line\": {}, \"engine\": {}, \"micros\": [{}]}}",
                quoted(&line.line),
                quoted(engine),
                micros.join(", ")
            ));
        }
    }
    format!(
        "{{\"setting\": [{}],\n\"entries\": {:?},\n\"curves\": [\n{}\n]}}\n",
        setting.join(", "),
        standing.sizes,
        curves.join(",\n")
    )
}

#[cfg(test)]
mod tests {
    use super::super::contest::Curves;
    use super::*;

    #[test]
    fn rows_end_with_the_growth_and_gaps_are_dashes() {
        let standing = Standing {
            sizes: vec![1_000_000, 10_000_000],
            curves: vec![Curves {
                line: "overwrite".to_owned(),
                engines: vec![
                    ("drumlin".to_owned(), vec![Some(0.5), Some(0.75)]),
                    ("lmdb".to_owned(), vec![Some(1.0), None]),
                ],
            }],
            setting: vec!["a  machine".to_owned()],
        };
        let text = markdown(&standing);
        assert!(
            text.contains("| line | engine | 1 M | 10 M | last / first |\n"),
            "{text}"
        );
        assert!(
            text.contains("| overwrite | drumlin | 0.50 | 0.75 | 1.50x |\n"),
            "{text}"
        );
        assert!(
            text.contains("| overwrite | lmdb | 1.00 | - | - |\n"),
            "{text}"
        );
        let text = json(&standing);
        assert!(text.contains("\"micros\": [1.0000, null]"), "{text}");
        assert!(text.contains("\"entries\": [1000000, 10000000]"), "{text}");
    }

    #[test]
    fn entries_are_short() {
        let shown: Vec<String> = [500, 2_500, 20_000, 1_500_000, 100_000_000]
            .map(short)
            .into();
        assert_eq!(shown, ["500", "2500", "20 k", "1500 k", "100 M"]);
    }
}
