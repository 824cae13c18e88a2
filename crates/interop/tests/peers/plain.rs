//! Goal: RocksDB refuses a directory with our plain tables by name, and takes it back once a
//! compaction has rewritten them. Method: its own tools on the same directory.

use drumlin::{Db, FamilyOptions, Options, TableFormat};
use drumlin_interop::*;
use drumlin_testkit::temp_dir;

fn with(format: Option<TableFormat>) -> Options {
    let small = small();
    Options {
        family: FamilyOptions {
            table_format: format,
            ..small.family.clone()
        },
        ..small
    }
}

#[test]
fn rocksdb_refuses_plain_tables_and_takes_the_directory_back_after_compaction() {
    let dir = temp_dir();
    let db = Db::open(dir.path(), with(Some(TableFormat::Plain))).unwrap();
    let mut want = Rows::new();
    for number in 0..500 {
        let row = (format!("key{number:04}"), format!("value {number}"));
        db.put(&row.0, &row.1).unwrap();
        want.push((row.0.into(), row.1.into()));
    }
    db.flush().unwrap();
    db.close().unwrap();
    let refused = ldb(dir.path(), &["scan", "--try_load_options"]).failed();
    assert!(
        refused.contains("lain") || refused.contains("magic"),
        "{refused}"
    );
    let refused = ldb(dir.path(), &["get", "key0001"]).failed();
    assert!(refused.contains("magic"), "{refused}");

    let db = Db::open(dir.path(), with(Some(TableFormat::Block))).unwrap();
    db.compact_range(db.default_family(), None, None).unwrap();
    db.close().unwrap();
    assert_eq!(ldb_scan(dir.path(), "default"), want);
    ldb(dir.path(), &["get", "key0001", "--try_load_options"]).ok();
}
