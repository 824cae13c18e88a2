//! Drumlin's workloads on other engines, side by side, and fixtures written by them.
//!
//! ```text
//! peers bench --engine rocksdb --benchmarks=fillseq,readrandom --db=/tmp/x --num=1000000
//! peers compare --engines drumlin,rocksdb,leveldb,fjall,lmdb --rounds 5
//! peers stall --engines drumlin,rocksdb,rocksdb-blobs --value-size 10000,100 --duration 60
//! peers sustain --engines drumlin,rocksdb,rocksdb-universal --value-size 100 --writes 20000000
//! peers curve --engines drumlin,rocksdb --sizes 1000000,10000000 --out curve
//! peers check-blobs /tmp/blobs
//! peers fixture --out ../engine/tests/data
//! ```

mod args;
#[cfg(feature = "rocksdb")]
mod blobs;
mod compare;
mod curve;
mod engines;
mod fixture;
mod limit;
mod place;
mod watched;

use std::io::{Write, stderr, stdin, stdout};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use drumlin_base::{Error, ErrorKind, Result};
use drumlin_bench::{Flags, Runner, mark};
use drumlin_fs::Env;

use args::{Args, BenchArgs, CompareArgs, CurveArgs, Task, WatchArgs};
use engines::{Engine, with_store};
use watched::Load;

fn main() -> ExitCode {
    let done = match Args::parse().task {
        Task::Bench(args) => bench(&args),
        Task::Agent { engine } => agent(engine),
        Task::Compare(args) => compare(&args),
        Task::Curve(args) => draw_curve(&args),
        Task::Stall(args) => watch(&args, Load::Stall),
        Task::Sustain(args) => watch(&args, Load::Sustain),
        #[cfg(feature = "rocksdb")]
        Task::CheckBlobs { dir } => blobs::check(&dir).and_then(|text| print(&text)),
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

fn compare(args: &CompareArgs) -> Result<()> {
    let contest = args.contest()?;
    let standing = compare::run(&contest, &Env::system(), &mut stderr())?;
    publish(
        &standing.to_markdown(),
        &standing.to_json(),
        args.out.as_deref(),
    )
}

fn watch(args: &WatchArgs, load: Load) -> Result<()> {
    let contest = args.contest(load)?;
    let standing = watched::run(&contest, &Env::system(), &mut stderr())?;
    publish(
        &standing.to_markdown(),
        &standing.to_json(),
        args.out.as_deref(),
    )
}

fn draw_curve(args: &CurveArgs) -> Result<()> {
    let standing = curve::run(&args.contest()?, &Env::system(), &mut stderr())?;
    let out = args.out.as_deref();
    publish(&standing.to_markdown(), &standing.to_json(), out)?;
    out.map_or(Ok(()), |out| write_beside(out, "svg", &standing.to_svg()?))
}

/// Prints the tables, and writes both forms beside `out` if there is one.
fn publish(markdown: &str, json: &str, out: Option<&Path>) -> Result<()> {
    print(markdown)?;
    let Some(out) = out else {
        return Ok(());
    };
    write_beside(out, "md", markdown)?;
    write_beside(out, "json", json)
}

fn write_beside(out: &Path, extension: &str, text: &str) -> Result<()> {
    let path = out.with_extension(extension);
    std::fs::write(&path, text).map_err(|error| Error::io("write file", &path, error))
}

fn fixture(out: &Path) -> Result<()> {
    for dir in fixture::write_all(out, &Env::system())? {
        print(&format!("{}\n", dir.display()))?;
    }
    Ok(())
}
