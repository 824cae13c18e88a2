//! Who runs which load when.

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use drumlin_base::{Error, ErrorKind, Result};
use drumlin_bench::watch::{self, Plan, Report};
use drumlin_bench::{Flags, Store};
use drumlin_fs::Env;

use super::report;
use crate::compare::{self, Line, machine};
use crate::engines::{Engine, with_store};
use crate::{limit, place};

/// How long the machine rests between two engines after the disk has taken everything.
const REST: Duration = Duration::from_secs(3);

/// A load that is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Load {
    /// Random writes into an empty store, and a full compaction asked for in the middle.
    Stall,
    /// Overwrites of a store that was filled before.
    Sustain,
}

impl Load {
    /// The load under `flags`.
    fn plan(self, flags: &Flags) -> Plan {
        match self {
            Self::Stall => Plan::stall(flags),
            Self::Sustain => Plan::sustain(flags),
        }
    }
}

/// What to run.
#[derive(Debug)]
pub(crate) struct Contest {
    /// What the writers do.
    pub(crate) load: Load,
    /// The engines, in turn.
    pub(crate) engines: Vec<Engine>,
    /// How often all of it is done.
    pub(crate) rounds: usize,
    /// Where the stores are; each engine has a directory there, one at a time.
    pub(crate) dir: PathBuf,
    /// db_bench's flags, once for each size of value.
    pub(crate) flags: Vec<Flags>,
    /// Those of them that were given in db_bench's words, for the report.
    pub(crate) more_flags: Vec<String>,
    /// How long one engine's run may take.
    pub(crate) limit: Duration,
}

/// One engine's run of the load.
#[derive(Debug)]
pub(crate) struct Entry {
    /// The engine's name.
    pub(crate) engine: &'static str,
    /// Counted from 1.
    pub(crate) round: usize,
    /// What was seen.
    pub(crate) report: Report,
}

/// All that was measured with one size of value.
#[derive(Debug)]
pub(crate) struct Table {
    /// What was run, in words.
    pub(crate) title: String,
    /// The engines' runs, in the order they ran.
    pub(crate) entries: Vec<Entry>,
}

/// All that was measured.
#[derive(Debug)]
pub(crate) struct Standing {
    /// One table for each size of value.
    pub(crate) tables: Vec<Table>,
    /// Versions, the machine and the flags, a line each.
    pub(crate) setting: Vec<String>,
}

impl Standing {
    /// The tables as Markdown.
    pub(crate) fn to_markdown(&self) -> String {
        report::markdown(self)
    }

    /// Everything, every second, as JSON.
    pub(crate) fn to_json(&self) -> String {
        report::json(self)
    }
}

/// Runs `contest`, printing every second to `progress`.
///
/// # Errors
/// The first error of an engine, naming it.
pub(crate) fn run(contest: &Contest, env: &Env, progress: &mut dyn Write) -> Result<Standing> {
    let stores = contest.engines.iter().map(|engine| engine.name());
    place::claim(&contest.dir, stores, env)?;
    let mut setting = Vec::new();
    for engine in &contest.engines {
        setting.push(with_store!(engine, S => format!("{engine}: {}", S::version())));
    }
    setting.extend(machine::facts());
    let mut tables = Vec::new();
    for flags in &contest.flags {
        let mut table = Table {
            title: title(contest.load, flags),
            entries: Vec::new(),
        };
        setting.push(settings(contest, flags));
        for round in 1..=contest.rounds {
            for engine in &contest.engines {
                let mut flags = flags.clone();
                engine.adjust(&mut flags);
                flags.db = contest.dir.join(engine.name()).display().to_string();
                flags.seed += round as u64 * 1000;
                say(
                    progress,
                    &format!("round {round}, {engine}: {}\n", table.title),
                )?;
                let _limit = limit::start(engine.name(), contest.limit, env)?;
                let report =
                    with_store!(engine, S => alone::<S>(contest.load, &flags, env, progress))
                        .map_err(|error| error.context(engine))?;
                table.entries.push(Entry {
                    engine: engine.name(),
                    round,
                    report,
                });
            }
        }
        tables.push(table);
    }
    Ok(Standing { tables, setting })
}

/// One engine from an empty directory to an empty directory.
fn alone<S: Store>(
    load: Load,
    flags: &Flags,
    env: &Env,
    progress: &mut dyn Write,
) -> Result<Report> {
    S::destroy(flags, env)?;
    std::fs::create_dir_all(&flags.db)
        .map_err(|error| Error::io("make directory", flags.db.as_ref(), error))?;
    let store = Arc::new(S::open(flags, env)?);
    let plan = load.plan(flags);
    if plan.is_filled {
        fill(&*store, flags, env)?;
    }
    say(progress, &watch::heading())?;
    let report = watch::run(&store, flags, env, &plan, &mut |second| {
        say(progress, &watch::line(second))
    })?;
    say(progress, &watch::summary(&report))?;
    Arc::into_inner(store).map_or_else(
        || Err(Error::new(ErrorKind::Busy, "a thread still uses the store")),
        Store::close,
    )?;
    S::destroy(flags, env)?;
    // What the engine left to the system must not be charged to the next one.
    rustix::fs::sync();
    std::thread::sleep(REST);
    Ok(report)
}

/// Writes every key once, in random order, and waits until the store is at rest.
fn fill<S: Store>(store: &S, flags: &Flags, env: &Env) -> Result<()> {
    let line: Line = "filluniquerandom".parse()?;
    let flags = Flags {
        writes: -1,
        duration: 0,
        threads: 1,
        ..flags.clone()
    };
    compare::measure(store, &line, &flags, env)?;
    store.wait_for_background()
}

fn title(load: Load, flags: &Flags) -> String {
    let (threads, bytes, keys) = (flags.threads, flags.value_size, flags.num);
    let gigabytes = keys as f64 * (flags.key_size + bytes) as f64 / 1e9;
    let writers = if threads == 1 { "writer" } else { "writers" };
    let what = match load {
        Load::Stall => "random writes, everything compacted by hand in the middle",
        Load::Sustain => "overwrites of a filled store",
    };
    format!("{what}: {threads} {writers}, values of {bytes} bytes, {keys} keys ({gigabytes:.1} GB)")
}

fn settings(contest: &Contest, flags: &Flags) -> String {
    let plan = contest.load.plan(flags);
    let length = match plan.seconds {
        Some(seconds) => format!("{seconds} s"),
        None => format!("{} writes a thread", plan.writes_per_thread),
    };
    let mut line = format!(
        "values of {} bytes: {length}, memtables of {} MB, block cache {} MB, compression {}, \
         filters of {} bits a key, {} background jobs, seed {}",
        flags.value_size,
        flags.write_buffer_size >> 20,
        flags.cache_size >> 20,
        flags.compression_type,
        flags.bloom_bits,
        flags.max_background_jobs,
        flags.seed,
    );
    if !contest.more_flags.is_empty() {
        line.push_str("; ");
        line.push_str(&contest.more_flags.join(" "));
    }
    line
}

fn say(progress: &mut dyn Write, text: &str) -> Result<()> {
    progress
        .write_all(text.as_bytes())
        .map_err(|error| Error::new(ErrorKind::Io, format!("cannot print: {error}")))
}
