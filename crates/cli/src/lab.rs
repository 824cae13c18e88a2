//! lab: the reference measurements, and programs under limits.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use drumlin_bench::DrumlinStore;
use drumlin_fs::{CreateOptions, Env, FileKind};
use drumlin_lab::contest::{self, Contest, Progress};
use drumlin_lab::engine::Starter;
use drumlin_lab::experiments::{End, Lines, Load, Plan, Reference, Watched, plan, plan_of_records};
use drumlin_lab::group::{ControlGroup, Limits};
use drumlin_lab::{agent, report};
use indicatif::{ProgressBar, ProgressStyle};

use crate::args::{Compare, Field, Lab, Limited, Measure, Place, ServerKind, Watch};
use crate::failure::{Failure, Outcome};
use crate::output::{Output, remark};
use crate::served::{MongoPeer, MongoStore, PEER, ServedStore};
use crate::units;

/// Where `peers` is built.
const PEERS: &str = "crates/bench-peers/target/release/peers";
/// The engine that is RocksDB's own program.
const DB_BENCH: &str = "db_bench";
/// The engine of this program.
const DRUMLIN: &str = "drumlin";
/// Its Redis server.
const SERVED: &str = "drumlin-redis";
/// Its document server.
const SERVED_DOCUMENTS: &str = "drumlin-mongo";
/// Another document server.
const DOCUMENT_PEER: &str = "mongo-peer";
/// Seconds of a stall unless told otherwise.
const STALL_SECONDS: u64 = 60;

/// Carries `task` out.
pub(crate) fn lab(place: &Place, task: &Lab, out: &mut Output) -> Outcome {
    match task {
        Lab::R1(wanted) => measure(Reference::R1, wanted, out),
        Lab::R2 {
            measure: wanted,
            servers,
        } => match servers {
            true => measure(Reference::R2Servers, wanted, out),
            false => measure(Reference::R2, wanted, out),
        },
        Lab::R3(wanted) => measure(Reference::R3, wanted, out),
        Lab::R4 {
            measure: wanted,
            server,
        } => match server {
            true => measure(Reference::R4Server, wanted, out),
            false => measure(Reference::R4, wanted, out),
        },
        Lab::R5(wanted) => measure(Reference::R5, wanted, out),
        Lab::Check(wanted) => measure(Reference::Check, wanted, out),
        Lab::Compare(wanted) => compare(wanted, out),
        Lab::Stall(wanted) => watch(Load::Stall, wanted, out),
        Lab::Sustain(wanted) => watch(Load::Sustain, wanted, out),
        Lab::Agent { server } => {
            let adjust = |_: &mut drumlin_bench::Flags| {};
            let (mut input, env) = (std::io::stdin().lock(), Env::system());
            Ok(match server {
                None => agent::serve::<DrumlinStore>(&mut input, out, &env, &adjust),
                Some(ServerKind::Redis) => {
                    agent::serve::<ServedStore>(&mut input, out, &env, &adjust)
                }
                Some(ServerKind::Mongo) => {
                    agent::serve::<MongoStore>(&mut input, out, &env, &adjust)
                }
                Some(ServerKind::MongoPeer) => {
                    agent::serve::<MongoPeer>(&mut input, out, &env, &adjust)
                }
            }?)
        }
        Lab::Limited(wanted) => limited(place, wanted),
    }
}

/// Runs `reference`.
fn measure(reference: Reference, wanted: &Measure, out: &mut Output) -> Outcome {
    if !(0.0001..=1e6).contains(&wanted.scale) || wanted.seconds == 0 {
        let text = "--scale and --seconds must be above 0";
        return Err(Failure::Usage(text.to_owned()));
    }
    let defaults: &[&str] = match reference {
        Reference::R1 => &["rocksdb-plain", "db_bench", "lmdb"],
        Reference::R2 => &["rocksdb", "wiredtiger"],
        Reference::R2Servers if std::env::var_os(PEER).is_some() => &[DOCUMENT_PEER, "wiredtiger"],
        Reference::R2Servers => &["wiredtiger"],
        Reference::R5 => &["rocksdb"],
        Reference::Check => &["rocksdb", DB_BENCH],
        Reference::R3 => &["rocksdb", "leveldb", "lmdb"],
        Reference::R4 => &["rocksdb", "rocksdb-blobs"],
        Reference::R4Server => &[SERVED, "kvrocks-replayed", "kvrocks-replayed-blobs"],
    };
    let run = Run {
        name: reference.name(),
        ours: match reference {
            Reference::Check => None,
            Reference::R2Servers => Some(SERVED_DOCUMENTS),
            _ => Some(DRUMLIN),
        },
        peers: defaults,
        rounds: reference.rounds(),
        docs: wanted.docs.clone(),
    };
    let env = Env::system();
    let path = run.report_path(&wanted.field, &env)?;
    let plan = planned(reference, wanted, &env)?;
    run.measure(plan, &wanted.field, &path, out)
}

/// Compares engines by db_bench's lines.
fn compare(wanted: &Compare, out: &mut Output) -> Outcome {
    let mut flags = vec![
        format!("--cache_size={}", wanted.cache_size),
        format!("--write_buffer_size={}", wanted.write_buffer_size),
        "--compression_type=none".to_owned(),
        "--bloom_bits=10".to_owned(),
        "--max_background_jobs=2".to_owned(),
        "--seed=1".to_owned(),
    ];
    flags.extend(wanted.flags.iter().cloned());
    let lines = Lines {
        benchmarks: wanted.benchmarks.clone(),
        sizes: wanted.num.clone(),
        multiread_batch: wanted.multiread_batch,
        flags,
    };
    let run = Run {
        name: "compare",
        ours: Some(DRUMLIN),
        peers: &["rocksdb", "leveldb", "fjall", "lmdb"],
        rounds: 3,
        docs: None,
    };
    let path = run.report_path(&wanted.field, &Env::system())?;
    run.measure(lines.plan()?, &wanted.field, &path, out)
}

/// Watches how engines bear writes that go on.
fn watch(load: Load, wanted: &Watch, out: &mut Output) -> Outcome {
    let end = match (wanted.duration, load) {
        (Some(seconds), _) => End::Seconds(seconds),
        (None, Load::Stall) => End::Seconds(STALL_SECONDS),
        (None, Load::Sustain) => End::Writes(wanted.writes),
    };
    let mut flags: Vec<String> = [
        "--cache_size=268435456",
        "--write_buffer_size=67108864",
        "--compression_type=none",
        "--bloom_bits=10",
        "--max_background_jobs=2",
        "--seed=1",
    ]
    .map(str::to_owned)
    .into();
    flags.extend(wanted.flags.iter().cloned());
    let watched = Watched {
        load,
        value_sizes: wanted.value_size.clone(),
        store_bytes: wanted.store_bytes,
        threads: wanted.threads,
        end,
        flags,
    };
    let run = Run {
        name: match load {
            Load::Stall => "stall",
            Load::Sustain => "sustain",
        },
        ours: Some(DRUMLIN),
        peers: &["rocksdb", "rocksdb-blobs"],
        rounds: 1,
        docs: None,
    };
    let path = run.report_path(&wanted.field, &Env::system())?;
    run.measure(watched.plan()?, &wanted.field, &path, out)
}

/// A measurement by name, and its defaults.
struct Run {
    name: &'static str,
    /// The first engine, where it is Drumlin.
    ours: Option<&'static str>,
    peers: &'static [&'static str],
    rounds: usize,
    docs: Option<PathBuf>,
}

impl Run {
    /// Where the report goes. Refused before anything is measured where it could not be written.
    fn report_path(&self, field: &Field, env: &Env) -> Outcome<PathBuf> {
        if field.rounds == Some(0) {
            return Err(Failure::Usage("--rounds must be above 0".to_owned()));
        }
        let path = match &field.out {
            Some(path) => path.clone(),
            None => PathBuf::from(format!("lab-{}", self.name)),
        };
        if let Some(dir) = path.parent().filter(|dir| !dir.as_os_str().is_empty())
            && !env.files.exists(dir)?
        {
            let text = format!("--out: there is no directory {}", dir.display());
            return Err(Failure::Usage(text));
        }
        Ok(path)
    }

    /// Runs `plan`, prints its table, and writes its page and its JSON to `path`.
    fn measure(&self, plan: Plan, field: &Field, path: &Path, out: &mut Output) -> Outcome {
        let env = Env::system();
        let contest = Contest {
            plan,
            engines: self.engines(field)?,
            rounds: field.rounds.unwrap_or(self.rounds),
            dir: field
                .dir
                .join(format!("drumlin-lab-{}", std::process::id())),
            docs: self.docs.clone(),
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

    /// Ours and those asked for.
    fn engines(&self, field: &Field) -> Outcome<Vec<(String, Starter)>> {
        let mut names: Vec<String> = self.ours.iter().map(|name| (*name).to_owned()).collect();
        names.extend(match &field.against {
            Some(names) => names
                .iter()
                .filter(|name| name.as_str() != "none")
                .cloned()
                .collect::<Vec<_>>(),
            None => self.peers.iter().map(|name| (*name).to_owned()).collect(),
        });
        let mut engines = Vec::new();
        for name in names {
            let starter = match name.as_str() {
                DB_BENCH => Starter::DbBench {
                    program: db_bench(field)?,
                },
                DRUMLIN => own_agent(&[])?,
                SERVED => own_agent(&["--server", "redis"])?,
                SERVED_DOCUMENTS => own_agent(&["--server", "mongo"])?,
                DOCUMENT_PEER => own_agent(&["--server", "mongo-peer"])?,
                _ => Starter::Agent {
                    program: peers(field)?,
                    arguments: vec!["agent".to_owned(), "--engine".to_owned(), name.clone()],
                },
            };
            engines.push((name, starter));
        }
        Ok(engines)
    }
}

/// This program as an agent.
fn own_agent(more: &[&str]) -> Outcome<Starter> {
    let arguments = ["lab", "agent"].iter().chain(more);
    Ok(Starter::Agent {
        program: std::env::current_exe()?,
        arguments: arguments.map(|word| (*word).to_owned()).collect(),
    })
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

/// The program with the other engines in it.
fn peers(field: &Field) -> Outcome<PathBuf> {
    let named = field
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
fn db_bench(field: &Field) -> Outcome<PathBuf> {
    let path = &field.db_bench;
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
