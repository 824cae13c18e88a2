//! Goal: a process that has a database open may fork, and nothing that the child does to its copies of the
//! handles touches the parent's. Method: real forks, of a program with this one test, so that no other thread
//! holds a lock meanwhile.

use drumlin::{Db, DbIterator, ErrorKind, Options, ReadOptions, Snapshot, WriteOptions};
use drumlin_fs::process::in_forked_child;
use drumlin_testkit::temp_dir;

fn options(threads: usize) -> Options {
    Options {
        background_threads: Some(threads),
        ..Options::default()
    }
}

type Held = (Db, Vec<DbIterator>, Snapshot);

/// Whether each of `iters`, moved otherwise, ends with the child's error.
fn are_refused(mut iters: Vec<DbIterator>) -> bool {
    let moves: [fn(&mut DbIterator); 6] = [
        DbIterator::next,
        DbIterator::prev,
        DbIterator::seek_to_first,
        DbIterator::seek_to_last,
        |iter| iter.seek(b"0"),
        |iter| iter.seek_for_prev(b"9"),
    ];
    let is_refused = |result: drumlin::Result<()>| {
        result.is_err_and(|error| error.kind() == ErrorKind::InvalidArgument)
    };
    assert_eq!(iters.len(), moves.len());
    iters.iter_mut().zip(moves).all(|(iter, move_it)| {
        let before = is_refused(iter.status()) && is_refused(iter.try_value().map(|_| ()));
        move_it(iter);
        let after = !iter.valid() && iter.key().is_empty() && is_refused(iter.status());
        before && after && is_refused(iter.refresh())
    })
}

/// Iterators that stand in the middle, one for each way to move.
fn iterators(db: &Db) -> Vec<DbIterator> {
    let mut iters: Vec<_> = (0..6).map(|_| db.iter(ReadOptions::default())).collect();
    iters
        .iter_mut()
        .for_each(|iter| iter.seek(&50u32.to_be_bytes()));
    iters
}

/// Checks the view of a child; returns the number of the first check that fails.
fn in_child((db, iters, snapshot): Held, dir: &std::path::Path, threads: usize) -> u8 {
    let refused = |kind: Option<ErrorKind>| kind == Some(ErrorKind::InvalidArgument);
    let kind = |result: drumlin::Result<()>| result.err().map(|error| error.kind());
    let family = db.default_family().clone();
    let get = db.get(b"1").map(|_| ());
    let batch = db.multi_get_cf(&family, &[b"1"], &ReadOptions::default());
    let batch = batch.into_iter().try_for_each(|each| each.map(|_| ()));
    let put = db.put_cf(&family, b"2", b"child", &WriteOptions::default());
    let outcomes = [
        get,
        batch,
        put,
        db.flush(),
        db.sync_wal().map(|_| ()),
        db.clone().close(),
    ];
    for (number, outcome) in (1..).zip(outcomes) {
        if !refused(kind(outcome)) {
            return number;
        }
    }
    let at_snapshot = ReadOptions {
        snapshot: Some(snapshot),
        ..ReadOptions::default()
    };
    let get = db.get_cf(&family, b"1", &at_snapshot).map(|_| ());
    if !are_refused(iters) || !refused(kind(get)) {
        return 10;
    }
    drop((at_snapshot, db.snapshot()));
    drop((db, family));
    // The parent has the lock still.
    match Db::open(dir, options(threads)) {
        Err(error) if error.kind() == ErrorKind::Locked => {}
        _ => return 20,
    }
    // Others are open to the child.
    let own = Db::open(dir.join("child"), options(threads)).and_then(|own| {
        own.put(b"k", b"v")?;
        own.flush()?;
        own.get(b"k")?;
        own.close()
    });
    match own {
        Ok(()) => 0,
        Err(_) => 21,
    }
}

#[test]
fn a_forked_child_does_not_touch_its_parents_database() {
    for threads in [0, 2] {
        let dir = temp_dir();
        let path = dir.path().join("db");
        let db = Db::open(&path, options(threads)).unwrap();
        for number in 0..100u32 {
            db.put(number.to_be_bytes(), b"parent").unwrap();
        }
        let held = (db.clone(), iterators(&db), db.snapshot());
        drop(db);
        let mut held = Some(held);
        let code = in_forked_child(|| in_child(held.take().unwrap(), &path, threads)).unwrap();
        assert_eq!(code, 0, "{threads} threads: what the child saw");
        let (db, mut iters, snapshot) = held.take().expect("the parent's own");
        for iter in &mut iters {
            assert!(iter.valid());
            iter.next();
            assert_eq!(iter.key(), 51u32.to_be_bytes());
            iter.status().unwrap();
        }
        assert_eq!(snapshot.seqno(), 100);
        drop((iters, snapshot));
        for number in 100..2000u32 {
            db.put(number.to_be_bytes(), b"parent").unwrap();
        }
        db.flush().unwrap();
        db.close().unwrap();
        let db = Db::open(&path, options(threads)).unwrap();
        for number in 0..2000u32 {
            let value = db.get(number.to_be_bytes()).unwrap();
            assert_eq!(value.as_deref(), Some(&b"parent"[..]), "{number}");
        }
        assert!(db.verify().unwrap().damaged.is_empty());
    }
}
