//! The rounds: who runs which line when.

use std::fmt::Write as _;
use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use drumlin_base::{Error, ErrorKind, Result};
use drumlin_bench::Flags;
use drumlin_fs::Env;

use super::entrant::{Entrant, StoreEntrant};
use super::line::Line;
use super::result::{Outcome, Rounds};
use super::{db_bench, machine, report};
use crate::engines::{Engine, with_store};
use crate::{limit, place};

/// What to compare.
#[derive(Debug)]
pub(crate) struct Contest {
    /// The engines, in the order of the table's columns.
    pub(crate) engines: Vec<Engine>,
    /// The lines, in the order of the table's rows.
    pub(crate) lines: Vec<Line>,
    /// How often all of it is done.
    pub(crate) rounds: usize,
    /// Where the stores are; each engine has a directory there.
    pub(crate) dir: PathBuf,
    /// db_bench's flags, the same for all.
    pub(crate) flags: Flags,
    /// Keys of one multi-get in multireadrandom.
    pub(crate) multiread_batch: usize,
    /// The db_bench program to run beside, if any.
    pub(crate) db_bench: Option<String>,
    /// How long one engine may take for a line, or db_bench for those it runs at once.
    pub(crate) limit: Duration,
}

/// All that was measured.
#[derive(Debug)]
pub(crate) struct Standing {
    /// The columns' names.
    pub(crate) engines: Vec<String>,
    /// What each engine calls itself.
    pub(crate) versions: Vec<String>,
    /// The rows' names.
    pub(crate) lines: Vec<String>,
    /// Which rows leave background work.
    pub(crate) writes: Vec<bool>,
    /// `rounds[line][engine]`.
    pub(crate) rounds: Vec<Vec<Rounds>>,
    /// The machine and the flags, a line each.
    pub(crate) setting: Vec<String>,
}

/// Runs `contest`, telling `progress` of every line, and returns what was measured.
///
/// # Errors
/// The first error of an engine, naming it and the line.
pub(crate) fn run(contest: &Contest, env: &Env, progress: &mut dyn Write) -> Result<Standing> {
    let stores = contest.engines.iter().map(|engine| engine.name());
    let beside = contest.db_bench.iter().map(|_| "db_bench");
    place::claim(&contest.dir, stores.chain(beside), env)?;
    let mut standing = Standing::new(contest);
    for round in 0..contest.rounds {
        let mut entrants = enter(contest, env)?;
        for (row, line) in contest.lines.iter().enumerate() {
            // Another engine begins each time.
            for turn in 0..entrants.len() {
                let column = (turn + row + round) % entrants.len();
                let flags = flags_of(contest, round, row);
                let name = &standing.engines[column];
                let what = format!("{name}, {}", line.label);
                let _limit = limit::start(&what, contest.limit, env)?;
                let outcome = entrants[column]
                    .run(line, &flags)
                    .map_err(|error| error.context(format_args!("{name}, {}", line.label)))?;
                tell(progress, round, &line.label, name, outcome)?;
                standing.rounds[row][column].0.extend(outcome);
            }
        }
        for (column, entrant) in entrants.iter_mut().enumerate() {
            standing.versions[column] = entrant.version();
            let what = format!("{}, closing", standing.engines[column]);
            let _limit = limit::start(&what, contest.limit, env)?;
            entrant.leave()?;
        }
        if let Some(program) = &contest.db_bench {
            let column = contest.engines.len();
            let measured = db_bench::run(program, contest, round, env)?;
            for (row, outcome) in measured.into_iter().enumerate() {
                tell(
                    progress,
                    round,
                    &contest.lines[row].label,
                    "db_bench",
                    outcome,
                )?;
                standing.rounds[row][column].0.extend(outcome);
            }
        }
    }
    Ok(standing)
}

/// Opens nothing yet: makes one entrant an engine.
fn enter(contest: &Contest, env: &Env) -> Result<Vec<Box<dyn Entrant>>> {
    let mut entrants: Vec<Box<dyn Entrant>> = Vec::new();
    for engine in &contest.engines {
        let mut flags = Flags {
            db: contest.dir.join(engine.name()).display().to_string(),
            ..contest.flags.clone()
        };
        engine.adjust(&mut flags);
        entrants.push(with_store!(engine, S => {
            Box::new(StoreEntrant::<S>::new(*engine, flags, env.clone())?)
        }));
    }
    Ok(entrants)
}

/// The flags of one line. Every line of a round draws from other seeds, every engine from the same.
fn flags_of(contest: &Contest, round: usize, row: usize) -> Flags {
    let line = &contest.lines[row];
    let started: usize = contest.lines[..row].iter().map(|line| line.threads).sum();
    let mut flags = contest.flags.clone();
    line.adjust(&mut flags);
    flags.seed += (round * 1000 + started + 1) as u64;
    if line.name == "multireadrandom" {
        flags.batch_size = contest.multiread_batch;
    }
    flags
}

fn tell(
    progress: &mut dyn Write,
    round: usize,
    line: &str,
    engine: &str,
    outcome: Option<Outcome>,
) -> Result<()> {
    let mut text = format!("round {} {line:<36} {engine:<9} ", round + 1);
    match outcome {
        None => text.push_str("      -"),
        Some(outcome) => {
            write!(text, "{:11.3} micros/op", outcome.micros).expect("a String takes everything");
            if let Some(seconds) = outcome.settle_seconds {
                write!(text, ", busy {seconds:.1} s more").expect("a String takes everything");
            }
            if let Some(found) = outcome.found {
                write!(text, ", {found} of {} found", outcome.operations)
                    .expect("a String takes everything");
            }
        }
    }
    writeln!(progress, "{text}")
        .map_err(|error| Error::new(ErrorKind::Io, format!("cannot print: {error}")))
}

impl Standing {
    fn new(contest: &Contest) -> Self {
        let mut engines: Vec<String> = contest
            .engines
            .iter()
            .map(|engine| engine.name().to_owned())
            .collect();
        let mut versions = vec![String::new(); engines.len()];
        if let Some(program) = &contest.db_bench {
            engines.push("db_bench".to_owned());
            versions.push(format!("db_bench:   {program}, a process of its own"));
        }
        let lines: Vec<String> = contest
            .lines
            .iter()
            .map(|line| line.label.clone())
            .collect();
        Self {
            rounds: vec![vec![Rounds::default(); engines.len()]; lines.len()],
            writes: contest.lines.iter().map(|line| line.is_write).collect(),
            setting: setting(contest),
            engines,
            versions,
            lines,
        }
    }

    /// The tables as Markdown.
    pub(crate) fn to_markdown(&self) -> String {
        report::markdown(self)
    }

    /// Everything, every round, as JSON.
    pub(crate) fn to_json(&self) -> String {
        report::json(self)
    }
}

fn setting(contest: &Contest) -> Vec<String> {
    let flags = &contest.flags;
    let mut lines = machine::facts();
    lines.push(format!(
        "{} entries, keys of {} bytes, values of {}, {} rounds, seed {}",
        flags.num, flags.key_size, flags.value_size, contest.rounds, flags.seed,
    ));
    lines.push(format!(
        "compression {}, memtable {} MB, block cache {} MB, filters of {} bits a key, {} background \
         jobs, {} keys a multi-get",
        flags.compression_type,
        flags.write_buffer_size >> 20,
        flags.cache_size >> 20,
        flags.bloom_bits,
        flags.max_background_jobs,
        contest.multiread_batch,
    ));
    lines
}
