//! Waiting for the background, or doing its work where it has no thread.

use std::sync::Arc;
use std::time::Duration;

use drumlin_base::sync::MutexGuard;
use drumlin_base::{Error, ErrorKind, Result};
use drumlin_memtable::Memtable;

use crate::background::background::Background;
use crate::background::run::check_cancelled;
use crate::compaction::CancelToken;
use crate::store::state::State;
use crate::watch::events::Health;

/// How often a caller checks whether its compaction was cancelled.
const CANCEL_PAUSE: Duration = Duration::from_millis(20);

/// Failures of the background in a row, several seconds of them, after which a manual compaction that
/// waits for its turn gives up.
const PATIENCE: u32 = 8;

impl Background {
    /// Waits until the entries in `memtable` of the family are in a table.
    pub(crate) fn wait_for_table_of(&self, id: u32, memtable: &Arc<Memtable>) -> Result<()> {
        self.wait_until(|state| {
            state.families.get(&id).is_none_or(|family| {
                let mut line = family.immutables.iter();
                !line.any(|immutable| Arc::ptr_eq(&immutable.memtable, memtable))
            })
        })
        .map(drop)
    }

    /// The state once the family has no immutable memtable.
    pub(crate) fn wait_for_flushed(&self, id: u32) -> Result<MutexGuard<'_, State>> {
        self.wait_until(|state| {
            state
                .families
                .get(&id)
                .is_none_or(|f| f.immutables.is_empty())
        })
    }

    /// The state once `done` says so, and no flush failed meanwhile. An earlier failure is no
    /// reason to give up: the flush is tried again while this waits.
    ///
    /// # Errors
    /// The failure that keeps the background from getting there.
    pub(crate) fn wait_until(
        &self,
        done: impl Fn(&State) -> bool,
    ) -> Result<MutexGuard<'_, State>> {
        let mut state = self.store.lock_state();
        let failures = state.flush_failures;
        while !done(&state) {
            self.store.check_open()?;
            if self.store.health() == Health::Poisoned || state.flush_failures > failures {
                return Err(self.store.refusal(&state));
            }
            state = self.help_or_wait(state)?;
        }
        Ok(state)
    }

    /// Waits for the background, or, where no thread works in it, does one job itself.
    pub(crate) fn help_or_wait<'a>(
        &'a self,
        state: MutexGuard<'a, State>,
    ) -> Result<MutexGuard<'a, State>> {
        if !self.store.runs_inline() {
            return Ok(self.store.wait_for_background(state));
        }
        drop(state);
        let worked = self.run_one()?;
        let state = self.store.lock_state();
        Ok(match worked {
            true => state,
            false => self.store.wait_for_background(state),
        })
    }

    /// Waits until no job runs, none is due, and all obsolete files are removed, but for those that somebody
    /// still reads. Where nothing may be written nothing is done, whatever is due.
    pub(crate) fn wait_for_idle(&self) -> Result<()> {
        if self.store.id.read_only {
            return Ok(());
        }
        let failures = {
            let mut state = self.store.lock_state();
            if self.store.health() == Health::Healthy {
                // Kept by readers when the last job ended.
                self.store.remove_obsolete(&mut state);
            }
            // Time, a released snapshot or a read may have made a compaction due without waking the
            // threads: without this they would find it at their next look, up to a second from now.
            self.store.changed.notify_all();
            state.compaction_failures
        };
        let failed = |state: &State| {
            state.compaction_blocked.is_some() || state.compaction_failures > failures
        };
        let state = self.wait_until(|state| {
            // A job of a family that was dropped meanwhile runs on.
            let flushing = state.flushes_running > 0
                || state
                    .families
                    .values()
                    .any(|f| f.flushing || !f.immutables.is_empty());
            let compacting = state.compactions_running > 0 || self.compaction_is_due(state);
            if !flushing && !compacting {
                self.store.release_trash();
            }
            (!flushing && !compacting && self.store.files.trash.is_empty()) || failed(state)
        })?;
        match failed(&state) {
            true => Err(self.store.refusal(&state)),
            false => Ok(()),
        }
    }

    /// Does one job for the request, as the background has no thread, or waits for those who do; the state then.
    fn work_or_wait<'a>(
        &'a self,
        state: MutexGuard<'a, State>,
        id: u64,
    ) -> Result<MutexGuard<'a, State>> {
        drop(state);
        let worked = self.run_one();
        let mut state = self.store.lock_state();
        match worked {
            Ok(true) => Ok(state),
            // Looking for a piece may have found that there is none left.
            Ok(false) if state.manual.has_ended(id) => Ok(state),
            Ok(false) => Ok(self.store.wait_for_background(state)),
            Err(error) => {
                state.manual.remove(id);
                Err(error)
            }
        }
    }

    /// Waits until the request has ended, or is cancelled, or the database is closed; then it is gone.
    pub(crate) fn wait_for_manual(&self, id: u64, cancel: Option<&CancelToken>) -> Result<()> {
        let mut state = self.store.lock_state();
        loop {
            let hopeless = self.store.health() == Health::Poisoned
                || (state.failures_in_row >= PATIENCE
                    && !drumlin_base::bug!("manual-waits-for-ever"));
            let hopeless = hopeless.then(|| self.store.refusal(&state));
            let Some(request) = state.manual.get(id) else {
                return Err(Error::new(
                    ErrorKind::Aborted,
                    "the compaction was forgotten",
                ));
            };
            let is_running = request.running;
            let ended = request.outcome.take();
            let stop = self
                .store
                .check_open()
                .and_then(|()| check_cancelled(cancel));
            let given_up = hopeless.or(stop.err());
            if is_running {
                request.outcome = ended;
            } else if let Some(outcome) = ended.or(given_up.map(Err)) {
                state.manual.remove(id);
                return outcome;
            }
            state = match (self.store.runs_inline(), cancel) {
                (true, _) => self.work_or_wait(state, id)?,
                (false, Some(_)) => self.store.changed.wait_for(state, CANCEL_PAUSE),
                (false, None) => self.store.wait_for_background(state),
            };
        }
    }
}
