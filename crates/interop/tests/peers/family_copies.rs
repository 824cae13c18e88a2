//! Goal: RocksDB 7.8 reads a family that we exported, and a database of ours that took one in, of ours or of RocksDB's; and what it
//! writes there is read by us. Method: random operations of every kind, row by row.

use std::sync::Arc;

use drumlin::{Db, ErrorKind, FamilyOptions, ImportOptions, UInt64Add};
use drumlin_base::rng::Rng;
use drumlin_interop::*;
use drumlin_testkit::temp_dir;

const OPERATORS: Operators = Operators {
    merges: true,
    ranges: true,
    reverse: false,
};

const OPTIONS: &str = "paranoid_checks=true;merge_operator=uint64add";

fn adding() -> FamilyOptions {
    FamilyOptions {
        merge_operator: Some(Arc::new(UInt64Add)),
        ..small().family
    }
}

#[test]
fn rocksdb_reads_our_export_and_the_database_that_took_it_in() {
    let (from, to) = (temp_dir(), temp_dir());
    let export = to.path().join("export");
    let db = Db::open(from.path(), small()).unwrap();
    let users = db.create_family("users", adding()).unwrap();
    let mut rng = Rng::new(5);
    for at in 0..4000 {
        apply_ours(&db, &users, &random_op(&mut rng, 2000, OPERATORS));
        match at {
            1000 | 3000 => db.flush_cf(&users).unwrap(),
            2000 => db.compact_range(&users, None, None).unwrap(),
            _ => {}
        }
    }
    let want = ours_rows(&db, &users);
    assert!(want.len() > 500);
    db.export_family(&users, &export).unwrap();

    let dir = to.path().join("db");
    let db = Db::open(&dir, small()).unwrap();
    // The MANIFEST of this run is there: the family is a group of edits in it, and not in its first ones.
    db.create_family("first", adding()).unwrap();
    db.put("mine", "1").unwrap();
    let import = ImportOptions {
        family: Some(adding()),
        ..ImportOptions::default()
    };
    let taken = db.import_family("taken", &export, import).unwrap();
    check_ours(&db, &taken, &want, "ours");
    drop(taken);
    db.close().unwrap();

    let families = [("default", ""), ("first", ""), ("taken", "")];
    let rocks = Rocks::open(&dir, OPTIONS, &families).unwrap();
    assert_rows("RocksDB", &rocks.rows("taken"), &want);
    assert_eq!(rocks.get("default", b"mine").as_deref(), Some(&b"1"[..]));
    rocks.put("taken", &key(1), b"written by RocksDB");
    rocks.delete("taken", &key(2));
    rocks.compact("taken");
    let theirs = rocks.rows("taken");
    drop(rocks);
    let mut options = small();
    options.family = adding();
    let db = Db::open_all_families(&dir, options).unwrap();
    let taken = db.column_family("taken").unwrap();
    check_ours(&db, &taken, &theirs, "after RocksDB");

    let rocks = Rocks::open_default(&export, OPTIONS).unwrap();
    assert_rows("the export", &rocks.rows("default"), &want);
}

#[test]
fn what_rocksdb_has_in_tables_is_taken_in() {
    let (from, to) = (temp_dir(), temp_dir());
    let mut rng = Rng::new(6);
    let mut ops = |rocks: &Rocks| {
        for _ in 0..3000 {
            apply_rocks(rocks, "default", &random_op(&mut rng, 2000, OPERATORS));
        }
    };
    let create = format!("{OPTIONS};create_if_missing=true");
    let rocks = Rocks::open_default(from.path(), &create).unwrap();
    ops(&rocks);
    rocks.compact("default");
    ops(&rocks);
    rocks.flush("default");
    let want = rocks.rows("default");
    rocks.put("default", b"in the WAL", b"1");
    drop(rocks);

    let db = Db::open(to.path(), small()).unwrap();
    let import = ImportOptions {
        family: Some(adding()),
        ..ImportOptions::default()
    };
    let error = db.import_family("taken", from.path(), import.clone());
    assert_eq!(error.unwrap_err().kind(), ErrorKind::InvalidArgument);
    let rocks = Rocks::open_default(from.path(), OPTIONS).unwrap();
    rocks.delete("default", b"in the WAL");
    rocks.flush("default");
    drop(rocks);
    let taken = db.import_family("taken", from.path(), import).unwrap();
    check_ours(&db, &taken, &want, "taken in");
}
