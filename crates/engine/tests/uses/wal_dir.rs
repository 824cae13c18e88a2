//! Goal: every write is found or the open is refused, wherever the WAL was and is looked for. Method: every
//! way to open a directory after every way it was written; reads that succeed must show the synced row.

#![expect(
    clippy::disallowed_methods,
    reason = "helpers of tests fail by panicking, and stand for other programs"
)]

use std::path::{Path, PathBuf};

use drumlin::internals::options_file;
use drumlin::{Db, Env, ErrorKind, Options, Result, WriteOptions};
use drumlin_testkit::memory_dir;

fn options(wal_dir: Option<&Path>) -> Options {
    Options {
        background_threads: Some(0),
        wal_dir: wal_dir.map(Path::to_path_buf),
        ..Options::default()
    }
}

fn put(db: &Db, key: &str) {
    let synced = WriteOptions::synced();
    db.put_cf(db.default_family(), key, "value", &synced)
        .unwrap();
}

/// Whether `key` is there, or why that cannot be told.
fn has(opened: Result<Db>, key: &str) -> Result<bool> {
    let db = opened?;
    let found = db.get(key)?.is_some();
    Ok(found)
}

#[test]
fn no_open_misses_what_another_wal_directory_holds() {
    let root = memory_dir();
    let places: [Option<PathBuf>; 4] = [
        None,
        Some(root.path().join("db")),
        Some(root.path().join("log")),
        Some(root.path().join("other")),
    ];
    let dir = root.path().join("db");
    for written in &places {
        for opened in &places {
            for flushed in [false, true] {
                drop(std::fs::remove_dir_all(&dir));
                for name in ["log", "other"] {
                    drop(std::fs::remove_dir_all(root.path().join(name)));
                }
                let (written, opened) = (written.as_deref(), opened.as_deref());
                let db = Db::open(&dir, options(written)).unwrap();
                put(&db, "key");
                if flushed {
                    db.flush().unwrap();
                }
                db.close().unwrap();
                let what = format!("{written:?} then {opened:?}, flushed: {flushed}");
                let is_same = written.unwrap_or(&dir) == opened.unwrap_or(&dir);
                for read in [
                    has(Db::open_read_only(&dir, options(opened)), "key"),
                    has(Db::open(&dir, options(opened)), "key"),
                ] {
                    match read {
                        Ok(found) => assert!(found, "{what}"),
                        Err(error) => {
                            let missing = error.to_string().contains("no such WAL directory");
                            assert!(!is_same && (!flushed || missing), "{what}: {error}");
                            assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{what}");
                        }
                    }
                }
                if !flushed {
                    assert!(
                        has(Db::open(&dir, options(written)), "key").unwrap(),
                        "{what}"
                    );
                }
            }
        }
    }
}

#[test]
fn a_wal_directory_that_is_gone_is_missed() {
    let root = memory_dir();
    let (dir, log) = (root.path().join("db"), root.path().join("log"));
    let db = Db::open(&dir, options(Some(&log))).unwrap();
    put(&db, "key");
    drop(db);
    let moved = root.path().join("moved");
    std::fs::rename(&log, &moved).unwrap();
    let error = Db::open(&dir, options(None)).map(drop).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(has(Db::open(&dir, options(Some(&moved))), "key").unwrap());
}

#[test]
fn two_databases_do_not_share_a_wal_directory() {
    let root = memory_dir();
    let at = |name: &str| root.path().join(name);
    let log = at("log");
    let first = Db::open(at("one"), options(Some(&log))).unwrap();
    put(&first, "first");
    let error = Db::open(at("two"), options(Some(&log)))
        .map(drop)
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Locked, "{error}");
    put(&first, "second");
    drop(first);
    let beside = Db::open(at("four"), options(None)).unwrap();
    drop(beside);
    let error = Db::open(at("five"), options(Some(&at("four"))))
        .map(drop)
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    for key in ["first", "second"] {
        assert!(has(Db::open(at("one"), options(Some(&log))), key).unwrap());
    }
}

#[test]
fn a_copy_with_a_wal_elsewhere_leaves_the_originals_alone() {
    let root = memory_dir();
    let at = |name: &str| root.path().join(name);
    let log = at("log");
    let db = Db::open(at("db"), options(Some(&log))).unwrap();
    put(&db, "key");
    db.checkpoint(at("copy")).unwrap();
    let before: Vec<_> = std::fs::read_dir(&log)
        .unwrap()
        .map(|e| e.unwrap().file_name())
        .collect();
    assert!(has(Db::open(at("copy"), options(None)), "key").unwrap());
    let after: Vec<_> = std::fs::read_dir(&log)
        .unwrap()
        .map(|e| e.unwrap().file_name())
        .collect();
    assert_eq!(before.len(), after.len());
    put(&db, "later");
    drop(db);
    assert!(has(Db::open(at("db"), options(Some(&log))), "later").unwrap());
}

/// Goal: a place that the WAL has left for good is forgotten.
#[test]
fn a_wal_directory_that_was_left_is_not_told_of_any_more() {
    let root = memory_dir();
    let (dir, log) = (root.path().join("db"), root.path().join("log"));
    let told = || {
        let file = options_file::read_newest(&*Env::system().files, &dir);
        let file = file.unwrap().unwrap();
        file.database.get("wal_dir").map(str::to_owned)
    };
    let db = Db::open(&dir, options(Some(&log))).unwrap();
    put(&db, "key");
    db.close().unwrap();
    assert_eq!(told().as_deref(), log.to_str());
    // Brought home, as by hand.
    for file in std::fs::read_dir(&log).unwrap() {
        let from = file.unwrap().path();
        std::fs::rename(&from, dir.join(from.file_name().unwrap())).unwrap();
    }
    assert!(has(Db::open(&dir, options(None)), "key").unwrap());
    assert_eq!(told().as_deref(), Some(""));
    // Files that others put there later are none of ours.
    std::fs::write(log.join("000099.log"), b"of another store").unwrap();
    assert!(has(Db::open(&dir, options(None)), "key").unwrap());
}
