//! Other engines behind the `Store` of Drumlin's benchmarks, and fixtures written by them.
//!
//! `drumlin lab` starts this program as the agent of an engine; comparisons are plans of its.
//!
//! ```text
//! peers bench --engine rocksdb --benchmarks=fillseq,readrandom --db=/tmp/x --num=1000000
//! peers agent --engine rocksdb
//! peers check-blobs /tmp/blobs
//! peers kvrocks-ranks /tmp/ranks --members 1000000
//! peers fixture --out ../engine/tests/data
//! ```

mod args;
#[cfg(feature = "rocksdb")]
mod blobs;
mod engines;
mod fixture;
mod place;
#[cfg(feature = "rocksdb")]
mod ranks;

use std::io::{Write, stderr, stdin, stdout};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use drumlin_base::{Error, ErrorKind, Result};
use drumlin_bench::{Flags, Runner, mark};
use drumlin_fs::Env;

use args::{Args, BenchArgs, Task};
use engines::{Engine, with_store};

fn main() -> ExitCode {
    let done = match Args::parse().task {
        Task::Bench(args) => bench(&args),
        Task::Agent { engine } => agent(engine),
        #[cfg(feature = "rocksdb")]
        Task::CheckBlobs { dir } => blobs::check(&dir).and_then(|text| print(&text)),
        #[cfg(feature = "rocksdb")]
        Task::KvrocksRanks(args) => ranks::run(&args).and_then(|text| print(&text)),
        Task::Fixture { out } => fixture(&out),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Nothing is left to report a failure of the report to.
            let _unreported = writeln!(stderr(), "peers: {error}");
            ExitCode::FAILURE
        }
    }
}

fn print(text: &str) -> Result<()> {
    stdout()
        .write_all(text.as_bytes())
        .map_err(|error| Error::new(ErrorKind::Io, format!("cannot print: {error}")))
}

fn bench(args: &BenchArgs) -> Result<()> {
    let flags = Flags::parse(&args.flags)?;
    if flags.db.is_empty() {
        let text = "which directory? Name it with --db; fills empty it first";
        return Err(Error::invalid_argument(text));
    }
    let (env, dir) = (Env::system(), PathBuf::from(&flags.db));
    place::check(&flags, &env)?;
    let keeps = flags.use_existing_db;
    std::fs::create_dir_all(&dir).map_err(|error| Error::io("make directory", &dir, error))?;
    let mut out = stdout();
    let done = with_store!(args.engine, S => Runner::<S>::new(flags, env.clone(), &mut out).run());
    if !keeps {
        mark::set(&dir, &env)?;
    }
    done
}

fn agent(engine: Engine) -> Result<()> {
    let (mut input, mut output, env) = (stdin().lock(), stdout(), Env::system());
    let adjust = |flags: &mut Flags| engine.adjust(flags);
    with_store!(engine, S => drumlin_lab::agent::serve::<S>(&mut input, &mut output, &env, &adjust))
}

fn fixture(out: &Path) -> Result<()> {
    for dir in fixture::write_all(out, &Env::system())? {
        print(&format!("{}\n", dir.display()))?;
    }
    Ok(())
}
