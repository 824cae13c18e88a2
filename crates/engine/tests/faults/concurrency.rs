//! Goal: many threads at once lose nothing, see no half batch and no moving iterator. Method: real
//! files, real threads, tiny memtables, and counts that must add up.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;

use drumlin::{Db, DbIterator, Env, ErrorKind, Options, ReadOptions, WriteBatch, WriteOptions};
use drumlin_testkit::temp_dir;

use crate::support::{Rows, options, rows};

fn real() -> Options {
    Options {
        background_threads: Some(3),
        env: Env::system(),
        ..options(Env::system().files)
    }
}

fn synced(sync: bool) -> WriteOptions {
    WriteOptions {
        sync: Some(sync),
        ..WriteOptions::default()
    }
}

#[test]
fn every_acknowledged_write_is_readable_whatever_else_happens() {
    const WRITERS: u64 = 4;
    const WRITES: u64 = 1200;
    let dir = temp_dir();
    let db = Db::open(dir.path(), real()).unwrap();
    let acked: Arc<Vec<AtomicU64>> = Arc::new((0..WRITERS).map(|_| AtomicU64::new(0)).collect());
    let stop = Arc::new(AtomicBool::new(false));
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| {
            let (db, acked) = (db.clone(), Arc::clone(&acked));
            thread::spawn(move || {
                for index in 0..WRITES {
                    let mut batch = WriteBatch::new();
                    // The halves of a pair are far apart in the order.
                    for half in ["a", "z"] {
                        let key = format!("{half}-{writer}-{index:06}");
                        batch.put(key.as_bytes(), &[b'v'; 60]).unwrap();
                        let last = format!("{half}-{writer}-last");
                        batch.put(last.as_bytes(), &index.to_le_bytes()).unwrap();
                    }
                    db.write(batch, &synced(index % 50 == 0)).unwrap();
                    acked[writer as usize].store(index + 1, Ordering::Release);
                }
            })
        })
        .collect();
    let readers: Vec<_> = (0..2)
        .map(|seed| {
            let (db, acked, stop) = (db.clone(), Arc::clone(&acked), Arc::clone(&stop));
            thread::spawn(move || {
                let mut round = seed;
                while !stop.load(Ordering::Acquire) {
                    read_once(&db, &acked, round);
                    round += 1;
                }
            })
        })
        .collect();
    let churn = {
        let (db, stop) = (db.clone(), Arc::clone(&stop));
        thread::spawn(move || {
            while !stop.load(Ordering::Acquire) {
                db.flush().unwrap();
                let held = db.snapshot();
                db.compact_range(db.default_family(), Some(b"a"), Some(b"m"))
                    .unwrap();
                drop(held);
            }
        })
    };
    writers
        .into_iter()
        .for_each(|thread| thread.join().unwrap());
    stop.store(true, Ordering::Release);
    readers
        .into_iter()
        .for_each(|thread| thread.join().unwrap());
    churn.join().unwrap();
    let statistics = db.statistics();
    let groups = statistics.write_groups.get() + statistics.write_followers.get();
    assert_eq!(groups, WRITERS * WRITES);
    assert_eq!(statistics.keys_written.get(), WRITERS * WRITES * 4);
    db.close().unwrap();
    let db = Db::open(dir.path(), real()).unwrap();
    let rows = rows(&db, db.default_family()).unwrap();
    assert_eq!(rows.len() as u64, WRITERS * (WRITES + 1) * 2);
    assert!(db.verify().unwrap().damaged.is_empty());
}

/// A read sees every write acknowledged before it, and pairs are whole.
fn read_once(db: &Db, acked: &[AtomicU64], round: u64) {
    let writer = (round % acked.len() as u64) as usize;
    let before = acked[writer].load(Ordering::Acquire);
    if before > 0 {
        let index = round.wrapping_mul(7919) % before;
        let key = format!("a-{writer}-{index:06}");
        assert!(db.get(&key).unwrap().is_some(), "{key} was acknowledged");
    }
    let snapshot = db.snapshot();
    let options = ReadOptions {
        snapshot: Some(snapshot),
        ..ReadOptions::default()
    };
    let last = |half: &str| {
        let key = format!("{half}-{writer}-last");
        let found = db.get_cf(db.default_family(), key, &options).unwrap();
        found.map(|value| value.to_vec())
    };
    let (a, z) = (last("a"), last("z"));
    assert_eq!(a, z, "a batch is seen whole");
    if round.is_multiple_of(16) {
        let mut iter = db.iter(options.clone());
        let (first, second) = (count(&mut iter, b"a-", b"b"), count(&mut iter, b"z-", b"~"));
        assert_eq!(first, second, "a batch is walked whole");
    }
}

fn count(iter: &mut DbIterator, from: &[u8], to: &[u8]) -> u64 {
    let mut count = 0;
    iter.seek(from);
    while iter.valid() && iter.key() < to {
        count += 1;
        iter.next();
    }
    iter.status().unwrap();
    count
}

#[test]
fn writers_that_meet_share_a_sync() {
    const WRITERS: usize = 8;
    let dir = temp_dir();
    let db = Db::open(dir.path(), real()).unwrap();
    let barrier = Arc::new(Barrier::new(WRITERS));
    let threads: Vec<_> = (0..WRITERS)
        .map(|writer| {
            let (db, barrier) = (db.clone(), Arc::clone(&barrier));
            thread::spawn(move || {
                barrier.wait();
                for index in 0..40 {
                    let key = format!("{writer}-{index}");
                    db.put_cf(db.default_family(), key, b"v", &synced(true))
                        .unwrap();
                }
            })
        })
        .collect();
    threads
        .into_iter()
        .for_each(|thread| thread.join().unwrap());
    let statistics = db.statistics();
    let (groups, followers) = (
        statistics.write_groups.get(),
        statistics.write_followers.get(),
    );
    assert_eq!(groups + followers, WRITERS as u64 * 40);
    let syncs = statistics.wal_syncs.get();
    assert!(
        syncs < WRITERS as u64 * 40,
        "{syncs} syncs, none was shared"
    );
    assert_eq!(db.latest_seqno(), WRITERS as u64 * 40);
}

fn walk(iter: &mut DbIterator) -> Rows {
    let mut rows = Rows::new();
    iter.seek_to_first();
    while iter.valid() {
        rows.insert(iter.key().to_vec(), iter.value().to_vec());
        iter.next();
    }
    iter.status().unwrap();
    rows
}

#[test]
fn iterators_stay_what_they_were_through_flush_compaction_drop_and_close() {
    let dir = temp_dir();
    let db = Db::open(dir.path(), real()).unwrap();
    let options = options(Env::system().files).family;
    let family = db.create_family("f", options).unwrap();
    let mut held = Vec::new();
    for round in 0..6 {
        for index in 0..300 {
            let (key, value) = (
                format!("k{index:04}"),
                format!("{round}-{}", "v".repeat(50)),
            );
            db.put_cf(&family, key, value, &synced(false)).unwrap();
        }
        if round % 2 == 0 {
            db.delete_range_cf(&family, b"k0100", b"k0150", &synced(false))
                .unwrap();
        }
        let mut iter = db.iter_cf(&family, ReadOptions::default());
        let rows = walk(&mut iter);
        // Half-way in, so that the tables under it change.
        iter.seek(b"k0200");
        held.push((iter, rows));
        db.flush_cf(&family).unwrap();
    }
    db.compact_range(&family, None, None).unwrap();
    let check = |held: &mut Vec<(DbIterator, Rows)>, when: &str| {
        for (iter, rows) in held {
            assert!(iter.valid() && iter.key() == b"k0200", "{when}");
            iter.next();
            assert_eq!(iter.key(), b"k0201", "{when}");
            assert!(walk(iter) == *rows, "{when}");
            iter.seek(b"k0200");
        }
    };
    check(&mut held, "after a compaction");
    db.drop_family(&family).unwrap();
    check(&mut held, "after the family was dropped");
    let error = db.put_cf(&family, b"k", b"v", &synced(false)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(db.column_family("f").is_none());
    db.put(b"k", b"v").unwrap();
    db.flush().unwrap();
    check(&mut held, "after another flush");
    db.clone().close().unwrap();
    drop(db);
    check(&mut held, "after closing");
    drop((held, family));
    let db = Db::open(dir.path(), real()).unwrap();
    assert!(db.column_family("f").is_none());
    let tables = std::fs::read_dir(dir.path()).unwrap();
    let tables = tables.filter(|entry| {
        let name = entry.as_ref().unwrap().file_name();
        name.to_string_lossy().ends_with(".sst")
    });
    assert_eq!(tables.count(), 1, "the dropped family's files are gone");
}

#[test]
fn families_come_and_go_under_writers() {
    let dir = temp_dir();
    let db = Db::open(dir.path(), real()).unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let writers: Vec<_> = (0..3u32)
        .map(|writer| {
            let (db, stop) = (db.clone(), Arc::clone(&stop));
            thread::spawn(move || {
                let mut written = 0u64;
                while !stop.load(Ordering::Acquire) {
                    let mut batch = WriteBatch::new();
                    let key = format!("{writer}-{written:06}");
                    batch.put(key.as_bytes(), &[b'v'; 100]).unwrap();
                    let families = db.families();
                    for family in &families[1..] {
                        batch.put_cf(family.id(), key.as_bytes(), b"v").unwrap();
                    }
                    match db.write(batch, &synced(false)) {
                        Ok(()) => written += 1,
                        Err(error) => {
                            // A family was dropped between the look and the write.
                            assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error:?}");
                        }
                    }
                }
                written
            })
        })
        .collect();
    let options = options(Env::system().files).family;
    for round in 0..12 {
        let family = db
            .create_family(&format!("f{round}"), options.clone())
            .unwrap();
        db.flush_cf(&family).unwrap();
        db.put_cf(&family, b"own", b"v", &synced(round % 3 == 0))
            .unwrap();
        if round % 2 == 0 {
            db.compact_range(&family, None, None).unwrap();
        }
        assert!(
            db.get_cf(&family, b"own", &ReadOptions::default())
                .unwrap()
                .is_some()
        );
        if round < 10 {
            db.drop_family(&family).unwrap();
        }
    }
    stop.store(true, Ordering::Release);
    let written: Vec<u64> = writers.into_iter().map(|w| w.join().unwrap()).collect();
    db.close().unwrap();
    let db = Db::open_all_families(dir.path(), real()).unwrap();
    assert_eq!(db.families().len(), 3);
    for (writer, written) in written.into_iter().enumerate() {
        for index in 0..written {
            let key = format!("{writer}-{index:06}");
            assert!(db.get(&key).unwrap().is_some(), "{key} of {written}");
        }
    }
}

#[test]
fn closing_stops_writers_with_an_error_and_loses_nothing() {
    let dir = temp_dir();
    let db = Db::open(dir.path(), real()).unwrap();
    let begun = Arc::new(Barrier::new(4));
    let writers: Vec<_> = (0..3u32)
        .map(|writer| {
            let (db, begun) = (db.clone(), Arc::clone(&begun));
            thread::spawn(move || {
                for index in 0u64.. {
                    let key = format!("{writer}-{index:06}");
                    match db.put(&key, [b'v'; 200]) {
                        Ok(()) if index == 100 => drop(begun.wait()),
                        Ok(()) => {}
                        Err(error) => {
                            assert_eq!(error.kind(), ErrorKind::Shutdown, "{error:?}");
                            return index;
                        }
                    }
                }
                unreachable!("the loop has no end")
            })
        })
        .collect();
    begun.wait();
    db.clone().close().unwrap();
    let written: Vec<u64> = writers.into_iter().map(|w| w.join().unwrap()).collect();
    let again = Db::open(dir.path(), real()).unwrap();
    for (writer, written) in written.into_iter().enumerate() {
        for index in 0..written {
            let key = format!("{writer}-{index:06}");
            assert!(again.get(&key).unwrap().is_some(), "{key} of {written}");
        }
    }
    again.close().unwrap();
    // The directory was given back: nothing that would change it may be begun.
    let before = names(dir.path());
    let family = db.default_family();
    let refused = [
        db.flush(),
        db.put(b"k", b"v"),
        db.sync_wal().map(drop),
        db.compact_range(family, None, None),
        db.create_family("f", options(Env::system().files).family)
            .map(drop),
        db.checkpoint(dir.path().join("copy")),
    ];
    for refused in refused {
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::Shutdown);
    }
    assert_eq!(names(dir.path()), before);
}

fn names(dir: &std::path::Path) -> Vec<std::ffi::OsString> {
    let entries = std::fs::read_dir(dir).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    names
}

#[test]
fn closing_waits_for_a_compaction_on_a_caller_s_thread() {
    for round in 0..6 {
        let dir = temp_dir();
        let db = Db::open(dir.path(), real()).unwrap();
        for index in 0..4000 {
            db.put(format!("k{:05}", index * 37 % 4000), [b'v'; 100])
                .unwrap();
        }
        let begun = Arc::new(Barrier::new(2));
        let compactor = {
            let (db, begun) = (db.clone(), Arc::clone(&begun));
            thread::spawn(move || {
                begun.wait();
                db.compact_range(db.default_family(), None, None)
            })
        };
        begun.wait();
        Env::system()
            .clock
            .sleep(std::time::Duration::from_millis(4 * round));
        db.clone().close().unwrap();
        let before = names(dir.path());
        let outcome = compactor.join().unwrap();
        assert!(outcome.is_ok() || outcome.unwrap_err().kind() == ErrorKind::Shutdown);
        assert_eq!(names(dir.path()), before, "nothing changed after closing");
        let again = Db::open(dir.path(), real()).unwrap();
        assert_eq!(rows(&again, again.default_family()).unwrap().len(), 4000);
    }
}

#[test]
fn a_second_opener_is_refused_with_the_holder_s_process_id() {
    let dir = temp_dir();
    let db = Db::open(dir.path(), real()).unwrap();
    db.put(b"k", b"v").unwrap();
    let error = Db::open(dir.path(), real()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Locked);
    let process = std::process::id().to_string();
    assert!(error.to_string().contains(&process), "{error}");
    let reader = Db::open_read_only(dir.path(), real()).unwrap();
    assert!(reader.get(b"k").unwrap().is_some(), "readers need no lock");
    drop(reader);
    db.put(b"k2", b"v").unwrap();
    drop(db);
    let db = Db::open(dir.path(), real()).unwrap();
    assert!(db.get(b"k2").unwrap().is_some());
}
