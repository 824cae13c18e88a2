//! One chain of power cuts.

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use drumlin::{
    ColumnFamily, Db, Env, ErrorKind, FamilyOptions, KeepChanges, Locking, Options, ReadOptions,
    Result, Transaction, TransactionDb, TransactionOptions, Tuning, WriteBatch, WriteOptions,
};
use drumlin_base::rng::Rng;
use drumlin_fs::{
    CrashPolicy, Fault, FaultFileSystem, FaultRule, ManualClock, StrictMemFileSystem,
};

use super::state::{Found, Known, Step, Writes};
use crate::model::{Append, Op, Rows};
use crate::setup::tuning;
use crate::world::DIR;

/// Power cuts of one chain.
pub const CUTS_MAX: u64 = 64;

const FAMILIES: [&str; 3] = ["default", "more", "most"];
/// Keys of a family.
const KEYS: u64 = 12;
/// Transactions that are prepared at a time.
const WAITING_MAX: usize = 5;
/// Steps between two cuts.
const STEPS_MAX: u64 = 40;

/// What chains had.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sum {
    /// Chains.
    pub chains: u64,
    /// Power cuts after a prepare was acknowledged as durable and before the end of that transaction was acknowledged.
    pub between: u64,
    /// Those of them in the middle of its commit or rollback.
    pub within_its_end: u64,
    /// Other power cuts: nothing was prepared, or not durably.
    pub others: u64,
    /// Power cuts in the middle of recoveries, and those of them that had something prepared to recover.
    pub in_recovery: u64,
    /// See above.
    pub in_recovery_of_prepared: u64,
    /// Transactions that recoveries found prepared, and what became of all that were prepared.
    pub found_prepared: u64,
    /// See above.
    pub committed: u64,
    /// See above.
    pub rolled_back: u64,
}

impl Sum {
    /// Adds others.
    pub fn add(&mut self, other: &Self) {
        self.chains += other.chains;
        self.between += other.between;
        self.within_its_end += other.within_its_end;
        self.others += other.others;
        self.in_recovery += other.in_recovery;
        self.in_recovery_of_prepared += other.in_recovery_of_prepared;
        self.found_prepared += other.found_prepared;
        self.committed += other.committed;
        self.rolled_back += other.rolled_back;
    }
}

/// Runs the chain of `seed`.
///
/// # Panics
/// At the first thing that is wrong.
pub fn run(seed: u64) -> Sum {
    let mut rng = Rng::new(seed);
    let mut chain = Chain::new(&mut rng);
    for number in 0..CUTS_MAX {
        chain.generation(&mut rng);
        chain.place = format!("seed {seed}, cut {number}");
        chain.cut(&mut rng);
    }
    chain.last(&mut rng);
    chain.sum
}

/// See the module.
struct Chain {
    options: Options,
    memory: StrictMemFileSystem,
    /// What was kept of all that was acknowledged since the last recovery: all, or a front of it.
    kept_all: bool,
    known: Known,
    /// Transactions so far.
    prepared: u64,
    /// One step in so many is not synced.
    unsynced_one_in: u64,
    place: String,
    /// Whether each step is told: `DRUMLIN_SIM_TRACE` is set.
    traces: bool,
    sum: Sum,
}

/// The store between two cuts.
struct Live {
    db: TransactionDb,
    families: Vec<ColumnFamily>,
    files: FaultFileSystem,
}

fn one_of<T: Copy>(rng: &mut Rng, all: &[T]) -> T {
    all[rng.below(all.len() as u64) as usize]
}

fn key_at(at: u64) -> Vec<u8> {
    format!("k{at:02}").into_bytes()
}

fn key(rng: &mut Rng) -> Vec<u8> {
    key_at(rng.below(KEYS))
}

/// Mostly short, so that a store stays small.
fn value(rng: &mut Rng) -> Vec<u8> {
    let len = match rng.below(100) {
        0 => 600 + rng.below(1500),
        1..=5 => 35 + rng.below(100),
        _ => rng.below(12),
    };
    vec![b'a' + rng.below(26) as u8; len as usize]
}

fn writes(rng: &mut Rng) -> Writes {
    let count = rng.below(5);
    let op = |rng: &mut Rng| match rng.below(12) {
        0..=4 => Op::Put(key(rng), value(rng)),
        5 | 6 => Op::Delete(key(rng)),
        7 => {
            let (one, other) = (key(rng), key(rng));
            Op::DeleteRange(one.clone().min(other.clone()), one.max(other))
        }
        _ => Op::Merge(key(rng), value(rng)),
    };
    let drawn = (0..count).map(|_| (rng.below(FAMILIES.len() as u64) as u32, op(rng)));
    drawn.collect()
}

/// What is there, as readers see it.
fn found(live: &Live) -> Result<Found> {
    let name = |bytes| String::from_utf8(bytes).expect("names are letters and digits");
    let waiting = live.db.prepared_transactions();
    let rows: Result<_> = live.families.iter().map(|it| rows(live, it)).collect();
    Ok(Found {
        waiting: waiting.into_iter().map(name).collect(),
        rows: rows?,
    })
}

fn rows(live: &Live, family: &ColumnFamily) -> Result<Rows> {
    let mut rows = Rows::new();
    let mut walk = live.db.iter(family, ReadOptions::default());
    walk.seek_to_first();
    while walk.valid() {
        rows.insert(walk.key().to_vec(), walk.value().to_vec());
        walk.next();
    }
    walk.status()?;
    Ok(rows)
}

impl Chain {
    /// An empty store with its families.
    fn new(rng: &mut Rng) -> Self {
        let kept = KeepChanges {
            age: None,
            bytes: Some(64 << 10),
        };
        let options = Options {
            memory_budget: Some(4 << 20),
            background_threads: Some(0),
            wal_dir: rng.one_in(5).then(|| "/wal".into()),
            keep_changes: rng.one_in(4).then_some(kept),
            family: FamilyOptions {
                merge_operator: Some(Arc::new(Append)),
                ..FamilyOptions::default()
            },
            tuning: Tuning {
                write_buffer_bytes: Some(one_of(rng, &[8 << 10, 64 << 10])),
                l0_slowdown: 2 + rng.below(3) as usize,
                target_file_bytes: one_of(rng, &[8 << 10, 64 << 10]),
                level_base_bytes: Some(64 << 10),
                l0_trigger: 2 + rng.below(3) as usize,
                ..tuning(rng)
            },
            env: Env {
                clock: Arc::new(ManualClock::new(1_700_000_000)),
                seed: 7,
                ..Env::system()
            },
            ..Options::default()
        };
        let chain = Self {
            options,
            memory: StrictMemFileSystem::new(),
            kept_all: true,
            known: Known::default(),
            prepared: 0,
            unsynced_one_in: one_of(rng, &[2, 4, 1000]),
            place: "at first".to_owned(),
            traces: std::env::var_os("DRUMLIN_SIM_TRACE").is_some(),
            sum: Sum {
                chains: 1,
                ..Sum::default()
            },
        };
        let files = FaultFileSystem::over_memory(&chain.memory);
        let db = Db::open(DIR, chain.options_on(&files)).expect("the disk is well");
        for name in &FAMILIES[1..] {
            let made = db.create_family(name, chain.options.family.clone());
            drop(made.expect("the disk is well"));
        }
        db.close().expect("the disk is well");
        chain
    }

    fn options_on(&self, files: &FaultFileSystem) -> Options {
        let mut options = self.options.clone();
        options.env.files = Arc::new(files.clone());
        options
    }

    fn open(&self, files: FaultFileSystem) -> Result<Live> {
        let families = FAMILIES.map(|name| (name, self.options.family.clone()));
        let impatient = Locking {
            timeout: Duration::ZERO,
            ..Locking::default()
        };
        let options = self.options_on(&files);
        let db = TransactionDb::open_families(DIR, options, &families, impatient)?;
        let families = FAMILIES.map(|name| db.column_family(name).expect("it is open"));
        Ok(Live {
            db,
            families: families.into(),
            files,
        })
    }

    /// Recovers, cut now and then in the middle of it, and judges what is there.
    fn recover(&mut self, rng: &mut Rng) -> Live {
        loop {
            let files = FaultFileSystem::over_memory(&self.memory);
            if rng.one_in(6) {
                files.add_rule(FaultRule::once(rng.below(60), Fault::Stop));
            }
            let opened = self.open(files.clone());
            let looked = opened.and_then(|live| Ok((found(&live)?, live)));
            if files.is_stopped() {
                drop(looked);
                self.sum.in_recovery += 1;
                self.sum.in_recovery_of_prepared += u64::from(self.known.waits_durably());
                self.lose_power(rng);
                continue;
            }
            let (found, live) = looked.unwrap_or_else(|error| panic!("{}: {error:?}", self.place));
            if let Err(why) = self.known.judge(&found, self.kept_all) {
                panic!("{}: {why}", self.place);
            }
            self.kept_all = true;
            self.sum.found_prepared += found.waiting.len() as u64;
            self.check_locks(&live);
            return live;
        }
    }

    /// Recovers the store and works on it until the machine stops, or closes it.
    fn generation(&mut self, rng: &mut Rng) {
        let live = self.recover(rng);
        let steps = match rng.one_in(12) {
            true => rng.below(6),
            false => STEPS_MAX,
        };
        let mut armed = false;
        for _ in 0..steps {
            if !armed && self.known.waits_durably() {
                let ahead = one_of(rng, &[4, 10, 30]);
                live.files
                    .add_rule(FaultRule::once(rng.below(ahead), Fault::Stop));
                armed = true;
            }
            self.step(rng, &live);
            if live.files.is_stopped() {
                return;
            }
        }
        let Live {
            db,
            families,
            files,
        } = live;
        drop(families);
        // What was not synced still is not.
        self.went_well(&files, db.close());
        files.stop();
    }

    /// The value, unless the machine stopped.
    fn went_well<T>(&self, files: &FaultFileSystem, outcome: Result<T>) -> Option<T> {
        match outcome {
            Ok(value) => Some(value),
            Err(_) if files.is_stopped() => None,
            Err(error) => panic!("{}: on a well disk: {error:?}", self.place),
        }
    }

    /// One step, or nothing where it would meet a lock.
    fn step(&mut self, rng: &mut Rng, live: &Live) {
        let waiting = self.known.now.waiting.len();
        let options = WriteOptions {
            sync: Some(!rng.one_in(self.unsynced_one_in)),
            ..WriteOptions::default()
        };
        match rng.below(16) {
            0..=5 if waiting < WAITING_MAX => self.prepare(rng, live, &options),
            0..=10 if waiting > 0 => self.end_one(rng, live, &options),
            14 => _ = self.went_well(&live.files, live.db.flush()),
            _ => self.write(rng, live, &options),
        }
    }

    fn free_writes(&self, rng: &mut Rng) -> Writes {
        let mut drawn = writes(rng);
        drawn.retain(|(family, op)| !self.known.now.conflicts(*family, op));
        drawn
    }

    fn note(&mut self, live: &Live, step: Step, options: &WriteOptions, outcome: Result<()>) {
        self.trace(|| format!("{step:?}, synced {:?}: {outcome:?}", options.sync));
        self.known.begin(step);
        if self.went_well(&live.files, outcome).is_some() {
            self.known.acknowledge(options.sync == Some(true));
        }
    }

    fn write(&mut self, rng: &mut Rng, live: &Live, options: &WriteOptions) {
        let writes = self.free_writes(rng);
        if writes.is_empty() {
            return; // Nothing is logged, and so nothing synced.
        }
        let mut batch = WriteBatch::new();
        for (family, op) in &writes {
            let id = live.families[*family as usize].id();
            op.add_to(&mut batch, id).expect("it is short");
        }
        let outcome = live.db.write(batch, options).map(drop);
        self.note(live, Step::Write(writes), options, outcome);
    }

    fn prepare(&mut self, rng: &mut Rng, live: &Live, options: &WriteOptions) {
        let writes = self.free_writes(rng);
        self.prepared += 1;
        let name = format!("t{}", self.prepared);
        let mut tx = live.db.begin();
        for (family, op) in &writes {
            let family = &live.families[*family as usize];
            let done = add(&mut tx, family, op);
            if self.went_well(&live.files, done).is_none() {
                return;
            }
        }
        let outcome = tx.prepare_with(&name, options).map(drop);
        self.note(live, Step::Prepare(name, writes), options, outcome);
    }

    fn end_one(&mut self, rng: &mut Rng, live: &Live, options: &WriteOptions) {
        let names = &self.known.now.waiting;
        let name = names.keys().nth(rng.below(names.len() as u64) as usize);
        let name = name.expect("there is one").clone();
        let prepared = live.db.prepared(&name).expect("it is prepared");
        let (step, outcome) = match rng.one_in(3) {
            true => {
                self.sum.rolled_back += 1;
                (Step::Rollback(name), prepared.rollback_with(options))
            }
            false => {
                self.sum.committed += 1;
                let committed = prepared.commit_with(options).map(drop);
                (Step::Commit(name), committed)
            }
        };
        self.note(live, step, options, outcome);
        if rng.one_in(4) {
            self.check_now(live);
        }
    }

    /// What readers see while the machine runs is what was acknowledged.
    fn check_now(&self, live: &Live) {
        let Some(found) = self.went_well(&live.files, found(live)) else {
            return;
        };
        if let (Some(why), false) = (self.known.now.difference(&found), live.files.is_stopped()) {
            panic!("{}: before the cut: {why}", self.place);
        }
    }

    /// What is prepared holds its locks, and nothing else does.
    fn check_locks(&self, live: &Live) {
        for (at, family) in (0..).zip(&live.families) {
            let mut tx = live.db.begin_with(TransactionOptions {
                snapshot: false,
                ..TransactionOptions::default()
            });
            for key in (0..KEYS).map(key_at) {
                let taken = match tx.lock_key(family, &key) {
                    Ok(()) => false,
                    Err(error) if error.kind() == ErrorKind::TimedOut => true,
                    Err(error) => panic!("{}: a lock: {error:?}", self.place),
                };
                let wanted = self.known.now.locks(at, &key);
                assert_eq!(taken, wanted, "{}: family {at}, {key:?}", self.place);
            }
        }
    }

    fn trace(&self, line: impl Fn() -> String) {
        if self.traces {
            // A closed pipe is no reason to stop.
            let _ = writeln!(std::io::stderr(), "{}", line());
        }
    }

    /// Cuts the power, and counts where.
    fn cut(&mut self, rng: &mut Rng) {
        if self.known.waits_durably() {
            self.sum.between += 1;
            self.sum.within_its_end += u64::from(self.known.is_within_an_end());
        } else {
            self.sum.others += 1;
        }
        self.lose_power(rng);
    }

    fn lose_power(&mut self, rng: &mut Rng) {
        let policy = one_of(rng, &CrashPolicy::ALL);
        self.trace(|| format!("{}: {policy:?}", self.place));
        self.place.push_str(&format!(", {policy:?}"));
        self.kept_all &= policy == CrashPolicy::KeepAll;
        self.memory = self.memory.crash(rng.next_u64(), policy);
    }

    /// Ends all that is prepared, and opens once more.
    fn last(&mut self, rng: &mut Rng) {
        let live = self.recover(rng);
        live.files.clear_rules();
        while !self.known.now.waiting.is_empty() {
            self.end_one(rng, &live, &WriteOptions::synced());
        }
        drop(live);
        let live = self.recover(rng);
        assert!(live.db.prepared_transactions().is_empty(), "{}", self.place);
    }
}

fn add(tx: &mut Transaction<'_>, family: &ColumnFamily, op: &Op) -> Result<()> {
    match op {
        Op::Put(key, value) => tx.put(family, key, value),
        Op::Delete(key) => tx.delete(family, key),
        Op::SingleDelete(key) => tx.single_delete(family, key),
        Op::Merge(key, operand) => tx.merge(family, key, operand),
        Op::DeleteRange(begin, end) => tx.delete_range(family, begin, end),
    }
}
