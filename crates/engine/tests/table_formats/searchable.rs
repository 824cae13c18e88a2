//! Goal: searchable tables serve a family as block-based ones do, below them and in place of them.
//! Method: the same rows in a plain map, formats changed between opens, with a snapshot held over
//! compactions.

use drumlin::{Db, Env, ReadOptions, SstFileWriter, TableFormat, TableWriterOptions};
use drumlin_base::rng::Rng;
use drumlin_testkit::memory_dir;

use crate::common::{Rows, change, check, compact, formats, key, options};

/// Columns and words; one in forty goes to a blob file.
fn value(rng: &mut Rng) -> Vec<u8> {
    let words = ["carefully", "final", "deposits", "sleep"];
    let word = words[rng.below(4) as usize];
    let repeat = if rng.one_in(40) { 200 } else { 1 };
    format!("{}|{word}|{}", rng.below(1000), word.repeat(repeat)).into_bytes()
}

#[test]
fn a_family_goes_over_to_searchable_tables_by_compaction_and_back() {
    let dir = memory_dir();
    let mut rows = Rows::new();
    let db = Db::open(dir.path(), options(None)).unwrap();
    change(&db, &mut rows, 1, value);
    compact(&db);
    db.close().unwrap();
    assert_eq!(formats(dir.path(), TableFormat::Searchable).0, 0);

    let db = Db::open(dir.path(), options(Some(TableFormat::Searchable))).unwrap();
    change(&db, &mut rows, 2, value);
    assert_eq!(
        formats(dir.path(), TableFormat::Searchable).0,
        0,
        "the upper levels stay block-based"
    );
    compact(&db);
    check(&db, &rows, &ReadOptions::default());
    let before = rows.clone();
    let snapshot = db.snapshot();
    change(&db, &mut rows, 3, value);
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
    let (searchable, others) = formats(dir.path(), TableFormat::Searchable);
    assert!(searchable > 0 && others == 0, "{searchable} and {others}");

    // The directory's setting holds until something else is asked for.
    let db = Db::open(dir.path(), options(None)).unwrap();
    change(&db, &mut rows, 4, value);
    compact(&db);
    check(&db, &rows, &ReadOptions::default());
    db.close().unwrap();
    assert_eq!(formats(dir.path(), TableFormat::Searchable).1, 0);

    let db = Db::open(dir.path(), options(Some(TableFormat::Block))).unwrap();
    compact(&db);
    check(&db, &rows, &ReadOptions::default());
    db.close().unwrap();
    assert_eq!(formats(dir.path(), TableFormat::Searchable).0, 0);
}

#[test]
fn an_external_searchable_table_is_taken_in() {
    let dir = memory_dir();
    let db = Db::open(dir.path(), options(None)).unwrap();
    let mut rows = Rows::new();
    change(&db, &mut rows, 7, value);
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

/// An external table of every third key from `from` on, each with `value`.
fn external(path: &std::path::Path, format: TableFormat, from: u32, value: &str) {
    let options = TableWriterOptions {
        format,
        ..TableWriterOptions::default()
    };
    let mut table = SstFileWriter::create(&Env::system(), path, options).unwrap();
    for key in (from..600).step_by(3) {
        let value = format!("{value} {key} carefully final deposits");
        table
            .put(format!("key{key:04}").as_bytes(), value.as_bytes())
            .unwrap();
    }
    table.finish().unwrap();
}

#[test]
fn batches_at_a_snapshot_see_nothing_of_tables_taken_in_later() {
    for format in [
        TableFormat::Searchable,
        TableFormat::Block,
        TableFormat::Plain,
    ] {
        let (dir, outside) = (memory_dir(), memory_dir());
        let db = Db::open(dir.path(), options(Some(TableFormat::Searchable))).unwrap();
        let mut rows = std::collections::BTreeMap::new();
        let mut moments = vec![(db.snapshot(), rows.clone())];
        for (round, value) in ["one", "two", "three", "four"].iter().enumerate() {
            let path = outside.path().join(format!("{value}.sst"));
            let from = round as u32 % 3;
            external(&path, format, from, value);
            db.ingest(db.default_family(), &[path], round % 2 == 0)
                .unwrap();
            for key in (from..600).step_by(3) {
                let value = format!("{value} {key} carefully final deposits");
                rows.insert(format!("key{key:04}"), value);
            }
            moments.push((db.snapshot(), rows.clone()));
        }
        for compacted in [false, true] {
            for (snapshot, rows) in &moments {
                let at = ReadOptions {
                    snapshot: Some(snapshot.clone()),
                    ..ReadOptions::default()
                };
                let keys: Vec<String> = (0..700).map(|key| format!("key{key:04}")).collect();
                for keys in keys.chunks(37) {
                    let found = db.multi_get_cf(db.default_family(), keys, &at);
                    for (key, found) in keys.iter().zip(found) {
                        let found = found.unwrap().map(|value| value.to_vec());
                        let expected = rows.get(key).map(|value| value.clone().into_bytes());
                        assert_eq!(
                            found, expected,
                            "{key} in {format:?}, compacted: {compacted}"
                        );
                        let single = db.get_cf(db.default_family(), key, &at).unwrap();
                        assert_eq!(single.map(|value| value.to_vec()), expected, "{key}");
                    }
                }
            }
            compact(&db);
        }
        db.close().unwrap();
    }
}

#[test]
fn families_of_few_levels_have_searchable_tables_in_the_last_of_them() {
    for levels in [2, 3, 5] {
        let dir = memory_dir();
        let mut rows = Rows::new();
        let mut options = options(Some(TableFormat::Searchable));
        options.family.levels_max = Some(levels);
        let db = Db::open(dir.path(), options).unwrap();
        change(&db, &mut rows, 1, value);
        compact(&db);
        check(&db, &rows, &ReadOptions::default());
        db.close().unwrap();
        let (searchable, others) = formats(dir.path(), TableFormat::Searchable);
        assert!(
            searchable > 0 && others == 0,
            "{levels}: {searchable} and {others}"
        );
    }
}
