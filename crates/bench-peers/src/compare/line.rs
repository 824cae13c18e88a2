//! One line of a comparison: a workload and its number of threads.

use std::str::FromStr;

use drumlin_base::{Error, Result};
use drumlin_bench::Flags;
use drumlin_bench::keygen::KeyOrder;
use drumlin_bench::runner::fill_order;
use drumlin_bench::workloads::Work;

/// A workload by db_bench's name; `:disable_wal` when it writes without the log; `@` and a number of
/// threads if not one: `readrandom@2`, `fillrandom:disable_wal@2`.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    /// db_bench's name.
    pub(crate) name: String,
    /// Threads.
    pub(crate) threads: usize,
    /// Whether it writes without the log.
    pub(crate) no_wal: bool,
    /// What each thread does.
    pub(crate) work: Work,
    /// Whether it starts with an empty store.
    pub(crate) is_fresh: bool,
    /// Whether it leaves work behind.
    pub(crate) is_write: bool,
    /// What stands in reports: the name, the threads, and what became of the store before.
    pub(crate) label: String,
}

impl FromStr for Line {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let bad = || Error::invalid_argument(format!("'{text}' is no line that can be compared"));
        let (name, threads) = match text.split_once('@') {
            Some((name, threads)) => (name, threads.parse().map_err(|_| bad())?),
            None => (text, 1),
        };
        let (name, no_wal) = match name.split_once(':') {
            Some((name, "disable_wal")) => (name, true),
            Some(_) => return Err(bad()),
            None => (name, false),
        };
        let work = match name {
            "fillseq" | "fillbatch" => Work::Fill(KeyOrder::Ascending),
            "fillrandom" | "fillsync" | "overwrite" => Work::Fill(KeyOrder::Random),
            "filluniquerandom" => Work::Fill(KeyOrder::UniqueRandom),
            "readrandom" => Work::ReadRandom { extra: 0 },
            "readmissing" => Work::ReadRandom { extra: 1 },
            "readhot" => Work::ReadHot,
            "multireadrandom" => Work::MultiReadRandom,
            "readseq" => Work::ReadForward,
            "readreverse" => Work::ReadBackward,
            "seekrandom" => Work::SeekRandom,
            "deleterandom" => Work::Delete(KeyOrder::Random),
            "deleteseq" => Work::Delete(KeyOrder::Ascending),
            "compact" => Work::Compact,
            _ => return Err(bad()),
        };
        // Two threads would write every key twice, and only one can compact.
        let alone = matches!(work, Work::Compact | Work::Fill(KeyOrder::UniqueRandom));
        if threads == 0 || threads > 1024 || (alone && threads > 1) {
            return Err(bad());
        }
        let puts = matches!(work, Work::Fill(_) | Work::Delete(_));
        if no_wal && (!puts || name == "fillsync") {
            return Err(bad());
        }
        let mut line = Self {
            name: name.to_owned(),
            threads,
            no_wal,
            work,
            is_fresh: name.starts_with("fill"),
            is_write: puts || work == Work::Compact,
            label: String::new(),
        };
        line.label = line.title();
        if threads > 1 {
            line.label.push_str(&format!(", {threads} threads"));
        }
        Ok(line)
    }
}

impl Line {
    /// The workload without its threads.
    fn title(&self) -> String {
        if self.no_wal {
            format!("{} without WAL", self.name)
        } else {
            self.name.clone()
        }
    }

    /// `flags` as this line changes them.
    pub(crate) fn adjust(&self, flags: &mut Flags) {
        flags.threads = self.threads;
        flags.disable_wal |= self.no_wal;
        if matches!(self.work, Work::Fill(_)) {
            // fillsync syncs and writes a thousandth, fillbatch writes batches.
            fill_order(&self.name, flags);
        }
    }

    /// Parses the lines of `--benchmarks`. The label of a read tells what was last done to the
    /// store, for `readrandom` after `fillrandom` and after `compact` are two things.
    ///
    /// # Errors
    /// `InvalidArgument`: an unknown name, or reads before anything was written.
    pub(crate) fn parse_all(text: &str) -> Result<Vec<Self>> {
        let mut lines = Vec::new();
        let mut state: Option<String> = None;
        for word in text.split(',').filter(|word| !word.is_empty()) {
            let mut line: Self = word.parse()?;
            match &state {
                None if !line.is_fresh => {
                    let message = format!("'{word}' comes before anything was written");
                    return Err(Error::invalid_argument(message));
                }
                Some(before) if !line.is_fresh => line.label.push_str(&format!(" after {before}")),
                _ => {}
            }
            if line.is_write {
                state = Some(line.title());
            }
            lines.push(line);
        }
        Ok(lines)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(text: &str) -> Vec<String> {
        let lines = Line::parse_all(text).expect("sound lines");
        lines.into_iter().map(|line| line.label).collect()
    }

    #[test]
    fn reads_are_told_apart_by_what_was_written_before() {
        assert_eq!(
            labels("fillrandom@2,readrandom,compact,readrandom@2"),
            [
                "fillrandom, 2 threads",
                "readrandom after fillrandom",
                "compact after fillrandom",
                "readrandom, 2 threads after compact",
            ]
        );
    }

    #[test]
    fn writes_can_go_without_the_log_and_syncs_are_fewer() {
        assert_eq!(
            labels("fillrandom:disable_wal@2,readrandom"),
            [
                "fillrandom without WAL, 2 threads",
                "readrandom after fillrandom without WAL",
            ]
        );
        let adjusted = |text: &str| {
            let mut flags = Flags::parse(&["--num=5000000"]).expect("sound flags");
            text.parse::<Line>().expect("a line").adjust(&mut flags);
            flags
        };
        let flags = adjusted("fillsync@32");
        assert_eq!((flags.num, flags.threads, flags.sync), (5000, 32, true));
        assert_eq!(adjusted("fillbatch").batch_size, 1000);
        assert!(adjusted("overwrite:disable_wal").disable_wal);
        assert!(!adjusted("overwrite").disable_wal);
    }

    #[test]
    fn nonsense_is_refused() {
        for text in [
            "readrandom",
            "fillseq,nothing",
            "fillseq@0",
            "fillseq,compact@2",
            "fillseq@x",
            "fillseq:fast",
            "fillsync:disable_wal",
            "fillseq,readseq:disable_wal",
        ] {
            assert!(Line::parse_all(text).is_err(), "{text}");
        }
    }
}
