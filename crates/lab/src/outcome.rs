//! The result of a measurement, as it is written to the JSON file and drawn.

use serde::Serialize;

use crate::engine::Moment;
use crate::pairs::Pair;
use crate::protocol::{Act, Done, Times};
use crate::steadiness::{
    last_over_first, slowest_of_second_half, slowest_over_median, slowest_while_compacting,
};
use crate::summary::{Ratio, Summary};

/// A second of a step, the process's use in it, and the store at its end.
#[derive(Clone, Debug, Serialize)]
pub struct Point {
    /// End of the second.
    pub t: f64,
    /// Operations a second, by role.
    pub rates: Vec<f64>,
    /// Median, 99th, 99.9th percentile and longest time in microseconds, by role.
    pub times: Vec<[f64; 4]>,
    /// Resident memory in MB, of it anonymous, and page cache.
    pub memory_mb: [f64; 3],
    /// Processor share by thread.
    pub cpu: Vec<(String, f64)>,
    /// MB read from and written to the disk in the second.
    pub disk_mb: [f64; 2],
    /// MB of files.
    pub size_mb: f64,
    /// MB of keys and values that the store holds, where that is known.
    pub held_mb: Option<f64>,
    /// MB that compactions still have to rewrite.
    pub debt_mb: Option<f64>,
    /// Tables by level.
    pub levels: Vec<u64>,
    /// Whether the manual compaction ran.
    pub compacting: bool,
}

impl Point {
    /// The point of `now`, with the process's use since `before`.
    pub fn of(now: &Moment, before: Option<&Moment>) -> Self {
        const MB: f64 = 1e6;
        let second = &now.second;
        let length = second.length.max(1e-3);
        let grown = |now: u64, before: Option<u64>| {
            before.map_or(0.0, |before| {
                now.saturating_sub(before) as f64 / MB / length
            })
        };
        let used = before.map(|moment| &moment.used);
        let cpu = now.used.cpu_by_thread.iter().filter_map(|(name, seconds)| {
            let earlier = used?.cpu_by_thread.get(name).copied().unwrap_or(0.0);
            let share = (seconds - earlier).max(0.0) / length;
            (share >= 0.01).then(|| (name.clone(), share))
        });
        Self {
            t: second.end,
            rates: second
                .roles
                .iter()
                .map(|role| role.operations as f64 / length)
                .collect(),
            times: second
                .roles
                .iter()
                .map(|role| {
                    [
                        role.times.p50,
                        role.times.p99,
                        role.times.p999,
                        role.times.max,
                    ]
                })
                .collect(),
            memory_mb: [
                now.used.resident_bytes as f64 / MB,
                now.used.anonymous_bytes as f64 / MB,
                now.page_cache_bytes as f64 / MB,
            ],
            cpu: cpu.collect(),
            disk_mb: [
                grown(now.used.read_bytes, used.map(|used| used.read_bytes)),
                grown(now.used.written_bytes, used.map(|used| used.written_bytes)),
            ],
            size_mb: second.store.disk_bytes as f64 / MB,
            held_mb: None,
            debt_mb: second.store.debt_bytes.map(|bytes| bytes as f64 / MB),
            levels: second.store.files_by_level.clone(),
            compacting: second.is_compacting,
        }
    }
}

/// One engine's stage in one round.
#[derive(Clone, Debug, Serialize)]
pub struct Round {
    /// The engine's counters.
    pub done: Done,
    /// Seconds of background work afterwards.
    pub settle_seconds: f64,
    /// Resident memory at the end.
    pub resident_bytes: u64,
    /// Bytes read from and written to the disk.
    pub disk_bytes: [u64; 2],
    /// Bytes of keys and values that the store holds then, where that is known.
    pub held_bytes: Option<f64>,
    /// Processor seconds.
    pub cpu_seconds: f64,
    /// How often the limit of memory was met.
    pub times_full: Option<u64>,
    /// Second by second.
    pub points: Vec<Point>,
}

/// A stage by all engines.
#[derive(Clone, Debug, Serialize)]
pub struct StageOutcome {
    /// Its label.
    pub label: String,
    /// Entries in the store, where cost is shown against size.
    pub entries: Option<u64>,
    /// The work of its roles.
    #[serde(skip)]
    pub acts: Vec<Act>,
    /// Their names.
    pub roles: Vec<&'static str>,
    /// The rounds of each engine.
    pub engines: Vec<Vec<Round>>,
}

/// A figure of a stage by one engine.
#[derive(Clone, Debug, Serialize)]
pub struct Cell {
    /// Over the rounds; nothing where the engine has no such thing.
    pub summary: Option<Summary>,
    /// How many times better the first engine is.
    pub ratio: Option<Ratio>,
}

/// A figure of a stage by all engines.
#[derive(Clone, Debug, Serialize)]
pub struct Figure {
    /// The stage.
    pub stage: String,
    /// Its name, with the unit.
    pub name: String,
    /// Whether more is better.
    pub more_is_better: bool,
    /// By engine.
    pub cells: Vec<Cell>,
}

/// A percentile's name, and where it stands.
type Percentile = (&'static str, fn(&Times) -> f64);

/// A store whose files are less than this share of its data has most of it in memtables.
const FLUSHED_SHARE: f64 = 0.25;

/// Percentiles that are figures.
const PERCENTILES: [Percentile; 4] = [
    ("p50", |times| times.p50),
    ("p95", |times| times.p95),
    ("p99", |times| times.p99),
    ("p99.9", |times| times.p999),
];

impl StageOutcome {
    /// Operations a second of the first role in `round`; of an engine that was not measured, nothing.
    pub(crate) fn rate(&self, round: &Round) -> Option<f64> {
        let role = round.done.roles.first()?;
        (role.operations > 0).then(|| role.operations as f64 / round.done.seconds.max(1e-9))
    }

    /// The figures of this stage.
    pub fn figures(&self) -> Vec<Figure> {
        let mut figures = Vec::new();
        for (index, (act, word)) in self.acts.iter().zip(&self.roles).enumerate() {
            let of = |done: &Done| {
                done.roles
                    .get(index)
                    .copied()
                    .filter(|role| role.operations > 0)
            };
            if *act == Act::Compact {
                // Engines return when all is merged; the rest afterwards, until it is certain that nothing
                // goes on, is no part of it.
                let seconds = |round: &Round| of(&round.done).map(|_| round.done.seconds);
                figures.push(self.figure("compaction, s", false, &seconds));
                continue;
            }
            let rate = |round: &Round| {
                let role = of(&round.done)?;
                Some(role.operations as f64 / round.done.seconds.max(1e-9))
            };
            figures.push(self.figure(&format!("{word}/s"), true, &rate));
            if !matches!(act, Act::Forward | Act::Backward) {
                for (name, pick) in PERCENTILES {
                    // An engine that times nothing has no percentiles.
                    let time = |round: &Round| {
                        of(&round.done)
                            .map(|role| pick(&role.times))
                            .filter(|micros| *micros > 0.0)
                    };
                    figures.push(self.figure(&format!("{word}, {name} us"), false, &time));
                }
            }
        }
        if self.acts.first().is_some_and(|act| act.is_write()) {
            self.push_sizes(&mut figures);
        }
        self.push_steadiness(&mut figures);
        let memory = |round: &Round| {
            let own = round
                .resident_bytes
                .saturating_sub(round.done.harness_bytes);
            (own > 0).then_some(own as f64 / 1e6)
        };
        figures.push(self.figure("resident memory, MB", false, &memory));
        // A figure that no engine has is left out.
        figures.retain(|figure| figure.cells.iter().any(|cell| cell.summary.is_some()));
        figures
    }

    /// The figures of whether the stage kept its pace.
    fn push_steadiness(&self, figures: &mut Vec<Figure>) {
        let slowest = |round: &Round| slowest_over_median(&round.points);
        figures.push(self.figure("slowest second / median second", true, &slowest));
        if self.acts.first().is_some_and(|act| act.is_put()) {
            let half = |round: &Round| slowest_of_second_half(&round.points);
            figures.push(self.figure("slowest of the second half / median", true, &half));
            let compacting = |round: &Round| slowest_while_compacting(&round.points);
            figures.push(self.figure("slowest while compacting / median", true, &compacting));
            let ends = |round: &Round| last_over_first(&round.points);
            figures.push(self.figure("last minute / first minute", true, &ends));
        }
    }

    /// The figures of the store's bytes: size, write amplification and space amplification.
    fn push_sizes(&self, figures: &mut Vec<Figure>) {
        let space = |round: &Round| {
            let known = !round.done.roles.is_empty();
            let bytes = round.done.store.disk_bytes as f64;
            Some(bytes / round.held_bytes?).filter(|ratio| known && *ratio > 0.0)
        };
        // A store that is mostly in memtables has no size yet.
        let rounds = || self.engines.iter().flatten().filter_map(space);
        let is_compacted = self.acts.contains(&Act::Compact);
        if is_compacted || rounds().all(|ratio| ratio > FLUSHED_SHARE) {
            let size =
                |round: &Round| space(round).map(|_| round.done.store.disk_bytes as f64 / 1e6);
            figures.push(self.figure("size, MB", false, &size));
            figures.push(self.figure("size / data", false, &space));
        }
        let written = |round: &Round| {
            let asked: u64 = round.done.roles.iter().map(|role| role.written_bytes).sum();
            let [_, written] = round.disk_bytes;
            (asked > 0 && written > 0).then(|| written as f64 / asked as f64)
        };
        figures.push(self.figure("written to the disk / written by the user", false, &written));
    }

    fn figure(
        &self,
        name: &str,
        more_is_better: bool,
        of: &dyn Fn(&Round) -> Option<f64>,
    ) -> Figure {
        let summaries: Vec<Option<Summary>> = self
            .engines
            .iter()
            .map(|rounds| Summary::of(rounds.iter().filter_map(of)))
            .collect();
        let ours = summaries.first().copied().flatten();
        let cells = summaries.iter().enumerate().map(|(index, theirs)| {
            let pair = ours.zip(*theirs).filter(|_| index > 0);
            let ratio = pair.and_then(|(ours, theirs)| match more_is_better {
                true => Ratio::of(ours, theirs),
                false => Ratio::of(theirs, ours),
            });
            Cell {
                summary: *theirs,
                ratio,
            }
        });
        Figure {
            stage: self.label.clone(),
            name: name.to_owned(),
            more_is_better,
            cells: cells.collect(),
        }
    }
}

/// All of it.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// The measurement's title.
    pub title: String,
    /// Notes for its reader.
    pub notes: Vec<String>,
    /// The exact command.
    pub command: String,
    /// Machine, versions, data: a line each.
    pub setting: Vec<String>,
    /// Reasons not to trust it.
    pub warnings: Vec<String>,
    /// Names of the engines, ours first.
    pub engines: Vec<String>,
    /// The stages.
    pub stages: Vec<StageOutcome>,
    /// Their figures.
    pub figures: Vec<Figure>,
    /// The first two engines by stage, where they should come to the same.
    pub pairs: Vec<Pair>,
}
