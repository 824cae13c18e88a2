//! Goal: many families that hold little take little: of the disk while all are flushed, of the WAL while they
//! are idle, and of the WAL that holds log data alone. Method: real directories, and the sizes of their files.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use drumlin::{
    ColumnFamily, Db, EventListener, FamilyOptions, FlushInfo, Options, Tuning, WriteBatch,
    WriteOptions,
};
use drumlin_testkit::memory_dir;

/// As much as the system reserves of a WAL at a time.
const WRITE_BUFFER: usize = 4 << 20;

fn options(threads: Option<usize>) -> Options {
    Options {
        background_threads: threads,
        tuning: Tuning {
            write_buffer_bytes: Some(WRITE_BUFFER),
            ..Tuning::default()
        },
        ..Options::default()
    }
}

/// Bytes on disk of the files in `dir` that end with `ending`, reserved space included.
fn bytes_on_disk(dir: &Path, ending: &str) -> u64 {
    let files = std::fs::read_dir(dir).unwrap().filter_map(Result::ok);
    files
        .filter(|file| file.path().to_string_lossy().ends_with(ending))
        .filter_map(|file| file.metadata().ok())
        .map(|facts| facts.blocks() * 512)
        .sum()
}

fn families(db: &Db, count: usize) -> Vec<ColumnFamily> {
    (0..count)
        .map(|at| {
            let name = format!("family{at}");
            db.create_family(&name, FamilyOptions::default()).unwrap()
        })
        .collect()
}

#[test]
fn flushing_many_families_takes_no_disk_beyond_what_they_hold() {
    let dir = memory_dir();
    // The thread that flushes does the work itself, so that nothing is freed unseen.
    let db = Db::open(dir.path(), options(Some(0))).unwrap();
    let families = families(&db, 100);
    for family in &families {
        db.put_cf(family, b"key", [b'v'; 2000], &WriteOptions::default())
            .unwrap();
    }
    let before = bytes_on_disk(dir.path(), ".log");
    db.flush().unwrap();
    let after = bytes_on_disk(dir.path(), ".log");
    assert!(
        after <= before + 2 * WRITE_BUFFER as u64,
        "{before} became {after}"
    );
    // One by one, while a family that is not flushed keeps all of the WAL.
    db.put(b"oldest", b"value").unwrap();
    for family in &families {
        db.put_cf(family, b"key", [b'w'; 2000], &WriteOptions::default())
            .unwrap();
        db.flush_cf(family).unwrap();
    }
    let wal = bytes_on_disk(dir.path(), ".log");
    assert!(
        wal <= 10 * WRITE_BUFFER as u64,
        "{wal} bytes of WAL hold 200,000"
    );
    db.close().unwrap();
}

#[test]
fn idle_families_keep_no_more_than_a_memtables_worth_of_wal() {
    let most_with = |idle| {
        let dir = memory_dir();
        let db = Db::open(dir.path(), options(Some(0))).unwrap();
        let families = families(&db, idle);
        let mut most = 0;
        for at in 0..100_000_u32 {
            // Three times, so that they are idle again.
            if at.is_multiple_of(40_000) {
                for family in &families {
                    db.put_cf(family, b"key", b"value", &WriteOptions::default())
                        .unwrap();
                }
            }
            db.put(at.to_be_bytes(), [0; 1000]).unwrap();
            if at.is_multiple_of(1000) {
                most = most.max(bytes_on_disk(dir.path(), ".log"));
            }
        }
        db.close().unwrap();
        most
    };
    let (alone, many) = (most_with(0), most_with(300));
    // Files are reserved whole, so one more may be on the disk.
    let allowed = alone + 2 * WRITE_BUFFER as u64;
    assert!(
        many <= allowed,
        "{many} bytes of WAL, {alone} without idle families"
    );
}

/// Counts the flushes of one family.
#[derive(Default)]
struct SlowFlushes(AtomicUsize);

impl EventListener for SlowFlushes {
    fn flushed(&self, info: &FlushInfo) {
        self.0
            .fetch_add(usize::from(info.family == "family0"), Ordering::Relaxed);
    }
}

#[test]
fn a_family_that_is_written_to_slowly_is_not_taken_for_idle() {
    let dir = memory_dir();
    let flushes = Arc::new(SlowFlushes::default());
    let with_listener = Options {
        listener: Some(Arc::clone(&flushes) as Arc<dyn EventListener>),
        ..options(Some(0))
    };
    let db = Db::open(dir.path(), with_listener).unwrap();
    let slow = families(&db, 1).remove(0);
    for at in 0..60_000_u32 {
        db.put(at.to_be_bytes(), [0; 1000]).unwrap();
        if at.is_multiple_of(8) {
            db.put_cf(&slow, at.to_be_bytes(), [0; 100], &WriteOptions::default())
                .unwrap();
        }
    }
    let flushes = flushes.0.load(Ordering::Relaxed);
    assert!(flushes <= 4, "{flushes} flushes of 1 MB in 60");
    db.close().unwrap();
}

#[test]
fn log_data_alone_does_not_pile_up() {
    for with_a_key in [false, true] {
        let dir = memory_dir();
        let db = Db::open(dir.path(), options(Some(0))).unwrap();
        if with_a_key {
            db.put(b"key", b"value").unwrap();
        }
        for at in 0..15_000 {
            let mut batch = WriteBatch::new();
            batch.put_log_data(&[7; 10_000]).unwrap();
            let options = WriteOptions {
                no_stall: at % 2 == 0,
                ..WriteOptions::default()
            };
            db.write(batch, &options).unwrap();
            if at % 100 == 0 {
                let wal = bytes_on_disk(dir.path(), ".log");
                assert!(wal <= 16 * WRITE_BUFFER as u64, "{wal} bytes after {at}");
            }
        }
        db.close().unwrap();
        let db = Db::open(dir.path(), options(Some(0))).unwrap();
        assert_eq!(db.get(b"key").unwrap().is_some(), with_a_key);
    }
}
