//! Buckets with other things in them than whole backups of this store.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use drumlin::{BackupOptions, Backups, CheckDepth, Env, ErrorKind, TransferOptions};
use drumlin_fs::{CreateOptions, FileKind, FileSystem};
use object_store::memory::InMemory;

use crate::faulty::Faulty;
use crate::support::*;

fn path(name: &str) -> PathBuf {
    Path::new(URL).join(name)
}

fn put(files: &dyn FileSystem, path: &Path, bytes: &[u8]) {
    let mut file = files
        .create(path, CreateOptions::new(FileKind::Other))
        .unwrap();
    file.append(bytes).unwrap();
    file.sync().unwrap();
    file.close().unwrap();
}

fn a_table(files: &dyn FileSystem) -> PathBuf {
    let mut names = files.list(&path("shared_checksum")).unwrap();
    names.sort();
    path("shared_checksum").join(&names[0])
}

#[test]
fn an_empty_bucket_holds_no_backups_and_stays_empty() {
    let bucket = Faulty::new(InMemory::new());
    for error in [
        backups(&bucket).list().unwrap_err(),
        backups(&bucket).purge(1).unwrap_err(),
        backups(&bucket).delete(1).unwrap_err(),
        restore(&bucket, 1, &disk()).unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::NotFound);
        assert!(error.to_string().contains(URL), "{error}");
    }
    let changes = bucket.take_requests();
    assert!(
        changes.iter().all(|it| it.starts_with("list")),
        "{changes:?}"
    );
}

#[test]
fn databases_and_backups_of_other_stores_are_refused() {
    let (bucket, _, old) = with_one();
    let other = store();
    let error = make(&bucket, &other).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(error.to_string().contains("another store"), "{error}");
    assert_eq!(ids(&bucket), [1]);
    check_restored(&bucket, 1, &old, "after it");
    let bucket = Faulty::new(InMemory::new());
    put(&files(&bucket), &path("CURRENT"), b"MANIFEST-000001\n");
    let error = make(&bucket, &other).unwrap_err();
    assert!(error.to_string().contains("this is a database"), "{error}");
}

#[test]
fn objects_that_are_gone_or_changed_are_told_by_name() {
    let (bucket, db, old) = with_one();
    make(&bucket, &db).unwrap();
    let (files, all) = (files(&bucket), TransferOptions::default());
    let backups = backups(&bucket);
    // The second's alone: a restore of the newest takes the first.
    let own = path("private/2/CURRENT");
    files.remove(&own).unwrap();
    let listed = backups.list().unwrap();
    let damage = listed[1].damage.as_ref().unwrap();
    assert_eq!(
        (damage.file(), listed[0].damage.is_none()),
        (Some(&*own), true)
    );
    let disk = disk();
    let restored = backups.restore(None, "/back", &to_disk(&disk)).unwrap();
    assert_eq!((restored.id, restored_rows(&disk) == old), (1, true));
    // One that both have.
    let table = a_table(&files);
    let whole = files.read_file(&table, 1 << 20).unwrap();
    put(&files, &table, &whole[1..]);
    let checked = backups.verify(Some(1), CheckDepth::Sizes, &all).unwrap();
    assert_eq!(checked.damaged[0].0, table);
    let mut wrong = whole.clone();
    wrong[10] ^= 1;
    put(&files, &table, &wrong);
    let checked = backups
        .verify(Some(1), CheckDepth::Checksums, &all)
        .unwrap();
    assert_eq!(checked.damaged[0].0, table);
    let error = restore(&bucket, 1, &crate::support::disk()).unwrap_err();
    assert_eq!(
        (error.kind(), error.file()),
        (ErrorKind::Corruption, Some(&*table))
    );
    // The next backup writes a table that is missing anew, for all.
    files.remove(&table).unwrap();
    make(&bucket, &db).unwrap();
    assert!(files.read_file(&table, 1 << 20).unwrap() == whole);
    check_restored(&bucket, 1, &old, "mended");
}

#[test]
fn half_a_backup_is_none_and_goes() {
    let (bucket, db, old) = with_one();
    let files = files(&bucket);
    put(&files, &path("private/2/CURRENT"), b"MANIFEST-000001\n");
    put(
        &files,
        &path("shared_checksum/000099_sSOMEBODY_4.sst"),
        b"four",
    );
    put(&files, &path("notes.txt"), b"somebody's");
    assert_eq!(ids(&bucket), [1]);
    check_whole(&bucket, "beside it");
    assert_eq!(make(&bucket, &db).unwrap(), 2);
    check_whole(&bucket, "after it");
    assert!(
        !files
            .exists(&path("shared_checksum/000099_sSOMEBODY_4.sst"))
            .unwrap()
    );
    assert!(files.exists(&path("notes.txt")).unwrap());
    check_restored(&bucket, 1, &old, "after it");
}

#[test]
fn a_directory_uploaded_as_it_is_and_a_bucket_downloaded_as_it_is_are_the_same_backups() {
    let (bucket, db, old) = with_one();
    make(&bucket, &db).unwrap();
    let (files, disk) = (files(&bucket), disk());
    let new = rows(&db);
    copy(&files, Path::new(URL), &*disk, Path::new("/down"));
    let down = Backups::new("/down", Env::system().with_files(Arc::clone(&disk)));
    assert_eq!(down.list().unwrap().len(), 2);
    down.restore(Some(1), "/back", &to_disk(&disk)).unwrap();
    assert!(restored_rows(&disk) == old);
    // Goes on there, and back to another bucket.
    let created = down.create(&db, &BackupOptions::default()).unwrap();
    assert_eq!(created.id, 3);
    let other = Faulty::new(InMemory::new());
    copy(
        &*disk,
        Path::new("/down"),
        &crate::support::files(&other),
        Path::new(URL),
    );
    check_whole(&other, "uploaded");
    check_restored(&other, 3, &new, "uploaded");
    let created = backups(&other)
        .create(&db, &BackupOptions::default())
        .unwrap();
    assert_eq!(
        (created.id, created.files_copied < created.files),
        (4, true)
    );
}

/// Copies a tree.
fn copy(from: &dyn FileSystem, dir: &Path, to: &dyn FileSystem, target: &Path) {
    to.create_dir_all(target).unwrap();
    for (name, info) in from.list_with_infos(dir).unwrap() {
        let (old, new) = (dir.join(&name), target.join(&name));
        match info.is_dir {
            true => copy(from, &old, to, &new),
            false => put(to, &new, &from.read_file(&old, 1 << 20).unwrap()),
        }
    }
}
