//! Goal: an error of the disk is reported, loses nothing that was acknowledged and never gives wrong
//! data; a full disk stops writes, not reads, and heals by itself. Method: scripts with a fault at
//! every operation once, or from there on; and single faults at chosen places.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use drumlin::{Db, Env, ErrorKind, EventListener, Health, Options, ReadOptions, WriteOptions};
use drumlin_base::rng::Rng;
use drumlin_fs::{
    Fault, FaultFileSystem, FaultRule, FileKind, FileSystem, OpKind, StrictMemFileSystem,
};

use crate::support::{
    DIR, Demand, Script, Step, check, check_files, exhaustive, options, random_ops,
};

fn faulty() -> (StrictMemFileSystem, FaultFileSystem) {
    let memory = StrictMemFileSystem::new();
    let files = FaultFileSystem::over_memory(&memory);
    (memory, files)
}

/// Counts the failures a listener hears of.
#[derive(Default)]
struct Heard {
    failures: AtomicU64,
}

impl EventListener for Heard {
    fn background_failed(&self, _error: &drumlin::Error) {
        self.failures.fetch_add(1, Ordering::Relaxed);
    }
}

fn script(seed: u64) -> Script {
    let mut rng = Rng::new(seed);
    let mut steps = vec![Step::Create("one")];
    for round in 0..4 {
        for _ in 0..8 {
            let ops = random_ops(&mut rng, &["default", "one"], 4);
            let sync = rng.one_in(4);
            steps.push(Step::Write { ops, sync });
        }
        match round {
            0 => steps.push(Step::FlushFamily("one")),
            1 => steps.push(Step::Flush),
            2 => steps.push(Step::Reopen),
            _ => {}
        }
    }
    steps.push(Step::Flush);
    steps.push(Step::Compact("default"));
    steps.push(Step::Wait);
    Script { steps }
}

/// Runs the script with `rule(index)` for every index, and checks the readable keys then and after
/// reopening on a healthy disk.
fn endure(name: &str, rule: impl Fn(u64) -> FaultRule) {
    let script = script(1);
    let (_, files) = faulty();
    let (history, db) = script.run(&options(Arc::new(files.clone())), false);
    assert!(history.errors.is_empty(), "{:?}", history.errors);
    drop(db);
    let operations = files.operations();
    let stride = if exhaustive() {
        1
    } else {
        (operations / 150).max(1)
    };
    for index in (0..operations).step_by(stride as usize) {
        let index = (index + Rng::new(index).below(stride)).min(operations - 1);
        endure_one(&format!("{name} at {index}"), &script, rule(index));
    }
}

fn endure_one(place: &str, script: &Script, rule: FaultRule) {
    let (memory, files) = faulty();
    let heard = Arc::new(Heard::default());
    let options_ = Options {
        listener: Some(Arc::clone(&heard) as _),
        ..options(Arc::new(files.clone()))
    };
    files.record_history();
    files.add_rule(rule);
    let (history, db) = script.run(&options_, false);
    let injected = files.injected();
    let failed = heard.failures.load(Ordering::Relaxed);
    files.clear_rules();
    if let Some(db) = &db {
        let told = !history.errors.is_empty() || failed > 0;
        let ops = files.history();
        let struck = place
            .rsplit(' ')
            .next()
            .and_then(|n| n.parse::<usize>().ok());
        let struck = struck.and_then(|index| match place.starts_with("once") {
            true => ops.get(index).cloned(),
            false => {
                let mut changes = ops.iter().filter(|(op, _)| op.changes_disk());
                changes.nth(index).cloned()
            }
        });
        // The name of a table, one of two, is guessed again from the other; and removing an
        // obsolete file does not need its size.
        let guess = struck.as_ref().is_some_and(|(op, path)| {
            let removed = (OpKind::Remove, path.clone());
            let is_table = path.extension().is_some_and(|e| e == "sst");
            *op == OpKind::Info && (is_table || ops.contains(&removed))
        });
        assert!(
            injected == 0 || told || guess,
            "{place}: swallowed; {struck:?}"
        );
        check(db, &history, Demand::Errors)
            .unwrap_or_else(|why| panic!("{place}, still open: {why}; {:?}", history.errors));
    }
    drop(db);
    let db = Db::open_all_families(DIR, options(Arc::new(memory.clone())))
        .unwrap_or_else(|error| panic!("{place}: reopening: {error:?}; {:?}", history.errors));
    check(&db, &history, Demand::Errors)
        .and_then(|()| check_files(&db, &memory))
        .unwrap_or_else(|why| panic!("{place}, reopened: {why}; {:?}", history.errors));
}

#[test]
fn one_error_at_every_operation_loses_nothing() {
    endure("once", |index| FaultRule::once(index, Fault::Io));
}

#[test]
fn errors_from_an_operation_on_lose_nothing() {
    endure("from", |index| {
        FaultRule::from(index, Fault::Io).on_changes()
    });
}

#[test]
fn a_full_disk_at_every_operation_loses_nothing() {
    endure("full", |index| {
        FaultRule::once(index, Fault::NoSpace).on_changes()
    });
}

#[test]
fn a_torn_append_at_every_operation_loses_nothing() {
    endure("torn", |index| {
        FaultRule::once(index, Fault::TornAppend).on(OpKind::Append)
    });
}

fn put(db: &Db, key: &str, sync: bool) -> drumlin::Result<()> {
    let options = WriteOptions {
        sync: Some(sync),
        ..WriteOptions::default()
    };
    db.put_cf(db.default_family(), key, key, &options)
}

fn has(db: &Db, key: &str) -> bool {
    db.get(key).expect("reads go on").is_some()
}

#[test]
fn a_failed_wal_sync_poisons_and_loses_nothing_acknowledged() {
    let (memory, files) = faulty();
    let db = Db::open(DIR, options(Arc::new(files.clone()))).unwrap();
    put(&db, "synced", true).unwrap();
    put(&db, "written", false).unwrap();
    files.add_rule(
        FaultRule::once(0, Fault::Io)
            .on(OpKind::Sync)
            .of_kind(FileKind::Wal),
    );
    assert_eq!(put(&db, "failed", true).unwrap_err().kind(), ErrorKind::Io);
    assert_eq!(db.health(), Health::Poisoned);
    assert!(has(&db, "synced") && has(&db, "written") && !has(&db, "failed"));

    // Nothing is tried again, for any caller.
    files.record_history();
    assert_eq!(
        put(&db, "later", true).unwrap_err().kind(),
        ErrorKind::Poisoned
    );
    assert_eq!(db.sync_wal().unwrap_err().kind(), ErrorKind::Poisoned);
    assert_eq!(db.flush().unwrap_err().kind(), ErrorKind::Poisoned);
    let made = db.create_family("f", Default::default());
    assert_eq!(made.unwrap_err().kind(), ErrorKind::Poisoned);
    let changes: Vec<_> = files.history();
    let changes: Vec<_> = changes.iter().filter(|(op, _)| op.changes_disk()).collect();
    assert!(changes.is_empty(), "{changes:?}");
    assert!(has(&db, "synced") && !has(&db, "later"));
    drop(db);

    let db = Db::open(DIR, options(Arc::new(memory))).unwrap();
    assert!(has(&db, "synced") && has(&db, "written") && !has(&db, "later"));
    put(&db, "after", true).unwrap();
}

/// Fills the disk for `kind` only, tries `act`, frees space, and expects all to be well.
fn heals(kind: FileKind, act: impl Fn(&Db) -> drumlin::Result<()>) {
    let (memory, files) = faulty();
    let db = Db::open(DIR, options(Arc::new(files.clone()))).unwrap();
    for index in 0..40 {
        put(&db, &format!("k{index}"), index % 5 == 0).unwrap();
    }
    db.flush().unwrap();
    put(&db, "k40", true).unwrap();
    // Operations that free space or leave it as it is go on.
    let full = FaultRule::always(Fault::NoSpace).of_kind(kind);
    files.add_rule(full.on(OpKind::Create).on(OpKind::Reuse).on(OpKind::Append));
    let error = act(&db).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NoSpace, "{error:?}");
    assert!(db.health() < Health::Poisoned, "{:?}", db.health());
    assert!((0..=40).all(|index| has(&db, &format!("k{index}"))));
    let mut iter = db.iter(ReadOptions::default());
    iter.seek_to_first();
    assert!(iter.valid());
    drop(iter);

    files.clear_rules();
    put(&db, "healed", true).unwrap();
    act(&db).unwrap();
    put(&db, "healed again", true).unwrap();
    db.flush().unwrap();
    db.compact_range(db.default_family(), None, None).unwrap();
    assert_eq!(db.health(), Health::Healthy);
    assert!((0..=40).all(|index| has(&db, &format!("k{index}"))));
    db.close().unwrap();
    let after = memory.crash(3, drumlin_fs::CrashPolicy::KeepNothing);
    let db = Db::open_all_families(DIR, options(Arc::new(after.clone()))).unwrap();
    assert!((0..=40).all(|index| has(&db, &format!("k{index}"))));
    assert!(has(&db, "healed") && has(&db, "healed again"));
    check_files(&db, &after).unwrap();
}

#[test]
fn a_disk_full_for_the_wal_heals() {
    heals(FileKind::Wal, |db| put(db, "w", false));
    heals(FileKind::Wal, |db| put(db, "w", true));
}

#[test]
fn a_disk_full_for_tables_heals() {
    heals(FileKind::Table, |db| {
        put(db, "f", false)?;
        db.flush()
    });
    heals(FileKind::Table, |db| {
        db.compact_range(db.default_family(), None, None)
    });
}

#[test]
fn a_disk_full_for_the_manifest_heals() {
    heals(FileKind::Manifest, |db| {
        put(db, "f", false)?;
        db.flush()
    });
    heals(FileKind::Manifest, |db| {
        if let Some(family) = db.column_family("f") {
            return db.drop_family(&family);
        }
        db.create_family("f", Default::default()).map(drop)
    });
}

#[test]
fn a_full_quota_stops_writes_and_heals() {
    let memory = StrictMemFileSystem::new();
    let db = Db::open(DIR, options(Arc::new(memory.clone()))).unwrap();
    let mut acked = Vec::new();
    for round in 0..3 {
        memory.set_quota(memory.used_bytes() + 3000);
        let mut refused = 0;
        for index in 0..2000 {
            let key = format!("k{round}-{index:05}-{}", "x".repeat(100));
            match put(&db, &key, index % 7 == 0) {
                Ok(()) => acked.push(key),
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::NoSpace, "{error:?}");
                    refused += 1;
                    if refused > 20 {
                        break;
                    }
                }
            }
        }
        assert!(refused > 0);
        assert!(acked.iter().all(|key| has(&db, key)));
        memory.set_quota(u64::MAX);
        let key = format!("healed{round}");
        put(&db, &key, true).unwrap();
        acked.push(key);
    }
    db.flush().unwrap();
    db.wait_for_background().unwrap();
    assert_eq!(db.health(), Health::Healthy);
    drop(db);
    let after = memory.crash(5, drumlin_fs::CrashPolicy::KeepNothing);
    let db = Db::open(DIR, options(Arc::new(after))).unwrap();
    assert!(acked.iter().all(|key| has(&db, key)));
}

/// Writes `count` keys and brings them into tables; how to read them from there, past the cache.
fn in_tables(db: &Db, count: usize) -> ReadOptions {
    for index in 0..count {
        put(db, &format!("k{index:04}"), false).unwrap();
    }
    db.flush().unwrap();
    db.compact_range(db.default_family(), None, None).unwrap();
    ReadOptions {
        fill_cache: false,
        ..ReadOptions::default()
    }
}

#[test]
fn an_error_in_a_read_is_told_and_changes_nothing() {
    let (_, files) = faulty();
    let mut options = options(Arc::new(files.clone()));
    options.memory_budget = Some(1 << 20);
    let db = Db::open(DIR, options).unwrap();
    let read = in_tables(&db, 400);
    files.add_rule(FaultRule::always(Fault::Io).on(OpKind::Read));
    let mut errors = 0;
    for index in (0..400).step_by(20) {
        let key = format!("k{index:04}");
        match db.get_cf(db.default_family(), &key, &read) {
            Ok(found) => assert_eq!(found.as_deref(), Some(key.as_bytes())),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Io);
                errors += 1;
            }
        }
    }
    let mut iter = db.iter(read.clone());
    iter.seek_to_first();
    while iter.valid() {
        iter.next();
    }
    let told = iter.status();
    assert!(errors > 0 || told.is_err(), "nothing was read");
    assert_eq!(db.health(), Health::Healthy);
    files.clear_rules();
    for index in 0..400 {
        let key = format!("k{index:04}");
        let found = db.get_cf(db.default_family(), &key, &read).unwrap();
        assert_eq!(found.as_deref(), Some(key.as_bytes()));
    }
    iter.seek_to_first();
    let mut count = 0;
    while iter.valid() {
        count += 1;
        iter.next();
    }
    iter.status().unwrap();
    assert_eq!(count, 400);
}

/// Reads every key of a database of tables while `rule(index)` strikes, for every index until none
/// is struck any more; a read must be right or fail, and right once the disk is well.
fn odd_reads(name: &str, rule: impl Fn(u64) -> FaultRule, told: ErrorKind) {
    let (_, files) = faulty();
    let mut options = options(Arc::new(files.clone()));
    options.max_open_files = Some(2);
    let db = Db::open(DIR, options).unwrap();
    let read = in_tables(&db, 300);
    for index in 0..40 {
        files.add_rule(rule(index));
        for key in (0..300).step_by(13) {
            let key = format!("k{key:04}");
            match db.get_cf(db.default_family(), &key, &read) {
                Ok(found) => assert_eq!(found.as_deref(), Some(key.as_bytes()), "{name} {index}"),
                Err(error) => assert_eq!(error.kind(), told, "{name} {index}: {error:?}"),
            }
        }
        let mut iter = db.iter(read.clone());
        iter.seek_to_first();
        let mut count = 0;
        while iter.valid() {
            assert_eq!(
                iter.key(),
                format!("k{count:04}").as_bytes(),
                "{name} {index}"
            );
            count += 1;
            iter.next();
        }
        match iter.status() {
            Ok(()) => assert_eq!(count, 300, "{name} {index}"),
            Err(error) => assert_eq!(error.kind(), told, "{name} {index}: {error:?}"),
        }
        files.clear_rules();
    }
    assert_eq!(db.health(), Health::Healthy);
    assert!((0..300).all(|index| has(&db, &format!("k{index:04}"))));
}

#[test]
fn too_many_open_files_are_told_or_made_good() {
    odd_reads(
        "once",
        |index| FaultRule::once(index, Fault::TooManyFiles).on(OpKind::Open),
        ErrorKind::Io,
    );
    odd_reads(
        "always",
        |_| FaultRule::always(Fault::TooManyFiles).on(OpKind::Open),
        ErrorKind::Io,
    );
}

#[test]
fn wrong_and_short_reads_never_give_wrong_data() {
    odd_reads(
        "flipped",
        |index| FaultRule::once(index, Fault::FlippedBit).on(OpKind::Read),
        ErrorKind::Corruption,
    );
    odd_reads(
        "flipped always",
        |_| FaultRule::always(Fault::FlippedBit).on(OpKind::Read),
        ErrorKind::Corruption,
    );
    odd_reads(
        "short",
        |index| FaultRule::once(index, Fault::ShortRead).on(OpKind::Read),
        ErrorKind::Corruption,
    );
}

#[test]
fn a_failed_open_changes_nothing_a_good_one_needs() {
    let memory = StrictMemFileSystem::new();
    let make = |files: Arc<dyn FileSystem>| Options {
        env: Env::system().with_files(files).with_seed(9),
        ..options(Arc::new(StrictMemFileSystem::new()))
    };
    let db = Db::open(DIR, make(Arc::new(memory.clone()))).unwrap();
    for index in 0..30 {
        put(&db, &format!("k{index}"), index % 3 == 0).unwrap();
    }
    drop(db);
    memory.sync_all();
    for index in 0.. {
        let disk = memory.crash_image(index, drumlin_fs::CrashPolicy::KeepAll);
        let files = FaultFileSystem::over_memory(&disk);
        files.add_rule(FaultRule::from(index, Fault::Io));
        let opened = Db::open(DIR, make(Arc::new(files.clone())));
        let done = opened.is_ok() && files.injected() == 0;
        drop(opened);
        let db = Db::open(DIR, make(Arc::new(disk.clone()))).unwrap();
        assert!(
            (0..30).all(|index| has(&db, &format!("k{index}"))),
            "{index}"
        );
        check_files(&db, &disk).unwrap();
        if done {
            break;
        }
    }
}
