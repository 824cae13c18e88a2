//! Runs a plan: rounds, and in each round the stages, and in each stage the engines in turn.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use drumlin_base::{Error, ErrorKind, Result};
use drumlin_bench::datasets::DataSpec;
use drumlin_fs::Env;

use crate::engine::{EngineProcess, Moment, Starter, remove_tree};
use crate::experiments::{Opening, Plan, Stage};
use crate::group::Limits;
use crate::outcome::{Outcome, Point, Round, StageOutcome};
use crate::protocol::Request;
use crate::records::write_records;

/// Where files go that shall be in memory.
const MEMORY_DIR: &str = "/dev/shm";

/// Memory that a limited process gets beside the share of the data and the harness's keys: for its code,
/// its stacks and what every engine needs however small its data.
const PROCESS_BYTES: u64 = 32 << 20;

/// What to run on what.
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

/// How far a contest is, for whoever shows it.
#[derive(Clone, Copy, Debug)]
pub struct Progress<'p> {
    /// Steps done and steps in all.
    pub done: usize,
    /// All steps.
    pub all: usize,
    /// The engine at work.
    pub engine: &'p str,
    /// What it does.
    pub stage: &'p str,
    /// Operations a second of the last second, and the second.
    pub rate: Option<(f64, f64)>,
}

/// The state of a round.
struct Course<'c> {
    contest: &'c Contest,
    env: &'c Env,
    running: HashMap<usize, EngineProcess>,
    records: Option<PathBuf>,
    data_bytes: u64,
    /// Memory of the harness, by engine, as it was told last.
    harness_bytes: HashMap<usize, u64>,
    warnings: Vec<String>,
    versions: Vec<String>,
}

/// Runs `contest` and tells `on_progress` of every second.
///
/// # Errors
/// The first failure of an engine, a wrong or missing value included, naming it and the stage.
pub fn run(
    contest: &Contest,
    env: &Env,
    on_progress: &mut dyn FnMut(Progress<'_>),
) -> Result<Outcome> {
    let plan = &contest.plan;
    env.files.create_dir_all(&contest.dir)?;
    let mut setting = machine(env);
    let mut course = Course {
        contest,
        env,
        running: HashMap::new(),
        records: None,
        data_bytes: 0,
        harness_bytes: HashMap::new(),
        warnings: Vec::new(),
        versions: vec![String::new(); contest.engines.len()],
    };
    if let Some((kind, bytes)) = plan.data {
        let spec = DataSpec {
            docs: contest.docs.clone(),
            ..DataSpec::new(kind, bytes)
        };
        let set = spec.make(env)?;
        let path = contest.dir.join("records");
        course.data_bytes = write_records(&*set, &path, env)?;
        let megabytes = course.data_bytes as f64 / 1e6;
        setting.push(format!(
            "data: {}; {} records, {megabytes:.1} MB",
            set.title(),
            set.len()
        ));
        course.records = Some(path);
    }
    let mut stages: Vec<StageOutcome> = plan
        .stages
        .iter()
        .map(|stage| empty(stage, contest.engines.len()))
        .collect();
    let all = contest.rounds * plan.stages.len() * contest.engines.len();
    let mut done = 0;
    for round in 0..contest.rounds {
        for (number, (stage, outcome)) in plan.stages.iter().zip(&mut stages).enumerate() {
            for turn in 0..contest.engines.len() {
                // Another engine begins each time.
                let index = (turn + round + number) % contest.engines.len();
                let Some((name, _)) = contest.engines.get(index) else {
                    continue;
                };
                let mut tell = |rate| {
                    on_progress(Progress {
                        done,
                        all,
                        engine: name,
                        stage: &stage.label,
                        rate,
                    });
                };
                let measured = course.measure(index, stage, &mut tell);
                let measured =
                    measured.map_err(|error| error.context(format!("{name}, {}", stage.label)))?;
                if let Some(rounds) = outcome.engines.get_mut(index) {
                    rounds.push(measured);
                }
                done += 1;
            }
        }
        course.end_round()?;
    }
    remove_tree(&contest.dir, env)?;
    setting.extend(course.versions.iter().cloned());
    let figures: Vec<_> = stages.iter().flat_map(StageOutcome::figures).collect();
    let noisy = |figure: &&crate::outcome::Figure| {
        figure
            .cells
            .iter()
            .flat_map(|cell| cell.summary)
            .any(|summary| summary.is_noisy())
    };
    let noisy = figures.iter().filter(noisy).count();
    if noisy * 4 > figures.len() {
        let text = format!(
            "{noisy} of {} figures spread by more than a quarter over the rounds: this machine is too noisy to tell \
             small differences",
            figures.len()
        );
        course.warnings.push(text);
    }
    if contest.rounds == 1 {
        course
            .warnings
            .push("a single round: there is no spread to judge by".to_owned());
    }
    Ok(Outcome {
        title: plan.title.clone(),
        notes: plan.notes.clone(),
        command: contest.command.clone(),
        setting,
        warnings: course.warnings,
        engines: contest
            .engines
            .iter()
            .map(|(name, _)| name.clone())
            .collect(),
        figures,
        stages,
    })
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
    fn store_dir(&self, index: usize) -> PathBuf {
        let name = self
            .contest
            .engines
            .get(index)
            .map_or("", |(name, _)| name.as_str());
        match self.contest.plan.in_memory && Path::new(MEMORY_DIR).exists() {
            true => Path::new(MEMORY_DIR)
                .join(format!("drumlin-lab-{}", std::process::id()))
                .join(name),
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
        let engine = self.running.get_mut(&index).ok_or_else(not_open)?;
        let before = engine.used();
        let mut moments: Vec<Moment> = Vec::new();
        let done = engine.ask(&Request::Step(stage.step.clone()), &mut |moment| {
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
            true => engine.wait_until_idle(&*self.env.clock).as_secs_f64(),
            false => 0.0,
        };
        let after = engine.used();
        let round = Round {
            settle_seconds: done.settle_seconds + idle,
            resident_bytes: after.resident_bytes,
            disk_bytes: [
                after.read_bytes.saturating_sub(before.read_bytes),
                after.written_bytes.saturating_sub(before.written_bytes),
            ],
            cpu_seconds: after.cpu_seconds() - before.cpu_seconds(),
            times_full: engine.times_full(),
            points: points(&moments),
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
        }
        self.env.files.create_dir_all(&dir)?;
        let Some((name, starter)) = self.contest.engines.get(index) else {
            return Ok(());
        };
        let harness = self.harness_bytes.get(&index).copied().unwrap_or(0);
        let memory = opening
            .memory_share
            .map(|share| (self.data_bytes as f64 * share) as u64 + harness + PROCESS_BYTES);
        let limits = Limits {
            memory_bytes: memory,
            disk_reads: opening.read_iops.map(|reads| (reads, dir.clone())),
        };
        let mut engine = match EngineProcess::start(name, starter, &limits) {
            Err(error) if error.kind() == ErrorKind::NotSupported => {
                let text = format!("{error}; limited stages ran with limited caches only");
                if !self.warnings.contains(&text) {
                    self.warnings.push(text);
                }
                EngineProcess::start(name, starter, &Limits::default())?
            }
            started => started?,
        };
        let mut flags = opening.flags.clone();
        flags.push(format!("--db={}", dir.display()));
        if memory.is_some() {
            flags.push("--use_direct_io_for_flush_and_compaction=true".to_owned());
        }
        engine.ask(
            &Request::Open {
                flags,
                is_fresh: opening.is_fresh,
            },
            &mut |_| {},
        )?;
        if let Some(version) = self.versions.get_mut(index) {
            *version = format!(
                "{name}: {}; flags {}",
                engine.version(),
                opening.flags.join(" ")
            );
        }
        if let Some(path) = &self.records {
            let path = path.display().to_string();
            engine.ask(
                &Request::Records {
                    path,
                    is_loaded: !opening.is_fresh,
                },
                &mut |_| {},
            )?;
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

fn points(moments: &[Moment]) -> Vec<Point> {
    let before = std::iter::once(None).chain(moments.iter().map(Some));
    moments
        .iter()
        .zip(before)
        .map(|(now, before)| Point::of(now, before))
        .collect()
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
        format!("seconds since 1970: {}", env.clock.unix_seconds()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_is_told() {
        let lines = machine(&Env::system());
        assert!(
            lines.len() == 3 && lines.iter().all(|line| line.contains(": ")),
            "{lines:?}"
        );
    }
}
