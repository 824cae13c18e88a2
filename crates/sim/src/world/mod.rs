//! One run of one seed: rounds of opening, working, failing and checking.
//!
//! A round opens the database on the disk of the last one, checks that every promised write is
//! present, lets the tasks work while the disk fails as drawn, and ends in a power cut, a killed
//! process, or with a healthy disk: then everything must drain within a bound of virtual time.

mod chores;
mod cuts;
mod faults;
mod judge;
mod look;
mod reader;
mod recover;
mod report;
mod writer;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use drumlin::{Db, Error, ErrorKind, EventListener, Health, Options, Result};
use drumlin_base::rng::Rng;
use drumlin_fs::{CrashPolicy, FaultFileSystem, JoinHandle, OpKind, Spawner, StrictMemFileSystem};
use parking_lot::Mutex;

use crate::history::{Demand, Fate, History};
use crate::schedule::{End, Scheduler, Tasked, simulate};
use crate::setup::{Case, Part, Setup};

pub use report::Report;

/// The directory of the database on its disk.
pub(crate) const DIR: &str = "/db";

/// Places a switch is possible at before a run counts as one that never ends.
const STEPS_MAX: u64 = 4_000_000;

/// Within this virtual time everything must drain once the disk is healthy.
const DRAIN_MAX: Duration = Duration::from_secs(300);

/// The counts of one task.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    batches: AtomicU64,
    checks: AtomicU64,
    cuts: AtomicU64,
    injected: AtomicU64,
    images: AtomicU64,
    refused: AtomicU64,
}

impl Counts {
    fn add(count: &AtomicU64) {
        count.fetch_add(1, Ordering::Relaxed);
    }
}

/// The state that all tasks of one round share.
pub(crate) struct Round {
    db: Db,
    files: FaultFileSystem,
    setup: Setup,
    scheduler: Arc<Scheduler>,
    counts: Arc<Counts>,
    /// Never held while the engine is called.
    history: Arc<Mutex<History>>,
    /// Errors that were reported to a caller or listener.
    told: Arc<Told>,
    /// Whether operations may fail, and reads give wrong bytes.
    failing: bool,
    lying: bool,
}

/// Gets the failures of the background.
#[derive(Debug, Default)]
pub(crate) struct Told {
    any: AtomicBool,
}

impl EventListener for Told {
    fn background_failed(&self, _error: &Error) {
        self.any.store(true, Ordering::Relaxed);
    }

    fn health_changed(&self, _from: Health, _to: Health, _cause: &str) {
        self.any.store(true, Ordering::Relaxed);
    }
}

impl Round {
    /// The value of an operation that went well; `None` when it failed as it may.
    ///
    /// # Panics
    /// When it may not fail so.
    fn allow<T>(&self, what: &str, outcome: Result<T>) -> Option<T> {
        let error = match outcome {
            Ok(value) => return Some(value),
            Err(error) => error,
        };
        self.told.any.store(true, Ordering::Relaxed);
        let fine = match error.kind() {
            _ if self.files.is_stopped() => true,
            // The kind depends on the wrong bytes.
            ErrorKind::Corruption | ErrorKind::NotSupported => self.lying,
            ErrorKind::Io | ErrorKind::NoSpace | ErrorKind::Poisoned | ErrorKind::Aborted => {
                self.failing
            }
            _ => false,
        };
        assert!(fine, "{what} on a well disk: {error:?}");
        None
    }

    /// Whether the last fault struck an operation that is retried or optional.
    fn may_go_untold(&self) -> bool {
        let struck = self.files.struck();
        struck.is_none_or(|(op, _)| matches!(op, OpKind::Open | OpKind::Info | OpKind::FreeSpace))
    }

    /// Whether the tasks should end.
    fn is_over(&self) -> bool {
        self.files.is_stopped()
    }

    fn nap(&self, rng: &mut Rng) {
        let micros = 1 << rng.below(20);
        self.scheduler.sleep(Duration::from_micros(micros));
    }
}

/// One run.
struct World {
    setup: Setup,
    rng: Rng,
    scheduler: Arc<Scheduler>,
    counts: Arc<Counts>,
    shears: Option<Arc<cuts::Shears>>,
}

/// Runs `case` and reports the outcome.
pub fn run(case: &Case) -> Report {
    let setup = Setup::draw(case);
    let scheduler = Scheduler::new(case.seed, setup.order, STEPS_MAX);
    let counts = Arc::new(Counts::default());
    let shears = cuts::Shears::of(case, &setup);
    let mut world = World {
        setup,
        shears: shears.clone(),
        rng: Rng::new(case.seed ^ 0x0123_4567),
        scheduler: Arc::clone(&scheduler),
        counts: Arc::clone(&counts),
    };
    let end = simulate(&scheduler, move || world.live());
    let get = |count: &AtomicU64| count.load(Ordering::Relaxed);
    Report {
        hash: scheduler.hash(),
        failure: shears.and_then(|shears| shears.wrong()).or(match end {
            End::Done => None,
            End::Failed(why) => Some(why),
        }),
        batches: get(&counts.batches),
        checks: get(&counts.checks),
        cuts: get(&counts.cuts),
        injected: get(&counts.injected),
        images: get(&counts.images),
        refused: get(&counts.refused),
        steps: scheduler.steps(),
        virtual_time: scheduler.now(),
    }
}

impl World {
    fn live(&mut self) {
        let mut disk = StrictMemFileSystem::new();
        let mut history = History::default();
        let mut demand = Demand::Synced;
        for _ in 0..self.setup.rounds {
            let told = Arc::new(Told::default());
            let (db, files) = self.recover(disk, &mut history, &mut demand, &told);
            let (memory, files) = files;
            let history_now = self.base(&db, &mut history);
            let plan = faults::Plan::draw(&mut self.rng, &self.setup);
            let round = Arc::new(Round {
                db,
                setup: self.setup.clone(),
                scheduler: Arc::clone(&self.scheduler),
                counts: Arc::clone(&self.counts),
                history: Arc::new(Mutex::new(history_now)),
                told,
                failing: plan.fails(),
                lying: plan.lies(),
                files,
            });
            let sure = !plan.fails();
            self.imagine_cuts(&round.files, &memory, &round.history, sure, Demand::Acked);
            plan.arm(&round.files, &memory, &self.scheduler);
            self.work(&round, &plan, &memory);
            if !round.is_over() {
                plan.disarm(&round.files, &memory);
                self.drain(&round);
                if self.rng.one_in(3) {
                    round.allow("close", round.db.clone().close());
                }
            }
            round.files.set_observer(None);
            (disk, demand) = self.cut(&memory);
            let round = Arc::into_inner(round).expect("every task has ended");
            let injected = round.files.injected();
            self.counts.injected.fetch_add(injected, Ordering::Relaxed);
            // With a stopped machine, or poisoned, it cannot be closed well.
            drop(round.db);
            self.note_disk(&disk);
            history = std::mem::take(&mut *round.history.lock());
        }
        let told = Arc::new(Told::default());
        let (db, _) = self.recover(disk, &mut history, &mut demand, &told);
        db.close().expect("the disk is well");
    }

    fn note_disk(&self, disk: &StrictMemFileSystem) {
        for (path, bytes) in disk.snapshot_files() {
            let path = drumlin_base::checksum::xxh3_64(path.as_os_str().as_encoded_bytes());
            let bytes = drumlin_base::checksum::xxh3_64(&bytes);
            self.scheduler.note(&[path, bytes]);
        }
    }

    fn options(&self, files: &FaultFileSystem, told: &Arc<Told>) -> Options {
        Options {
            listener: Some(Arc::clone(told) as _),
            ..self.setup.options(Arc::new(files.clone()), &self.scheduler)
        }
    }

    /// Lets the tasks work until they end.
    fn work(&mut self, round: &Arc<Round>, plan: &faults::Plan, memory: &StrictMemFileSystem) {
        let spawner = Tasked(Arc::clone(&self.scheduler));
        let mut tasks: Vec<Box<dyn JoinHandle>> = Vec::new();
        let mut start = |name: String, body: fn(&Round, u64, Rng), index: u64| {
            let (round, rng) = (Arc::clone(round), self.rng.fork());
            let body = Box::new(move || body(&round, index, rng));
            tasks.push(spawner.spawn(&name, body).expect("threads are there"));
        };
        for index in 0..self.setup.writers {
            start(format!("writer {index}"), writer::live, index);
        }
        for index in 0..self.setup.readers {
            start(format!("reader {index}"), reader::live, index);
        }
        if self.setup.has(Part::Chores) {
            start("chores".into(), chores::live, 0);
        }
        if self.setup.has(Part::Families) {
            start("families".into(), chores::families, 0);
        }
        if self.setup.has(Part::Checkpoints) {
            start("checkpoints".into(), chores::checkpoints, 0);
        }
        if round.failing {
            // Faults end after a time, so that tasks that wait for the disk go on in the end.
            let millis = self.rng.below(20_000);
            self.scheduler.sleep(Duration::from_millis(millis));
            plan.disarm(&round.files, memory);
        }
        for task in tasks {
            task.join().expect("a panic ends the run");
        }
    }

    /// The disk is healthy: everything drains, and then all rows must be right.
    fn drain(&self, round: &Round) {
        let begin = self.scheduler.now();
        loop {
            let outcome = round.db.wait_for_background();
            let health = round.db.health();
            if health == Health::Poisoned {
                assert!(round.failing, "poisoned by nothing");
                break;
            }
            if outcome.is_ok() && health == Health::Healthy {
                break;
            }
            let paused = health == Health::BackgroundPaused;
            if paused && round.lying {
                break; // data that seemed damaged is not compacted any more
            }
            if health == Health::WriteStopped {
                writer::probe(round); // It heals when somebody writes.
            }
            let waited = self.scheduler.now() - begin;
            assert!(
                waited < DRAIN_MAX,
                "not drained after {waited:?}: {health:?}, {outcome:?}"
            );
            self.scheduler.sleep(Duration::from_secs(1));
        }
        let waited = self.scheduler.now() - begin;
        assert!(waited < DRAIN_MAX, "drained only after {waited:?}");
        let told = round.told.any.load(Ordering::Relaxed);
        assert!(
            told || round.files.injected() == 0 || round.lying || round.may_go_untold(),
            "an injected error was swallowed: {:?}",
            round.files.struck()
        );
        round.look_at_all();
        assert!(!drumlin_base::bug!("canary"), "the canary fell");
    }

    /// Cuts the power or kills the process.
    fn cut(&mut self, memory: &StrictMemFileSystem) -> (StrictMemFileSystem, Demand) {
        let policy = CrashPolicy::ALL[self.rng.below(9) as usize];
        Counts::add(&self.counts.cuts);
        let disk = memory.crash(self.rng.next_u64(), policy);
        disk.set_quota(u64::MAX);
        let demand = match policy {
            CrashPolicy::KeepAll => Demand::Acked,
            _ => Demand::Synced,
        };
        (disk, demand)
    }
}

/// The fate of a failed write, as far as it is known.
fn fate_of_failed(round: &Round) -> Fate {
    if round.is_over() {
        Fate::Open
    } else {
        Fate::Failed
    }
}
