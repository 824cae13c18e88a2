//! Watched loads as a Markdown table and as JSON.

use std::fmt::Write as _;

use super::print::dash;
use super::report::Report;
use super::second::{Second, Times};

/// A Markdown table with a row for each named load. Columns of which no load has a figure are left
/// out.
pub fn markdown(loads: &[(&str, &Report)]) -> String {
    let rows: Vec<Vec<String>> = loads.iter().map(|(_, report)| cells(report)).collect();
    let is_shown = |column: usize| rows.iter().any(|row| row[column] != "-");
    let shown: Vec<usize> = (0..COLUMNS.len())
        .filter(|column| is_shown(*column))
        .collect();
    let mut text = String::from("| store |");
    for column in &shown {
        write!(text, " {} |", COLUMNS[*column]).expect("a String takes everything");
    }
    text.push_str("\n| --- |");
    text.push_str(&" ---: |".repeat(shown.len()));
    text.push('\n');
    for ((name, _), row) in loads.iter().zip(&rows) {
        write!(text, "| {name} |").expect("a String takes everything");
        for column in &shown {
            write!(text, " {} |", row[*column]).expect("a String takes everything");
        }
        text.push('\n');
    }
    text
}

const COLUMNS: [&str; 16] = [
    "writes/s",
    "slowest s",
    "floor/median",
    "slowest s while compacting",
    "floor/median while compacting",
    "compaction s",
    "p50 us",
    "p99 us",
    "p99.9 us",
    "max ms",
    "waited s",
    "write amp.",
    "space amp. at rest",
    "space amp. at most",
    "last/first",
    "settled in s",
];

/// The figures of one load, in the order of [`COLUMNS`].
fn cells(report: &Report) -> Vec<String> {
    let times = report.times();
    let (floor, compacting) = (report.floor(), report.compacting_floor());
    let ends = report.ends();
    let took = report.compaction.map(|compaction| compaction.took);
    vec![
        dash(Some(report.rate()), 0),
        dash(floor.map(|floor| floor.slowest), 0),
        dash(floor.map(|floor| floor.ratio()), 3),
        dash(compacting.map(|floor| floor.slowest), 0),
        dash(compacting.map(|floor| floor.ratio()), 3),
        dash(took, 1),
        dash(Some(times.p50_us), 1),
        dash(Some(times.p99_us), 1),
        dash(Some(times.p999_us), 1),
        dash(Some(times.max_us / 1e3), 1),
        dash(report.waited_seconds(), 1),
        dash(report.write_amplification(), 2),
        dash(report.space_amplification(), 2),
        dash(report.space_amplification_max(), 2),
        dash(ends.map(|ends| ends.last / ends.first.max(1e-9)), 3),
        dash(Some(report.settle_seconds), 1),
    ]
}

/// Everything as one JSON object, second by second.
pub fn json(report: &Report) -> String {
    let mut text = String::from("{");
    let floor = report.floor();
    let compacting = report.compacting_floor();
    let ends = report.ends();
    let compaction = report.compaction;
    let numbers = [
        ("writes_per_second", Some(report.rate())),
        ("slowest_second", floor.map(|floor| floor.slowest)),
        ("median_second", floor.map(|floor| floor.median)),
        ("floor_over_median", floor.map(|floor| floor.ratio())),
        (
            "compacting_slowest_second",
            compacting.map(|floor| floor.slowest),
        ),
        (
            "compacting_median_second",
            compacting.map(|floor| floor.median),
        ),
        (
            "compacting_floor_over_median",
            compacting.map(|floor| floor.ratio()),
        ),
        ("compaction_asked_at", compaction.map(|it| it.asked_at)),
        ("compaction_seconds", compaction.map(|it| it.took)),
        ("first_window_rate", ends.map(|ends| ends.first)),
        ("last_window_rate", ends.map(|ends| ends.last)),
        ("window_seconds", ends.map(|ends| ends.window)),
        ("write_amplification", report.write_amplification()),
        ("space_amplification", report.space_amplification()),
        ("space_amplification_max", report.space_amplification_max()),
        ("waited_seconds", report.waited_seconds()),
        ("settle_seconds", Some(report.settle_seconds)),
    ];
    for (name, number) in numbers {
        let number = number.map_or_else(|| "null".to_owned(), |number| format!("{number:.4}"));
        write!(text, "\"{name}\": {number}, ").expect("a String takes everything");
    }
    write!(text, "\"times\": {}, ", times_json(report.times())).expect("a String");
    let times = report.compacting_times();
    let times = times.map_or_else(|| "null".to_owned(), times_json);
    write!(text, "\"compacting_times\": {times}, \"seconds\": [").expect("a String");
    let seconds: Vec<String> = report.seconds.iter().map(second_json).collect();
    text.push_str(&seconds.join(", "));
    text.push_str("]}");
    text
}

fn second_json(second: &Second) -> String {
    let sample = &second.sample;
    let whole = |number: Option<u64>| number.map_or_else(|| "null".to_owned(), |n| n.to_string());
    format!(
        "{{\"end\": {:.3}, \"writes\": {}, \"times\": {}, \"compacting\": {}, \"waited_micros\": {}, \
         \"debt_bytes\": {}, \"table_bytes\": {}, \"blob_bytes\": {}, \"disk_bytes\": {}, \
         \"live_bytes\": {}, \"files_by_level\": {:?}}}",
        second.end,
        second.writes,
        times_json(second.times),
        second.is_compacting,
        whole(second.waited_micros),
        whole(sample.debt_bytes),
        whole(sample.table_bytes),
        whole(sample.blob_bytes),
        second.disk_bytes,
        second.live_bytes,
        sample.files_by_level,
    )
}

fn times_json(times: Times) -> String {
    format!(
        "{{\"p50_us\": {:.2}, \"p99_us\": {:.2}, \"p999_us\": {:.2}, \"max_us\": {:.1}}}",
        times.p50_us, times.p99_us, times.p999_us, times.max_us
    )
}

#[cfg(test)]
mod tests {
    use super::super::print::tests::report;
    use super::*;

    #[test]
    fn a_table_leaves_out_what_no_load_knows() {
        let (known, empty) = (report(), Report::default());
        let text = markdown(&[("drumlin", &known), ("other", &empty)]);
        let bars: Vec<usize> = text.lines().map(|line| line.matches('|').count()).collect();
        assert_eq!(bars.len(), 4);
        assert!(bars.iter().all(|count| *count == bars[0]), "{text}");
        assert!(!text.contains("write amp."), "{text}");
        let row = "\n| drumlin | 95 | 90 | 0.947 | 90 | 1.000 | 0.5 |";
        assert!(text.contains(row), "{text}");
        let text = markdown(&[("other", &empty)]);
        assert!(!text.contains("compaction s"), "{text}");
    }

    #[test]
    fn json_has_every_second_and_null_for_what_is_not_known() {
        let text = json(&report());
        assert_eq!(text.matches("\"end\"").count(), 2);
        assert!(text.contains("\"write_amplification\": null"), "{text}");
        assert!(text.contains("\"files_by_level\": [2, 0, 7, 0]"), "{text}");
        assert_eq!(text.matches('{').count(), text.matches('}').count());
    }
}
