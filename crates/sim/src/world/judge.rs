//! Opens the disk that a power cut would leave, beside the run, and reports the fault, if there is
//! one.
//!
//! The judge has a thread of its own that is no task of the scheduler. The task that asks waits for the
//! verdict with the baton in hand, so the run goes on as if nothing had been asked. Its databases have no
//! threads. Some recoveries are cut again, some databases that opened are written to and cut once more.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use drumlin::{Db, Env, Error, ErrorKind, Options, WriteOptions};
use drumlin_base::rng::Rng;
use drumlin_fs::{
    CrashPolicy, FaultFileSystem, FileSystem, ManualClock, Observer, OpKind, QueueSpawner,
    StrictMemFileSystem,
};
use parking_lot::Mutex;

use super::DIR;
use super::look::read_log;
use super::recover::check;
use crate::history::{Demand, History};
use crate::model::LOG;
use crate::setup::Setup;

/// The depth of nested cuts: a recovery may be cut, the result recovered, and that recovery cut
/// again.
const DEPTH_MAX: u32 = 3;
/// One changing operation of a recovery in so many is a place for a cut.
const RECOVERY_CUT_ONE_IN: u64 = 24;
/// Most cuts of one recovery.
const RECOVERY_CUTS_MAX: usize = 2;

/// Open files of a database that was left to choose.
const OPEN_FILES: usize = 40;

/// A key the judge writes to a database it opened.
const AFTER: &[u8] = b"!after";

/// A disk after a cut, and the demand on it.
pub(super) struct Question {
    pub(super) disk: StrictMemFileSystem,
    pub(super) policy: CrashPolicy,
    pub(super) history: History,
    /// The demand after a killed process.
    pub(super) floor: Demand,
    pub(super) rng: Rng,
}

/// The findings, and the history with the order it learned.
pub(super) struct Verdict {
    pub(super) history: History,
    /// Power cuts judged.
    pub(super) cuts: u64,
    /// Cuts after which the directory opened only with `point_in_time_recovery`; see [`looks_like_rot`].
    pub(super) refused: u64,
    pub(super) wrong: Option<String>,
}

/// The thread that judges. Ends when this is dropped.
#[derive(Debug)]
pub(super) struct Judge {
    questions: Sender<(Question, Sender<Verdict>)>,
}

impl Judge {
    /// A judge of databases of `setup`.
    pub(super) fn start(setup: &Setup) -> Self {
        let (questions, asked) = channel();
        let setup = setup.clone();
        let thread = std::thread::Builder::new().name("judge".into());
        let body = move || sit(&setup, &asked);
        thread.spawn(body).expect("threads are there");
        Self { questions }
    }

    /// Waits for the verdict, in real time.
    pub(super) fn ask(&self, question: Question) -> Verdict {
        let (reply, verdict) = channel();
        let sent = self.questions.send((question, reply));
        sent.expect("the judge outlives who asks");
        verdict.recv().expect("the judge answers")
    }
}

fn sit(setup: &Setup, asked: &Receiver<(Question, Sender<Verdict>)>) {
    while let Ok((question, reply)) = asked.recv() {
        let mut case = Hearing {
            setup,
            rng: question.rng,
            history: question.history,
            cuts: 0,
            refused: 0,
        };
        let demand = demanded(question.policy, question.floor);
        let heard = catch_unwind(AssertUnwindSafe(|| {
            case.hear(&question.disk, question.policy, demand, None, 0)
        }));
        let wrong = match heard {
            Ok(outcome) => outcome.err(),
            Err(payload) => Some(format!("a panic: {}", said(&*payload))),
        };
        let verdict = Verdict {
            history: case.history,
            cuts: case.cuts,
            refused: case.refused,
            wrong,
        };
        // The asking task waits: it can only be gone with the whole run.
        let _ = reply.send(verdict);
    }
}

fn said(payload: &(dyn std::any::Any + Send)) -> String {
    let text = payload
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned());
    text.or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_default()
}

/// The demand after a crash of `policy`, when `floor` is the one after a killed process.
pub(super) fn demanded(policy: CrashPolicy, floor: Demand) -> Demand {
    match policy {
        CrashPolicy::KeepAll => floor,
        _ => Demand::Synced,
    }
}

/// A policy that is a power cut, or, seldom, a kill.
pub(super) fn draw_policy(rng: &mut Rng) -> CrashPolicy {
    loop {
        let policy = CrashPolicy::ALL[rng.below(9) as usize];
        if policy != CrashPolicy::KeepAll || rng.one_in(4) {
            return policy;
        }
    }
}

/// Whether a refusal is the stated limit: a write too long to be mended was torn so that it differs in a single bit
/// from the old bytes of a recycled WAL. No reader can distinguish that from a flipped bit; no promised write is lost.
fn looks_like_rot(error: &Error, policy: CrashPolicy) -> bool {
    let tears = !matches!(policy, CrashPolicy::KeepNothing | CrashPolicy::KeepAll);
    tears && error.kind() == ErrorKind::Corruption && error.to_string().contains("one flipped bit")
}

/// Takes images while a recovery runs.
#[derive(Debug)]
struct Interruptions {
    disk: StrictMemFileSystem,
    state: Mutex<(Rng, Vec<(CrashPolicy, StrictMemFileSystem)>)>,
}

impl Observer for Interruptions {
    fn before(&self, op: OpKind, _path: &Path) {
        let (rng, images) = &mut *self.state.lock();
        let due = op.changes_disk() && rng.one_in(RECOVERY_CUT_ONE_IN);
        if due && images.len() < RECOVERY_CUTS_MAX {
            let policy = draw_policy(rng);
            images.push((policy, self.disk.crash_image(rng.next_u64(), policy)));
        }
    }
}

struct Hearing<'a> {
    setup: &'a Setup,
    rng: Rng,
    history: History,
    cuts: u64,
    refused: u64,
}

impl Hearing<'_> {
    fn options(&self, files: Arc<dyn FileSystem>) -> Options {
        let env = Env {
            files,
            clock: Arc::new(ManualClock::new(1_000_000)),
            spawner: Arc::new(QueueSpawner::new()),
            seed: 7,
        };
        let options = self.setup.options_in(env);
        Options {
            background_threads: Some(0),
            // Places for tens of thousands of files cost more than all the rest of an open.
            max_open_files: options.max_open_files.or(Some(OPEN_FILES)),
            ..options
        }
    }

    /// Opens the database that a cut of `policy` left on `files`, also past damage that looks like
    /// rot.
    fn open(&mut self, files: Arc<dyn FileSystem>, policy: CrashPolicy) -> Result<Db, Error> {
        let mut options = self.options(files);
        let opened = Db::open_all_families(DIR, options.clone());
        match &opened {
            Err(error) if looks_like_rot(error, policy) => {
                self.refused += 1;
                options.point_in_time_recovery = true;
                Db::open_all_families(DIR, options)
            }
            _ => opened,
        }
    }

    /// Judges the database that a cut of `policy` left on `disk`. `shown` is the log that an
    /// earlier open had.
    fn hear(
        &mut self,
        disk: &StrictMemFileSystem,
        policy: CrashPolicy,
        demand: Demand,
        shown: Option<&[usize]>,
        depth: u32,
    ) -> Result<(), String> {
        self.cuts += u64::from(policy != CrashPolicy::KeepAll);
        disk.set_quota(u64::MAX);
        let observer = Arc::new(Interruptions {
            disk: disk.clone(),
            state: Mutex::new((self.rng.fork(), Vec::new())),
        });
        let files = FaultFileSystem::over_memory(disk);
        if depth < DEPTH_MAX {
            files.set_observer(Some(Arc::clone(&observer) as _));
        }
        let opened = self.open(Arc::new(files.clone()), policy);
        let place = format!("{policy:?} at depth {depth}");
        let db = opened.map_err(|error| format!("{place}: opening: {error:?}"))?;
        let told = |error: Error| format!("{place}: {error:?}");
        let log = read_log(&db).map_err(told)?;
        if shown.is_some_and(|shown| shown != log) {
            let lens = (shown.map(<[usize]>::len), log.len());
            return Err(format!("{place}: batches shown have changed: {lens:?}"));
        }
        files.set_observer(None);
        let known = self.history.recovered(&log, demand);
        let known = known.and_then(|()| check(&db, &mut self.history, log.len()));
        known.map_err(|why| format!("{place} ({demand:?}): {why}"))?;
        if depth < DEPTH_MAX {
            self.cut_again(&db, disk, &log, depth)?;
        }
        drop(db);
        let images = std::mem::take(&mut observer.state.lock().1);
        for (policy, image) in images {
            let demand = demanded(policy, demand);
            // The inner cut came before this recovery had shown its batches.
            self.hear(&image, policy, demand, shown, depth + 1)?;
        }
        Ok(())
    }

    /// Checks after one more cut that the batches shown once stay, and that a write synced now is
    /// present.
    fn cut_again(
        &mut self,
        db: &Db,
        disk: &StrictMemFileSystem,
        log: &[usize],
        depth: u32,
    ) -> Result<(), String> {
        if !self.rng.one_in(6) {
            return Ok(());
        }
        let writes = self.rng.one_in(2);
        if writes {
            let put = db.put_cf(db.default_family(), AFTER, b"yes", &WriteOptions::synced());
            put.map_err(|error| format!("a write after recovery: {error:?}"))?;
        }
        let policy = draw_policy(&mut self.rng);
        let image = disk.crash_image(self.rng.next_u64(), policy);
        if !writes {
            return self.hear(&image, policy, Demand::Synced, Some(log), depth + 1);
        }
        self.cuts += u64::from(policy != CrashPolicy::KeepAll);
        let opened = self.open(Arc::new(image), policy);
        let read = opened.and_then(|db| Ok((db.get(AFTER)?, db.get(LOG)?)));
        let (after, kept) = read.map_err(|error| format!("after a write: {error:?}"))?;
        let before = db.get(LOG).map_err(|error| format!("{error:?}"))?;
        match after.as_deref() == Some(b"yes") && kept.as_deref() == before.as_deref() {
            true => Ok(()),
            false => Err(format!("{policy:?} lost what was synced after a recovery")),
        }
    }
}
