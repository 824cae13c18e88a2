//! What ranges of keys take on disk, and removing a database from its directory.

#![expect(
    clippy::disallowed_methods,
    reason = "the test's own files, which stand for other programs'"
)]

use std::path::Path;

use drumlin::{
    Db, ErrorKind, FamilyOptions, LiveFileKind, LiveTable, Options, TableFormat, WriteBatch,
    WriteOptions,
};
use drumlin_testkit::temp_dir;

fn filled(dir: &Path, options: &Options) -> Db {
    let db = Db::open(dir, options.clone()).expect("opens");
    for chunk in 0..4u32 {
        let mut batch = WriteBatch::new();
        for key in 0..5_000u32 {
            let key = format!("k{:08}", chunk * 5_000 + key);
            batch
                .put(key.as_bytes(), key.repeat(10).as_bytes())
                .expect("fits");
        }
        db.write(batch, &WriteOptions::default())
            .expect("is written");
    }
    db
}

fn in_background_none() -> Options {
    Options {
        compression: drumlin::Compression::none(),
        background_threads: Some(0),
        ..Options::default()
    }
}

#[test]
fn ranges_take_about_what_their_rows_take() {
    let dir = temp_dir();
    let db = filled(dir.path(), &in_background_none());
    let family = db.default_family();
    let all: (&[u8], &[u8]) = (b"a", b"z");
    assert_eq!(
        db.approximate_sizes(family, &[all]).expect("answers"),
        [0],
        "memtables do not count"
    );
    db.flush().expect("flushes");
    let halves: [(&[u8], &[u8]); 5] = [
        all,
        (b"k00000000", b"k00010000"),
        (b"k00010000", b"z"),
        (b"k00010000", b"k00010000"),
        (b"z", b"a"),
    ];
    let sizes = db.approximate_sizes(family, &halves).expect("answers");
    let row = 9 + 90 + 20;
    assert!(
        (10_000 * 99..20_000 * row * 2).contains(&sizes[0]),
        "{sizes:?}"
    );
    for half in &sizes[1..3] {
        assert!(half.abs_diff(sizes[0] / 2) < sizes[0] / 20, "{sizes:?}");
    }
    assert_eq!(sizes[3..], [0, 0]);
}

#[test]
fn a_removed_database_is_gone_and_other_files_stay() {
    let dir = temp_dir();
    let store = dir.path().join("store");
    let options = in_background_none();
    let db = filled(&store, &options);
    let held = Db::destroy(&store, &options).expect_err("it is open");
    assert_eq!(held.kind(), ErrorKind::Locked);
    assert!(db.get("k00000001").expect("reads").is_some());
    drop(db);
    std::fs::write(store.join("notes.txt"), "mine").expect("writes");
    Db::destroy(&store, &options).expect("removes");
    let left: Vec<_> = std::fs::read_dir(&store).expect("is there").collect();
    assert_eq!(left.len(), 1, "{left:?}");
    std::fs::remove_file(store.join("notes.txt")).expect("is there");
    Db::destroy(&store, &options).expect("nothing is left to remove");

    drop(filled(&store, &options));
    Db::destroy(&store, &options).expect("removes");
    assert!(!store.exists());
    Db::destroy(&store, &options).expect("there is none");
}

#[test]
fn a_folder_of_other_files_is_not_taken_for_a_database() {
    let dir = temp_dir();
    let log = dir.path().join("000012.log");
    std::fs::write(&log, "a log of somebody's").expect("writes");
    let refused = Db::destroy(dir.path(), &Options::default()).expect_err("is refused");
    assert_eq!(refused.kind(), ErrorKind::InvalidArgument);
    assert!(log.exists());
}

#[test]
fn a_wal_elsewhere_goes_too_and_never_another_databases() {
    let dir = temp_dir();
    let (store, wal, other) = (
        dir.path().join("store"),
        dir.path().join("wal"),
        dir.path().join("other"),
    );
    std::fs::create_dir(&wal).expect("is made");
    let mut options = in_background_none();
    drop(filled(&other, &options));
    options.wal_dir = Some(wal.clone());
    drop(filled(&store, &options));
    let wals = |dir: &Path| {
        let names = std::fs::read_dir(dir).expect("is there");
        names
            .filter(|name| {
                name.as_ref()
                    .expect("is read")
                    .path()
                    .extension()
                    .is_some_and(|e| e == "log")
            })
            .count()
    };
    options.wal_dir = Some(other.clone());
    let refused = Db::destroy(&store, &options).expect_err("that is another one's");
    assert_eq!(refused.kind(), ErrorKind::InvalidArgument);
    assert!(wals(&other) > 0 && wals(&wal) > 0);
    options.wal_dir = Some(wal.clone());
    Db::destroy(&store, &options).expect("removes");
    assert_eq!((wals(&wal), store.exists()), (0, false));
}

#[test]
fn tables_are_told_with_their_keys_levels_and_entries() {
    let dir = temp_dir();
    let db = filled(dir.path(), &in_background_none());
    let family = db.default_family();
    assert!(db.live_tables(family).expect("answers").is_empty());
    db.delete(b"k00000007").expect("is written");
    db.flush().expect("flushes");
    db.count_tables(family).expect("reads");
    let tables = db.live_tables(family).expect("answers");
    assert!(tables.iter().all(|table| table.level == 0), "{tables:?}");
    let entries: u64 = tables.iter().filter_map(|table| table.entries).sum();
    let deletions: u64 = tables.iter().filter_map(|table| table.deletions).sum();
    assert_eq!(deletions, 1);
    assert!((20_000..=20_001).contains(&entries), "{entries}");
    db.compact_range(family, None, None).expect("compacts");
    db.count_tables(family).expect("reads");
    let mut tables = db.live_tables(family).expect("answers");
    tables.sort_by(|a, b| a.smallest.cmp(&b.smallest));
    assert!(tables.iter().all(|table| table.level > 0), "{tables:?}");
    assert_eq!(
        tables.iter().filter_map(|table| table.entries).sum::<u64>(),
        19_999
    );
    assert_eq!(tables[0].smallest, b"k00000000");
    assert_eq!(tables[tables.len() - 1].largest, b"k00019999");
    for table in &tables {
        let file = std::fs::metadata(&table.path).expect("is there");
        assert_eq!(file.len(), table.bytes);
    }
}

#[test]
fn tables_are_counted_without_being_opened() {
    for format in [TableFormat::Block, TableFormat::Searchable] {
        let dir = temp_dir();
        let mut options = in_background_none();
        options.family.table_format = Some(format);
        let db = filled(dir.path(), &options);
        db.flush().expect("flushes");
        let reader = Db::open_read_only(dir.path(), options).expect("opens");
        let used = || {
            reader
                .budget()
                .used_by_name()
                .iter()
                .map(|(_, bytes)| bytes)
                .sum::<usize>()
        };
        let before = used();
        let family = reader.default_family();
        reader.count_tables(family).expect("reads");
        assert_eq!(used(), before);
        let tables = reader.live_tables(family).expect("answers");
        let sum = |of: fn(&LiveTable) -> Option<u64>| tables.iter().filter_map(of).sum::<u64>();
        assert_eq!(sum(|table| table.entries), 20_000);
        assert_eq!(sum(|table| table.key_bytes), 20_000 * (9 + 8));
        assert_eq!(sum(|table| table.value_bytes), 20_000 * 90);
    }
}

#[test]
fn usage_counts_the_rows_of_a_range() {
    let dir = temp_dir();
    let db = filled(dir.path(), &in_background_none());
    db.flush().expect("flushes");
    let family = db.default_family();
    let ranges: [(&[u8], &[u8]); 3] = [(b"a", b"z"), (b"k00005000", b"k00010000"), (b"x", b"z")];
    let usage = db.approximate_usage(family, &ranges).expect("answers");
    assert_eq!(usage[0].entries, 20_000);
    assert_eq!(usage[0].value_bytes, 20_000 * 90);
    // Keys are counted as they are stored, with eight bytes of number and kind.
    assert_eq!(usage[0].key_bytes, 20_000 * (9 + 8));
    assert!(usage[1].entries.abs_diff(5_000) < 500, "{usage:?}");
    assert_eq!(usage[2].entries, 0);
    let sizes = db.approximate_sizes(family, &ranges).expect("answers");
    assert!(
        usage
            .iter()
            .zip(sizes)
            .all(|(usage, size)| usage.bytes == size)
    );
}

#[test]
fn live_files_are_those_of_the_directory() {
    let dir = temp_dir();
    let db = filled(dir.path(), &in_background_none());
    db.flush().expect("flushes");
    db.put("k00000007", "newer").expect("writes");
    db.flush().expect("flushes");
    let other = db
        .create_family("other", FamilyOptions::default())
        .expect("creates");
    db.put_cf(&other, "a", "1", &WriteOptions::default())
        .expect("writes");
    db.flush().expect("flushes");
    let tables = db.live_tables(db.default_family()).expect("answers");
    assert!(tables.len() >= 2 && tables.iter().all(|table| table.level == 0));
    // The newest first, as a read meets them.
    assert_eq!(tables[0].smallest, b"k00000007");
    assert_eq!(tables[0].largest, b"k00000007");
    assert!(tables[0].number > tables[1].number);
    let files = db.live_files().expect("answers");
    let mut named: Vec<_> = files
        .iter()
        .filter(|file| file.kind == LiveFileKind::Table)
        .collect();
    named.sort_by(|a, b| a.path.cmp(&b.path));
    let mut there: Vec<_> = std::fs::read_dir(dir.path())
        .expect("is there")
        .map(|entry| entry.expect("readable").path())
        .filter(|path| path.extension().is_some_and(|end| end == "sst"))
        .collect();
    there.sort();
    assert_eq!(
        named.iter().map(|file| &file.path).collect::<Vec<_>>(),
        there.iter().collect::<Vec<_>>()
    );
    for file in named {
        let bytes = std::fs::metadata(&file.path).expect("is there").len();
        assert_eq!(file.bytes, Some(bytes));
    }
    assert_eq!(
        files
            .iter()
            .filter(|file| file.family.as_deref() == Some("other"))
            .count(),
        1
    );
    let wal = files
        .iter()
        .find(|file| file.kind == LiveFileKind::Wal)
        .expect("a WAL");
    assert!(wal.path.exists());
    let elsewhere = temp_dir();
    let stranger = filled(elsewhere.path(), &in_background_none());
    assert!(
        stranger.live_tables(&other).is_err(),
        "a family of another database"
    );
}

#[test]
fn what_is_obsolete_is_gone_when_its_removal_has_finished() {
    let dir = temp_dir();
    let options = Options {
        background_threads: Some(2),
        ..Options::default()
    };
    let db = Db::open(dir.path(), options).expect("opens");
    let tables = || {
        let listing = std::fs::read_dir(dir.path()).expect("is there");
        let names = listing.map(|entry| entry.expect("is read").file_name());
        names
            .filter(|name| name.to_string_lossy().ends_with(".sst"))
            .count()
    };
    for round in 0..50 {
        for key in ["a", "b"] {
            db.put(key, "value").expect("is written");
            db.flush().expect("flushes");
        }
        db.compact_range(db.default_family(), None, None)
            .expect("compacts");
        db.finish_removal().expect("removes");
        assert_eq!(tables(), 1, "in round {round}");
    }
    db.pause_removal().expect("pauses");
    db.put("a", "newer").expect("is written");
    db.compact_range(db.default_family(), None, None)
        .expect("compacts");
    db.finish_removal().expect("leaves them");
    assert_eq!(tables(), 3);
    db.continue_removal().expect("removes");
    assert_eq!(tables(), 1);
    drop(db);
    let db = Db::open_read_only(dir.path(), Options::default()).expect("opens");
    let refused = db.finish_removal().expect_err("nothing may be removed");
    assert_eq!(refused.kind(), ErrorKind::ReadOnly);
}
