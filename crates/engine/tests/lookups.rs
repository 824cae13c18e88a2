//! Goal: gets and batched gets find every key's newest value while all that they read from comes and
//! goes under them: memtables are flushed, tables compacted and closed, blocks evicted, families
//! dropped. Method: real files, tiny memtables, tables and caches, few open tables; each value says
//! whose it is and which one, and no reader may see a key go back.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use drumlin::{ColumnFamily, Db, FamilyOptions, Options, ReadOptions, Tuning, WriteOptions};
use drumlin_base::rng::Rng;
use drumlin_testkit::temp_dir;

const KEYS: u64 = 400;
const ROUNDS: u64 = 25;

fn tiny() -> Options {
    Options {
        memory_budget: Some(4 << 20),
        max_open_files: Some(9),
        background_threads: Some(2),
        tuning: Tuning {
            write_buffer_bytes: Some(48 << 10),
            target_file_bytes: 24 << 10,
            level_base_bytes: Some(96 << 10),
            block_bytes: 1 << 10,
            blob_from_bytes: Some(2000),
            l0_trigger: 2,
            ..Tuning::default()
        },
        ..Options::default()
    }
}

fn key(number: u64) -> Vec<u8> {
    format!("key-{:06}", number.wrapping_mul(7919) % 1_000_003).into_bytes()
}

/// Short ones are copied by a read, long ones pinned in place, the longest in blob files.
fn value(number: u64, round: u64) -> Vec<u8> {
    let len = [20, 126, 127, 700, 2500][number as usize % 5];
    let mut value = vec![(number ^ round) as u8; len];
    value[..8].copy_from_slice(&number.to_be_bytes());
    value[8..16].copy_from_slice(&round.to_be_bytes());
    value
}

/// The round of a value that must be one of `number`'s.
fn round_of(number: u64, found: &[u8]) -> u64 {
    let round = u64::from_be_bytes(found[8..16].try_into().expect("eight bytes"));
    assert_eq!(found, value(number, round), "key {number}");
    round
}

fn write_all(db: &Db, family: &ColumnFamily, round: u64) {
    for number in 0..KEYS {
        let value = value(number, round);
        db.put_cf(family, key(number), value, &WriteOptions::default())
            .expect("nothing fails here");
    }
}

/// Reads keys one by one and in batches of any size; some values are held for a while.
fn read(db: &Db, family: &ColumnFamily, seed: u64, done: &AtomicU64, stop: &AtomicBool) {
    let mut rng = Rng::new(seed);
    let mut newest: HashMap<u64, u64> = HashMap::new();
    let mut held = Vec::new();
    while !stop.load(Ordering::Acquire) {
        let least = done.load(Ordering::Acquire);
        let count = rng.below(70);
        let numbers: Vec<_> = (0..count).map(|_| rng.below(KEYS + 40)).collect();
        let keys: Vec<_> = numbers.iter().map(|&number| key(number)).collect();
        let found = match rng.one_in(3) {
            true => keys
                .iter()
                .map(|key| db.get_cf(family, key, &ReadOptions::default()))
                .collect(),
            false => db.multi_get_cf(family, &keys, &ReadOptions::default()),
        };
        for (number, found) in numbers.into_iter().zip(found) {
            let Some(found) = found.expect("nothing fails here") else {
                assert!(number >= KEYS, "key {number} is lost");
                continue;
            };
            let round = round_of(number, &found);
            let seen = newest.entry(number).or_insert(least);
            assert!(
                round >= (*seen).max(least),
                "key {number} went back to {round}"
            );
            *seen = round;
            if rng.one_in(50) {
                held.push((number, round, found));
            }
        }
        if held.len() > 100 {
            held.clear();
        }
        for (number, round, value) in &held {
            assert_eq!(round_of(*number, value), *round, "a held value changed");
        }
    }
}

#[test]
fn lookups_are_right_while_everything_they_read_from_is_replaced() {
    let dir = temp_dir();
    let db = Db::open(dir.path(), tiny()).unwrap();
    let family = db.default_family().clone();
    write_all(&db, &family, 0);
    let (done, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        for seed in 0..2 {
            let (db, family, done, stop) = (&db, &family, &done, &stop);
            scope.spawn(move || read(db, family, seed, done, stop));
        }
        for round in 1..=ROUNDS {
            write_all(&db, &family, round);
            done.store(round, Ordering::Release);
            if round % 5 == 0 {
                db.flush_cf(&family).unwrap();
            }
            if round % 8 == 0 {
                db.compact_range(&family, None, None).unwrap();
            }
        }
        stop.store(true, Ordering::Release);
    });
    db.close().unwrap();
}

#[test]
fn lookups_in_a_family_go_on_when_it_is_dropped_under_them() {
    let dir = temp_dir();
    let db = Db::open(dir.path(), tiny()).unwrap();
    for life in 0..4 {
        let family = db.create_family("brief", FamilyOptions::default()).unwrap();
        for round in 0..2 {
            write_all(&db, &family, round);
        }
        let (done, stop) = (AtomicU64::new(1), AtomicBool::new(false));
        std::thread::scope(|scope| {
            for seed in 0..2 {
                let (db, family, done, stop) = (&db, &family, &done, &stop);
                scope.spawn(move || read(db, family, life * 2 + seed, done, stop));
            }
            db.compact_range(&family, None, None).unwrap();
            db.drop_family(&family).unwrap();
            // Writes elsewhere take memory and blocks from the dropped family's readers.
            write_all(&db, db.default_family(), life);
            stop.store(true, Ordering::Release);
        });
    }
    db.close().unwrap();
}
