//! Goal: a process may be killed, or the disk may err, at every operation of making, removing and restoring backups:
//! those that were made before stay whole, what is there is whole, and the next run ends what was begun. Method: a stop,
//! or an error, at every operation on the disk of the backups, which is another one than the store's.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use drumlin::{BackupOptions, Backups, CheckDepth, Db, Env, RestoreOptions, TransferOptions};
use drumlin_fs::{CrashPolicy, Fault, FaultFileSystem, FaultRule, FileSystem, StrictMemFileSystem};

use crate::support::{DIR, Rows, options, rows};

const BACKUPS: &str = "/backups";
const BACK: &str = "/back";

/// A store with some tables, on a disk of its own.
fn store() -> Db {
    let disk = Arc::new(StrictMemFileSystem::new());
    let db = Db::open(DIR, options(disk)).unwrap();
    write(&db, 0);
    db
}

fn write(db: &Db, round: u32) {
    for part in 0..3u32 {
        for key in 0..20u32 {
            let key = (part * 20 + key + round * 30).to_be_bytes();
            db.put(key, format!("{round} {part} ").repeat(9)).unwrap();
        }
        if part < 2 {
            db.flush().unwrap();
        }
    }
}

fn rows_of(db: &Db) -> Rows {
    rows(db, db.default_family()).unwrap()
}

fn backups(files: Arc<dyn FileSystem>) -> Backups {
    Backups::new(BACKUPS, Env::system().with_files(files))
}

/// The synced state of a disk, as a disk of its own.
fn copy(disk: &StrictMemFileSystem) -> StrictMemFileSystem {
    disk.sync_all();
    disk.crash_image(0, CrashPolicy::KeepAll)
}

/// Runs `work` on copies of `disk`, each stopped, or erring, one operation later; hands what a crash leaves to `check`,
/// and whether the work was done.
fn strike_everywhere(
    disk: &StrictMemFileSystem,
    fault: Fault,
    work: impl Fn(Arc<dyn FileSystem>) -> bool,
    check: impl Fn(&StrictMemFileSystem, bool, &str),
) {
    for index in 0.. {
        let memory = copy(disk);
        let files = FaultFileSystem::over_memory(&memory);
        files.add_rule(FaultRule::once(index, fault));
        let done = work(Arc::new(files.clone()));
        let others = CrashPolicy::ALL[index as usize % CrashPolicy::ALL.len()];
        for policy in [CrashPolicy::KeepNothing, CrashPolicy::KeepAll, others] {
            let place = format!("{fault:?} at {index}, {:?}, {policy:?}", files.struck());
            check(&memory.crash_image(index, policy), done, &place);
        }
        if files.injected() == 0 {
            assert!(done && index > 10, "every operation was struck, of {index}");
            break;
        }
    }
}

fn ids(disk: &StrictMemFileSystem) -> Vec<u32> {
    let listed = backups(Arc::new(disk.clone())).list().unwrap();
    listed.iter().map(|backup| backup.id).collect()
}

/// All backups that are listed are whole, to the last byte.
#[track_caller]
fn check_whole(disk: &StrictMemFileSystem, place: &str) {
    let backups = backups(Arc::new(disk.clone()));
    let transfer = TransferOptions::default();
    let check = backups.verify(None, CheckDepth::Checksums, &transfer);
    let damaged = check.unwrap().damaged;
    assert!(damaged.is_empty(), "{place}: {damaged:?}");
    let listed = backups.list().unwrap();
    let damage = listed.iter().find_map(|backup| backup.damage.as_ref());
    assert!(damage.is_none(), "{place}: {damage:?}");
}

#[track_caller]
fn check_restored(disk: &StrictMemFileSystem, id: u32, want: &Rows, place: &str) {
    let backups = backups(Arc::new(disk.clone()));
    let options_of = RestoreOptions {
        replace: true,
        ..RestoreOptions::default()
    };
    backups.restore(Some(id), BACK, &options_of).unwrap();
    let db = Db::open(BACK, options(Arc::new(disk.clone()))).unwrap();
    assert!(rows_of(&db) == *want, "{place}: backup {id}");
}

/// Nothing lies in the directory that no backup has.
#[track_caller]
fn check_no_garbage(disk: &StrictMemFileSystem, place: &str) {
    let names = |dir: &str| -> BTreeSet<String> {
        let names = disk.list(&Path::new(BACKUPS).join(dir)).unwrap();
        let names = names.iter().map(|name| name.to_str().unwrap().to_owned());
        names.collect()
    };
    let mut needed = BTreeSet::new();
    let listed: BTreeSet<String> = ids(disk).iter().map(u32::to_string).collect();
    for id in &listed {
        let path = Path::new(BACKUPS).join("meta").join(id);
        let meta = disk.read_file(&path, 1 << 20).unwrap();
        let meta = String::from_utf8(meta).unwrap();
        let shared = meta
            .lines()
            .filter_map(|line| line.strip_prefix("shared_checksum/"));
        needed.extend(shared.map(|rest| rest.split(' ').next().unwrap().to_owned()));
    }
    assert_eq!(names("shared_checksum"), needed, "{place}");
    assert_eq!(names("private"), listed, "{place}");
    assert_eq!(names("meta"), listed, "{place}");
}

/// A disk with one backup, the store, and what the backup has; the store has gone on.
fn with_one() -> (StrictMemFileSystem, Db, Rows) {
    let (db, disk) = (store(), StrictMemFileSystem::new());
    let first = backups(Arc::new(disk.clone()));
    first.create(&db, &BackupOptions::default()).unwrap();
    let old = rows_of(&db);
    write(&db, 1);
    (disk, db, old)
}

fn make(files: Arc<dyn FileSystem>, db: &Db) -> bool {
    backups(files).create(db, &BackupOptions::default()).is_ok()
}

fn a_backup_is_whole_or_not_there(fault: Fault) {
    let (disk, db, old) = with_one();
    let new = rows_of(&db);
    let work = |files| make(files, &db);
    strike_everywhere(&disk, fault, work, |left, done, place| {
        check_whole(left, place);
        let found = ids(left);
        let whole = found == [1, 2];
        assert!(whole || (!done && found == [1]), "{place}: {found:?}");
        if whole {
            check_restored(left, 2, &new, place);
        }
        let next = *found.last().unwrap() + 1;
        assert!(make(Arc::new(left.clone()), &db), "{place}: the next run");
        assert_eq!(ids(left).last(), Some(&next), "{place}");
        check_whole(left, place);
        check_no_garbage(left, place);
        check_restored(left, next, &new, place);
        check_restored(left, 1, &old, place);
    });
}

#[test]
fn a_backup_is_whole_or_not_there_when_the_machine_stops() {
    a_backup_is_whole_or_not_there(Fault::Stop);
}

#[test]
fn a_backup_is_whole_or_not_there_when_the_disk_errs() {
    a_backup_is_whole_or_not_there(Fault::Io);
}

#[test]
fn a_backup_is_whole_or_not_there_when_the_disk_is_full() {
    a_backup_is_whole_or_not_there(Fault::TornNoSpace);
}

#[test]
fn the_first_backup_may_be_stopped_anywhere() {
    let (db, disk) = (store(), StrictMemFileSystem::new());
    let want = rows_of(&db);
    let work = |files| make(files, &db);
    strike_everywhere(&disk, Fault::Stop, work, |left, done, place| {
        let backups = backups(Arc::new(left.clone()));
        // Before the directory is there, it cannot be listed.
        let there = backups.list().is_ok_and(|listed| !listed.is_empty());
        assert!(there || !done, "{place}");
        assert!(make(Arc::new(left.clone()), &db), "{place}: the next run");
        check_whole(left, place);
        check_no_garbage(left, place);
        check_restored(left, *ids(left).last().unwrap(), &want, place);
    });
}

#[test]
fn backups_are_removed_whole_or_not_at_all() {
    let (disk, db, _) = with_one();
    let new = rows_of(&db);
    assert!(make(Arc::new(disk.clone()), &db));
    for fault in [Fault::Stop, Fault::Io] {
        let work = |files| backups(files).purge(1).is_ok();
        strike_everywhere(&disk, fault, work, |left, done, place| {
            check_whole(left, place);
            let found = ids(left);
            assert!(
                found == [2] || (!done && found == [1, 2]),
                "{place}: {found:?}"
            );
            backups(Arc::new(left.clone())).purge(1).unwrap();
            check_no_garbage(left, place);
            check_restored(left, 2, &new, place);
        });
    }
}

/// What `BACK` holds if it can be opened, which makes a store where none is.
fn opened(disk: &StrictMemFileSystem) -> Option<Rows> {
    let disk = copy(disk);
    let db = Db::open(BACK, options(Arc::new(disk))).ok()?;
    Some(rows_of(&db))
}

#[test]
fn a_restore_that_is_stopped_leaves_the_backup_or_what_was_there_or_no_database() {
    let (disk, db, old) = with_one();
    assert!(make(Arc::new(disk.clone()), &db));
    let new = rows_of(&db);
    check_restored(&disk, 1, &old, "before");
    for fault in [Fault::Stop, Fault::Io] {
        let work = |files| {
            let options = RestoreOptions {
                replace: true,
                ..RestoreOptions::default()
            };
            backups(files).restore(Some(2), BACK, &options).is_ok()
        };
        strike_everywhere(&disk, fault, work, |left, done, place| {
            let found = opened(left);
            let has = |rows: &Rows| found.as_ref() == Some(rows);
            let is_none = found.is_none() && !done;
            assert!(
                has(&new) || (!done && has(&old)) || is_none,
                "{place}: {found:?}"
            );
            check_whole(left, place);
            if found.is_none() {
                // It goes on, unasked.
                let backups = backups(Arc::new(left.clone()));
                backups
                    .restore(Some(2), BACK, &RestoreOptions::default())
                    .unwrap();
                assert!(opened(left).as_ref() == Some(&new), "{place}: the next run");
            }
        });
    }
}
