//! Goal: taking in external tables and making checkpoints is whole or not at all, wherever the
//! power fails or the disk errs. Method: a stop, or an error, at every operation of either.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use drumlin::{Db, ErrorKind, Health, SstFileWriter, TableWriterOptions, WriteOptions};
use drumlin_base::ValueKind;
use drumlin_base::key::internal_key;
use drumlin_base::rng::Rng;
use drumlin_fs::{
    CrashPolicy, CreateOptions, Env, Fault, FaultFileSystem, FaultRule, FileKind, FileSystem,
    OpKind, StrictMemFileSystem,
};
use drumlin_table::TableWriter;

use crate::support::{DIR, Rows, check_files, options, rows};

const EXTERNAL: &str = "/external.sst";
const COPY: &str = "/copy";

/// A database of a table, a synced and an unsynced write, and an external table beside it.
fn made() -> (StrictMemFileSystem, FaultFileSystem, Db) {
    let memory = StrictMemFileSystem::new();
    let files = FaultFileSystem::over_memory(&memory);
    let env = Env::system().with_files(Arc::new(memory.clone()));
    let path = Path::new(EXTERNAL);
    let mut table = SstFileWriter::create(&env, path, TableWriterOptions::default()).unwrap();
    for index in 0..20 {
        table
            .put(format!("e{index:03}").as_bytes(), b"new")
            .unwrap();
    }
    table.put(b"k003", b"new").unwrap();
    table.delete_range(b"k006", b"k008").unwrap();
    table.finish().unwrap();
    memory.sync_all();
    let db = Db::open(DIR, options(Arc::new(files.clone()))).unwrap();
    for index in 0..10 {
        db.put(format!("k{index:03}"), b"old").unwrap();
        if index == 4 {
            db.flush().unwrap();
        }
    }
    let synced = WriteOptions::synced();
    db.put_cf(db.default_family(), b"k010", b"old", &synced)
        .unwrap();
    (memory, files, db)
}

fn before() -> Rows {
    let old = (0..11).map(|index| (format!("k{index:03}").into_bytes(), b"old".to_vec()));
    old.collect()
}

fn after() -> Rows {
    let mut rows = before();
    for index in 0..20 {
        rows.insert(format!("e{index:03}").into_bytes(), b"new".to_vec());
    }
    rows.insert(b"k003".to_vec(), b"new".to_vec());
    rows.retain(|key, _| !(&b"k006"[..]..&b"k008"[..]).contains(&&key[..]));
    rows
}

/// All of the external table, or nothing of it; all of it once that was said.
fn check(db: &Db, done: bool, place: &str) {
    let found = rows(db, db.default_family()).unwrap_or_else(|why| panic!("{place}: {why:?}"));
    assert!(
        found == after() || (!done && found == before()),
        "{place}: {found:?}"
    );
}

fn ingest(db: &Db) -> drumlin::Result<()> {
    db.ingest(db.default_family(), &[PathBuf::from(EXTERNAL)], false)
}

fn table_names(disk: &StrictMemFileSystem) -> BTreeSet<PathBuf> {
    let names = disk.list(Path::new(DIR)).unwrap().into_iter();
    let is_table = |name: &PathBuf| name.extension().is_some_and(|it| it == "sst");
    names.filter(is_table).collect()
}

fn open(disk: &StrictMemFileSystem, place: &str) -> Db {
    let opened = Db::open(DIR, options(Arc::new(disk.clone())));
    opened.unwrap_or_else(|why| panic!("{place}: {why:?}"))
}

#[test]
fn an_external_table_that_refers_to_blob_files_is_refused() {
    let (memory, _, db) = made();
    let mut options = TableWriterOptions::default();
    let version = ("rocksdb.external_sst_file.version", vec![2, 0, 0, 0]);
    let properties = &mut options.user_properties;
    properties.insert(version.0.to_owned(), version.1);
    let path = Path::new("/referring.sst");
    let file = memory.create(path, CreateOptions::new(FileKind::Other));
    let mut table = TableWriter::new(file.unwrap(), options);
    let key = internal_key(b"key", 0, ValueKind::BlobIndex);
    let reference = [1, 9, 64, 10, 0]; // Ten bytes at 64 of file 9.
    table.add(&key, &reference).unwrap();
    table.finish().unwrap();
    memory.sync_all();
    let error = db.ingest(db.default_family(), &[path.to_owned()], false);
    let error = error.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(error.to_string().contains("blob"), "{error}");
    assert!(db.get(b"key").unwrap().is_none());
}

#[test]
fn an_external_table_is_taken_in_whole_or_not_at_all_when_the_power_fails() {
    for index in 0.. {
        let (memory, files, db) = made();
        files.add_rule(FaultRule::once(index, Fault::Stop));
        let done = ingest(&db).is_ok();
        drop(db);
        for policy in CrashPolicy::ALL {
            let place = format!("stopped at {index}, {policy:?}");
            let disk = memory.crash_image(index, policy);
            let db = open(&disk, &place);
            check(&db, done, &place);
            check_files(&db, &disk).unwrap_or_else(|why| panic!("{place}: {why}"));
        }
        if !files.is_stopped() || done {
            assert!(index > 5);
            break;
        }
    }
}

#[test]
fn an_external_table_is_taken_in_whole_or_not_at_all_when_the_disk_errs() {
    for index in 0.. {
        let (memory, files, db) = made();
        let tables = table_names(&memory);
        files.add_rule(FaultRule::once(index, Fault::Io));
        let done = ingest(&db).is_ok();
        let struck = files.injected() > 0;
        files.clear_rules();
        if !done && db.health() == Health::Healthy {
            assert_eq!(table_names(&memory), tables, "error at {index}");
        }
        check(&db, done, &format!("error at {index}, still open"));
        drop(db);
        let place = format!("error at {index}, reopened");
        let db = open(&memory, &place);
        check(&db, done, &place);
        check_files(&db, &memory).unwrap_or_else(|why| panic!("{place}: {why}"));
        if !struck {
            break;
        }
    }
}

#[test]
fn what_was_written_before_an_external_table_survives_with_it() {
    let (memory, _, db) = made();
    let other = db.create_family("other", options(Arc::new(memory.clone())).family);
    let other = other.unwrap();
    // Unsynced, in the WAL that goes on: the other family has no memtable to rotate.
    db.put(b"before", b"written").unwrap();
    db.ingest(&other, &[PathBuf::from(EXTERNAL)], false)
        .unwrap();
    drop((other, db));
    for policy in CrashPolicy::ALL {
        let disk = memory.crash_image(1, policy);
        let db = Db::open_all_families(DIR, options(Arc::new(disk))).unwrap();
        let other = db.column_family("other").unwrap();
        let taken = rows(&db, &other).unwrap();
        assert_eq!(taken.len(), 21, "{policy:?}");
        let before = db.get(b"before").unwrap();
        assert_eq!(before.as_deref(), Some(&b"written"[..]), "{policy:?}");
    }
}

#[test]
fn a_checkpoint_is_whole_or_not_there() {
    for index in 0.. {
        let (memory, files, db) = made();
        files.add_rule(FaultRule::once(index, Fault::Stop));
        let done = db.checkpoint(COPY).is_ok();
        drop(db);
        for policy in CrashPolicy::ALL {
            let place = format!("stopped at {index}, {policy:?}");
            let disk = memory.crash_image(index, policy);
            let db = open(&disk, &place);
            assert_eq!(rows(&db, db.default_family()).unwrap(), before(), "{place}");
            let is_there = disk.exists(Path::new(COPY)).unwrap();
            assert!(is_there || !done, "{place}: the checkpoint is gone");
            if is_there {
                let identity = Path::new(COPY).join("IDENTITY");
                assert!(disk.exists(&identity).unwrap(), "{place}: no identity");
                let copy = Db::open(COPY, options(Arc::new(disk.clone())));
                let copy = copy.unwrap_or_else(|why| panic!("{place}: {why:?}"));
                assert_eq!(
                    rows(&copy, copy.default_family()).unwrap(),
                    before(),
                    "{place}"
                );
                copy.put(b"k", b"its own").unwrap();
                assert!(db.get(b"k").unwrap().is_none(), "{place}");
            }
            // A begun one is in nobody's way.
            if !is_there {
                db.checkpoint(COPY)
                    .unwrap_or_else(|why| panic!("{place}: {why:?}"));
            }
        }
        if !files.is_stopped() {
            break;
        }
    }
}

/// A database whose WAL was given up because the disk was full for a moment.
fn full_for_a_moment() -> (StrictMemFileSystem, Db) {
    let memory = StrictMemFileSystem::new();
    let files = FaultFileSystem::over_memory(&memory);
    let db = Db::open(DIR, options(Arc::new(files.clone()))).unwrap();
    db.put("before", "1").unwrap();
    let full = FaultRule::once(0, Fault::NoSpace).on(OpKind::Append);
    files.add_rule(full.of_kind(FileKind::Wal));
    let refused = db.put("refused", "2").unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::NoSpace);
    (memory, db)
}

#[test]
fn a_checkpoint_made_after_a_full_disk_has_what_was_acknowledged() {
    let (memory, db) = full_for_a_moment();
    db.checkpoint(COPY).unwrap();
    let copy = Db::open_read_only(COPY, options(Arc::new(memory))).unwrap();
    let found = copy.get("before").unwrap();
    assert_eq!(found.as_deref(), Some(&b"1"[..]));
    assert!(copy.get("refused").unwrap().is_none());
}

#[test]
fn a_wal_given_up_on_a_full_disk_may_be_gone_at_the_next_sync() {
    let (_, db) = full_for_a_moment();
    db.flush().unwrap();
    db.put("after", "3").unwrap();
    db.sync_wal().unwrap();
    assert_eq!(db.get("before").unwrap().as_deref(), Some(&b"1"[..]));
}

#[test]
fn what_a_torn_append_left_is_cut_off_before_writes_go_on() {
    let memory = StrictMemFileSystem::new();
    let files = FaultFileSystem::over_memory(&memory);
    let db = Db::open(DIR, options(Arc::new(files.clone()))).unwrap();
    db.put("before", "1").unwrap();
    let full = FaultRule::once(0, Fault::TornNoSpace).on(OpKind::Append);
    files.add_rule(full.of_kind(FileKind::Wal));
    let mut refused = vec![0; 3000];
    Rng::new(1).fill(&mut refused);
    let error = db.put("refused", &refused).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NoSpace);
    db.put("after", "3").unwrap();
    let half = &refused[..1000];
    for (path, content) in memory.snapshot_files() {
        let left = content.windows(half.len()).any(|part| part == half);
        assert!(!left, "{} has what was refused", path.display());
    }
    let killed = memory.crash_image(0, CrashPolicy::KeepAll);
    let db = open(&killed, "killed");
    let cut = &db.recovery_report().cut;
    assert!(cut.is_none(), "{cut:?}");
    assert_eq!(db.get("before").unwrap().as_deref(), Some(&b"1"[..]));
    assert_eq!(db.get("after").unwrap().as_deref(), Some(&b"3"[..]));
    assert!(db.get("refused").unwrap().is_none());
}

/// A database whose WAL holds all it has, in several records.
fn in_the_wal() -> (StrictMemFileSystem, FaultFileSystem, Db) {
    let memory = StrictMemFileSystem::new();
    let files = FaultFileSystem::over_memory(&memory);
    let db = Db::open(DIR, options(Arc::new(files.clone()))).unwrap();
    for index in 0..10 {
        db.put(format!("k{index:03}"), b"old").unwrap();
    }
    db.put("k010", b"old").unwrap();
    (memory, files, db)
}

#[test]
fn a_checkpoint_made_with_short_reads_is_whole_or_refused() {
    for index in 0.. {
        let (memory, files, db) = in_the_wal();
        let rule = FaultRule::once(index, Fault::ShortRead).on(OpKind::Read);
        files.add_rule(rule);
        let made = db.checkpoint(COPY);
        if files.injected() == 0 {
            assert!(index > 0, "the WAL is read");
            break;
        }
        if made.is_ok() {
            let copy = Db::open_read_only(COPY, options(Arc::new(memory))).unwrap();
            assert_eq!(rows(&copy, copy.default_family()).unwrap(), before());
        }
    }
}

#[test]
fn short_reads_while_opening_lose_no_acknowledged_write() {
    let (memory, _, db) = in_the_wal();
    db.checkpoint(COPY).unwrap();
    for index in 0.. {
        let files = FaultFileSystem::over_memory(&memory);
        let rule = FaultRule::once(index, Fault::ShortRead).on(OpKind::Read);
        files.add_rule(rule);
        let opened = Db::open_read_only(COPY, options(Arc::new(files.clone())));
        let struck = files.injected() > 0;
        if let Ok(copy) = opened {
            files.clear_rules();
            let found = rows(&copy, copy.default_family()).unwrap();
            assert_eq!(found, before(), "short read {index}");
        }
        if !struck {
            assert!(index > 0, "the WAL is read");
            break;
        }
    }
}
