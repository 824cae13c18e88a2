//! Goal: a database whose removal was cut off is there whole or is not opened, and can be removed again. Method: the
//! removal is stopped at every operation, and the power cut in every way.

use std::path::Path;
use std::sync::Arc;

use drumlin::{Db, Options};
use drumlin_fs::{CrashPolicy, Fault, FaultFileSystem, FaultRule, FileSystem, StrictMemFileSystem};

use crate::support::{DIR, options};

const KEYS: u32 = 40;

/// A disk with a database in tables, WAL and a file of somebody else's.
fn disk() -> StrictMemFileSystem {
    let memory = StrictMemFileSystem::new();
    let db = Db::open(DIR, options(Arc::new(memory.clone()))).expect("opens");
    for key in 0..KEYS {
        db.put(key.to_be_bytes(), [7; 100]).expect("is written");
        if key % 10 == 5 {
            db.flush().expect("flushes");
        }
    }
    db.sync_wal().expect("syncs");
    drop(db);
    memory
}

fn existing(disk: &StrictMemFileSystem) -> Options {
    Options {
        create_if_missing: false,
        ..options(Arc::new(disk.clone()))
    }
}

/// The database is whole, or does not open.
fn whole_or_none(place: &str, disk: &StrictMemFileSystem) {
    let Ok(db) = Db::open(DIR, existing(disk)) else {
        return;
    };
    for key in 0..KEYS {
        let value = db.get(key.to_be_bytes()).expect("reads");
        assert!(value.is_some(), "{place}: key {key} is gone");
    }
}

#[test]
fn a_removal_that_is_cut_off_leaves_all_or_nothing_and_goes_on() {
    let memory = disk();
    let files = FaultFileSystem::over_memory(&memory);
    Db::destroy(DIR, &options(Arc::new(files.clone()))).expect("removes");
    let operations = files.operations();
    assert!(
        memory.list(Path::new(DIR)).is_err(),
        "the directory is gone"
    );
    for index in 0..operations {
        for policy in CrashPolicy::ALL {
            let memory = disk();
            let files = FaultFileSystem::over_memory(&memory);
            files.add_rule(FaultRule::once(index, Fault::Stop));
            let cut_off = Db::destroy(DIR, &options(Arc::new(files.clone())));
            drop(cut_off);
            let place = format!("stopped at {index}, {policy:?}");
            let after = memory.crash_image(index, policy);
            whole_or_none(&place, &after);
            Db::destroy(DIR, &options(Arc::new(after.clone())))
                .unwrap_or_else(|error| panic!("{place}: again: {error:?}"));
            let left = after.list(Path::new(DIR)).unwrap_or_default();
            let mut left = left.iter().filter(|name| name.as_os_str() != "LOCK");
            assert_eq!(left.next(), None, "{place}");
        }
    }
}
