//! Goal: plain tables serve a family as block-based ones do, beside them and in place of them; values
//! stay where they were found for as long as they are held. Method: the same rows in a plain map,
//! formats changed between opens; a directory in memory where there is one, so that tables are mapped.
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

/// Puts, deletions, merges, a range deletion, values in blob files; the rows after it.
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
                let len = if rng.one_in(40) {
                    2000
                } else {
                    rng.below(60) + 1
                };
                let value: Vec<u8> = (0..len).map(|_| b'a' + rng.below(26) as u8).collect();
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

fn check(db: &Db, rows: &Rows) {
    let keys: Vec<Vec<u8>> = (0..KEYS + 10).map(key).collect();
    for key in &keys {
        assert_eq!(
            db.get(key).unwrap().as_deref(),
            rows.get(key).map(Vec::as_slice)
        );
    }
    let many = db.multi_get_in(db.default_family(), &keys, &ReadOptions::default());
    for (key, value) in keys.iter().zip(many) {
        assert_eq!(value.unwrap().as_deref(), rows.get(key).map(Vec::as_slice));
    }
    let mut walk = db.iter(ReadOptions::default());
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
    let mut within = db.iter(ReadOptions {
        prefix_same_as_start: true,
        ..ReadOptions::default()
    });
    for key in keys.iter().step_by(7) {
        within.seek(key);
        for (expected, _) in rows
            .range(key.clone()..)
            .take_while(|row| row.0[..7] == key[..7])
        {
            assert_eq!(within.key(), &expected[..]);
            within.next();
        }
        assert!(!within.valid());
        within.status().unwrap();
    }
}

/// How many tables there are of each format.
fn formats(dir: &Path) -> (usize, usize) {
    let files = Env::system().files;
    let names = files.list(dir).unwrap();
    let tables = names
        .iter()
        .filter(|name| name.extension() == Some("sst".as_ref()));
    let plain = tables.clone().filter(|name| {
        let file = files.open(&dir.join(name)).unwrap();
        TableFormat::of(&*file).unwrap() == TableFormat::Plain
    });
    let plain = plain.count();
    (tables.count() - plain, plain)
}

fn compact(db: &Db) {
    db.compact_range(db.default_family(), None, None).unwrap();
    db.wait_for_background().unwrap();
}

#[test]
fn a_family_changes_formats_by_compaction_and_back() {
    let dir = memory_dir();
    let mut rows = Rows::new();
    let db = Db::open(dir.path(), options(None)).unwrap();
    change(&db, &mut rows, 1);
    compact(&db);
    change(&db, &mut rows, 2);
    db.close().unwrap();
    assert_eq!(formats(dir.path()).1, 0);

    let db = Db::open(dir.path(), options(Some(TableFormat::Plain))).unwrap();
    change(&db, &mut rows, 3);
    let (block, plain) = formats(dir.path());
    assert!(block > 0 && plain > 0, "both at once");
    check(&db, &rows);
    compact(&db);
    check(&db, &rows);
    db.close().unwrap();
    assert_eq!(formats(dir.path()).0, 0);

    // What the directory says holds until something else is asked for.
    let db = Db::open(dir.path(), options(None)).unwrap();
    change(&db, &mut rows, 4);
    assert_eq!(formats(dir.path()).0, 0);
    check(&db, &rows);
    let report = db.verify().unwrap();
    assert!(report.damaged.is_empty(), "{:?}", report.damaged);
    let copy = dir.path().join("copy");
    db.checkpoint(&copy).unwrap();
    compact(&db);
    db.close().unwrap();
    check(&Db::open(&copy, options(None)).unwrap(), &rows);

    let db = Db::open(dir.path(), options(Some(TableFormat::Block))).unwrap();
    compact(&db);
    check(&db, &rows);
    db.close().unwrap();
    assert_eq!(formats(dir.path()).1, 0);
}

#[test]
fn a_held_value_outlives_its_table_and_its_file() {
    let dir = memory_dir();
    let mut options = options(Some(TableFormat::Plain));
    options.tuning.target_file_bytes = 256 << 20;
    let db = Db::open(dir.path(), options).unwrap();
    let value = vec![b'v'; 1000];
    for number in 0..2000 {
        db.put(key(number), &value).unwrap();
    }
    db.flush().unwrap();
    let held: Vec<_> = (0..2000)
        .map(|number| db.get(key(number)).unwrap().unwrap())
        .collect();
    assert!(held.iter().all(|value| value.is_pinned()));
    for number in 0..2000 {
        db.put(key(number), b"newer").unwrap();
    }
    db.flush().unwrap();
    compact(&db);
    assert_eq!(formats(dir.path()), (0, 1), "the old table is gone");
    db.close().unwrap();
    drop(dir);
    assert!(held.iter().all(|held| **held == value));
}

#[test]
fn an_external_plain_table_is_taken_in() {
    let dir = memory_dir();
    let db = Db::open(dir.path(), options(None)).unwrap();
    db.put(b"key00001", b"old").unwrap();
    let table = dir.path().join("external");
    let format = TableWriterOptions {
        format: TableFormat::Plain,
        ..TableWriterOptions::default()
    };
    let mut writer = SstFileWriter::create(&Env::system(), &table, format).unwrap();
    writer.put(b"key00001", b"new").unwrap();
    writer.delete(b"key00002").unwrap();
    writer.finish().unwrap();
    db.ingest(db.default_family(), &[table], true).unwrap();
    assert_eq!(db.get(b"key00001").unwrap().as_deref(), Some(&b"new"[..]));
    db.put(b"key00001", b"newest").unwrap();
    assert_eq!(
        db.get(b"key00001").unwrap().as_deref(),
        Some(&b"newest"[..])
    );
}

#[test]
fn a_lost_manifest_is_rebuilt_from_plain_tables() {
    let dir = memory_dir();
    let mut rows = Rows::new();
    let db = Db::open(dir.path(), options(Some(TableFormat::Plain))).unwrap();
    change(&db, &mut rows, 1);
    db.close().unwrap();
    let files = Env::system().files;
    for name in files.list(dir.path()).unwrap() {
        if name.to_string_lossy().starts_with("MANIFEST") {
            files.remove(&dir.path().join(name)).unwrap();
        }
    }
    let report = Db::repair(dir.path(), &options(None)).unwrap();
    assert!(report.lost.is_empty(), "{:?}", report.lost);
    check(&Db::open(dir.path(), options(None)).unwrap(), &rows);
}
