//! Goal: wherever the process stops between preparing a transaction and its end, what was acknowledged as prepared is
//! prepared, what was acknowledged as ended has ended, and no transaction is ever half there. Method: one script of
//! prepares, ends, flushes and a reopen, stopped at every operation, each crash policy, recovery stopped again.

use std::collections::BTreeMap;
use std::sync::Arc;

use drumlin::{
    FamilyOptions, Locking, Options, Result, TransactionDb, TransactionOptions, WriteOptions,
};
use drumlin_base::rng::Rng;
use drumlin_fs::{CrashPolicy, Fault, FaultFileSystem, FaultRule, FileSystem, StrictMemFileSystem};

use crate::support::{DIR, options};

/// How far a transaction came. Every step is synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Preparing,
    Prepared,
    Committing,
    Committed,
    RollingBack,
    RolledBack,
}

type States = BTreeMap<&'static str, State>;

fn open(options: &Options) -> Result<TransactionDb> {
    TransactionDb::open(DIR, options.clone(), Locking::default())
}

fn open_both(options: &Options) -> Result<TransactionDb> {
    let families = [
        ("default", options.family.clone()),
        ("more", options.family.clone()),
    ];
    TransactionDb::open_families(DIR, options.clone(), &families, Locking::default())
}

fn prepare(db: &TransactionDb, name: &'static str, states: &mut States) -> Result<()> {
    let more = db.column_family("more").expect("it was created");
    let plain = TransactionOptions {
        snapshot: false,
        ..TransactionOptions::default()
    };
    let mut tx = db.begin_with(plain);
    tx.put(db.default_family(), format!("{name} 1"), name)?;
    tx.put(&more, format!("{name} 2"), name)?;
    states.insert(name, State::Preparing);
    drop(tx.prepare_with(name, &WriteOptions::synced())?);
    states.insert(name, State::Prepared);
    Ok(())
}

fn end(db: &TransactionDb, name: &'static str, commits: bool, states: &mut States) -> Result<()> {
    let prepared = db.prepared(name).expect("it is prepared");
    if commits {
        states.insert(name, State::Committing);
        prepared.commit_with(&WriteOptions::synced())?;
        states.insert(name, State::Committed);
    } else {
        states.insert(name, State::RollingBack);
        prepared.rollback_with(&WriteOptions::synced())?;
        states.insert(name, State::RolledBack);
    }
    Ok(())
}

/// The script, up to its first error.
fn run(options: &Options, states: &mut States) -> Result<()> {
    let db = open(options)?;
    let more = db.create_family("more", FamilyOptions::clone(&options.family))?;
    db.put(db.default_family(), "plain", "1")?;
    prepare(&db, "a", states)?;
    prepare(&db, "b", states)?;
    db.put(&more, "plain", "2")?;
    db.flush()?;
    end(&db, "a", true, states)?;
    prepare(&db, "c", states)?;
    end(&db, "b", false, states)?;
    db.put(db.default_family(), "plain", "3")?;
    db.flush()?;
    prepare(&db, "d", states)?;
    drop(more);
    db.close()?;
    let db = open_both(options)?;
    end(&db, "c", true, states)?;
    prepare(&db, "e", states)?;
    db.flush()?;
    end(&db, "e", true, states)?;
    db.put(db.default_family(), "plain", "4")?;
    db.close()
}

/// What came of `states`; prepared transactions are then committed.
fn check(disk: &StrictMemFileSystem, states: &States, place: &str) {
    let made = options(Arc::new(disk.clone()));
    let db = match states.is_empty() {
        true => return, // The family may not be there yet; other tests stop there.
        false => open_both(&made),
    };
    let db = db.unwrap_or_else(|error| panic!("{place}: {error:?}"));
    let waiting = db.prepared_transactions();
    let rows = |db: &TransactionDb, name: &str| {
        let more = db.column_family("more").expect("a family");
        let first = db.get(db.default_family(), format!("{name} 1"));
        let second = db.get(&more, format!("{name} 2"));
        let found = [first, second].map(|value| value.expect("it can be read").is_some());
        assert_eq!(found[0], found[1], "{place}: {name} is half there");
        found[0]
    };
    for (name, state) in states {
        let waits = waiting.contains(&name.as_bytes().to_vec());
        let is_there = rows(&db, name);
        let fits = match state {
            State::Preparing | State::RollingBack => !is_there,
            State::Prepared => waits && !is_there,
            State::Committing => waits != is_there,
            State::Committed => !waits && is_there,
            State::RolledBack => !waits && !is_there,
        };
        assert!(
            fits,
            "{place}: {name} is {state:?}; waits {waits}, is there {is_there}"
        );
        if waits {
            let prepared = db.prepared(name).expect("it waits");
            let sync = WriteOptions::synced();
            prepared.commit_with(&sync).expect("it can be committed");
        }
    }
    assert!(
        waiting
            .iter()
            .all(|name| states.keys().any(|it| it.as_bytes() == name))
    );
    drop(db);
    let db = open_both(&made).unwrap_or_else(|error| panic!("{place}, again: {error:?}"));
    assert!(db.prepared_transactions().is_empty(), "{place}");
    for name in waiting {
        let name = String::from_utf8_lossy(&name).into_owned();
        assert!(rows(&db, &name), "{place}: {name} was committed");
    }
}

#[test]
fn two_phase_commit_survives_a_stop_at_every_operation() {
    let memory = StrictMemFileSystem::new();
    let files = FaultFileSystem::over_memory(&memory);
    let mut states = States::new();
    let made = options(Arc::new(files.clone()) as Arc<dyn FileSystem>);
    run(&made, &mut states).expect("without faults it runs");
    check(&memory, &states, "no fault");
    for index in 0..files.operations() {
        let memory = StrictMemFileSystem::new();
        let files = FaultFileSystem::over_memory(&memory);
        files.add_rule(FaultRule::once(index, Fault::Stop));
        let mut states = States::new();
        let outcome = run(&options(Arc::new(files)), &mut states);
        if outcome.is_ok() {
            continue; // What closing left for the next open to remove.
        }
        let mut rng = Rng::new(index);
        for policy in CrashPolicy::ALL {
            let seed = rng.next_u64();
            let place = format!("stopped at {index}, {policy:?}, seed {seed}");
            check(&memory.crash_image(seed, policy), &states, &place);
            if rng.one_in(3) {
                cut_recovery(&memory.crash_image(seed, policy), &states, &place, &mut rng);
            }
        }
    }
}

/// Cuts the power in the middle of recovery, then recovers.
fn cut_recovery(disk: &StrictMemFileSystem, states: &States, place: &str, rng: &mut Rng) {
    let files = FaultFileSystem::over_memory(disk);
    let index = rng.below(60);
    files.add_rule(FaultRule::once(index, Fault::Stop));
    drop(open_both(&options(Arc::new(files))));
    let seed = rng.next_u64();
    let place = format!("{place}, recovery stopped at {index}, seed {seed}");
    check(
        &disk.crash_image(seed, CrashPolicy::KeepAll),
        states,
        &place,
    );
}
