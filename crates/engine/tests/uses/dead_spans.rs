//! Goal: walks that go past spans which earlier walks found dead show what is there, and nothing else. Method: random
//! histories with long runs of deleted keys, walked and sought at the present and at snapshots beside maps; threads that
//! put into such runs and take out of them while each walk is compared with gets at the same snapshot, which know of no spans.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use drumlin::{Db, Env, Options, ReadOptions, Snapshot};
use drumlin_base::rng::Rng;
use drumlin_fs::StrictMemFileSystem;

type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

fn open() -> Db {
    let options = Options {
        memory_budget: Some(256 << 20),
        background_threads: Some(0),
        env: Env::system().with_files(Arc::new(StrictMemFileSystem::new())),
        ..Options::default()
    };
    Db::open("/db", options).expect("memory does not fail")
}

fn key(number: u64) -> Vec<u8> {
    format!("key{number:05}").into_bytes()
}

fn at(snapshot: Option<&Snapshot>) -> ReadOptions {
    ReadOptions {
        snapshot: snapshot.cloned(),
        ..ReadOptions::default()
    }
}

/// One walk from a random key, to a bound or the end, compared with `rows`.
fn check(db: &Db, rows: &Rows, snapshot: Option<&Snapshot>, rng: &mut Rng, keys: u64) {
    let begin = key(rng.below(keys));
    let upper = rng.one_in(3).then(|| key(rng.below(keys)));
    let mut iter = db.iter(ReadOptions {
        upper_bound: upper.clone(),
        ..at(snapshot)
    });
    let expected = rows.range(begin.clone()..);
    let expected = expected.take_while(|(key, _)| upper.as_ref().is_none_or(|upper| *key < upper));
    iter.seek(&begin);
    for (key, value) in expected.take(40) {
        assert!(iter.valid(), "{key:?} is missing");
        assert_eq!((iter.key(), iter.value()), (&key[..], &value[..]));
        iter.next();
    }
    iter.seek(&begin);
    let first = rows.range(begin..).next().map(|(key, _)| key);
    let first = first.filter(|key| upper.as_ref().is_none_or(|upper| *key < upper));
    assert_eq!(iter.valid().then(|| iter.key().to_vec()).as_ref(), first);
    iter.status().expect("memory does not fail");
}

#[test]
fn walks_past_dead_spans_show_what_is_there() {
    const KEYS: u64 = 1500;
    for seed in 0..8 {
        let (db, mut rng) = (open(), Rng::new(seed));
        let mut rows = Rows::new();
        let mut snapshots: Vec<(Snapshot, Rows)> = Vec::new();
        for step in 0..600 {
            let from = rng.below(KEYS);
            match rng.below(10) {
                0..3 => {
                    for number in from..(from + rng.below(400)).min(KEYS) {
                        db.delete(key(number)).unwrap();
                        rows.remove(&key(number));
                    }
                }
                3 => {
                    for number in from..(from + rng.below(300)).min(KEYS) {
                        db.put(key(number), "again").unwrap();
                        rows.insert(key(number), b"again".to_vec());
                    }
                }
                4..6 => {
                    let value = step.to_string().into_bytes();
                    db.put(key(from), &value).unwrap();
                    rows.insert(key(from), value);
                }
                6 if rng.one_in(4) => db.flush().unwrap(),
                6 if snapshots.len() < 3 => snapshots.push((db.snapshot(), rows.clone())),
                7 if snapshots.len() == 3 => drop(snapshots.remove(0)),
                _ => {}
            }
            check(&db, &rows, None, &mut rng, KEYS);
            if let Some((snapshot, rows)) = snapshots.get(rng.below(3) as usize) {
                check(&db, rows, Some(snapshot), &mut rng, KEYS);
            }
        }
    }
}

#[test]
fn a_walk_notes_what_the_next_one_goes_past() {
    const DEAD: u64 = 20_000;
    let db = open();
    for number in 0..DEAD + 10 {
        db.put(key(number), "job").unwrap();
    }
    (0..DEAD).for_each(|number| db.delete(key(number)).unwrap());
    let seek_first = |expected: Option<u64>| {
        let mut iter = db.iter(ReadOptions::default());
        iter.seek_to_first();
        assert_eq!(iter.valid().then(|| iter.key().to_vec()), expected.map(key));
        iter.counters().tombstones
    };
    assert!(seek_first(Some(DEAD)) >= DEAD, "nothing is known yet");
    assert!(seek_first(Some(DEAD)) < 200);
    // The queue goes on at both ends.
    for passing in 0..1000 {
        db.put(key(DEAD + 10 + passing), "job").unwrap();
        db.delete(key(DEAD + passing)).unwrap();
        assert!(seek_first(Some(DEAD + passing + 1)) < 300, "{passing}");
    }
    // Empty, and not for long.
    (0..10).for_each(|left| db.delete(key(DEAD + 1000 + left)).unwrap());
    seek_first(None);
    assert!(seek_first(None) < 300);
    db.put(key(77), "urgent").unwrap();
    assert!(seek_first(Some(77)) < 300);
}

#[test]
fn a_walk_that_misses_writes_notes_nothing() {
    let db = open();
    (0..1000).for_each(|number| db.put(key(number), "1").unwrap());
    db.flush().unwrap();
    (0..1000).for_each(|number| db.delete(key(number)).unwrap());
    db.flush().unwrap();
    let mut early = db.iter(ReadOptions::default()); // The memtable is empty, and no source of it.
    db.put(key(500), "new").unwrap();
    early.seek_to_first();
    assert!(!early.valid());
    let mut late = db.iter(ReadOptions::default());
    late.seek_to_first();
    assert_eq!(late.key(), key(500));
}

#[test]
fn threads_that_write_into_dead_spans_are_seen() {
    const KEYS: u64 = 600;
    let (db, is_over) = (open(), AtomicBool::new(false));
    (0..KEYS).for_each(|number| db.put(key(number), "first").unwrap());
    thread::scope(|scope| {
        for seed in 0..2 {
            let (db, is_over) = (&db, &is_over);
            scope.spawn(move || {
                let mut rng = Rng::new(seed);
                while !is_over.load(Ordering::Relaxed) {
                    let number = rng.below(KEYS);
                    // Mostly dead, so that spans are long.
                    match rng.below(40) {
                        0 => db.put(key(number), "again").unwrap(),
                        _ => db.delete(key(number)).unwrap(),
                    }
                }
            });
        }
        let mut rng = Rng::new(9);
        for round in 0..3000 {
            let mut iter = db.iter(ReadOptions::default());
            iter.seek(&key(rng.below(30)));
            drop(iter); // It read the present, and left a note.
            let snapshot = db.snapshot();
            let mut iter = db.iter(at(Some(&snapshot)));
            iter.seek_to_first();
            let found = iter.valid().then(|| iter.key().to_vec());
            let is_there = |number: &u64| {
                let value = db.get_cf(db.default_family(), key(*number), &at(Some(&snapshot)));
                value.unwrap().is_some()
            };
            let expected = (0..KEYS).find(is_there).map(key);
            assert_eq!(found, expected, "round {round}");
        }
        is_over.store(true, Ordering::Relaxed);
    });
}
