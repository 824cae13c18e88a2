//! Prints what the times of calls cost (`Options::timings`): gets, batches of gets, seeks and puts, with data in memory, under each kind
//! of `Timings`. Three databases take turns, a few thousand calls each; from life to life they change roles, so that it does not matter
//! where in memory one of them lies. Medians of the nanoseconds a call, and of what each kind takes over none in the same turn.
//!
//! `cargo run --release -p drumlin --example timings DIR [lives]`: DIR is made and written to.
#![expect(clippy::disallowed_methods, reason = "a benchmark measures time")]
#![expect(clippy::print_stdout, reason = "a benchmark prints")]

use std::path::Path;
use std::time::Instant;

use drumlin::{Db, Options, ReadOptions, Result, Timings, Tuning};
use drumlin_base::rng::Rng;

const KEYS: u64 = 300_000;
const VALUE: [u8; 100] = [0x61; 100];
const KINDS: [Timings; 3] = [Timings::Jobs, Timings::Sampled, Timings::Calls];
/// Turns of a life, and calls of each kind in a turn.
const TURNS: usize = 20;
const CALLS: u64 = 10_000;
const BATCH: usize = 32;

type Call = fn(&Db, &mut Rng) -> Result<()>;

const CALLS_OF: [(&str, Call); 4] = [
    ("get", get),
    ("gets in batches of 32", multi_get),
    ("seek", seek),
    ("put", put),
];

fn key(rng: &mut Rng) -> [u8; 8] {
    rng.below(KEYS).to_be_bytes()
}

fn get(db: &Db, rng: &mut Rng) -> Result<()> {
    for _ in 0..CALLS {
        std::hint::black_box(db.get(key(rng))?);
    }
    Ok(())
}

fn multi_get(db: &Db, rng: &mut Rng) -> Result<()> {
    let read = ReadOptions::default();
    for _ in 0..CALLS / BATCH as u64 {
        let keys: [_; BATCH] = std::array::from_fn(|_| key(rng));
        for found in db.multi_get_cf(db.default_family(), &keys, &read) {
            std::hint::black_box(found?);
        }
    }
    Ok(())
}

fn seek(db: &Db, rng: &mut Rng) -> Result<()> {
    for _ in 0..CALLS {
        let mut entries = db.iter(ReadOptions::default());
        entries.seek(&key(rng));
        std::hint::black_box(entries.value());
        entries.status()?;
    }
    Ok(())
}

fn put(db: &Db, rng: &mut Rng) -> Result<()> {
    for _ in 0..CALLS {
        db.put(key(rng), VALUE)?;
    }
    Ok(())
}

fn open(dir: &Path, timings: Timings) -> Result<Db> {
    let options = Options {
        timings,
        tuning: Tuning {
            write_buffer_bytes: Some(256 << 20),
            ..Tuning::default()
        },
        ..Options::default()
    };
    Db::open(dir, options)
}

/// The middle and the quartiles.
fn quartiles(mut numbers: Vec<f64>) -> [f64; 3] {
    numbers.sort_by(f64::total_cmp);
    [2, 1, 3].map(|quarter| {
        let at = numbers.len() * quarter / 4;
        numbers.get(at).copied().unwrap_or(f64::NAN)
    })
}

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let dir = arguments.next().ok_or("which directory?")?;
    let lives: usize = arguments.next().map_or(Ok(6), |lives| lives.parse())?;
    let mut taken = vec![[const { Vec::new() }; KINDS.len()]; CALLS_OF.len()];
    for life in 0..lives {
        let places = (0..KINDS.len()).map(|kind| (kind + life) % KINDS.len());
        let mut stores = Vec::new();
        for (place, timings) in places.zip(KINDS) {
            let store = open(&Path::new(&dir).join(place.to_string()), timings)?;
            for number in 0..KEYS {
                store.put(number.to_be_bytes(), VALUE)?;
            }
            store.compact_range(store.default_family(), None, None)?;
            stores.push(store);
        }
        for turn in 0..=TURNS {
            for ((_, call), taken) in CALLS_OF.iter().zip(&mut taken) {
                let mut rng = Rng::new((life * TURNS + turn) as u64);
                for at in 0..KINDS.len() {
                    let kind = (at + turn) % KINDS.len();
                    let begun = Instant::now();
                    call(&stores[kind], &mut rng)?;
                    let nanos = begun.elapsed().as_nanos() as f64 / CALLS as f64;
                    if turn > 0 {
                        taken[kind].push(nanos);
                    }
                }
            }
        }
        stores.into_iter().try_for_each(Db::close)?;
    }
    for ((name, _), taken) in CALLS_OF.iter().zip(taken) {
        let [off, _, _] = quartiles(taken[0].clone());
        print!("{name:<22} {off:>7.1} ns");
        for (kind, own) in KINDS.iter().zip(&taken).skip(1) {
            let ratios = own.iter().zip(&taken[0]).map(|(own, off)| own / off);
            let [middle, low, high] = quartiles(ratios.collect());
            print!("  {kind:?} {middle:.3} ({low:.3} to {high:.3})");
        }
        println!();
    }
    Ok(())
}
