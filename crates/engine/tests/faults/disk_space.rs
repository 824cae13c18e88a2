//! Goal: a disk is not filled up: before that, writes are refused and compactions wait, everything
//! else goes on, and all is well again when space returns; obsolete files leave the disk. Method:
//! a disk with a quota that the tests move.

use std::sync::Arc;

use drumlin::{Db, Env, Error, ErrorKind, Health, Options};
use drumlin_base::rng::Rng;
use drumlin_fs::{Fault, FaultFileSystem, FaultRule, FileSystem, OpKind, StrictMemFileSystem};
use drumlin_testkit::temp_dir;

use crate::support::{DIR, options};

fn with_reserve(files: Arc<dyn FileSystem>, reserve: u64) -> Options {
    let mut options = options(files);
    options.tuning.disk_reserve_bytes = Some(reserve);
    // Few tables in L0: nobody compacts while the test writes.
    options.tuning.write_buffer_bytes = Some(100_000);
    // Tables so large that their metadata does not count.
    options.tuning.target_file_bytes = 100_000;
    options
}

fn property(db: &Db, name: &str) -> u64 {
    let value = db.property(db.default_family(), name);
    value.and_then(|text| text.parse().ok()).expect("a number")
}

/// A value that does not compress.
fn noise(seed: usize) -> Vec<u8> {
    let mut value = vec![0; 200];
    Rng::new(seed as u64).fill(&mut value);
    value
}

/// Puts keys from `from` on until one is refused: how many went in, and the refusal.
fn fill(db: &Db, from: usize) -> (usize, Error) {
    for index in from..from + 1_000_000 {
        if let Err(error) = db.put(format!("key{index:06}"), noise(index)) {
            return (index - from, error);
        }
    }
    panic!("the disk never filled up");
}

#[test]
fn before_the_disk_is_full_writes_are_refused_and_everything_else_goes_on() {
    const RESERVE: u64 = 600_000;
    let memory = StrictMemFileSystem::new();
    let db = Db::open(DIR, with_reserve(Arc::new(memory.clone()), RESERVE)).unwrap();
    let mut total = 0;
    for _ in 0..3 {
        memory.set_quota(memory.used_bytes() + RESERVE + 300_000);
        let (count, error) = fill(&db, total);
        assert!(count > 100, "{count}");
        total += count;
        assert_eq!(error.kind(), ErrorKind::NoSpace, "{error}");
        assert!(error.to_string().contains("in reserve"), "{error}");
        // Refused in time, not stopped by a full disk.
        assert_eq!(db.health(), Health::Healthy);
        assert!(property(&db, "drumlin.disk-free-bytes") > RESERVE / 2);
        for index in (0..total).step_by(97) {
            let key = format!("key{index:06}");
            assert!(db.get(&key).unwrap().is_some(), "{key}");
        }
        db.delete(b"key000000").unwrap();
        assert_eq!(db.get(b"key000000").unwrap(), None);
        db.flush().unwrap();
        memory.set_quota(u64::MAX);
        db.put(b"key000000", b"again").unwrap();
    }
    db.wait_for_background().unwrap();
    drop(db);
    let db = Db::open(DIR, with_reserve(Arc::new(memory), RESERVE)).unwrap();
    for index in 0..total {
        assert!(db.get(format!("key{index:06}")).unwrap().is_some());
    }
}

#[test]
fn most_of_a_small_disk_goes_to_a_database_with_the_options_derived() {
    let memory = StrictMemFileSystem::new();
    memory.set_quota(64 << 20);
    let options = Options {
        background_threads: Some(0),
        env: Env::system().with_files(Arc::new(memory)),
        ..Options::default()
    };
    let db = Db::open(DIR, options.clone()).unwrap();
    let (count, error) = fill(&db, 0);
    assert_eq!(error.kind(), ErrorKind::NoSpace, "{error}");
    assert_eq!(db.health(), Health::Healthy);
    assert!(count * 200 > 16 << 20, "{count}");
    db.delete(b"key000000").unwrap();
    db.close().unwrap();
    // Opening saves what the logs hold: the reserve has space for it.
    let db = Db::open(DIR, options).unwrap();
    for index in (1..count).step_by(97).chain([count - 1]) {
        assert!(db.get(format!("key{index:06}")).unwrap().is_some());
    }
}

#[test]
fn deleting_makes_room_while_writes_are_refused() {
    const RESERVE: u64 = 1_000_000;
    let memory = StrictMemFileSystem::new();
    memory.set_quota(RESERVE + 1_500_000);
    let db = Db::open(DIR, with_reserve(Arc::new(memory), RESERVE)).unwrap();
    let (count, _) = fill(&db, 0);
    let mut batch = drumlin::WriteBatch::new();
    batch.delete_range(b"key", b"kez").unwrap();
    db.write(batch, &drumlin::WriteOptions::default()).unwrap();
    db.compact_range(db.default_family(), None, None).unwrap();
    let (again, error) = fill(&db, 0);
    assert!(again > count / 2, "{again} after {count}: {error}");
}

#[test]
fn a_compaction_that_would_not_fit_writes_nothing_and_runs_when_it_does() {
    const RESERVE: u64 = 40_000;
    let memory = StrictMemFileSystem::new();
    let files = FaultFileSystem::over_memory(&memory);
    let mut wanted = with_reserve(Arc::new(files.clone()), RESERVE);
    wanted.compaction_style = drumlin::CompactionStyle::Manual;
    let db = Db::open(DIR, wanted).unwrap();
    // Two tables that overlap, so that neither can just be moved.
    for index in 0..600 {
        db.put(format!("key{:06}", index * 7919 % 1000), noise(index))
            .unwrap();
        if index % 300 == 299 {
            db.flush().unwrap();
        }
    }
    memory.set_quota(memory.used_bytes() + RESERVE / 4);
    files.record_history();
    let compact = || db.compact_range(db.default_family(), None, None);
    let error = compact().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NoSpace, "{error}");
    assert!(error.to_string().contains("does not fit"), "{error}");
    let created = files.history().into_iter();
    assert!(created.filter(|(op, _)| *op == OpKind::Create).count() == 0);
    assert!(db.get(b"key000000").unwrap().is_some());
    memory.set_quota(u64::MAX);
    compact().unwrap();
    db.put(b"k", b"v").unwrap();
    assert_eq!(db.health(), Health::Healthy);
}

#[test]
fn not_knowing_what_is_free_refuses_nothing_and_is_told() {
    let files = FaultFileSystem::over_memory(&StrictMemFileSystem::new());
    let db = Db::open(DIR, with_reserve(Arc::new(files.clone()), 1000)).unwrap();
    files.add_rule(FaultRule::always(Fault::Io).on(OpKind::FreeSpace));
    db.put(b"k", b"v").unwrap();
    assert!(property(&db, "rocksdb.background-errors") > 0);
    files.clear_rules();
    db.put(b"k", b"w").unwrap();
    assert_eq!(db.get(b"k").unwrap().as_deref(), Some(&b"w"[..]));
}

#[test]
fn obsolete_files_are_gone_once_the_background_is_idle_and_after_closing() {
    let dir = temp_dir();
    let files = Env::system().files;
    let with_threads = || Options {
        background_threads: Some(2),
        ..options(Arc::clone(&files))
    };
    let tables = || {
        let listing = files.list(dir.path()).unwrap();
        let is_table = |name: &&std::path::PathBuf| name.to_string_lossy().contains(".sst");
        listing.iter().filter(is_table).count()
    };
    let live = |db: &Db| {
        let sum = (0..7).map(|level| property(db, &format!("rocksdb.num-files-at-level{level}")));
        sum.sum::<u64>() as usize
    };
    let db = Db::open(dir.path(), with_threads()).unwrap();
    let overwrite = |round: u32| {
        for index in 0..2000 {
            let value = format!("{round}{}", "v".repeat(100));
            db.put(format!("key{:06}", index * 7919 % 1000), value)
                .unwrap();
        }
        db.compact_range(db.default_family(), None, None).unwrap();
    };
    overwrite(1);
    db.wait_for_background().unwrap();
    assert_eq!(tables(), live(&db));
    assert_eq!(property(&db, "drumlin.trash-bytes"), 0);
    overwrite(2);
    db.close().unwrap();
    let left = tables();
    let untouched = Options {
        compaction_style: drumlin::CompactionStyle::Manual,
        ..with_threads()
    };
    let db = Db::open(dir.path(), untouched).unwrap();
    assert_eq!(left, live(&db));
    db.close().unwrap();
    // Files that a crash left half removed go when the database is opened.
    let half = dir.path().join("000001.sst.trash");
    std::fs::write(&half, b"the front of a table").unwrap();
    drop(Db::open(dir.path(), with_threads()).unwrap());
    assert!(!half.exists());
}
