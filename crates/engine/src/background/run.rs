//! Running a picked job: it is carried out behind a net for panics, and its end is booked.
//!
//! [`Background::run_one`] picks one job and runs it on the calling thread. The threads are loops around it, and a
//! simulator calls it in an order of its own.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use drumlin_base::{Error, ErrorKind, Result};

use crate::background::background::Background;
use crate::background::compaction_job::Orders;
use crate::background::pick::Job;
use crate::compaction::progress::Watcher;
use crate::compaction::{CancelToken, Plan};
use crate::store::state::State;
use crate::watch::events::{CompactionInfo, Health};

impl Background {
    /// Picks and runs one job on the calling thread; false when there is none.
    ///
    /// # Errors
    /// The job's; it has been counted and will be retried.
    pub(crate) fn run_one(&self) -> Result<bool> {
        let job = self.pick(&mut self.store.lock_state(), true);
        job.map_or(Ok(false), |job| self.run(job, false).map(|()| true))
    }

    /// Runs a job, catches panics of user callbacks, and books its end. With `delivers`, which requires that the caller
    /// holds no lock, the listener has its notices before the job counts as ended.
    pub(crate) fn run(&self, job: Job, delivers: bool) -> Result<()> {
        let is_flush = matches!(job, Job::Flush(_));
        let (id, request) = match &job {
            Job::Flush(id) | Job::Compact(id, _) => (*id, None),
            Job::Manual(request, id, _) => (*id, Some(*request)),
        };
        let body = AssertUnwindSafe(|| match job {
            Job::Flush(id) => self.run_flush(id),
            Job::Compact(id, plan) if plan.reason.can_wait() => self.run_in_quiet(id, &plan),
            Job::Compact(id, plan) => {
                let orders = self.watched(&plan, None);
                self.run_compaction(id, &plan, orders).map(drop)
            }
            Job::Manual(request, id, plan) => self.run_manual(request, id, &plan),
        });
        let outcome = catch_unwind(body).unwrap_or_else(|_| panicked());
        if delivers {
            self.store.watch.notices.deliver();
        }
        let mut state = self.store.lock_state();
        self.book_end(&mut state, id, is_flush);
        let request = request.and_then(|request| state.manual.get(request));
        let outcome = match (request, outcome) {
            (None, outcome) => outcome,
            (Some(request), outcome) => {
                debug_assert!(request.running, "a piece that ends was running");
                request.running = false;
                // The caller gets the error; nothing the store needs has failed.
                request.outcome = outcome.err().map(Err);
                Ok(())
            }
        };
        let outcome = self.settle(&mut state, is_flush, outcome);
        self.store.changed.notify_all();
        outcome
    }

    /// Carries out a plan that the caller chose and began, on the calling thread: what was done, unless the family is gone.
    ///
    /// # Errors
    /// The job's: nothing the store needs has failed.
    pub(crate) fn run_chosen(
        &self,
        id: u32,
        plan: &Plan,
        mut orders: Orders,
        cancel: Option<CancelToken>,
    ) -> Result<Option<CompactionInfo>> {
        orders.watcher = Some(Arc::new(Interrupter {
            background: None,
            only_flushes: false,
            cancel,
            seen: AtomicU64::new(0),
        }));
        let body = AssertUnwindSafe(|| self.run_compaction(id, plan, orders));
        let outcome = catch_unwind(body).unwrap_or_else(|_| panicked());
        self.store.watch.notices.deliver();
        let mut state = self.store.lock_state();
        self.book_end(&mut state, id, false);
        self.settle(&mut state, false, Ok(()))?;
        self.store.changed.notify_all();
        outcome
    }

    /// The job does not run any more.
    fn book_end(&self, state: &mut State, id: u32, is_flush: bool) {
        let running = match is_flush {
            true => &mut state.flushes_running,
            false => &mut state.compactions_running,
        };
        assert!(*running > 0, "a job that ends was running");
        *running -= 1;
        if is_flush && let Some(family) = state.families.get_mut(&id) {
            assert!(family.flushing, "a flush that ends was noted");
            family.flushing = false;
        }
    }

    /// Counts the job's failure, or clears an earlier one.
    fn settle(&self, state: &mut State, is_flush: bool, outcome: Result<()>) -> Result<()> {
        match outcome {
            Err(error) if error.kind() == ErrorKind::Shutdown => Ok(()),
            Err(error) => {
                self.job_failed(state, is_flush, &error);
                Err(error)
            }
            Ok(()) => {
                // Only now that the job is gone does nobody hold the tables it replaced.
                self.store.remove_obsolete(state);
                state.flush_failing &= !is_flush;
                let well = !state.flush_failing && state.compaction_blocked.is_none();
                if self.store.health() == Health::BackgroundPaused && well {
                    self.store.recover_health(state);
                }
                Ok(())
            }
        }
    }

    fn job_failed(&self, state: &mut State, is_flush: bool, error: &Error) {
        state.failures_in_row += 1;
        match is_flush {
            true => state.flush_failures += 1,
            false => state.compaction_failures += 1,
        }
        state.flush_failing |= is_flush;
        tracing::warn!(is_flush, %error, "a background job failed");
        if !is_flush && matches!(error.kind(), ErrorKind::Corruption | ErrorKind::Aborted) {
            state.compaction_blocked = Some(error.duplicate());
        }
        if !drumlin_base::bug!("failed-job-leaves-health") {
            self.store.degrade(state, Health::BackgroundPaused, error);
        }
    }

    /// Carries out a piece of a manual compaction. Its error goes to the caller who asked.
    pub(crate) fn run_manual(&self, id: u64, family: u32, plan: &Plan) -> Result<()> {
        let cancel = self
            .store
            .lock_state()
            .manual
            .get(id)
            .and_then(|it| it.cancel.clone());
        let orders = self.watched(plan, cancel);
        let outcome = self.run_compaction(family, plan, orders).map(drop);
        let mut state = self.store.lock_state();
        let order = state
            .families
            .get(&family)
            .map(|family| family.family.options.order.clone());
        if let (Some(request), Some(order)) = (state.manual.get(id), order)
            && outcome.is_ok()
        {
            request.work.done(plan, &order);
        }
        outcome
    }

    fn watched(&self, plan: &Plan, cancel: Option<CancelToken>) -> Orders {
        Orders {
            watcher: self.watcher(plan, cancel),
            ..Orders::default()
        }
    }

    /// The watcher of a job that carries out `plan`; none where no threads work in the background,
    /// so that a run depends on its caller alone.
    pub(crate) fn watcher(
        &self,
        plan: &Plan,
        cancel: Option<CancelToken>,
    ) -> Option<Arc<dyn Watcher>> {
        let outranked = match self.store.settings.threads() {
            0 => false,
            1 => !drumlin_base::bug!("only-thread-not-lent"),
            // One thread only flushes, and L0 does not wait for itself.
            _ => plan.level > 0,
        };
        let background = outranked.then(|| self.me.clone());
        if background.is_none() && cancel.is_none() {
            return None;
        }
        Some(Arc::new(Interrupter {
            background,
            only_flushes: plan.level == 0,
            cancel,
            seen: AtomicU64::new(0),
        }))
    }
}

fn panicked<T>() -> Result<T> {
    Err(Error::new(
        ErrorKind::Aborted,
        "a background job panicked, most likely in a callback",
    ))
}

pub(super) fn check_cancelled(cancel: Option<&CancelToken>) -> Result<()> {
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
    background: Option<Weak<Background>>,
    /// The job empties L0 itself.
    only_flushes: bool,
    cancel: Option<CancelToken>,
    /// Changes of the state up to which nothing urgent was found.
    seen: AtomicU64,
}

impl Watcher for Interrupter {
    fn check(&self) -> Result<()> {
        check_cancelled(self.cancel.as_ref())?;
        let Some(background) = self.background.as_ref().and_then(Weak::upgrade) else {
            return Ok(());
        };
        loop {
            // A job ends at once when the store closes, which is no error of its, and stays due.
            background.store.check_open()?;
            // Relaxed: a change missed now is seen at the next check.
            let changes = background.store.changes.load(Ordering::Relaxed);
            if self.seen.swap(changes, Ordering::Relaxed) == changes {
                return Ok(());
            }
            let urgent =
                background.pick_urgent(&mut background.store.lock_state(), self.only_flushes);
            let Some(job) = urgent else {
                return Ok(());
            };
            if background.run(job, false).is_err() {
                return Ok(()); // It was counted, and is tried again by a thread that backs off.
            }
        }
    }
}
