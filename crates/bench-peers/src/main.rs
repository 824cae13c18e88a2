//! Drumlin's workloads on other engines, side by side, and fixtures written by them.
//!
//! ```text
//! peers bench --engine rocksdb --benchmarks=fillseq,readrandom --db=/tmp/x --num=1000000
//! peers compare --engines drumlin,rocksdb,leveldb,fjall,lmdb --rounds 5
//! peers fixture --out ../engine/tests/data
//! ```

mod args;
mod compare;
mod engines;
mod fixture;

use std::io::{Write, stderr, stdout};
use std::path::Path;
use std::process::ExitCode;

use clap::Parser;
use drumlin_base::{Error, ErrorKind, Result};
use drumlin_bench::{Flags, Runner};
use drumlin_fs::Env;

use args::{Args, BenchArgs, CompareArgs, Task};
use engines::with_store;

fn main() -> ExitCode {
    let done = match Args::parse().task {
        Task::Bench(args) => bench(&args),
        Task::Compare(args) => compare(&args),
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
    std::fs::create_dir_all(&flags.db)
        .map_err(|error| Error::io("make directory", Path::new(&flags.db), error))?;
    let mut out = stdout();
    with_store!(args.engine, S => Runner::<S>::new(flags, Env::system(), &mut out).run())
}

fn compare(args: &CompareArgs) -> Result<()> {
    let contest = args.contest()?;
    let standing = compare::run(&contest, &Env::system(), &mut stderr())?;
    let markdown = standing.to_markdown();
    print(&markdown)?;
    if let Some(out) = &args.out {
        let write = |extension: &str, text: &str| {
            let path = out.with_extension(extension);
            std::fs::write(&path, text).map_err(|error| Error::io("write file", &path, error))
        };
        write("md", &markdown)?;
        write("json", &standing.to_json())?;
    }
    Ok(())
}

fn fixture(out: &Path) -> Result<()> {
    for dir in fixture::write_all(out, &Env::system())? {
        print(&format!("{}\n", dir.display()))?;
    }
    Ok(())
}
