//! `drumlin-sim`: seeds of the simulation, one after the other.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;

use clap::Parser;
use drumlin_fs::{Clock, SystemClock};
use drumlin_sim::campaign::{Totals, next_seed};
use drumlin_sim::setup::{Case, Part, Setup};
use drumlin_sim::world::{self, Report};
use drumlin_sim::{seeded, shrink};

/// Simulates the engine, threads, disk and clock, from seeds.
#[derive(Debug, Parser)]
struct Args {
    /// Runs this seed, and says what it did.
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
    /// Runs seeds with each deliberate bug until one fails. For builds with `seeded-bugs`.
    #[arg(long)]
    bugs: bool,
    /// Says what the seed did in one line, for the process that runs many.
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
    for name in &args.without {
        let part = Part::ALL.iter().find(|(_, known)| known == name);
        let (part, _) = part.ok_or_else(|| format!("there is no part {name:?}"))?;
        case = case.without(*part);
    }
    Ok(case)
}

/// Which bugs the simulation sees, and how soon; whether it saw all, and nothing without a bug.
fn catch_bugs() -> bool {
    if !cfg!(feature = "seeded-bugs") {
        say("this build has no bugs: build it with --features seeded-bugs");
        return false;
    }
    let clock = SystemClock::new();
    let mut missed = 0;
    for bug in seeded::BUGS.iter().chain([&seeded::CANARY]) {
        let begin = clock.monotonic();
        let caught = (0..seeded::SEEDS_MAX).find_map(|seed| {
            let failure = apart(&Case::new(seed), Some(bug)).failure?;
            Some((seed, failure))
        });
        let took = (clock.monotonic() - begin).as_secs_f64();
        let line = match &caught {
            Some((seed, why)) => {
                let why = why.replace(['"', '\\'], "'");
                format!("\"by\":\"sim\",\"seed\":{seed},\"why\":\"{why}\"")
            }
            None => "\"by\":null".to_owned(),
        };
        missed += u64::from(caught.is_none());
        say(&format!(
            "{{\"campaign\":\"seeded-bugs\",\"bug\":\"{bug}\",\"seconds\":{took:.1},{line}}}"
        ));
    }
    say(&format!("{missed} missed of {}", seeded::BUGS.len() + 1));
    missed == 0
}

fn run(args: &Args) -> Result<bool, String> {
    if args.bugs {
        return Ok(catch_bugs());
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
    let text = match &args.out {
        Some(path) => std::fs::read_to_string(path).unwrap_or_default(),
        None => String::new(),
    };
    let (from, to) = match &args.seeds {
        Some(range) => {
            let ends = range.split_once("..");
            let ends = ends.and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
            ends.ok_or_else(|| format!("{range:?} is no range of seeds"))?
        }
        None => (next_seed(&text), u64::MAX),
    };
    let time = match (args.hours, &args.seeds) {
        (Some(hours), _) => Duration::from_secs_f64(hours * 3600.0),
        (None, Some(_)) => Duration::MAX,
        (None, None) => Duration::from_secs(60),
    };
    let clock = SystemClock::new();
    let mut totals = Totals::default();
    let mut seed = from;
    while seed < to && clock.monotonic() < time {
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
    let line = totals.json(from, seed, clock.monotonic());
    say(&line);
    if let Some(path) = &args.out {
        append(path, &line).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(totals.failed.is_none())
}

/// Runs `case` in a process of its own, with `bug` made if the build can: nothing it leaves behind changes the next.
fn apart(case: &Case, bug: Option<&str>) -> Report {
    let run = || -> std::io::Result<Report> {
        let arguments = case.arguments();
        let output = Command::new(std::env::current_exe()?)
            .args(arguments.split(' '))
            .arg("--line")
            .env("DRUMLIN_BUG", bug.unwrap_or_default())
            .output()?;
        let text = String::from_utf8_lossy(&output.stdout);
        Ok(Report::of_line(&text).unwrap_or_else(|| {
            let said = String::from_utf8_lossy(&output.stderr);
            Report::failed(format!("the process ended with {}: {said}", output.status))
        }))
    };
    run().unwrap_or_else(|error| Report::failed(format!("no process: {error}")))
}

#[expect(
    clippy::disallowed_methods,
    reason = "results are no part of the store"
)]
fn append(path: &Path, line: &str) -> std::io::Result<()> {
    let mut file = OpenOptions::new().create(true).append(true).open(path)?;
    writeln!(file, "{line}")
}
