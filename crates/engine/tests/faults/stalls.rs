//! Goal: writers are held back no more than the disk asks for, and no longer than the cause
//! lasts: a full disk, flushes and compactions that fail half-way, a manual compaction that
//! is cancelled. Method: real background threads over a disk in memory that fails on command; nothing
//! is timed, every wait ends by itself or the test would not.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use drumlin::{CancelToken, Db, ErrorKind, Health, Options};
use drumlin_fs::{Fault, FaultFileSystem, FaultRule, FileKind, OpKind, StrictMemFileSystem};

use crate::support::{DIR, options};

fn disk() -> (StrictMemFileSystem, FaultFileSystem) {
    let memory = StrictMemFileSystem::new();
    let faults = FaultFileSystem::over_memory(&memory);
    (memory, faults)
}

fn threaded(files: &FaultFileSystem) -> Options {
    Options {
        background_threads: Some(2),
        ..options(Arc::new(files.clone()))
    }
}

/// Keys come in no order, so that tables overlap and compactions rewrite them.
fn key(n: usize) -> Vec<u8> {
    format!("key{:06}", n * 7919 % 100_003).into_bytes()
}

/// Writes keys until `count` are acknowledged, trying each again for as long as it is refused.
fn write(db: &Db, keys: std::ops::Range<usize>) {
    let value = [7u8; 200];
    for n in keys {
        while db.put(key(n), value).is_err() {
            std::thread::yield_now();
        }
    }
}

fn check(db: &Db, count: usize) {
    for n in 0..count {
        let found = db.get(key(n)).unwrap();
        assert_eq!(found.as_deref(), Some(&[7u8; 200][..]), "key {n}");
    }
}

/// Has flushes and compactions fail half-way by `rule`, while keys are written.
fn fail_half_way(rule: &FaultRule, direct: bool) {
    let (_, faults) = disk();
    let mut options = threaded(&faults);
    options.tuning.background_direct_io = Some(direct);
    let db = Db::open(DIR, options.clone()).unwrap();
    write(&db, 0..500);
    faults.add_rule(rule.clone());
    write(&db, 500..3000);
    assert!(faults.injected() > 0, "{rule:?}");
    faults.clear_rules();
    write(&db, 3000..3500);
    while db.wait_for_background().is_err() {}
    assert_eq!(db.health(), Health::Healthy);
    check(&db, 3500);
    db.close().unwrap();
    check(&Db::open(DIR, options).unwrap(), 3500);
}

#[test]
fn failed_flushes_and_compactions_are_made_good_and_lose_nothing() {
    for (seed, fault) in [(1, Fault::Io), (2, Fault::NoSpace), (3, Fault::TornAppend)] {
        // A table takes a few appends, a blob file one for each value.
        for (kind, one_in) in [(FileKind::Table, 25), (FileKind::Blob, 300)] {
            let rule = FaultRule::one_in(one_in, seed, fault);
            fail_half_way(&rule.on(OpKind::Append).of_kind(kind), false);
        }
    }
}

#[test]
fn failures_of_syncs_and_reads_and_new_files_are_made_good_too() {
    for (seed, op) in [(4, OpKind::Sync), (5, OpKind::Create), (6, OpKind::Read)] {
        let rule = FaultRule::one_in(20, seed, Fault::Io).on(op);
        let rule = rule.of_kind(FileKind::Table).of_kind(FileKind::Blob);
        fail_half_way(&rule, false);
        fail_half_way(&rule, true);
    }
}

#[test]
fn a_disk_full_for_tables_refuses_writers_and_frees_them_when_there_is_space() {
    let (_, faults) = disk();
    let db = Db::open(DIR, threaded(&faults)).unwrap();
    write(&db, 0..200);
    let full = FaultRule::always(Fault::NoSpace).on_changes();
    faults.add_rule(full.of_kind(FileKind::Table));
    let mut acknowledged = 200;
    let refused = loop {
        match db.put(key(acknowledged), [7u8; 200]) {
            Ok(()) => acknowledged += 1,
            Err(error) => break error,
        }
        assert!(acknowledged < 100_000, "memory has an end");
    };
    assert_eq!(refused.kind(), ErrorKind::NoSpace);
    check(&db, acknowledged);
    faults.clear_rules();
    write(&db, acknowledged..acknowledged + 500);
    while db.wait_for_background().is_err() {}
    assert_eq!(db.health(), Health::Healthy);
    check(&db, acknowledged + 500);
}

#[test]
fn a_cancelled_compaction_ends_and_leaves_everything_readable() {
    let (_, faults) = disk();
    let db = Db::open(DIR, threaded(&faults)).unwrap();
    write(&db, 0..3000);
    let cancel = CancelToken::new();
    cancel.cancel();
    let family = db.default_family();
    let ended = db.compact_range_until(family, None, None, &cancel);
    assert_eq!(ended.unwrap_err().kind(), ErrorKind::Aborted);
    check(&db, 3000);
    db.compact_range_until(family, None, None, &CancelToken::new())
        .unwrap();
    assert_eq!(
        db.property(family, "rocksdb.num-files-at-level0")
            .as_deref(),
        Some("0")
    );
    check(&db, 3000);
}

#[test]
fn closing_ends_a_manual_compaction_and_a_dropped_family_does_too() {
    let (_, faults) = disk();
    let db = Db::open(DIR, threaded(&faults)).unwrap();
    write(&db, 0..2000);
    let family = db
        .create_family("other", Options::default().family)
        .unwrap();
    std::thread::scope(|scope| {
        let asked = scope.spawn(
            || {
                while db.compact_range(db.default_family(), None, None).is_ok() {}
            },
        );
        let other = scope.spawn(|| while db.compact_range(&family, None, None).is_ok() {});
        db.drop_family(&family).unwrap();
        other.join().unwrap();
        db.clone().close().unwrap();
        asked.join().unwrap();
    });
}

#[test]
fn writers_go_on_while_everything_is_compacted_by_hand() {
    let (_, faults) = disk();
    let db = Db::open(DIR, threaded(&faults)).unwrap();
    write(&db, 0..2000);
    let done = AtomicBool::new(false);
    let written = std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut next = 2000;
            while !done.load(Ordering::Relaxed) || next < 2500 {
                write(&db, next..next + 50);
                next += 50;
            }
            next
        });
        db.compact_range(db.default_family(), None, None).unwrap();
        done.store(true, Ordering::Relaxed);
        writer.join().unwrap()
    });
    db.wait_for_background().unwrap();
    check(&db, written);
    // On a slow machine the check comes so late that its reads pay for a compaction.
    db.wait_for_background().unwrap();
    let text = db.explain(db.default_family(), Some(&key(1)));
    assert!(text.contains("verdict: "), "{text}");
    assert!(text.contains("next: nothing is due"), "{text}");
}
