//! The numbers by which a version of RocksDB asks for counters and times.

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
