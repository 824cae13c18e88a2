//! Goal: a repair keeps what families have in the WAL alone, under their names where anything tells them, and a family
//! that was dropped stays so. Real path: stores in the strict memory file system, their MANIFEST, CURRENT or OPTIONS files
//! removed or cut, repaired and opened.

use std::path::Path;
use std::sync::Arc;

use drumlin::{Db, FamilyOptions, Options};
use drumlin_fs::{CreateOptions, FileKind, FileSystem, StrictMemFileSystem};

use crate::refused::disk;

const DIR: &str = "/db";

/// A closed store: `dropped` (1), which was dropped; `written` (2), with a row in the WAL; `empty` (3).
fn store() -> (Arc<StrictMemFileSystem>, Options) {
    let (files, options) = disk();
    let db = Db::open(DIR, options.clone()).unwrap();
    for name in ["dropped", "written", "empty"] {
        let family = db.create_family(name, FamilyOptions::default()).unwrap();
        if name != "empty" {
            db.put_cf(&family, b"key", name, &Default::default())
                .unwrap();
        }
    }
    db.put("key", "default").unwrap();
    let dropped = db.column_family("dropped").unwrap();
    db.drop_family(&dropped).unwrap();
    drop(dropped);
    db.close().unwrap();
    (files, options)
}

fn remove(files: &StrictMemFileSystem, start: &str) {
    for name in files.list(Path::new(DIR)).unwrap() {
        if name.to_string_lossy().starts_with(start) {
            files.remove(&Path::new(DIR).join(name)).unwrap();
        }
    }
}

/// Each family of the repaired store with the value of `key` in it.
fn repaired(options: &Options) -> Vec<(String, Option<String>)> {
    let report = Db::repair(DIR, options).unwrap();
    let db = Db::open_all_families(DIR, options.clone()).unwrap();
    let found = db.families().into_iter().map(|family| {
        let value = db.get_cf(&family, b"key", &Default::default()).unwrap();
        let text = value.map(|value| String::from_utf8(value.to_vec()).unwrap());
        (family.name().to_owned(), text)
    });
    let mut found: Vec<_> = found.collect();
    found.sort();
    assert_eq!(report.families.len(), found.len());
    let next = db.create_family("next", FamilyOptions::default()).unwrap();
    assert!(next.id() > 2, "an id that the WAL has writes of");
    db.close().unwrap();
    found
}

fn rows(expected: &[(&str, Option<&str>)]) -> Vec<(String, Option<String>)> {
    let rows = expected.iter();
    rows.map(|(name, value)| ((*name).to_owned(), value.map(str::to_owned)))
        .collect()
}

#[test]
fn a_family_that_the_old_manifest_names_keeps_its_name() {
    let expected = rows(&[
        ("default", Some("default")),
        ("empty", None),
        ("written", Some("written")),
    ]);
    let (files, options) = store();
    remove(&files, "CURRENT");
    assert_eq!(repaired(&options), expected);
    // With garbage behind its last record, which the open refuses or takes for a torn end.
    let (files, options) = store();
    let names = files.list(Path::new(DIR)).unwrap();
    let mut manifests = names
        .iter()
        .filter(|name| name.to_string_lossy().starts_with("MANIFEST"));
    let path = Path::new(DIR).join(manifests.next().unwrap());
    let mut bytes = files.read_file(&path, 1 << 20).unwrap();
    bytes.extend([0x55; 3000]);
    let mut file = files
        .create(&path, CreateOptions::new(FileKind::Manifest))
        .unwrap();
    file.append(&bytes).unwrap();
    file.sync().unwrap();
    file.close().unwrap();
    remove(&files, "OPTIONS");
    assert_eq!(repaired(&options), expected);
}

#[test]
fn writes_of_a_family_that_nothing_names_are_kept() {
    let (files, options) = store();
    remove(&files, "MANIFEST");
    remove(&files, "OPTIONS");
    let expected = [
        ("default", Some("default")),
        ("family-1", Some("dropped")),
        ("family-2", Some("written")),
    ];
    assert_eq!(repaired(&options), rows(&expected));
}

#[test]
fn a_dropped_family_stays_so_where_the_options_name_no_other() {
    let (files, options) = store();
    let db = Db::open_all_families(DIR, options.clone()).unwrap();
    for name in ["written", "empty"] {
        let family = db.column_family(name).unwrap();
        db.put_cf(&family, b"key", "late", &Default::default())
            .unwrap();
        db.drop_family(&family).unwrap();
    }
    db.put("key", "late").unwrap();
    db.close().unwrap();
    remove(&files, "MANIFEST");
    assert_eq!(repaired(&options), rows(&[("default", Some("late"))]));
}
