//! Reads from the disk by many tasks: this crate, and `spawn_blocking` around the same database.
//!
//! ```text
//! cargo run --release -p drumlin-async --example cold_reads -- DIR [KEYS] [ROUNDS]
//! ```
//!
//! Fills `DIR` with KEYS values of 1,000 bytes, unless it is there, and reads with a budget of 64 MiB, the files out of the page cache
//! before each round: 1,000 tasks, each one random key after the other. Then the same from memory.

#![expect(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "prints its measurements, and takes files out of the page cache"
)]

use std::error::Error;
use std::fs::File;
use std::path::Path;
use std::time::{Duration, Instant};

use drumlin::{Codec, Compression, Db, Options, WriteBatch, WriteOptions};
use drumlin_async::AsyncDb;
use drumlin_base::rng::Rng;
use tokio::runtime::{Builder, Runtime};

type Outcome<T = ()> = Result<T, Box<dyn Error + Send + Sync>>;

const TASKS: u64 = 1000;

fn key(number: u64) -> [u8; 16] {
    let mut key = *b"user000000000000";
    key[8..].copy_from_slice(&number.to_be_bytes());
    key
}

fn fill(db: &Db, keys: u64) -> Outcome {
    let mut value = [0; 1000];
    for first in (0..keys).step_by(1000) {
        let mut batch = WriteBatch::new();
        for number in first..first + 1000 {
            Rng::new(number).fill(&mut value);
            batch.put(&key(number), &value)?;
        }
        db.write(batch, &WriteOptions::default())?;
    }
    db.compact_range(db.default_family(), None, None)?;
    Ok(())
}

/// Takes the files of `dir` out of the page cache.
fn forget(dir: &Path) -> Outcome {
    for entry in std::fs::read_dir(dir)? {
        let file = File::open(entry?.path())?;
        file.sync_all().ok();
        rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed)?;
    }
    Ok(())
}

/// What 1,000 tasks need for `reads` each.
fn timed<F>(
    runtime: &Runtime,
    reads: u64,
    keys: u64,
    read: impl Fn(Vec<u64>) -> F,
) -> Outcome<Duration>
where
    F: Future<Output = drumlin::Result<()>> + Send + 'static,
{
    let begun = Instant::now();
    let tasks: Vec<_> = (0..TASKS)
        .map(|task| {
            let mut rng = Rng::new(task + begun.elapsed().as_nanos() as u64);
            runtime.spawn(read((0..reads).map(|_| rng.below(keys)).collect()))
        })
        .collect();
    for task in tasks {
        runtime.block_on(task)??;
    }
    Ok(begun.elapsed())
}

fn main() -> Outcome {
    let mut args = std::env::args().skip(1);
    let dir = args.next().ok_or("a directory is missing")?;
    let keys: u64 = args.next().map_or(Ok(1_000_000), |keys| keys.parse())?;
    let rounds: u64 = args.next().map_or(Ok(5), |rounds| rounds.parse())?;
    let options = |budget| Options {
        memory_budget: Some(budget),
        compression: Compression::new(Codec::None),
        ..Options::default()
    };
    let db = Db::open(&dir, options(256 << 20))?;
    if db.get(key(keys - 1))?.is_none() {
        fill(&db, keys)?;
    }
    db.close()?;
    let runtime = Builder::new_multi_thread().worker_threads(2).build()?;
    for (name, budget, reads, keys) in [
        ("from the disk", 64 << 20, 50, keys),
        ("from memory", 1 << 30, 1000, keys.min(100_000)),
    ] {
        let db = Db::open(&dir, options(budget))?;
        let serving = AsyncDb::over(db.clone())?;
        let family = serving.default_family();
        if budget == 1 << 30 {
            for number in 0..keys {
                db.get(key(number))?;
            }
        }
        println!("{name}: thousand reads a second, tasks, spawn_blocking, ratio");
        for _ in 0..rounds {
            forget(Path::new(&dir))?;
            let ours = timed(&runtime, reads, keys, |numbers| {
                let family = family.clone();
                async move {
                    for number in numbers {
                        family.get(key(number)).await?;
                    }
                    Ok(())
                }
            })?;
            forget(Path::new(&dir))?;
            let theirs = timed(&runtime, reads, keys, |numbers| {
                let db = db.clone();
                async move {
                    for number in numbers {
                        let db = db.clone();
                        let got = tokio::task::spawn_blocking(move || db.get(key(number)));
                        got.await.expect("a read does not panic")?;
                    }
                    Ok(())
                }
            })?;
            let speed = |time: Duration| (TASKS * reads) as f64 / time.as_secs_f64() / 1000.0;
            let (ours, theirs) = (speed(ours), speed(theirs));
            println!("{ours:8.0} {theirs:8.0} {:6.2}", ours / theirs);
        }
        drop((family, serving));
        db.close()?;
    }
    Ok(())
}
