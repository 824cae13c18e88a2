//! `metamorphic run` goes through seeds; `metamorphic replay` through op files.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::{Parser, Subcommand};
use drumlin::Env;
use drumlin_fs::{CreateOptions, FileKind};
use drumlin_metamorphic::{
    Choice, Op, Progress, generate, parse_ops, run, run_watched, shrink, watch,
};

/// How the process ends when a list hangs.
const HUNG: i32 = 3;

#[derive(Parser)]
#[command(about = "One list of operations under many options: every history must be the model's.")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Goes through seeds, each a list of operations, under every fixed set of options and as many
    /// random ones.
    Run {
        /// The first seed.
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// How many seeds.
        #[arg(long, default_value_t = 1)]
        seeds: u64,
        /// Operations in a list.
        #[arg(long, default_value_t = 2000)]
        ops: usize,
        /// Random sets beside the fixed ones.
        #[arg(long, default_value_t = 24)]
        random: u64,
        /// Seconds after which no new seed is begun; 0 for no limit.
        #[arg(long, default_value_t = 0)]
        seconds: u64,
        /// Only these sets, by name.
        #[arg(long, value_delimiter = ',')]
        sets: Vec<String>,
        /// Where lists that fail are left, cut down.
        #[arg(long, default_value = "metamorphic-failures")]
        out: PathBuf,
        /// Runs that cutting down a failing list may take.
        #[arg(long, default_value_t = 600)]
        shrink: usize,
    },
    /// Runs op files again.
    Replay {
        /// The files.
        files: Vec<PathBuf>,
        /// Only these sets, by name.
        #[arg(long, value_delimiter = ',')]
        sets: Vec<String>,
    },
    /// Shows the list that a seed makes.
    Show {
        /// The seed.
        seed: u64,
        /// Operations.
        #[arg(long, default_value_t = 2000)]
        ops: usize,
    },
}

fn main() -> ExitCode {
    match perform(Arguments::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            say(&why);
            ExitCode::FAILURE
        }
    }
}

fn say(line: &str) {
    // Nobody reads any more: nothing is left to do about it.
    let _ = writeln!(std::io::stdout().lock(), "{line}");
}

fn perform(command: Command) -> Result<(), String> {
    match command {
        Command::Run {
            seed,
            seeds,
            ops,
            random,
            seconds,
            sets,
            out,
            shrink,
        } => {
            let campaign = Campaign {
                ops,
                random,
                sets,
                out,
                shrink,
            };
            campaign.run(seed, seeds, seconds)
        }
        Command::Replay { files, sets } => replay(&files, &sets),
        Command::Show { seed, ops } => {
            generate(seed, ops)
                .iter()
                .for_each(|op| say(&op.to_string()));
            Ok(())
        }
    }
}

struct Campaign {
    ops: usize,
    random: u64,
    sets: Vec<String>,
    out: PathBuf,
    shrink: usize,
}

impl Campaign {
    fn run(&self, first: u64, seeds: u64, seconds: u64) -> Result<(), String> {
        let clock = Env::system().clock;
        let end = match seconds {
            0 => Duration::MAX,
            seconds => clock.monotonic() + Duration::from_secs(seconds),
        };
        let (mut performed, mut lists, mut failed) = (0, 0, 0);
        let progress = self.watched()?;
        for seed in first..first + seeds {
            if clock.monotonic() >= end {
                break;
            }
            let ops = generate(seed, self.ops);
            let choices = choices(&self.sets, seed, self.random)?;
            lists += 1;
            progress.set_seed(seed);
            match run_watched(&ops, &choices, &progress) {
                Ok(count) => performed += count,
                Err(mismatch) => {
                    failed += 1;
                    say(&format!("seed {seed}: {mismatch}"));
                    self.keep(seed, &ops, &mismatch.choice, &progress)?;
                }
            }
        }
        say(&format!(
            "{{\"campaign\":\"metamorphic\",\"first_seed\":{first},\"lists\":{lists},\
             \"operations\":{performed},\"failed\":{failed}}}"
        ));
        match failed {
            0 => Ok(()),
            _ => Err(format!("{failed} lists failed")),
        }
    }

    /// The progress that the lists report to, with a watch that ends the process when one hangs.
    fn watched(&self) -> Result<Arc<Progress>, String> {
        let progress = Arc::new(Progress::default());
        let ops = self.ops;
        let stuck = move |progress: &Progress, why: &str| {
            let (seed, set) = progress.place();
            say(&format!(
                "seed {seed} under {set}: {why}; again with\n\
                 metamorphic run --seed {seed} --ops {ops} --sets {set}\n\
                 {{\"campaign\":\"metamorphic\",\"first_seed\":{seed},\"lists\":1,\"operations\":0,\"failed\":1}}"
            ));
            // Threads that hang cannot be joined.
            std::process::exit(HUNG);
        };
        watch(Arc::clone(&progress), stuck).map_err(|error| error.to_string())?;
        Ok(progress)
    }

    /// Leaves the failing list, cut down, to be replayed.
    fn keep(&self, seed: u64, ops: &[Op], set: &str, progress: &Progress) -> Result<(), String> {
        let choice = Choice::named(set).ok_or("the set has a name")?;
        let left = shrink(ops, &choice, self.shrink, progress);
        let why = match run_watched(&left, std::slice::from_ref(&choice), progress) {
            Ok(_) => "it did not fail the last time".to_owned(),
            Err(mismatch) => mismatch.to_string(),
        };
        let mut text = format!("# seed {seed}, set {set}\n");
        why.lines()
            .for_each(|line| text.push_str(&format!("# {line}\n")));
        left.iter().for_each(|op| text.push_str(&format!("{op}\n")));
        let path = self.out.join(format!("seed-{seed}-{set}.ops"));
        write(&path, &text).map_err(|error| error.to_string())?;
        say(&format!("kept as {}:\n{text}", path.display()));
        Ok(())
    }
}

/// The sets named, or all fixed ones and `random` random ones that follow from `seed`.
fn choices(names: &[String], seed: u64, random: u64) -> Result<Vec<Choice>, String> {
    if !names.is_empty() {
        let named = |name: &String| Choice::named(name).ok_or(format!("there is no set {name}"));
        return names.iter().map(named).collect();
    }
    let mut choices = Choice::fixed();
    choices.extend((0..random).map(|index| Choice::random(seed * 1000 + index)));
    Ok(choices)
}

fn replay(files: &[PathBuf], names: &[String]) -> Result<(), String> {
    for path in files {
        let bytes = Env::system().files.read_file(path, 64 << 20);
        let text = String::from_utf8_lossy(&bytes.map_err(|error| error.to_string())?).into_owned();
        let ops = parse_ops(&text)?;
        let mut sets = choices(names, 1, 24)?;
        let noted = text.lines().find_map(|line| line.split_once(", set "));
        sets.extend(noted.and_then(|(_, set)| Choice::named(set)));
        let count =
            run(&ops, &sets).map_err(|mismatch| format!("{}: {mismatch}", path.display()))?;
        say(&format!("{}: {count} operations", path.display()));
    }
    Ok(())
}

fn write(path: &Path, text: &str) -> drumlin::Result<()> {
    let files = Env::system().files;
    if let Some(dir) = path.parent() {
        files.create_dir_all(dir)?;
    }
    let mut file = files.create(path, CreateOptions::new(FileKind::Other))?;
    file.append(text.as_bytes())?;
    file.close()
}
