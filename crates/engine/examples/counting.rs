//! What it costs to count the keys of a range, and to find the key at a rank.
//!
//! ```text
//! cargo run --release -p drumlin --example counting -- DIR [KEYS]
//! ```
//!
//! `DIR` is made; one with a database is refused. Nanoseconds a call, the median and the least of many short rounds, while
//! the keys lie in one, two, four and eight sorted runs, and for each run; and the memory of their ranks.
//! `crates/capi/bench.c` has RocksDB's nearest beside ours: the size of a range.

#![expect(clippy::print_stdout, reason = "prints its measurements")]

use std::error::Error;
use std::path::Path;
use std::time::Duration;

use drumlin::{Db, Env, Options, Tuning, WriteOptions};
use drumlin_base::rng::Rng;

type Outcome<T = ()> = Result<T, Box<dyn Error + Send + Sync>>;

const ROUNDS: usize = 500;
const CALLS: u64 = 200;

/// Bytes that open tables take, the ranks of their keys included.
fn table_bytes(db: &Db) -> usize {
    let used = db.budget().used_by_name();
    let tables = used.iter().find(|(name, _)| *name == "tables");
    tables.map_or(0, |(_, bytes)| *bytes)
}

/// Runs `round`, which makes `CALLS` calls, and prints what one took.
fn line(name: &str, runs: u64, mut round: impl FnMut() -> Outcome) -> Outcome {
    let clock = Env::system().clock;
    round()?; // Ranks are learned.
    let mut times = Vec::with_capacity(ROUNDS);
    for _ in 0..ROUNDS {
        let begin = clock.monotonic();
        round()?;
        times.push(clock.monotonic().saturating_sub(begin));
    }
    times.sort_unstable();
    let each = |time: Duration| time.as_nanos() as u64 / CALLS;
    let (median, least) = (each(times[ROUNDS / 2]), each(times[0]));
    println!(
        "{name:16} {runs} runs {median:7} {least:7}, a run {:6} {:6}",
        median / runs,
        least / runs
    );
    Ok(())
}

fn key(number: u64) -> Vec<u8> {
    format!("user{number:012}").into_bytes()
}

fn main() -> Outcome {
    let mut args = std::env::args().skip(1);
    let dir = args.next().ok_or("a directory is missing")?;
    let keys: u64 = args.next().map_or(Ok(1_000_000), |text| text.parse())?;
    let options = Options {
        error_if_exists: true,
        tuning: Tuning {
            automatic_compactions: false,
            ..Tuning::default()
        },
        ..Options::default()
    };
    let db = Db::open(Path::new(&dir), options)?;
    let family = db.default_family();
    let mut rng = Rng::new(1);
    let mut runs = 0;
    for wanted in [1, 2, 4, 8] {
        while runs < wanted {
            for number in (runs..keys).step_by(8) {
                db.put_cf(family, key(number), [7; 100], &WriteOptions::default())?;
            }
            db.flush()?;
            runs += 1;
        }
        db.count_range(family, None, None)?; // Opens the tables.
        let unranked = table_bytes(&db);
        line("count_range", runs, || {
            for _ in 0..CALLS {
                let from = rng.below(keys);
                let to = from + 1 + rng.below(keys / 10);
                let count = db.count_range(family, Some(&key(from)), Some(&key(to)))?;
                assert!(count.keys.end() * 8 <= (to - from + 8) * runs, "{count:?}");
            }
            Ok(())
        })?;
        let ranks = table_bytes(&db) - unranked;
        let entries = ((runs - runs / 2) * keys / 8) as f64;
        println!("{:.2} bytes an entry for ranks", ranks as f64 / entries);
        line("key_at_rank", runs, || {
            for _ in 0..CALLS {
                let rank = rng.below(keys / 8);
                let found = db.key_at_rank(family, rank)?.ok_or("there are so many")?;
                assert!(found.rank.start() <= found.rank.end());
            }
            Ok(())
        })?;
    }
    db.close()?;
    Ok(())
}
