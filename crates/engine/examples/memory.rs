//! Measures memory: what the process holds beside what the budget's accounts say, and what a random
//! read of cached data costs.
//!
//! ```text
//! cargo run --release -p drumlin --example memory -- stress DIR [budget MiB] [seconds] [block bytes]
//! cargo run --release -p drumlin --example memory -- gets DIR [entries] [reads]
//! ```
//!
//! `stress` has two readers and a writer at work on rows of 600 bytes and prints a line a second.
//! `gets` reads entries of 16 + 100 bytes, compacted and cached, on one thread; the time is that of
//! the processor.

#![expect(clippy::print_stdout, reason = "prints its measurements")]

use std::error::Error;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use drumlin::{Db, Env, Options, ReadOptions, Tuning};
use drumlin_base::rng::Rng;

type Outcome<T = ()> = Result<T, Box<dyn Error + Send + Sync>>;

const ROW_BYTES: usize = 600;

fn main() -> Outcome {
    drumlin::machine::return_freed_memory();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, default: u64| match arguments.get(at) {
        Some(text) => text.parse(),
        None => Ok(default),
    };
    let dir = arguments.get(1).ok_or("a directory is missing")?;
    match arguments.first().map(String::as_str) {
        Some("stress") => stress(
            Path::new(dir),
            number(2, 128)? as usize,
            number(3, 20)?,
            number(4, 4096)? as usize,
        ),
        Some("gets") => gets(Path::new(dir), number(2, 3_000_000)?, number(3, 4_000_000)?),
        _ => Err("say stress or gets".into()),
    }
}

/// Bytes of this process under `name` in `/proc/self/status`.
fn status_bytes(name: &str) -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with(name));
    let number = line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok());
    number.unwrap_or(0) << 10
}

/// Half of a row can be compressed.
fn row(rng: &mut Rng, value: &mut Vec<u8>) {
    value.resize(ROW_BYTES, b'-');
    rng.fill(value.split_at_mut(ROW_BYTES / 2).0);
}

fn stress(dir: &Path, budget_mib: usize, seconds: u64, block_bytes: usize) -> Outcome {
    let baseline = status_bytes("RssAnon");
    let options = Options {
        memory_budget: Some(budget_mib << 20),
        tuning: Tuning {
            block_bytes,
            ..Tuning::default()
        },
        ..Options::default()
    };
    let db = Db::open(dir, options)?;
    let (written, reads) = (AtomicU64::new(0), AtomicU64::new(0));
    let (stop, clock) = (AtomicBool::new(false), Env::system().clock);
    std::thread::scope(|scope| -> Outcome {
        scope.spawn(|| write(&db, &written, &stop));
        for seed in 0..2 {
            let (db, written, reads, stop) = (&db, &written, &reads, &stop);
            scope.spawn(move || read(db, seed, written, reads, stop));
        }
        let mut most = 0;
        for second in 0..seconds * 10 {
            clock.sleep(Duration::from_millis(100));
            let anonymous = status_bytes("RssAnon").saturating_sub(baseline);
            most = most.max(anonymous);
            if second % 10 == 9 {
                let text = db.stats_text(db.default_family());
                let memory = text.lines().find(|line| line.starts_with("memory:"));
                println!(
                    "{:3} s  anonymous {:6.1} MiB (most {:6.1})  file {:5.1}  rows {:9}  reads {:9}  {}",
                    second / 10 + 1,
                    anonymous as f64 / (1 << 20) as f64,
                    most as f64 / (1 << 20) as f64,
                    status_bytes("RssFile") as f64 / (1 << 20) as f64,
                    written.load(Ordering::Relaxed),
                    reads.load(Ordering::Relaxed),
                    memory.unwrap_or_default(),
                );
            }
        }
        stop.store(true, Ordering::Relaxed);
        Ok(())
    })?;
    Ok(db.close()?)
}

fn write(db: &Db, written: &AtomicU64, stop: &AtomicBool) -> Outcome {
    let (mut rng, mut value) = (Rng::new(7), Vec::new());
    let mut number = 0u64;
    while !stop.load(Ordering::Relaxed) {
        row(&mut rng, &mut value);
        db.put(key_of(number), &value)?;
        number += 1;
        written.store(number, Ordering::Release);
    }
    Ok(())
}

fn read(db: &Db, seed: u64, written: &AtomicU64, reads: &AtomicU64, stop: &AtomicBool) -> Outcome {
    let mut rng = Rng::new(seed);
    while !stop.load(Ordering::Relaxed) {
        let there = written.load(Ordering::Acquire).max(1);
        db.get(key_of(rng.below(there)))?;
        reads.fetch_add(1, Ordering::Relaxed);
    }
    Ok(())
}

/// Keys in an order of their own.
fn key_of(number: u64) -> [u8; 16] {
    let mut key = [0; 16];
    key[..8].copy_from_slice(&number.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes());
    key[8..].copy_from_slice(&number.to_be_bytes());
    key
}

/// Processor time of this thread so far.
fn processor_time() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = text.split(' ').next().and_then(|first| first.parse().ok());
    Duration::from_nanos(nanoseconds.unwrap_or(0))
}

fn gets(dir: &Path, entries: u64, reads: u64) -> Outcome {
    let options = Options {
        memory_budget: Some(2 << 30),
        compression: drumlin::Compression::none(),
        ..Options::default()
    };
    let db = Db::open(dir, options)?;
    if db.get(key_of(entries - 1))?.is_none() {
        let (mut rng, mut value) = (Rng::new(1), vec![0; 100]);
        for number in 0..entries {
            rng.fill(&mut value);
            db.put(key_of(number), &value)?;
        }
    }
    db.compact_range(db.default_family(), None, None)?;
    let mut iter = db.iter(ReadOptions::default());
    iter.seek_to_first();
    while iter.valid() {
        iter.next();
    }
    drop(iter);
    let mut rng = Rng::new(3);
    for round in 0..6 {
        let began = processor_time();
        let mut found = 0u64;
        for _ in 0..reads / 5 {
            found += u64::from(db.get(key_of(rng.below(entries)))?.is_some());
        }
        let took = processor_time().saturating_sub(began);
        if round > 0 {
            println!(
                "get: {:7.1} ns of processor time ({found} found)",
                took.as_nanos() as f64 / (reads / 5) as f64
            );
        }
    }
    let mut iter = db.iter(ReadOptions::default());
    for _ in 0..2 {
        let began = processor_time();
        for _ in 0..reads / 5 {
            iter.seek(&key_of(rng.below(entries)));
        }
        let took = processor_time().saturating_sub(began);
        println!(
            "seek: {:6.1} ns of processor time",
            took.as_nanos() as f64 / (reads / 5) as f64
        );
    }
    drop(iter);
    println!("{}", db.stats_text(db.default_family()));
    println!(
        "anonymous {} MiB, of it in huge pages {} MiB",
        status_bytes("RssAnon") >> 20,
        huge_bytes() >> 20
    );
    Ok(db.close()?)
}

/// Bytes of this process in huge pages.
fn huge_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/self/smaps_rollup").unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with("AnonHugePages"));
    let number: Option<u64> = line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok());
    number.unwrap_or(0) << 10
}
