//! Runs a plan: rounds, and in each round the stages, and in each stage the engines in turn.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use drumlin_base::checksum::xxh3_64;
use drumlin_base::{Error, ErrorKind, Result};
use drumlin_bench::Flags;
use drumlin_bench::datasets::{DataSet, DataSpec};
use drumlin_bench::records::Records;
use drumlin_fs::Env;

use crate::date;
use crate::engine::{Moment, Starter};
use crate::entrant::Entrant;
use crate::experiments::{BESIDE_CACHE, Data, Opening, Plan, Stage};
use crate::group::Limits;
use crate::held::Held;
use crate::outcome::{Figure, Outcome, Point, Round, StageOutcome};
use crate::pairs;
use crate::places::{disk_bytes, remove_tree, settled_bytes};
use crate::protocol::{Act, Done, RoleDone, Step};
use crate::records::{Written, write_records};

/// A file system in memory.
const MEMORY_DIR: &str = "/dev/shm";

/// Memory that a limited process gets beside the share of the data and the harness's keys: for its code, its
/// stacks, the histograms of its threads, and the fixed needs of every engine. With 32 MiB RocksDB's process
/// was once killed in a stage of 24 threads, probably for lack of memory.
const PROCESS_BYTES: u64 = 64 << 20;

/// The substitute where memory and disk cannot be limited.
const INSTEAD: &str = "instead, Drumlin, RocksDB and WiredTiger read past the page cache, with the memory that they would \
                       have had as their cache; the disk's reads a second, and engines that cannot do so, were not limited";

/// `flags` for a process that is not limited and shall keep `bytes` in memory all the same.
fn without_limits(mut flags: Vec<String>, bytes: u64) -> Vec<String> {
    // Of a flag given twice the last counts.
    flags.push("--use_direct_reads=true".to_owned());
    flags.push(format!("--cache_size={bytes}"));
    flags.push(format!("--memory_budget={}", bytes + BESIDE_CACHE));
    flags
}

/// A plan and the engines that carry it out.
#[derive(Clone, Debug)]
pub struct Contest {
    /// The measurement.
    pub plan: Plan,
    /// Engines by name, ours first.
    pub engines: Vec<(String, Starter)>,
    /// How often all of it is done.
    pub rounds: usize,
    /// Directory of the laboratory's own for stores and data; emptied.
    pub dir: PathBuf,
    /// Documentation for English text.
    pub docs: Option<PathBuf>,
    /// The command line, for the report.
    pub command: String,
}

/// How far a contest is.
#[derive(Clone, Copy, Debug)]
pub struct Progress<'p> {
    /// Steps done and steps in all.
    pub done: usize,
    /// All steps.
    pub all: usize,
    /// The engine at work.
    pub engine: &'p str,
    /// The stage it is at.
    pub stage: &'p str,
    /// Operations a second of the last second, and the second.
    pub rate: Option<(f64, f64)>,
}

/// The state of a round.
struct Course<'c> {
    contest: &'c Contest,
    env: &'c Env,
    running: HashMap<usize, Entrant>,
    records: Option<(PathBuf, Written)>,
    /// The content of each engine's store, and its space of keys.
    held: HashMap<usize, (Held, u64)>,
    /// Memory of the harness, by engine, as last reported.
    harness_bytes: HashMap<usize, u64>,
    warnings: Vec<String>,
    versions: Vec<String>,
}

/// Runs `contest` and reports every second to `on_progress`. Removes its stores from the disk.
///
/// # Errors
/// The first failure of an engine, a wrong or missing value included, naming it and the stage.
pub fn run(
    contest: &Contest,
    env: &Env,
    on_progress: &mut dyn FnMut(Progress<'_>),
) -> Result<Outcome> {
    let outcome = all_rounds(contest, env, on_progress);
    let removed = remove_tree(&contest.dir, env).and_then(|()| remove_tree(&memory_dir(), env));
    // The first of two errors explains more.
    outcome.and_then(|outcome| removed.map(|()| outcome))
}

/// The directory of stores in memory.
fn memory_dir() -> PathBuf {
    Path::new(MEMORY_DIR).join(format!("drumlin-lab-{}", std::process::id()))
}

fn all_rounds(
    contest: &Contest,
    env: &Env,
    on_progress: &mut dyn FnMut(Progress<'_>),
) -> Result<Outcome> {
    env.files.create_dir_all(&contest.dir)?;
    let mut setting = machine(env);
    let mut course = Course {
        contest,
        env,
        running: HashMap::new(),
        records: None,
        held: HashMap::new(),
        harness_bytes: HashMap::new(),
        warnings: Vec::new(),
        versions: vec![String::new(); contest.engines.len()],
    };
    setting.extend(course.make_data()?);
    let stages = course.rounds(on_progress)?;
    setting.append(&mut course.versions);
    let mut warnings = course.warnings;
    let figures: Vec<Figure> = stages.iter().flat_map(StageOutcome::figures).collect();
    warnings.extend(doubts(&figures, contest.rounds));
    let plan = &contest.plan;
    Ok(Outcome {
        title: plan.title.clone(),
        notes: plan.notes.clone(),
        command: contest.command.clone(),
        setting,
        warnings,
        engines: contest
            .engines
            .iter()
            .map(|(name, _)| name.clone())
            .collect(),
        figures,
        pairs: match plan.are_equals {
            true => pairs::pairs(&stages),
            false => Vec::new(),
        },
        stages,
    })
}

/// Reasons not to trust `figures`.
fn doubts(figures: &[Figure], rounds: usize) -> Vec<String> {
    let mut doubts = Vec::new();
    let is_noisy = |figure: &&Figure| {
        let mut summaries = figure.cells.iter().filter_map(|cell| cell.summary);
        summaries.any(|summary| summary.is_noisy())
    };
    let noisy = figures.iter().filter(is_noisy).count();
    if noisy * 4 > figures.len() {
        doubts.push(format!(
            "{noisy} of {} figures spread by more than a quarter over the rounds: this machine is too noisy to tell \
             small differences",
            figures.len()
        ));
    }
    if rounds == 1 {
        doubts.push("a single round: there is no spread to judge by".to_owned());
    }
    doubts
}

/// The records of `data`.
fn data_set(data: &Data, contest: &Contest, env: &Env) -> Result<Arc<dyn DataSet>> {
    match data {
        Data::Made(kind, bytes) => {
            let spec = DataSpec {
                docs: contest.docs.clone(),
                ..DataSpec::new(*kind, *bytes)
            };
            spec.make(env)
        }
        Data::File(path) => {
            let records = Records::read(env, path, u64::MAX)?;
            check_distinct(&records).map_err(|error| error.with_file(path))?;
            Ok(Arc::new(records))
        }
    }
}

/// Refuses records with a repeated key: a read would miss the value of the first.
fn check_distinct(records: &Records) -> Result<()> {
    let mut seen = HashSet::new();
    for number in 0..records.count() {
        if !seen.insert(xxh3_64(records.get(number).0)) {
            let line = number + 1;
            let message = format!("line {line} has the key of an earlier line");
            return Err(Error::invalid_argument(message));
        }
    }
    Ok(())
}

fn empty(stage: &Stage, engines: usize) -> StageOutcome {
    let acts: Vec<_> = stage.step.roles.iter().map(|role| role.act).collect();
    StageOutcome {
        label: stage.label.clone(),
        entries: stage.entries,
        roles: acts.iter().map(|act| act.word()).collect(),
        acts,
        engines: vec![Vec::new(); engines],
    }
}

impl Course<'_> {
    /// Writes the records of the plan to a file; their line of the setting, if it has any.
    fn make_data(&mut self) -> Result<Option<String>> {
        let Some(data) = &self.contest.plan.data else {
            return Ok(None);
        };
        let set = data_set(data, self.contest, self.env)?;
        let path = self.contest.dir.join("records");
        let written = write_records(&*set, &path, self.env)?;
        let line = format!(
            "data: {}; {} records, {:.1} MB, checksum {:016x}",
            set.title(),
            written.count,
            written.bytes as f64 / 1e6,
            written.checksum
        );
        self.records = Some((path, written));
        Ok(Some(line))
    }

    /// Has all engines do all stages in turn, as often as there are rounds.
    fn rounds(&mut self, on_progress: &mut dyn FnMut(Progress<'_>)) -> Result<Vec<StageOutcome>> {
        let contest = self.contest;
        let (stages, engines) = (&contest.plan.stages, contest.engines.len());
        let mut outcomes: Vec<StageOutcome> =
            stages.iter().map(|stage| empty(stage, engines)).collect();
        let (mut done, all) = (0, contest.rounds * stages.len() * engines);
        for round in 0..contest.rounds {
            for (number, (stage, outcome)) in stages.iter().zip(&mut outcomes).enumerate() {
                for turn in 0..engines {
                    // Another engine begins each time.
                    let index = (turn + round + number) % engines;
                    let Some((name, _)) = contest.engines.get(index) else {
                        continue;
                    };
                    let (engine, label) = (name.as_str(), stage.label.as_str());
                    let mut tell = |rate| {
                        on_progress(Progress {
                            done,
                            all,
                            engine,
                            stage: label,
                            rate,
                        });
                    };
                    let measured = self.measure(index, stage, &mut tell);
                    let measured =
                        measured.map_err(|error| error.context(format!("{name}, {label}")))?;
                    if let Some(rounds) = outcome.engines.get_mut(index) {
                        rounds.push(measured);
                    }
                    done += 1;
                }
            }
            self.end_round()?;
        }
        Ok(outcomes)
    }

    fn store_dir(&self, index: usize) -> PathBuf {
        let name = self
            .contest
            .engines
            .get(index)
            .map_or("", |(name, _)| name.as_str());
        match self.contest.plan.in_memory && Path::new(MEMORY_DIR).exists() {
            true => memory_dir().join(name),
            false => self.contest.dir.join(name),
        }
    }

    /// Has engine `index` do `stage`.
    fn measure(
        &mut self,
        index: usize,
        stage: &Stage,
        tell: &mut dyn FnMut(Option<(f64, f64)>),
    ) -> Result<Round> {
        tell(None);
        if let Some(opening) = &stage.opening {
            self.open(index, opening)?;
        }
        let not_open = || Error::new(ErrorKind::Aborted, "the engine is not running");
        let dir = self.store_dir(index);
        let engine = self.running.get_mut(&index).ok_or_else(not_open)?;
        let before = engine.used_before();
        let mut moments: Vec<Moment> = Vec::new();
        let mut done = engine.step(&stage.step, self.env, &mut |moment| {
            let second = &moment.second;
            let operations = second.roles.first().map_or(0, |role| role.operations);
            tell(Some((
                operations as f64 / second.length.max(1e-3),
                second.end,
            )));
            moments.push(moment);
        })?;
        let writes = stage.step.roles.iter().any(|role| role.act.is_write());
        let idle = match writes {
            true => engine.rest(self.env),
            false => 0.0,
        };
        // Behind a server's last reply its store goes on.
        if stage.step.roles.iter().any(|role| role.act == Act::Compact) {
            done.store.disk_bytes = settled_bytes(self.env, &dir);
        } else if writes {
            done.store.disk_bytes = disk_bytes(self.env, &dir);
        }
        let after = engine.used();
        let (held, keys) = self.held.get(&index).copied().unwrap_or_default();
        let points = points(&moments, &stage.step, &done, (held, keys));
        let held = held_after(held, keys, &stage.step, &done);
        self.held.insert(index, (held, keys));
        let round = Round {
            settle_seconds: done.settle_seconds + idle,
            resident_bytes: after.resident_bytes,
            disk_bytes: [
                after.read_bytes.saturating_sub(before.read_bytes),
                after.written_bytes.saturating_sub(before.written_bytes),
            ],
            cpu_seconds: after.cpu_seconds() - before.cpu_seconds(),
            times_full: engine.times_full(),
            held_bytes: held.bytes(),
            points,
            done,
        };
        self.harness_bytes.insert(index, round.done.harness_bytes);
        Ok(round)
    }

    /// Starts engine `index` anew and opens its store.
    fn open(&mut self, index: usize, opening: &Opening) -> Result<()> {
        if let Some(running) = self.running.remove(&index) {
            running.close()?;
        }
        let dir = self.store_dir(index);
        if opening.is_fresh {
            remove_tree(&dir, self.env)?;
            self.harness_bytes.remove(&index);
            let keys = Flags::parse(&opening.flags)?.num;
            self.held.insert(index, (Held::default(), keys));
        }
        self.env.files.create_dir_all(&dir)?;
        let Some((name, starter)) = self.contest.engines.get(index) else {
            return Ok(());
        };
        let harness = self.harness_bytes.get(&index).copied().unwrap_or(0);
        let data_bytes = self
            .records
            .as_ref()
            .map_or(0, |(_, written)| written.bytes);
        let memory = opening
            .memory_share
            .map(|share| (data_bytes as f64 * share) as u64 + harness + PROCESS_BYTES);
        let limits = Limits {
            memory_bytes: memory,
            disk_reads: opening.read_iops,
            dir: Some(dir.clone()),
        };
        let mut flags = opening.flags.clone();
        if memory.is_some() {
            flags.push("--use_direct_io_for_flush_and_compaction=true".to_owned());
        }
        let place = (dir.as_path(), flags.as_slice());
        let mut engine =
            match Entrant::open(name, starter, &limits, place, opening.is_fresh, self.env) {
                Err(error) if error.kind() == ErrorKind::NotSupported && limits.is_any() => {
                    // Once: of other engines it names other groups and says no more.
                    if !self.warnings.iter().any(|said| said.ends_with(INSTEAD)) {
                        self.warnings.push(format!("{error}; {INSTEAD}"));
                    }
                    let share = opening.memory_share.unwrap_or(1.0);
                    let flags = without_limits(flags, (data_bytes as f64 * share) as u64);
                    let place = (dir.as_path(), flags.as_slice());
                    Entrant::open(
                        name,
                        starter,
                        &Limits::default(),
                        place,
                        opening.is_fresh,
                        self.env,
                    )?
                }
                opened => opened?,
            };
        if let Some(version) = self.versions.get_mut(index) {
            *version = format!(
                "{name}: {}; flags {}",
                engine.version(),
                opening.flags.join(" ")
            );
        }
        if let Some((path, written)) = &self.records {
            engine.records(path, written.count, !opening.is_fresh)?;
        }
        self.running.insert(index, engine);
        Ok(())
    }

    /// Closes all engines and removes their stores.
    fn end_round(&mut self) -> Result<()> {
        for (_, engine) in self.running.drain() {
            engine.close()?;
        }
        for index in 0..self.contest.engines.len() {
            remove_tree(&self.store_dir(index), self.env)?;
        }
        Ok(())
    }
}

/// The seconds of a step on a store that held `before`.
fn points(moments: &[Moment], step: &Step, done: &Done, before: (Held, u64)) -> Vec<Point> {
    let mut points: Vec<Point> = Vec::new();
    let mut so_far = Done {
        roles: done.roles.clone(),
        ..Done::default()
    };
    for role in &mut so_far.roles {
        role.operations = 0;
    }
    for (index, now) in moments.iter().enumerate() {
        let earlier = index.checked_sub(1).and_then(|index| moments.get(index));
        for (sum, role) in so_far.roles.iter_mut().zip(&now.second.roles) {
            sum.operations += role.operations;
        }
        let mut held = before.0;
        for (role, (sum, whole)) in step.roles.iter().zip(so_far.roles.iter().zip(&done.roles)) {
            held.write(role.act, sum.operations, entry_bytes(whole), before.1);
        }
        let mut point = Point::of(now, earlier);
        point.held_mb = held.bytes().map(|bytes| bytes / 1e6);
        points.push(point);
    }
    points
}

fn entry_bytes(role: &RoleDone) -> f64 {
    role.written_bytes as f64 / role.operations.max(1) as f64
}

/// The content of a store after `step`.
fn held_after(mut held: Held, keys: u64, step: &Step, done: &Done) -> Held {
    for (role, whole) in step.roles.iter().zip(&done.roles) {
        held.write(role.act, whole.operations, entry_bytes(whole), keys);
    }
    held
}

/// The machine and when.
fn machine(env: &Env) -> Vec<String> {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let value = |text: &str, name: &str| {
        let line = text.lines().find(|line| line.starts_with(name));
        let value = line
            .and_then(|line| line.split_once(':'))
            .map(|(_, value)| value.trim().to_owned());
        value.unwrap_or_else(|| "unknown".to_owned())
    };
    let cores = drumlin_fs::machine::cores_available();
    let memory = drumlin_fs::machine::memory_limit_bytes() as f64 / f64::from(1 << 30);
    vec![
        format!(
            "machine: {cores} cores of {}, {memory:.1} GiB of memory",
            value(&read("/proc/cpuinfo"), "model name")
        ),
        format!(
            "system: Linux {}",
            read("/proc/sys/kernel/osrelease").trim()
        ),
        format!("date: {}", date::utc(env.clock.unix_seconds())),
    ]
}

#[cfg(test)]
mod tests {
    use drumlin_fs::{CreateOptions, FileKind, StrictMemFileSystem};

    use super::*;

    fn records(text: &str) -> Records {
        let env = Env::system().with_files(Arc::new(StrictMemFileSystem::new()));
        let path = Path::new("/records");
        let made = env.files.create_dir_all(Path::new("/"));
        made.expect("memory takes a directory");
        let options = CreateOptions::new(FileKind::Other);
        let mut file = env
            .files
            .create(path, options)
            .expect("memory takes a file");
        file.append(text.as_bytes()).expect("memory has room");
        file.close().expect("memory has room");
        Records::read(&env, path, u64::MAX).expect("sound lines")
    }

    #[test]
    fn given_records_with_one_key_are_refused_before_anything_is_written() {
        assert!(check_distinct(&records("a\t1\nb\t1\nc\t1\n")).is_ok());
        let error = check_distinct(&records("a\t1\nb\t1\na\t2\n")).expect_err("a twice");
        assert!(error.to_string().contains("line 3"), "{error}");
    }

    #[test]
    fn the_machine_is_told() {
        let lines = machine(&Env::system());
        assert!(
            lines.len() == 3 && lines.iter().all(|line| line.contains(": ")),
            "{lines:?}"
        );
        assert!(
            lines[2].starts_with("date: 20") && lines[2].ends_with(" UTC"),
            "{lines:?}"
        );
    }
}
