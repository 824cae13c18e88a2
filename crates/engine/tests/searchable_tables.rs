//! Goal: searchable tables serve a family as block-based ones do, below them and in place of them.
//! Method: the same rows in a plain map, formats changed between opens, with puts, deletions, merges,
//! a range deletion, values in blob files and a snapshot held over compactions.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use drumlin::batch::WriteBatch;
use drumlin::{
    Db, Env, FamilyOptions, FixedPrefix, Options, ReadOptions, SstFileWriter, StringAppend,
    TableFormat, TableWriterOptions, Tuning, WriteOptions,
};
use drumlin_base::rng::Rng;
use drumlin_testkit::memory_dir;

const KEYS: u64 = 3000;

type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

fn options(format: Option<TableFormat>) -> Options {
    Options {
        family: FamilyOptions {
            prefix_extractor: Some(Arc::new(FixedPrefix::new(7))),
            merge_operator: Some(Arc::new(StringAppend::new(","))),
            table_format: format,
            ..FamilyOptions::default()
        },
        background_threads: Some(0),
        tuning: Tuning {
            target_file_bytes: 16 << 10,
            level_base_bytes: Some(64 << 10),
            blob_from_bytes: Some(1500),
            ..Tuning::default()
        },
        ..Options::default()
    }
}

fn key(number: u64) -> Vec<u8> {
    format!("key{number:05}").into_bytes()
}

fn value(rng: &mut Rng) -> Vec<u8> {
    let words = ["carefully", "final", "deposits", "sleep"];
    let word = words[rng.below(4) as usize];
    let repeat = if rng.one_in(40) { 200 } else { 1 };
    format!("{}|{word}|{}", rng.below(1000), word.repeat(repeat)).into_bytes()
}

/// Changes that a table can hold; the rows after them.
fn change(db: &Db, rows: &mut Rows, seed: u64) {
    let mut rng = Rng::new(seed);
    for _ in 0..2000 {
        let key = key(rng.below(KEYS));
        let mut batch = WriteBatch::new();
        match rng.below(12) {
            0 => {
                batch.delete(&key).unwrap();
                rows.remove(&key);
            }
            1 => {
                batch.merge(&key, b"more").unwrap();
                let value = rows.entry(key).or_default();
                if !value.is_empty() {
                    value.push(b',');
                }
                value.extend_from_slice(b"more");
            }
            _ => {
                let value = value(&mut rng);
                batch.put(&key, &value).unwrap();
                rows.insert(key, value);
            }
        }
        db.write(batch, &WriteOptions::default()).unwrap();
    }
    let (from, to) = (key(seed * 100), key(seed * 100 + 30));
    let mut batch = WriteBatch::new();
    batch.delete_range(&from, &to).unwrap();
    db.write(batch, &WriteOptions::default()).unwrap();
    rows.retain(|key, _| *key < from || *key >= to);
    db.flush().unwrap();
}

fn check(db: &Db, rows: &Rows, options: &ReadOptions) {
    let keys: Vec<Vec<u8>> = (0..KEYS + 10).map(key).collect();
    let many = db.multi_get_in(db.default_family(), &keys, options);
    for (key, value) in keys.iter().zip(many) {
        assert_eq!(value.unwrap().as_deref(), rows.get(key).map(Vec::as_slice));
    }
    let mut walk = db.iter(options.clone());
    walk.seek_to_first();
    for (key, value) in rows {
        assert!(walk.valid());
        assert_eq!((walk.key(), walk.value()), (&key[..], &value[..]));
        walk.next();
    }
    assert!(!walk.valid());
    walk.status().unwrap();
    walk.seek_to_last();
    for (key, _) in rows.iter().rev().take(500) {
        assert_eq!(walk.key(), &key[..]);
        walk.prev();
    }
}

/// How many tables there are: searchable ones, and others.
fn formats(dir: &Path) -> (usize, usize) {
    let files = Env::system().files;
    let names = files.list(dir).unwrap();
    let is_table = |name: &&std::path::PathBuf| name.extension() == Some("sst".as_ref());
    let searchable = |name: &&std::path::PathBuf| {
        let file = files.open(&dir.join(name)).unwrap();
        TableFormat::of(&*file).unwrap() == TableFormat::Searchable
    };
    let tables = names.iter().filter(is_table);
    let count = tables.clone().filter(searchable).count();
    (count, tables.count() - count)
}

fn compact(db: &Db) {
    db.compact_range(db.default_family(), None, None).unwrap();
    db.wait_for_background().unwrap();
}

#[test]
fn a_family_goes_over_to_searchable_tables_by_compaction_and_back() {
    let dir = memory_dir();
    let mut rows = Rows::new();
    let db = Db::open(dir.path(), options(None)).unwrap();
    change(&db, &mut rows, 1);
    compact(&db);
    db.close().unwrap();
    assert_eq!(formats(dir.path()).0, 0);

    let db = Db::open(dir.path(), options(Some(TableFormat::Searchable))).unwrap();
    change(&db, &mut rows, 2);
    assert_eq!(
        formats(dir.path()).0,
        0,
        "the upper levels stay block-based"
    );
    compact(&db);
    check(&db, &rows, &ReadOptions::default());
    let before = rows.clone();
    let snapshot = db.snapshot();
    change(&db, &mut rows, 3);
    compact(&db);
    check(&db, &rows, &ReadOptions::default());
    let at_snapshot = ReadOptions {
        snapshot: Some(snapshot),
        ..ReadOptions::default()
    };
    check(&db, &before, &at_snapshot);
    drop(at_snapshot);
    let report = db.verify().unwrap();
    assert!(report.damaged.is_empty(), "{:?}", report.damaged);
    db.close().unwrap();
    let (searchable, others) = formats(dir.path());
    assert!(searchable > 0 && others == 0, "{searchable} and {others}");

    // What the directory says holds until something else is asked for.
    let db = Db::open(dir.path(), options(None)).unwrap();
    change(&db, &mut rows, 4);
    compact(&db);
    check(&db, &rows, &ReadOptions::default());
    db.close().unwrap();
    assert_eq!(formats(dir.path()).1, 0);

    let db = Db::open(dir.path(), options(Some(TableFormat::Block))).unwrap();
    compact(&db);
    check(&db, &rows, &ReadOptions::default());
    db.close().unwrap();
    assert_eq!(formats(dir.path()).0, 0);
}

#[test]
fn an_external_searchable_table_is_taken_in() {
    let dir = memory_dir();
    let db = Db::open(dir.path(), options(None)).unwrap();
    let mut rows = Rows::new();
    change(&db, &mut rows, 7);
    let table = dir.path().join("external.sst");
    let format = TableWriterOptions {
        format: TableFormat::Searchable,
        ..TableWriterOptions::default()
    };
    let mut writer = SstFileWriter::create(&Env::system(), &table, format).unwrap();
    for number in (0..500).map(|n| n * 5) {
        writer.put(&key(number), b"from outside").unwrap();
        rows.insert(key(number), b"from outside".to_vec());
    }
    writer.finish().unwrap();
    db.ingest(db.default_family(), &[table], true).unwrap();
    check(&db, &rows, &ReadOptions::default());
    compact(&db);
    check(&db, &rows, &ReadOptions::default());
    db.close().unwrap();
}
