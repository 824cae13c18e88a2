//! Goal: a family whose prefix extractor changes answers rightly, from tables written under the old one,
//! from those written under the new one, and from memtables. Method: the same rows in a plain map, the
//! extractor changed between opens, every format in turn.

use std::sync::Arc;

use drumlin::{Db, Options, ReadOptions, TableFormat};
use drumlin_base::PrefixExtractor;
use drumlin_base::operators::{CappedPrefix, FixedPrefix};
use drumlin_base::rng::Rng;
use drumlin_testkit::memory_dir;

use crate::common::{KEYS, Rows, change, check, compact, formats, key, options};

/// All of a key but its last byte, unless that is a nine.
struct NoNines;

impl PrefixExtractor for NoNines {
    fn name(&self) -> &str {
        "test.NoNines"
    }

    fn prefix<'a>(&self, key: &'a [u8]) -> Option<&'a [u8]> {
        let (last, prefix) = key.split_last()?;
        (*last != b'9').then_some(prefix)
    }
}

fn value(rng: &mut Rng) -> Vec<u8> {
    vec![b'v'; 1 + rng.below(40) as usize]
}

/// Walks within a prefix, from keys that are there and keys that are not, against the rows.
fn check_prefixes(db: &Db, rows: &Rows, by: &dyn PrefixExtractor) {
    let mut within = db.iter(ReadOptions {
        prefix_same_as_start: true,
        ..ReadOptions::default()
    });
    for number in (0..KEYS + 50).step_by(11) {
        let start = key(number);
        let Some(prefix) = by.prefix(&start) else {
            continue; // The walk has no prefix to stay in.
        };
        within.seek(&start);
        let after = rows.range(start.clone()..);
        let of_prefix = after.take_while(|row| by.prefix(row.0) == Some(prefix));
        for (expected, value) in of_prefix.take(40) {
            assert!(within.valid(), "{} under {}", number, by.name());
            assert_eq!((within.key(), within.value()), (&expected[..], &value[..]));
            within.next();
        }
        within.status().unwrap();
    }
}

fn a_changed_extractor_answers_rightly(format: TableFormat) {
    let extractors: [Arc<dyn PrefixExtractor>; 6] = [
        Arc::new(FixedPrefix::new(7)),
        Arc::new(NoNines),
        Arc::new(FixedPrefix::new(5)),
        Arc::new(CappedPrefix::new(6)),
        Arc::new(FixedPrefix::new(100)),
        Arc::new(CappedPrefix::new(100)),
    ];
    let dir = memory_dir();
    let mut rows = Rows::new();
    for (round, by) in (0..).zip(&extractors) {
        let plain = options(Some(format));
        let db = Db::open(
            dir.path(),
            Options {
                family: drumlin::FamilyOptions {
                    prefix_extractor: Some(Arc::clone(by)),
                    ..plain.family.clone()
                },
                ..plain
            },
        )
        .unwrap();
        // Rows that the last round left in its memtable.
        check_prefixes(&db, &rows, &**by);
        change(&db, &mut rows, round + 1, value);
        check_prefixes(&db, &rows, &**by);
        if round % 2 == 1 {
            compact(&db);
        }
        for number in (round..KEYS).step_by(37) {
            db.put(key(number), b"not flushed").unwrap();
            rows.insert(key(number), b"not flushed".to_vec());
        }
        check_prefixes(&db, &rows, &**by);
        check_gets(&db, &rows);
        db.close().unwrap();
    }
    assert!(formats(dir.path(), format).0 > 0);
    // And under the one they all began with.
    let db = Db::open(dir.path(), options(Some(format))).unwrap();
    check(&db, &rows, &ReadOptions::default());
}

/// Gets alone and together, of keys that are there and keys that are not.
fn check_gets(db: &Db, rows: &Rows) {
    let keys: Vec<Vec<u8>> = (0..KEYS + 50).map(key).collect();
    let family = db.default_family();
    let many = db.multi_get_cf(family, &keys, &ReadOptions::default());
    for (key, together) in keys.iter().zip(many) {
        let expected = rows.get(key).map(Vec::as_slice);
        assert_eq!(together.unwrap().as_deref(), expected);
        assert_eq!(db.get(key).unwrap().as_deref(), expected);
    }
}

#[test]
fn block_based_tables_outlive_their_prefix_extractor() {
    a_changed_extractor_answers_rightly(TableFormat::Block);
}

#[test]
fn plain_tables_outlive_their_prefix_extractor() {
    a_changed_extractor_answers_rightly(TableFormat::Plain);
}

#[test]
fn searchable_tables_outlive_their_prefix_extractor() {
    a_changed_extractor_answers_rightly(TableFormat::Searchable);
}
