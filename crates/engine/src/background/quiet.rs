//! Compactions that only reads gain by: when one may begin, and when it is given up.
//!
//! They are the last thing the background does: none begins while anything else runs or waits, and one
//! under way ends, with nothing done, as soon as writes want the thread or the tables it holds.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use drumlin_base::{Error, ErrorKind, Result};

use crate::background::background::Background;
use crate::background::compaction_job::Orders;
use crate::compaction::progress::Watcher;
use crate::compaction::{self, Plan};
use crate::store::state::State;
use crate::watch::reason::Reason;

impl Background {
    /// Carries out a claimed plan that only a quiet store does: one that reads have paid for, that
    /// uncovers garbage, or that recodes cheaply written tables. The charge is spent, however
    /// it ends: work that was given up must be paid for again.
    pub(crate) fn run_in_quiet(&self, id: u32, plan: &Plan) -> Result<()> {
        let watcher: Arc<dyn Watcher> = Arc::new(Yielding {
            background: self.me.clone(),
            family: id,
            score: plan.score,
            seen: AtomicU64::new(0),
        });
        for (_, file) in plan.files() {
            file.forget_reads();
        }
        let orders = Orders {
            watcher: Some(watcher),
            ..Orders::default()
        };
        match self.run_compaction(id, plan, orders).map(drop) {
            Err(error) if is_no_failure(&error) => {
                if error.kind() == ErrorKind::NoSpace {
                    self.store.watch.report_error(&error); // Health is unchanged, but the failure is reported.
                }
                if plan.reason == Reason::Reads {
                    self.store
                        .watch
                        .statistics
                        .compactions_for_reads_given_up
                        .bump();
                } else if error.kind() == ErrorKind::NoSpace
                    && let Ok(family) = self.store.lock_state().family_mut(id)
                {
                    family.no_space_at = Some(family.installs);
                }
                Ok(())
            }
            outcome => outcome,
        }
    }

    /// Whether a quiet store's compaction of `family` with this `score` delays other work.
    fn wants_background(&self, state: &State, family: u32, score: f64) -> bool {
        // By the tables: where this work has those below, no plan is found for them.
        let is_l0_due = state.families.get(&family).is_none_or(|family| {
            let settings = family.family.settings();
            compaction::l0_is_due(&family.version, &settings.compaction)
        });
        let mut families = state.families.values();
        let flush_waits = self.store.settings.threads() < 2
            && families.any(|family| !family.immutables.is_empty());
        // What is no more urgent would not be chosen before it, the next time either.
        let is_more_urgent = |(_, plan): (u32, Plan)| {
            plan.score > score || drumlin_base::bug!("yields-to-its-equals")
        };
        let is_thread_wanted =
            || state.idle_threads == 0 && self.best_plan(state).is_some_and(is_more_urgent);
        is_l0_due
            || flush_waits
            || !state.manual.requests.is_empty()
            || self.store.watch.board.allowed().is_finite()
            || is_thread_wanted()
    }
}

/// Whether `error` only says that this was not the time: it was given up, or the disk has no space
/// beside the space for writes.
fn is_no_failure(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Shutdown | ErrorKind::NoSpace)
}

/// Has a compaction that can wait end when something else wants the background.
struct Yielding {
    background: Weak<Background>,
    family: u32,
    /// Its plan's.
    score: f64,
    /// Changes of the state up to which nothing wanted it.
    seen: AtomicU64,
}

impl Watcher for Yielding {
    fn check(&self) -> Result<()> {
        let Some(background) = self.background.upgrade() else {
            return Ok(());
        };
        // Relaxed: a change missed now is seen at the next check.
        let changes = background.store.changes.load(Ordering::Relaxed);
        if self.seen.swap(changes, Ordering::Relaxed) == changes
            || drumlin_base::bug!("quiet-work-never-yields")
        {
            return Ok(());
        }
        let state = background.store.lock_state();
        match background.wants_background(&state, self.family, self.score) {
            true => Err(Error::new(
                ErrorKind::Shutdown,
                "a compaction that can wait was given up for writes",
            )),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use drumlin_fs::{Env, ManualClock, StrictMemFileSystem};

    use super::*;
    use crate::{Db, Options, Tuning};

    #[test]
    fn a_store_at_rest_is_quiet_though_writers_were_held_back_at_the_last_look() {
        let options = Options {
            create_if_missing: true,
            env: Env::system().with_files(Arc::new(StrictMemFileSystem::new())),
            ..Options::default()
        };
        let db = Db::open("/db", options).unwrap();
        let engine = &*db.engine;
        engine.store.watch.board.allow(1.0);
        assert!(engine.background.is_quiet(&engine.store.lock_state()));
        assert!(engine.store.watch.board.allowed().is_infinite());
    }

    #[test]
    fn what_is_no_more_urgent_ends_no_compaction_that_can_wait() {
        let clock = Arc::new(ManualClock::new(1_700_000_000));
        let env = Env::system().with_clock(clock.clone());
        let options = Options {
            background_threads: Some(0),
            tuning: Tuning {
                age_max_seconds: Some(60),
                ..Tuning::default()
            },
            env: env.with_files(Arc::new(StrictMemFileSystem::new())),
            ..Options::default()
        };
        let db = Db::open("/db", options).unwrap();
        db.put("key", "value").unwrap();
        db.flush().unwrap();
        clock.advance(Duration::from_secs(61));
        let background = &db.engine.background;
        let state = db.engine.store.lock_state();
        let (family, aged) = background
            .best_plan(&state)
            .expect("a table that is too old");
        assert_eq!(aged.reason, Reason::Aged);
        assert!(!background.wants_background(&state, family, aged.score));
        assert!(background.wants_background(&state, family, aged.score - 1.0));
    }
}
