//! Two writers: one is refused, one that is gone is in the way for a while only, and one that lost its lock changes nothing.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use drumlin::{BackupOptions, ErrorKind, Result};
use drumlin_fs::{Clock, CreateOptions, FileKind, FileSystem, SystemClock};
use drumlin_object_store::{Limits, ObjectFileSystem};
use object_store::memory::InMemory;

use crate::faulty::{Fault, Faulty};
use crate::support::*;

const LEASE: Duration = Duration::from_secs(2);

fn at(bucket: &Faulty, ahead: Duration) -> ObjectFileSystem {
    let limits = Limits {
        lease: LEASE,
        ..Limits::default()
    };
    let clock = Arc::new(Ahead(SystemClock::new(), ahead));
    ObjectFileSystem::over(Arc::new(bucket.clone()), URL, &limits, clock).unwrap()
}

fn lock_path() -> PathBuf {
    Path::new(URL).join("LOCK")
}

fn put(files: &ObjectFileSystem) -> Result<()> {
    let options = CreateOptions::new(FileKind::Other);
    files.create(&Path::new(URL).join("file"), options)?.close()
}

#[test]
fn the_second_is_refused_and_told_by_whom() {
    let bucket = Faulty::new(InMemory::new());
    let (one, other) = (at(&bucket, Duration::ZERO), at(&bucket, Duration::ZERO));
    let held = one.lock(&lock_path()).unwrap();
    let error = other.lock(&lock_path()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Locked);
    let us = format!("process {} on ", std::process::id());
    assert!(error.to_string().contains(&us), "{error}");
    assert_eq!(error.file(), Some(&*lock_path()));
    // So is a backup, and it changes nothing.
    let db = store();
    let error = backups_of(&other)
        .create(&db, &BackupOptions::default())
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Locked);
    put(&one).unwrap();
    drop(held);
    assert!(!one.exists(&lock_path()).unwrap());
    other.lock(&lock_path()).unwrap();
}

#[test]
fn a_lock_is_renewed_while_it_is_held() {
    let bucket = Faulty::new(InMemory::new());
    let (one, other) = (at(&bucket, Duration::ZERO), at(&bucket, Duration::ZERO));
    let _held = one.lock(&lock_path()).unwrap();
    let clock = SystemClock::new();
    let begun = clock.monotonic();
    while clock.monotonic() - begun < LEASE + LEASE / 2 {
        assert_eq!(
            other.lock(&lock_path()).unwrap_err().kind(),
            ErrorKind::Locked
        );
        clock.sleep(LEASE / 20);
    }
    put(&one).unwrap();
}

#[test]
fn a_holder_that_is_gone_is_in_the_way_for_a_while_only() {
    let bucket = Faulty::new(InMemory::new());
    let gone = at(&bucket, Duration::ZERO);
    let held = gone.lock(&lock_path()).unwrap();
    // Its process ends: it says nothing more.
    bucket.fail(0, Fault::Stop);
    let bucket = bucket.fork();
    let early = at(&bucket, Duration::ZERO);
    assert_eq!(
        early.lock(&lock_path()).unwrap_err().kind(),
        ErrorKind::Locked
    );
    let late = at(&bucket, LEASE * 3);
    let _held = late.lock(&lock_path()).unwrap();
    put(&late).unwrap();
    drop(held);
}

#[test]
fn who_lost_the_lock_changes_nothing_any_more() {
    let bucket = Faulty::new(InMemory::new());
    let (slow, other) = (at(&bucket, Duration::ZERO), at(&bucket, LEASE * 3));
    let held = slow.lock(&lock_path()).unwrap();
    // To another whose clock is wrong it looks dead.
    let taken = other.lock(&lock_path()).unwrap();
    let clock = SystemClock::new();
    let begun = clock.monotonic();
    // It finds out when it renews it.
    let error = loop {
        match put(&slow) {
            Err(error) => break error,
            Ok(()) => clock.sleep(LEASE / 20),
        }
        assert!(clock.monotonic() - begun < LEASE * 10, "it never finds out");
    };
    assert_eq!(error.kind(), ErrorKind::Locked, "{error}");
    assert!(error.to_string().contains("it was taken over"), "{error}");
    let removed = slow.remove(&Path::new(URL).join("file"));
    assert_eq!(removed.unwrap_err().kind(), ErrorKind::Locked);
    // Letting go of it does not take it from the other.
    drop(held);
    put(&other).unwrap();
    assert!(other.exists(&lock_path()).unwrap());
    drop(taken);
    assert!(!other.exists(&lock_path()).unwrap());
}

#[test]
fn who_cannot_renew_it_stops_in_time() {
    let bucket = Faulty::new(InMemory::new());
    let files = at(&bucket, Duration::ZERO);
    let _held = files.lock(&lock_path()).unwrap();
    bucket.fail(0, Fault::Stop);
    let clock = SystemClock::new();
    let begun = clock.monotonic();
    let error = loop {
        let error = put(&files).unwrap_err();
        if error.kind() == ErrorKind::Locked {
            break error;
        }
        assert!(
            clock.monotonic() - begun < LEASE,
            "it goes on past its time"
        );
        clock.sleep(LEASE / 40);
    };
    assert!(
        error.to_string().contains("could not be renewed in time"),
        "{error}"
    );
}

#[test]
fn an_answer_that_is_lost_is_no_second_holder() {
    let bucket = Faulty::new(InMemory::new());
    let (db, first) = (store(), files(&bucket));
    // What a directory was uploaded with, say.
    let options = CreateOptions::new(FileKind::Other);
    first
        .create(&lock_path(), options)
        .unwrap()
        .close()
        .unwrap();
    assert_eq!(make(&bucket, &db).unwrap(), 1);
    assert!(!first.exists(&lock_path()).unwrap());
}
