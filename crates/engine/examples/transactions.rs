//! What a lock costs, and what a transaction costs beside a plain write.
//!
//! ```text
//! cargo run --release -p drumlin --example transactions -- DIR
//! ```
//!
//! Nanoseconds a call, the median and the least of many short rounds. The store in `DIR` is written without syncs.

#![expect(clippy::print_stdout, reason = "prints its measurements")]

use std::error::Error;
use std::path::Path;
use std::time::Duration;

use drumlin::{Db, Env, Locking, Options, TransactionDb, TransactionOptions};
use drumlin_base::rng::Rng;

type Outcome<T = ()> = Result<T, Box<dyn Error + Send + Sync>>;

const ROUNDS: usize = 2000;
const CALLS: u64 = 200;
const KEYS: u64 = 1_000_000;
const VALUE: [u8; 100] = [7; 100];

/// Runs `round`, which makes `CALLS` calls, and prints what one took.
fn line(name: &str, mut round: impl FnMut() -> Outcome) -> Outcome {
    let clock = Env::system().clock;
    let mut times = Vec::with_capacity(ROUNDS);
    for _ in 0..ROUNDS {
        let begin = clock.monotonic();
        round()?;
        times.push(clock.monotonic().saturating_sub(begin));
    }
    times.sort_unstable();
    let each = |time: Duration| time.as_nanos() as u64 / CALLS;
    println!(
        "{name:32} {:7} {:7}",
        each(times[ROUNDS / 2]),
        each(times[0])
    );
    Ok(())
}

fn key(rng: &mut Rng) -> [u8; 16] {
    let number = rng.below(KEYS);
    let mut key = *b"user000000000000";
    key[8..].copy_from_slice(&number.to_be_bytes());
    key
}

fn main() -> Outcome {
    let dir = std::env::args().nth(1).ok_or("a directory is missing")?;
    let plain = Db::open(Path::new(&dir), Options::default())?;
    let db = TransactionDb::over(plain.clone(), Locking::default())?;
    let family = db.default_family();
    let options = TransactionOptions {
        snapshot: false,
        ..TransactionOptions::default()
    };
    let mut rng = Rng::new(1);
    println!("{:32} {:>7} {:>7}", "", "median", "least");
    for locks in [1, 10, 100] {
        line(&format!("lock and unlock, {locks} at a time"), || {
            for _ in 0..CALLS / locks {
                let mut tx = db.begin_with(options);
                for _ in 0..locks {
                    tx.lock_key(family, key(&mut rng))?;
                }
            }
            Ok(())
        })?;
    }
    line("begin and roll back", || {
        (0..CALLS).for_each(|_| drop(db.begin_with(options)));
        Ok(())
    })?;
    line("begin with a snapshot, roll back", || {
        (0..CALLS).for_each(|_| drop(db.begin()));
        Ok(())
    })?;
    for _ in 0..2 {
        line("put", || {
            for _ in 0..CALLS {
                plain.put(key(&mut rng), VALUE)?;
            }
            Ok(())
        })?;
        line("put that locks its key", || {
            for _ in 0..CALLS {
                db.put(family, key(&mut rng), VALUE)?;
            }
            Ok(())
        })?;
        line("transaction of one put", || {
            for _ in 0..CALLS {
                let mut tx = db.begin_with(options);
                tx.put(family, key(&mut rng), VALUE)?;
                tx.commit()?;
            }
            Ok(())
        })?;
        line("the same with a snapshot", || {
            for _ in 0..CALLS {
                let mut tx = db.begin();
                tx.put(family, key(&mut rng), VALUE)?;
                tx.commit()?;
            }
            Ok(())
        })?;
    }
    Ok(())
}
