//! Goal: a follower equals its primary at every moment that it shows, over flushes, compactions, new WAL files and
//! MANIFESTs, families that come and go, tables taken in, two-phase commit, and primaries that close, are killed at any
//! file operation and open again. Method: random scripts by seed on files in memory; followers that catch up now and then
//! are compared with the primary at the same sequence number.

use std::path::Path;
use std::sync::{Arc, Mutex};

use drumlin::{Db, FollowOptions, Follower, Options, Result, WriteOptions};
use drumlin_base::rng::Rng;
use drumlin_fs::{
    Fault, FaultFileSystem, FaultRule, FileSystem, Observer, OpKind, StrictMemFileSystem,
};

use crate::changes::{Run, options};
use crate::copy::{contents, family_options, try_contents};
use crate::support::{DIR, exhaustive};

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

/// Has the primary go on before some of the follower's operations: it fills memtables, and so WAL files. It rests after some
/// times, as nobody catches up with one that never does.
#[derive(Debug)]
struct GoesOn {
    primary: Mutex<(Db, Rng, usize)>,
}

impl Observer for GoesOn {
    fn before(&self, _: OpKind, _: &Path) {
        let (db, rng, times) = &mut *self.primary.lock().unwrap();
        if *times == 0 || rng.below(4) > 0 {
            return;
        }
        *times -= 1;
        for _ in 0..rng.below(24) {
            let (key, value) = (rng.below(500).to_be_bytes(), vec![7; 700]);
            db.put(key, value).unwrap();
        }
    }
}

#[test]
fn a_primary_that_goes_on_while_it_is_opened_anew_is_not_damaged() {
    let seeds = if exhaustive() { 2_000 } else { 40 };
    for seed in 0..seeds {
        let memory = StrictMemFileSystem::new();
        let files: Arc<dyn FileSystem> = Arc::new(memory.clone());
        let options = options_of(&files, seed);
        drop(Db::open(DIR, options.clone()).unwrap());
        let watched = FaultFileSystem::over_memory(&memory);
        let follower = follow_by(Arc::new(watched.clone()), seed);
        for life in 0..4 {
            let place = format!("seed {seed}, life {life}");
            let db = Db::open(DIR, options.clone()).unwrap();
            watched.set_observer(Some(Arc::new(GoesOn {
                primary: Mutex::new((db.clone(), Rng::new(seed << 8 | life), 20)),
            })));
            let caught_up = follower.catch_up();
            watched.set_observer(None);
            caught_up.unwrap_or_else(|error| panic!("{place}: {error:?}"));
            compare(&follower, &db, &place).unwrap();
        }
    }
}

/// Drops the family `gone` before an operation of a reader, the so manieth.
#[derive(Debug)]
struct DropsAt {
    left: Mutex<u64>,
    primary: Db,
}

impl Observer for DropsAt {
    fn before(&self, _: OpKind, _: &Path) {
        let mut left = self.left.lock().unwrap();
        let Some(fewer) = left.checked_sub(1) else {
            return;
        };
        *left = fewer;
        if fewer == 0 {
            let family = self.primary.column_family("gone").unwrap();
            self.primary.drop_family(&family).unwrap();
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
        let drops = Arc::new(DropsAt {
            left: Mutex::new(index),
            primary: primary.clone(),
        });
        watched.set_observer(Some(Arc::clone(&drops) as _));
        let files: Arc<dyn FileSystem> = Arc::new(watched.clone());
        let reader = Db::open_read_only(DIR, options_of(&files, 0));
        let reader = reader.unwrap_or_else(|error| panic!("operation {index}: {error:?}"));
        watched.set_observer(None);
        assert_eq!(reader.get("kept").unwrap().as_deref(), Some(&b"1"[..]));
        if *drops.left.lock().unwrap() > 0 {
            assert!(index > 10, "a reader does more than {index} operations");
            return;
        }
    }
}
