//! lab: the reference measurements, and programs under limits.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use drumlin_bench::DrumlinStore;
use drumlin_fs::{CreateOptions, Env, FileKind};
use drumlin_lab::contest::{self, Contest, Progress};
use drumlin_lab::engine::Starter;
use drumlin_lab::experiments::{Plan, Reference, plan, plan_of_records};
use drumlin_lab::group::{ControlGroup, Limits};
use drumlin_lab::{agent, report};
use indicatif::{ProgressBar, ProgressStyle};

use crate::args::{Lab, Limited, Measure, Place};
use crate::failure::{Failure, Outcome};
use crate::output::{Output, remark};
use crate::units;

/// Where `peers` is built.
const PEERS: &str = "crates/bench-peers/target/release/peers";
/// The engine that is RocksDB's own program.
const DB_BENCH: &str = "db_bench";

/// Carries `task` out.
pub(crate) fn lab(place: &Place, task: &Lab, out: &mut Output) -> Outcome {
    match task {
        Lab::R1(wanted) => measure(Reference::R1, wanted, out),
        Lab::R2(wanted) => measure(Reference::R2, wanted, out),
        Lab::R3(wanted) => measure(Reference::R3, wanted, out),
        Lab::R4(wanted) => measure(Reference::R4, wanted, out),
        Lab::R5(wanted) => measure(Reference::R5, wanted, out),
        Lab::Check(wanted) => measure(Reference::Check, wanted, out),
        Lab::Agent => {
            let adjust = |_: &mut drumlin_bench::Flags| {};
            let mut input = std::io::stdin().lock();
            Ok(agent::serve::<DrumlinStore>(
                &mut input,
                out,
                &Env::system(),
                &adjust,
            )?)
        }
        Lab::Limited(wanted) => limited(place, wanted),
    }
}

/// Runs `reference`, prints its table, and writes its page and its JSON.
fn measure(reference: Reference, wanted: &Measure, out: &mut Output) -> Outcome {
    if !(0.0001..=1e6).contains(&wanted.scale) || wanted.rounds == Some(0) || wanted.seconds == 0 {
        let text = "--scale, --rounds and --seconds must be above 0";
        return Err(Failure::Usage(text.to_owned()));
    }
    let env = Env::system();
    let path = match &wanted.out {
        Some(path) => path.clone(),
        None => PathBuf::from(format!("lab-{}", reference.name())),
    };
    // Found out at the end, it would cost all that was measured.
    if let Some(dir) = path.parent().filter(|dir| !dir.as_os_str().is_empty())
        && !env.files.exists(dir)?
    {
        let text = format!("--out: there is no directory {}", dir.display());
        return Err(Failure::Usage(text));
    }
    let contest = Contest {
        plan: planned(reference, wanted, &env)?,
        engines: engines(reference, wanted)?,
        rounds: wanted.rounds.unwrap_or(reference.rounds()),
        dir: wanted
            .dir
            .join(format!("drumlin-lab-{}", std::process::id())),
        docs: wanted.docs.clone(),
        command: std::env::args().collect::<Vec<_>>().join(" "),
    };
    let bar = bar();
    let outcome = contest::run(&contest, &env, &mut |progress| show(&bar, progress));
    bar.finish_and_clear();
    let outcome = outcome?;
    let page = path.with_extension("html");
    write(&env, &page, &report::html(&outcome))?;
    write(&env, &path.with_extension("json"), &report::json(&outcome))?;
    out.text(report::table(&outcome))?;
    out.text(format!("report: {}", page.display()))
}

/// The plan of `reference`, with given records where there are some.
fn planned(reference: Reference, wanted: &Measure, env: &Env) -> Outcome<Plan> {
    let Some(path) = &wanted.records else {
        return Ok(plan(reference, wanted.scale, wanted.seconds));
    };
    if reference != Reference::R2 {
        let text = "--records is for r2; the others make their own";
        return Err(Failure::Usage(text.to_owned()));
    }
    // Caches are sized by it before the file is read; a line's TAB and end are next to nothing.
    let info = env.files.info(path);
    let info = info.map_err(|error| Failure::Usage(format!("--records: {error}")))?;
    let bytes = info.size;
    Ok(plan_of_records(path.clone(), bytes, wanted.seconds))
}

/// Ours and those asked for.
fn engines(reference: Reference, wanted: &Measure) -> Outcome<Vec<(String, Starter)>> {
    let mut engines = Vec::new();
    if reference != Reference::Check {
        let own = Starter::Agent {
            program: std::env::current_exe()?,
            arguments: vec!["lab".to_owned(), "agent".to_owned()],
        };
        engines.push(("drumlin".to_owned(), own));
    }
    let defaults: &[&str] = match reference {
        Reference::R1 => &["rocksdb-plain", "db_bench", "lmdb"],
        Reference::R2 => &["rocksdb", "wiredtiger"],
        Reference::R5 => &["rocksdb"],
        Reference::Check => &["rocksdb", DB_BENCH],
        Reference::R3 => &["rocksdb", "leveldb", "lmdb"],
        Reference::R4 => &["rocksdb", "rocksdb-blobs"],
    };
    let names: Vec<String> = match &wanted.against {
        Some(names) => names
            .iter()
            .filter(|name| name.as_str() != "none")
            .cloned()
            .collect(),
        None => defaults.iter().map(|name| (*name).to_owned()).collect(),
    };
    for name in names {
        let starter = if name == DB_BENCH {
            Starter::DbBench {
                program: db_bench(wanted)?,
            }
        } else {
            Starter::Agent {
                program: peers(wanted)?,
                arguments: vec!["agent".to_owned(), "--engine".to_owned(), name.clone()],
            }
        };
        engines.push((name, starter));
    }
    Ok(engines)
}

/// The program with the other engines in it.
fn peers(wanted: &Measure) -> Outcome<PathBuf> {
    let named = wanted
        .peers
        .clone()
        .or_else(|| std::env::var_os("DRUMLIN_PEERS").map(PathBuf::from));
    let path = named.unwrap_or_else(|| PathBuf::from(PEERS));
    if path.exists() {
        return Ok(path);
    }
    Err(Failure::NotFound(format!(
        "{} is not there: the other engines are in a program of their own. Build it with \
         `cd crates/bench-peers && cargo build --release` (crates/bench-peers/README.md), name it with --peers \
         or DRUMLIN_PEERS, or measure Drumlin alone with --against none",
        path.display()
    )))
}

/// RocksDB's own benchmark.
fn db_bench(wanted: &Measure) -> Outcome<PathBuf> {
    let path = &wanted.db_bench;
    let mut command = Command::new(path);
    let answers = command.arg("--version").stdout(Stdio::null()).status();
    if answers.is_ok() {
        return Ok(path.clone());
    }
    Err(Failure::NotFound(format!(
        "{} cannot be run: it is in Debian's package rocksdb-tools, or made by crates/bench-peers/db_bench.sh; \
         name it with --db-bench, or leave it out with --against",
        path.display()
    )))
}

fn bar() -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(0);
    if let Ok(style) = ProgressStyle::with_template("{bar:30} {pos}/{len} {elapsed} {wide_msg}") {
        bar.set_style(style.progress_chars("=> "));
    }
    bar
}

fn show(bar: &ProgressBar, progress: Progress<'_>) {
    bar.set_length(progress.all as u64);
    bar.set_position(progress.done as u64);
    let rate = progress.rate.map_or_else(String::new, |(rate, second)| {
        format!(": {}/s at {second:.0} s", units::count(rate as u64))
    });
    bar.set_message(format!("{}, {}{rate}", progress.engine, progress.stage));
}

fn write(env: &Env, path: &Path, text: &str) -> Outcome {
    let mut file = env
        .files
        .create(path, CreateOptions::new(FileKind::Other))?;
    file.append(text.as_bytes())?;
    Ok(file.close()?)
}

/// Runs a program in a control group and ends as it did.
fn limited(place: &Place, wanted: &Limited) -> Outcome {
    let limits = Limits {
        memory_bytes: wanted.memory,
        disk_reads: wanted.read_iops,
        dir: place.db.clone(),
    };
    let Some((program, arguments)) = wanted.command.split_first() else {
        return Err(Failure::Usage("which program? It follows --".to_owned()));
    };
    if !limits.is_any() {
        let text = "which limit? --memory, --read-iops or both";
        return Err(Failure::Usage(text.to_owned()));
    }
    let name = format!("drumlin-{}", std::process::id());
    let group = ControlGroup::new(&name, &limits, &Env::system()).map_err(|error| {
        Failure::Engine(error.context(
            "without a limit from the system, bound what the store keeps itself: --memory_budget, --use_direct_reads and \
             --use_direct_io_for_flush_and_compaction of `drumlin bench`",
        ))
    })?;
    let ended = group.command(program).args(arguments).status()?;
    if let Some(times) = group.times_full() {
        remark(format!(
            "the limit of memory was met {} times",
            units::count(times)
        ));
    }
    if ended.success() {
        return Ok(());
    }
    Err(Failure::Check(format!("{program} ended with {ended}")))
}
