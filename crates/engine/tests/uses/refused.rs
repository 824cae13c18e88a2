//! Goal: another engine's different layout is refused by name, and a repair makes neither an empty store
//! out of a store nor a store out of other files. Method: such directories in memory, opened, read, listed and
//! repaired; afterwards every name and every byte is as it was.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use drumlin::{Db, Env, ErrorKind, FamilyOptions, Options, SstFileWriter, TableWriterOptions};
use drumlin_fs::{CreateOptions, FileKind, FileSystem, StrictMemFileSystem};

const DIR: &str = "/db";
const FILE_BYTES_MAX: u64 = 1 << 26;

/// An empty directory in memory, and options for a store there.
pub(crate) fn disk() -> (Arc<StrictMemFileSystem>, Options) {
    let files = Arc::new(StrictMemFileSystem::new());
    files.create_dir_all(Path::new(DIR)).unwrap();
    let options = Options {
        env: Env {
            files: Arc::clone(&files) as Arc<dyn FileSystem>,
            ..Env::system()
        },
        ..Options::default()
    };
    (files, options)
}

fn put(files: &StrictMemFileSystem, name: &str, bytes: &[u8]) {
    let path = Path::new(DIR).join(name);
    let mut file = files
        .create(&path, CreateOptions::new(FileKind::Other))
        .unwrap();
    file.append(bytes).unwrap();
    file.sync().unwrap();
    file.close().unwrap();
    files.sync_dir(Path::new(DIR)).unwrap();
}

/// Every file and its bytes; LOCK, which says nothing, left out.
fn image(files: &StrictMemFileSystem) -> BTreeMap<PathBuf, Vec<u8>> {
    let names = files.list(Path::new(DIR)).unwrap();
    let names = names.into_iter().filter(|name| name != Path::new("LOCK"));
    names
        .map(|name| {
            let path = Path::new(DIR).join(&name);
            let bytes = match files.info(&path).unwrap().is_dir {
                true => Vec::new(),
                false => files.read_file(&path, FILE_BYTES_MAX).unwrap(),
            };
            (name, bytes)
        })
        .collect()
}

/// A store of two flushed families, closed.
fn store(options: &Options) {
    let db = Db::open(DIR, options.clone()).unwrap();
    let other = db.create_family("other", FamilyOptions::default()).unwrap();
    for round in 0..2 {
        for family in [db.default_family(), &other] {
            db.put_cf(family, b"key", vec![round; 9], &Default::default())
                .unwrap();
            db.flush_cf(family).unwrap();
        }
    }
    drop(other);
    db.close().unwrap();
}

fn tables(files: &StrictMemFileSystem) -> Vec<PathBuf> {
    let mut names = files.list(Path::new(DIR)).unwrap();
    names.retain(|name| name.extension().is_some_and(|end| end == "sst"));
    names.sort();
    names
}

/// Every way in refuses with `word`, and nothing is changed.
fn refused_by(files: &StrictMemFileSystem, options: &Options, word: &str) {
    let before = image(files);
    let errors = [
        Db::open_all_families(DIR, options.clone()).err(),
        Db::open_read_only(DIR, options.clone()).err(),
        Db::repair(DIR, options).err(),
    ];
    for (way, error) in errors.into_iter().enumerate() {
        let error = error.unwrap();
        assert_eq!(error.kind(), ErrorKind::NotSupported, "{way}: {error}");
        assert!(error.to_string().contains(word), "{way}: {error}");
        assert!(image(files) == before, "{way}: {word}");
    }
}

#[test]
fn directories_of_other_rules_are_refused_by_name() {
    let (files, options) = disk();
    put(&files, "marker.manifest.000002.MANIFEST-000004", b"");
    refused_by(&files, &options, "Pebble");
    let (files, options) = disk();
    store(&options);
    put(&files, "CURRENT", &[7; 4112]);
    refused_by(&files, &options, "encrypted");
    let (files, options) = disk();
    store(&options);
    files.create_dir_all(Path::new("/db/blob_dir")).unwrap();
    refused_by(&files, &options, "BlobDB");
}

#[test]
fn a_store_whose_tables_lie_elsewhere_is_refused_and_not_repaired() {
    for current in [true, false] {
        let (files, options) = disk();
        store(&options);
        for name in tables(&files) {
            files.remove(&Path::new(DIR).join(name)).unwrap();
        }
        match current {
            true => refused_by(&files, &options, "data path"),
            false => {
                files.remove(Path::new("/db/CURRENT")).unwrap();
                let before = image(&files);
                let error = Db::repair(DIR, &options).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::NotSupported, "{error}");
                assert!(image(&files) == before);
            }
        }
    }
}

#[test]
fn a_family_whose_tables_lie_elsewhere_is_refused_and_named() {
    let (files, options) = disk();
    let db = Db::open(DIR, options.clone()).unwrap();
    db.put(b"key", b"value").unwrap();
    db.flush().unwrap();
    db.close().unwrap();
    let before = tables(&files);
    let db = Db::open(DIR, options.clone()).unwrap();
    let other = db.create_family("other", FamilyOptions::default()).unwrap();
    db.put_cf(&other, b"key", b"value", &Default::default())
        .unwrap();
    db.flush_cf(&other).unwrap();
    drop(other);
    db.close().unwrap();
    let newest = tables(&files);
    for name in newest.iter().filter(|name| !before.contains(name)) {
        files.remove(&Path::new(DIR).join(name)).unwrap();
    }
    refused_by_all_families(&files, &options);
}

fn refused_by_all_families(files: &StrictMemFileSystem, options: &Options) {
    let before = image(files);
    for error in [
        Db::open_all_families(DIR, options.clone()).err(),
        Db::repair(DIR, options).err(),
    ] {
        let error = error.unwrap();
        assert_eq!(error.kind(), ErrorKind::NotSupported, "{error}");
        assert!(error.to_string().contains("\"other\""), "{error}");
        assert!(image(files) == before);
    }
}

#[test]
fn a_repair_writes_nothing_for_the_ids_between_two_families() {
    const FAR: u32 = 5_000;
    let (files, options) = disk();
    store(&options);
    let table = TableWriterOptions {
        family_id: FAR,
        family_name: "far".to_owned(),
        ..TableWriterOptions::default()
    };
    let path = Path::new("/db/900000.sst");
    let mut writer = SstFileWriter::create(&options.env, path, table).unwrap();
    writer.put(b"key", b"value").unwrap();
    writer.finish().unwrap();
    files.sync_dir(Path::new(DIR)).unwrap();
    let report = Db::repair(DIR, &options).unwrap();
    assert!(report.families.contains(&"far".to_owned()));
    let is_manifest = |name: &Path| name.to_string_lossy().starts_with("MANIFEST");
    for (name, bytes) in image(&files) {
        assert!(!is_manifest(&name) || bytes.len() < 4096, "{}", bytes.len());
    }
    let db = Db::open_all_families(DIR, options).unwrap();
    assert_eq!(db.column_family("far").unwrap().id(), FAR);
    let next = db.create_family("next", FamilyOptions::default()).unwrap();
    assert_eq!(next.id(), FAR + 1);
}

#[test]
fn a_repair_makes_no_store_of_other_files() {
    for names in [
        &[][..],
        &["a.png", "notes.txt"],
        &["2026.log"],
        &["000004.blob"],
    ] {
        let (files, options) = disk();
        for name in names {
            put(&files, name, b"bytes of somebody");
        }
        let before = files.list(Path::new(DIR)).unwrap();
        let error = Db::repair(DIR, &options).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotSupported, "{names:?}: {error}");
        assert_eq!(files.list(Path::new(DIR)).unwrap(), before, "{names:?}");
    }
}

#[test]
fn a_repair_that_can_read_no_table_changes_nothing() {
    let (files, options) = disk();
    store(&options);
    for name in tables(&files) {
        put(&files, &name.to_string_lossy(), b"damaged");
    }
    let before = image(&files);
    let error = Db::repair(DIR, &options).unwrap_err();
    assert!(error.to_string().contains("nothing was changed"), "{error}");
    assert!(image(&files) == before);
}
