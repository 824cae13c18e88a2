//! Goal: a transaction reads what it wrote, keeps others from what it locked, is refused what changed since its
//! snapshot, and is written whole or not at all; no update is lost, no sum of a transfer is seen half-way. Method: random
//! transactions beside a map; histories of two transactions step by step; threads that count and transfer.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use drumlin::{
    ColumnFamily, Comparator, Env, ErrorKind, FamilyOptions, KeyOrder, Locking, Options,
    ReadOptions, StringAppend, Transaction, TransactionDb, TransactionOptions, WriteBatch,
    WriteOptions,
};
use drumlin_base::rng::Rng;
use drumlin_fs::StrictMemFileSystem;

const DIR: &str = "/db";

fn open_in(env: &Env, locking: Locking) -> TransactionDb {
    let options = Options {
        env: env.clone(),
        family: FamilyOptions {
            merge_operator: Some(Arc::new(StringAppend::new(","))),
            ..FamilyOptions::default()
        },
        ..Options::default()
    };
    TransactionDb::open(DIR, options, locking).unwrap()
}

fn memory() -> Env {
    Env::system().with_files(Arc::new(StrictMemFileSystem::new()))
}

fn open() -> TransactionDb {
    open_in(&memory(), Locking::default())
}

/// A database where nobody waits.
fn impatient() -> TransactionDb {
    let timeout = Duration::ZERO;
    open_in(
        &memory(),
        Locking {
            timeout,
            ..Locking::default()
        },
    )
}

fn number(value: Option<&[u8]>) -> u64 {
    value.map_or(0, |value| u64::from_le_bytes(value.try_into().unwrap()))
}

type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

fn rows(db: &TransactionDb) -> Rows {
    let mut cursor = db.iter(db.default_family(), ReadOptions::default());
    let mut rows = Rows::new();
    cursor.seek_to_first();
    while cursor.valid() {
        rows.insert(cursor.key().to_vec(), cursor.value().to_vec());
        cursor.next();
    }
    cursor.status().unwrap();
    rows
}

/// One random step of `tx` and of its twin.
fn step(rng: &mut Rng, tx: &mut Transaction<'_>, family: &ColumnFamily, now: &mut Rows) {
    let key = vec![b'a' + rng.below(5) as u8];
    let value = rng.below(100).to_string().into_bytes();
    match rng.below(6) {
        0 | 1 => {
            tx.put(family, &key, &value).unwrap();
            now.insert(key, value);
        }
        2 => {
            tx.delete(family, &key).unwrap();
            now.remove(&key);
        }
        3 => {
            tx.merge(family, &key, &value).unwrap();
            let merged = match now.get(&key) {
                Some(old) => [&old[..], b",", &value].concat(),
                None => value,
            };
            now.insert(key, merged);
        }
        4 => {
            let read = tx.get_for_update(family, &key).unwrap();
            assert_eq!(read.as_deref(), now.get(&key).map(|value| &value[..]));
        }
        _ => {
            let read = tx.get(family, &key).unwrap();
            assert_eq!(read.as_deref(), now.get(&key).map(|value| &value[..]));
        }
    }
}

#[test]
fn a_transaction_reads_its_own_writes_and_goes_back_to_its_savepoints() {
    let db = open();
    let family = db.default_family();
    let mut committed = Rows::new();
    for seed in 0..400 {
        let mut rng = Rng::new(seed);
        let mut tx = db.begin();
        let mut now = committed.clone();
        let mut saved: Vec<Rows> = Vec::new();
        for _ in 0..30 {
            match rng.below(12) {
                0 => {
                    tx.set_savepoint();
                    saved.push(now.clone());
                }
                1 => match saved.pop() {
                    Some(before) => {
                        tx.rollback_to_savepoint().unwrap();
                        now = before;
                    }
                    None => {
                        let error = tx.rollback_to_savepoint().unwrap_err();
                        assert_eq!(error.kind(), ErrorKind::NotFound);
                    }
                },
                _ => step(&mut rng, &mut tx, family, &mut now),
            }
        }
        assert_eq!(rows(&db), committed, "seed {seed}: others see it too early");
        if rng.below(3) > 0 {
            tx.commit().unwrap();
            committed = now;
        } else {
            tx.rollback();
        }
        assert_eq!(rows(&db), committed, "seed {seed}");
        if rng.below(20) == 0 {
            db.flush().unwrap();
        }
    }
}

#[test]
fn nested_work_that_fails_is_undone_and_the_rest_is_kept() {
    let db = open();
    let family = db.default_family();
    let mut tx = db.begin();
    tx.put(family, b"kept", b"1").unwrap();
    let failed = tx.nested(|tx| {
        tx.put(family, b"kept", b"2")?;
        tx.put(family, b"undone", b"3")?;
        tx.set_savepoint();
        Err::<(), _>(drumlin::Error::new(ErrorKind::Aborted, "enough"))
    });
    assert_eq!(failed.unwrap_err().kind(), ErrorKind::Aborted);
    // Its lock is free again.
    db.put(family, b"undone", b"by another").unwrap();
    tx.nested(|tx| tx.put(family, b"also", b"4")).unwrap();
    assert!(tx.pop_savepoint().is_err());
    tx.commit().unwrap();
    let want = [("also", "4"), ("kept", "1"), ("undone", "by another")];
    let want = want.map(|(key, value)| (key.into(), value.into()));
    assert_eq!(rows(&db), Rows::from(want));
}

#[test]
fn a_key_that_changed_since_the_snapshot_is_refused_and_its_lock_left() {
    let db = impatient();
    let family = db.default_family();
    db.put(family, b"k", b"old").unwrap();
    db.flush().unwrap();
    let mut tx = db.begin();
    let mut later = db.begin_with(TransactionOptions {
        snapshot: false,
        ..TransactionOptions::default()
    });
    db.put(family, b"k", b"new").unwrap();
    for flushed in [false, true] {
        if flushed {
            db.flush().unwrap();
        }
        let error = tx.put(family, b"k", b"lost update").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Busy);
        assert!(error.to_string().contains("\"k\""), "{error}");
        let error = tx.get_for_update(family, b"k").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Busy);
    }
    assert_eq!(tx.get(family, b"k").unwrap().as_deref(), Some(&b"old"[..]));
    let read = later.get_for_update(family, b"k").unwrap();
    assert_eq!(read.as_deref(), Some(&b"new"[..]));
    // It goes on with other keys.
    tx.put(family, b"other", b"1").unwrap();
    tx.commit().unwrap();
}

#[test]
fn whoever_meets_a_locked_key_is_told_and_gets_it_after_the_end() {
    let db = impatient();
    let family = db.default_family();
    let mut tx = db.begin();
    tx.put(family, b"k", b"1").unwrap();
    let mut batch = WriteBatch::new();
    batch.put(b"a", b"1").unwrap();
    batch.put(b"k", b"2").unwrap();
    let error = db.write(batch, &WriteOptions::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut);
    assert_eq!(rows(&db), Rows::new(), "a part of the batch was written");
    let mut other = db.begin();
    assert_eq!(
        other.get_for_share(family, b"k").unwrap_err().kind(),
        ErrorKind::TimedOut
    );
    drop(tx);
    other.get_for_share(family, b"k").unwrap();
    assert!(db.put(family, b"k", b"2").is_err());
    other.rollback();
    db.put(family, b"k", b"2").unwrap();
    assert_eq!(db.get(family, b"k").unwrap().as_deref(), Some(&b"2"[..]));
}

#[test]
fn write_skew_shows_under_snapshots_alone_and_never_under_shared_locks() {
    let db = impatient();
    let family = db.default_family();
    // The canary: each of two sees that the other is there, and leaves.
    let (mut one, mut two) = (db.begin(), db.begin());
    for tx in [&mut one, &mut two] {
        assert!(tx.get(family, b"one").unwrap().is_none());
        assert!(tx.get(family, b"two").unwrap().is_none());
    }
    one.put(family, b"one", b"gone").unwrap();
    two.put(family, b"two", b"gone").unwrap();
    one.commit().unwrap();
    two.commit().unwrap();
    assert_eq!(rows(&db).len(), 2, "snapshot isolation allows this");

    let (mut one, mut two) = (db.begin(), db.begin());
    for tx in [&mut one, &mut two] {
        tx.get_for_share(family, b"one").unwrap();
        tx.get_for_share(family, b"two").unwrap();
    }
    let error = one.delete(family, b"one").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut);
    drop(two);
    one.delete(family, b"one").unwrap();
    one.commit().unwrap();
}

struct ByLength;

impl Comparator for ByLength {
    fn name(&self) -> &'static str {
        "by length"
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        a.len().cmp(&b.len())
    }
}

#[test]
fn what_cannot_be_locked_is_refused_by_name() {
    let db = open();
    let family = db.default_family();
    let mut batch = WriteBatch::new();
    batch.put(b"a", b"1").unwrap();
    batch.put_cf(77, b"a", b"1").unwrap();
    let error = db.write(batch, &WriteOptions::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(error.to_string().contains("77"), "{error}");
    assert_eq!(rows(&db), Rows::new());

    let options = FamilyOptions {
        order: KeyOrder::Custom(Arc::new(ByLength)),
        ..FamilyOptions::default()
    };
    let odd = db.create_family("odd", options).unwrap();
    let mut tx = db.begin();
    let error = tx.put(&odd, b"k", b"v").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotSupported);
    assert!(error.to_string().contains("odd"), "{error}");
    let error = tx.merge(&odd, b"k", b"v").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);

    let foreign = open();
    for outcome in [
        tx.put(foreign.default_family(), b"k", b"v"),
        tx.get(foreign.default_family(), b"k").map(drop),
    ] {
        assert_eq!(outcome.unwrap_err().kind(), ErrorKind::InvalidArgument);
    }
    tx.put(family, b"k", b"v").unwrap();
    tx.commit().unwrap();
}

#[test]
fn no_update_is_lost_and_no_transfer_is_seen_half_way() {
    const THREADS: u64 = 4;
    const ROUNDS: u64 = 150;
    const ACCOUNTS: u64 = 4;
    const EACH: u64 = 1000;
    let env = memory();
    let db = open_in(&env, Locking::default());
    let family = db.default_family();
    for account in 0..ACCOUNTS {
        let key = [b'0' + account as u8];
        db.put(family, key, EACH.to_le_bytes()).unwrap();
    }
    let sum = |db: &TransactionDb| {
        let rows = rows(db).into_iter().filter(|(key, _)| key[0] != b'n');
        rows.map(|(_, value)| number(Some(&value))).sum::<u64>()
    };
    thread::scope(|scope| {
        for seed in 0..THREADS {
            let db = &db;
            scope.spawn(move || {
                let mut rng = Rng::new(seed);
                let mut done = 0;
                while done < ROUNDS {
                    let from = [b'0' + rng.below(ACCOUNTS) as u8];
                    let to = [b'0' + rng.below(ACCOUNTS) as u8];
                    // Locked in any order: they wait for each other in circles.
                    let outcome = db.run(|tx| {
                        let left = number(tx.get_for_update(family, from)?.as_deref());
                        tx.put(family, from, (left - 1).to_le_bytes())?;
                        let had = number(tx.get_for_update(family, to)?.as_deref());
                        tx.put(family, to, (had + 1).to_le_bytes())?;
                        let count = number(tx.get_for_update(family, b"n")?.as_deref());
                        tx.put(family, b"n", (count + 1).to_le_bytes())
                    });
                    match outcome {
                        Ok(()) => done += 1,
                        Err(error) => assert!(
                            matches!(
                                error.kind(),
                                ErrorKind::Busy | ErrorKind::Deadlock | ErrorKind::TimedOut
                            ),
                            "{error}"
                        ),
                    }
                }
            });
        }
        for _ in 0..200 {
            assert_eq!(sum(&db), ACCOUNTS * EACH);
        }
    });
    let count = db.get(family, b"n").unwrap();
    assert_eq!(number(count.as_deref()), THREADS * ROUNDS);
    db.close().unwrap();
    let db = open_in(&env, Locking::default());
    assert_eq!(sum(&db), ACCOUNTS * EACH);
}

#[test]
fn a_read_as_of_now_sees_what_the_snapshot_does_not_and_own_writes_first() {
    let db = open();
    let family = db.default_family();
    db.put(family, b"a", b"old").unwrap();
    let mut tx = db.begin();
    tx.put(family, b"own", b"1").unwrap();
    db.put(family, b"a", b"new").unwrap();
    db.put(family, b"b", b"new").unwrap();
    let now = ReadOptions::default();
    let text = |value: Option<drumlin::PinnedSlice>| value.map(|value| value.to_vec());
    assert_eq!(text(tx.get(family, b"a").unwrap()), Some(b"old".to_vec()));
    assert_eq!(
        text(tx.get_as(family, b"a", &now).unwrap()),
        Some(b"new".to_vec())
    );
    assert_eq!(text(tx.get(family, b"b").unwrap()), None);
    assert_eq!(
        text(tx.get_as(family, b"b", &now).unwrap()),
        Some(b"new".to_vec())
    );
    assert_eq!(
        text(tx.get_as(family, b"own", &now).unwrap()),
        Some(b"1".to_vec())
    );
    assert_eq!(tx.batch().count(), 1);
}

#[test]
fn transactions_over_an_open_database_lock_each_other_and_see_its_writes() {
    let options = Options {
        env: memory(),
        ..Options::default()
    };
    let base = drumlin::Db::open(DIR, options).unwrap();
    base.put(b"a", b"1").unwrap();
    let locking = Locking {
        timeout: Duration::ZERO,
        ..Locking::default()
    };
    let db = TransactionDb::over(base.clone(), locking).unwrap();
    let family = db.default_family();
    let mut tx = db.begin();
    assert_eq!(tx.get(family, b"a").unwrap().as_deref(), Some(&b"1"[..]));
    tx.put(family, b"a", b"2").unwrap();
    let refused = db.put(family, b"a", b"3").unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::TimedOut);
    tx.commit().unwrap();
    assert_eq!(base.get(b"a").unwrap().as_deref(), Some(&b"2"[..]));
}
