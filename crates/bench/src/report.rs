//! The lines a run prints, laid out as db_bench's.

use crate::flags::Flags;
use crate::stats::RunStats;

/// Bytes in the report's MB, as in the peer's.
const MB: f64 = 1_048_576.0;

/// `name : micros/op ops/sec seconds operations; MB/s (remark)`, and the distributions if there are
/// any. Ends with a newline.
pub fn run_line(name: &str, run: &RunStats) -> String {
    // A workload that counts nothing counts as one operation.
    let operations = run.operations.max(1);
    let elapsed = run.elapsed_seconds.max(1e-9);
    let mut line = format!(
        "{name:<12} : {:11.3} micros/op {:.0} ops/sec {:.3} seconds {operations} operations;",
        run.thread_seconds * 1e6 / operations as f64,
        (operations as f64 / elapsed).floor(),
        run.elapsed_seconds,
    );
    if run.bytes > 0 {
        line.push_str(&format!(" {:6.1} MB/s", run.bytes as f64 / MB / elapsed));
    }
    if !run.remark.is_empty() {
        line.push(' ');
        line.push_str(&run.remark);
    }
    if let Some((found, asked)) = run.found {
        line.push_str(&format!(" ({found} of {asked} found)"));
    }
    line.push('\n');
    for (operation, latencies) in &run.latencies {
        line.push_str(&format!(
            "Microseconds per {}:\n{}\n",
            operation.name(),
            latencies.report()
        ));
    }
    line
}

/// The size of a directory beside that of its entries. Ends with a newline.
pub fn size_line(stored: u64, raw: u64, entries: u64) -> String {
    let ratio = raw as f64 / stored.max(1) as f64;
    let each = stored as f64 / entries.max(1) as f64;
    format!(
        "{:<12} : {stored} bytes in the directory, {raw} of {entries} keys and values; 1/{ratio:.2}, {each:.2} bytes an entry\n",
        "size",
    )
}

/// Repeated runs of one workload: mean with its 95 % interval, and median.
pub fn repeat_lines(name: &str, runs: &[(f64, f64)]) -> String {
    if runs.len() < 2 {
        return String::new();
    }
    let operations: Vec<f64> = runs.iter().map(|run| run.0).collect();
    let megabytes: Vec<f64> = runs.iter().map(|run| run.1).collect();
    let count = runs.len();
    let mut text = format!(
        "{name} [AVG    {count} runs] : {:.0} (\u{b1} {:.0}) ops/sec",
        mean(&operations).floor(),
        interval_95(&operations).floor(),
    );
    if megabytes.iter().all(|rate| *rate > 0.0) {
        text.push_str(&format!(
            "; {:6.1} (\u{b1} {:.1}) MB/sec",
            mean(&megabytes),
            interval_95(&megabytes)
        ));
    }
    text.push_str(&format!(
        "\n{name} [MEDIAN {count} runs] : {:.0} ops/sec",
        median(&operations).floor()
    ));
    if megabytes.iter().all(|rate| *rate > 0.0) {
        text.push_str(&format!("; {:6.1} MB/sec", median(&megabytes)));
    }
    text.push('\n');
    text
}

/// Operations and MB a second of a run, for [`repeat_lines`].
pub fn rates(run: &RunStats) -> (f64, f64) {
    let elapsed = run.elapsed_seconds.max(1e-9);
    (
        run.operations.max(1) as f64 / elapsed,
        run.bytes as f64 / MB / elapsed,
    )
}

/// The sizes on top of a run.
pub fn header(version: &str, flags: &Flags) -> String {
    let compressed = flags.value_size as f64 * flags.compression_ratio;
    let raw = (flags.key_size + flags.value_size) as f64 * flags.num as f64;
    let stored = (flags.key_size as f64 + compressed) * flags.num as f64;
    let mut text = format!(
        "{version}\nKeys:       {} bytes each\nValues:     {} bytes each ({:.0} bytes after \
         compression)\nEntries:    {}\nPrefix:    {} bytes\nKeys per prefix:    {}\nRawSize:    \
         {:.1} MB (estimated)\nFileSize:   {:.1} MB (estimated)\nWrite rate: {} \
         bytes/second\nCompression: {}\nSeed:       {}\n",
        flags.key_size,
        flags.value_size,
        compressed,
        flags.num,
        flags.prefix_size,
        flags.keys_per_prefix,
        raw / MB,
        stored / MB,
        flags.benchmark_write_rate_limit,
        flags.compression_type,
        flags.seed,
    );
    if !flags.without_effect.is_empty() {
        text.push_str("Flags without effect here: ");
        text.push_str(&flags.without_effect.join(", "));
        text.push('\n');
    }
    if cfg!(debug_assertions) {
        text.push_str("WARNING: assertions are enabled; the figures mean little\n");
    }
    text.push_str("------------------------------------------------\n");
    text
}

fn mean(numbers: &[f64]) -> f64 {
    numbers.iter().sum::<f64>() / numbers.len() as f64
}

fn interval_95(numbers: &[f64]) -> f64 {
    let middle = mean(numbers);
    let squares: f64 = numbers.iter().map(|x| (x - middle).powi(2)).sum();
    let deviation = (squares / (numbers.len() as f64 - 1.0)).sqrt();
    1.96 * deviation / (numbers.len() as f64).sqrt()
}

fn median(numbers: &[f64]) -> f64 {
    let mut sorted = numbers.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    let upper = sorted.get(middle).copied().unwrap_or_default();
    if sorted.len() % 2 == 1 {
        return upper;
    }
    let lower = middle.checked_sub(1).and_then(|index| sorted.get(index));
    (lower.copied().unwrap_or(upper) + upper) / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run() -> RunStats {
        RunStats {
            operations: 1000,
            bytes: 126_600 * 1048,
            thread_seconds: 0.000_863,
            elapsed_seconds: 0.000_874,
            ..RunStats::default()
        }
    }

    #[test]
    fn a_line_reads_as_the_peers() {
        // The layout of "fillseq      :       2.675 micros/op 370507 ops/sec 0.005 seconds 2000
        // operations;   41.0 MB/s", from db_bench 7.8.3.
        let line = RunStats {
            operations: 2000,
            bytes: 232_000,
            thread_seconds: 0.005_35,
            elapsed_seconds: 0.005_398,
            ..RunStats::default()
        };
        assert_eq!(
            run_line("fillseq", &line),
            "fillseq      :       2.675 micros/op 370507 ops/sec 0.005 seconds 2000 operations;   \
             41.0 MB/s\n"
        );
    }

    #[test]
    fn found_keys_end_the_line_and_bytes_may_be_missing() {
        let found = RunStats {
            bytes: 0,
            found: Some((0, 1000)),
            ..run()
        };
        assert_eq!(
            run_line("readmissing", &found),
            "readmissing  :       0.863 micros/op 1144164 ops/sec 0.001 seconds 1000 operations; \
             (0 of 1000 found)\n"
        );
    }

    #[test]
    fn repeats_are_summed_up_as_the_peer_does() {
        let text = repeat_lines("readrandom", &[(3_367_003.0, 372.5), (3_407_155.0, 376.9)]);
        assert_eq!(
            text,
            "readrandom [AVG    2 runs] : 3387079 (± 39348) ops/sec;  374.7 (± 4.3) MB/sec\n\
             readrandom [MEDIAN 2 runs] : 3387079 ops/sec;  374.7 MB/sec\n"
        );
        assert_eq!(repeat_lines("readrandom", &[(1.0, 1.0)]), "");
    }
}
