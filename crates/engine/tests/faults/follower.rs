//! Goal: a follower equals its primary at every moment that it shows, over flushes, compactions, new WAL files and
//! MANIFESTs, families that come and go, tables taken in, two-phase commit, and primaries that close, are killed at any
//! file operation and open again. Method: random scripts by seed on files in memory; followers that catch up now and then
//! are compared with the primary at the same sequence number.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use drumlin::{
    Db, Env, FollowOptions, Follower, Options, ReadOptions, Result, SstFileWriter,
    TableWriterOptions, WriteOptions,
};
use drumlin_base::rng::Rng;
use drumlin_fs::{
    Fault, FaultFileSystem, FaultRule, FileSystem, Observer, OpKind, StrictMemFileSystem,
};

use crate::changes::{Run, options};
use crate::copy::{contents, family_options, try_contents};
use crate::support::{DIR, exhaustive, rows};

const STEPS: usize = 80;

/// Of the primary of `seed`: every second one keeps its changes.
fn options_of(files: &Arc<dyn FileSystem>, seed: u64) -> Options {
    let options = options(Arc::clone(files));
    Options {
        keep_changes: options.keep_changes.filter(|_| seed.is_multiple_of(2)),
        ..options
    }
}

fn follow(files: &StrictMemFileSystem, seed: u64) -> Follower {
    follow_by(Arc::new(files.clone()), seed)
}

fn follow_by(files: Arc<dyn FileSystem>, seed: u64) -> Follower {
    let options = options_of(&files, seed);
    let on_demand = FollowOptions { interval: None };
    Db::open_follower(DIR, options, on_demand).expect("the primary can be followed")
}

/// Catches up, and compares with what the primary has.
///
/// # Errors
/// Of the primary's reads.
fn compare(follower: &Follower, primary: &Db, place: &str) -> Result<()> {
    let lag = match follower.catch_up() {
        Ok(lag) => lag,
        Err(error) => panic!("{place}: {error:?}"),
    };
    assert_eq!(lag.seqno, primary.latest_seqno(), "{place}");
    let expected = try_contents(primary)?;
    assert_eq!(contents(follower.db()), expected, "{place}");
    Ok(())
}

/// Runs a script of `seed` over `files` with a follower of `memory` below it; another one follows from its middle. The
/// first error ends it.
fn run(
    files: &Arc<dyn FileSystem>,
    memory: &StrictMemFileSystem,
    seed: u64,
    followers: &mut Vec<Follower>,
) -> Result<()> {
    let mut rng = Rng::new(seed ^ 0xf011);
    let mut run = Run::open_with(options_of(files, seed), seed)?;
    for step in 0..STEPS {
        if step == 0 || step == STEPS / 2 {
            followers.push(follow(memory, seed));
        }
        run.step()?;
        for (at, follower) in followers.iter().enumerate() {
            if rng.one_in(3) {
                let place = format!("seed {seed}, step {step}, follower {at}");
                compare(follower, &run.db, &place)?;
            }
        }
        if step % 23 == 22 {
            let Run { db, rng, .. } = run;
            db.close()?;
            run = Run::open_with(options_of(files, seed), seed + step as u64)?;
            run.rng = rng;
        }
    }
    run.db.close()
}

#[test]
fn a_follower_equals_its_primary_whatever_that_does() {
    for seed in 0..if exhaustive() { 1000 } else { 60 } {
        let memory = StrictMemFileSystem::new();
        let files: Arc<dyn FileSystem> = Arc::new(memory.clone());
        run(&files, &memory, seed, &mut Vec::new()).expect("without faults it runs");
    }
}

#[test]
fn a_follower_goes_on_where_its_primary_is_killed_and_opens_again() {
    for seed in 0..if exhaustive() { 20 } else { 2 } {
        let memory = StrictMemFileSystem::new();
        let counted = FaultFileSystem::over_memory(&memory);
        let files: Arc<dyn FileSystem> = Arc::new(counted.clone());
        run(&files, &memory, seed, &mut Vec::new()).expect("without faults it runs");
        let step = if exhaustive() { 1 } else { 7 };
        for index in (seed % step..counted.operations()).step_by(step as usize) {
            kill_at(seed, index);
        }
    }
}

/// The primary ends at the operation `index`; what it wrote stays. The next one goes on with the same files.
fn kill_at(seed: u64, index: u64) {
    let memory = StrictMemFileSystem::new();
    let stopped = FaultFileSystem::over_memory(&memory);
    stopped.add_rule(FaultRule::once(index, Fault::Stop));
    let files: Arc<dyn FileSystem> = Arc::new(stopped);
    let mut followers = Vec::new();
    if run(&files, &memory, seed, &mut followers).is_ok() || followers.is_empty() {
        return;
    }
    let place = format!("seed {seed}, killed at {index}");
    let files: Arc<dyn FileSystem> = Arc::new(memory.clone());
    let mut later = Run::open_with(options_of(&files, seed), seed ^ 0x5eed)
        .unwrap_or_else(|error| panic!("{place}: {error:?}"));
    for step in 0..12 {
        for follower in &followers {
            compare(follower, &later.db, &format!("{place}, step {step}"))
                .expect("the primary can be read");
        }
        later
            .step()
            .unwrap_or_else(|error| panic!("{place}, later: {error:?}"));
    }
}

/// Has the primary do something once, before the so manieth operation of a reader.
#[derive(Debug)]
struct ActsAt {
    left: Mutex<u64>,
    primary: Db,
    act: fn(&Db),
}

impl ActsAt {
    fn new(operation: u64, primary: &Db, act: fn(&Db)) -> Arc<Self> {
        Arc::new(Self {
            left: Mutex::new(operation),
            primary: primary.clone(),
            act,
        })
    }

    fn has_acted(&self) -> bool {
        *self.left.lock().unwrap() == 0
    }
}

impl Observer for ActsAt {
    fn before(&self, _: OpKind, _: &Path) {
        let mut left = self.left.lock().unwrap();
        let Some(fewer) = left.checked_sub(1) else {
            return;
        };
        *left = fewer;
        if fewer == 0 {
            (self.act)(&self.primary);
        }
    }
}

#[test]
fn a_family_may_go_while_a_reader_opens() {
    for index in 1.. {
        let memory = StrictMemFileSystem::new();
        let files: Arc<dyn FileSystem> = Arc::new(memory.clone());
        let primary = Db::open(DIR, options_of(&files, 0)).unwrap();
        primary.put("kept", "1").unwrap();
        let gone = primary.create_family("gone", family_options()).unwrap();
        let default = WriteOptions::default();
        primary.put_cf(&gone, "key", "2", &default).unwrap();
        let watched = FaultFileSystem::over_memory(&memory);
        let drops = ActsAt::new(index, &primary, |db| {
            let family = db.column_family("gone").unwrap();
            db.drop_family(&family).unwrap();
        });
        watched.set_observer(Some(Arc::clone(&drops) as _));
        let files: Arc<dyn FileSystem> = Arc::new(watched.clone());
        let reader = Db::open_read_only(DIR, options_of(&files, 0));
        let reader = reader.unwrap_or_else(|error| panic!("operation {index}: {error:?}"));
        watched.set_observer(None);
        assert_eq!(reader.get("kept").unwrap().as_deref(), Some(&b"1"[..]));
        if !drops.has_acted() {
            assert!(index > 10, "a reader does more than {index} operations");
            return;
        }
    }
}

/// Opened beside it, a reader that has a write has what came before that write, be it a table that was taken in or a family.
#[test]
fn a_reader_that_opens_has_what_came_before_the_last_write() {
    for index in 1.. {
        let memory = StrictMemFileSystem::new();
        let files: Arc<dyn FileSystem> = Arc::new(memory.clone());
        let options = options_of(&files, 0);
        let path = Path::new("/taken.sst");
        let mut table =
            SstFileWriter::create(&options.env, path, TableWriterOptions::default()).unwrap();
        table.put(b"taken", b"1").unwrap();
        table.finish().unwrap();
        let primary = Db::open(DIR, options).unwrap();
        primary.create_family("gone", family_options()).unwrap();
        let watched = FaultFileSystem::over_memory(&memory);
        let acts = ActsAt::new(index, &primary, |db| {
            let default = db.default_family();
            db.ingest(default, &["/taken.sst".into()], false).unwrap();
            db.put("first", "1").unwrap();
            db.drop_family(&db.column_family("gone").unwrap()).unwrap();
            db.put("second", "1").unwrap();
            db.create_family("new", family_options()).unwrap();
            db.put("third", "1").unwrap();
        });
        watched.set_observer(Some(Arc::clone(&acts) as _));
        let files: Arc<dyn FileSystem> = Arc::new(watched.clone());
        let reader = Db::open_read_only(DIR, options_of(&files, 0));
        let reader = reader.unwrap_or_else(|error| panic!("operation {index}: {error:?}"));
        watched.set_observer(None);
        let has = |key: &str| reader.get(key).unwrap().is_some();
        let (is_gone, is_new) = (
            reader.column_family("gone").is_none(),
            reader.column_family("new").is_some(),
        );
        assert!(!has("first") || has("taken"), "operation {index}");
        assert!(!has("second") || is_gone, "operation {index}");
        assert!(!has("third") || is_new, "operation {index}");
        if !acts.has_acted() {
            assert!(index > 10, "a reader does more than {index} operations");
            return;
        }
    }
}

/// Three WAL files are let go at once: the older two are kept, to be written over, and the newest is removed.
#[test]
fn a_reader_that_opens_misses_no_wal_that_went_before_an_older_one() {
    for index in 1.. {
        let memory = StrictMemFileSystem::new();
        let files: Arc<dyn FileSystem> = Arc::new(memory.clone());
        let primary = Db::open(DIR, options_of(&files, 1)).unwrap();
        let default = primary.default_family();
        let other = primary.create_family("other", family_options()).unwrap();
        let write = &WriteOptions::default();
        for key in ["first", "second"] {
            primary.put_cf(&other, key, "1", write).unwrap();
            primary.put(key, "1").unwrap();
            primary.flush_cf(default).unwrap();
        }
        primary.put_cf(&other, "third", "1", write).unwrap();
        let watched = FaultFileSystem::over_memory(&memory);
        let acts = ActsAt::new(index, &primary, |db| db.flush().unwrap());
        watched.set_observer(Some(Arc::clone(&acts) as _));
        let files: Arc<dyn FileSystem> = Arc::new(watched.clone());
        let reader = Db::open_read_only(DIR, options_of(&files, 1));
        let reader = reader.unwrap_or_else(|error| panic!("operation {index}: {error:?}"));
        watched.set_observer(None);
        let other = reader.column_family("other").unwrap();
        for key in ["first", "second", "third"] {
            let found = reader.get_cf(&other, key, &ReadOptions::default()).unwrap();
            assert!(found.is_some(), "operation {index}: {key}");
        }
        if !acts.has_acted() {
            assert!(index > 10, "a reader does more than {index} operations");
            return;
        }
    }
}

/// Fills a memtable, under the sequence numbers as keys.
fn fill(db: &Db) {
    for _ in 0..20 {
        db.put(db.latest_seqno().to_be_bytes(), [7; 500]).unwrap();
    }
}

/// A database of `memory` with rows in its WAL, and the next WAL made ahead: the switch to it changes no name.
fn with_a_wal_ahead(memory: &StrictMemFileSystem) -> Db {
    let options = Options {
        background_threads: Some(1),
        ..options_of(&(Arc::new(memory.clone()) as Arc<dyn FileSystem>), 1)
    };
    let primary = Db::open(DIR, options).unwrap();
    primary.pause_background().unwrap();
    fill(&primary);
    let wals = || {
        let names = memory.list(Path::new(DIR)).unwrap();
        let wals = names
            .iter()
            .filter(|name| name.extension().is_some_and(|it| it == "log"));
        wals.count()
    };
    while wals() < 2 {
        Env::system().clock.sleep(Duration::from_micros(100));
    }
    primary
}

#[test]
fn a_wal_that_begins_behind_a_reader_is_no_part_of_the_moment() {
    for index in 1.. {
        let memory = StrictMemFileSystem::new();
        let primary = with_a_wal_ahead(&memory);
        let watched = FaultFileSystem::over_memory(&memory);
        let fills = ActsAt::new(index, &primary, fill);
        watched.set_observer(Some(Arc::clone(&fills) as _));
        let files: Arc<dyn FileSystem> = Arc::new(watched.clone());
        let reader = Db::open_read_only(DIR, options_of(&files, 1));
        let reader = reader.unwrap_or_else(|error| panic!("operation {index}: {error:?}"));
        watched.set_observer(None);
        let rows = rows(&reader, reader.default_family()).unwrap();
        let expected = (0..rows.len() as u64).map(u64::to_be_bytes);
        assert!(
            rows.keys().eq(expected.collect::<Vec<_>>().iter()),
            "operation {index}"
        );
        assert!(rows.len() >= 20, "operation {index}");
        if !fills.has_acted() {
            assert!(index > 10, "a reader does more than {index} operations");
            return;
        }
    }
}

#[test]
fn a_wal_that_is_filled_behind_a_reader_is_no_gap() {
    for index in 1.. {
        let memory = StrictMemFileSystem::new();
        let files: Arc<dyn FileSystem> = Arc::new(memory.clone());
        drop(Db::open(DIR, options_of(&files, 1)).unwrap());
        let watched = FaultFileSystem::over_memory(&memory);
        let follower = follow_by(Arc::new(watched.clone()), 1);
        let primary = with_a_wal_ahead(&memory);
        let fills = ActsAt::new(index, &primary, fill);
        watched.set_observer(Some(Arc::clone(&fills) as _));
        let caught_up = follower.catch_up();
        watched.set_observer(None);
        caught_up.unwrap_or_else(|error| panic!("operation {index}: {error:?}"));
        if !fills.has_acted() {
            assert!(index > 10, "a follower does more than {index} operations");
            return;
        }
        compare(&follower, &primary, &format!("operation {index}")).unwrap();
    }
}
