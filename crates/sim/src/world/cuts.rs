//! Power cuts imagined at operations of a run that change the disk.
//!
//! The run does not notice: the disk's image is taken and judged while no other task can run
//! ([`super::judge`]). The cuts tried at an operation depend on the seed and the operation's number
//! alone, so one of them can be replayed without the others.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use drumlin_base::rng::Rng;
use drumlin_fs::{FaultFileSystem, Observer, OpKind, StrictMemFileSystem};
use parking_lot::Mutex;

use super::judge::{Judge, Question, draw_policy};
use super::{Counts, World};
use crate::history::{Demand, History};
use crate::setup::{Case, Setup};

/// Cuts are imagined at one operation in so many, at random: more runs find more than more cuts of
/// each.
const OPERATIONS: u64 = 8;

/// The state that the cuts of a run share.
#[derive(Debug)]
pub(super) struct Shears {
    case: Case,
    judge: Judge,
    /// Changing operations so far.
    operations: AtomicU64,
    /// The first failure. Kept beside the panic, which the engine catches in its threads.
    wrong: Mutex<Option<String>>,
}

impl Shears {
    /// Those that `case` asks for.
    pub(super) fn of(case: &Case, setup: &Setup) -> Option<Arc<Self>> {
        let shears = || Self {
            case: case.clone(),
            judge: Judge::start(setup),
            operations: AtomicU64::new(0),
            wrong: Mutex::new(None),
        };
        (case.images > 0).then(|| Arc::new(shears()))
    }

    /// The failure of the first cut that lost something.
    pub(super) fn wrong(&self) -> Option<String> {
        self.wrong.lock().clone()
    }
}

/// Cuts the power of one disk.
#[derive(Debug)]
struct Cutter {
    shears: Arc<Shears>,
    disk: StrictMemFileSystem,
    history: Arc<Mutex<History>>,
    /// Whether no batch can fail: then the order on any image is that of the run.
    sure: bool,
    floor: Demand,
    counts: Arc<Counts>,
}

impl World {
    /// Has cuts imagined from now on, if the case asks for them. `floor` is the demand after a killed
    /// process.
    pub(super) fn imagine_cuts(
        &self,
        files: &FaultFileSystem,
        disk: &StrictMemFileSystem,
        history: &Arc<Mutex<History>>,
        sure: bool,
        floor: Demand,
    ) {
        let Some(shears) = &self.shears else { return };
        files.set_observer(Some(Arc::new(Cutter {
            shears: Arc::clone(shears),
            disk: disk.clone(),
            history: Arc::clone(history),
            sure,
            floor,
            counts: Arc::clone(&self.counts),
        })));
    }
}

impl Observer for Cutter {
    fn before(&self, op: OpKind, path: &Path) {
        if !op.changes_disk() {
            return;
        }
        let case = &self.shears.case;
        let operation = self.shears.operations.fetch_add(1, Ordering::Relaxed);
        if case.at.is_some_and(|at| at != operation) {
            return;
        }
        let mut rng = Rng::new(case.seed.rotate_left(32) ^ operation);
        if !rng.one_in(OPERATIONS) && case.at.is_none() {
            return;
        }
        for _ in 0..case.images {
            self.cut(&mut rng, operation, op, path);
        }
    }
}

impl Cutter {
    fn cut(&self, rng: &mut Rng, operation: u64, op: OpKind, path: &Path) {
        let policy = draw_policy(rng);
        let mut history = self.history.lock();
        let verdict = self.shears.judge.ask(Question {
            disk: self.disk.crash_image(rng.next_u64(), policy),
            policy,
            history: match self.sure {
                true => std::mem::take(&mut *history),
                false => history.clone(),
            },
            floor: self.floor,
            rng: rng.fork(),
        });
        if self.sure {
            // The order of batches that an image shows holds for the run too.
            *history = verdict.history;
        }
        drop(history);
        let counts = &self.counts;
        counts.images.fetch_add(verdict.cuts, Ordering::Relaxed);
        counts.refused.fetch_add(verdict.refused, Ordering::Relaxed);
        if let Some(why) = verdict.wrong {
            let place = path.display();
            let why = format!("cut at operation {operation} ({op:?} of {place}): {why}");
            self.shears.wrong.lock().get_or_insert(why.clone());
            panic!("{why}");
        }
    }
}
