//! Every request fails once: what was there stays whole, and the next run ends what was begun.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use drumlin::BackupOptions;
use drumlin_fs::FileSystem;
use object_store::memory::InMemory;

use crate::faulty::{Fault, Faulty};
use crate::support::*;

const FAULTS: [Fault; 3] = [Fault::Lost, Fault::Unanswered, Fault::Stop];

/// Runs `work` on copies of `bucket`, each failing one request later; hands what is left to `check`, and whether the work
/// was done.
fn strike_everywhere(
    bucket: &Faulty,
    fault: Fault,
    work: impl Fn(&Faulty) -> bool,
    check: impl Fn(&Faulty, bool, &str),
) {
    for index in 0.. {
        let struck = bucket.fork();
        struck.fail(index, fault);
        let done = work(&struck);
        let place = format!("{fault:?} at {index}, {:?}", struck.struck());
        check(&struck.fork(), done, &place);
        if struck.struck().is_none() {
            assert!(done && index > 10, "every request was struck, of {index}");
            break;
        }
    }
}

/// Nothing lies in the bucket that no backup has.
#[track_caller]
fn check_no_garbage(bucket: &Faulty, place: &str) {
    let files = files(bucket);
    let names = |dir: &str| -> BTreeSet<PathBuf> {
        let names = files.list(&Path::new(URL).join(dir));
        names.unwrap().into_iter().collect()
    };
    let listed: BTreeSet<PathBuf> = ids(bucket).iter().map(|id| id.to_string().into()).collect();
    let mut needed = BTreeSet::new();
    for id in &listed {
        let path = Path::new(URL).join("meta").join(id);
        let meta = String::from_utf8(files.read_file(&path, 1 << 20).unwrap()).unwrap();
        let shared = meta
            .lines()
            .filter_map(|line| line.strip_prefix("shared_checksum/"));
        needed.extend(shared.map(|rest| PathBuf::from(rest.split(' ').next().unwrap())));
    }
    assert_eq!(names("shared_checksum"), needed, "{place}");
    assert_eq!(names("private"), listed, "{place}");
    assert_eq!(names("meta"), listed, "{place}");
    let above = names("");
    assert!(
        !above.contains(Path::new("LOCK")),
        "{place}: the lock is free"
    );
}

#[test]
fn a_backup_is_whole_or_not_there() {
    let (bucket, db, old) = with_one();
    let new = rows(&db);
    for fault in FAULTS {
        let work = |bucket: &Faulty| make(bucket, &db).is_ok();
        strike_everywhere(&bucket, fault, work, |left, done, place| {
            check_whole(left, place);
            let found = ids(left);
            let whole = found == [1, 2];
            assert!(whole || (!done && found == [1]), "{place}: {found:?}");
            if whole {
                check_restored(left, 2, &new, place);
            }
            let next = found.last().unwrap() + 1;
            assert_eq!(make(left, &db).unwrap(), next, "{place}: the next run");
            check_whole(left, place);
            check_no_garbage(left, place);
            check_restored(left, next, &new, place);
            check_restored(left, 1, &old, place);
        });
    }
}

#[test]
fn the_first_backup_may_fail_anywhere() {
    let (bucket, db) = (Faulty::new(InMemory::new()), store());
    let want = rows(&db);
    let work = |bucket: &Faulty| make(bucket, &db).is_ok();
    strike_everywhere(&bucket, Fault::Stop, work, |left, done, place| {
        let there = backups(left).list().is_ok_and(|listed| !listed.is_empty());
        assert!(there || !done, "{place}");
        let id = make(left, &db).unwrap();
        check_whole(left, place);
        check_no_garbage(left, place);
        check_restored(left, id, &want, place);
    });
}

#[test]
fn backups_are_removed_whole_or_not_at_all() {
    let (bucket, db, _) = with_one();
    let new = rows(&db);
    make(&bucket, &db).unwrap();
    for fault in FAULTS {
        let work = |bucket: &Faulty| backups(bucket).purge(1).is_ok();
        strike_everywhere(&bucket, fault, work, |left, done, place| {
            check_whole(left, place);
            let found = ids(left);
            let allowed = found == [2] || (!done && found == [1, 2]);
            assert!(allowed, "{place}: {found:?}");
            backups(left).purge(1).unwrap();
            check_no_garbage(left, place);
            check_restored(left, 2, &new, place);
        });
    }
}

#[test]
fn a_restore_that_fails_is_ended_by_the_next() {
    let (bucket, db, _) = with_one();
    let new = rows(&db);
    make(&bucket, &db).unwrap();
    for fault in [Fault::Lost, Fault::Stop, Fault::Short] {
        for index in 0.. {
            let (struck, disk) = (bucket.fork(), disk());
            struck.fail(index, fault);
            let done = restore(&struck, 2, &disk).is_ok();
            let place = format!("{fault:?} at {index}, {:?}", struck.struck());
            if struck.struck().is_none() {
                assert!(done && index > 10, "every request was struck, of {index}");
                break;
            }
            // What is read ahead may fail unseen, and a short listing is none.
            assert!(!done || fault == Fault::Short, "{place}");
            restore(&bucket, 2, &disk).unwrap();
            assert!(restored_rows(&disk) == new, "{place}");
        }
    }
}

#[test]
fn what_has_arrived_is_not_sent_again() {
    let (bucket, db, _) = with_one();
    let puts = |bucket: &Faulty| -> Vec<String> {
        let shared = format!("put {PREFIX}/shared_checksum/");
        let requests = bucket.take_requests().into_iter();
        requests.filter(|it| it.starts_with(&shared)).collect()
    };
    bucket.take_requests();
    // The meta file fails: its tables are there, and belong to no backup.
    let trial = bucket.fork();
    make(&trial, &db).unwrap();
    let requests = trial.take_requests();
    let meta = requests
        .iter()
        .position(|it| *it == format!("put {PREFIX}/meta/2"));
    bucket.fail(meta.unwrap(), Fault::Stop);
    make(&bucket, &db).unwrap_err();
    let sent = puts(&bucket);
    assert_eq!(sent.len(), 2, "{sent:?}");
    let bucket = bucket.fork();
    make(&bucket, &db).unwrap();
    assert_eq!(puts(&bucket), [""; 0], "the next run takes them");
    make(&bucket, &db).unwrap();
    assert_eq!(
        puts(&bucket),
        [""; 0],
        "and a store that has not changed sends none"
    );
    assert_eq!(ids(&bucket), [1, 2, 3]);
    check_whole(&bucket, "at the end");
    // A backup of an unchanged store: what docs/backups.md says it costs.
    let trial = bucket.fork();
    backups(&trial)
        .create(&db, &BackupOptions::default())
        .unwrap();
    let requests = trial.take_requests();
    assert!(requests.len() < 80, "{}: {requests:#?}", requests.len());
    let _kept = Arc::new(db);
}
