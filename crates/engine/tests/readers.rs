//! Goal: a database opened for reading while another handle writes it shows one moment of it, whatever the
//! writer flushes, compacts and removes meanwhile; and damage is still reported. Method: a writer that cycles over
//! keys as fast as it can, with memtables of the smallest size, in a thread; readers that open in turn and are
//! checked against what the writer had acknowledged before.
#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "helpers of tests fail by panicking, and stand for other programs"
)]

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use drumlin::{
    Db, ErrorKind, FamilyOptions, Options, ReadOptions, Tuning, WriteBatch, WriteOptions,
};
use drumlin_testkit::memory_dir;

const KEYS: u64 = 700;
const OPENS: usize = 12;

fn options(searchable: bool) -> Options {
    Options {
        tuning: Tuning {
            write_buffer_bytes: Some(16 << 10),
            target_file_bytes: 32 << 10,
            reuse_from_bytes: 1,
            blob_from_bytes: Some(if searchable { 64 } else { 400 }),
            ..Tuning::default()
        },
        ..Options::default()
    }
}

fn value(round: u64) -> Vec<u8> {
    // Some are stored in blob files.
    let mut value = format!("{round:020}").into_bytes();
    value.resize(if round.is_multiple_of(5) { 500 } else { 60 }, b'v');
    value
}

/// Writes rounds until told to stop: round `n` sets key `n % KEYS` in both families.
fn write_rounds(db: &Db, stop: &AtomicBool, acknowledged: &AtomicU64) {
    let other = db.column_family("other").unwrap();
    let mut round = 0;
    while !stop.load(Ordering::Acquire) {
        let key = format!("key{:05}", round % KEYS);
        let mut batch = WriteBatch::new();
        batch.put(key.as_bytes(), &value(round)).unwrap();
        batch
            .put_cf(other.id(), key.as_bytes(), &value(round))
            .unwrap();
        db.write(batch, &WriteOptions::default()).unwrap();
        acknowledged.store(round + 1, Ordering::Release);
        round += 1;
    }
}

/// The rounds that `db` shows, one past the last: every key must be of that moment, in both families.
fn moment_of(db: &Db) -> u64 {
    let mut shown = [0, 0];
    for (shown, name) in shown.iter_mut().zip(["default", "other"]) {
        let family = db.column_family(name).unwrap();
        let mut iter = db.iter_cf(&family, ReadOptions::default());
        let mut rounds: Vec<u64> = Vec::new();
        iter.seek_to_first();
        while iter.valid() {
            let round: u64 = std::str::from_utf8(&iter.value()[..20])
                .unwrap()
                .parse()
                .unwrap();
            assert_eq!(iter.key(), format!("key{:05}", round % KEYS).as_bytes());
            rounds.push(round);
            iter.next();
        }
        iter.status().unwrap();
        rounds.sort_unstable();
        let end = rounds.last().map_or(0, |last| last + 1);
        let expected: Vec<u64> = (end.saturating_sub(KEYS)..end).collect();
        assert_eq!(rounds, expected, "{name} shows rows of several moments");
        *shown = end;
    }
    assert_eq!(shown[0], shown[1], "the families are of two moments");
    shown[0]
}

/// Ends the writer, however the test ends.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

fn beside_a_writer(dir: &Path, options: &Options) {
    let db = Db::open(dir, options.clone()).unwrap();
    db.create_family("other", FamilyOptions::default()).unwrap();
    let db = Arc::new(db);
    let (stop, acknowledged) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| write_rounds(&db, &stop, &acknowledged));
        let _stop = Stop(&stop);
        let mut held = Vec::new();
        for open in 0..OPENS {
            let before = acknowledged.load(Ordering::Acquire);
            let reader = Db::open_read_only(dir, options.clone()).unwrap();
            let shown = moment_of(&reader);
            assert!(
                shown >= before,
                "open {open} shows {shown}, {before} were there"
            );
            held.push((reader, shown));
        }
        // A moment opened long ago can still be read, though the writer has removed its files.
        for (reader, shown) in &held {
            assert_eq!(moment_of(reader), *shown);
        }
        assert!(!writer.is_finished(), "the writer failed");
    });
}

#[test]
fn readers_beside_a_writer_each_see_one_moment() {
    let dir = memory_dir();
    beside_a_writer(dir.path(), &options(false));
}

#[test]
fn readers_of_a_wal_directory_apart_see_one_moment() {
    let (dir, wal_dir) = (memory_dir(), memory_dir());
    let options = Options {
        wal_dir: Some(wal_dir.path().to_path_buf()),
        ..options(true)
    };
    beside_a_writer(dir.path(), &options);
}

#[test]
fn readers_are_told_of_damage_that_stays() {
    let dir = memory_dir();
    let db = Db::open(dir.path(), options(false)).unwrap();
    for round in 0..2_000 {
        let key = format!("key{round:05}");
        db.put(key.as_bytes(), value(round)).unwrap();
    }
    db.flush().unwrap();
    db.close().unwrap();
    let table = std::fs::read_dir(dir.path())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| path.extension().is_some_and(|ext| ext == "sst"))
        .unwrap();
    std::fs::remove_file(&table).unwrap();
    let error = Db::open_read_only(dir.path(), options(false))
        .err()
        .unwrap();
    assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
    assert!(error.to_string().contains("sst"), "{error}");
}

#[test]
fn wal_files_flushed_during_a_checkpoint_go_with_its_end() {
    let (dir, target) = (memory_dir(), memory_dir());
    let db = Arc::new(Db::open(dir.path(), options(false)).unwrap());
    let (stop, acknowledged) = (AtomicBool::new(false), AtomicU64::new(0));
    db.create_family("other", FamilyOptions::default()).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| write_rounds(&db, &stop, &acknowledged));
        let _stop = Stop(&stop);
        for copy in 0..10 {
            let copy = target.path().join(format!("copy{copy}"));
            db.checkpoint(&copy).unwrap();
        }
    });
    db.flush().unwrap();
    // One last, with nothing to write after it: files kept for it have gone when it returns.
    db.checkpoint(target.path().join("last")).unwrap();
    db.wait_for_background().unwrap();
    let wals = std::fs::read_dir(dir.path())
        .unwrap()
        .filter(|entry| {
            let path = entry.as_ref().unwrap().path();
            path.extension().is_some_and(|extension| extension == "log")
        })
        .count();
    assert!(wals <= 4, "{wals} WAL files are left");
}
