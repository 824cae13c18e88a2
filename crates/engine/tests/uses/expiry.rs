//! Goal: after its deadline a transaction holds nobody up and never commits, not in part. Method: a clock that advances
//! when told, step by step, for locks of keys and of ranges; threads whose transfers often expire, and a sum that stays.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use drumlin::{
    ColumnFamily, Db, Env, ErrorKind, Isolation, Locking, Options, TransactionDb,
    TransactionOptions,
};
use drumlin_base::rng::Rng;
use drumlin_fs::{ManualClock, StrictMemFileSystem};

const MOMENT: Duration = Duration::from_millis(10);

fn open_in(env: Env) -> TransactionDb {
    let options = Options {
        background_threads: Some(0),
        env: env.with_files(Arc::new(StrictMemFileSystem::new())),
        ..Options::default()
    };
    let db = Db::open("/db", options).expect("memory does not fail");
    TransactionDb::over(db, Locking::default()).expect("nothing is prepared")
}

fn open() -> (TransactionDb, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::new(1));
    let mut env = Env::system();
    env.clock = Arc::clone(&clock) as Arc<_>;
    (open_in(env), clock)
}

fn short() -> TransactionOptions {
    TransactionOptions {
        snapshot: false,
        expiration: Some(MOMENT),
        ..TransactionOptions::default()
    }
}

/// Waits for no lock.
fn at_once() -> TransactionOptions {
    TransactionOptions {
        snapshot: false,
        lock_timeout: Some(Duration::ZERO),
        ..TransactionOptions::default()
    }
}

fn value(db: &TransactionDb, key: &str) -> Option<Vec<u8>> {
    let found = db
        .get(db.default_family(), key)
        .expect("memory does not fail");
    found.map(|value| value.to_vec())
}

fn is_expired<T: std::fmt::Debug>(result: drumlin::Result<T>) {
    let error = result.expect_err("its time is over");
    assert_eq!(error.kind(), ErrorKind::Expired, "{error}");
}

#[test]
fn the_locks_of_an_expired_transaction_are_taken_and_it_writes_nothing() {
    let (db, clock) = open();
    let family = db.default_family();
    let mut old = db.begin_with(short());
    old.put(family, "a", "old").unwrap();
    old.put(family, "b", "old").unwrap();
    let mut other = db.begin_with(at_once());
    let early = other.put(family, "a", "new").unwrap_err();
    assert_eq!(early.kind(), ErrorKind::TimedOut, "it has time left");
    clock.advance(MOMENT);
    other.put(family, "a", "new").unwrap();
    is_expired(old.put(family, "c", "old"));
    is_expired(old.commit());
    assert_eq!(value(&db, "b"), None);
    // What the one that lost does at its end takes nothing from the one that won.
    let third = db.begin_with(at_once()).put(family, "a", "third");
    assert_eq!(third.unwrap_err().kind(), ErrorKind::TimedOut);
    db.begin_with(at_once()).put(family, "b", "third").unwrap();
    other.commit().unwrap();
    assert_eq!(value(&db, "a").as_deref(), Some(&b"new"[..]));
}

#[test]
fn a_commit_is_refused_after_the_deadline_and_not_before() {
    let (db, clock) = open();
    let family = db.default_family();
    for isolation in [
        Isolation::Locks,
        Isolation::Snapshot,
        Isolation::Serializable,
    ] {
        let options = TransactionOptions {
            isolation: Some(isolation),
            ..short()
        };
        let mut in_time = db.begin_with(options);
        in_time.put(family, "in time", "1").unwrap();
        let mut late = db.begin_with(options);
        late.put(family, "late", "1").unwrap();
        clock.advance(MOMENT - Duration::from_nanos(1));
        in_time.commit().unwrap();
        clock.advance(Duration::from_nanos(1));
        is_expired(late.commit());
        let mut late = db.begin_with(options);
        late.put(family, "late", "1").unwrap();
        clock.advance(MOMENT);
        is_expired(late.prepare("late"));
    }
    assert!(value(&db, "in time").is_some() && value(&db, "late").is_none());
    assert!(db.prepared_transactions().is_empty());
}

#[test]
fn ranges_expire_too_and_what_is_prepared_does_not() {
    let (db, clock) = open();
    let family = db.default_family();
    let range: (Option<&[u8]>, Option<&[u8]>) = (Some(b"a"), Some(b"k"));
    let mut old = db.begin_with(short());
    old.lock_range(family, range.0, range.1).unwrap();
    old.put(family, "x", "old").unwrap();
    clock.advance(MOMENT);
    let mut other = db.begin_with(at_once());
    other.put(family, "b", "new").unwrap();
    let mut third = db.begin_with(at_once());
    third.lock_range(family, Some(b"w"), None).unwrap();
    drop(old);
    let held = db
        .begin_with(at_once())
        .lock_range(family, range.0, range.1);
    assert_eq!(
        held.unwrap_err().kind(),
        ErrorKind::TimedOut,
        "a key in it is held"
    );
    drop((other, third));

    let mut prepared = db.begin_with(short());
    prepared.put(family, "p", "prepared").unwrap();
    let prepared = prepared.prepare("it").unwrap();
    clock.advance(10 * MOMENT);
    let met = db.begin_with(at_once()).put(family, "p", "other");
    assert_eq!(met.unwrap_err().kind(), ErrorKind::TimedOut);
    prepared.commit().unwrap();
    assert_eq!(value(&db, "p").as_deref(), Some(&b"prepared"[..]));
}

fn balance(
    tx: &mut drumlin::Transaction<'_>,
    family: &ColumnFamily,
    key: &str,
) -> drumlin::Result<i64> {
    let found = tx.get_for_update(family, key)?;
    Ok(found.map_or(100, |value| {
        String::from_utf8_lossy(&value).parse().expect("a number")
    }))
}

/// One transfer among ten accounts; how it ended.
fn transfer(db: &TransactionDb, rng: &mut Rng) -> drumlin::Result<()> {
    let family = db.default_family();
    let mut tx = db.begin_with(TransactionOptions {
        snapshot: false,
        lock_timeout: Some(Duration::from_millis(20)),
        expiration: rng.one_in(2).then(|| Duration::from_micros(rng.below(20))),
        ..TransactionOptions::default()
    });
    let (from, to) = (format!("{}", rng.below(10)), format!("{}", rng.below(10)));
    if from == to {
        return Ok(());
    }
    let before = balance(&mut tx, family, &from)?;
    tx.put(family, &from, (before - 1).to_string())?;
    let before = balance(&mut tx, family, &to)?;
    tx.put(family, &to, (before + 1).to_string())?;
    tx.commit().map(drop)
}

#[test]
fn transfers_that_expire_lose_nothing() {
    let db = open_in(Env::system());
    let (done, expired) = (AtomicU64::new(0), AtomicU64::new(0));
    thread::scope(|scope| {
        for seed in 0..4 {
            let (db, done, expired) = (&db, &done, &expired);
            scope.spawn(move || {
                let mut rng = Rng::new(seed);
                for _ in 0..2000 {
                    match transfer(db, &mut rng) {
                        Ok(()) => done.fetch_add(1, Ordering::Relaxed),
                        Err(error) if error.kind() == ErrorKind::Expired => {
                            expired.fetch_add(1, Ordering::Relaxed)
                        }
                        Err(error) => {
                            let may_be = [ErrorKind::TimedOut, ErrorKind::Deadlock];
                            assert!(may_be.contains(&error.kind()), "{error}");
                            0
                        }
                    };
                }
            });
        }
    });
    let accounts = (0..10).map(|number| value(&db, &number.to_string()));
    let balances = accounts.map(|found| match found {
        Some(value) => String::from_utf8_lossy(&value)
            .parse::<i64>()
            .expect("a number"),
        None => 100,
    });
    assert_eq!(balances.sum::<i64>(), 1000);
    let (done, expired) = (done.into_inner(), expired.into_inner());
    assert!(done > 100 && expired > 10, "{done} {expired}");
}
