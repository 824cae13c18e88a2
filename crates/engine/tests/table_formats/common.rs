//! Shared parts of the tests of both formats: rows in a plain map beside a family whose tables may have any
//! format, in a directory in memory where there is one, so that plain tables are mapped.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use drumlin::internals::batch::WriteBatch;
use drumlin::{
    Db, Env, FamilyOptions, FixedPrefix, Options, ReadOptions, StringAppend, TableFormat, Tuning,
    WriteOptions,
};
use drumlin_base::rng::Rng;

pub(crate) const KEYS: u64 = 3000;

pub(crate) type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

pub(crate) fn options(format: Option<TableFormat>) -> Options {
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

pub(crate) fn key(number: u64) -> Vec<u8> {
    format!("key{number:05}").into_bytes()
}

/// Puts of values that `value` makes, deletions, merges and a range deletion; the rows after them.
pub(crate) fn change(db: &Db, rows: &mut Rows, seed: u64, value: impl Fn(&mut Rng) -> Vec<u8>) {
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

/// Checks what `db` says under `options` against `rows`: by gets alone and together, walks both ways and
/// walks within a prefix.
pub(crate) fn check(db: &Db, rows: &Rows, options: &ReadOptions) {
    let keys: Vec<Vec<u8>> = (0..KEYS + 10).map(key).collect();
    let family = db.default_family();
    let many = db.multi_get_cf(family, &keys, options);
    for (key, value) in keys.iter().zip(many) {
        let expected = rows.get(key).map(Vec::as_slice);
        assert_eq!(value.unwrap().as_deref(), expected);
        let alone = db.get_cf(family, key, options).unwrap();
        assert_eq!(alone.as_deref(), expected);
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
    let mut within = db.iter(ReadOptions {
        prefix_same_as_start: true,
        ..options.clone()
    });
    for key in keys.iter().step_by(7) {
        within.seek(key);
        let of_prefix = rows.range(key.clone()..);
        for (expected, _) in of_prefix.take_while(|row| row.0[..7] == key[..7]) {
            assert_eq!(within.key(), &expected[..]);
            within.next();
        }
        assert!(!within.valid());
        within.status().unwrap();
    }
}

/// How many tables there are: of `format`, and others.
pub(crate) fn formats(dir: &Path, format: TableFormat) -> (usize, usize) {
    let files = Env::system().files;
    let names = files.list(dir).unwrap();
    let is_table = |name: &&PathBuf| name.extension() == Some("sst".as_ref());
    let is_one = |name: &&PathBuf| {
        let file = files.open(&dir.join(name)).unwrap();
        TableFormat::of(&*file).unwrap() == format
    };
    let tables = names.iter().filter(is_table);
    let count = tables.clone().filter(is_one).count();
    (count, tables.count() - count)
}

pub(crate) fn compact(db: &Db) {
    db.compact_range(db.default_family(), None, None).unwrap();
    db.wait_for_background().unwrap();
}
