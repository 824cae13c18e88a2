//! A watched load as lines: one a second, and the summary at the end.

use std::fmt::Write as _;

use super::report::{Floor, Report};
use super::second::{Second, Times};

const MB: f64 = 1e6;

/// The columns of [`line`].
pub fn heading() -> String {
    format!(
        "{:>5} {:>9} {:>8} {:>8} {:>9} {:>9} {:>9} {:>8} {:>9} {:>9}  files by level\n",
        "sec",
        "writes/s",
        "p50 us",
        "p99 us",
        "p99.9 us",
        "max us",
        "debt MB",
        "wait ms",
        "blobs MB",
        "disk MB"
    )
}

/// One second. `*` after its number: the manual compaction was running.
pub fn line(second: &Second) -> String {
    let sample = &second.sample;
    let times = second.times;
    let megabytes = |bytes: Option<u64>| dash(bytes.map(|bytes| bytes as f64 / MB), 0);
    format!(
        "{:>4.0}{} {:>9.0} {:>8.1} {:>8.1} {:>9.1} {:>9.0} {:>9} {:>8} {:>9} {:>9.0}  {}\n",
        second.end,
        if second.is_compacting { '*' } else { ' ' },
        second.rate(),
        times.p50_us,
        times.p99_us,
        times.p999_us,
        times.max_us,
        megabytes(sample.debt_bytes),
        dash(second.waited_micros.map(|micros| micros as f64 / 1e3), 0),
        megabytes(sample.blob_bytes),
        second.disk_bytes as f64 / MB,
        sample.levels(),
    )
}

/// The closing lines.
pub fn summary(report: &Report) -> String {
    let mut text = String::new();
    let times = report.times();
    say(
        &mut text,
        format_args!(
            "writes: {} in {:.1} s, {:.0} a second",
            report.writes,
            report.length,
            report.rate()
        ),
    );
    floor_line(&mut text, "floor/median", report.floor());
    if let Some(compaction) = report.compaction {
        say(
            &mut text,
            format_args!(
                "manual compaction: asked at {:.1} s, took {:.1} s",
                compaction.asked_at, compaction.took
            ),
        );
        floor_line(
            &mut text,
            "floor/median while compacting",
            report.compacting_floor(),
        );
    }
    times_lines(&mut text, "", times);
    if let Some(times) = report.compacting_times() {
        times_lines(&mut text, " while compacting", times);
    }
    if let Some(ends) = report.ends() {
        let (first, last) = (ends.first, ends.last);
        say(
            &mut text,
            format_args!(
                "last/first: {:.3} (first {:.0} s: {first:.0} writes/s, last: {last:.0})",
                last / first.max(1e-9),
                ends.window
            ),
        );
    }
    say(
        &mut text,
        format_args!(
            "write amplification: {} (at rest after {:.1} s more)",
            dash(report.write_amplification(), 2),
            report.settle_seconds
        ),
    );
    say(
        &mut text,
        format_args!(
            "space amplification: {} at rest, {} at most",
            dash(report.space_amplification(), 2),
            dash(report.space_amplification_max(), 2)
        ),
    );
    say(
        &mut text,
        format_args!(
            "waited: {} s of all writers; debt at most {} MB",
            dash(report.waited_seconds(), 2),
            dash(report.debt_bytes_max().map(|bytes| bytes as f64 / MB), 0)
        ),
    );
    text
}

fn floor_line(text: &mut String, name: &str, floor: Option<Floor>) {
    let Some(floor) = floor else {
        return;
    };
    say(
        text,
        format_args!(
            "{name}: {:.3} (slowest second {:.0} writes/s, median {:.0}, of {} seconds)",
            floor.ratio(),
            floor.slowest,
            floor.median,
            floor.seconds
        ),
    );
}

fn times_lines(text: &mut String, when: &str, times: Times) {
    say(text, format_args!("p50{when}: {:.1} us", times.p50_us));
    say(text, format_args!("p99{when}: {:.1} us", times.p99_us));
    say(text, format_args!("p99.9{when}: {:.1} us", times.p999_us));
    say(
        text,
        format_args!("max{when}: {:.1} ms", times.max_us / 1e3),
    );
}

/// `number` with `digits` behind the point, or a dash.
pub(super) fn dash(number: Option<f64>, digits: usize) -> String {
    number.map_or_else(|| "-".to_owned(), |number| format!("{number:.digits$}"))
}

fn say(text: &mut String, line: std::fmt::Arguments<'_>) {
    writeln!(text, "{line}").expect("a String takes everything");
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::report::Compaction;
    use super::*;
    use crate::sample::Sample;

    /// Two seconds, the second beside a compaction; three writes were timed.
    pub(in super::super) fn report() -> Report {
        let second = |end: f64, writes, is_compacting| Second {
            end,
            length: 1.0,
            writes,
            is_compacting,
            waited_micros: Some(2000),
            sample: Sample {
                debt_bytes: Some(3_000_000),
                files_by_level: vec![2, 0, 7, 0],
                ..Sample::default()
            },
            disk_bytes: 5_000_000,
            live_bytes: 4_000_000,
            ..Second::default()
        };
        let mut report = Report {
            seconds: vec![second(1.0, 100, false), second(2.0, 90, true)],
            length: 2.0,
            writes: 190,
            compaction: Some(Compaction {
                asked_at: 1.0,
                took: 0.5,
            }),
            ..Report::default()
        };
        for nanos in [1000, 2000, 3_000_000] {
            report.all.record(nanos);
            report.compacting.record(nanos);
        }
        report
    }

    #[test]
    fn the_closing_lines_have_floor_percentiles_and_amplifications() {
        let text = summary(&report());
        for line in [
            "writes: 190 in 2.0 s, 95 a second\n",
            "floor/median: 0.947 (slowest second 90 writes/s, median 95, of 2 seconds)\n",
            "manual compaction: asked at 1.0 s, took 0.5 s\n",
            "floor/median while compacting: 1.000 (slowest",
            "\np99.9: 3000.3 us\n",
            "\nmax: 3.0 ms\n",
            "\nmax while compacting: 3.0 ms\n",
            "last/first: 0.900 (first 1 s: 100 writes/s, last: 90)\n",
            "write amplification: - (at rest",
            "space amplification: - at rest, 1.25 at most\n",
            "waited: 0.00 s of all writers; debt at most 3 MB\n",
        ] {
            assert!(text.contains(line), "{line}\n{text}");
        }
    }

    #[test]
    fn a_second_is_one_line_and_marks_the_compaction() {
        let report = report();
        assert!(line(&report.seconds[1]).starts_with("   2*        90 "));
        assert!(line(&report.seconds[0]).ends_with("         5  2 0 7\n"));
        let columns = |text: &str| text.split_whitespace().count();
        assert_eq!(columns(&line(&report.seconds[0])), 13);
    }
}
