//! Goal: a transaction that locks or deletes a range keeps others from every key in it, those that are not there
//! included, and is refused a range that changed since its snapshot; no phantom appears. Method: histories of two, step by
//! step, in both built-in orders; random transactions beside a map; threads that take rows out of ranges and put them
//! into others while some add all rows up.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use drumlin::{
    ColumnFamily, Env, ErrorKind, FamilyOptions, KeyOrder, Locking, Options, ReadOptions,
    StringAppend, TransactionDb, TransactionOptions, WriteBatch, WriteOptions,
};
use drumlin_base::rng::Rng;
use drumlin_fs::StrictMemFileSystem;

const DIR: &str = "/db";

fn open(order: KeyOrder, timeout: Duration) -> TransactionDb {
    let options = Options {
        env: Env::system().with_files(Arc::new(StrictMemFileSystem::new())),
        family: FamilyOptions {
            order,
            merge_operator: Some(Arc::new(StringAppend::new(","))),
            ..FamilyOptions::default()
        },
        ..Options::default()
    };
    let locking = Locking {
        timeout,
        ..Locking::default()
    };
    TransactionDb::open(DIR, options, locking).unwrap()
}

/// Where nobody waits.
fn impatient(order: KeyOrder) -> TransactionDb {
    open(order, Duration::ZERO)
}

fn rows(db: &TransactionDb) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let mut cursor = db.iter(db.default_family(), ReadOptions::default());
    let mut rows = BTreeMap::new();
    cursor.seek_to_first();
    while cursor.valid() {
        rows.insert(cursor.key().to_vec(), cursor.value().to_vec());
        cursor.next();
    }
    cursor.status().unwrap();
    rows
}

fn bounds(begin: &[u8], end: &[u8]) -> ReadOptions {
    ReadOptions {
        lower_bound: Some(begin.to_vec()),
        upper_bound: Some(end.to_vec()),
        ..ReadOptions::default()
    }
}

#[test]
fn whoever_meets_a_locked_range_is_told() {
    for order in [KeyOrder::Bytewise, KeyOrder::ReverseBytewise] {
        let db = impatient(order.clone());
        let family = db.default_family();
        let (begin, inside, end, beyond_a) = match order {
            KeyOrder::Bytewise => (b"b", b"c", b"d", b"b"),
            _ => (b"d", b"c", b"b", b"A"),
        };
        for key in [begin, inside, end] {
            db.put(family, key, b"old").unwrap();
        }
        let mut tx = db.begin();
        tx.delete_range(family, begin, end).unwrap();
        assert!(tx.get(family, inside).unwrap().is_none());
        tx.merge(family, inside, b"new").unwrap();
        let refused = |outcome: drumlin::Result<()>| {
            assert_eq!(outcome.unwrap_err().kind(), ErrorKind::TimedOut);
        };
        refused(db.put(family, begin, b"x"));
        refused(db.delete(family, inside));
        refused(db.delete_range(family, begin, inside));
        let mut other = db.begin();
        refused(other.share_range(family, None, Some(end)));
        refused(other.lock_range(family, Some(inside), None));
        refused(other.get_for_share(family, inside).map(drop));
        // Its end is not in it.
        other.put(family, end, b"other").unwrap();
        other.commit().unwrap();
        // Keys first, range second.
        let mut other = db.begin();
        other.get_for_share(family, b"a").unwrap();
        refused(tx.lock_range(family, None, None));
        refused(tx.lock_range(family, Some(b"a"), Some(beyond_a)));
        tx.commit().unwrap();
        let rows: Vec<_> = rows(&db).into_iter().collect();
        let mut want = [
            (inside.to_vec(), b"new".to_vec()),
            (end.to_vec(), b"other".to_vec()),
        ];
        want.sort();
        assert_eq!(rows, want);
    }
}

#[test]
fn a_range_that_changed_since_the_snapshot_is_refused_by_its_key() {
    for order in [KeyOrder::Bytewise, KeyOrder::ReverseBytewise] {
        for change in ["put", "delete", "merge", "delete_range"] {
            let db = impatient(order.clone());
            let family = db.default_family();
            let reversed = matches!(order, KeyOrder::ReverseBytewise);
            let turn = |range: (&'static [u8], &'static [u8])| match reversed {
                true => (range.1, range.0),
                false => range,
            };
            for key in [b"a", b"k", b"z"] {
                db.put(family, key, b"old").unwrap();
            }
            db.flush().unwrap();
            let mut tx = db.begin();
            match change {
                "put" => db.put(family, b"k", b"new").unwrap(),
                "delete" => db.delete(family, b"k").unwrap(),
                "merge" => {
                    let mut batch = WriteBatch::new();
                    batch.merge(b"k", b"new").unwrap();
                    db.write(batch, &WriteOptions::default()).unwrap();
                }
                _ => {
                    let (begin, end) = turn((b"i", b"l"));
                    db.delete_range(family, begin, end).unwrap();
                }
            }
            for flushed in [false, true] {
                if flushed {
                    db.flush().unwrap();
                }
                let (begin, end) = turn((b"j", b"ka"));
                for (begin, end) in [
                    (Some(begin), Some(end)),
                    (None, Some(end)),
                    (Some(begin), None),
                    (None, None),
                ] {
                    let error = tx.lock_range(family, begin, end).unwrap_err();
                    assert_eq!(error.kind(), ErrorKind::Busy, "{change}");
                    assert!(error.to_string().contains("was written"), "{error}");
                }
                let error = tx.delete_range(family, begin, end).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Busy, "{change}");
                let (begin, end) = turn((b"m", b"y"));
                tx.nested(|tx| tx.delete_range(family, begin, end)).unwrap();
                let (begin, end) = turn((b"b", b"h"));
                tx.share_range(family, Some(begin), Some(end)).unwrap();
            }
            // What was refused is locked by nobody.
            let mut later = db.begin();
            let (begin, end) = turn((b"j", b"kb"));
            later.delete_range(family, begin, end).unwrap();
            later.commit().unwrap();
            assert_eq!(rows(&db).len(), 2);
        }
    }
}

#[test]
fn a_phantom_shows_without_a_lock_of_the_range_and_never_with_one() {
    let db = impatient(KeyOrder::Bytewise);
    let family = db.default_family();
    let count = |tx: &mut drumlin::Transaction<'_>, for_update: bool| {
        let options = bounds(b"job/", b"job0");
        let mut walk = match for_update {
            true => tx.iter_for_update(family, options)?,
            false => tx.iter(family, options)?,
        };
        let mut count = 0;
        walk.seek_to_first();
        while walk.valid() {
            count += 1;
            walk.next();
        }
        walk.status().map(|()| count)
    };
    // Each of two adds the only job, as it thinks. The canary: without locks there are two.
    let (mut one, mut two) = (db.begin(), db.begin());
    for (tx, key) in [(&mut one, b"job/1"), (&mut two, b"job/2")] {
        assert_eq!(count(tx, false).unwrap(), 0);
        tx.put(family, key, b"").unwrap();
    }
    one.commit().unwrap();
    two.commit().unwrap();
    assert_eq!(rows(&db).len(), 2, "snapshot isolation allows this");

    db.delete_range(family, b"job/", b"job0").unwrap();
    let (mut one, mut two) = (db.begin(), db.begin());
    assert_eq!(count(&mut one, true).unwrap(), 0);
    assert_eq!(
        count(&mut two, true).unwrap_err().kind(),
        ErrorKind::TimedOut
    );
    one.put(family, b"job/1", b"").unwrap();
    one.commit().unwrap();
    // It is told that its moment has passed.
    assert_eq!(count(&mut two, true).unwrap_err().kind(), ErrorKind::Busy);
    drop(two);
    assert_eq!(count(&mut db.begin(), true).unwrap(), 1);
}

#[test]
fn savepoints_let_ranges_go_that_were_locked_after_them() {
    let db = impatient(KeyOrder::Bytewise);
    let family = db.default_family();
    let mut tx = db.begin();
    tx.lock_range(family, Some(b"a"), Some(b"c")).unwrap();
    tx.set_savepoint();
    tx.put(family, b"b", b"1").unwrap();
    tx.delete_range(family, b"b", b"x").unwrap();
    assert!(db.put(family, b"p", b"1").is_err());
    tx.rollback_to_savepoint().unwrap();
    db.put(family, b"p", b"1").unwrap();
    assert!(db.put(family, b"b", b"1").is_err());
    // No key lies between a key and itself.
    tx.delete_range(family, b"p", b"p").unwrap();
    for outcome in [
        tx.delete_range(family, b"c", b"b"),
        tx.lock_range(family, Some(b"c"), Some(b"b")),
    ] {
        let error = outcome.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(error.to_string().contains("\"c\""), "{error}");
    }
    tx.commit().unwrap();
    assert_eq!(rows(&db).into_keys().collect::<Vec<_>>(), [b"p"]);
}

#[test]
fn random_range_deletions_end_as_a_map_has_them() {
    let db = open(KeyOrder::Bytewise, Duration::from_secs(1));
    let family = db.default_family();
    let mut committed: BTreeMap<Vec<u8>, Vec<u8>> = BTreeMap::new();
    for seed in 0..300 {
        let mut rng = Rng::new(seed);
        let mut tx = db.begin();
        let mut now = committed.clone();
        for _ in 0..20 {
            let key = vec![b'a' + rng.below(12) as u8];
            match rng.below(4) {
                0 => {
                    let end = vec![key[0] + rng.below(4) as u8];
                    tx.delete_range(family, &key, &end).unwrap();
                    let gone = key..end;
                    now.retain(|other, _| !gone.contains(other));
                }
                1 => {
                    let read = tx.get(family, &key).unwrap();
                    assert_eq!(read.as_deref(), now.get(&key).map(|value| &value[..]));
                }
                _ => {
                    tx.put(family, &key, seed.to_le_bytes()).unwrap();
                    now.insert(key, seed.to_le_bytes().to_vec());
                }
            }
        }
        let mut walk = tx.iter(family, ReadOptions::default()).unwrap();
        walk.seek_to_first();
        for (key, value) in &now {
            assert_eq!(
                (walk.key(), walk.value()),
                (&key[..], &value[..]),
                "seed {seed}"
            );
            walk.next();
        }
        assert!(!walk.valid());
        drop(walk);
        if rng.below(2) == 0 {
            tx.commit().unwrap();
            committed = now;
        }
        assert_eq!(rows(&db), committed, "seed {seed}");
    }
}

/// Takes all rows of one box and puts as many with new names into another.
fn move_box(
    db: &TransactionDb,
    family: &ColumnFamily,
    rng: &mut Rng,
    name: u64,
) -> drumlin::Result<()> {
    let (from, to) = (b'0' + rng.below(3) as u8, b'0' + rng.below(3) as u8);
    let mut tx = db.begin_with(TransactionOptions {
        snapshot: rng.below(2) == 0,
        ..TransactionOptions::default()
    });
    let mut count = 0;
    let mut walk = tx.iter_for_update(family, bounds(&[from], &[from + 1]))?;
    walk.seek_to_first();
    while walk.valid() {
        count += 1;
        walk.next();
    }
    walk.status()?;
    drop(walk);
    tx.delete_range(family, [from], [from + 1])?;
    for row in 0..count {
        let key = [&[to][..], &name.to_le_bytes(), &[row]].concat();
        tx.put(family, key, b"")?;
    }
    tx.commit().map(drop)
}

#[test]
fn rows_that_threads_move_between_ranges_are_neither_lost_nor_doubled() {
    const ROWS: u8 = 9;
    let db = open(KeyOrder::Bytewise, Duration::from_secs(1));
    let family = db.default_family();
    for row in 0..ROWS {
        db.put(family, [b'0' + row % 3, row], b"").unwrap();
    }
    let (done, names) = (AtomicU64::new(0), AtomicU64::new(0));
    thread::scope(|scope| {
        for seed in 0..3 {
            let (db, done, names) = (&db, &done, &names);
            scope.spawn(move || {
                let mut rng = Rng::new(seed);
                for _ in 0..150 {
                    let name = names.fetch_add(1, Ordering::Relaxed);
                    match move_box(db, family, &mut rng, name) {
                        Ok(()) => drop(done.fetch_add(1, Ordering::Relaxed)),
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
        for _ in 0..100 {
            assert_eq!(rows(&db).len(), usize::from(ROWS));
        }
    });
    assert!(done.into_inner() > 20);
    assert_eq!(rows(&db).len(), usize::from(ROWS));
}
