//! Goal: plain tables serve a family as block-based ones do, beside them and in place of them; values
//! stay where they were found for as long as they are held. Method: the same rows in a plain map,
//! formats changed between opens.

use drumlin::{Db, Env, ReadOptions, SstFileWriter, TableFormat, TableWriterOptions};
use drumlin_base::rng::Rng;
use drumlin_testkit::memory_dir;

use crate::common::{Rows, change, check, compact, formats, key, options};

/// Letters; one in forty goes to a blob file.
fn value(rng: &mut Rng) -> Vec<u8> {
    let len = match rng.one_in(40) {
        true => 2000,
        false => rng.below(60) + 1,
    };
    (0..len).map(|_| b'a' + rng.below(26) as u8).collect()
}

#[test]
fn a_family_changes_formats_by_compaction_and_back() {
    let dir = memory_dir();
    let mut rows = Rows::new();
    let db = Db::open(dir.path(), options(None)).unwrap();
    change(&db, &mut rows, 1, value);
    compact(&db);
    change(&db, &mut rows, 2, value);
    db.close().unwrap();
    assert_eq!(formats(dir.path(), TableFormat::Plain).0, 0);

    let db = Db::open(dir.path(), options(Some(TableFormat::Plain))).unwrap();
    change(&db, &mut rows, 3, value);
    let (plain, block) = formats(dir.path(), TableFormat::Plain);
    assert!(block > 0 && plain > 0, "both at once");
    check(&db, &rows, &ReadOptions::default());
    compact(&db);
    check(&db, &rows, &ReadOptions::default());
    db.close().unwrap();
    assert_eq!(formats(dir.path(), TableFormat::Plain).1, 0);

    // The directory's setting holds until something else is asked for.
    let db = Db::open(dir.path(), options(None)).unwrap();
    change(&db, &mut rows, 4, value);
    assert_eq!(formats(dir.path(), TableFormat::Plain).1, 0);
    check(&db, &rows, &ReadOptions::default());
    let report = db.verify().unwrap();
    assert!(report.damaged.is_empty(), "{:?}", report.damaged);
    let copy = dir.path().join("copy");
    db.checkpoint(&copy).unwrap();
    compact(&db);
    db.close().unwrap();
    check(
        &Db::open(&copy, options(None)).unwrap(),
        &rows,
        &ReadOptions::default(),
    );

    let db = Db::open(dir.path(), options(Some(TableFormat::Block))).unwrap();
    compact(&db);
    check(&db, &rows, &ReadOptions::default());
    db.close().unwrap();
    assert_eq!(formats(dir.path(), TableFormat::Plain).0, 0);
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
    assert_eq!(
        formats(dir.path(), TableFormat::Plain),
        (1, 0),
        "the old table is gone"
    );
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
    change(&db, &mut rows, 1, value);
    db.close().unwrap();
    let files = Env::system().files;
    for name in files.list(dir.path()).unwrap() {
        if name.to_string_lossy().starts_with("MANIFEST") {
            files.remove(&dir.path().join(name)).unwrap();
        }
    }
    let report = Db::repair(dir.path(), &options(None)).unwrap();
    assert!(report.lost.is_empty(), "{:?}", report.lost);
    check(
        &Db::open(dir.path(), options(None)).unwrap(),
        &rows,
        &ReadOptions::default(),
    );
}
