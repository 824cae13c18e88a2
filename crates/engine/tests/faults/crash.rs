//! Goal: after any writes and a power failure at any moment, a reopened database holds every synced
//! write and a prefix of whole batches. Method: scripts on the strict disk in memory, stopped at
//! every operation, cut in every way; recovery is cut again.

use std::sync::Arc;

use drumlin::{Db, DirectoryFormat, Options, TableFormat};
use drumlin_base::rng::Rng;
use drumlin_fs::{CrashPolicy, Fault, FaultFileSystem, FaultRule, FileSystem, StrictMemFileSystem};

use crate::support::{
    Demand, History, Op, Script, Step, check, check_files, exhaustive, options, random_ops,
};

fn put(family: &'static str, key: &str, value: &str) -> (&'static str, Op) {
    (family, Op::Put(key.into(), value.into()))
}

fn write(ops: Vec<(&'static str, Op)>, sync: bool) -> Step {
    Step::Write { ops, sync }
}

/// `count` random batches over `families`, one in `sync_one_in` synced.
fn writes(seed: u64, families: &[&'static str], count: u64, sync_one_in: u64) -> Vec<Step> {
    let mut rng = Rng::new(seed);
    let mut steps = Vec::new();
    for _ in 0..count {
        let size = 1 + rng.below(6);
        let ops = random_ops(&mut rng, families, size);
        steps.push(write(ops, rng.one_in(sync_one_in)));
    }
    steps
}

/// Runs `script` with a stop at every operation (or every `stride`th), cuts the power in every way
/// and checks the remaining data.
fn survive(name: &str, script: &Script, make: impl Fn(Arc<dyn FileSystem>) -> Options) {
    let memory = StrictMemFileSystem::new();
    let files = FaultFileSystem::over_memory(&memory);
    let (history, db) = script.run(&make(Arc::new(files.clone())), true);
    assert!(history.errors.is_empty(), "{name}: {:?}", history.errors);
    let db = db.expect("opened");
    check(&db, &history, Demand::Killed).unwrap_or_else(|why| panic!("{name}: {why}"));
    drop(db);
    let operations = files.operations();
    let points = if exhaustive() { operations } else { 120 };
    let stride = (operations / points).max(1);
    for index in (0..operations).step_by(stride as usize) {
        let index = if exhaustive() {
            index
        } else {
            (index + Rng::new(index).below(stride)).min(operations - 1)
        };
        stop_at(name, script, &make, index);
    }
}

fn stop_at(
    name: &str,
    script: &Script,
    make: &impl Fn(Arc<dyn FileSystem>) -> Options,
    index: u64,
) {
    let memory = StrictMemFileSystem::new();
    let files = FaultFileSystem::over_memory(&memory);
    files.add_rule(FaultRule::once(index, Fault::Stop));
    let (history, db) = script.run(&make(Arc::new(files)), true);
    drop(db);
    let mut rng = Rng::new(index);
    for policy in CrashPolicy::ALL {
        let seed = rng.next_u64();
        let place = format!("{name}: stopped at {index}, {policy:?}, seed {seed}");
        let after = memory.crash_image(seed, policy);
        reopen(&place, &after, &history, policy, make);
        if rng.one_in(3) {
            let again = memory.crash_image(seed, policy);
            cut_recovery(&place, &again, &history, policy, make, &mut rng);
        }
    }
}

fn demand(policy: CrashPolicy) -> Demand {
    match policy {
        CrashPolicy::KeepAll => Demand::Killed,
        _ => Demand::PowerCut,
    }
}

fn reopen(
    place: &str,
    disk: &StrictMemFileSystem,
    history: &History,
    policy: CrashPolicy,
    make: &impl Fn(Arc<dyn FileSystem>) -> Options,
) {
    let options = make(Arc::new(disk.clone()));
    let leveldb = options.format == DirectoryFormat::LevelDb;
    let db = Db::open_all_families(crate::support::DIR, options);
    let db = db.unwrap_or_else(|error| panic!("{place}: {error:?}"));
    assert_eq!(db.recovery_report().leveldb, leveldb, "{place}: the format");
    let checked = check(&db, history, demand(policy)).and_then(|()| check_files(&db, disk));
    checked.unwrap_or_else(|why| panic!("{place}: {why}; {:?}", db.recovery_report()));
}

/// Cuts the power in the middle of recovery, once or twice, then recovers.
fn cut_recovery(
    place: &str,
    disk: &StrictMemFileSystem,
    history: &History,
    policy: CrashPolicy,
    make: &impl Fn(Arc<dyn FileSystem>) -> Options,
    rng: &mut Rng,
) {
    let mut disk = disk.clone();
    for _ in 0..2 {
        let files = FaultFileSystem::over_memory(&disk);
        let index = rng.below(60);
        files.add_rule(FaultRule::once(index, Fault::Stop));
        let opened = Db::open_all_families(crate::support::DIR, make(Arc::new(files.clone())));
        drop(opened);
        let (seed, cut) = (rng.next_u64(), rng.below(9) as usize);
        // Data that the first cut kept without a sync must be kept by the second to be demanded.
        let second = match policy {
            CrashPolicy::KeepAll => CrashPolicy::KeepAll,
            _ => CrashPolicy::ALL[cut],
        };
        let place = format!("{place}, recovery stopped at {index}, {second:?}, seed {seed}");
        let after = disk.crash_image(seed, second);
        reopen(&place, &after, history, policy, make);
        disk = disk.crash_image(seed, second);
    }
}

#[test]
fn opening_an_empty_directory_survives() {
    let script = Script {
        steps: vec![Step::Reopen, write(vec![put("default", "k1", "a")], true)],
    };
    survive("open", &script, options);
}

#[test]
fn synced_and_unsynced_writes_survive() {
    let mut steps = writes(1, &["default"], 20, 3);
    steps.push(Step::Reopen);
    steps.extend(writes(2, &["default"], 10, 1000));
    steps.push(Step::SyncWal);
    steps.extend(writes(3, &["default"], 10, 1000));
    survive("writes", &Script { steps }, options);
}

#[test]
fn flushes_and_compactions_survive() {
    let mut steps = Vec::new();
    for round in 0..5 {
        steps.extend(writes(10 + round, &["default"], 30, 10));
        steps.push(Step::Flush);
    }
    steps.push(Step::Wait);
    steps.push(Step::Compact("default"));
    steps.extend(writes(20, &["default"], 10, 10));
    survive("flush", &Script { steps }, options);
}

#[test]
fn plain_tables_survive() {
    let mut steps = Vec::new();
    for round in 0..4 {
        steps.extend(writes(110 + round, &["default"], 20, 10));
        steps.push(Step::Flush);
    }
    steps.push(Step::Compact("default"));
    steps.push(Step::Reopen);
    steps.extend(writes(120, &["default"], 10, 10));
    survive("plain", &Script { steps }, |files| {
        let mut options = options(files);
        options.family.table_format = Some(TableFormat::Plain);
        options
    });
}

#[test]
fn searchable_tables_survive() {
    let mut steps = Vec::new();
    for round in 0..2 {
        steps.extend(writes(130 + round, &["default"], 20, 10));
        steps.push(Step::Compact("default"));
    }
    steps.push(Step::Reopen);
    steps.extend(writes(140, &["default"], 10, 10));
    survive("searchable", &Script { steps }, |files| {
        let mut options = options(files);
        options.family.table_format = Some(TableFormat::Searchable);
        options.family.scope_bytes = Some(2);
        options
    });
}

#[test]
fn several_families_keep_a_common_prefix() {
    let mut steps = vec![Step::Create("one"), Step::Create("two")];
    let all = ["default", "one", "two"];
    for round in 0..3 {
        steps.extend(writes(30 + round, &all, 15, 12));
        steps.push(Step::FlushFamily("one"));
        steps.push(Step::FlushFamily("two"));
        steps.extend(writes(40 + round, &all, 6, 100));
        steps.push(Step::FlushFamily("default"));
        steps.push(Step::FlushFamily("one"));
        steps.extend(writes(50 + round, &["default", "one"], 4, 100));
    }
    steps.push(Step::Wait);
    survive("families", &Script { steps }, options);
}

#[test]
fn creating_and_dropping_families_survives() {
    let mut steps = Vec::new();
    for (round, name) in (0..3).zip(["a", "b", "c"]) {
        steps.push(Step::Create(name));
        steps.extend(writes(60 + round, &["default", name], 8, 4));
        if round == 1 {
            steps.push(Step::Flush);
        }
        steps.push(Step::Drop(name));
        steps.extend(writes(70 + round, &["default"], 4, 4));
    }
    steps.push(Step::Create("two"));
    steps.extend(writes(80, &["default", "two"], 8, 8));
    steps.push(Step::Reopen);
    steps.extend(writes(81, &["default", "two"], 8, 8));
    survive("drop", &Script { steps }, options);
}

#[test]
fn many_wal_files_survive() {
    let mut steps = vec![Step::Create("one")];
    for round in 0..8 {
        // Values so large that a few batches fill a memtable.
        let large = "v".repeat(3000);
        let key = format!("k{round}");
        for _ in 0..4 {
            steps.push(write(
                vec![put("default", &key, &large), put("one", "k", "small")],
                false,
            ));
        }
        if round == 4 {
            steps.push(write(vec![put("one", "synced", "yes")], true));
        }
    }
    steps.push(Step::Wait);
    steps.extend(writes(90, &["default", "one"], 5, 100));
    survive("wals", &Script { steps }, |files| {
        let mut options = options(files);
        options.tuning.memtables_max = 6;
        options
    });
}

#[test]
fn wal_files_in_another_directory_survive() {
    let mut steps = vec![Step::Create("one")];
    steps.extend(writes(100, &["default", "one"], 20, 8));
    steps.push(Step::FlushFamily("one"));
    steps.extend(writes(101, &["default", "one"], 10, 8));
    steps.push(Step::Reopen);
    steps.extend(writes(102, &["default", "one"], 10, 8));
    survive("wal_dir", &Script { steps }, |files| Options {
        wal_dir: Some("/wal".into()),
        ..options(files)
    });
}

#[test]
fn a_leveldb_directory_survives() {
    let mut steps = Vec::new();
    for round in 0..30u32 {
        let large = "v".repeat(if round % 3 == 0 { 3000 } else { 50 });
        let key = format!("k{:02}", round % 7);
        let delete = (
            "default",
            Op::Delete(format!("k{:02}", round % 5).into_bytes()),
        );
        steps.push(write(
            vec![delete, put("default", &key, &large)],
            round % 9 == 8,
        ));
        if round == 20 {
            steps.push(Step::Flush);
            steps.push(Step::Compact("default"));
        }
    }
    steps.push(Step::Reopen);
    steps.push(write(vec![put("default", "k1", "last")], true));
    survive("leveldb", &Script { steps }, |files| {
        let mut options = Options {
            format: DirectoryFormat::LevelDb,
            ..options(files)
        };
        options.tuning.memtables_max = 6;
        options.family.merge_operator = None;
        options
    });
}
