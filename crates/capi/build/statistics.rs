//! The numbers by which a version of RocksDB asks for counters and times, and those of perf contexts.

use std::fmt::Write as _;

/// Two lists of numbers and names, of `abi`. `table` has a column for each version, whose name is in its first line.
pub(crate) fn numbers(table: &str, abi: &str) -> String {
    let mut lines = table
        .lines()
        .map(|line| line.split('\t').collect::<Vec<_>>());
    let head = lines.next().unwrap_or_default();
    let column = head.iter().position(|name| *name == abi);
    let column = column.unwrap_or_else(|| panic!("statistics.tsv has no column {abi}"));
    let rows: Vec<_> = lines.collect();
    let mut text = String::new();
    for (kind, name) in [("ticker", "TICKERS"), ("histogram", "HISTOGRAMS")] {
        let _ = writeln!(text, "const {name}: &[(u32, &str)] = &[");
        let of_kind = rows
            .iter()
            .filter(|row| row[0] == kind && row[column] != "-");
        for row in of_kind {
            let _ = writeln!(text, "    ({}, {:?}),", row[column], row[1]);
        }
        text.push_str("];\n");
    }
    text
}

/// What perf contexts have, in the order of their reports.
pub(crate) fn perf(table: &str) -> String {
    let mut text = "const METRICS: &[Metric] = &[\n".to_owned();
    for line in table.lines().filter(|line| !line.starts_with('#')) {
        let [name, number, measure, reported] = line.split('\t').collect::<Vec<_>>()[..] else {
            panic!("perf.tsv: {line:?}");
        };
        let number = match number {
            "-" => "None".to_owned(),
            number => format!("Some({number})"),
        };
        let measure = match measure {
            "-" => "None".to_owned(),
            measure => format!("Some(Measure::{measure})"),
        };
        let _ = writeln!(
            text,
            "    Metric {{ name: {name:?}, number: {number}, measure: {measure}, is_reported: {} }},",
            reported == "report"
        );
    }
    text.push_str("];\n");
    text
}
