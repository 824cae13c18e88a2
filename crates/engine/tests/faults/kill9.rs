//! Goal: acknowledged writes outlive the process, however it dies. Method: this test binary
//! starts itself again as a writer and kills it at random moments; a pipe carries the
//! acknowledgements; then the directory is opened and read.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use drumlin::{Db, Env, Options, ReadOptions, WriteBatch, WriteOptions};
use drumlin_base::rng::Rng;
use drumlin_testkit::temp_dir;

use crate::support::options;

const DIR_VARIABLE: &str = "DRUMLIN_KILL9_DIR";
/// Keys are written over and over, so that compactions have something to drop.
const KEYS: u64 = 500;

/// The load, and so how large the WAL files become.
#[derive(Clone, Copy)]
struct Load {
    test: &'static str,
    rounds: u64,
    /// Acknowledgements before the kill.
    acks_max: u64,
    /// Bytes of a value.
    value_max: u64,
    write_buffer: Option<usize>,
}

const SMALL: Load = Load {
    test: "kill9::a_killed_process_loses_nothing_it_acknowledged",
    rounds: 15,
    acks_max: 1500,
    value_max: 300,
    write_buffer: None,
};

/// Past the 4 MiB that are mapped of a WAL at a time, again and again: appends of less than 8 KiB on average.
const LARGE: Load = Load {
    test: "kill9::a_process_killed_with_large_wal_files_loses_nothing",
    rounds: 6,
    acks_max: 8_000,
    value_max: 5_000,
    write_buffer: Some(24 << 20),
};

/// The same with appends that are large, and go by write calls behind the first 4 MiB.
const LARGE_WRITES: Load = Load {
    test: "kill9::a_process_killed_with_large_writes_loses_nothing",
    rounds: 6,
    acks_max: 500,
    value_max: 60_000,
    write_buffer: Some(24 << 20),
};

impl Load {
    fn options(&self) -> Options {
        let mut options = Options {
            background_threads: Some(2),
            env: Env::system(),
            ..options(Env::system().files)
        };
        if self.write_buffer.is_some() {
            options.tuning.write_buffer_bytes = self.write_buffer;
        }
        options
    }
}

/// The batch `sequence` in both families; the same whoever makes it.
fn batch(load: &Load, sequence: u64, other: u32) -> WriteBatch {
    let mut batch = WriteBatch::new();
    let value = sequence.to_le_bytes();
    let mut long = value.to_vec();
    long.resize(8 + Rng::new(sequence).below(load.value_max) as usize, b'.');
    let key = |n: u64| format!("k{:04}", n % KEYS).into_bytes();
    batch.put(&key(sequence * 7), &long).expect("small");
    batch
        .put_cf(other, &key(sequence * 13), &long)
        .expect("small");
    batch.put(b"sequence", &value).expect("small");
    batch.put_cf(other, b"sequence", &value).expect("small");
    batch
}

/// The child's life: writes on from the rows it finds, and reports acknowledgements.
fn write_until_killed(dir: &Path, load: &Load) {
    let db = Db::open_all_families(dir, load.options()).expect("opens after any death");
    let other = match db.column_family("other") {
        Some(family) => family,
        None => db
            .create_family("other", load.options().family)
            .expect("created"),
    };
    let mut out = std::io::stdout().lock();
    let mut sequence = found(&db, &other);
    loop {
        sequence += 1;
        let options = WriteOptions {
            sync: Some(sequence.is_multiple_of(64)),
            ..WriteOptions::default()
        };
        db.write(batch(load, sequence, other.id()), &options)
            .expect("written");
        if writeln!(out, "acked {sequence}")
            .and_then(|()| out.flush())
            .is_err()
        {
            return; // The parent is gone.
        }
    }
}

fn found(db: &Db, family: &drumlin::ColumnFamily) -> u64 {
    let value = db.get_cf(family, b"sequence", &ReadOptions::default());
    let value = value.expect("readable");
    value.map_or(0, |v| {
        u64::from_le_bytes(v[..8].try_into().expect("8 bytes"))
    })
}

/// Every key holds what the batches up to `last` left in it.
fn check(db: &Db, last: u64) {
    let other = db
        .column_family("other")
        .expect("created before the first batch");
    assert_eq!(found(db, &other), last, "a batch is there as a whole");
    for (family, step) in [(db.default_family(), 7), (&other, 13)] {
        let mut newest = vec![0; KEYS as usize];
        for sequence in 1..=last {
            newest[(sequence * step % KEYS) as usize] = sequence;
        }
        for (index, sequence) in newest.into_iter().enumerate() {
            let key = format!("k{index:04}");
            let value = db
                .get_cf(family, &key, &ReadOptions::default())
                .expect("readable");
            let held = value.map_or(0, |v| {
                u64::from_le_bytes(v[..8].try_into().expect("8 bytes"))
            });
            assert_eq!(held, sequence, "{key} of {family:?} after {last}");
        }
    }
}

#[test]
fn a_killed_process_loses_nothing_it_acknowledged() {
    kill_again_and_again(&SMALL);
}

#[test]
fn a_process_killed_with_large_wal_files_loses_nothing() {
    kill_again_and_again(&LARGE);
}

#[test]
fn a_process_killed_with_large_writes_loses_nothing() {
    kill_again_and_again(&LARGE_WRITES);
}

fn kill_again_and_again(load: &Load) {
    if let Some(dir) = std::env::var_os(DIR_VARIABLE) {
        write_until_killed(Path::new(&dir), load);
        return;
    }
    let dir = temp_dir();
    let binary = std::env::current_exe().expect("this test");
    let mut rng = Rng::new(u64::from(std::process::id()));
    let mut largest = 0;
    for round in 0..load.rounds {
        let mut child = Command::new(&binary)
            .args([load.test, "--exact", "--nocapture", "--test-threads", "1"])
            .env(DIR_VARIABLE, dir.path())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the test starts itself");
        let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        // Killed after so many acknowledgements, or, every third time, while it recovers.
        let until = if round % 3 == 2 {
            0
        } else {
            1 + rng.below(load.acks_max)
        };
        let mut acked = 0;
        let mut seen = 0;
        while seen < until {
            let Some(Ok(line)) = lines.next() else {
                let status = child.wait().expect("gone");
                panic!("the writer ended by itself in round {round}: {status}");
            };
            if let Some(number) = line.split("acked ").nth(1) {
                acked = number.parse().expect("a number");
                seen += 1;
            }
        }
        if until == 0 {
            // Somewhere in its start.
            let pause = std::time::Duration::from_micros(rng.below(30_000));
            Env::system().clock.sleep(pause);
        }
        child.kill().expect("killed");
        child.wait().expect("gone");
        for line in lines.map_while(Result::ok) {
            // A line that death cut short still tells of an acknowledged write, if it is whole.
            if let Some(number) = line.split("acked ").nth(1) {
                acked = number.parse().unwrap_or(acked).max(acked);
            }
        }
        largest = largest.max(largest_wal(dir.path()));
        let db = match Db::open_all_families(dir.path(), load.options()) {
            Ok(db) => db,
            Err(error) => panic!("round {round}: {error:?}"),
        };
        let last = found(&db, db.default_family());
        assert!(
            last >= acked,
            "round {round}: {acked} was acknowledged, {last} is there"
        );
        assert!(
            last <= acked + 1 || until == 0,
            "round {round}: {last} after {acked}"
        );
        if db.column_family("other").is_some() {
            check(&db, last);
        }
        db.close().expect("closed");
    }
    assert!(
        load.write_buffer.is_none() || largest > 4 << 20,
        "{largest}"
    );
}

/// Bytes of the largest WAL in `dir`.
fn largest_wal(dir: &Path) -> u64 {
    let files = Env::system().files;
    let names = files.list(dir).expect("the directory is there");
    let wals = names
        .iter()
        .filter(|name| name.extension().is_some_and(|e| e == "log"));
    wals.filter_map(|wal| files.info(&dir.join(wal)).ok())
        .map(|facts| facts.size)
        .max()
        .unwrap_or(0)
}
