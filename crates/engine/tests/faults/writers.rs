//! Goal: acknowledgements to several writers at once hold, whatever fails in whichever stage of their
//! groups. Method: writers on a disk in memory that stops, fills up or fails a sync in the middle.
//! Each write carries the acknowledged count of each writer when it began, so that a hole
//! in the remaining writes shows.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use drumlin::{Db, Env, Health, Options, WriteBatch, WriteOptions};
use drumlin_base::rng::Rng;
use drumlin_fs::{
    CrashPolicy, Fault, FaultFileSystem, FaultRule, FileKind, ManualClock, OpKind,
    StrictMemFileSystem,
};

use crate::support::{DIR, exhaustive, options};

const WRITERS: usize = 4;
const WRITES: u64 = 24;
const FAMILIES: [&str; 2] = ["default", "other"];

/// The results that one writer got.
#[derive(Debug, Default)]
struct Told {
    acknowledged: AtomicU64,
    synced: AtomicU64,
    /// Whether the write after the acknowledged ones failed; else it was not tried.
    failed: AtomicU64,
}

fn key(writer: usize, index: u64) -> String {
    format!("{writer}-{index:04}")
}

/// One writer's life: until a write fails.
fn write(db: &Db, told: &[Told], writer: usize, seed: u64) {
    let mut rng = Rng::new(seed);
    let families: Vec<_> = FAMILIES
        .iter()
        .map(|name| db.column_family(name).expect("made before").id())
        .collect();
    for index in 0..WRITES {
        let mut value = Vec::new();
        for told in told {
            value.extend(told.acknowledged.load(Ordering::Acquire).to_le_bytes());
        }
        // Now and then more than a member leaves to its leader.
        let pad = if rng.one_in(12) {
            40 << 10
        } else {
            rng.below(200)
        };
        value.resize(value.len() + pad as usize, b'.');
        let mut batch = WriteBatch::new();
        for family in &families {
            let put = batch.put_cf(*family, key(writer, index).as_bytes(), &value);
            put.expect("within the limits");
        }
        let sync = rng.one_in(3);
        let how = WriteOptions {
            sync: Some(sync),
            ..WriteOptions::default()
        };
        let own = &told[writer];
        if db.write(batch, &how).is_err() {
            own.failed.store(1, Ordering::Release);
            return;
        }
        own.acknowledged.store(index + 1, Ordering::Release);
        if sync {
            own.synced.store(index + 1, Ordering::Release);
        }
    }
}

fn make(files: &FaultFileSystem, background: usize) -> Options {
    let options = options(Arc::new(files.clone()));
    Options {
        background_threads: Some(background),
        // Nobody sleeps: this does not test how long writers are held back.
        env: Env {
            clock: Arc::new(ManualClock::new(1)),
            ..options.env
        },
        ..options
    }
}

/// Opens a database, arms `rule` and lets the writers go.
fn run(
    files: &FaultFileSystem,
    background: usize,
    seed: u64,
    rule: Option<FaultRule>,
) -> (Db, Vec<Told>) {
    let db = Db::open(DIR, make(files, background)).expect("the disk is well");
    db.create_family(FAMILIES[1], Default::default())
        .expect("the disk is well");
    if let Some(rule) = rule {
        files.add_rule(rule);
    }
    let told: Vec<Told> = (0..WRITERS).map(|_| Told::default()).collect();
    thread::scope(|scope| {
        for writer in 0..WRITERS {
            let (db, told) = (&db, &told);
            scope.spawn(move || write(db, told, writer, seed + writer as u64));
        }
    });
    (db, told)
}

/// The value of a write, which must be in both families or in none.
fn find(db: &Db, place: &str, writer: usize, index: u64) -> Option<Vec<u8>> {
    let found = FAMILIES.map(|name| {
        let family = db.column_family(name)?;
        let found = db.get_cf(&family, key(writer, index), &Default::default());
        let found = found.unwrap_or_else(|error| panic!("{place}: {error}"));
        found.map(|value| value.to_vec())
    });
    let [one, other] = found;
    assert_eq!(one, other, "{place}: half of {writer}-{index}");
    one
}

/// While it is open: acknowledged writes are seen, failed ones are not.
fn check_open(db: &Db, place: &str, told: &[Told]) {
    for (writer, told) in told.iter().enumerate() {
        let acknowledged = told.acknowledged.load(Ordering::Acquire);
        for index in 0..WRITES {
            let seen = find(db, place, writer, index).is_some();
            assert_eq!(
                seen,
                index < acknowledged,
                "{place}: {writer}-{index} of {acknowledged}, {:?}",
                db.health()
            );
        }
    }
}

/// After a crash: every write that `must` survive, and a prefix of all in the order of the log.
fn check_prefix(db: &Db, place: &str, told: &[Told], must: impl Fn(&Told) -> u64) {
    let mut left = [0; WRITERS];
    let mut seen = Vec::new();
    for (writer, told) in told.iter().enumerate() {
        let rows: Vec<_> = (0..WRITES)
            .map(|index| find(db, place, writer, index))
            .collect();
        let count = rows.iter().take_while(|row| row.is_some()).count() as u64;
        let all = rows.iter().flatten().count() as u64;
        assert_eq!(count, all, "{place}: writer {writer} has a hole");
        assert!(count >= must(told), "{place}: writer {writer} lost writes");
        let most = told.acknowledged.load(Ordering::Acquire) + told.failed.load(Ordering::Acquire);
        assert!(count <= most, "{place}: writer {writer} wrote {most}");
        left[writer] = count;
        seen.extend(rows.into_iter().flatten());
    }
    for value in seen {
        for (writer, count) in left.iter().enumerate() {
            let before = value.get(writer * 8..writer * 8 + 8);
            let before = before.and_then(|bytes| bytes.try_into().ok());
            let before = u64::from_le_bytes(before.expect("the value begins with counts"));
            assert!(
                before <= *count,
                "{place}: a write is there without {writer}-{before}, which came before it"
            );
        }
    }
}

fn rounds(few: u64) -> u64 {
    if exhaustive() { few * 20 } else { few }
}

/// The operations a run of the writers takes, about.
fn operations(background: usize) -> u64 {
    let files = FaultFileSystem::over_memory(&StrictMemFileSystem::new());
    let (db, told) = run(&files, background, 1, None);
    check_open(&db, "no fault", &told);
    files.operations()
}

#[test]
fn a_crash_between_writers_leaves_a_prefix_of_what_they_wrote() {
    for background in [0, 2] {
        let operations = operations(background);
        for round in 0..rounds(12) {
            let mut rng = Rng::new(round);
            let memory = StrictMemFileSystem::new();
            let files = FaultFileSystem::over_memory(&memory);
            let index = rng.below(operations);
            let rule = FaultRule::once(index, Fault::Stop);
            let (db, told) = run(&files, background, round, Some(rule));
            drop(db);
            for _ in 0..3 {
                let policy = CrashPolicy::ALL[rng.below(9) as usize];
                let seed = rng.next_u64();
                let place = format!("round {round}, stopped at {index}, {policy:?}, {seed}");
                let disk = memory.crash_image(seed, policy);
                let db = Db::open_all_families(DIR, options(Arc::new(disk)));
                let db = db.unwrap_or_else(|error| panic!("{place}: {error:?}"));
                check_prefix(&db, &place, &told, |told| match policy {
                    CrashPolicy::KeepAll => told.acknowledged.load(Ordering::Acquire),
                    _ => told.synced.load(Ordering::Acquire),
                });
            }
        }
    }
}

/// Runs the writers against `rule`, looks, and reopens on a well disk after a power cut.
fn endure(name: &str, round: u64, background: usize, rule: FaultRule) -> Health {
    let memory = StrictMemFileSystem::new();
    let files = FaultFileSystem::over_memory(&memory);
    let (db, told) = run(&files, background, round, Some(rule));
    let place = format!("{name}, round {round}, {background} threads");
    check_open(&db, &place, &told);
    let health = db.health();
    drop(db);
    let disk = memory.crash_image(round, CrashPolicy::KeepNothing);
    let db = Db::open_all_families(DIR, options(Arc::new(disk)));
    let db = db.unwrap_or_else(|error| panic!("{place}: {error:?}"));
    check_prefix(&db, &place, &told, |told| {
        told.synced.load(Ordering::Acquire)
    });
    health
}

#[test]
fn a_failed_sync_is_seen_by_no_reader_and_poisons() {
    let mut poisoned = 0;
    for round in 0..rounds(12) {
        let rule = FaultRule::once(round * 3, Fault::Io);
        let rule = rule.on(OpKind::Sync).of_kind(FileKind::Wal);
        let health = endure("sync", round, (round % 3) as usize, rule);
        poisoned += u64::from(health == Health::Poisoned);
    }
    assert!(poisoned > 0, "no sync was struck");
}

#[test]
fn a_failed_append_fails_its_group_and_no_other() {
    let mut struck = 0;
    for (round, fault) in (0..rounds(12)).zip([Fault::Io, Fault::TornAppend].iter().cycle()) {
        let rule = FaultRule::once(round * 4, *fault);
        let rule = rule.on(OpKind::Append).of_kind(FileKind::Wal);
        let health = endure("append", round, (round % 3) as usize, rule);
        struck += u64::from(health == Health::Poisoned);
    }
    assert!(struck > 0, "no append was struck");
}

#[test]
fn a_full_disk_stops_the_group_that_meets_it_and_keeps_the_others() {
    for round in 0..rounds(12) {
        let rule = FaultRule::once(round * 4, Fault::NoSpace);
        let rule = rule.on(OpKind::Append).of_kind(FileKind::Wal);
        let health = endure("full", round, (round % 3) as usize, rule);
        assert_ne!(health, Health::Poisoned, "round {round}: a full disk heals");
    }
}
