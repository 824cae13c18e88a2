//! One history: made by threads, cut off or not, recovered, and judged.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use drumlin::{
    ErrorKind, Isolation, Locking, Options, ReadOptions, Result, Transaction, TransactionDb,
    TransactionOptions, WriteOptions,
};
use drumlin_base::rng::Rng;
use drumlin_fs::{
    CrashPolicy, Env, Fault, FaultFileSystem, FaultRule, JoinHandle, Spawner, StrictMemFileSystem,
};
use parking_lot::Mutex;

use super::judge::{Committed, Id, judge};
use crate::schedule::{End, Order, Scheduler, Tasked, simulate};
use crate::setup::tuning;
use crate::world::DIR;

const STEPS_MAX: u64 = 4_000_000;
const KEYS: usize = 6;
/// Transactions of one thread are numbered from a multiple of this on.
const IDS: Id = 1000;

/// What came of a history.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// What is wrong, if anything.
    pub failure: Option<String>,
    /// A hash of the run.
    pub hash: u64,
    /// Transactions, and those of them that were committed.
    pub transactions: u64,
    /// See above.
    pub committed: u64,
    /// Gets, walks, appends and ends.
    pub operations: u64,
    /// Whether the power was cut.
    pub cut: bool,
    /// Transactions that recovery found prepared.
    pub found_prepared: u64,
    /// Whether there is a circle that snapshot isolation allows.
    pub skew: bool,
}

/// The sums of several histories.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sum {
    histories: u64,
    transactions: u64,
    committed: u64,
    operations: u64,
    cuts: u64,
    found_prepared: u64,
    skews: u64,
}

impl Sum {
    /// Adds one.
    pub fn add(&mut self, one: &Outcome) {
        self.histories += 1;
        self.transactions += one.transactions;
        self.committed += one.committed;
        self.operations += one.operations;
        self.cuts += u64::from(one.cut);
        self.found_prepared += one.found_prepared;
        self.skews += u64::from(one.skew);
    }
}

/// How far a transaction came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// It had not begun to end, or was refused, or rolled back.
    GivenUp,
    /// Its end, or its being prepared, was asked for and not told.
    Open,
    Prepared,
    Committed,
}

#[derive(Debug)]
struct Record {
    what: Committed,
    fate: Fate,
}

/// What the threads of a history share.
struct Shared {
    db: TransactionDb,
    files: FaultFileSystem,
    scheduler: Arc<Scheduler>,
    isolation: Option<Isolation>,
    /// Every step is synced.
    syncs: bool,
    records: Mutex<Vec<Record>>,
    operations: Mutex<u64>,
}

/// Makes and judges the history of `seed`; `isolation` is that of all its transactions, or each draws its own.
pub fn run(seed: u64, isolation: Option<Isolation>) -> Outcome {
    let mut rng = Rng::new(seed);
    let scheduler = Scheduler::new(seed, Order::draw(&mut rng), STEPS_MAX);
    let outcome = Arc::new(Mutex::new(Outcome::default()));
    let (inner, told) = (Arc::clone(&scheduler), Arc::clone(&outcome));
    let end = simulate(&scheduler, move || {
        let made = live(rng, &inner, isolation);
        *told.lock() = made;
    });
    let mut outcome = std::mem::take(&mut *outcome.lock());
    outcome.hash = scheduler.hash();
    if let End::Failed(why) = end {
        outcome.failure = Some(why);
    }
    outcome
}

fn options(rng: &mut Rng, files: &FaultFileSystem, scheduler: &Arc<Scheduler>) -> Options {
    Options {
        memory_budget: Some(4 << 20),
        background_threads: Some(rng.below(3) as usize),
        tuning: tuning(rng),
        env: Env {
            files: Arc::new(files.clone()),
            clock: Arc::clone(scheduler) as _,
            spawner: Arc::new(Tasked(Arc::clone(scheduler))),
            seed: 7,
        },
        ..Options::default()
    }
}

fn open(rng: &mut Rng, files: &FaultFileSystem, scheduler: &Arc<Scheduler>) -> TransactionDb {
    TransactionDb::open(DIR, options(rng, files, scheduler), Locking::default())
        .unwrap_or_else(|error| panic!("it does not open: {error:?}"))
}

fn live(mut rng: Rng, scheduler: &Arc<Scheduler>, isolation: Option<Isolation>) -> Outcome {
    let memory = StrictMemFileSystem::new();
    let files = FaultFileSystem::over_memory(&memory);
    let db = open(&mut rng, &files, scheduler);
    let cut = rng.one_in(2);
    if cut {
        files.add_rule(FaultRule::once(rng.below(150), Fault::Stop));
    }
    let shared = Arc::new(Shared {
        db,
        files,
        scheduler: Arc::clone(scheduler),
        isolation,
        syncs: rng.one_in(2),
        records: Mutex::default(),
        operations: Mutex::new(0),
    });
    let spawner = Tasked(Arc::clone(scheduler));
    let mut tasks: Vec<Box<dyn JoinHandle>> = Vec::new();
    for index in 0..2 + rng.below(3) as Id {
        let (shared, mut rng) = (Arc::clone(&shared), rng.fork());
        let body = Box::new(move || {
            for number in 0..4 + rng.below(8) as Id {
                let id = 1 + index * IDS + number;
                transaction(&shared, id, &mut rng);
            }
        });
        tasks.push(
            spawner
                .spawn(&format!("writer {index}"), body)
                .expect("threads are there"),
        );
    }
    for task in tasks {
        task.join().expect("a panic ends the run");
    }
    let shared = Arc::into_inner(shared).expect("every task has ended");
    let records = shared.records.into_inner();
    let operations = shared.operations.into_inner();
    let was_cut = shared.files.is_stopped();
    drop(shared.db);
    let policy = match was_cut {
        true => CrashPolicy::ALL[rng.below(CrashPolicy::ALL.len() as u64) as usize],
        false => CrashPolicy::KeepAll,
    };
    let disk = memory.crash(rng.next_u64(), policy);
    let is_whole = shared.syncs || policy == CrashPolicy::KeepAll;
    let outcome = Outcome {
        transactions: records.len() as u64,
        operations,
        cut: was_cut,
        ..Outcome::default()
    };
    settle(&mut rng, (&disk, scheduler), records, is_whole, outcome)
}

/// Recovers, ends what is prepared, and judges. `is_whole` says that everything acknowledged must be there.
fn settle(
    rng: &mut Rng,
    (disk, scheduler): (&StrictMemFileSystem, &Arc<Scheduler>),
    mut records: Vec<Record>,
    is_whole: bool,
    mut outcome: Outcome,
) -> Outcome {
    let db = open(rng, &FaultFileSystem::over_memory(disk), scheduler);
    let names = db.prepared_transactions();
    let names: BTreeSet<String> = names
        .iter()
        .map(|name| String::from_utf8_lossy(name).into_owned())
        .collect();
    outcome.found_prepared = names.len() as u64;
    for record in &mut records {
        let name = record.what.id.to_string();
        let waits = names.contains(&name);
        let fits = match record.fate {
            Fate::Prepared => waits || !is_whole,
            Fate::Open => true,
            Fate::GivenUp | Fate::Committed => !waits || !is_whole,
        };
        assert!(fits, "{record:?}: it waits to be ended: {waits}");
        if !waits {
            continue;
        }
        let prepared = db.prepared(&name).expect("it is prepared");
        record.fate = match rng.one_in(2) {
            true => prepared.commit().map(|_| Fate::Committed),
            false => prepared.rollback().map(|()| Fate::GivenUp),
        }
        .expect("the disk is well");
    }
    drop(db);
    let db = open(rng, &FaultFileSystem::over_memory(disk), scheduler);
    assert!(db.prepared_transactions().is_empty(), "all have ended");
    let last: Vec<Vec<Id>> = (0..KEYS)
        .map(|at| {
            list(
                db.get(db.default_family(), key(at))
                    .expect("the disk is well")
                    .as_deref(),
            )
        })
        .collect();
    db.close().expect("the disk is well");
    let there: BTreeSet<Id> = last.iter().flatten().copied().collect();
    let counts = |record: &Record| match record.fate {
        Fate::Committed if is_whole => true,
        // What was not synced may be gone, as a whole; what only read may have read it.
        Fate::Committed | Fate::Open => there.contains(&record.what.id),
        Fate::GivenUp | Fate::Prepared => false,
    };
    let history: Vec<Committed> = records
        .into_iter()
        .filter(counts)
        .map(|record| record.what)
        .collect();
    outcome.committed = history.len() as u64;
    match judge(&history, &last) {
        Ok(skew) => outcome.skew = skew,
        Err(why) => outcome.failure = Some(why),
    }
    outcome
}

fn key(at: usize) -> String {
    format!("key{at}")
}

fn list(value: Option<&[u8]>) -> Vec<Id> {
    let (ids, rest) = value.unwrap_or_default().as_chunks();
    assert!(rest.is_empty(), "a list of whole numbers");
    ids.iter().map(|id| Id::from_le_bytes(*id)).collect()
}

/// One transaction, from its beginning to an end.
fn transaction(shared: &Shared, id: Id, rng: &mut Rng) {
    let all = [
        Isolation::Locks,
        Isolation::Snapshot,
        Isolation::Serializable,
    ];
    let isolation = shared.isolation.unwrap_or(all[rng.below(3) as usize]);
    let mut tx = shared.db.begin_with(TransactionOptions {
        isolation: Some(isolation),
        ..TransactionOptions::default()
    });
    let mut what = Committed {
        id,
        serializable: isolation == Isolation::Serializable,
        ..Committed::default()
    };
    let steps = 1 + rng.below(5);
    let worked = (0..steps).try_for_each(|_| {
        *shared.operations.lock() += 1;
        shared.scheduler.sleep(Duration::from_micros(rng.below(50)));
        step(&mut tx, shared, &mut what, rng)
    });
    let fate = match allowed(shared, worked, "a step") {
        Some(()) => end(tx, shared, id, rng),
        None => Fate::GivenUp,
    };
    shared.records.lock().push(Record { what, fate });
    if rng.one_in(10) {
        allowed(shared, shared.db.flush(), "a flush");
    }
}

fn step(
    tx: &mut Transaction<'_>,
    shared: &Shared,
    what: &mut Committed,
    rng: &mut Rng,
) -> Result<()> {
    let family = shared.db.default_family();
    let at = rng.below(KEYS as u64) as usize;
    match rng.below(4) {
        0 => {
            let read = list(tx.get(family, key(at))?.as_deref());
            note(what, at, read);
        }
        1 => {
            let end = at + rng.below((KEYS - at) as u64) as usize;
            let bounds = ReadOptions {
                lower_bound: Some(key(at).into_bytes()),
                upper_bound: Some(key(end + 1).into_bytes()),
                ..ReadOptions::default()
            };
            let mut found: BTreeMap<Vec<u8>, Vec<Id>> = BTreeMap::new();
            let mut walk = tx.iter(family, bounds)?;
            walk.seek_to_first();
            while walk.valid() {
                found.insert(walk.key().to_vec(), list(Some(walk.value())));
                walk.next();
            }
            walk.status()?;
            drop(walk);
            for at in at..=end {
                note(
                    what,
                    at,
                    found.remove(key(at).as_bytes()).unwrap_or_default(),
                );
            }
            assert!(
                found.is_empty(),
                "a walk found keys that nobody wrote: {found:?}"
            );
        }
        _ => {
            let mut read = match rng.one_in(2) {
                true => list(tx.get_for_update(family, key(at))?.as_deref()),
                false => list(tx.get(family, key(at))?.as_deref()),
            };
            note(what, at, read.clone());
            if !read.contains(&what.id) {
                read.push(what.id);
            }
            let bytes: Vec<u8> = read.iter().flat_map(|id| id.to_le_bytes()).collect();
            tx.put(family, key(at), bytes)?;
            what.appends.insert(at);
        }
    }
    Ok(())
}

/// Notes what others had appended to a key that was read; always the same.
fn note(what: &mut Committed, at: usize, mut read: Vec<Id>) {
    let own = what.appends.contains(&at);
    assert_eq!(
        read.last() == Some(&what.id),
        own,
        "{what:?} reads its own write of {at}"
    );
    read.retain(|id| *id != what.id);
    what.reads.entry(at).or_insert_with(|| read.clone());
    assert_eq!(
        what.reads[&at], read,
        "{what:?} reads {at} as of one moment"
    );
}

/// Ends the transaction in one of the ways there are.
fn end(tx: Transaction<'_>, shared: &Shared, id: Id, rng: &mut Rng) -> Fate {
    *shared.operations.lock() += 1;
    let options = WriteOptions {
        sync: Some(shared.syncs),
        ..WriteOptions::default()
    };
    match rng.below(12) {
        0 => return Fate::GivenUp,
        1..=4 => {}
        _ => {
            let committed = tx.commit_with(&options).map(drop);
            return fate_of(shared, committed, Fate::Committed, "a commit");
        }
    }
    let prepared = match tx.prepare_with(id.to_string(), &options) {
        Ok(prepared) => prepared,
        Err(error) => return fate_of(shared, Err(error), Fate::Prepared, "preparing"),
    };
    shared
        .scheduler
        .sleep(Duration::from_micros(rng.below(100)));
    match rng.below(6) {
        0 => Fate::Prepared,
        1 => fate_of(
            shared,
            prepared.rollback_with(&options),
            Fate::GivenUp,
            "a rollback",
        ),
        _ => {
            let committed = prepared.commit_with(&options).map(drop);
            fate_of(shared, committed, Fate::Committed, "the second phase")
        }
    }
}

/// The fate of a transaction whose step to `well` ended so.
fn fate_of(shared: &Shared, outcome: Result<()>, well: Fate, what: &str) -> Fate {
    match (allowed(shared, outcome, what), shared.files.is_stopped()) {
        (Some(()), _) => well,
        (None, true) => Fate::Open,
        (None, false) => Fate::GivenUp,
    }
}

/// The value, or nothing where it was refused as it may be.
fn allowed<T>(shared: &Shared, outcome: Result<T>, what: &str) -> Option<T> {
    let error = match outcome {
        Ok(value) => return Some(value),
        Err(error) => error,
    };
    let kind = error.kind();
    let refused = matches!(
        kind,
        ErrorKind::Busy | ErrorKind::Deadlock | ErrorKind::TimedOut
    );
    assert!(
        refused || shared.files.is_stopped(),
        "{what} on a well disk: {error:?}"
    );
    None
}
