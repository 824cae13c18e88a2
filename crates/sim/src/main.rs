//! `drumlin-sim`: seeds of the simulation, one after the other.

mod bugs;

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use bugs::{Hunt, Program, apart};
use clap::Parser;
use drumlin::Isolation;
use drumlin_fs::{Clock, SystemClock};
use drumlin_sim::campaign::{Totals, next_seed};
use drumlin_sim::histories;
use drumlin_sim::prepared;
use drumlin_sim::setup::{Case, Part, Setup};
use drumlin_sim::shrink;
use drumlin_sim::world;

/// Power cuts imagined at each operation where only their sum was asked for.
const IMAGES: u64 = 2;

/// Simulates the engine, threads, disk and clock, from seeds.
#[derive(Debug, Parser)]
struct Args {
    /// Runs this seed, and prints a report.
    #[arg(long)]
    seed: Option<u64>,
    /// Runs the seeds from A up to, not including, B.
    #[arg(long, value_name = "A..B")]
    seeds: Option<String>,
    /// Runs seeds for so long, going on after the last one in `--out`.
    #[arg(long)]
    hours: Option<f64>,
    /// Where lines of campaigns are added.
    #[arg(long)]
    out: Option<PathBuf>,
    /// Every so many seeds one is run twice, and must do the same.
    #[arg(long, default_value_t = 10)]
    twice_in: u64,
    /// Most rounds of a run.
    #[arg(long)]
    rounds: Option<u64>,
    /// Most operations of a task and round.
    #[arg(long)]
    ops: Option<u64>,
    /// Most writers.
    #[arg(long)]
    writers: Option<u64>,
    /// Parts that are left out.
    #[arg(long, value_delimiter = ',')]
    without: Vec<String>,
    /// Imagines so many power cuts at one in eight operations that change the disk, and opens each
    /// resulting disk.
    #[arg(long)]
    images: Option<u64>,
    /// Only at this operation, whose number a failure names.
    #[arg(long)]
    at: Option<u64>,
    /// Runs seeds with images until so many cuts were imagined, going on after the last one in `--out`.
    #[arg(long)]
    cuts: Option<u64>,
    /// Runs histories of concurrent transactions of the seeds from A up to, not including, B, by turns of each isolation
    /// and of all of them together, and prints their sums.
    #[arg(long, value_name = "A..B")]
    histories: Option<String>,
    /// Cuts the power between the prepare and the end of transactions, in a chain of cuts for each seed from A up to, not
    /// including, B, and prints their sums.
    #[arg(long, value_name = "A..B")]
    prepared: Option<String>,
    /// Has each deliberate bug looked for by its suite. For builds with `seeded-bugs`.
    #[arg(long)]
    bugs: bool,
    /// Programs with tests that may be run: the output of the `cargo test --no-run` that built
    /// them.
    #[arg(long, value_name = "FILE")]
    programs: Option<PathBuf>,
    /// Only the bugs with this in their name or module.
    #[arg(long, value_name = "TEXT", default_value = "")]
    only: String,
    /// Asks every program for a bug that its own suite does not see.
    #[arg(long)]
    ask_all: bool,
    /// Prints the report of the seed in one line, for the process that runs many.
    #[arg(long, hide = true)]
    line: bool,
    /// Does not look for a smaller case that fails.
    #[arg(long)]
    no_shrink: bool,
}

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            say(&format!("drumlin-sim: {error}"));
            ExitCode::from(2)
        }
    }
}

fn say(line: &str) {
    // A closed pipe is no reason to stop.
    let _ = writeln!(std::io::stdout(), "{line}");
}

fn case(args: &Args, seed: u64) -> Result<Case, String> {
    let mut case = Case::new(seed);
    case.rounds = args.rounds.unwrap_or(case.rounds);
    case.ops = args.ops.unwrap_or(case.ops);
    case.writers = args.writers.unwrap_or(case.writers);
    case.images = match (args.images, args.cuts) {
        (Some(images), _) => images,
        (None, Some(_)) => IMAGES,
        (None, None) => 0,
    };
    case.at = args.at;
    for name in &args.without {
        let part = Part::ALL.iter().find(|(_, known)| known == name);
        let (part, _) = part.ok_or_else(|| format!("there is no part {name:?}"))?;
        case = case.without(*part);
    }
    Ok(case)
}

fn hunt(args: &Args) -> Result<bool, String> {
    let said = match &args.programs {
        None => String::new(),
        Some(path) => {
            std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?
        }
    };
    let programs: Vec<_> = said.lines().filter_map(Program::of_line).collect();
    let hunt = Hunt {
        programs: &programs,
        only: &args.only,
        ask_all: args.ask_all,
    };
    Ok(hunt.catch())
}

fn ends_of(range: &str) -> Result<(u64, u64), String> {
    let ends = range.split_once("..");
    let ends = ends.and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
    ends.ok_or_else(|| format!("{range:?} is no range of seeds"))
}

/// Runs the histories of a range of seeds; stops at the first that is wrong.
fn histories(range: &str) -> Result<bool, String> {
    let all = [
        Isolation::Locks,
        Isolation::Snapshot,
        Isolation::Serializable,
    ];
    let (from, to) = ends_of(range)?;
    let mut sum = histories::Sum::default();
    let mut failure = None;
    for seed in from..to {
        let outcome = histories::run(seed, all.get((seed % 4) as usize).copied());
        sum.add(&outcome);
        failure = outcome.failure;
        if let Some(why) = &failure {
            say(&format!("seed {seed} failed: {why}"));
            say(&format!(
                "replay: drumlin-sim --histories {seed}..{}",
                seed + 1
            ));
            break;
        }
    }
    say(&format!("{sum:?}"));
    Ok(failure.is_none())
}

/// Runs the chains of power cuts of a range of seeds; stops at the first that is wrong.
fn prepared(range: &str) -> Result<bool, String> {
    /// Chains between two lines.
    const TOLD_EVERY: u64 = 1000;
    let (from, to) = ends_of(range)?;
    let mut sum = prepared::Sum::default();
    let mut fine = true;
    for seed in from..to {
        match std::panic::catch_unwind(|| prepared::run(seed)) {
            Ok(one) => sum.add(&one),
            Err(_) => {
                // The panic has told what is wrong.
                let next = seed + 1;
                say(&format!("seed {seed} failed"));
                say(&format!("replay: drumlin-sim --prepared {seed}..{next}"));
                fine = false;
                break;
            }
        }
        if (seed + 1 - from).is_multiple_of(TOLD_EVERY) {
            say(&format!("up to seed {seed}: {sum:?}"));
        }
    }
    say(&format!("{sum:?}"));
    Ok(fine)
}

fn run(args: &Args) -> Result<bool, String> {
    if args.bugs {
        return hunt(args);
    }
    if let Some(seeds) = &args.histories {
        return histories(seeds);
    }
    if let Some(seeds) = &args.prepared {
        return prepared(seeds);
    }
    if let Some(seed) = args.seed {
        let case = case(args, seed)?;
        let report = world::run(&case);
        if args.line {
            say(&report.to_line());
            return Ok(true);
        }
        say(&format!("{:#?}", Setup::draw(&case)));
        say(&format!("{report:#?}"));
        return Ok(report.failure.is_none());
    }
    let campaign = args.cuts.map_or("sim", |_| "cuts");
    let text = match &args.out {
        Some(path) => std::fs::read_to_string(path).unwrap_or_default(),
        None => String::new(),
    };
    let (from, to) = match &args.seeds {
        Some(range) => ends_of(range)?,
        None => (next_seed(&text, campaign), u64::MAX),
    };
    let time = match (args.hours, &args.seeds, args.cuts) {
        (Some(hours), ..) => Duration::from_secs_f64(hours * 3600.0),
        (None, None, None) => Duration::from_secs(60),
        (None, ..) => Duration::MAX,
    };
    let cuts_max = args.cuts.unwrap_or(u64::MAX);
    let clock = SystemClock::new();
    let mut totals = Totals::default();
    let mut seed = from;
    while seed < to && clock.monotonic() < time && totals.sum.images < cuts_max {
        let twice = args.twice_in > 0 && seed.is_multiple_of(args.twice_in);
        let fine = totals.run(&case(args, seed)?, twice, |case| apart(case, None));
        seed += 1;
        if !fine {
            break;
        }
    }
    if let (Some((case, why)), false) = (totals.failed.clone(), args.no_shrink) {
        say(&format!("seed {} failed: {why}", case.seed));
        if !why.starts_with("not repeatable") {
            let small = shrink::shrink(&case, |case| apart(case, None).failure.is_some());
            say(&format!("smaller: {:?}", apart(&small, None).failure));
            say(&format!(
                "replay: cargo run --release -p drumlin-sim -- {}",
                small.arguments()
            ));
        }
    }
    let line = totals.json(campaign, from, seed, clock.monotonic());
    say(&line);
    if let Some(path) = &args.out {
        append(path, &line).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(totals.failed.is_none())
}

#[expect(
    clippy::disallowed_methods,
    reason = "results are no part of the store"
)]
fn append(path: &Path, line: &str) -> std::io::Result<()> {
    let mut file = OpenOptions::new().create(true).append(true).open(path)?;
    writeln!(file, "{line}")
}
