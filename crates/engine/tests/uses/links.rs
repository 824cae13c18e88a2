//! Goal: the files of others, and copies of ours, keep their bytes, whatever a store does beside them. Method:
//! real directories, external tables behind links, checkpoints of stores that are read only.

#![expect(
    clippy::disallowed_methods,
    reason = "helpers of tests fail by panicking, and stand for other programs"
)]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use drumlin::{
    Db, Env, ErrorKind, Options, SstFileWriter, TableWriterOptions, Tuning, WriteOptions,
};
use drumlin_testkit::memory_dir;

const TABLES: u32 = 6;

/// Small tables, each of which is written over an old one where possible.
fn options() -> Options {
    Options {
        background_threads: Some(0),
        tuning: Tuning {
            reuse_from_bytes: 1,
            blob_from_bytes: Some(usize::MAX),
            ..Tuning::default()
        },
        ..Options::default()
    }
}

fn external(path: &Path, salt: u32) {
    let options = TableWriterOptions::default();
    let mut writer = SstFileWriter::create(&Env::system(), path, options).unwrap();
    for key in 0..500 {
        let key = format!("key{key:05}");
        writer
            .put(key.as_bytes(), format!("{key} {salt}").as_bytes())
            .unwrap();
    }
    writer.finish().unwrap();
}

/// Writes and compacts, so that tables become obsolete and new ones are made in their place.
fn churn(db: &Db) {
    for round in 0..4 {
        for key in 0..500 {
            let key = format!("key{key:05}");
            db.put(&key, format!("{key} in round {round}")).unwrap();
        }
        db.compact_range(db.default_family(), None, None).unwrap();
        db.wait_for_background().unwrap();
    }
}

fn names(dir: &Path) -> BTreeSet<PathBuf> {
    let entries = std::fs::read_dir(dir).unwrap();
    entries
        .map(|entry| entry.unwrap().file_name().into())
        .collect()
}

#[test]
fn external_tables_keep_their_bytes_however_they_are_named() {
    for how in ["symbolic link", "relative link", "hard link", "itself"] {
        let (user, dir) = (memory_dir(), memory_dir());
        let mut given = Vec::new();
        let mut before = Vec::new();
        for salt in 0..TABLES {
            let real = user.path().join(format!("real{salt}.sst"));
            external(&real, salt);
            before.push((real.clone(), std::fs::read(&real).unwrap()));
            let link = user.path().join(format!("link{salt}.sst"));
            given.push(match how {
                "symbolic link" => std::os::unix::fs::symlink(&real, &link).map(|()| link),
                "relative link" => {
                    std::os::unix::fs::symlink(real.file_name().unwrap(), &link).map(|()| link)
                }
                "hard link" => std::fs::hard_link(&real, &link).map(|()| link),
                _ => Ok(real),
            });
        }
        let given: Vec<PathBuf> = given.into_iter().map(Result::unwrap).collect();
        let db = Db::open(dir.path(), options()).unwrap();
        db.ingest(db.default_family(), &given, false).unwrap();
        churn(&db);
        db.close().unwrap();
        for (path, bytes) in &before {
            assert!(
                std::fs::read(path).unwrap() == *bytes,
                "{how}: {}",
                path.display()
            );
        }
        let is_link = |name: &PathBuf| dir.path().join(name).is_symlink();
        assert!(!names(dir.path()).iter().any(is_link), "{how}");
    }
}

#[test]
fn a_table_outlives_the_link_and_the_file_it_was_given_by() {
    let (user, dir) = (memory_dir(), memory_dir());
    let (real, link) = (user.path().join("real.sst"), user.path().join("link.sst"));
    external(&real, 1);
    std::os::unix::fs::symlink(&real, &link).unwrap();
    let db = Db::open(dir.path(), options()).unwrap();
    db.ingest(db.default_family(), std::slice::from_ref(&link), true)
        .unwrap();
    assert!(
        !link.is_symlink() && real.exists(),
        "the name that was given is moved"
    );
    external(&real, 2); // Made again, over the name and not over the bytes.
    db.close().unwrap();
    std::fs::remove_file(&real).unwrap();
    let db = Db::open(dir.path(), options()).unwrap();
    assert_eq!(
        db.get("key00007").unwrap().as_deref(),
        Some(&b"key00007 1"[..])
    );
}

#[test]
fn a_table_given_twice_is_taken_in_and_moved() {
    let (user, dir) = (memory_dir(), memory_dir());
    let path = user.path().join("table.sst");
    external(&path, 1);
    let db = Db::open(dir.path(), options()).unwrap();
    let twice = [path.clone(), path.clone()];
    db.ingest(db.default_family(), &twice, true).unwrap();
    assert!(!path.exists());
    assert!(db.get("key00007").unwrap().is_some());
}

#[test]
fn a_table_that_is_refused_leaves_no_other_behind() {
    let (user, dir) = (memory_dir(), memory_dir());
    let (good, bad) = (user.path().join("good.sst"), user.path().join("bad.sst"));
    external(&good, 1);
    std::fs::write(&bad, b"no table").unwrap();
    let db = Db::open(dir.path(), options()).unwrap();
    let before = names(dir.path());
    let taken = db.ingest(db.default_family(), &[good.clone(), bad], false);
    assert_eq!(taken.unwrap_err().kind(), ErrorKind::Corruption);
    assert_eq!(names(dir.path()), before);
    assert!(db.get("key00007").unwrap().is_none());
    assert!(good.exists());
}

#[test]
fn who_only_reads_takes_nothing_in() {
    let (user, dir) = (memory_dir(), memory_dir());
    let path = user.path().join("table.sst");
    external(&path, 1);
    let bytes = std::fs::read(&path).unwrap();
    let db = Db::open(dir.path(), options()).unwrap();
    let reader = Db::open_read_only(dir.path(), options()).unwrap();
    let before = names(dir.path());
    let error = reader
        .ingest(reader.default_family(), std::slice::from_ref(&path), false)
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ReadOnly);
    assert_eq!(names(dir.path()), before);
    churn(&db);
    assert!(std::fs::read(&path).unwrap() == bytes);
}

#[test]
fn a_file_in_the_way_of_a_table_is_not_written_over() {
    let dir = memory_dir();
    let db = Db::open(dir.path(), options()).unwrap();
    for number in 1..40 {
        let path = dir.path().join(format!("{number:06}.sst"));
        std::fs::write(path, b"somebody else's").unwrap();
    }
    db.put("key", "value").unwrap();
    let outcome = db.flush();
    for number in 1..40 {
        let path = dir.path().join(format!("{number:06}.sst"));
        assert_eq!(
            std::fs::read(path).unwrap(),
            b"somebody else's",
            "{outcome:?}"
        );
    }
    drop(db);
    // Names left by a crash, say, are passed over.
    let db = Db::open(dir.path(), options()).unwrap();
    assert_eq!(db.get("key").unwrap().as_deref(), Some(&b"value"[..]));
}

#[test]
fn a_checkpoint_by_who_only_reads_has_what_is_in_the_wal() {
    let (dir, copies) = (memory_dir(), memory_dir());
    let db = Db::open(dir.path(), options()).unwrap();
    db.put("flushed", "1").unwrap();
    db.flush().unwrap();
    let synced = WriteOptions::synced();
    db.put_cf(db.default_family(), "logged", "2", &synced)
        .unwrap();
    let reader = Db::open_read_only(dir.path(), options()).unwrap();
    db.put("later", "3").unwrap();
    let copy = copies.path().join("copy");
    reader.checkpoint(&copy).unwrap();
    let copy = Db::open(&copy, options()).unwrap();
    let found = ["flushed", "logged", "later"].map(|key| copy.get(key).unwrap().is_some());
    assert_eq!(found, [true, true, false]);

    // With the WAL flushed and gone the copy cannot be made, which is reported.
    db.compact_range(db.default_family(), None, None).unwrap();
    db.wait_for_background().unwrap();
    db.close().unwrap();
    drop(Db::open(dir.path(), options()).unwrap());
    let late = copies.path().join("late");
    match reader.checkpoint(&late) {
        Ok(()) => {
            let late = Db::open(&late, options()).unwrap();
            assert!(late.get("logged").unwrap().is_some());
        }
        Err(_) => assert!(!late.exists()),
    }
}

#[test]
fn several_checkpoints_to_one_target_make_one_sound_copy() {
    let (dir, copies) = (memory_dir(), memory_dir());
    let db = Db::open(dir.path(), options()).unwrap();
    churn(&db);
    db.put("logged", "1").unwrap();
    for round in 0..20 {
        let target = copies.path().join(format!("copy{round}"));
        let made: usize = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..3)
                .map(|_| scope.spawn(|| db.checkpoint(&target)))
                .collect();
            let outcomes = threads.into_iter().map(|thread| thread.join().unwrap());
            outcomes.filter(Result::is_ok).count()
        });
        assert_eq!(made, 1);
        let copy = Db::open_read_only(&target, options()).unwrap();
        assert!(copy.get("logged").unwrap().is_some() && copy.get("key00499").unwrap().is_some());
    }
    let all = names(copies.path());
    assert_eq!(all.len(), 20, "{all:?}");
}

#[test]
fn a_checkpoint_leaves_the_folders_of_others_alone() {
    let (dir, copies) = (memory_dir(), memory_dir());
    let db = Db::open(dir.path(), options()).unwrap();
    db.put("key", "value").unwrap();
    let mine = copies.path().join("mine.unfinished");
    std::fs::create_dir(&mine).unwrap();
    std::fs::write(mine.join("letter"), b"dear").unwrap();
    // As a shell completes it, with a slash.
    db.checkpoint(copies.path().join("mine/")).unwrap();
    assert_eq!(std::fs::read(mine.join("letter")).unwrap(), b"dear");
    let copy = Db::open_read_only(copies.path().join("mine"), options()).unwrap();
    assert!(copy.get("key").unwrap().is_some());
    assert_eq!(names(copies.path()).len(), 2);
    for refused in [copies.path().join("mine"), copies.path().join("..")] {
        let error = db.checkpoint(&refused).unwrap_err();
        assert_eq!(
            error.kind(),
            ErrorKind::InvalidArgument,
            "{}",
            refused.display()
        );
    }
}
