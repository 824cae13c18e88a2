//! Goal: a database of a peer opens, holds its expected contents, and stays so when it is compacted and
//! written on. Method: every fixture in `tests/data` is copied into memory, opened, read in each way
//! there is and compared with its `expected.tsv`, the contents its engine was asked for; then again
//! after a compaction, and after closing and opening.

#![expect(
    clippy::unwrap_used,
    reason = "a test fails by panicking, in its helpers too"
)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use drumlin::{
    ChecksumKind, Codec, ColumnFamily, Compression, Db, Env, ErrorKind, FamilyOptions, Options,
    ReadOptions, SstFileWriter, WriteOptions,
};
use drumlin_fs::{CreateOptions, FileKind, FileSystem, PosixFileSystem, StrictMemFileSystem};
use drumlin_table::{Footer, TableWriterOptions};

const DIR: &str = "/db";
const EXPECTED: &str = "expected.tsv";
/// Far above any fixture's file.
const FILE_BYTES_MAX: u64 = 1 << 20;

type Entries = Vec<(Vec<u8>, Vec<u8>)>;

fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data")
}

/// The fixtures of `engine`, by name.
fn fixtures(engine: &str) -> Vec<String> {
    let names = PosixFileSystem::new().list(&data().join(engine)).unwrap();
    let mut names: Vec<_> = names
        .iter()
        .map(|name| name.to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

/// The files of a fixture in memory, and its expected contents by family.
fn load(engine: &str, name: &str) -> (Env, BTreeMap<String, Entries>) {
    let disk = PosixFileSystem::new();
    let from = data().join(engine).join(name);
    let memory: Arc<dyn FileSystem> = Arc::new(StrictMemFileSystem::new());
    memory.create_dir_all(Path::new(DIR)).unwrap();
    for name in disk.list(&from).unwrap() {
        let bytes = disk.read_file(&from.join(&name), FILE_BYTES_MAX).unwrap();
        if name == Path::new(EXPECTED) {
            continue;
        }
        let path = Path::new(DIR).join(&name);
        let mut file = memory
            .create(&path, CreateOptions::new(FileKind::Other))
            .unwrap();
        file.append(&bytes).unwrap();
        file.sync().unwrap();
        file.close().unwrap();
    }
    let expected = disk
        .read_file(&from.join(EXPECTED), FILE_BYTES_MAX)
        .unwrap();
    let expected = parse(&String::from_utf8(expected).unwrap());
    (Env::system().with_files(memory), expected)
}

fn parse(text: &str) -> BTreeMap<String, Entries> {
    let mut families: BTreeMap<String, Entries> = BTreeMap::new();
    for line in text.lines() {
        let mut parts = line.split('\t');
        let family = parts.next().unwrap().to_owned();
        let entry = (unhex(parts.next().unwrap()), unhex(parts.next().unwrap()));
        families.entry(family).or_default().push(entry);
    }
    families
}

fn unhex(text: &str) -> Vec<u8> {
    let digits = text.as_bytes().chunks(2);
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.map(byte).collect()
}

/// No options of the fixture: its own files name them.
fn options(env: &Env) -> Options {
    Options {
        memory_budget: Some(64 << 20),
        env: env.clone(),
        ..Options::default()
    }
}

fn forward(db: &Db, family: &ColumnFamily) -> Entries {
    let mut iter = db.iter_cf(family, ReadOptions::default());
    let mut entries = Vec::new();
    iter.seek_to_first();
    while iter.valid() {
        entries.push((iter.key().to_vec(), iter.value().to_vec()));
        iter.next();
    }
    iter.status().unwrap();
    entries
}

fn backward(db: &Db, family: &ColumnFamily) -> Entries {
    let mut iter = db.iter_cf(family, ReadOptions::default());
    let mut entries = Vec::new();
    iter.seek_to_last();
    while iter.valid() {
        entries.push((iter.key().to_vec(), iter.value().to_vec()));
        iter.prev();
    }
    iter.status().unwrap();
    entries
}

/// Reads `family` in every way there is and compares with `expected`.
fn check(db: &Db, family: &ColumnFamily, expected: &Entries, case: &str) {
    let shown = |entries: &Entries| -> Vec<String> {
        let text = |bytes: &[u8]| bytes.escape_ascii().to_string();
        let line = |(key, value): &(Vec<u8>, Vec<u8>)| format!("{} {}", text(key), text(value));
        entries.iter().map(line).collect()
    };
    assert_eq!(shown(&forward(db, family)), shown(expected), "{case}");
    let mut reversed = backward(db, family);
    reversed.reverse();
    assert_eq!(shown(&reversed), shown(expected), "{case}, backward");
    for (key, value) in expected {
        let got = db.get_cf(family, key, &ReadOptions::default()).unwrap();
        assert_eq!(got.as_deref(), Some(value.as_slice()), "{case}: {key:?}");
        let mut absent = key.clone();
        absent.extend_from_slice(b"\x01absent");
        let got = db.get_cf(family, &absent, &ReadOptions::default()).unwrap();
        assert!(got.is_none(), "{case}: {absent:?} is found");
    }
}

fn check_all(db: &Db, expected: &BTreeMap<String, Entries>, case: &str) {
    let nothing = Vec::new();
    for name in expected.keys() {
        assert!(db.column_family(name).is_some(), "{case}: no family {name}");
    }
    for family in db.families() {
        let entries = expected.get(family.name()).unwrap_or(&nothing);
        check(db, &family, entries, &format!("{case}, {}", family.name()));
    }
}

/// One fixture through everything.
fn check_fixture(engine: &str, name: &str) {
    let case = format!("{engine}/{name}");
    let (env, expected) = load(engine, name);
    let options = options(&env);
    let db =
        Db::open_read_only(DIR, options.clone()).unwrap_or_else(|error| panic!("{case}: {error}"));
    check_all(&db, &expected, &format!("{case}, read-only"));
    db.close().unwrap();
    let db = Db::open_all_families(DIR, options.clone())
        .unwrap_or_else(|error| panic!("{case}: {error}"));
    check_all(&db, &expected, &case);
    let verified = db
        .verify()
        .unwrap_or_else(|error| panic!("{case}: {error}"));
    assert!(verified.damaged.is_empty(), "{case}: {verified:?}");
    for family in db.families() {
        db.compact_range(&family, None, None).unwrap();
    }
    check_all(&db, &expected, &format!("{case}, compacted"));
    db.close().unwrap();
    let db = Db::open_all_families(DIR, options).unwrap();
    check_all(&db, &expected, &format!("{case}, opened again"));
    db.close().unwrap();
}

/// A fixture with a feature that this engine does not read: refused by name, and left as it is.
fn check_refused(engine: &str, name: &str, word: &str) {
    let (env, _) = load(engine, name);
    let listing = || {
        let mut names = env.files.list(Path::new(DIR)).unwrap();
        names.retain(|name| name != Path::new("LOCK"));
        names.sort();
        names
    };
    let before = listing();
    for opened in [
        Db::open_read_only(DIR, options(&env)),
        Db::open_all_families(DIR, options(&env)),
    ] {
        let error = opened.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotSupported, "{name}: {error}");
        assert!(error.to_string().contains(word), "{name}: {error}");
    }
    assert_eq!(listing(), before, "{engine}/{name}");
}

/// A fixture of a codec that this build is without: its tables are refused by the feature's name, and stay.
fn check_left_out(engine: &str, name: &str, feature: &str) {
    let case = format!("{engine}/{name}");
    let (env, expected) = load(engine, name);
    let tables = || -> BTreeMap<PathBuf, Vec<u8>> {
        let names = env.files.list(Path::new(DIR)).unwrap().into_iter();
        let tables = names.filter(|name| name.extension().is_some_and(|it| it == "sst"));
        let read = |name: &PathBuf| {
            env.files
                .read_file(&Path::new(DIR).join(name), FILE_BYTES_MAX)
        };
        tables
            .map(|name| (name.clone(), read(&name).unwrap()))
            .collect()
    };
    let before = tables();
    let is_refused = |error: &drumlin::Error| {
        assert_eq!(error.kind(), ErrorKind::NotSupported, "{case}: {error}");
        let named = format!("feature `{feature}`");
        assert!(error.to_string().contains(&named), "{case}: {error}");
    };
    let db = Db::open_all_families(DIR, options(&env)).unwrap();
    let mut refused = 0;
    for (key, value) in &expected["default"] {
        match db.get(key) {
            Ok(got) => assert_eq!(got.as_deref(), Some(value.as_slice()), "{case}"),
            Err(error) => {
                is_refused(&error);
                refused += 1;
            }
        }
    }
    assert!(refused > 0, "{case}");
    match db.compact_range(db.default_family(), None, None) {
        Err(error) => is_refused(&error),
        // Compactions do not read what is in blob files.
        Ok(()) => {
            assert!(name.starts_with("blobs"), "{case}");
            return;
        }
    }
    drop(db);
    let after = tables();
    for (name, bytes) in before {
        assert_eq!(after.get(&name), Some(&bytes), "{case}: {name:?}");
    }
}

/// The codec that a fixture is named after, if this build is without it.
fn left_out(name: &str) -> Option<&'static str> {
    let features = [
        ("bzip2", cfg!(feature = "bzip2")),
        ("zlib", cfg!(feature = "zlib")),
        ("zstd", cfg!(feature = "zstd")),
    ];
    let mut features = features.into_iter();
    features.find_map(|(codec, is_built)| (!is_built && name.starts_with(codec)).then_some(codec))
}

#[test]
fn a_codec_that_a_build_is_without_is_refused_by_name() {
    for codec in Codec::ALL {
        let env = Env::system().with_files(Arc::new(StrictMemFileSystem::new()));
        let chosen = Options {
            compression: Compression::new(codec),
            ..options(&env)
        };
        match left_out(&codec.to_string()) {
            None => {
                let db = Db::open(DIR, chosen).unwrap();
                let rows = 0..1000;
                for at in rows.clone() {
                    db.put(format!("{at:05}"), [b'v'; 300]).unwrap();
                }
                db.compact_range(db.default_family(), None, None).unwrap();
                for at in rows {
                    let value = db.get(format!("{at:05}")).unwrap();
                    assert_eq!(value.as_deref(), Some(&[b'v'; 300][..]), "{codec}");
                }
            }
            Some(feature) => {
                let error = Db::open(DIR, chosen).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::NotSupported, "{error}");
                assert!(error.to_string().contains(feature), "{error}");
                assert!(!env.files.exists(Path::new("/db/CURRENT")).unwrap());
            }
        }
    }
}

fn check_engine(engine: &str) {
    let names = fixtures(engine);
    assert!(!names.is_empty(), "the fixtures of {engine} are missing");
    for name in names {
        match name.as_str() {
            "wal-zstd" => check_refused(engine, &name, "compress"),
            // RocksDB 11 compressed its values by zstd.
            "blobs-collected" if !cfg!(feature = "zstd") => {
                check_left_out(engine, &name, "zstd");
            }
            _ => match left_out(&name) {
                Some(feature) => check_left_out(engine, &name, feature),
                None => check_fixture(engine, &name),
            },
        }
    }
}

#[test]
fn databases_of_rocksdb_11_hold_what_they_held() {
    check_engine("rocksdb-11");
}

#[test]
fn databases_of_rocksdb_7_8_hold_what_they_held() {
    check_engine("rocksdb-7.8");
}

/// Counts in properties of range tombstones that later versions count otherwise.
#[test]
fn databases_of_rocksdb_5_hold_what_they_held() {
    check_engine("rocksdb-5");
}

/// Options that ask for features RocksDB 5 cannot read: they are not followed there, nor after repair.
#[test]
fn a_directory_of_rocksdb_5_stays_one() {
    for (name, repaired) in fixtures("rocksdb-5")
        .into_iter()
        .flat_map(|name| [(name.clone(), false), (name, true)])
    {
        let (env, _) = load("rocksdb-5", &name);
        if repaired {
            // Then its tables alone tell.
            remove_named(&env, &["OPTIONS", "MANIFEST"]);
            Db::repair(DIR, &options(&env)).unwrap();
        }
        for round in 0..2 {
            let mut newer = options(&env);
            newer.tuning.checksum = ChecksumKind::Xxh3;
            newer.tuning.blob_from_bytes = Some(10);
            let family = FamilyOptions {
                tuning: Some(newer.tuning.clone()),
                ..FamilyOptions::default()
            };
            let db = Db::open_all_families(DIR, newer).unwrap();
            let more = db.create_family(&format!("more{round}"), family).unwrap();
            for at in 0..200 {
                let key = format!("new{at:03}");
                db.put(&key, [7; 100]).unwrap();
                db.put_cf(&more, &key, [7; 100], &WriteOptions::default())
                    .unwrap();
            }
            db.flush().unwrap();
            db.compact_range(db.default_family(), None, None).unwrap();
            db.close().unwrap();
            check_is_of_rocksdb_5(&env, &format!("{name}, repaired {repaired}, round {round}"));
        }
    }
}

/// Tables made elsewhere must be readable by the directory's own engine, too.
#[test]
fn an_external_table_that_rocksdb_5_does_not_read_is_refused() {
    let name = fixtures("rocksdb-5").remove(0);
    let (env, expected) = load("rocksdb-5", &name);
    let db = Db::open_all_families(DIR, options(&env)).unwrap();
    for (format_version, checksum, is_taken) in [
        (5, ChecksumKind::Crc32c, false),
        (2, ChecksumKind::Xxh3, false),
        (2, ChecksumKind::Crc32c, true),
    ] {
        let table = TableWriterOptions {
            format_version,
            checksum,
            ..TableWriterOptions::default()
        };
        let path = PathBuf::from("/external");
        let mut writer = SstFileWriter::create(&env, &path, table).unwrap();
        writer.put(b"zz of elsewhere", b"1").unwrap();
        writer.finish().unwrap();
        for moves in [false, true] {
            let before = env.files.list(Path::new(DIR)).unwrap().len();
            let taken = db.ingest(db.default_family(), std::slice::from_ref(&path), moves);
            if is_taken {
                taken.unwrap();
                continue;
            }
            let error = taken.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::NotSupported, "{error}");
            assert!(error.to_string().contains("RocksDB 5."), "{error}");
            assert!(env.files.exists(&path).unwrap());
            assert_eq!(env.files.list(Path::new(DIR)).unwrap().len(), before);
        }
    }
    let value = db.get(b"zz of elsewhere").unwrap();
    assert_eq!(value.as_deref(), Some(&b"1"[..]));
    db.delete(b"zz of elsewhere").unwrap();
    check_all(&db, &expected, &name);
    db.close().unwrap();
    check_is_of_rocksdb_5(&env, &name);
}

fn remove_named(env: &Env, beginnings: &[&str]) {
    for file in env.files.list(Path::new(DIR)).unwrap() {
        let name = file.to_string_lossy().into_owned();
        if beginnings.iter().any(|one| name.starts_with(one)) {
            env.files.remove(&Path::new(DIR).join(file)).unwrap();
        }
    }
}

/// A store of ours that lost all marks of its origin but its tables is not taken for an old one.
#[test]
fn a_repaired_store_of_ours_is_no_directory_of_rocksdb_5() {
    let files: Arc<dyn FileSystem> = Arc::new(StrictMemFileSystem::new());
    let env = Env::system().with_files(files);
    let db = Db::open(DIR, options(&env)).unwrap();
    db.put(b"key", [7; 10_000]).unwrap();
    db.close().unwrap();
    Db::open(DIR, options(&env)).unwrap().close().unwrap();
    remove_named(&env, &["OPTIONS", "MANIFEST"]);
    Db::repair(DIR, &options(&env)).unwrap();
    let db = Db::open(DIR, options(&env)).unwrap();
    assert_eq!(db.get(b"key").unwrap().as_deref(), Some(&[7; 10_000][..]));
    db.close().unwrap();
    for file in env.files.list(Path::new(DIR)).unwrap() {
        if file.to_string_lossy().starts_with("OPTIONS") {
            let path = Path::new(DIR).join(file);
            let text = env.files.read_file(&path, FILE_BYTES_MAX).unwrap();
            let text = String::from_utf8(text).unwrap();
            assert!(text.contains("rocksdb_version=7.8.3"), "{text}");
        }
    }
}

fn check_is_of_rocksdb_5(env: &Env, case: &str) {
    for file in env.files.list(Path::new(DIR)).unwrap() {
        let path = Path::new(DIR).join(&file);
        let name = file.to_string_lossy().into_owned();
        assert!(!name.ends_with(".blob"), "{case}: {name}");
        let bytes = || env.files.read_file(&path, FILE_BYTES_MAX).unwrap();
        if name.ends_with(".sst") {
            let footer = Footer::decode(&bytes(), bytes().len() as u64).unwrap();
            assert_eq!(footer.format_version, 2, "{case}: {name}");
            assert_eq!(footer.checksum, ChecksumKind::Crc32c, "{case}: {name}");
        } else if name.starts_with("OPTIONS") {
            let text = String::from_utf8(bytes()).unwrap();
            assert!(text.contains("rocksdb_version=5."), "{case}: {text}");
        }
    }
}

/// A MANIFEST that is gone: every table is sound, whatever its writer counted.
#[test]
fn repair_keeps_tables_whose_counts_leave_range_tombstones_out() {
    for name in fixtures("rocksdb-5") {
        let (env, expected) = load("rocksdb-5", &name);
        remove_named(&env, &["MANIFEST"]);
        let report = Db::repair(DIR, &options(&env)).unwrap();
        assert!(report.lost.is_empty(), "{name}: {:?}", report.lost);
        let db = Db::open(DIR, options(&env)).unwrap();
        check_all(&db, &expected, &format!("rocksdb-5/{name}, repaired"));
        db.close().unwrap();
    }
}

#[test]
fn databases_of_leveldb_hold_what_they_held() {
    check_engine("leveldb");
}
