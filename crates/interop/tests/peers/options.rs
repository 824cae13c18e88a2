//! Goal: of an OPTIONS file of RocksDB's no key and no value is lost by us, and RocksDB takes ours. Method: a store of
//! RocksDB's; a random subset of the keys of its OPTIONS file with random values, as long as RocksDB's parser takes
//! them; opened and written by us twice; then every key is compared, RocksDB parses our file, and `ldb` opens by it
//! if it did so by the other.

use std::path::{Path, PathBuf};

use drumlin::internals::options_file::{self, OptionsFile, Section};
use drumlin::{Db, Env, Options};
use drumlin_base::rng::Rng;
use drumlin_interop::*;
use drumlin_testkit::temp_dir;

/// Files that are made at most until RocksDB's parser takes one.
const TRIES: u64 = 200;

/// Values that are names, with another for each.
const NAMES: [(&str, &str); 22] = [
    ("compression", "kLZ4Compression"),
    ("bottommost_compression", "kZSTD"),
    ("blob_compression_type", "kZSTD"),
    ("compaction_style", "kCompactionStyleUniversal"),
    ("compaction_style", "kCompactionStyleFIFO"),
    ("compaction_pri", "kByCompensatedSize"),
    ("wal_recovery_mode", "kAbsoluteConsistency"),
    ("info_log_level", "WARN_LEVEL"),
    ("access_hint_on_compaction_start", "SEQUENTIAL"),
    ("lowest_used_cache_tier", "kVolatileTier"),
    ("prefix_extractor", "rocksdb.FixedPrefix.3"),
    ("merge_operator", "uint64add"),
    ("memtable_factory", "{id=SkipListFactory;lookahead=3;}"),
    ("max_bytes_for_level_multiplier_additional", "1:2:1:1:1:3:1"),
    (
        "compaction_options_universal",
        "{size_ratio=7;min_merge_width=3;}",
    ),
    (
        "compaction_options_fifo",
        "{max_table_files_size=99999999999;}",
    ),
    ("compression_opts", "{level=3;max_dict_bytes=16384;}"),
    ("checksum", "kxxHash64"),
    ("index_type", "kTwoLevelIndexSearch"),
    ("data_block_index_type", "kDataBlockBinaryAndHash"),
    ("filter_policy", "bloomfilter:11:false"),
    ("prepopulate_block_cache", "kFlushOnly"),
];

/// Another value of the same type; `None` where there is none that is likely to be valid.
fn other_value(key: &str, value: &str, rng: &mut Rng) -> Option<String> {
    let named: Vec<&str> = NAMES
        .iter()
        .filter(|it| it.0 == key)
        .map(|it| it.1)
        .collect();
    if !named.is_empty() {
        return Some(named[rng.below(named.len() as u64) as usize].to_owned());
    }
    match (value, value.parse::<i64>()) {
        ("true", _) => Some("false".to_owned()),
        ("false", _) => Some("true".to_owned()),
        (_, Ok(0)) => Some("1048576".to_owned()),
        (_, Ok(number @ 1..0x4000_0000)) => Some((number + 1 + rng.below(3) as i64).to_string()),
        (_, Ok(_)) => None,
        _ => value
            .parse::<f64>()
            .ok()
            .map(|number| format!("{:.6}", number * 0.5)),
    }
}

fn newest(dir: &Path) -> OptionsFile {
    let files = Env::system().files;
    options_file::read_newest(&*files, dir).unwrap().unwrap()
}

/// A store of RocksDB's; its rows.
fn make_theirs(dir: &Path) -> Rows {
    let rocks = Rocks::open_default(dir, "create_if_missing=true").unwrap();
    for number in 0..300 {
        rocks.put("default", &key(number), &value(number, 1));
    }
    rocks.flush("default");
    rocks.rows("default")
}

/// Leaves about one of `n` entries out.
fn thin_out(section: &mut Section, n: u64, rng: &mut Rng) {
    let mut left = Section::default();
    for (key, value) in section.entries() {
        if !rng.one_in(n) {
            left.set(key, value);
        }
    }
    *section = left;
}

/// Every key of `before` is in `after` with its value.
#[track_caller]
fn compare(before: &Section, after: &Section, what: &str) {
    for (key, value) in before.entries() {
        assert_eq!(after.get(key), Some(value), "{what}: {key}");
    }
}

fn options() -> Options {
    Options {
        memory_budget: Some(64 << 20),
        ..Options::default()
    }
}

/// Another value for about one key of `n`.
fn change(section: &mut Section, n: u64, rng: &mut Rng) {
    let mut changed = Section::default();
    for (key, value) in section.entries() {
        let other = other_value(key, value, rng).filter(|_| rng.one_in(n));
        changed.set(key, other.as_deref().unwrap_or(value));
    }
    *section = changed;
}

/// An OPTIONS file of some keys of `defaults` with other values that RocksDB's parser takes, written into `dir`.
fn write_theirs(dir: &Path, defaults: &OptionsFile, number: u64, rng: &mut Rng) -> OptionsFile {
    let files = Env::system().files;
    let (less, changed) = (2 + rng.below(30), 2 + rng.below(12));
    for attempt in 0..TRIES {
        let mut theirs = defaults.clone();
        let family = &mut theirs.families[0];
        for section in [&mut theirs.database, &mut family.options, &mut family.table] {
            thin_out(section, less, rng);
            change(section, changed + attempt, rng);
        }
        options_file::write(&*files, dir, number + attempt, &theirs).unwrap();
        if load_latest_options(dir).is_ok() {
            return theirs;
        }
    }
    panic!("RocksDB refuses {TRIES} files");
}

/// Whether RocksDB opens by the newest OPTIONS file.
fn ldb_opens(dir: &Path) -> bool {
    ldb(dir, &["scan", "--try_load_options", "--max_keys=1"]).success
}

/// Whether `ldb` opened the store at all.
fn round(defaults: &OptionsFile, seed: u64) -> bool {
    let mut rng = Rng::new(seed);
    let root = temp_dir();
    let dir: PathBuf = root.path().join("db");
    let mut want = make_theirs(&dir);
    let theirs = write_theirs(&dir, defaults, 1000, &mut rng);
    let opened_before = ldb_opens(&dir);
    let what = format!("seed {seed}");
    for at in 1..3 {
        let db = Db::open_all_families(&dir, options()).unwrap_or_else(|e| panic!("{what}: {e}"));
        for number in 0..50 {
            let (key, value) = (key(number * at), value(number, at));
            db.put(&key, &value).unwrap();
            want.retain(|row| row.0 != key);
            want.push((key, value));
        }
        db.flush().unwrap();
        db.close().unwrap();
        want.sort();
        let ours = newest(&dir);
        assert_eq!(ours.rocksdb_version, theirs.rocksdb_version, "{what}");
        compare(&theirs.database, &ours.database, &what);
        for family in &theirs.families {
            let ours = ours.family(&family.name).unwrap();
            compare(&family.options, &ours.options, &what);
            compare(&family.table, &ours.table, &what);
        }
        let known = load_latest_options(&dir).unwrap_or_else(|e| panic!("{what}: {e}"));
        assert_eq!(known.len(), theirs.families.len(), "{what}");
        if opened_before {
            assert_rows(&what, &ldb_scan(&dir, "default"), &want);
        }
    }
    opened_before
}

#[test]
fn every_key_of_rocksdbs_options_is_kept_and_rocksdb_takes_the_file() {
    let root = temp_dir();
    let dir = root.path().join("db");
    drop(Rocks::open_default(&dir, "create_if_missing=true").unwrap());
    let defaults = newest(&dir);
    let family = &defaults.families[0];
    let sections = [&defaults.database, &family.options, &family.table];
    let keys: usize = sections.iter().map(|it| it.entries().count()).sum();
    assert!(keys > 180, "{keys}");
    let seeds = match std::env::var_os("DRUMLIN_EXHAUSTIVE") {
        Some(_) => 300,
        None => 16,
    };
    let opened = (0..seeds).filter(|&seed| round(&defaults, seed)).count();
    assert!(opened as u64 > seeds / 10, "ldb opened {opened} of {seeds}");
}
