//! Goal: a family that is exported and taken in elsewhere answers as it did, keeps its tables where they were, and goes on as any
//! other; what cannot be taken in is refused and changes nothing. Method: random histories with every kind of entry under each
//! table format, compared row by row; sources that lack something or have too much.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use drumlin::{
    ColumnFamily, Db, DirectoryFormat, Env, Error, ErrorKind, FamilyOptions, FollowOptions,
    ImportOptions, KeepChanges, KeyOrder, Options, ReadOptions, StringAppend, TableFormat, Tuning,
    WriteBatch, WriteOptions,
};
use drumlin_base::rng::Rng;
use drumlin_fs::{CreateOptions, FileKind, FileSystem, StrictMemFileSystem};

type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

fn family_options(format: TableFormat) -> FamilyOptions {
    FamilyOptions {
        merge_operator: Some(Arc::new(StringAppend::new(","))),
        table_format: Some(format),
        ..FamilyOptions::default()
    }
}

fn options(files: &StrictMemFileSystem, format: TableFormat) -> Options {
    Options {
        memory_budget: Some(16 << 20),
        background_threads: Some(0),
        family: family_options(format),
        tuning: Tuning {
            write_buffer_bytes: Some(32 << 10),
            target_file_bytes: 8 << 10,
            level_base_bytes: Some(16 << 10),
            level_multiplier: 4,
            blob_from_bytes: Some(300),
            shared_model_from_bytes: 0,
            ..Tuning::default()
        },
        env: Env::system()
            .with_files(Arc::new(files.clone()))
            .with_seed(7),
        ..Options::default()
    }
}

fn open(files: &StrictMemFileSystem, dir: &str, format: TableFormat) -> Db {
    Db::open_all_families(dir, options(files, format)).unwrap()
}

fn rows(db: &Db, family: &ColumnFamily) -> Rows {
    let mut entries = db.iter_cf(family, ReadOptions::default());
    let mut rows = Rows::new();
    entries.seek_to_first();
    while entries.valid() {
        let value = entries.try_value().unwrap().to_vec();
        rows.insert(entries.key().to_vec(), value);
        entries.next();
    }
    entries.status().unwrap();
    rows
}

fn levels(db: &Db, family: &ColumnFamily) -> Vec<String> {
    let count = |level| format!("rocksdb.num-files-at-level{level}");
    (0..7)
        .map(|level| db.property(family, &count(level)).unwrap())
        .collect()
}

fn key(number: u64) -> Vec<u8> {
    format!("key{number:05}").into_bytes()
}

/// Writes entries of every kind, some values so large that they are kept apart.
fn write(db: &Db, family: &ColumnFamily, rng: &mut Rng, rounds: u64) {
    for _ in 0..rounds {
        let mut batch = WriteBatch::new();
        for _ in 0..1 + rng.below(8) {
            let (id, key) = (family.id(), key(rng.below(2000)));
            match rng.below(20) {
                0 => batch.delete_cf(id, &key).unwrap(),
                1..=4 => batch.merge_cf(id, &key, b"operand").unwrap(),
                5 if rng.below(8) == 0 => {
                    let end = [&key[..], b"~"].concat();
                    batch.delete_range_cf(id, &key[..7], &end).unwrap();
                }
                6 | 7 => {
                    let value = format!("large {} ", rng.below(1 << 30)).repeat(60);
                    batch.put_cf(id, &key, value.as_bytes()).unwrap();
                }
                _ => {
                    let value = format!("value {} ", rng.below(1 << 30)).repeat(4);
                    batch.put_cf(id, &key, value.as_bytes()).unwrap();
                }
            }
        }
        db.write(batch, &WriteOptions::default()).unwrap();
        match rng.below(150) {
            0 => db.flush_cf(family).unwrap(),
            1 => db.compact_range(family, None, None).unwrap(),
            _ => {}
        }
    }
}

fn sound(db: &Db) {
    let report = db.verify().unwrap();
    assert!(report.damaged.is_empty(), "{:?}", report.damaged);
}

#[test]
fn a_family_taken_in_elsewhere_answers_as_it_did_and_goes_on() {
    for (seed, format) in (0..6).flat_map(|seed| {
        let formats = [
            TableFormat::Block,
            TableFormat::Plain,
            TableFormat::Searchable,
        ];
        formats.map(|format| (seed, format))
    }) {
        let place = format!("seed {seed}, {format:?}");
        let files = StrictMemFileSystem::new();
        let mut rng = Rng::new(seed);
        let from = open(&files, "/from", format);
        let users = from.create_family("users", family_options(format)).unwrap();
        write(&from, &users, &mut rng, 1500);
        write(&from, from.default_family(), &mut rng, 50);
        let told = rows(&from, &users);
        from.export_family(&users, "/export").unwrap();
        let shape = levels(&from, &users);

        // By itself a database.
        let alone = Db::open_read_only("/export", options(&files, format)).unwrap();
        assert_eq!(rows(&alone, alone.default_family()), told, "{place}");
        assert_eq!(levels(&alone, alone.default_family()), shape, "{place}");
        sound(&alone);
        drop(alone);

        // What happens to the source is nothing to it.
        write(&from, &users, &mut rng, 100);
        from.drop_family(&users).unwrap();
        drop(users);
        from.close().unwrap();

        let to = open(&files, "/to", format);
        let other = to.create_family("other", family_options(format)).unwrap();
        write(&to, &other, &mut rng, 300);
        let mine = rows(&to, &other);
        let import = ImportOptions {
            family: Some(family_options(format)),
            ..ImportOptions::default()
        };
        let taken = to.import_family("people", "/export", import).unwrap();
        assert_eq!(rows(&to, &taken), told, "{place}");
        assert_eq!(levels(&to, &taken), shape, "{place}");
        assert_eq!(rows(&to, &other), mine, "{place}");
        sound(&to);
        drop((taken, other));
        to.close().unwrap();

        let to = open(&files, "/to", format);
        let taken = to.column_family("people").unwrap();
        assert_eq!(rows(&to, &taken), told, "{place}: reopened");
        let snapshot = to.snapshot();
        write(&to, &taken, &mut rng, 300);
        let now = rows(&to, &taken);
        to.compact_range(&taken, None, None).unwrap();
        assert_eq!(rows(&to, &taken), now, "{place}: compacted");
        let before = ReadOptions {
            snapshot: Some(snapshot),
            ..ReadOptions::default()
        };
        let mut entries = to.iter_cf(&taken, before);
        entries.seek_to_first();
        for (key, value) in &told {
            assert!(entries.valid(), "{place}");
            assert_eq!(
                (entries.key(), entries.try_value().unwrap()),
                (&key[..], &value[..])
            );
            entries.next();
        }
        assert!(!entries.valid(), "{place}");
        sound(&to);
    }
}

#[test]
fn sequence_numbers_go_on_above_those_of_the_tables() {
    let files = StrictMemFileSystem::new();
    let from = open(&files, "/from", TableFormat::Block);
    for number in 0..1000 {
        from.put(key(number % 10), number.to_string()).unwrap();
    }
    from.export_family(from.default_family(), "/export")
        .unwrap();
    let to = open(&files, "/to", TableFormat::Block);
    to.put("mine", "1").unwrap();
    let taken = to
        .import_family("taken", "/export", ImportOptions::default())
        .unwrap();
    assert!(to.latest_seqno() >= 1000, "{}", to.latest_seqno());
    for number in 0..10 {
        let found = to.get_cf(&taken, key(number), &ReadOptions::default());
        let wanted = (990 + number).to_string();
        assert_eq!(found.unwrap().as_deref(), Some(wanted.as_bytes()));
    }
    let mut batch = WriteBatch::new();
    batch.put_cf(taken.id(), &key(3), b"newer").unwrap();
    to.write(batch, &WriteOptions::default()).unwrap();
    let disk = files.crash_image(1, drumlin_fs::CrashPolicy::KeepAll);
    let to = open(&disk, "/to", TableFormat::Block);
    let taken = to.column_family("taken").unwrap();
    let found = to.get_cf(&taken, key(3), &ReadOptions::default()).unwrap();
    assert_eq!(found.as_deref(), Some(&b"newer"[..]));
    assert!(to.latest_seqno() > 1000);
    assert_eq!(to.get("mine").unwrap().as_deref(), Some(&b"1"[..]));
}

#[test]
fn exports_and_imports_beside_writers_are_of_one_moment() {
    let files = StrictMemFileSystem::new();
    let mut threaded = options(&files, TableFormat::Block);
    threaded.background_threads = Some(2);
    let from = Db::open("/from", threaded.clone()).unwrap();
    let to = Db::open("/to", threaded).unwrap();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for db in [&from, &to] {
            scope.spawn(|| {
                for number in 0.. {
                    if is_over.load(Ordering::Relaxed) {
                        break;
                    }
                    let mut batch = WriteBatch::new();
                    batch.put(&key(number), b"first").unwrap();
                    batch
                        .put(&[b"x", &key(number)[..]].concat(), b"second")
                        .unwrap();
                    db.write(batch, &WriteOptions::default()).unwrap();
                }
            });
        }
        let mut last = 0;
        for round in 0..8 {
            while from.latest_seqno() < last + 200 {
                std::thread::yield_now();
            }
            let written = from.latest_seqno();
            let dir = format!("/export{round}");
            from.export_family(from.default_family(), &dir).unwrap();
            let name = format!("taken{round}");
            let taken = to
                .import_family(&name, &dir, ImportOptions::default())
                .unwrap();
            let rows = rows(&to, &taken);
            // A front of the batches, each whole, with all that was written before.
            assert_eq!(rows.len() % 2, 0);
            let batches = rows.len() as u64 / 2;
            assert!(batches >= written / 2, "{batches} of {written}");
            for number in 0..batches {
                assert!(rows.contains_key(&key(number)), "{number} of {batches}");
            }
            last = written;
        }
        is_over.store(true, Ordering::Relaxed);
    });
    sound(&to);
}

#[test]
fn a_follower_sees_the_family_with_its_tables() {
    let files = StrictMemFileSystem::new();
    let from = open(&files, "/from", TableFormat::Block);
    write(&from, from.default_family(), &mut Rng::new(1), 300);
    let told = rows(&from, from.default_family());
    from.export_family(from.default_family(), "/export")
        .unwrap();
    let to = open(&files, "/to", TableFormat::Block);
    let by_hand = FollowOptions { interval: None };
    let options = options(&files, TableFormat::Block);
    let follower = Db::open_follower("/to", options, by_hand).unwrap();
    to.import_family("taken", "/export", ImportOptions::default())
        .unwrap();
    follower.catch_up().unwrap();
    let taken = follower.db().column_family("taken").unwrap();
    assert_eq!(rows(follower.db(), &taken), told);
}

#[test]
fn tables_are_moved_when_that_is_asked_for() {
    let files = StrictMemFileSystem::new();
    let from = open(&files, "/from", TableFormat::Block);
    from.put("a", "1").unwrap();
    from.export_family(from.default_family(), "/export")
        .unwrap();
    let to = open(&files, "/to", TableFormat::Block);
    let tables = || {
        let names = files.list(Path::new("/export")).unwrap().into_iter();
        names
            .filter(|name| name.extension().is_some_and(|it| it == "sst"))
            .count()
    };
    assert_eq!(tables(), 1);
    let moving = ImportOptions {
        move_files: true,
        ..ImportOptions::default()
    };
    let taken = to.import_family("taken", "/export", moving).unwrap();
    assert_eq!(tables(), 0);
    assert_eq!(rows(&to, &taken).len(), 1);
    assert!(Db::open_read_only("/export", options(&files, TableFormat::Block)).is_err());
    assert_eq!(from.get("a").unwrap().as_deref(), Some(&b"1"[..]));
}

fn names(files: &StrictMemFileSystem, dir: &str) -> Vec<PathBuf> {
    let mut names = files.list(Path::new(dir)).unwrap();
    names.sort();
    names
}

/// An import that has to be refused, and why it says it is.
fn refused(
    files: &StrictMemFileSystem,
    (db, dir): (&Db, &str),
    (name, source): (&str, &str),
    family: Option<FamilyOptions>,
) -> Error {
    let (before, families) = (names(files, dir), db.families().len());
    let import = ImportOptions {
        family,
        move_files: true,
    };
    let was_there = db.column_family(name).is_some();
    let error = db.import_family(name, source, import).unwrap_err();
    assert_eq!(names(files, dir), before, "{error}");
    assert_eq!(db.families().len(), families, "{error}");
    assert_eq!(db.column_family(name).is_some(), was_there, "{error}");
    db.put("still", "writable").unwrap();
    error
}

#[test]
fn what_cannot_be_taken_in_is_refused_and_changes_nothing() {
    let files = StrictMemFileSystem::new();
    let from = open(&files, "/from", TableFormat::Block);
    from.put("a", "x".repeat(1000)).unwrap();
    from.export_family(from.default_family(), "/export")
        .unwrap();
    let to = open(&files, "/to", TableFormat::Block);
    to.put("mine", "1").unwrap();
    to.flush().unwrap();
    let refused = |source: (&str, &str), family| refused(&files, (&to, "/to"), source, family);

    let error = refused(("default", "/export"), None);
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(error.to_string().contains("already"), "{error}");
    assert_eq!(
        refused(("", "/export"), None).kind(),
        ErrorKind::InvalidArgument
    );
    assert_eq!(
        refused(("new", "/nowhere"), None).kind(),
        ErrorKind::NotFound
    );

    let reverse = FamilyOptions {
        order: KeyOrder::ReverseBytewise,
        ..FamilyOptions::default()
    };
    let error = refused(("new", "/export"), Some(reverse));
    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    assert!(error.to_string().contains("order"), "{error}");

    // The store itself: values in blob files, then writes in its WAL as well.
    let error = refused(("new", "/from"), None);
    assert_eq!(error.kind(), ErrorKind::NotSupported, "{error}");
    assert!(error.to_string().contains("blob files"), "{error}");
    from.put("b", "1").unwrap();
    let error = refused(("new", "/from"), None);
    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    assert!(error.to_string().contains("WAL"), "{error}");

    let mut level = options(&files, TableFormat::Block);
    (level.format, level.family) = (DirectoryFormat::LevelDb, FamilyOptions::default());
    let level = Db::open("/level", level).unwrap();
    level.put("a", "1").unwrap();
    level.flush().unwrap();
    level.close().unwrap();
    let error = refused(("new", "/level"), None);
    assert!(error.to_string().contains("LevelDB"), "{error}");

    // Half of a table.
    let table = names(&files, "/export")
        .into_iter()
        .find(|it| it.extension().is_some_and(|it| it == "sst"));
    let table = Path::new("/export").join(table.unwrap());
    let bytes = files.read_file(&table, 1 << 20).unwrap();
    let replace = |content: &[u8]| {
        files.remove(&table).unwrap();
        make(&files, &table, content);
    };
    replace(&bytes[..bytes.len() / 2]);
    assert_eq!(
        refused(("new", "/export"), None).kind(),
        ErrorKind::Corruption
    );
    let mut harmed = bytes.clone();
    // Where its index is.
    let end = harmed.len() - 12;
    harmed[end - 40..end].fill(0);
    replace(&harmed);
    let error = refused(("new", "/export"), None);
    assert!(error.to_string().contains(".sst"), "{error}");
    files.remove(&table).unwrap();
    // It may be elsewhere: all of them are missing.
    assert_eq!(
        refused(("new", "/export"), None).kind(),
        ErrorKind::NotSupported
    );
    make(&files, &table, &bytes);
    to.import_family("new", "/export", ImportOptions::default())
        .unwrap();
}

fn make(files: &StrictMemFileSystem, path: &Path, content: &[u8]) {
    let mut file = files
        .create(path, CreateOptions::new(FileKind::Table))
        .unwrap();
    file.append(content).unwrap();
    file.close().unwrap();
}

#[test]
fn where_changes_are_kept_no_family_comes_with_its_tables() {
    let files = StrictMemFileSystem::new();
    let from = open(&files, "/from", TableFormat::Block);
    from.put("a", "1").unwrap();
    from.export_family(from.default_family(), "/export")
        .unwrap();
    let mut options = options(&files, TableFormat::Block);
    options.keep_changes = Some(KeepChanges {
        age: Some(Duration::from_secs(1000)),
        bytes: None,
    });
    let to = Db::open("/to", options).unwrap();
    let error = refused(&files, (&to, "/to"), ("new", "/export"), None);
    assert_eq!(error.kind(), ErrorKind::NotSupported, "{error}");
}

#[test]
fn an_export_goes_where_nothing_is() {
    let files = StrictMemFileSystem::new();
    let db = open(&files, "/from", TableFormat::Block);
    db.put("a", "1").unwrap();
    db.export_family(db.default_family(), "/export").unwrap();
    let error = db
        .export_family(db.default_family(), "/export")
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    let family = db.create_family("gone", FamilyOptions::default()).unwrap();
    db.drop_family(&family).unwrap();
    assert!(db.export_family(&family, "/gone").is_err());
    assert!(!files.exists(Path::new("/gone")).unwrap());
    let left = files.list(Path::new("/")).unwrap();
    assert!(
        !left
            .iter()
            .any(|name| name.to_string_lossy().contains("unfinished")),
        "{left:?}"
    );
    let reader = Db::open_read_only("/from", options(&files, TableFormat::Block)).unwrap();
    let error = reader
        .export_family(reader.default_family(), "/other")
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ReadOnly, "{error}");
}
