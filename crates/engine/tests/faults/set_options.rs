//! Goal: options that are set while the store runs, and tables that a range is rid of, are there as a whole or not at
//! all after a stop at any operation; what was acknowledged outlives a power cut. Method: one run on the strict disk,
//! stopped at every operation and cut in every way, or failing at every operation; the OPTIONS file and the rows are
//! compared with both states.

use std::path::Path;
use std::sync::Arc;

use drumlin::internals::options_file::{self, OptionsFile};
use drumlin::{Codec, Compression, Db, Options, Result, WriteOptions};
use drumlin_fs::{CrashPolicy, Fault, FaultFileSystem, FaultRule, FileSystem, StrictMemFileSystem};

use crate::support::{self, DIR, rows};

const KEYS: u32 = 1000;
const SET: [(&str, &str); 3] = [
    ("write_buffer_size", "65536"),
    ("level0_slowdown_writes_trigger", "30"),
    ("block_based_table_factory.block_size", "1024"),
];

/// As the other tests, with tables of the size that they are set to.
fn options(files: Arc<dyn FileSystem>) -> Options {
    Options {
        compression: Compression::new(Codec::None),
        ..support::options(files)
    }
}

/// How far a run came.
#[derive(Debug, Default)]
struct Reached {
    written: bool,
    /// Operations on files until then.
    began: u64,
    set: bool,
    deleted: bool,
}

fn key(at: u32) -> Vec<u8> {
    format!("key{at:04}").into_bytes()
}

/// Writes tables, sets options, and takes out the tables within a range.
fn run(files: &FaultFileSystem, reached: &mut Reached) -> Result<()> {
    let db = Db::open(DIR, options(Arc::new(files.clone())))?;
    for at in 0..KEYS {
        // Every other value is in a blob file.
        let value = vec![b'v'; 20 + 40 * (at as usize % 2)];
        db.put_cf(
            db.default_family(),
            key(at),
            value,
            &WriteOptions::default(),
        )?;
    }
    db.compact_range(db.default_family(), None, None)?;
    reached.written = true;
    reached.began = files.operations();
    db.set_options(db.default_family(), &SET)?;
    db.set_db_options(&[("max_total_wal_size", "1M")])?;
    reached.set = true;
    let deleted =
        db.delete_files_in_range(db.default_family(), Some(&key(100)), Some(&key(900)))?;
    assert!(deleted.tables > 1, "{deleted:?}");
    reached.deleted = true;
    db.close()
}

fn stored(files: &dyn FileSystem) -> Option<OptionsFile> {
    options_file::read_newest(files, Path::new(DIR)).expect("a whole file, or none")
}

/// The options of `SET` in the newest file: all, or none.
fn is_set(file: &OptionsFile, place: &str) -> bool {
    let family = file.family("default").expect("it is there");
    let found = [
        family.options.get("write_buffer_size") == Some("65536"),
        family.options.get("level0_slowdown_writes_trigger") == Some("30"),
        family.table.get("block_size") == Some("1024"),
    ];
    assert!(
        found == [true; 3] || found == [false; 3],
        "{place}: {found:?}"
    );
    found[0]
}

/// The keys there are after a reopening: all, or all but those of the tables taken out.
fn check(files: &Arc<dyn FileSystem>, reached: &Reached, left: &[Vec<u8>], place: &str) {
    let file = stored(&**files);
    if reached.set {
        let file = file
            .as_ref()
            .unwrap_or_else(|| panic!("{place}: no OPTIONS file"));
        assert!(is_set(file, place), "{place}: the options are lost");
        let wal = file.database.get("max_total_wal_size");
        assert_eq!(wal, Some("1048576"), "{place}");
    } else if let Some(file) = &file {
        is_set(file, place);
    }
    let db = Db::open(DIR, options(Arc::clone(files)));
    let db = db.unwrap_or_else(|error| panic!("{place}: {error:?}"));
    if !reached.written {
        return;
    }
    let found = rows(&db, db.default_family()).unwrap_or_else(|error| panic!("{place}: {error:?}"));
    let found: Vec<Vec<u8>> = found.into_keys().collect();
    let is_whole = found.len() == KEYS as usize;
    assert!(is_whole || found == left, "{place}: {} rows", found.len());
    assert!(
        !(is_whole && reached.deleted),
        "{place}: the tables are back"
    );
    let report = db
        .verify()
        .unwrap_or_else(|error| panic!("{place}: {error:?}"));
    assert!(report.damaged.is_empty(), "{place}: {:?}", report.damaged);
}

/// The keys left by a run that nothing stops, and its operations from the setting on.
fn undisturbed() -> (Vec<Vec<u8>>, std::ops::Range<u64>) {
    let memory = StrictMemFileSystem::new();
    let files = FaultFileSystem::over_memory(&memory);
    let mut reached = Reached::default();
    run(&files, &mut reached).expect("nothing stops it");
    let operations = files.operations();
    let db = Db::open(DIR, options(Arc::new(memory))).expect("it opens");
    let left = rows(&db, db.default_family()).expect("they are read");
    let left: Vec<_> = left.into_keys().collect();
    assert!(left.len() < KEYS as usize && !left.is_empty());
    (left, reached.began..operations)
}

#[test]
fn options_and_dropped_tables_are_whole_after_a_stop_anywhere() {
    let (left, operations) = undisturbed();
    let (mut set, mut unset) = (0, 0);
    for index in operations {
        let memory = StrictMemFileSystem::new();
        let files = FaultFileSystem::over_memory(&memory);
        files.add_rule(FaultRule::once(index, Fault::Stop));
        let mut reached = Reached::default();
        let ended = run(&files, &mut reached);
        assert!(ended.is_err() || reached.deleted, "{index}");
        set += u32::from(reached.set);
        unset += u32::from(!reached.set);
        for policy in CrashPolicy::ALL {
            let after: Arc<dyn FileSystem> = Arc::new(memory.crash_image(index, policy));
            check(
                &after,
                &reached,
                &left,
                &format!("stopped at {index}, {policy:?}"),
            );
        }
    }
    assert!(
        set > 5 && unset > 5,
        "{set} and {unset}: before and after the setting"
    );
}

#[test]
fn an_error_anywhere_leaves_options_as_they_were_or_as_they_shall_be() {
    let (left, operations) = undisturbed();
    for index in operations {
        let memory = StrictMemFileSystem::new();
        let files = FaultFileSystem::over_memory(&memory);
        files.add_rule(FaultRule::once(index, Fault::Io));
        let mut reached = Reached::default();
        // Errors are allowed; what is acknowledged holds.
        let ended = run(&files, &mut reached);
        let place = format!("failed at {index}: {ended:?}");
        let after: Arc<dyn FileSystem> = Arc::new(memory);
        check(&after, &reached, &left, &place);
    }
}
