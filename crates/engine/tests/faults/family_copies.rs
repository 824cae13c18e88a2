//! Goal: a family that comes with its tables is there whole or not at all, and an export is whole or not there, wherever the power
//! fails or the disk errs. Method: a stop, or an error, at every operation of either.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use drumlin::{ColumnFamily, Db, Health, ImportOptions, TableFormat, WriteBatch, WriteOptions};
use drumlin_fs::{CrashPolicy, Fault, FaultFileSystem, FaultRule, FileSystem, StrictMemFileSystem};

use crate::support::{DIR, Rows, check_files, options, rows};

const EXPORT: &str = "/export";

/// The rows of the family: large values too, which are kept apart.
fn fill(db: &Db, family: &ColumnFamily) -> Rows {
    let mut told = Rows::new();
    for index in 0..60 {
        let (key, value) = (
            format!("e{index:03}"),
            format!("value {index} ").repeat(1 + index % 8),
        );
        let mut batch = WriteBatch::new();
        batch
            .put_cf(family.id(), key.as_bytes(), value.as_bytes())
            .unwrap();
        db.write(batch, &WriteOptions::default()).unwrap();
        told.insert(key.into_bytes(), value.into_bytes());
        if index % 20 == 10 {
            db.flush_cf(family).unwrap();
        }
    }
    told
}

/// What a store at [`DIR`] had before: a table, a synced and an unsynced write.
fn begin(files: &FaultFileSystem) -> Db {
    let db = Db::open(DIR, options(Arc::new(files.clone()))).unwrap();
    db.put("k0", b"old").unwrap();
    db.flush().unwrap();
    db.put("k1", b"old").unwrap();
    let synced = WriteOptions::synced();
    db.put_cf(db.default_family(), b"k2", b"old", &synced)
        .unwrap();
    db.put("k3", b"unsynced").unwrap();
    db
}

/// A disk with an export of searchable tables, and a store that is to take it in.
fn made() -> (StrictMemFileSystem, FaultFileSystem, Db, Rows) {
    let memory = StrictMemFileSystem::new();
    let mut from = options(Arc::new(memory.clone()));
    from.family.table_format = Some(TableFormat::Searchable);
    let from = Db::open("/from", from).unwrap();
    let told = fill(&from, from.default_family());
    from.compact_range(from.default_family(), None, None)
        .unwrap();
    from.export_family(from.default_family(), EXPORT).unwrap();
    from.close().unwrap();
    memory.sync_all();
    let files = FaultFileSystem::over_memory(&memory);
    let db = begin(&files);
    (memory, files, db, told)
}

fn import(db: &Db) -> drumlin::Result<ColumnFamily> {
    db.import_family("taken", EXPORT, ImportOptions::default())
}

/// The family as it was exported, or none; it is there once that was said, and with it all that was written before.
fn check(db: &Db, told: &Rows, done: bool, place: &str) {
    let taken = db.column_family("taken");
    assert!(taken.is_some() || !done, "{place}: the family is gone");
    if let Some(taken) = &taken {
        let found = rows(db, taken).unwrap_or_else(|why| panic!("{place}: {why:?}"));
        assert!(&found == told, "{place}: {found:?}");
        assert!(db.latest_seqno() >= 60, "{place}");
    }
    let found = rows(db, db.default_family()).unwrap_or_else(|why| panic!("{place}: {why:?}"));
    let least = if taken.is_some() { 4 } else { 3 };
    assert!(found.len() >= least, "{place}: {found:?}");
}

fn open(disk: &StrictMemFileSystem, place: &str) -> Db {
    let opened = Db::open_all_families(DIR, options(Arc::new(disk.clone())));
    opened.unwrap_or_else(|why| panic!("{place}: {why:?}"))
}

#[test]
fn a_family_comes_with_all_its_tables_or_not_at_all_when_the_power_fails() {
    for index in 0.. {
        let (memory, files, db, told) = made();
        files.add_rule(FaultRule::once(index, Fault::Stop));
        let done = import(&db).is_ok();
        drop(db);
        for policy in CrashPolicy::ALL {
            let place = format!("stopped at {index}, {policy:?}");
            let disk = memory.crash_image(index, policy);
            let db = open(&disk, &place);
            check(&db, &told, done, &place);
            check_files(&db, &disk).unwrap_or_else(|why| panic!("{place}: {why}"));
            if db.column_family("taken").is_none() {
                let taken = import(&db).unwrap_or_else(|why| panic!("{place}: {why:?}"));
                assert_eq!(rows(&db, &taken).unwrap(), told, "{place}");
            }
        }
        if !files.is_stopped() {
            assert!(done && index > 20, "{index}");
            break;
        }
    }
}

fn table_names(disk: &StrictMemFileSystem) -> BTreeSet<PathBuf> {
    let names = disk.list(Path::new(DIR)).unwrap().into_iter();
    let is_table = |name: &PathBuf| name.extension().is_some_and(|it| it == "sst");
    names.filter(is_table).collect()
}

#[test]
fn a_family_comes_with_all_its_tables_or_not_at_all_when_the_disk_errs() {
    for index in 0.. {
        let (memory, files, db, told) = made();
        let tables = table_names(&memory);
        files.add_rule(FaultRule::once(index, Fault::Io));
        let done = import(&db).is_ok();
        let struck = files.injected() > 0;
        files.clear_rules();
        let place = format!("error at {index}");
        if !done && db.health() == Health::Healthy {
            assert_eq!(table_names(&memory), tables, "{place}");
            assert!(db.column_family("taken").is_none(), "{place}");
            import(&db).unwrap_or_else(|why| panic!("{place}: {why:?}"));
            check(&db, &told, true, &place);
        }
        drop(db);
        let db = open(&memory, &format!("{place}, reopened"));
        check(&db, &told, done, &place);
        check_files(&db, &memory).unwrap_or_else(|why| panic!("{place}: {why}"));
        if !struck {
            assert!(done && index > 20, "{index}");
            break;
        }
    }
}

/// Whether there is an export at [`EXPORT`], and that it is `told` then.
fn is_exported(disk: &StrictMemFileSystem, told: &Rows, place: &str) -> bool {
    let is_there = disk.exists(Path::new(EXPORT)).unwrap();
    if is_there {
        let copy = Db::open_read_only(EXPORT, options(Arc::new(disk.clone())));
        let copy = copy.unwrap_or_else(|why| panic!("{place}: {why:?}"));
        assert_eq!(
            &rows(&copy, copy.default_family()).unwrap(),
            told,
            "{place}"
        );
        let report = copy.verify().unwrap();
        assert!(report.damaged.is_empty(), "{place}: {:?}", report.damaged);
    }
    is_there
}

#[test]
fn an_export_is_whole_or_not_there() {
    for (index, fault) in (0..).flat_map(|index| [(index, Fault::Stop), (index, Fault::Io)]) {
        let place = format!("{fault:?} at {index}");
        let memory = StrictMemFileSystem::new();
        let files = FaultFileSystem::over_memory(&memory);
        let db = begin(&files);
        let family = db.create_family("users", options(Arc::new(memory.clone())).family);
        let family = family.unwrap();
        let told = fill(&db, &family);
        files.add_rule(FaultRule::once(index, fault));
        let done = db.export_family(&family, EXPORT).is_ok();
        let struck = files.injected() > 0 || files.is_stopped();
        if !files.is_stopped() {
            files.clear_rules();
            let is_there = is_exported(&memory, &told, &place);
            assert!(is_there || !done, "{place}");
            if !is_there && db.health() == Health::Healthy {
                db.export_family(&family, EXPORT)
                    .unwrap_or_else(|why| panic!("{place}: {why:?}"));
            }
        }
        drop((family, db));
        if files.is_stopped() {
            for policy in CrashPolicy::ALL {
                let disk = memory.crash_image(index, policy);
                let is_there = is_exported(&disk, &told, &place);
                assert!(is_there || !done, "{place}, {policy:?}: the export is gone");
            }
        }
        if !struck {
            assert!(done && index > 20, "{index}");
            break;
        }
    }
}
