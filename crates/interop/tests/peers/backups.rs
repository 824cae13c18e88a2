//! Goal: a directory of backups belongs to RocksDB as much as to us: either lists, verifies, restores, adds to and purges
//! what the other made. Method: backups by RocksDB 7.8's library and by `ldb`, and by us, of directories that change
//! hands too; rows compared after each restore. The same by way of a bucket.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use drumlin::{
    BackupOptions, Backups, CheckDepth, Db, Env, FamilyOptions, Options, RestoreOptions,
    TransferOptions, WriteOptions,
};
use drumlin_fs::{CreateOptions, FileKind, FileSystem, SystemClock};
use drumlin_interop::*;
use drumlin_object_store::{Limits, ObjectFileSystem};
use drumlin_testkit::temp_dir;

const NEW: &str = "create_if_missing=true";

fn fill(db: &Db, generation: usize) {
    for (at, (key, value)) in numbered(2000, generation).into_iter().enumerate() {
        db.put(key, value).unwrap();
        if at % 700 == 699 {
            db.flush().unwrap();
        }
    }
}

fn fill_theirs(db: &Rocks, generation: usize) {
    for (key, value) in numbered(2000, generation) {
        db.put("default", &key, &value);
    }
}

fn backups(dir: &Path) -> Backups {
    Backups::new(dir, Env::system())
}

fn create(backups: &Backups, db: &Db) -> u32 {
    backups.create(db, &BackupOptions::default()).unwrap().id
}

/// Names below the directory of shared files.
fn shared(dir: &Path) -> BTreeSet<String> {
    let names = Env::system().files.list(&dir.join("shared_checksum"));
    let names = names.unwrap().into_iter();
    names
        .map(|name| name.to_str().unwrap().to_owned())
        .collect()
}

#[track_caller]
fn check_theirs_in(dir: &Path, want: &Rows, what: &str) {
    assert_rows(what, &ldb_scan(dir, "default"), want);
}

/// We find all backups whole, to the last byte.
#[track_caller]
fn check_whole(backups: &Backups, count: usize) {
    let transfer = TransferOptions::default();
    let check = backups.verify(None, CheckDepth::Checksums, &transfer);
    let check = check.unwrap();
    assert!(check.damaged.is_empty(), "{:?}", check.damaged);
    let listed = backups.list().unwrap();
    assert!(listed.iter().all(|backup| backup.damage.is_none()));
    assert_eq!(listed.len(), count);
}

#[test]
fn rocksdb_restores_what_we_backed_up() {
    let dir = temp_dir();
    let (store, place) = (dir.path().join("db"), dir.path().join("backups"));
    let db = Db::open(&store, small()).unwrap();
    let ours = backups(&place);
    for generation in 0..3 {
        fill(&db, generation);
        // A part that only the WAL has.
        db.put(b"generation", generation.to_string()).unwrap();
        create(&ours, &db);
    }
    let theirs = RocksBackups::open(&place);
    let listed = theirs.list();
    let wanted: Vec<RocksBackup> = ours
        .list()
        .unwrap()
        .iter()
        .map(|backup| RocksBackup {
            id: backup.id,
            unix_seconds: backup.unix_seconds as i64,
            bytes: backup.bytes,
            files: backup.files as u32,
        })
        .collect();
    assert_eq!(listed, wanted);
    for generation in 0..3usize {
        let id = generation as u32 + 1;
        theirs.verify(id).unwrap();
        let mut want = numbered(2000, generation);
        want.push((b"generation".to_vec(), generation.to_string().into_bytes()));
        want.sort();
        let target = dir.path().join(format!("theirs-{id}"));
        theirs.restore(id, &target).unwrap();
        check_theirs_in(&target, &want, "restored by the library");
        check_ours_in(&target, &want, "restored by the library")
            .close()
            .unwrap();
        let target = dir.path().join(format!("ours-{id}"));
        let to = RestoreOptions::default();
        ours.restore(Some(id), &target, &to).unwrap();
        check_theirs_in(&target, &want, "restored by us");
    }
    let target = dir.path().join("by-ldb");
    let from = format!("--backup_dir={}", place.display());
    ldb(&target, &["restore", &from]).ok();
    assert_eq!(ldb(&target, &["get", "generation"]).ok().trim(), "2");
}

#[test]
fn what_rocksdb_backed_up_we_restore() {
    let dir = temp_dir();
    let (store, place) = (dir.path().join("db"), dir.path().join("backups"));
    let db = Rocks::open_default(&store, NEW).unwrap();
    let theirs = RocksBackups::open(&place);
    fill_theirs(&db, 0);
    db.flush("default");
    theirs.create(&db);
    fill_theirs(&db, 1);
    theirs.create(&db);
    let listed = theirs.list();
    drop((theirs, db));
    let from = format!("--backup_dir={}", place.display());
    ldb(&store, &["put", "by", "ldb"]).ok();
    ldb(&store, &["backup", &from]).ok();
    let ours = backups(&place);
    check_whole(&ours, 3);
    let infos = ours.list().unwrap();
    for (theirs, ours) in listed.iter().zip(&infos) {
        let unix_seconds = i64::try_from(ours.unix_seconds).unwrap();
        assert_eq!((theirs.id, theirs.unix_seconds), (ours.id, unix_seconds));
        let files = u32::try_from(ours.files).unwrap();
        assert_eq!((theirs.bytes, theirs.files), (ours.bytes, files));
    }
    for (id, generation) in [(1, 0), (2, 1)] {
        let target = dir.path().join(format!("ours-{id}"));
        ours.restore(Some(id), &target, &RestoreOptions::default())
            .unwrap();
        let want = numbered(2000, generation);
        check_theirs_in(&target, &want, "RocksDB, restored by us");
        check_ours_in(&target, &want, "restored by us")
            .close()
            .unwrap();
    }
    let target = dir.path().join("newest");
    ours.restore(None, &target, &RestoreOptions::default())
        .unwrap();
    assert_eq!(ldb(&target, &["get", "by"]).ok().trim(), "ldb");
}

#[test]
fn both_add_to_one_directory_and_share_its_tables() {
    let dir = temp_dir();
    let (store, place) = (dir.path().join("db"), dir.path().join("backups"));
    let db = Rocks::open_default(&store, NEW).unwrap();
    fill_theirs(&db, 0);
    db.flush("default");
    let theirs = RocksBackups::open(&place);
    theirs.create(&db);
    drop((theirs, db));
    let first = shared(&place);
    assert!(!first.is_empty());
    // Opening makes a table of what the WAL has, which is nothing.
    let db = Db::open(&store, small()).unwrap();
    let ours = backups(&place);
    assert_eq!(create(&ours, &db), 2);
    assert_eq!(shared(&place), first, "no table was copied");
    fill(&db, 1);
    db.compact_range(db.default_family(), None, None).unwrap();
    assert_eq!(create(&ours, &db), 3);
    let third = shared(&place);
    db.close().unwrap();
    let db = Rocks::open_default(&store, "disable_auto_compactions=true").unwrap();
    let theirs = RocksBackups::open(&place);
    assert_eq!(theirs.list().len(), 3);
    theirs.create(&db);
    assert_eq!(shared(&place), third, "no table was copied");
    for id in 1..=4 {
        theirs.verify(id).unwrap();
    }
    theirs.purge(2);
    drop((theirs, db));
    check_whole(&ours, 2);
    assert_eq!(ours.purge(1).unwrap().ids, [3]);
    let theirs = RocksBackups::open(&place);
    assert_eq!(
        theirs.list().iter().map(|it| it.id).collect::<Vec<_>>(),
        [4]
    );
    let target = dir.path().join("last");
    theirs.restore(4, &target).unwrap();
    check_ours_in(&target, &numbered(2000, 1), "the last")
        .close()
        .unwrap();
}

#[test]
fn families_and_blobs_go_both_ways() {
    let dir = temp_dir();
    let (store, place) = (dir.path().join("db"), dir.path().join("backups"));
    let mut options: Options = small();
    options.tuning.blob_from_bytes = Some(60);
    let db = Db::open(&store, options.clone()).unwrap();
    fill(&db, 0);
    let family = db.create_family("more", FamilyOptions::default()).unwrap();
    db.put_cf(&family, "key", "x".repeat(500), &WriteOptions::default())
        .unwrap();
    db.flush_cf(&family).unwrap();
    let ours = backups(&place);
    create(&ours, &db);
    assert!(shared(&place).iter().any(|name| name.ends_with(".blob")));
    let theirs = RocksBackups::open(&place);
    theirs.verify(1).unwrap();
    let target = dir.path().join("theirs");
    theirs.restore(1, &target).unwrap();
    let want = numbered(2000, 0);
    check_theirs_in(&target, &want, "restored by the library");
    assert_rows(
        "the family",
        &ldb_scan(&target, "more"),
        &vec![(b"key".to_vec(), vec![b'x'; 500])],
    );
    // And back: RocksDB backs up what it restored, into a directory of its own.
    let again = dir.path().join("again");
    let families = [("default", "enable_blob_files=true"), ("more", "")];
    let db = Rocks::open(&target, "", &families).unwrap();
    let theirs = RocksBackups::open(&again);
    theirs.create(&db);
    drop((theirs, db));
    let ours = backups(&again);
    check_whole(&ours, 1);
    let target = dir.path().join("ours");
    ours.restore(None, &target, &RestoreOptions::default())
        .unwrap();
    check_ours_in(&target, &want, "RocksDB's, restored by us")
        .close()
        .unwrap();
}

#[test]
fn damage_that_we_see_rocksdb_sees_and_the_other_way_about() {
    let dir = temp_dir();
    let (store, place) = (dir.path().join("db"), dir.path().join("backups"));
    let db = Db::open(&store, small()).unwrap();
    fill(&db, 0);
    let ours = backups(&place);
    create(&ours, &db);
    create(&ours, &db);
    let files = Env::system().files;
    // The second's own CURRENT is gone, and the first lacks nothing.
    files.remove(&place.join("private/2/CURRENT")).unwrap();
    let theirs = RocksBackups::open(&place);
    assert_eq!(
        theirs.list().iter().map(|it| it.id).collect::<Vec<_>>(),
        [1]
    );
    let listed = ours.list().unwrap();
    assert!(listed[0].damage.is_none() && listed[1].damage.is_some());
    drop(theirs);
    let table = shared(&place).into_iter().next().unwrap();
    let table = place.join("shared_checksum").join(table);
    let size = files.info(&table).unwrap().size;
    files.truncate(&table, size - 1).unwrap();
    let target = dir.path().join("target");
    let theirs = RocksBackups::open(&place);
    theirs.restore(1, &target).unwrap_err();
    let target = dir.path().join("other");
    ours.restore(Some(1), &target, &RestoreOptions::default())
        .unwrap_err();
    assert!(!files.exists(&target).unwrap());
}

/// Copies a tree as any tool would, file by file.
fn copy(from: &dyn FileSystem, dir: &Path, to: &dyn FileSystem, target: &Path) {
    to.create_dir_all(target).unwrap();
    for (name, info) in from.list_with_infos(dir).unwrap() {
        let (old, new) = (dir.join(&name), target.join(&name));
        if info.is_dir {
            copy(from, &old, to, &new);
            continue;
        }
        let options = CreateOptions::new(FileKind::Other);
        let mut file = to.create(&new, options).unwrap();
        file.append(&from.read_file(&old, 1 << 30).unwrap())
            .unwrap();
        file.close().unwrap();
    }
}

#[test]
fn a_bucket_has_the_same_backups_as_a_directory() {
    let dir = temp_dir();
    let (store, place) = (dir.path().join("db"), dir.path().join("theirs"));
    let disk = Env::system().files;
    let bucket = ObjectFileSystem::over(
        Arc::new(object_store::memory::InMemory::new()),
        "s3://bucket/backups",
        &Limits::default(),
        Arc::new(SystemClock::new()),
    )
    .unwrap();
    let ours = Backups::new(
        bucket.root(),
        Env::system().with_files(Arc::new(bucket.clone())),
    );
    let to_disk = RestoreOptions {
        files: Some(Arc::clone(&disk)),
        ..RestoreOptions::default()
    };
    // Theirs, uploaded as it is.
    let db = Rocks::open_default(&store, NEW).unwrap();
    fill_theirs(&db, 0);
    RocksBackups::open(&place).create(&db);
    drop(db);
    copy(&*disk, &place, &bucket, bucket.root());
    check_whole(&ours, 1);
    let target = dir.path().join("ours");
    ours.restore(None, &target, &to_disk).unwrap();
    let db = check_ours_in(&target, &numbered(2000, 0), "restored from the bucket");
    // Ours is added, and all of it downloaded as it is.
    fill(&db, 1);
    assert_eq!(create(&ours, &db), 2);
    db.close().unwrap();
    let down = dir.path().join("down");
    copy(&bucket, bucket.root(), &*disk, &down);
    let theirs = RocksBackups::open(&down);
    for (id, generation) in [(1, 0), (2, 1)] {
        theirs.verify(id).unwrap();
        let target = dir.path().join(format!("theirs-{id}"));
        theirs.restore(id, &target).unwrap();
        let want = numbered(2000, generation);
        check_theirs_in(&target, &want, "downloaded, restored by the library");
    }
}
