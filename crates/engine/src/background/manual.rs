//! Manual compactions: their pieces go through the scheduler like every other job, and a long job
//! lets a more urgent one go first.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use drumlin_base::{Error, ErrorKind, Result};

use crate::background::jobs::begin;
use crate::background::scheduler::Job;
use crate::compaction::progress::Watcher;
use crate::compaction::{CancelToken, CompactionStyle, ManualWork, Piece, Plan, Reason};
use crate::db::engine::{Engine, State};
use crate::family::column_family::ColumnFamily;
use crate::watch::events::Health;

/// How often whoever asked looks whether the compaction was cancelled.
const CANCEL_PAUSE: Duration = Duration::from_millis(20);

/// Failures of the background in a row, several seconds of them, after which a manual compaction that
/// waits for its turn gives up.
const PATIENCE: u32 = 8;

impl Engine {
    /// Compacts everything between `begin` and `end`, level by level, into the deepest one; returns
    /// when it is done.
    pub(crate) fn compact_range(
        &self,
        family: &ColumnFamily,
        (begin, end): (Option<&[u8]>, Option<&[u8]>),
        cancel: Option<&CancelToken>,
    ) -> Result<()> {
        let id = family.id();
        self.flush_family(id)?;
        if matches!(family.0.compaction.style, CompactionStyle::Fifo(_)) {
            return Ok(()); // Its tables stay as they are until they are dropped.
        }
        let request = {
            let mut state = self.lock_state();
            let view = state.family_mut(id)?;
            let work = ManualWork::new(&view.version, &view.family.compaction, begin, end);
            state.manual.push(id, work, cancel.cloned())
        };
        self.changes.fetch_add(1, Ordering::Relaxed);
        self.changed.notify_all();
        let outcome = self.wait_for_manual(request, cancel);
        // The inputs of the last piece are obsolete now, and nothing else may come by for long.
        self.remove_obsolete(&mut self.lock_state());
        outcome
    }

    /// Waits until the request has ended, or is cancelled, or the database is closed; then it is gone.
    fn wait_for_manual(&self, id: u64, cancel: Option<&CancelToken>) -> Result<()> {
        let mut state = self.lock_state();
        loop {
            let hopeless = self.health() == Health::Poisoned
                || (state.failures_in_row >= PATIENCE
                    && !drumlin_base::bug!("manual-waits-for-ever"));
            let hopeless = hopeless.then(|| self.refusal(&state));
            let Some(request) = state.manual.get(id) else {
                return Err(Error::new(
                    ErrorKind::Aborted,
                    "the compaction was forgotten",
                ));
            };
            let is_running = request.running;
            let ended = request.outcome.take();
            let stop = self.check_open().and_then(|()| check_cancelled(cancel));
            let given_up = hopeless.or(stop.err());
            if is_running {
                request.outcome = ended;
            } else if let Some(outcome) = ended.or(given_up.map(Err)) {
                state.manual.remove(id);
                return outcome;
            }
            state = match (self.options.background_threads, cancel) {
                (Some(0), _) => {
                    drop(state);
                    let worked = self.run_one();
                    state = self.lock_state();
                    match worked {
                        Ok(true) => state,
                        // Looking for a piece may have found that there is none left.
                        Ok(false) if state.manual.has_ended(id) => state,
                        Ok(false) => self.wait_for_background(state),
                        Err(error) => {
                            state.manual.remove(id);
                            return Err(error);
                        }
                    }
                }
                (_, Some(_)) => self.changed.wait_for(state, CANCEL_PAUSE),
                (_, None) => self.wait_for_background(state),
            };
        }
    }

    /// The next piece of some request, claimed and noted as running.
    pub(crate) fn pick_manual(&self, state: &mut State) -> Option<Job> {
        let State {
            manual, families, ..
        } = state;
        let mut picked = None;
        for request in manual.requests.iter_mut().filter(|it| it.is_waiting()) {
            let Some(view) = families.get_mut(&request.family) else {
                let message = "the column family was dropped";
                request.outcome = Some(Err(Error::invalid_argument(message)));
                self.changed.notify_all();
                continue;
            };
            let options = &view.family.compaction;
            match request.work.next(&view.version, options, &view.in_flight) {
                Piece::Done => {
                    request.outcome = Some(Ok(()));
                    self.changed.notify_all();
                }
                Piece::Plan(plan) if begin(view, &plan) => {
                    request.running = true;
                    picked = Some((request.id, request.family, plan));
                    break;
                }
                Piece::Plan(_) | Piece::Blocked => {}
            }
        }
        let (id, family, plan) = picked?;
        state.manual.count_piece(plan.input_bytes());
        state.compactions_running += 1;
        Some(Job::Manual(id, family, plan))
    }

    /// Carries out a piece. What goes wrong is told to whoever asked.
    pub(crate) fn run_manual(&self, id: u64, family: u32, plan: &Plan) -> Result<()> {
        let cancel = self
            .lock_state()
            .manual
            .get(id)
            .and_then(|it| it.cancel.clone());
        let outcome = self.run_compaction(family, plan, self.watcher(plan, cancel));
        let mut state = self.lock_state();
        let order = state
            .families
            .get(&family)
            .map(|view| view.family.options.order.clone());
        if let (Some(request), Some(order)) = (state.manual.get(id), order)
            && outcome.is_ok()
        {
            request.work.done(plan, &order);
        }
        outcome
    }

    /// Who looks after a job that carries out `plan`; nobody where no threads work in the background,
    /// so that a run depends on its caller alone.
    pub(crate) fn watcher(
        &self,
        plan: &Plan,
        cancel: Option<CancelToken>,
    ) -> Option<Arc<dyn Watcher>> {
        let outranked = match self.options.background_threads_count() {
            0 => false,
            1 => !drumlin_base::bug!("only-thread-not-lent"),
            // One thread only flushes, and L0 does not wait for itself.
            _ => plan.level > 0,
        };
        let engine = self.me.get().filter(|_| outranked).cloned();
        if engine.is_none() && cancel.is_none() {
            return None;
        }
        Some(Arc::new(Interrupter {
            engine,
            only_flushes: plan.level == 0,
            cancel,
            seen: AtomicU64::new(0),
        }))
    }

    /// What a running job may not keep waiting, when no thread is free: the flush, if this is the only
    /// thread, and unless `only_flushes` the compaction of L0.
    fn pick_urgent(&self, state: &mut State, only_flushes: bool) -> Option<Job> {
        if state.idle_threads > 0 {
            return None;
        }
        if self.options.background_threads_count() == 1
            && let Some(flush) = self.pick_flush(state)
        {
            return Some(flush);
        }
        if only_flushes {
            return None;
        }
        let (_, plan) = self
            .best_plan(state)
            .filter(|_| state.compaction_blocked.is_none())?;
        let is_urgent = plan.level == 0 && plan.reason != Reason::Manual;
        is_urgent.then(|| self.pick_automatic(state)).flatten()
    }
}

fn check_cancelled(cancel: Option<&CancelToken>) -> Result<()> {
    match cancel.is_some_and(CancelToken::is_cancelled) {
        true => Err(Error::new(
            ErrorKind::Aborted,
            "the compaction was cancelled",
        )),
        false => Ok(()),
    }
}

/// Has a compaction stop when it is cancelled, and carry out what is more urgent in between: its own
/// inputs stay claimed meanwhile, its output goes on where it was. At most three jobs nest: one below
/// L0, one of L0, a flush.
struct Interrupter {
    engine: Option<Weak<Engine>>,
    /// The job empties L0 itself.
    only_flushes: bool,
    cancel: Option<CancelToken>,
    /// Changes of the state up to which nothing urgent was found.
    seen: AtomicU64,
}

impl Watcher for Interrupter {
    fn check(&self) -> Result<()> {
        check_cancelled(self.cancel.as_ref())?;
        let Some(engine) = self.engine.as_ref().and_then(Weak::upgrade) else {
            return Ok(());
        };
        loop {
            // A job ends at once when the store closes, which is no error of its, and stays due.
            engine.check_open()?;
            // Relaxed: a change missed now is seen at the next check.
            let changes = engine.changes.load(Ordering::Relaxed);
            if self.seen.swap(changes, Ordering::Relaxed) == changes {
                return Ok(());
            }
            let urgent = engine.pick_urgent(&mut engine.lock_state(), self.only_flushes);
            let Some(job) = urgent else {
                return Ok(());
            };
            if engine.run(job, false).is_err() {
                return Ok(()); // It was counted, and is tried again by a thread that backs off.
            }
        }
    }
}
