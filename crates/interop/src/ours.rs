//! Drumlin under test: small sizes, and every way of reading compared with the rows expected.

use std::path::Path;

use drumlin::{ColumnFamily, Db, DbIterator, Options, ReadOptions, Tuning};

use crate::rows::{Rows, assert_rows};

/// Keys looked up one by one; of more, an even sample.
const GETS_MAX: usize = 3000;

/// Options under which a few thousand rows fill several levels.
pub fn small() -> Options {
    Options {
        memory_budget: Some(64 << 20),
        tuning: Tuning {
            write_buffer_bytes: Some(128 << 10),
            target_file_bytes: 64 << 10,
            level_base_bytes: Some(128 << 10),
            level_multiplier: 4,
            ..Tuning::default()
        },
        ..Options::default()
    }
}

/// Opens every family of `dir` and checks the default family's rows by [`check_ours`].
///
/// # Panics
/// When the open fails or anything read is not as in `want`.
#[track_caller]
pub fn check_ours_in(dir: &Path, want: &Rows, what: &str) -> Db {
    let db = Db::open_all_families(dir, small());
    let db = db.unwrap_or_else(|error| panic!("{what}: we cannot open it: {error}"));
    check_ours(&db, db.default_family(), want, what);
    db
}

/// Reads `family` forward, backward, by get and by multi-get, and looks for keys that are not there.
///
/// # Panics
/// When anything read is not as in `want`.
#[track_caller]
pub fn check_ours(db: &Db, family: &ColumnFamily, want: &Rows, what: &str) {
    assert_rows(&format!("{what}, forward"), &ours_rows(db, family), want);
    let mut backward = rows_backward(db, family);
    backward.reverse();
    assert_rows(&format!("{what}, backward"), &backward, want);
    let step = want.len().div_ceil(GETS_MAX).max(1);
    let options = ReadOptions::default();
    for (key, value) in want.iter().step_by(step) {
        let got = db.get_cf(family, key, &options).expect("we get");
        let name = key.escape_ascii();
        assert!(
            got.as_deref() == Some(value.as_slice()),
            "{what}: get of {name}"
        );
        let mut absent = key.clone();
        absent.push(0);
        let got = db.get_cf(family, &absent, &options).expect("we get");
        let there = want.iter().step_by(step).any(|(key, _)| *key == absent);
        assert!(
            there || got.is_none(),
            "{what}: {name} with a zero is not there"
        );
    }
    let sample: Vec<_> = want.iter().step_by(step).collect();
    for group in sample.chunks(37) {
        let keys: Vec<_> = group.iter().map(|(key, _)| key).collect();
        let got = db.multi_get_cf(family, &keys, &options);
        for (got, (key, value)) in got.into_iter().zip(group) {
            let got = got.expect("we multi-get");
            let name = key.escape_ascii();
            assert!(
                got.as_deref() == Some(value.as_slice()),
                "{what}: multi-get of {name}"
            );
        }
    }
}

/// Every row of `family`, in order.
///
/// # Panics
/// When the walk fails.
pub fn ours_rows(db: &Db, family: &ColumnFamily) -> Rows {
    let mut iterator = db.iter_cf(family, ReadOptions::default());
    iterator.seek_to_first();
    collect(iterator, DbIterator::next)
}

fn rows_backward(db: &Db, family: &ColumnFamily) -> Rows {
    let mut iterator = db.iter_cf(family, ReadOptions::default());
    iterator.seek_to_last();
    collect(iterator, DbIterator::prev)
}

fn collect(mut iterator: DbIterator, step: impl Fn(&mut DbIterator)) -> Rows {
    let mut rows = Vec::new();
    while iterator.valid() {
        rows.push((iterator.key().to_vec(), iterator.value().to_vec()));
        step(&mut iterator);
    }
    iterator.status().expect("we walk");
    rows
}
