//! Goal: a view shows one moment of all families, whatever is written, flushed, compacted, created or dropped
//! meanwhile; a commit leaves its batch whole after an error and empty after success; sequence numbers say what they
//! cover. Method: writers put one number under one key of three families, in one batch; readers compare.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use drumlin::{
    ColumnFamily, Db, Env, ErrorKind, FamilyOptions, Options, ReadOptions, Tuning, View,
    WriteBatch, WriteOptions,
};
use drumlin_fs::{Fault, FaultFileSystem, FaultRule, FileKind, OpKind, StrictMemFileSystem};

const DIR: &str = "/db";

fn open(env: Env, write_buffer: usize) -> Db {
    let options = Options {
        env,
        tuning: Tuning {
            write_buffer_bytes: Some(write_buffer),
            ..Tuning::default()
        },
        ..Options::default()
    };
    Db::open_all_families(DIR, options).unwrap()
}

fn memory() -> Env {
    Env::system().with_files(Arc::new(StrictMemFileSystem::new()))
}

fn three_families(db: &Db) -> Vec<ColumnFamily> {
    let made = ["a", "b"].map(|name| db.create_family(name, FamilyOptions::default()).unwrap());
    [db.default_family().clone()]
        .into_iter()
        .chain(made)
        .collect()
}

fn number_at(read: Option<drumlin::PinnedSlice>) -> u64 {
    let value = read.expect("it was put before the readers began");
    u64::from_le_bytes(value[..8].try_into().unwrap())
}

/// The number that `view` shows under every key of every family.
fn look(view: &View, families: &[ColumnFamily], keys: &[String]) -> u64 {
    let options = ReadOptions::default();
    let number = number_at(view.get_cf(&families[0], &keys[0], &options).unwrap());
    for family in families.iter().rev() {
        for got in view.multi_get_cf(family, keys, &options) {
            assert_eq!(number_at(got.unwrap()), number);
        }
        let mut walk = view.iter_cf(family, &options);
        walk.seek_to_first();
        for _ in keys {
            let value = walk.value()[..8].try_into().unwrap();
            assert_eq!(u64::from_le_bytes(value), number);
            walk.next();
        }
        assert!(!walk.valid() && walk.status().is_ok());
    }
    number
}

#[test]
fn a_view_shows_each_batch_whole_or_not_at_all() {
    let db = open(memory(), 64 << 10);
    let families = three_families(&db);
    let keys: Vec<String> = (0..20).map(|key| format!("key{key}")).collect();
    let put = |number: u64, batch: &mut WriteBatch| {
        let mut value = number.to_le_bytes().to_vec();
        value.resize(200, 7);
        for family in &families {
            for key in &keys {
                batch.put_cf(family.id(), key.as_bytes(), &value).unwrap();
            }
        }
        db.commit(batch, &WriteOptions::default()).unwrap()
    };
    put(0, &mut WriteBatch::new());
    let (ends, acknowledged) = (AtomicBool::new(false), AtomicU64::new(0));
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut last = 0;
                while !ends.load(Ordering::Relaxed) {
                    let least = acknowledged.load(Ordering::Acquire);
                    let number = look(&db.view(), &families, &keys);
                    assert!(number >= last.max(least), "views go forward");
                    last = number;
                }
            });
        }
        let mut batch = WriteBatch::new();
        for number in 1..=600 {
            let seqno = put(number, &mut batch);
            acknowledged.store(number, Ordering::Release);
            assert!(batch.is_empty() && seqno <= db.latest_seqno());
            if number % 97 == 0 {
                db.compact_range(&families[1], None, None).unwrap();
            }
        }
        ends.store(true, Ordering::Relaxed);
    });
}

#[test]
fn a_view_outlives_what_it_shows() {
    let db = open(memory(), 1 << 20);
    let families = three_families(&db);
    let options = ReadOptions::default();
    for family in &families {
        db.put_cf(family, "k", "old", &WriteOptions::default())
            .unwrap();
    }
    let view = db.view();
    let late = db.create_family("late", FamilyOptions::default()).unwrap();
    db.drop_family(&families[2]).unwrap();
    for family in &families[..2] {
        db.put_cf(family, "k", "new", &WriteOptions::default())
            .unwrap();
        db.flush_cf(family).unwrap();
        db.compact_range(family, None, None).unwrap();
    }
    for family in &families {
        assert_eq!(
            view.get_cf(family, "k", &options).unwrap().as_deref(),
            Some(&b"old"[..])
        );
        let mut walk = view.iter_cf(family, &options);
        walk.seek_to_first();
        assert_eq!((walk.key(), walk.value()), (&b"k"[..], &b"old"[..]));
    }
    assert_eq!(
        db.view()
            .get_cf(&families[1], "k", &options)
            .unwrap()
            .as_deref(),
        Some(&b"new"[..])
    );
    db.put_cf(&late, "k", "new", &WriteOptions::default())
        .unwrap();
    assert!(view.get_cf(&late, "k", &options).unwrap().is_none());
    assert!(
        view.multi_get_cf(&late, &["k"], &options)[0]
            .as_ref()
            .unwrap()
            .is_none()
    );
    let mut walk = view.iter_cf(&late, &options);
    walk.seek_to_first();
    assert!(!walk.valid() && walk.status().is_ok());
    walk.refresh().unwrap();
    walk.seek_to_first();
    assert_eq!(walk.key(), b"k");
    let at_snapshot = ReadOptions {
        snapshot: Some(db.snapshot()),
        ..ReadOptions::default()
    };
    let refused = view.get_cf(&families[0], "k", &at_snapshot).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidArgument);
    let other = open(memory(), 1 << 20);
    let refused = view
        .get_cf(other.default_family(), "k", &options)
        .unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidArgument);
    db.close().unwrap();
    assert_eq!(
        view.get_cf(&families[0], "k", &options).unwrap().as_deref(),
        Some(&b"old"[..])
    );
}

#[test]
fn a_commit_keeps_its_batch_when_it_fails() {
    let files = FaultFileSystem::over_memory(&StrictMemFileSystem::new());
    let db = open(Env::system().with_files(Arc::new(files.clone())), 1 << 20);
    let mut batch = WriteBatch::new();
    batch.put(b"a", &vec![1; 1 << 20]).unwrap();
    let whole = batch.clone();
    files.add_rule(
        FaultRule::always(Fault::NoSpace)
            .on(OpKind::Append)
            .of_kind(FileKind::Wal),
    );
    let refused = db.commit(&mut batch, &WriteOptions::default()).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::NoSpace);
    assert_eq!(batch.records(), whole.records());
    files.clear_rules();
    assert_eq!(
        db.commit(&mut batch, &WriteOptions::default()).unwrap(),
        db.latest_seqno()
    );
    assert!(batch.is_empty());
    assert_eq!(db.get(b"a").unwrap().unwrap().len(), 1 << 20);
    assert_eq!(
        db.commit(&mut batch, &WriteOptions::default()).unwrap(),
        db.latest_seqno()
    );
}

#[test]
fn durable_numbers_follow_syncs() {
    let env = memory();
    let db = open(env.clone(), 1 << 20);
    let mut batch = WriteBatch::new();
    let mut commit = |sync: bool| {
        batch.put(b"k", b"v").unwrap();
        let options = WriteOptions {
            sync: Some(sync),
            ..WriteOptions::default()
        };
        db.commit(&mut batch, &options).unwrap()
    };
    let before = db.durable_seqno();
    let unsynced = commit(false);
    assert!(db.durable_seqno() == before && before < unsynced);
    let synced = commit(true);
    assert_eq!(db.durable_seqno(), synced);
    let unsynced = commit(false);
    assert_eq!(db.durable_seqno(), synced);
    assert_eq!(db.sync_wal().unwrap(), unsynced);
    assert_eq!(db.durable_seqno(), unsynced);
    commit(false);
    drop(db);
    let db = open(env, 1 << 20);
    assert_eq!(
        db.durable_seqno(),
        db.latest_seqno(),
        "recovery made tables of it"
    );
}

#[test]
fn the_newest_number_of_a_key_is_that_of_its_last_change() {
    let db = open(memory(), 1 << 20);
    let family = db.default_family().clone();
    let options = ReadOptions::default();
    let newest = |key: &str| db.newest_seqno_cf(&family, key, &options).unwrap();
    let mut batch = WriteBatch::new();
    let mut commit = |fill: &dyn Fn(&mut WriteBatch)| {
        fill(&mut batch);
        db.commit(&mut batch, &WriteOptions::default()).unwrap()
    };
    assert_eq!(newest("a"), None);
    let put = commit(&|batch| batch.put(b"a", b"1").unwrap());
    assert_eq!(newest("a"), Some(put));
    let held = db.snapshot();
    let deleted = commit(&|batch| batch.delete(b"a").unwrap());
    assert_eq!(newest("a"), Some(deleted));
    db.flush().unwrap();
    assert_eq!(newest("a"), Some(deleted));
    let range = commit(&|batch| batch.delete_range(b"a", b"c").unwrap());
    assert_eq!(
        (newest("a"), newest("b"), newest("c")),
        (Some(range), Some(range), None)
    );
    let over = commit(&|batch| batch.put(b"b", b"2").unwrap());
    assert_eq!((newest("a"), newest("b")), (Some(range), Some(over)));
    db.flush().unwrap();
    assert_eq!((newest("a"), newest("b")), (Some(range), Some(over)));
    let at_snapshot = ReadOptions {
        snapshot: Some(held),
        ..ReadOptions::default()
    };
    assert_eq!(
        db.newest_seqno_cf(&family, "a", &at_snapshot).unwrap(),
        Some(put)
    );
    db.compact_range(&family, None, None).unwrap();
    assert_eq!(
        (newest("a"), newest("b")),
        (Some(range), Some(over)),
        "the snapshot keeps them"
    );
}
