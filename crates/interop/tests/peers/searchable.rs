//! Goal: RocksDB refuses a directory with our searchable tables and their model by name, skips the
//! MANIFEST's fields that it does not know, and takes the directory back once it was recoded. Method:
//! its own tools on the same directory.

use drumlin::internals::names::FileName;
use drumlin::{Db, Env, FamilyOptions, Options, TableFormat, Tuning};
use drumlin_interop::*;
use drumlin_testkit::temp_dir;

fn with(format: Option<TableFormat>) -> Options {
    let small = small();
    Options {
        family: FamilyOptions {
            table_format: format,
            ..small.family.clone()
        },
        tuning: Tuning {
            shared_model_from_bytes: 0,
            ..small.tuning
        },
        ..small
    }
}

fn models(dir: &std::path::Path) -> usize {
    let names = Env::system()
        .files
        .list(dir)
        .expect("the directory is there");
    let is_model =
        |name: &&std::path::PathBuf| matches!(FileName::parse(name), Some(FileName::Model(_)));
    names.iter().filter(is_model).count()
}

#[test]
fn rocksdb_refuses_searchable_tables_and_takes_the_directory_back_recoded() {
    let dir = temp_dir();
    let db = Db::open(dir.path(), with(Some(TableFormat::Searchable))).unwrap();
    let mut want = Rows::new();
    for number in 0..2000 {
        let row = (
            format!("key{number:04}"),
            format!("{number}|till and drumlins"),
        );
        db.put(&row.0, &row.1).unwrap();
        want.push((row.0.into(), row.1.into()));
    }
    db.recode(db.default_family()).unwrap();
    db.close().unwrap();
    assert_eq!(models(dir.path()), 1);
    let refused = ldb(dir.path(), &["scan", "--try_load_options"]).failed();
    assert!(refused.contains("drumlin_format"), "{refused}");
    let refused = ldb(dir.path(), &["get", "key0001"]).failed();
    assert!(refused.contains("drumlin_format"), "{refused}");
    let told = ldb(dir.path(), &["manifest_dump"]).ok();
    assert!(told.contains("level 6"), "{told}");

    // Neither attempt took anything away.
    let db = Db::open(dir.path(), with(Some(TableFormat::Block))).unwrap();
    assert_eq!(
        db.get(b"key0007").unwrap().as_deref(),
        Some(&b"7|till and drumlins"[..])
    );
    db.recode(db.default_family()).unwrap();
    db.close().unwrap();
    assert_eq!(models(dir.path()), 0);
    assert_eq!(ldb_scan(dir.path(), "default"), want);
    ldb(dir.path(), &["get", "key0001", "--try_load_options"]).ok();
}
