//! Goal: transactions prepared by RocksDB are prepared for us, and ours for it; whoever has the directory may end them,
//! and the other sees the same. Method: rounds in which either opens one directory, prepares some, ends some, flushes or
//! not, beside a map of what must be there; every seed another history.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use drumlin::{Db, KeepChanges, Locking, Options, TransactionDb};
use drumlin_base::rng::Rng;
use drumlin_interop::*;
use drumlin_testkit::temp_dir;

const NEW: &str = "create_if_missing=true";
const ROUNDS: u64 = 8;

/// What must be there: rows, and prepared transactions of one row each.
#[derive(Default)]
struct Expected {
    rows: BTreeMap<Vec<u8>, Vec<u8>>,
    prepared: BTreeMap<Vec<u8>, (Vec<u8>, Vec<u8>)>,
    next: usize,
}

impl Expected {
    /// A transaction that nobody has, and its row, which no other one has.
    fn fresh(&mut self) -> (String, Vec<u8>, Vec<u8>) {
        self.next += 1;
        let number = self.next;
        (format!("t{number:04}"), key(number), value(number, 1))
    }

    fn end(&mut self, name: &[u8], commits: bool) {
        let (key, value) = self.prepared.remove(name).expect("it was prepared");
        if commits {
            self.rows.insert(key, value);
        }
    }

    fn rows(&self) -> Rows {
        self.rows.clone().into_iter().collect()
    }

    fn names(&self) -> Vec<Vec<u8>> {
        self.prepared.keys().cloned().collect()
    }
}

/// What becomes of a prepared transaction in this round: by its name and the seed, so that both engines can be told.
fn fate(seed: u64, name: &[u8]) -> Option<bool> {
    let sum = name.iter().fold(seed, |sum, byte| {
        sum.wrapping_mul(31).wrapping_add(u64::from(*byte))
    });
    match Rng::new(sum).below(4) {
        0 => Some(false),
        1 => Some(true),
        _ => None,
    }
}

fn ours(dir: &Path, seed: u64, expected: &mut Expected) {
    // Where changes are kept a commit logs its section once more.
    let kept = KeepChanges {
        age: Some(Duration::from_secs(1000)),
        bytes: None,
    };
    let options = Options {
        keep_changes: (seed % 2 == 1).then_some(kept),
        ..small()
    };
    let db = TransactionDb::open(dir, options, Locking::default()).unwrap();
    let family = db.default_family();
    assert_eq!(
        db.prepared_transactions(),
        expected.names(),
        "seed {seed}: ours"
    );
    let mut rng = Rng::new(seed);
    for name in expected.names() {
        if let Some(commits) = fate(seed, &name) {
            let prepared = db.prepared(&name).unwrap();
            match commits {
                true => drop(prepared.commit().unwrap()),
                false => prepared.rollback().unwrap(),
            }
            expected.end(&name, commits);
        }
    }
    for _ in 0..1 + rng.below(4) {
        let (name, key, value) = expected.fresh();
        if rng.one_in(3) {
            db.put(family, &key, &value).unwrap();
            expected.rows.insert(key, value);
            continue;
        }
        let mut tx = db.begin();
        tx.put(family, &key, &value).unwrap();
        let prepared = tx.prepare(&name).unwrap();
        expected
            .prepared
            .insert(name.clone().into_bytes(), (key, value));
        if rng.one_in(3) {
            prepared.commit().unwrap();
            expected.end(name.as_bytes(), true);
        }
        if rng.one_in(3) {
            db.flush().unwrap();
        }
    }
    db.close().unwrap();
}

fn theirs(dir: &Path, seed: u64, expected: &mut Expected) {
    let rocks = RocksTransactions::open(dir, NEW).unwrap();
    let names = rocks.end_prepared(|name| fate(seed, name));
    assert_eq!(names, expected.names(), "seed {seed}: theirs");
    for name in names {
        if let Some(commits) = fate(seed, &name) {
            expected.end(&name, commits);
        }
    }
    let mut rng = Rng::new(seed);
    for _ in 0..1 + rng.below(4) {
        let (name, key, value) = expected.fresh();
        let commit = rng.one_in(3);
        rocks.transact(&name, &key, &value, commit);
        expected
            .prepared
            .insert(name.clone().into_bytes(), (key, value));
        if commit {
            expected.end(name.as_bytes(), true);
        }
    }
}

#[test]
fn prepared_transactions_are_handed_over_and_back() {
    for seed in 0..6u64 {
        let dir = temp_dir();
        let mut expected = Expected::default();
        for round in 0..ROUNDS {
            let of_round = seed * 100 + round;
            match (seed + round) % 2 {
                0 => theirs(dir.path(), of_round, &mut expected),
                _ => ours(dir.path(), of_round, &mut expected),
            }
            if round % 3 == 2 {
                let db = Db::open_read_only(dir.path(), small()).unwrap();
                let what = format!("seed {seed}, round {round}, read only");
                assert_rows(
                    &what,
                    &ours_rows(&db, db.default_family()),
                    &expected.rows(),
                );
                assert_eq!(db.prepared_transactions(), expected.names(), "{what}");
            }
        }
        check_ours_in(
            dir.path(),
            &expected.rows(),
            &format!("seed {seed}, the end"),
        );
        let rocks = RocksTransactions::open(dir.path(), NEW).unwrap();
        assert_eq!(rocks.end_prepared(|_| Some(true)), expected.names());
    }
}
