//! Goal: a backup is the store of one moment, made without copying twice what is the same, found whole or named as
//! damaged, and brought back where nothing is lost by it. Method: stores on a disk in memory, compared row by row with
//! what was there when each backup was made; damage done to the files of backups.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use drumlin::{
    BackupOptions, Backups, CancelToken, CheckDepth, Db, DirectoryFormat, Env, ErrorKind,
    FamilyOptions, Options, RateLimit, ReadOptions, RestoreOptions, TableFormat, TransferOptions,
    Tuning, WriteOptions,
};
use drumlin_base::rng::Rng;
use drumlin_fs::{
    Clock, FaultFileSystem, FileSystem, ManualClock, Observer, OpKind, StrictMemFileSystem,
};

const DB: &str = "/db";
const DIR: &str = "/backups";
const BACK: &str = "/back";

/// No files.
const NONE: [PathBuf; 0] = [];
/// How many are made, unless `DRUMLIN_BACKUP_GENERATIONS` says otherwise.
const GENERATIONS: u32 = 120;

type Rows = BTreeMap<(String, Vec<u8>), Vec<u8>>;

fn env(files: &StrictMemFileSystem) -> Env {
    Env::system().with_files(Arc::new(files.clone()))
}

fn options(env: Env) -> Options {
    Options {
        env,
        memory_budget: Some(32 << 20),
        tuning: Tuning {
            write_buffer_bytes: Some(64 << 10),
            target_file_bytes: 16 << 10,
            level_base_bytes: Some(32 << 10),
            ..Tuning::default()
        },
        ..Options::default()
    }
}

/// A disk, a store of several tables on it, and its backups beside it.
fn made() -> (StrictMemFileSystem, Db, Backups) {
    let disk = StrictMemFileSystem::new();
    let db = Db::open(DB, options(env(&disk))).unwrap();
    fill(&db, 0);
    let backups = Backups::new(DIR, env(&disk));
    (disk, db, backups)
}

/// Tables, and a few writes that only the WAL has.
fn fill(db: &Db, round: u32) {
    let mut rng = Rng::new(u64::from(round));
    for key in 0..300u32 {
        // Bytes that do not compress, so that there are several tables.
        let mut value = [0; 250];
        rng.fill(&mut value);
        db.put(key.to_be_bytes(), value).unwrap();
        if key % 100 == 99 {
            db.flush().unwrap();
        }
    }
    db.compact_range(db.default_family(), None, None).unwrap();
    for key in 300..310u32 {
        db.put(key.to_be_bytes(), format!("{round} in the log"))
            .unwrap();
    }
}

fn rows(db: &Db) -> Rows {
    let mut found = Rows::new();
    for family in db.families() {
        let mut walk = db.iter_cf(&family, ReadOptions::default());
        walk.seek_to_first();
        while walk.valid() {
            let key = (family.name().to_owned(), walk.key().to_vec());
            found.insert(key, walk.value().to_vec());
            walk.next();
        }
        walk.status().unwrap();
    }
    found
}

#[track_caller]
fn check_restored(backups: &Backups, id: u32, disk: &StrictMemFileSystem, want: &Rows) {
    let to = RestoreOptions {
        replace: true,
        ..RestoreOptions::default()
    };
    let restored = backups.restore(Some(id), BACK, &to).unwrap();
    assert_eq!(restored.id, id);
    let db = Db::open_all_families(BACK, options(env(disk))).unwrap();
    assert!(rows(&db) == *want, "backup {id} restored");
    db.close().unwrap();
}

fn list(disk: &StrictMemFileSystem, dir: &str) -> Vec<PathBuf> {
    let mut names = disk.list(Path::new(dir)).unwrap();
    names.sort();
    names
}

fn shared(disk: &StrictMemFileSystem) -> Vec<PathBuf> {
    list(disk, "/backups/shared_checksum")
}

fn a_table(disk: &StrictMemFileSystem) -> PathBuf {
    let tables = shared(disk).into_iter();
    let mut tables = tables.filter(|name| name.extension().is_some_and(|it| it == "sst"));
    Path::new("/backups/shared_checksum").join(tables.next().unwrap())
}

fn kind<T: std::fmt::Debug>(outcome: drumlin::Result<T>) -> ErrorKind {
    outcome.unwrap_err().kind()
}

fn plain() -> BackupOptions {
    BackupOptions::default()
}

fn make(backups: &Backups, db: &Db) -> u32 {
    backups.create(db, &plain()).unwrap().id
}

/// The damaged files that a check finds.
fn damaged(backups: &Backups, depth: CheckDepth) -> Vec<PathBuf> {
    let check = backups.verify(None, depth, &TransferOptions::default());
    let damaged = check.unwrap().damaged.into_iter();
    damaged.map(|(path, _)| path).collect()
}

#[test]
fn a_backup_of_an_unchanged_store_copies_no_table() {
    let (disk, db, backups) = made();
    let first = backups.create(&db, &plain()).unwrap();
    let tables = shared(&disk);
    assert!(tables.len() > 3, "{tables:?}");
    assert_eq!(first.files_copied, first.files);
    let own = list(&disk, "/backups/private/1").len() as u64;
    assert_eq!(first.files, own + tables.len() as u64);
    let second = backups.create(&db, &plain()).unwrap();
    assert_eq!((first.id, second.id), (1, 2));
    assert_eq!((second.files, second.files_copied), (first.files, own));
    assert_eq!(shared(&disk), tables);
    let want = rows(&db);
    fill(&db, 1);
    make(&backups, &db);
    check_restored(&backups, 2, &disk, &want);
    check_restored(&backups, 3, &disk, &rows(&db));
}

#[test]
fn every_generation_comes_back_as_it_was_through_purges_and_deletions() {
    let (disk, db, backups) = made();
    let mut rng = Rng::new(20);
    let mut kept: BTreeMap<u32, Rows> = BTreeMap::new();
    let generations = std::env::var("DRUMLIN_BACKUP_GENERATIONS");
    let generations = generations.map_or(GENERATIONS, |text| text.parse().unwrap());
    for generation in 0..generations {
        for _ in 0..rng.below(40) {
            let key = (rng.below(400) as u32).to_be_bytes();
            match rng.one_in(4) {
                true => db.delete(key).unwrap(),
                false => db.put(key, format!("{generation} ").repeat(50)).unwrap(),
            }
        }
        if rng.one_in(5) {
            db.compact_range(db.default_family(), None, None).unwrap();
        }
        kept.insert(make(&backups, &db), rows(&db));
        if rng.one_in(6) {
            let keep = rng.below(8) as usize;
            backups.purge(keep).unwrap();
            while kept.len() > keep {
                kept.pop_first();
            }
        }
        if rng.one_in(4) && !kept.is_empty() {
            let ids: Vec<u32> = kept.keys().copied().collect();
            let id = ids[rng.below(ids.len() as u64) as usize];
            backups.delete(id).unwrap();
            kept.remove(&id);
        }
        let listed = backups.list().unwrap();
        assert!(listed.iter().all(|backup| backup.damage.is_none()));
        let ids: Vec<u32> = listed.iter().map(|backup| backup.id).collect();
        assert_eq!(ids, kept.keys().copied().collect::<Vec<_>>());
        let back = kept
            .iter()
            .nth(rng.below(kept.len().max(1) as u64) as usize);
        if let Some((&id, want)) = back {
            check_restored(&backups, id, &disk, want);
        }
    }
    assert_eq!(damaged(&backups, CheckDepth::Checksums), NONE);
    backups.purge(0).unwrap();
    assert_eq!(shared(&disk), NONE, "nothing is left");
    assert_eq!(list(&disk, "/backups/private").len(), 0);
}

#[test]
fn families_blobs_models_and_the_log_come_back() {
    let disk = StrictMemFileSystem::new();
    let mut options = options(env(&disk));
    options.wal_dir = Some("/log".into());
    options.tuning.blob_from_bytes = Some(100);
    options.tuning.shared_model_from_bytes = 0;
    let db = Db::open(DB, options).unwrap();
    let blobs = FamilyOptions::default();
    let searchable = FamilyOptions {
        table_format: Some(TableFormat::Searchable),
        ..FamilyOptions::default()
    };
    let writes = WriteOptions::default();
    for (name, options, repeats) in [("blobs", blobs, 8), ("searchable", searchable, 2)] {
        let family = db.create_family(name, options).unwrap();
        for key in 0..2000u32 {
            let value = format!("the value of {name} number {key} ").repeat(repeats);
            db.put_cf(&family, format!("{key:08}"), value, &writes)
                .unwrap();
        }
        db.flush_cf(&family).unwrap();
        db.compact_range(&family, None, None).unwrap();
        db.put_cf(&family, "in the log", "as well", &writes)
            .unwrap();
    }
    let backups = Backups::new(DIR, env(&disk));
    make(&backups, &db);
    let second = backups.create(&db, &plain()).unwrap();
    let own = list(&disk, "/backups/private/2").len() as u64;
    assert_eq!(second.files_copied, own, "neither blobs nor models again");
    let has = |extension: &str| {
        let is = |name: &PathBuf| name.extension().is_some_and(|it| it == extension);
        shared(&disk).iter().any(is)
    };
    assert!(
        has("sst") && has("blob") && has("model"),
        "{:?}",
        shared(&disk)
    );
    check_restored(&backups, 2, &disk, &rows(&db));
    let elsewhere = RestoreOptions {
        wal_dir: Some("/elsewhere".into()),
        ..RestoreOptions::default()
    };
    backups.restore(None, "/apart", &elsewhere).unwrap();
    let is_log = |name: &PathBuf| name.extension().is_some_and(|it| it == "log");
    assert!(list(&disk, "/elsewhere").iter().all(is_log));
    assert!(!list(&disk, "/elsewhere").is_empty());
    assert!(!list(&disk, "/apart").iter().any(is_log));
}

#[test]
fn a_leveldb_directory_comes_back_as_one() {
    let disk = StrictMemFileSystem::new();
    let mut options = options(env(&disk));
    options.format = DirectoryFormat::LevelDb;
    let db = Db::open(DB, options).unwrap();
    fill(&db, 0);
    let backups = Backups::new(DIR, env(&disk));
    make(&backups, &db);
    check_restored(&backups, 1, &disk, &rows(&db));
}

/// What is done with a store.
type Act = (Db, fn(Db));

/// Does something at the first file that is made among the shared ones.
struct AtFirstTable(Mutex<Option<Act>>);

impl std::fmt::Debug for AtFirstTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("AtFirstTable")
    }
}

impl Observer for AtFirstTable {
    fn before(&self, op: OpKind, path: &Path) {
        if op != OpKind::Create || !path.starts_with("/backups/shared_checksum") {
            return;
        }
        if let Some((db, act)) = self.0.lock().unwrap().take() {
            act(db);
        }
    }
}

/// Backups on the disk, of which the first table has `act` done with the store.
fn acting(disk: &StrictMemFileSystem, db: &Db, act: fn(Db)) -> Backups {
    let files = FaultFileSystem::over_memory(disk);
    let at = AtFirstTable(Mutex::new(Some((db.clone(), act))));
    files.set_observer(Some(Arc::new(at)));
    Backups::new(DIR, Env::system().with_files(Arc::new(files)))
}

#[test]
fn a_backup_is_of_one_moment_while_writes_and_compactions_go_on() {
    let (disk, db, backups) = made();
    let want = rows(&db);
    let busy = acting(&disk, &db, |db| {
        fill(&db, 9);
        db.delete(7u32.to_be_bytes()).unwrap();
    });
    make(&busy, &db);
    assert!(rows(&db) != want, "it was written to meanwhile");
    check_restored(&backups, 1, &disk, &want);
}

#[test]
fn a_reader_beside_the_writer_makes_backups_too() {
    let (disk, db, backups) = made();
    let reader = Db::open_read_only(DB, options(env(&disk))).unwrap();
    let want = rows(&reader);
    make(&backups, &reader);
    db.put("later", "value").unwrap();
    check_restored(&backups, 1, &disk, &want);
}

#[test]
fn an_interrupted_backup_is_not_there_and_the_next_run_goes_on() {
    let (disk, db, backups) = made();
    let cancel = CancelToken::new();
    let whole = backups.create(&db, &plain()).unwrap();
    backups.delete(1).unwrap();
    let (token, seen) = (cancel.clone(), whole.bytes / 2);
    let transfer = TransferOptions {
        cancel: Some(cancel),
        progress: Some(Arc::new(move |progress| {
            if progress.bytes > seen {
                token.cancel();
            }
        })),
        ..TransferOptions::default()
    };
    let interrupted = BackupOptions {
        transfer,
        ..plain()
    };
    assert_eq!(kind(backups.create(&db, &interrupted)), ErrorKind::Aborted);
    assert!(backups.list().unwrap().is_empty());
    let left = shared(&disk);
    assert!(!left.is_empty());
    let next = backups.create(&db, &plain()).unwrap();
    assert_eq!(next.files_copied + left.len() as u64, next.files);
    check_restored(&backups, next.id, &disk, &rows(&db));
}

#[test]
fn what_an_interrupted_run_left_is_not_taken_unseen() {
    let (disk, db, backups) = made();
    make(&backups, &db);
    let table = a_table(&disk);
    disk.remove(Path::new("/backups/meta/1")).unwrap();
    disk.flip(&table, 100, 3).unwrap();
    let next = backups.create(&db, &plain()).unwrap();
    let own = list(&disk, "/backups/private/1").len() as u64;
    assert_eq!(
        next.files_copied,
        own + 1,
        "all others are taken as they are"
    );
    assert_eq!(damaged(&backups, CheckDepth::Checksums), NONE);
}

#[test]
fn a_store_that_is_closed_meanwhile_ends_its_backup() {
    let (disk, db, backups) = made();
    let closing = acting(&disk, &db, |db| db.close().unwrap());
    assert_eq!(kind(closing.create(&db, &plain())), ErrorKind::Shutdown);
    assert!(backups.list().unwrap().is_empty());
}

#[test]
fn no_more_is_read_in_a_second_than_was_asked_for() {
    let (disk, db, _) = made();
    let clock = ManualClock::new(0);
    let mut env = env(&disk);
    env.clock = Arc::new(clock.clone());
    let backups = Backups::new(DIR, env);
    let limited = |rate| TransferOptions {
        rate: RateLimit::Fixed(rate),
        ..TransferOptions::default()
    };
    let options = BackupOptions {
        transfer: limited(10_000),
        ..plain()
    };
    let created = backups.create(&db, &options).unwrap();
    let least = Duration::from_millis(created.bytes / 10 - 200);
    assert!(
        clock.monotonic() > least,
        "{:?} of {least:?}",
        clock.monotonic()
    );
    let begin = clock.monotonic();
    let check = backups
        .verify(None, CheckDepth::Checksums, &limited(1000))
        .unwrap();
    assert_eq!(check.bytes_read, created.bytes);
    assert!(clock.monotonic() - begin > least * 9);
}

#[test]
fn damage_is_found_and_the_newest_whole_backup_is_restored() {
    let (disk, db, backups) = made();
    make(&backups, &db);
    let want = rows(&db);
    let old = shared(&disk);
    fill(&db, 1);
    make(&backups, &db);
    let new = shared(&disk)
        .into_iter()
        .find(|name| !old.contains(name))
        .unwrap();
    let new = Path::new("/backups/shared_checksum").join(new);
    disk.flip(&new, 77, 1).unwrap();
    assert_eq!(damaged(&backups, CheckDepth::Sizes), NONE);
    assert_eq!(damaged(&backups, CheckDepth::Checksums), [&*new]);
    assert_eq!(
        kind(backups.restore(Some(2), "/half", &RestoreOptions::default())),
        ErrorKind::Corruption
    );
    let opened = Db::open("/half", options(env(&disk)));
    assert!(opened.unwrap_err().to_string().contains("restore it again"));
    disk.flip(&new, 77, 1).unwrap();
    // Goes on in the same directory, unasked.
    backups
        .restore(Some(2), "/half", &RestoreOptions::default())
        .unwrap();
    let own = PathBuf::from("/backups/private/2/CURRENT");
    disk.flip(&own, 3, 1).unwrap();
    assert_eq!(damaged(&backups, CheckDepth::Sizes), [own]);
    let size = disk.info(&new).unwrap().size;
    disk.resize(&new, size - 1).unwrap();
    assert!(damaged(&backups, CheckDepth::Sizes).contains(&new));
    let listed = backups.list().unwrap();
    assert!(listed[0].damage.is_none());
    let damage = listed[1].damage.as_ref().unwrap();
    assert_eq!(damage.file(), Some(&*new));
    assert_eq!(
        backups
            .restore(None, "/older", &RestoreOptions::default())
            .unwrap()
            .id,
        1
    );
    assert_eq!(
        kind(backups.restore(Some(2), "/never", &RestoreOptions::default())),
        ErrorKind::Corruption
    );
    assert!(
        !disk.exists(Path::new("/never")).unwrap(),
        "it was refused at once"
    );
    check_restored(&backups, 1, &disk, &want);
    // The next backup mends what it needs.
    let third = backups.create(&db, &plain()).unwrap();
    check_restored(&backups, third.id, &disk, &rows(&db));
    disk.remove(&new).unwrap();
    assert!(
        backups.list().unwrap()[2]
            .damage
            .as_ref()
            .unwrap()
            .to_string()
            .contains("missing")
    );
    make(&backups, &db);
    assert!(backups.list().unwrap()[2].damage.is_none());
}

#[test]
fn files_that_a_damaged_meta_file_may_need_stay() {
    let (disk, db, backups) = made();
    make(&backups, &db);
    let first = shared(&disk);
    fill(&db, 1);
    make(&backups, &db);
    disk.overwrite(Path::new("/backups/meta/1"), 0, b"x")
        .unwrap();
    let listed = backups.list().unwrap();
    assert!(
        listed[0]
            .damage
            .as_ref()
            .unwrap()
            .to_string()
            .contains("meta file")
    );
    let meta = PathBuf::from("/backups/meta/1");
    assert_eq!(damaged(&backups, CheckDepth::Sizes), [meta]);
    let removed = backups.delete(2).unwrap();
    assert!(removed.kept_for_damaged);
    assert!(first.iter().all(|name| shared(&disk).contains(name)));
    let removed = backups.delete(1).unwrap();
    assert!(!removed.kept_for_damaged && removed.files > 0);
    assert!(shared(&disk).is_empty());
}

#[test]
fn files_of_others_stay_in_the_directory_of_backups() {
    let (disk, db, backups) = made();
    make(&backups, &db);
    let others = [
        "/backups/README",
        "/backups/shared_checksum/README",
        "/backups/meta/notes",
    ];
    for path in others {
        let options = drumlin_fs::CreateOptions::new(drumlin_fs::FileKind::Other);
        disk.create(Path::new(path), options).unwrap();
    }
    backups.purge(0).unwrap();
    for path in others {
        assert!(disk.exists(Path::new(path)).unwrap(), "{path}");
    }
}

#[test]
fn a_database_in_the_way_is_replaced_only_when_that_is_asked_for() {
    let (disk, db, backups) = made();
    make(&backups, &db);
    let plain = RestoreOptions::default();
    let replace = RestoreOptions {
        replace: true,
        ..RestoreOptions::default()
    };
    assert_eq!(kind(backups.restore(None, DB, &replace)), ErrorKind::Locked);
    let want = rows(&db);
    db.close().unwrap();
    assert_eq!(
        kind(backups.restore(None, DB, &plain)),
        ErrorKind::InvalidArgument
    );
    assert_eq!(
        kind(backups.restore(None, DIR, &replace)),
        ErrorKind::InvalidArgument
    );
    let other = Db::open("/other", options(env(&disk))).unwrap();
    other.put("foreign", "row").unwrap();
    other.close().unwrap();
    assert_eq!(
        kind(backups.restore(None, "/other", &plain)),
        ErrorKind::InvalidArgument
    );
    let other = Db::open("/other", options(env(&disk))).unwrap();
    assert_eq!(other.get("foreign").unwrap().as_deref(), Some(&b"row"[..]));
    other.close().unwrap();
    backups.restore(None, "/other", &replace).unwrap();
    let other = Db::open("/other", options(env(&disk))).unwrap();
    assert!(rows(&other) == want);
    other.close().unwrap();
    // Tables that are there with the right bytes are not copied again.
    let db = Db::open(DB, options(env(&disk))).unwrap();
    db.put("lost", "row").unwrap();
    db.close().unwrap();
    let restored = backups.restore(None, DB, &replace).unwrap();
    assert!(
        restored.files_kept as usize >= shared(&disk).len(),
        "{restored:?}"
    );
    assert!(rows(&Db::open(DB, options(env(&disk))).unwrap()) == want);
}

#[test]
fn a_directory_has_the_backups_of_one_store() {
    let (disk, db, backups) = made();
    make(&backups, &db);
    let other = Db::open("/other", options(env(&disk))).unwrap();
    let error = backups.create(&other, &plain()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(error.to_string().contains("another store"), "{error}");
    assert_eq!(backups.list().unwrap().len(), 1);
    assert_eq!(
        kind(Backups::new(DB, env(&disk)).create(&other, &plain())),
        ErrorKind::InvalidArgument
    );
    // A store that was restored goes on.
    backups
        .restore(None, BACK, &RestoreOptions::default())
        .unwrap();
    let back = Db::open(BACK, options(env(&disk))).unwrap();
    fill(&back, 2);
    assert_eq!(make(&backups, &back), 2);
    check_restored(&backups, 2, &disk, &{
        let rows = rows(&back);
        back.close().unwrap();
        rows
    });
}

#[test]
fn what_is_not_there_is_said_so() {
    let (disk, db, backups) = made();
    for outcome in [
        backups.list().map(|_| ()),
        backups.purge(1).map(|_| ()),
        backups.delete(1).map(|_| ()),
        backups
            .restore(None, BACK, &RestoreOptions::default())
            .map(|_| ()),
    ] {
        assert_eq!(kind(outcome), ErrorKind::NotFound);
    }
    assert!(
        !disk.exists(Path::new(DIR)).unwrap(),
        "nothing was made by asking"
    );
    make(&backups, &db);
    make(&backups, &db);
    let error = backups
        .restore(Some(7), BACK, &RestoreOptions::default())
        .unwrap_err();
    assert!(
        error
            .to_string()
            .contains("there is no backup 7; there are: 1, 2"),
        "{error}"
    );
    assert_eq!(
        kind(backups.verify(Some(7), CheckDepth::Sizes, &TransferOptions::default())),
        ErrorKind::NotFound
    );
    assert_eq!(kind(backups.delete(7)), ErrorKind::NotFound);
    let note = BackupOptions {
        note: vec![0; (1 << 20) + 1],
        ..plain()
    };
    assert_eq!(kind(backups.create(&db, &note)), ErrorKind::InvalidArgument);
    let note = BackupOptions {
        note: b"before\nthe move".to_vec(),
        ..plain()
    };
    backups.create(&db, &note).unwrap();
    assert_eq!(backups.list().unwrap()[2].note, note.note);
}

#[test]
fn a_second_writer_of_the_directory_is_refused() {
    let (disk, db, backups) = made();
    make(&backups, &db);
    let _held = disk.lock(Path::new("/backups/LOCK")).unwrap();
    assert_eq!(kind(backups.create(&db, &plain())), ErrorKind::Locked);
    assert_eq!(kind(backups.purge(0)), ErrorKind::Locked);
    assert_eq!(backups.list().unwrap().len(), 1);
}

#[test]
fn a_full_disk_leaves_the_old_backups_whole() {
    let (_, db, _) = made();
    let disk = StrictMemFileSystem::new();
    let backups = Backups::new(DIR, env(&disk));
    make(&backups, &db);
    let want = rows(&db);
    fill(&db, 1);
    disk.set_quota(disk.used_bytes() + 20_000);
    assert_eq!(kind(backups.create(&db, &plain())), ErrorKind::NoSpace);
    assert_eq!(backups.list().unwrap().len(), 1);
    assert_eq!(damaged(&backups, CheckDepth::Checksums), NONE);
    disk.set_quota(u64::MAX);
    check_restored(&backups, 1, &disk, &want);
    make(&backups, &db);
    check_restored(&backups, 2, &disk, &rows(&db));
}

#[test]
fn a_backup_that_leaves_out_files_is_listed_and_not_restored() {
    let (disk, db, backups) = made();
    let asked = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::clone(&asked);
    let partial = BackupOptions {
        leaves_out: Some(Arc::new(move |path: &str| {
            let mut told = told.lock().unwrap();
            told.push(path.to_owned());
            told.len() == 1
        })),
        ..plain()
    };
    let first = backups.create(&db, &partial).unwrap();
    let paths = asked.lock().unwrap().clone();
    assert!(paths.len() > 1, "{paths:?}");
    assert_eq!(shared(&disk).len(), paths.len() - 1);
    let infos = backups.list().unwrap();
    assert_eq!(infos[0].left_out, paths[..1]);
    assert_eq!(infos[0].files, first.files);
    let refused = backups.restore(Some(1), BACK, &RestoreOptions::default());
    assert_eq!(kind(refused), ErrorKind::NotSupported);
    // The next one has all files, asks of those alone that are not there, and is the newest whole one.
    asked.lock().unwrap().clear();
    asked
        .lock()
        .unwrap()
        .push("the first is left out".to_owned());
    let whole = backups.create(&db, &partial).unwrap();
    assert_eq!(asked.lock().unwrap()[1..], paths[..1]);
    assert_eq!(shared(&disk).len(), paths.len());
    check_restored(&backups, whole.id, &disk, &rows(&db));
    asked.lock().unwrap().clear();
    fill(&db, 1);
    backups.create(&db, &partial).unwrap();
    let newest = backups.restore(None, "/newest", &RestoreOptions::default());
    assert_eq!(newest.unwrap().id, whole.id);
    // They count as those that are whole.
    backups.purge(1).unwrap();
    let left: Vec<u32> = backups.list().unwrap().iter().map(|it| it.id).collect();
    assert_eq!(left, [3]);
}
