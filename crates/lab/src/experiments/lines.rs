//! Any of db_bench's lines at any number of entries, one line after the other.

use drumlin_base::{Error, Result};
use drumlin_bench::Flags;

use super::plan::{Opening, Plan, Stage, words};
use crate::protocol::{Act, Role, Step};

/// One operation in so many is timed: a read takes a fraction of a microsecond.
const TIME_EVERY: u32 = 16;
/// Entries of a batch in `fillbatch`, as in db_bench.
const FILL_BATCH: u64 = 1000;
/// `fillsync` writes one entry in so many, as in LevelDB.
const SYNCED_PART: u64 = 1000;
/// The most threads of a line.
const THREADS_MAX: usize = 1024;

/// Lines to compare engines by.
#[derive(Clone, Debug, PartialEq)]
pub struct Lines {
    /// db_bench's names, separated by commas. `name@2` runs two threads, `name:disable_wal` writes
    /// without the log.
    pub benchmarks: String,
    /// Entries, and operations of each thread. All lines run once for each of them.
    pub sizes: Vec<u64>,
    /// Keys of one multi-get.
    pub multiread_batch: usize,
    /// db_bench's flags beside `--num`, in words.
    pub flags: Vec<String>,
}

/// A line that was parsed.
struct Line {
    label: String,
    name: &'static str,
    act: Act,
    threads: usize,
    no_wal: bool,
}

impl Lines {
    /// The plan.
    ///
    /// # Errors
    /// `InvalidArgument`: an unknown line or flag, a line that reads before anything was written, no
    /// size, or a flag that the lines decide themselves.
    pub fn plan(&self) -> Result<Plan> {
        let flags = Flags::parse(&self.flags)?;
        if flags.duration > 0 || flags.threads > 1 {
            let text = "a line ends by its operations and has its threads in its name: leave --duration and --threads out";
            return Err(Error::invalid_argument(text));
        }
        let lines = parse_all(&self.benchmarks, &flags, self.multiread_batch.max(1))?;
        let mut stages = Vec::new();
        for &entries in &self.sizes {
            if entries == 0 {
                return Err(Error::invalid_argument("a store needs at least one entry"));
            }
            let mut opened = Vec::new();
            for line in &lines {
                let stage = self.stage(line, entries, &flags, &mut opened);
                stages.push(stage);
            }
        }
        let (Some(first), Some(last)) = (self.sizes.first(), self.sizes.last()) else {
            return Err(Error::invalid_argument("at how many entries?"));
        };
        let entries = match first == last {
            true => format!("{first} entries"),
            false => format!("{first} to {last} entries"),
        };
        Ok(Plan {
            title: format!("db_bench's lines, {entries}"),
            notes: vec![
                format!("Flags of all engines: {}.", self.flags.join(" ")),
                "Before each line the engine is at rest. LMDB and redb gather 1,000 puts in a commit and sync none."
                    .to_owned(),
            ],
            data: None,
            in_memory: false,
            are_equals: false,
            stages,
        })
    }

    /// `line` on a store of `entries`. The store stays open until a line starts with an empty one or wants
    /// other flags than `opened`, those of the last opening.
    fn stage(&self, line: &Line, entries: u64, flags: &Flags, opened: &mut Vec<String>) -> Stage {
        let keys = match line.name {
            "fillsync" => (entries / SYNCED_PART).max(1),
            _ => entries,
        };
        let mut own = self.flags.clone();
        own.extend(line.flags(flags));
        // Lines that read the store of a smaller fill ask for all keys; those that are missing are no error.
        let is_fresh = line.is_fresh();
        let opening = (is_fresh || own != *opened).then(|| {
            opened.clone_from(&own);
            let mut flags = words(&format!("--num={keys}"));
            flags.extend(own);
            Opening {
                is_fresh,
                flags,
                memory_share: None,
                read_iops: None,
            }
        });
        let label = match self.sizes.len() {
            1 => line.label.clone(),
            _ => format!("{}, {entries} entries", line.label),
        };
        Stage {
            label,
            entries: Some(entries),
            opening,
            step: line.step(keys, flags),
        }
    }
}

impl Line {
    /// `word` alone, without the flags of earlier lines.
    fn parse(word: &str, flags: &Flags, multiread_batch: usize) -> Option<Self> {
        let (name, threads) = match word.split_once('@') {
            Some((name, threads)) => (name, threads.parse().ok()?),
            None => (word, 1),
        };
        let (name, no_wal) = match name.split_once(':') {
            Some((name, "disable_wal")) => (name, true),
            Some(_) => return None,
            None => (name, false),
        };
        let seeks = Act::Seek(usize::try_from(flags.seek_nexts).ok()?);
        let (name, act) = match name {
            "fillseq" => ("fillseq", Act::PutAscending),
            "fillbatch" => ("fillbatch", Act::PutAscending),
            "fillrandom" => ("fillrandom", Act::PutRandom),
            "fillsync" => ("fillsync", Act::PutRandom),
            "filluniquerandom" => ("filluniquerandom", Act::PutUnique),
            "overwrite" => ("overwrite", Act::PutRandom),
            "readrandom" => ("readrandom", Act::GetUniform),
            "multireadrandom" => ("multireadrandom", Act::MultiGet(multiread_batch)),
            "readseq" => ("readseq", Act::Forward),
            "readreverse" => ("readreverse", Act::Backward),
            "seekrandom" => ("seekrandom", seeks),
            "compact" => ("compact", Act::Compact),
            _ => return None,
        };
        // Two threads would write every key twice, and only one can compact.
        let is_alone = matches!(act, Act::Compact | Act::PutUnique);
        let is_sound = (1..=THREADS_MAX).contains(&threads)
            && !(is_alone && threads > 1)
            && !(no_wal && (!act.is_put() || name == "fillsync"));
        let line = Self {
            label: String::new(),
            name,
            act,
            threads,
            no_wal,
        };
        is_sound.then(|| Self {
            label: line.label_of(),
            ..line
        })
    }

    fn label_of(&self) -> String {
        let threads = match self.threads {
            1 => String::new(),
            threads => format!(" by {threads} threads"),
        };
        format!("{}{threads}", self.work())
    }

    /// The workload without its threads.
    fn work(&self) -> String {
        let log = if self.no_wal { " without WAL" } else { "" };
        format!("{}{log}", self.name)
    }

    fn is_fresh(&self) -> bool {
        self.name.starts_with("fill")
    }

    /// Flags of its own, which count for writes: reads take the store as it is open.
    fn flags(&self, flags: &Flags) -> Vec<String> {
        let mut own = Vec::new();
        if self.no_wal && !flags.disable_wal {
            own.push("--disable_wal=1".to_owned());
        }
        match self.name {
            "fillsync" => own.push("--sync=1".to_owned()),
            "fillbatch" => own.push(format!("--batch_size={FILL_BATCH}")),
            _ => {}
        }
        own
    }

    fn step(&self, keys: u64, flags: &Flags) -> Step {
        let reads = u64::try_from(flags.reads).ok().filter(|reads| *reads > 0);
        let operations = match self.act {
            Act::Forward | Act::Backward => 0,
            Act::Compact => 1,
            act if act.is_put() => keys,
            _ => reads.unwrap_or(keys),
        };
        let role = Role {
            operations,
            time_every: TIME_EVERY,
            must_find: false,
            ..Role::new(self.act, self.threads)
        };
        let settles = self.act.is_write();
        Step {
            roles: vec![role],
            settles,
            ..Step::default()
        }
    }
}

/// The lines of `text`. The label of a read has the last write: `readrandom` after `fillrandom` and after
/// `compact` are two measurements.
fn parse_all(text: &str, flags: &Flags, multiread_batch: usize) -> Result<Vec<Line>> {
    let mut lines: Vec<Line> = Vec::new();
    let mut written: Option<String> = None;
    for word in text.split(',').filter(|word| !word.is_empty()) {
        let mut line = Line::parse(word, flags, multiread_batch).ok_or_else(|| {
            Error::invalid_argument(format!("'{word}' is no line that can be compared"))
        })?;
        if !line.is_fresh() {
            let Some(before) = &written else {
                let text = format!("'{word}' comes before anything was written");
                return Err(Error::invalid_argument(text));
            };
            line.label.push_str(&format!(" after {before}"));
        }
        if line.act.is_write() {
            written = Some(line.work());
        }
        lines.push(line);
    }
    match lines.is_empty() {
        true => Err(Error::invalid_argument("which lines?")),
        false => Ok(lines),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(benchmarks: &str, sizes: &[u64], flags: &str) -> Lines {
        Lines {
            benchmarks: benchmarks.to_owned(),
            sizes: sizes.to_vec(),
            multiread_batch: 32,
            flags: words(flags),
        }
    }

    fn stages(benchmarks: &str, flags: &str) -> Vec<Stage> {
        let plan = lines(benchmarks, &[5000], flags).plan();
        plan.expect("sound lines").stages
    }

    fn labels(benchmarks: &str) -> Vec<String> {
        let stages = stages(benchmarks, "");
        stages.into_iter().map(|stage| stage.label).collect()
    }

    #[test]
    fn reads_are_told_apart_by_what_was_written_before() {
        assert_eq!(
            labels("fillrandom@2,readrandom,compact,readrandom@2"),
            [
                "fillrandom by 2 threads",
                "readrandom after fillrandom",
                "compact after fillrandom",
                "readrandom by 2 threads after compact",
            ]
        );
        assert_eq!(
            labels("fillrandom:disable_wal@2,readrandom"),
            [
                "fillrandom without WAL by 2 threads",
                "readrandom after fillrandom without WAL",
            ]
        );
    }

    #[test]
    fn a_store_stays_open_until_a_line_wants_another() {
        let openings = |benchmarks: &str| -> Vec<Option<bool>> {
            let stages = stages(benchmarks, "--seed=1");
            let is_fresh = |stage: Stage| stage.opening.map(|opening| opening.is_fresh);
            stages.into_iter().map(is_fresh).collect()
        };
        assert_eq!(
            openings("fillseq,readseq,fillrandom,overwrite,overwrite:disable_wal"),
            [Some(true), None, Some(true), None, Some(false)]
        );
        let batches = &stages("fillbatch", "--seed=1")[0];
        let opening = batches.opening.as_ref().expect("an empty store");
        assert_eq!(
            opening.flags,
            ["--num=5000", "--seed=1", "--batch_size=1000"]
        );
    }

    #[test]
    fn synced_fills_are_small_and_reads_as_many_as_asked_for() {
        let stages = stages(
            "fillsync@32,fillrandom,readrandom,readseq,multireadrandom",
            "--reads=7",
        );
        let roles: Vec<(usize, u64)> = stages
            .iter()
            .map(|stage| (stage.step.roles[0].threads, stage.step.roles[0].operations))
            .collect();
        assert_eq!(roles, [(32, 5), (1, 5000), (1, 7), (1, 0), (1, 7)]);
        let sync = stages[0].opening.as_ref().expect("an empty store");
        assert_eq!(sync.flags, ["--num=5", "--reads=7", "--sync=1"]);
    }

    #[test]
    fn several_sizes_are_stages_of_one_name() {
        let plan = lines("fillseq,readseq", &[1000, 2000], "").plan();
        let stages = plan.expect("sound lines").stages;
        let labels: Vec<&str> = stages.iter().map(|stage| stage.label.as_str()).collect();
        assert_eq!(labels[0], "fillseq, 1000 entries");
        assert_eq!(labels[3], "readseq after fillseq, 2000 entries");
        assert_eq!(stages[2].entries, Some(2000));
    }

    #[test]
    fn nonsense_is_refused() {
        for text in [
            "",
            "readrandom",
            "fillseq,nothing",
            "fillseq@0",
            "fillseq,compact@2",
            "fillseq@x",
            "fillseq:fast",
            "fillsync:disable_wal",
            "fillseq,readseq:disable_wal",
        ] {
            assert!(lines(text, &[1], "").plan().is_err(), "{text}");
        }
        assert!(lines("fillseq", &[], "").plan().is_err());
        assert!(lines("fillseq", &[0], "").plan().is_err());
        assert!(lines("fillseq", &[1], "--duration=3").plan().is_err());
        assert!(lines("fillseq", &[1], "--nosuchflag=3").plan().is_err());
    }
}
