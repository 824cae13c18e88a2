//! The demo's last part: the table.

use std::time::Duration;

use drumlin::Db;
use drumlin_bench::histogram::Latencies;
use drumlin_bench::lineitem::LineItemSpec;
use drumlin_bench::text::CommentText;
use serde_json::{Value, json};

use super::load::LoadSummary;
use super::reads::ReadSummary;
use crate::units;

/// Bytes the engine wrote, by purpose.
#[derive(Clone, Copy, Debug, Default)]
struct Written {
    wal: u64,
    flushes: u64,
    compactions: u64,
}

/// Everything the table shows.
#[derive(Debug, Default)]
pub(crate) struct Report {
    data: String,
    pub(crate) load: LoadSummary,
    pub(crate) compact: Option<Duration>,
    pub(crate) reads: ReadSummary,
    pub(crate) disk_bytes: u64,
    pub(crate) memory_bytes: u64,
    /// Bytes of the demo's own list of rows, which are not the engine's.
    pub(crate) rows_bytes: u64,
    written: Written,
}

impl Report {
    /// A report on rows of `spec`.
    pub(crate) fn new(spec: &LineItemSpec, text: &CommentText) -> Self {
        let text = match text.pool_bytes() {
            Some(bytes) => format!(
                "text pool of {}",
                units::bytes(u64::from(bytes.unsigned_abs()))
            ),
            None => "fresh text".to_owned(),
        };
        Self {
            data: format!(
                "TPC-H lineitem, scale factor {}, comments of {} bytes, {text}",
                spec.scale_factor, spec.comment_bytes
            ),
            ..Self::default()
        }
    }

    /// Takes over the engine's counters.
    pub(crate) fn take_counters(&mut self, db: &Db) {
        for (name, value) in db.statistics().tickers() {
            match name {
                "rocksdb.wal.bytes" => self.written.wal = value,
                "rocksdb.flush.write.bytes" => self.written.flushes = value,
                "rocksdb.compact.write.bytes" => self.written.compactions = value,
                _ => {}
            }
        }
    }

    /// The table, a line a row.
    pub(crate) fn lines(&self) -> Vec<String> {
        let mut rows = vec![("data", self.data.clone())];
        self.load_rows(&mut rows);
        self.read_rows(&mut rows);
        self.cost_rows(&mut rows);
        rows.into_iter()
            .map(|(name, text)| format!("{name:<20} {text}"))
            .collect()
    }

    /// The same as JSON, in bytes, seconds and microseconds.
    pub(crate) fn object(&self) -> Value {
        let (load, reads) = (&self.load, &self.reads);
        json!({
            "data": self.data,
            "load": {
                "rows": load.rows, "left_out": load.left_out, "bytes": load.bytes,
                "seconds": load.took.as_secs_f64(),
            },
            "compaction_seconds": self.compact.map(|took| took.as_secs_f64()),
            "reads": {
                "threads": reads.threads, "seconds": reads.took.as_secs_f64(),
                "times": times(&reads.reads),
            },
            "writes_beside": { "times": times(&reads.writes), "bytes": reads.written_bytes },
            "disk_bytes": self.disk_bytes,
            "memory_bytes": self.memory_bytes,
            "rows_bytes": self.rows_bytes,
            "written": {
                "wal": self.written.wal, "flushes": self.written.flushes,
                "compactions": self.written.compactions,
            },
        })
    }

    fn load_rows(&self, rows: &mut Vec<(&'static str, String)>) {
        let load = &self.load;
        let seconds = load.took.as_secs_f64();
        rows.push((
            "rows loaded",
            format!(
                "{}, all keys distinct ({} rows with a key seen before left out)",
                units::count(load.rows),
                units::count(load.left_out)
            ),
        ));
        rows.push(("raw size", units::bytes(load.bytes)));
        rows.push((
            "load",
            format!(
                "{seconds:.1} s, {} rows/s, {}/s",
                units::count(units::rate(load.rows, seconds)),
                units::bytes(units::rate(load.bytes, seconds))
            ),
        ));
        if let Some(took) = self.compact {
            rows.push(("compaction", format!("{:.1} s", took.as_secs_f64())));
        }
    }

    fn read_rows(&self, rows: &mut Vec<(&'static str, String)>) {
        let reads = &self.reads;
        let seconds = reads.took.as_secs_f64();
        rows.push((
            "random reads",
            format!(
                "{} threads, {seconds:.1} s, {} reads/s, checks included",
                reads.threads,
                units::count(units::rate(reads.reads.count(), seconds))
            ),
        ));
        rows.push(("read latency", percentiles(&reads.reads)));
        rows.push((
            "checked",
            format!(
                "{} values, every one equal byte for byte",
                units::count(reads.reads.count())
            ),
        ));
        rows.push((
            "writes beside",
            format!(
                "{} rows/s",
                units::count(units::rate(reads.writes.count(), seconds))
            ),
        ));
        rows.push(("write latency", percentiles(&reads.writes)));
    }

    fn cost_rows(&self, rows: &mut Vec<(&'static str, String)>) {
        let raw = (self.load.bytes + self.reads.written_bytes).max(1);
        let share = |bytes: u64| bytes as f64 / raw as f64;
        let Written {
            wal,
            flushes,
            compactions,
        } = self.written;
        rows.push((
            "size on disk",
            format!(
                "{} for {} of rows ({:.2} : 1), closed",
                units::bytes(self.disk_bytes),
                units::bytes(raw),
                raw as f64 / self.disk_bytes.max(1) as f64
            ),
        ));
        rows.push((
            "write amplification",
            format!(
                "{:.2} (log {:.2}, flushes {:.2}, compactions {:.2})",
                share(wal + flushes + compactions),
                share(wal),
                share(flushes),
                share(compactions)
            ),
        ));
        rows.push((
            "resident memory",
            format!(
                "{} ({} of it the demo's own list of rows)",
                units::bytes(self.memory_bytes),
                units::bytes(self.rows_bytes)
            ),
        ));
    }
}

fn times(latencies: &Latencies) -> Value {
    json!({
        "count": latencies.count(),
        "p50_us": latencies.percentile_us(50.0),
        "p99_us": latencies.percentile_us(99.0),
        "p999_us": latencies.percentile_us(99.9),
        "max_us": latencies.max_us(),
    })
}

fn percentiles(latencies: &Latencies) -> String {
    format!(
        "p50 {:.1} us, p99 {:.1} us, p99.9 {:.1} us, max {:.1} us",
        latencies.percentile_us(50.0),
        latencies.percentile_us(99.0),
        latencies.percentile_us(99.9),
        latencies.max_us()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_names_every_figure() {
        let mut report = Report::new(&LineItemSpec::default(), &CommentText::fresh());
        report.load = LoadSummary {
            rows: 1_000_000,
            bytes: 600_000_000,
            left_out: 3,
            took: Duration::from_secs(4),
        };
        report.disk_bytes = 300_000_000;
        report.written = Written {
            wal: 600_000_000,
            flushes: 300_000_000,
            compactions: 450_000_000,
        };
        let text = report.lines().join("\n");
        for part in [
            "scale factor 1, comments of 512 bytes, fresh text",
            &*format!("{}, all keys distinct (3 rows", units::count(1_000_000)),
            &*format!("4.0 s, {} rows/s, 150 MB/s", units::count(250_000)),
            "300 MB for 600 MB of rows (2.00 : 1), closed",
            "2.25 (log 1.00, flushes 0.50, compactions 0.75)",
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
    }
}
