//! Opens a database for reading again and again, in this process and by commands, while another process writes it with memtables
//! of 64 KiB as fast as it can, and looks whether each time one moment is seen, and none older than the one before.
//!
//! `cargo run --release -p drumlin --example readers DIR OPENS [COMMANDS DRUMLIN]`: DIR is made and written to; DRUMLIN is the
//! command line's program. Ends with an error at the first that is wrong or fails; every thousand that are right are told on the
//! way.
#![expect(clippy::disallowed_methods, reason = "a benchmark measures time")]
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a benchmark prints"
)]

use std::os::unix::process::parent_id;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use drumlin::{Db, FamilyOptions, Options, ReadOptions, Result, Tuning, WriteBatch, WriteOptions};

type Outcome<T> = std::result::Result<T, Box<dyn std::error::Error>>;

const KEYS: u64 = 2_000;
/// Looks between two that are told of.
const TOLD_EVERY: usize = 1_000;

fn options() -> Options {
    Options {
        tuning: Tuning {
            write_buffer_bytes: Some(64 << 10),
            target_file_bytes: 64 << 10,
            ..Tuning::default()
        },
        ..Options::default()
    }
}

/// Round `n` sets key `n % KEYS` to `n` in both families. Until the process is ended, or that of `reader`.
fn write(dir: &Path, reader: u32) -> Result<()> {
    let db = Db::open_all_families(dir, options())?;
    let other = db.create_family("other", FamilyOptions::default())?;
    for round in (0_u64..).take_while(|_| parent_id() == reader) {
        let (key, value) = (key_of(round), format!("{round:0>100}"));
        let mut batch = WriteBatch::new();
        batch.put(key.as_bytes(), value.as_bytes())?;
        batch.put_cf(other.id(), key.as_bytes(), value.as_bytes())?;
        db.write(batch, &WriteOptions::default())?;
    }
    Ok(())
}

fn key_of(round: u64) -> String {
    format!("key{:05}", round % KEYS)
}

/// One past the last of `rounds`, which have to be those of one moment.
fn end_of(mut rounds: Vec<u64>) -> Outcome<u64> {
    rounds.sort_unstable();
    let end = rounds.last().map_or(0, |last| last + 1);
    match rounds.into_iter().eq(end.saturating_sub(KEYS)..end) {
        true => Ok(end),
        false => Err(format!("rows of several moments, up to {end}").into()),
    }
}

fn look_by_opening(dir: &Path) -> Outcome<u64> {
    let db = Db::open_read_only(dir, options())?;
    let mut ends = Vec::new();
    for name in ["default", "other"] {
        let mut rounds = Vec::new();
        if let Some(family) = db.column_family(name) {
            let mut iter = db.iter_cf(&family, ReadOptions::default());
            iter.seek_to_first();
            while iter.valid() {
                rounds.push(std::str::from_utf8(iter.value())?.parse()?);
                iter.next();
            }
            iter.status()?;
        }
        ends.push(end_of(rounds)?);
    }
    match ends.first() == ends.last() {
        true => Ok(ends.first().copied().unwrap_or(0)),
        false => Err(format!("the families end at {ends:?}").into()),
    }
}

fn look_by_command(dir: &Path, program: &str) -> Outcome<u64> {
    let output = Command::new(program)
        .arg("scan")
        .arg("--db")
        .arg(dir)
        .output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into());
    }
    let text = String::from_utf8(output.stdout)?;
    let values = text.lines().filter_map(|line| line.split('\t').nth(1));
    end_of(
        values
            .map(str::parse)
            .collect::<std::result::Result<_, _>>()?,
    )
}

/// Does `look` so often, each time of the last moment or a later one.
fn watch(what: &str, times: usize, mut look: impl FnMut() -> Outcome<u64>) -> Outcome<()> {
    let (begun, mut last) = (Instant::now(), 0);
    let mut longest = Duration::ZERO;
    for time in 0..times {
        let from = Instant::now();
        let end = look().map_err(|error| format!("{what} {time}: {error}"))?;
        longest = longest.max(from.elapsed());
        if end < last {
            return Err(format!("{what} {time}: {end} after {last}").into());
        }
        last = end;
        if (time + 1).is_multiple_of(TOLD_EVERY) {
            let each = begun.elapsed().as_secs_f64() * 1e3 / (time + 1) as f64;
            eprintln!("{} {what}: none wrong, {each:.2} ms each", time + 1);
        }
    }
    let seconds = begun.elapsed().as_secs_f64();
    let each = seconds * 1e3 / times.max(1) as f64;
    println!(
        "{times} {what}: none wrong, none failed; {each:.2} ms each, the longest {} ms; the writer came to round {last}",
        longest.as_millis()
    );
    Ok(())
}

fn main() -> Outcome<()> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let [dir, times, rest @ ..] = &arguments[..] else {
        return Err("which directory, and how often?".into());
    };
    let dir = Path::new(dir);
    if times == "write" {
        let reader = rest.first().ok_or("for which process?")?;
        return Ok(write(dir, reader.parse()?)?);
    }
    drop(Db::open(dir, options())?);
    let mut writer = Command::new(std::env::current_exe()?)
        .arg(dir)
        .args(["write", &std::process::id().to_string()])
        .spawn()?;
    let outcome = watch("openings", times.parse()?, || look_by_opening(dir)).and_then(|()| {
        let [times, program] = rest else {
            return Ok(());
        };
        watch("commands", times.parse()?, || look_by_command(dir, program))
    });
    let is_alive = writer.try_wait()?.is_none();
    writer.kill()?;
    writer.wait()?;
    outcome?;
    match is_alive {
        true => Ok(()),
        false => Err("the writer ended by itself".into()),
    }
}
