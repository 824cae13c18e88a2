//! Measures lookups of data in RAM: single gets, batches of 32, absent keys, one reader thread beside
//! two, from compacted tables whose blocks are cached and from a memtable.
//!
//! ```text
//! cargo run --release -p drumlin --example lookups -- DIR [entries] [milliseconds a line] [lines]
//! ```
//!
//! Entries are of 16 + 100 bytes; `DIR` is filled when it is empty and may be on tmpfs. `lines` is
//! `all`, or the beginning of the names of those to run, as `tables get` or `memtable`. Every value
//! found is checked to be that of its key.

#![expect(clippy::print_stdout, reason = "prints its measurements")]

use std::error::Error;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use drumlin::{Db, Env, Options, ReadOptions, Tuning};
use drumlin_base::rng::Rng;

type Outcome<T = ()> = Result<T, Box<dyn Error + Send + Sync>>;

const VALUE_BYTES: usize = 100;
const BATCH: usize = 32;
/// Keys that the hot lines read again and again, all readers the same.
const HOT_KEYS: u64 = 64;

/// The kind of a line.
#[derive(Clone, Copy)]
enum Kind {
    Get,
    Absent,
    Hot,
    Batch,
    AbsentBatch,
}

const LINES: [(&str, Kind); 5] = [
    ("get", Kind::Get),
    ("absent", Kind::Absent),
    ("hot", Kind::Hot),
    ("batch", Kind::Batch),
    ("absent batch", Kind::AbsentBatch),
];

fn main() -> Outcome {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, default: u64| match arguments.get(at) {
        Some(text) => text.parse(),
        None => Ok(default),
    };
    let dir = arguments.first().ok_or("a directory is missing")?;
    let (entries, millis) = (number(1, 5_000_000)?, number(2, 1500)?);
    let wanted = arguments.get(3).map_or("all", String::as_str);
    let is_wanted = |name: &str| wanted == "all" || name.starts_with(wanted);
    let bench = |what: &str, db: &Db, entries| -> Outcome {
        for (name, kind) in LINES {
            let name = format!("{what} {name}");
            if is_wanted(&name) {
                line(&name, db, entries, kind, Duration::from_millis(millis))?;
            }
        }
        Ok(())
    };
    if wanted == "all" || wanted.starts_with("tables") {
        let db = filled(&Path::new(dir).join("tables"), entries, false)?;
        bench("tables", &db, entries)?;
        db.close()?;
    }
    if wanted == "all" || wanted.starts_with("memtable") {
        let path = Path::new(dir).join("memtable");
        if path.exists() {
            std::fs::remove_dir_all(&path)?;
        }
        let entries = entries.min(1_000_000);
        let db = filled(&path, entries, true)?;
        bench("memtable", &db, entries)?;
        db.close()?;
        std::fs::remove_dir_all(&path)?;
    }
    Ok(())
}

/// A database of `entries`: all in one memtable, or compacted and every block in the cache.
fn filled(dir: &Path, entries: u64, in_memtable: bool) -> Outcome<Db> {
    let tuning = Tuning {
        write_buffer_bytes: in_memtable.then_some(1 << 30),
        ..Tuning::default()
    };
    let options = Options {
        memory_budget: Some(3 << 30),
        compression: drumlin::Compression::none(),
        tuning,
        ..Options::default()
    };
    let db = Db::open(dir, options)?;
    if db.get(key_of(entries - 1))?.is_none() {
        let mut value = [0; VALUE_BYTES];
        for number in 0..entries {
            set_value(number, &mut value);
            db.put(key_of(number), value)?;
        }
    }
    if !in_memtable {
        db.compact_range(db.default_family(), None, None)?;
        let mut iter = db.iter(ReadOptions::default());
        iter.seek_to_first();
        while iter.valid() {
            iter.next();
        }
    }
    Ok(db)
}

/// Keys in an order of their own.
fn key_of(number: u64) -> [u8; 16] {
    let mut key = [0; 16];
    key[..8].copy_from_slice(&number.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes());
    key[8..].copy_from_slice(&number.to_be_bytes());
    key
}

fn set_value(number: u64, value: &mut [u8; VALUE_BYTES]) {
    Rng::new(number).fill(value);
    value[..8].copy_from_slice(&number.to_be_bytes());
}

/// Runs `kind` by one thread and by two; nanoseconds of one thread's lookup, and the gain.
fn line(name: &str, db: &Db, entries: u64, kind: Kind, time: Duration) -> Outcome {
    run(db, entries, kind, 1, time / 4)?;
    let alone = run(db, entries, kind, 1, time)?;
    let both = run(db, entries, kind, 2, time)?;
    println!(
        "{name:<24} {:>8.1} ns a key, one thread; {:>6.2} M/s by one, {:>6.2} M/s by two: {:+.0} %",
        1e9 / alone,
        alone / 1e6,
        both / 1e6,
        (both / alone - 1.0) * 100.0
    );
    Ok(())
}

/// Keys looked up a second by `threads` together.
fn run(db: &Db, entries: u64, kind: Kind, threads: u64, time: Duration) -> Outcome<f64> {
    let clock = Env::system().clock;
    let (stop, total) = (AtomicBool::new(false), AtomicU64::new(0));
    let began = clock.monotonic();
    std::thread::scope(|scope| -> Outcome {
        let readers: Vec<_> = (0..threads)
            .map(|seed| {
                let (stop, total) = (&stop, &total);
                scope.spawn(move || -> Outcome {
                    let mut rng = Rng::new(seed + 17);
                    let mut done = 0;
                    while !stop.load(Ordering::Relaxed) {
                        done += some(db, entries, kind, &mut rng)?;
                    }
                    total.fetch_add(done, Ordering::Relaxed);
                    Ok(())
                })
            })
            .collect();
        clock.sleep(time);
        stop.store(true, Ordering::Relaxed);
        for reader in readers {
            reader.join().map_err(|_| "a reader panicked")??;
        }
        Ok(())
    })?;
    let took = clock.monotonic().saturating_sub(began);
    Ok(total.into_inner() as f64 / took.as_secs_f64())
}

/// A few hundred lookups.
fn some(db: &Db, entries: u64, kind: Kind, rng: &mut Rng) -> Outcome<u64> {
    const ROUND: u64 = 256;
    let check = |number: u64, found: Option<&[u8]>| match found {
        Some(value) if number < entries => value.starts_with(&number.to_be_bytes()),
        None => number >= entries,
        Some(_) => false,
    };
    let number = |rng: &mut Rng| match kind {
        Kind::Get | Kind::Batch => rng.below(entries),
        Kind::Absent | Kind::AbsentBatch => entries + rng.below(entries),
        Kind::Hot => rng.below(HOT_KEYS),
    };
    if matches!(kind, Kind::Batch | Kind::AbsentBatch) {
        for _ in 0..ROUND / BATCH as u64 {
            let numbers: [u64; BATCH] = std::array::from_fn(|_| number(rng));
            let keys = numbers.map(key_of);
            let found = db.multi_get_cf(db.default_family(), &keys, &ReadOptions::default());
            for (number, found) in numbers.into_iter().zip(found) {
                if !check(number, found?.as_deref()) {
                    return Err(format!("wrong value of {number}").into());
                }
            }
        }
        return Ok(ROUND);
    }
    for _ in 0..ROUND {
        let number = number(rng);
        if !check(number, db.get(key_of(number))?.as_deref()) {
            return Err(format!("wrong value of {number}").into());
        }
    }
    Ok(ROUND)
}
