//! Goal: a prepared transaction is seen by nobody, keeps its locks, stays through reopening, and is then made or given up
//! as a whole; its WAL files stay as long as they are needed and no longer. Method: histories step by step, and a random
//! one beside a map, with flushes and reopens between the steps.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use drumlin::internals::names::{self, FileName};
use drumlin::{
    ColumnFamily, Db, DirectoryFormat, Env, ErrorKind, FamilyOptions, Isolation, KeepChanges,
    Locking, Options, ReadOptions, StringAppend, TransactionDb, TransactionOptions, WriteBatch,
    WriteOptions,
};
use drumlin_base::rng::Rng;
use drumlin_fs::{
    CrashPolicy, CreateOptions, Fault, FaultFileSystem, FaultRule, FileKind, FileSystem,
    StrictMemFileSystem,
};

const DIR: &str = "/db";
const SYNC: WriteOptions = WriteOptions {
    sync: Some(true),
    no_wal: false,
    no_stall: false,
};

fn options(files: &StrictMemFileSystem) -> Options {
    Options {
        env: Env::system().with_files(Arc::new(files.clone())),
        background_threads: Some(0),
        memory_budget: Some(8 << 20),
        family: family_options(),
        ..Options::default()
    }
}

fn family_options() -> FamilyOptions {
    FamilyOptions {
        merge_operator: Some(Arc::new(StringAppend::new(","))),
        ..FamilyOptions::default()
    }
}

/// Nobody waits.
fn impatient() -> Locking {
    Locking {
        timeout: Duration::ZERO,
        ..Locking::default()
    }
}

fn open(files: &StrictMemFileSystem) -> TransactionDb {
    let names = Db::list_families(DIR, &Env::system().with_files(Arc::new(files.clone())));
    let names = names.unwrap_or_else(|_| vec!["default".to_owned()]);
    let families: Vec<_> = names
        .iter()
        .map(|name| (name.as_str(), family_options()))
        .collect();
    TransactionDb::open_families(DIR, options(files), &families, impatient()).unwrap()
}

fn value(db: &TransactionDb, family: &ColumnFamily, key: &str) -> Option<String> {
    let value = db.get(family, key).unwrap();
    value.map(|value| String::from_utf8(value.to_vec()).unwrap())
}

fn wals(files: &StrictMemFileSystem) -> Vec<u64> {
    let names = files.list(Path::new(DIR)).unwrap();
    let wals = names.iter().filter_map(|name| match FileName::parse(name) {
        Some(FileName::Wal(number)) => Some(number),
        _ => None,
    });
    let mut wals: Vec<u64> = wals.collect();
    wals.sort_unstable();
    wals
}

#[test]
fn what_is_prepared_is_seen_by_nobody_and_keeps_its_locks_until_it_is_committed() {
    let files = StrictMemFileSystem::new();
    let db = open(&files);
    let family = db.default_family();
    let mut tx = db.begin();
    tx.put(family, "a", "1").unwrap();
    tx.merge(family, "m", "x").unwrap();
    tx.delete_range(family, "r", "s").unwrap();
    let prepared = tx.prepare("one").unwrap();
    assert_eq!(prepared.name(), b"one");
    assert_eq!(value(&db, family, "a"), None);
    for key in ["a", "m", "r5"] {
        let error = db.put(family, key, "2").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut, "{key}");
    }
    db.put(family, "b", "free").unwrap();
    let before = db.snapshot().seqno();
    assert_eq!(prepared.commit().unwrap(), before + 3);
    assert_eq!(value(&db, family, "a").as_deref(), Some("1"));
    assert_eq!(value(&db, family, "m").as_deref(), Some("x"));
    db.put(family, "a", "2").unwrap();
    assert!(db.prepared_transactions().is_empty() && db.prepared("one").is_none());
}

#[test]
fn a_prepared_transaction_comes_back_with_its_locks_as_often_as_it_is_opened() {
    let files = StrictMemFileSystem::new();
    let db = open(&files);
    db.put(db.default_family(), "a", "0").unwrap();
    let more = db.create_family("more", family_options()).unwrap();
    for name in ["kept", "given up"] {
        let mut tx = db.begin();
        tx.put(db.default_family(), format!("a of {name}"), name)
            .unwrap();
        tx.put(&more, format!("b of {name}"), name).unwrap();
        drop(tx.prepare(name).unwrap()); // Dropping leaves it.
    }
    drop(db);
    for round in 0..4 {
        // A plain store keeps them too.
        let plain = Db::open_all_families(DIR, options(&files)).unwrap();
        assert_eq!(
            plain.prepared_transactions(),
            [b"given up".to_vec(), b"kept".to_vec()]
        );
        assert_eq!(plain.recovery_report().prepared, 2);
        plain.put("c", round.to_string()).unwrap();
        plain.flush().unwrap();
        plain.close().unwrap();
        let reader = Db::open_read_only(DIR, options(&files)).unwrap();
        assert_eq!(reader.prepared_transactions().len(), 2);
        assert_eq!(reader.get("a of kept").unwrap(), None);
    }
    let db = open(&files);
    let (family, more) = (db.default_family(), db.column_family("more").unwrap());
    let locked = db.put(&more, "b of kept", "1").unwrap_err();
    assert_eq!(locked.kind(), ErrorKind::TimedOut);
    db.prepared("kept").unwrap().commit_with(&SYNC).unwrap();
    db.prepared("given up").unwrap().rollback().unwrap();
    assert_eq!(value(&db, family, "a of kept").as_deref(), Some("kept"));
    assert_eq!(value(&db, &more, "b of kept").as_deref(), Some("kept"));
    db.put(&more, "b of given up", "free").unwrap();
    drop(db);
    let db = open(&files);
    assert!(db.prepared_transactions().is_empty());
    assert_eq!(
        value(&db, db.default_family(), "a of kept").as_deref(),
        Some("kept")
    );
    assert_eq!(value(&db, db.default_family(), "a of given up"), None);
}

#[test]
fn a_name_is_of_one_transaction_at_a_time() {
    let files = StrictMemFileSystem::new();
    let db = open(&files);
    let family = db.default_family();
    let mut tx = db.begin();
    tx.put(family, "a", "1").unwrap();
    let first = tx.prepare("x").unwrap();
    let mut tx = db.begin();
    tx.put(family, "b", "1").unwrap();
    let error = tx.prepare("x").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    db.put(family, "b", "the refused one let go of it").unwrap();
    for bad in ["".to_owned(), "n".repeat(513)] {
        let error = db.begin().prepare(bad).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    }
    let error = db
        .begin()
        .prepare_with(
            "y",
            &WriteOptions {
                no_wal: true,
                ..SYNC
            },
        )
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    let second = db.prepared("x").unwrap();
    first.rollback().unwrap();
    assert_eq!(second.commit().unwrap_err().kind(), ErrorKind::NotFound);
    db.begin()
        .prepare("n".repeat(512))
        .unwrap()
        .commit()
        .unwrap();
}

#[test]
fn an_optimistic_transaction_is_validated_when_it_is_prepared() {
    let files = StrictMemFileSystem::new();
    let db = open(&files);
    let family = db.default_family();
    let optimistic = TransactionOptions {
        isolation: Some(Isolation::Serializable),
        ..TransactionOptions::default()
    };
    let mut late = db.begin_with(optimistic);
    assert!(late.get(family, "a").unwrap().is_none());
    late.put(family, "b", "1").unwrap();
    db.put(family, "a", "1").unwrap();
    assert_eq!(late.prepare("late").unwrap_err().kind(), ErrorKind::Busy);
    let mut tx = db.begin_with(optimistic);
    assert!(tx.get(family, "a").unwrap().is_some());
    tx.put(family, "b", "1").unwrap();
    let prepared = tx.prepare("in time").unwrap();
    // What it read stays as it was, or it would not be serializable.
    assert!(db.put(family, "a", "2").is_err() && db.put(family, "b", "2").is_err());
    prepared.commit().unwrap();
    assert_eq!(value(&db, family, "b").as_deref(), Some("1"));
}

#[test]
fn a_family_is_dropped_only_when_nothing_prepared_writes_to_it() {
    let files = StrictMemFileSystem::new();
    let db = open(&files);
    let more = db.create_family("more", family_options()).unwrap();
    let mut tx = db.begin();
    tx.put(&more, "a", "1").unwrap();
    tx.put(db.default_family(), "a", "1").unwrap();
    drop(tx.prepare("x").unwrap());
    assert_eq!(
        db.drop_family(&more).unwrap_err().kind(),
        ErrorKind::TimedOut
    );
    drop(more);
    drop(db);
    // A plain store has no locks: what is dropped takes its part of the transaction with it.
    let plain = Db::open_all_families(DIR, options(&files)).unwrap();
    plain
        .drop_family(&plain.column_family("more").unwrap())
        .unwrap();
    drop(plain);
    let db = open(&files);
    db.prepared("x").unwrap().commit().unwrap();
    assert_eq!(value(&db, db.default_family(), "a").as_deref(), Some("1"));
    drop(db);
    let db = open(&files);
    let more = db.create_family("more", family_options()).unwrap();
    db.drop_family(&more).unwrap();
    assert!(db.column_family("more").is_none());
}

#[test]
fn the_wal_of_a_section_stays_until_what_it_committed_is_in_tables() {
    let files = StrictMemFileSystem::new();
    let db = open(&files);
    let family = db.default_family();
    let mut tx = db.begin();
    tx.put(family, "a", "1").unwrap();
    let prepared = tx.prepare_with("x", &SYNC).unwrap();
    let of_section = *wals(&files).last().unwrap();
    for round in 0..5 {
        db.put(family, "b", round.to_string()).unwrap();
        db.flush().unwrap();
        assert!(wals(&files).contains(&of_section), "round {round}");
    }
    prepared.commit_with(&SYNC).unwrap();
    assert!(wals(&files).contains(&of_section));
    // What is on disk now has the section in one file and its commit in another.
    let cut = files.crash_image(1, CrashPolicy::KeepNothing);
    let after = open(&cut);
    assert_eq!(
        value(&after, after.default_family(), "a").as_deref(),
        Some("1")
    );
    drop(after);
    db.flush().unwrap();
    db.put(family, "b", "end").unwrap();
    db.flush().unwrap();
    drop(db);
    assert!(!wals(&files).contains(&of_section), "it is in tables");
    let db = open(&files);
    assert_eq!(value(&db, db.default_family(), "a").as_deref(), Some("1"));
}

#[test]
fn what_the_format_cannot_say_is_refused_by_name() {
    let files = StrictMemFileSystem::new();
    let leveldb = Options {
        format: DirectoryFormat::LevelDb,
        ..options(&files)
    };
    let db = TransactionDb::open(DIR, leveldb, impatient()).unwrap();
    let mut tx = db.begin();
    tx.put(db.default_family(), "a", "1").unwrap();
    let error = tx.prepare("x").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotSupported);
    assert!(error.to_string().contains("two-phase commit"), "{error}");
    db.put(db.default_family(), "a", "2").unwrap();
}

/// A random history of transactions that are prepared, ended and left, flushes and reopens, beside a map.
#[test]
fn a_history_of_steps_is_that_of_a_map() {
    for seed in 0..8 {
        history(seed);
    }
}

/// Keys with their values.
type Pairs = Vec<(Vec<u8>, Vec<u8>)>;

fn history(seed: u64) {
    let mut rng = Rng::new(seed);
    let mut files = StrictMemFileSystem::new();
    let mut rows: BTreeMap<Vec<u8>, Vec<u8>> = BTreeMap::new();
    let mut waiting: BTreeMap<Vec<u8>, Pairs> = BTreeMap::new();
    let mut db = open(&files);
    for index in 0..120u64 {
        let name = format!("t{}", rng.below(6)).into_bytes();
        match rng.below(10) {
            0..=3 if !waiting.contains_key(&name) => {
                let mut tx = db.begin();
                let mut writes = Vec::new();
                for _ in 0..rng.below(4) {
                    let key = format!("k{:02}", rng.below(40)).into_bytes();
                    let put = tx.put(db.default_family(), &key, index.to_string());
                    let taken = waiting.values().flatten().any(|(other, _)| *other == key);
                    assert_eq!(put.is_err(), taken, "seed {seed}, {index}: {put:?}");
                    if put.is_ok() {
                        writes.push((key, index.to_string().into_bytes()));
                    }
                }
                drop(tx.prepare_with(&name, &SYNC).unwrap());
                waiting.insert(name, writes);
            }
            4 | 5 => {
                let Some(prepared) = db.prepared(&name) else {
                    assert!(!waiting.contains_key(&name), "seed {seed}, {index}");
                    continue;
                };
                let writes = waiting.remove(&name).unwrap();
                if rng.one_in(3) {
                    prepared.rollback_with(&SYNC).unwrap();
                } else {
                    prepared.commit_with(&SYNC).unwrap();
                    rows.extend(writes);
                }
            }
            6 => db.flush().unwrap(),
            7 => {
                let after = files.crash_image(index, CrashPolicy::KeepNothing);
                drop(db);
                files = after;
                db = open(&files);
            }
            _ => {
                let mut batch = WriteBatch::new();
                let key = format!("p{:02}", rng.below(40)).into_bytes();
                batch.put(&key, index.to_string().as_bytes()).unwrap();
                db.write(batch, &SYNC).unwrap();
                rows.insert(key, index.to_string().into_bytes());
            }
        }
        let mut names = db.prepared_transactions();
        names.sort();
        assert!(names.iter().eq(waiting.keys()), "seed {seed}, {index}");
    }
    let mut cursor = db.iter(db.default_family(), ReadOptions::default());
    cursor.seek_to_first();
    let mut found = BTreeMap::new();
    while cursor.valid() {
        found.insert(cursor.key().to_vec(), cursor.value().to_vec());
        cursor.next();
    }
    cursor.status().unwrap();
    assert_eq!(found, rows, "seed {seed}");
}

/// `file` with other bytes.
fn rewrite(files: &StrictMemFileSystem, path: &Path, bytes: &[u8]) {
    let kind = CreateOptions::new(FileKind::Other);
    let mut file = files.create(path, kind).unwrap();
    file.append(bytes).unwrap();
    file.sync().unwrap();
    files.sync_dir(Path::new(DIR)).unwrap();
}

fn prepare(db: &TransactionDb, name: &str) {
    let mut tx = db.begin();
    let key = format!("a of {name}");
    tx.put(db.default_family(), key, name).unwrap();
    drop(tx.prepare_with(name, &SYNC).unwrap());
}

#[test]
fn a_lost_wal_that_only_a_section_needs_is_damage() {
    let files = StrictMemFileSystem::new();
    let db = open(&files);
    prepare(&db, "x");
    let of_section = *wals(&files).last().unwrap();
    for round in 0..2 {
        db.put(db.default_family(), "b", round.to_string()).unwrap();
        db.flush().unwrap();
    }
    let cut = || files.crash_image(1, CrashPolicy::KeepAll);
    let path = names::wal(Path::new(DIR), of_section);
    let harms: [&dyn Fn(&StrictMemFileSystem); 2] =
        [&|disk| disk.remove(&path).unwrap(), &|disk| {
            rewrite(disk, &path, b"")
        }];
    for harm in harms {
        let disk = cut();
        harm(&disk);
        for _ in 0..2 {
            let error = TransactionDb::open(DIR, options(&disk), impatient()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
            assert_eq!(error.file(), Some(&*path), "{error}");
        }
        let given_up = Options {
            point_in_time_recovery: true,
            ..options(&disk)
        };
        let db = TransactionDb::open(DIR, given_up, impatient()).unwrap();
        assert!(db.prepared_transactions().is_empty());
        assert_eq!(value(&db, db.default_family(), "b").as_deref(), Some("1"));
        drop(db);
        // It is not asked for any more.
        assert!(open(&disk).prepared_transactions().is_empty());
    }
    // What has ended and is in tables is asked for by nobody, be the MANIFEST new or not.
    db.prepared("x").unwrap().commit_with(&SYNC).unwrap();
    db.flush().unwrap();
    let after = cut();
    if wals(&after).contains(&of_section) {
        after.remove(&path).unwrap(); // It waits to be written over.
    }
    assert!(open(&after).prepared_transactions().is_empty());
    drop(db);
    for _ in 0..3 {
        drop(open(&files));
    }
}

/// A disk with a prepared transaction, and a WAL whose last record has one wrong bit.
fn with_a_wrong_bit() -> StrictMemFileSystem {
    let files = StrictMemFileSystem::new();
    let db = open(&files);
    prepare(&db, "x");
    db.write_unlocked(one("last", "value"), &SYNC).unwrap();
    let disk = files.crash_image(1, CrashPolicy::KeepNothing);
    let path = names::wal(Path::new(DIR), *wals(&disk).last().unwrap());
    let mut bytes = disk.read_file(&path, 1 << 20).unwrap();
    let end = bytes.iter().rposition(|&byte| byte != 0).unwrap();
    bytes[end] ^= 1;
    rewrite(&disk, &path, &bytes);
    disk
}

fn one(key: &str, value: &str) -> WriteBatch {
    let mut batch = WriteBatch::new();
    batch.put(key.as_bytes(), value.as_bytes()).unwrap();
    batch
}

#[test]
fn a_mended_record_stays_when_the_power_fails_while_sections_are_logged_anew() {
    let kept = KeepChanges {
        age: None,
        bytes: Some(1 << 20),
    };
    for keep_changes in [None, Some(kept)] {
        let made = |disk: &FaultFileSystem| Options {
            env: Env::system().with_files(Arc::new(disk.clone())),
            keep_changes,
            ..options(&StrictMemFileSystem::new())
        };
        let whole = FaultFileSystem::over_memory(&with_a_wrong_bit());
        let db = Db::open(DIR, made(&whole)).unwrap();
        assert!(db.recovery_report().mended.is_some());
        drop(db);
        for index in 0..whole.operations() {
            let disk = with_a_wrong_bit();
            let files = FaultFileSystem::over_memory(&disk);
            files.add_rule(FaultRule::once(index, Fault::Stop));
            drop(Db::open(DIR, made(&files)));
            let every_other = CrashPolicy::ALL[index as usize % CrashPolicy::ALL.len()];
            for policy in [CrashPolicy::KeepAll, every_other] {
                let place = format!("stopped at {index}, {policy:?}");
                let after = FaultFileSystem::over_memory(&disk.crash_image(index, policy));
                let db = Db::open(DIR, made(&after));
                let db = db.unwrap_or_else(|error| panic!("{place}: {error}"));
                assert_eq!(db.prepared_transactions(), [b"x".to_vec()], "{place}");
                let last = db.get("last").unwrap();
                assert_eq!(last.as_deref(), Some(&b"value"[..]), "{place}");
            }
        }
    }
}

#[test]
fn nothing_is_prepared_where_rocksdb_5_shall_read() {
    let files = StrictMemFileSystem::new();
    let db = open(&files);
    db.put(db.default_family(), "a", "0").unwrap();
    drop(db);
    let names = files.list(Path::new(DIR)).unwrap();
    let stored = names
        .iter()
        .filter(|name| name.to_string_lossy().starts_with("OPTIONS-"));
    for name in stored {
        let path = Path::new(DIR).join(name);
        let text = String::from_utf8(files.read_file(&path, 1 << 20).unwrap()).unwrap();
        let older = text.replace("rocksdb_version=7.8.3", "rocksdb_version=5.18.3");
        assert_ne!(older, text);
        rewrite(&files, &path, older.as_bytes());
    }
    let db = open(&files);
    let family = db.default_family();
    let mut tx = db.begin();
    tx.put(family, "a", "1").unwrap();
    let error = tx.prepare("x").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotSupported, "{error}");
    assert!(db.prepared_transactions().is_empty());
    assert_eq!(value(&db, family, "a").as_deref(), Some("0"));
    // Its locks are gone with it, and a plain commit is what that RocksDB reads.
    let mut tx = db.begin();
    tx.put(family, "a", "2").unwrap();
    tx.commit().unwrap();
    drop(db);
    let db = open(&files);
    assert_eq!(value(&db, db.default_family(), "a").as_deref(), Some("2"));
}
