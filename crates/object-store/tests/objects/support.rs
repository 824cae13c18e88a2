//! A store to back up, and the bucket it goes to.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use drumlin::{
    BackupOptions, Backups, CheckDepth, Db, Env, Options, ReadOptions, RestoreOptions,
    TransferOptions, Tuning,
};
use drumlin_base::rng::Rng;
use drumlin_fs::{Clock, FileSystem, StrictMemFileSystem, SystemClock};
use drumlin_object_store::{Limits, ObjectFileSystem};
use object_store::memory::InMemory;

use crate::faulty::Faulty;

pub(crate) const URL: &str = "s3://bucket/some/place";
/// The same in the store.
pub(crate) const PREFIX: &str = "some/place";
const BACK: &str = "/back";

pub(crate) type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

fn options(disk: Arc<dyn FileSystem>) -> Options {
    Options {
        env: Env::system().with_files(disk),
        memory_budget: Some(32 << 20),
        tuning: Tuning {
            write_buffer_bytes: Some(64 << 10),
            ..Tuning::default()
        },
        ..Options::default()
    }
}

/// A store with some tables, on a disk in memory.
pub(crate) fn store() -> Db {
    let disk = Arc::new(StrictMemFileSystem::new());
    let db = Db::open("/db", options(disk)).unwrap();
    write(&db, 0);
    db
}

/// Two tables more, and some rows that only the log has.
pub(crate) fn write(db: &Db, round: u32) {
    let mut rng = Rng::new(u64::from(round));
    for part in 0..3u32 {
        for key in 0..20u32 {
            let key = (part * 20 + key + round * 30).to_be_bytes();
            let mut value = [0; 90];
            rng.fill(&mut value);
            db.put(key, value).unwrap();
        }
        if part < 2 {
            db.flush().unwrap();
        }
    }
}

pub(crate) fn rows(db: &Db) -> Rows {
    let mut found = Rows::new();
    let mut walk = db.iter(ReadOptions::default());
    walk.seek_to_first();
    while walk.valid() {
        found.insert(walk.key().to_vec(), walk.value().to_vec());
        walk.next();
    }
    walk.status().unwrap();
    found
}

/// The system's clock, some time ahead.
#[derive(Debug)]
pub(crate) struct Ahead(pub(crate) SystemClock, pub(crate) Duration);

impl Clock for Ahead {
    fn monotonic(&self) -> Duration {
        self.0.monotonic()
    }

    fn unix_time(&self) -> Duration {
        self.0.unix_time() + self.1
    }

    fn sleep(&self, duration: Duration) {
        self.0.sleep(duration);
    }
}

/// The bucket as a process sees it that begins when all locks of earlier ones are over.
pub(crate) fn files(store: &Faulty) -> ObjectFileSystem {
    let clock = Arc::new(Ahead(SystemClock::new(), Duration::from_secs(3600)));
    let store = Arc::new(store.clone());
    ObjectFileSystem::over(store, URL, &Limits::default(), clock).unwrap()
}

pub(crate) fn backups_of(files: &ObjectFileSystem) -> Backups {
    let env = Env::system().with_files(Arc::new(files.clone()));
    Backups::new(files.root(), env)
}

pub(crate) fn backups(store: &Faulty) -> Backups {
    backups_of(&files(store))
}

pub(crate) fn make(store: &Faulty, db: &Db) -> drumlin::Result<u32> {
    let created = backups(store).create(db, &BackupOptions::default());
    created.map(|created| created.id)
}

/// A bucket with one backup, the store, and what the backup has; the store has gone on.
pub(crate) fn with_one() -> (Faulty, Db, Rows) {
    let (bucket, db) = (Faulty::new(InMemory::new()), store());
    assert_eq!(make(&bucket, &db).unwrap(), 1);
    let old = rows(&db);
    write(&db, 1);
    (bucket, db, old)
}

/// A database is restored here.
pub(crate) fn to_disk(disk: &Arc<dyn FileSystem>) -> RestoreOptions {
    RestoreOptions {
        files: Some(Arc::clone(disk)),
        replace: true,
        ..RestoreOptions::default()
    }
}

pub(crate) fn disk() -> Arc<dyn FileSystem> {
    Arc::new(StrictMemFileSystem::new())
}

pub(crate) fn restore(bucket: &Faulty, id: u32, disk: &Arc<dyn FileSystem>) -> drumlin::Result<()> {
    backups(bucket).restore(Some(id), BACK, &to_disk(disk))?;
    Ok(())
}

/// What the database has that was restored to `disk`.
pub(crate) fn restored_rows(disk: &Arc<dyn FileSystem>) -> Rows {
    let db = Db::open(BACK, options(Arc::clone(disk))).unwrap();
    rows(&db)
}

#[track_caller]
pub(crate) fn check_restored(bucket: &Faulty, id: u32, want: &Rows, place: &str) {
    let disk = disk();
    restore(bucket, id, &disk).unwrap();
    assert!(restored_rows(&disk) == *want, "{place}: backup {id}");
}

pub(crate) fn ids(bucket: &Faulty) -> Vec<u32> {
    let listed = backups(bucket).list().unwrap();
    listed.iter().map(|backup| backup.id).collect()
}

/// All backups are whole, to the last byte.
#[track_caller]
pub(crate) fn check_whole(bucket: &Faulty, place: &str) {
    let transfer = TransferOptions::default();
    let check = backups(bucket).verify(None, CheckDepth::Checksums, &transfer);
    let damaged = check.unwrap().damaged;
    assert!(damaged.is_empty(), "{place}: {damaged:?}");
    let listed = backups(bucket).list().unwrap();
    let damage = listed.iter().find_map(|backup| backup.damage.as_ref());
    assert!(damage.is_none(), "{place}: {damage:?}");
}
