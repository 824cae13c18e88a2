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

use drumlin::{Db, Env, Locking, Options, Transaction, TransactionDb, TransactionOptions};
use drumlin_base::rng::Rng;

type Outcome<T = ()> = Result<T, Box<dyn Error + Send + Sync>>;

const ROUNDS: usize = 2000;
const CALLS: u64 = 200;
const KEYS: u64 = 1_000_000;
const VALUE: [u8; 100] = [7; 100];

/// One line of the table: a name, and `CALLS` calls.
type Line<'a> = (&'a str, &'a dyn Fn(&mut Rng) -> Outcome);

/// Runs the rounds of all `lines` in turn, so that each meets the store as the others do, and prints what a call took.
fn compare(lines: &[Line<'_>]) -> Outcome {
    let clock = Env::system().clock;
    let mut rng = Rng::new(1);
    let mut times: Vec<Vec<Duration>> = vec![Vec::with_capacity(ROUNDS); lines.len()];
    for _ in 0..ROUNDS {
        for ((_, round), times) in lines.iter().zip(&mut times) {
            let begin = clock.monotonic();
            round(&mut rng)?;
            times.push(clock.monotonic().saturating_sub(begin));
        }
    }
    for ((name, _), mut times) in lines.iter().zip(times) {
        times.sort_unstable();
        let each = |time: Duration| time.as_nanos() as u64 / CALLS;
        println!(
            "{name:32} {:7} {:7}",
            each(times[ROUNDS / 2]),
            each(times[0])
        );
    }
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
    let lock = |rng: &mut Rng, locks: u64| -> Outcome {
        for _ in 0..CALLS / locks {
            let mut tx = db.begin_with(options);
            for _ in 0..locks {
                tx.lock_key(family, key(rng))?;
            }
        }
        Ok(())
    };
    println!("{:32} {:>7} {:>7}", "", "median", "least");
    compare(&[
        ("lock and unlock, 1 at a time", &|rng| lock(rng, 1)),
        ("lock and unlock, 10 at a time", &|rng| lock(rng, 10)),
        ("lock and unlock, 100 at a time", &|rng| lock(rng, 100)),
        ("begin and roll back", &|_| {
            (0..CALLS).for_each(|_| drop(db.begin_with(options)));
            Ok(())
        }),
        ("begin with a snapshot, roll back", &|_| {
            (0..CALLS).for_each(|_| drop(db.begin()));
            Ok(())
        }),
    ])?;
    let put = |rng: &mut Rng, mut tx: Transaction<'_>| -> Outcome {
        tx.put(family, key(rng), VALUE)?;
        tx.commit()?;
        Ok(())
    };
    compare(&[
        ("put", &|rng| {
            for _ in 0..CALLS {
                plain.put(key(rng), VALUE)?;
            }
            Ok(())
        }),
        ("put that locks its key", &|rng| {
            for _ in 0..CALLS {
                db.put(family, key(rng), VALUE)?;
            }
            Ok(())
        }),
        ("transaction of one put", &|rng| {
            (0..CALLS).try_for_each(|_| put(rng, db.begin_with(options)))
        }),
        ("the same with a snapshot", &|rng| {
            (0..CALLS).try_for_each(|_| put(rng, db.begin()))
        }),
    ])
}
