//! `crashloop run` starts itself as a process that writes, kills it, opens the directory and
//! compares it with the acknowledgements that the process got; and so on, each time with other
//! options.
//!
//! A third of the children die while they recover. Every store lives through some deaths before a new
//! one is begun, so that recovery starts from the results of interrupted recoveries.

mod child;
mod forgetful;
mod ledger;
mod options;
mod script;
mod verify;

use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command as Process, ExitCode, Stdio};
use std::time::Duration;

use clap::{Parser, Subcommand};
use drumlin::Env;
use drumlin_base::rng::Rng;
use drumlin_testkit::{memory_dir, temp_dir};

use child::StopAt;
use ledger::Ledger;
use verify::Expected;

/// Deaths of one store.
const DEATHS: u64 = 12;
/// The signal that kills a process that aborts itself.
const ABORTED: i32 = 6;
/// The signal that kills a killed process.
const KILLED: i32 = 9;

#[derive(Parser)]
#[command(
    about = "A process that writes is killed, and what is left compared with what it was told."
)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Goes through so many deaths.
    Run {
        /// Deaths.
        #[arg(long, default_value_t = 20)]
        cycles: u64,
        /// Where all choices start.
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// Seconds after which no new store is begun; 0 for no limit.
        #[arg(long, default_value_t = 0)]
        seconds: u64,
        /// On the disk instead of in memory.
        #[arg(long)]
        disk: bool,
        /// Unsynced bytes are forgotten: each death is a power cut.
        #[arg(long)]
        power: bool,
    },
    /// The process that is killed.
    #[command(hide = true)]
    Child {
        dir: PathBuf,
        ledger: PathBuf,
        seed: u64,
        class: Option<u64>,
        index: Option<u64>,
        #[arg(long)]
        power: bool,
    },
}

/// The place of the stores, and the meaning of a death.
#[derive(Clone, Copy)]
struct Manner {
    disk: bool,
    power: bool,
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().command {
        Command::Run {
            cycles,
            seed,
            seconds,
            disk,
            power,
        } => {
            let manner = Manner { disk, power };
            run(cycles, seed, seconds, manner)
        }
        Command::Child {
            dir,
            ledger,
            seed,
            class,
            index,
            power,
        } => {
            let stop = class
                .zip(index)
                .map(|(class, index)| StopAt { class, index });
            child::live(&dir, &ledger, seed, power, stop)
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            say(&format!("WRONG {why}"));
            ExitCode::FAILURE
        }
    }
}

fn say(line: &str) {
    // Nobody reads any more: nothing is left to do about it.
    let _ = writeln!(std::io::stdout().lock(), "{line}");
}

fn run(cycles: u64, seed: u64, seconds: u64, manner: Manner) -> Result<(), String> {
    let clock = Env::system().clock;
    let begin = clock.monotonic();
    let (mut done, mut stores, mut batches) = (0, 0, 0);
    while done < cycles {
        if seconds > 0 && clock.monotonic() - begin >= Duration::from_secs(seconds) {
            break;
        }
        let seed = Rng::new(seed + stores).next_u64() >> 20;
        let deaths = DEATHS.min(cycles - done);
        batches += store(seed, deaths, manner)
            .map_err(|why| format!("store {stores}, seed {seed}: {why}"))?;
        done += deaths;
        stores += 1;
    }
    say(&format!(
        "{{\"campaign\":\"crash-loop\",\"seed\":{seed},\"disk\":{},\"power\":{},\"cycles\":{done},\
         \"stores\":{stores},\"batches\":{batches},\"failed\":0}}",
        manner.disk, manner.power
    ));
    Ok(())
}

/// One store through `deaths` deaths; batches that were there at the end.
fn store(seed: u64, deaths: u64, manner: Manner) -> Result<u64, String> {
    let root = if manner.disk {
        temp_dir()
    } else {
        memory_dir()
    };
    let shared = memory_dir();
    let (dir, ledger_path) = (root.path().join("db"), shared.path().join("ledger"));
    let ledger = Ledger::create(&ledger_path).map_err(|error| error.to_string())?;
    let mut expected = Expected::new();
    let mut rng = Rng::new(seed);
    for death in 0..deaths {
        let seed = rng.next_u64() >> 32;
        let place = format!("death {death}, options {seed}");
        die(&dir, &ledger_path, seed, manner, &mut rng).map_err(|why| format!("{place}: {why}"))?;
        let again = rng.next_u64() >> 32;
        let promise = match manner.power {
            true => ledger::Mark::Synced,
            false => ledger::Mark::Acked,
        };
        let verified = verify::verify(&dir, &ledger, &mut expected, promise, again);
        if let Err(why) = verified {
            // Kept for the investigation.
            let kept = root.keep();
            return Err(format!(
                "{place}, reopened with {again}: {why}; {}",
                kept.display()
            ));
        }
    }
    Ok(ledger.all(ledger::Mark::Acked).iter().sum())
}

/// Starts a child and sees it die.
fn die(dir: &Path, ledger: &Path, seed: u64, manner: Manner, rng: &mut Rng) -> Result<(), String> {
    let mut process = Process::new(std::env::current_exe().map_err(|error| error.to_string())?);
    process
        .arg("child")
        .arg(dir)
        .arg(ledger)
        .arg(seed.to_string());
    if manner.power {
        process.arg("--power");
    }
    let pause = match rng.below(10) {
        // While it recovers.
        0..=2 => Duration::from_micros(rng.below(12_000)),
        // At some operation; should it never come, then later.
        3..=6 => {
            let index = [rng.below(4), rng.below(20), rng.below(200)][rng.below(3) as usize];
            process
                .arg(rng.below(child::CLASSES).to_string())
                .arg(index.to_string());
            Duration::from_millis(250)
        }
        _ => Duration::from_micros(10_000 + rng.below(200_000)),
    };
    let process = process.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = process.spawn().map_err(|error| error.to_string())?;
    let clock = Env::system().clock;
    let end = clock.monotonic() + pause;
    let status = loop {
        if let Some(status) = child.try_wait().map_err(|error| error.to_string())? {
            break status;
        }
        let now = clock.monotonic();
        if now >= end {
            child.kill().map_err(|error| error.to_string())?;
            break child.wait().map_err(|error| error.to_string())?;
        }
        clock.sleep((end - now).min(Duration::from_millis(2)));
    };
    let mut said = String::new();
    if let Some(mut out) = child.stdout.take() {
        out.read_to_string(&mut said)
            .map_err(|error| error.to_string())?;
    }
    let died = matches!(status.signal(), Some(ABORTED | KILLED));
    if died && !said.contains("WRONG") {
        return Ok(());
    }
    let mut complaints = String::new();
    if let Some(mut out) = child.stderr.take() {
        out.read_to_string(&mut complaints)
            .map_err(|error| error.to_string())?;
    }
    Err(format!("the child ended with {status}: {said}{complaints}"))
}
