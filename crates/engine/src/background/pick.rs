//! The next job: flushes before compactions, the oldest WAL first, users' requests after the store's own needs.
//!
//! Picking marks the job as running. Nothing here reads or writes a file.
//!
//! The order: the flush that releases the oldest WAL, then the compaction with the highest score over all families,
//! then a piece of a manual compaction. A manual compaction is cut into pieces of a few tables; a store that is
//! always behind still gives it one byte in five, but never before L0. With two or more threads, the first is
//! reserved for flushes. A job below L0 checks about every quarter of a megabyte that it reads, dead entries
//! included, whether L0 is due and every other thread busy; then it carries that out first, on its own stack. Where
//! there is one thread for everything, every compaction does so for flushes.

use std::panic::{AssertUnwindSafe, catch_unwind};

use drumlin_base::{Error, ErrorKind, SEQNO_MAX};

use crate::background::background::Background;
use crate::background::compaction_job::begin;
use crate::compaction;
use crate::compaction::{Moment, Piece, Plan};
use crate::store::state::{FamilyState, State};
use crate::watch::events::Health;
use crate::watch::reason::Reason;

/// A unit of background work.
#[derive(Debug)]
pub(crate) enum Job {
    /// Write a family's immutable memtables to a table.
    Flush(u32),
    /// Carry out a plan for a family.
    Compact(u32, Plan),
    /// Carry out a piece of the request with this number, for a family.
    Manual(u64, u32, Plan),
}

impl Background {
    /// The next job, marked as running. Poisons the store when the user's key order panics while jobs are compared.
    pub(super) fn pick(&self, state: &mut State, compacts: bool) -> Option<Job> {
        if self.store.health() == Health::Poisoned || state.pauses > 0 {
            return None;
        }
        let urgent = AssertUnwindSafe(|| self.most_urgent(state, compacts));
        let Ok(job) = catch_unwind(urgent) else {
            let message = "a key order panicked while the next job was chosen";
            let error = Error::new(ErrorKind::Aborted, message);
            self.store.degrade(state, Health::Poisoned, &error);
            return None;
        };
        if job.is_none() && compacts && state.flushes_running + state.compactions_running == 0 {
            self.note_idle(state);
        }
        job
    }

    /// Nothing runs and nothing is due. A job that failed last is not wanted any more (its family was dropped, say), so
    /// no later one will succeed in its place and reset the health.
    fn note_idle(&self, state: &mut State) {
        state.flush_failing = false;
        if self.store.health() == Health::BackgroundPaused {
            self.store.recover_health(state);
        }
    }

    /// Flushes outrank compactions.
    fn most_urgent(&self, state: &mut State, compacts: bool) -> Option<Job> {
        if let Some(flush) = self.pick_flush(state) {
            return Some(flush);
        }
        if !compacts {
            return None;
        }
        let best = || self.best_plan(state);
        if state.manual.is_owed() && best().is_none_or(|(_, plan)| plan.level > 0) {
            let piece = self.pick_manual(state);
            return piece.or_else(|| self.pick_automatic(state));
        }
        let due = self.pick_automatic(state);
        due.or_else(|| self.pick_manual(state))
    }

    /// The flush that frees the oldest WAL.
    pub(crate) fn pick_flush(&self, state: &mut State) -> Option<Job> {
        let due = state
            .families
            .values()
            .filter(|f| !f.flushing && !f.immutables.is_empty());
        let oldest = due.min_by_key(|family| family.min_wal_needed())?.family.id;
        let family = state.families.get_mut(&oldest)?;
        assert!(!family.flushing, "one flush of a family at a time");
        family.flushing = true;
        state.flushes_running += 1;
        Some(Job::Flush(oldest))
    }

    /// The most urgent compaction the store itself needs.
    pub(crate) fn pick_automatic(&self, state: &mut State) -> Option<Job> {
        if state.compaction_blocked.is_some() {
            return None;
        }
        let (id, plan) = self.pick_compaction(state)?;
        state.compactions_running += 1;
        state.manual.count_automatic(plan.input_bytes());
        Some(Job::Compact(id, plan))
    }

    /// The job that would run next, for people.
    pub(crate) fn describe_next(&self, state: &State) -> String {
        let due = state
            .families
            .values()
            .find(|f| !f.flushing && !f.immutables.is_empty());
        if let Some(family) = due {
            return format!("a flush of family {:?}", family.family.name);
        }
        match self.best_plan(state) {
            Some((id, plan)) => format!(
                "a compaction of family {id} from L{} to L{}, score {:.2} ({:?})",
                plan.level, plan.output_level, plan.score, plan.reason
            ),
            None if !state.manual.requests.is_empty() => "a manual compaction".to_owned(),
            None => "nothing is due".to_owned(),
        }
    }

    /// The most urgent plan of any family.
    pub(crate) fn best_plan(&self, state: &State) -> Option<(u32, Plan)> {
        let is_quiet = self.is_quiet(state);
        let pace = self
            .store
            .watch
            .board
            .pace(self.store.id.env.clock.monotonic());
        let families = state.families.iter();
        let picked =
            families.filter_map(|(id, family)| Some((*id, self.pick_in(family, is_quiet, pace)?)));
        picked.max_by(|a, b| a.1.score.total_cmp(&b.1.score))
    }

    /// The most urgent plan of any family, claimed and noted as running.
    pub(crate) fn pick_compaction(&self, state: &mut State) -> Option<(u32, Plan)> {
        let (id, plan) = self.best_plan(state)?;
        begin(state.families.get_mut(&id)?, &plan).then_some((id, plan))
    }

    /// Whether some compaction is due.
    pub(crate) fn compaction_is_due(&self, state: &State) -> bool {
        self.best_plan(state).is_some()
    }

    /// The most urgent plan of one family of a store that is written at `pace`.
    fn pick_in(&self, family: &FamilyState, is_quiet: bool, pace: f64) -> Option<Plan> {
        let moment = Moment {
            is_quiet,
            flush_cf: family.seconds_to_flush(pace),
            in_flight: &family.in_flight,
            now: self.store.id.env.clock.unix_seconds(),
            oldest_snapshot: self.store.snapshots.oldest().unwrap_or(SEQNO_MAX),
            has_space: family.may_have_space(),
        };
        compaction::pick(
            &family.version,
            &family.family.settings().compaction,
            &moment,
        )
        .or_else(|| is_quiet.then(|| self.recode_plan(family)).flatten())
    }

    /// Bytes compaction still has to rewrite in the family.
    pub(crate) fn compaction_debt(&self, family: &FamilyState) -> u64 {
        compaction::pending_bytes(&family.version, &family.family.settings().compaction)
    }

    /// The next piece of some request, claimed and noted as running.
    pub(crate) fn pick_manual(&self, state: &mut State) -> Option<Job> {
        let State {
            manual, families, ..
        } = state;
        let mut picked = None;
        for request in manual.requests.iter_mut().filter(|it| it.is_waiting()) {
            let Some(family) = families.get_mut(&request.family) else {
                let message = "the column family was dropped";
                request.outcome = Some(Err(Error::invalid_argument(message)));
                self.store.changed.notify_all();
                continue;
            };
            let settings = family.family.settings();
            let options = &settings.compaction;
            match request
                .work
                .next(&family.version, options, &family.in_flight)
            {
                Piece::Done => {
                    request.outcome = Some(Ok(()));
                    self.store.changed.notify_all();
                }
                Piece::Plan(plan) if begin(family, &plan) => {
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

    /// The job that a running one must not delay, when no thread is free: the flush, if this is the only
    /// thread, and unless `only_flushes` the compaction of L0.
    pub(crate) fn pick_urgent(&self, state: &mut State, only_flushes: bool) -> Option<Job> {
        if state.idle_threads > 0 || state.pauses > 0 {
            return None;
        }
        if self.store.settings.threads() == 1
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

    /// Whether the background has nothing else to do and writers are free.
    pub(crate) fn is_quiet(&self, state: &State) -> bool {
        let families = state.families.values();
        let mut flushes = families.map(|it| it.flushing || !it.immutables.is_empty());
        self.store.health() == Health::Healthy
            && state.flushes_running == 0
            && state.compactions_running == 0
            && state.manual.requests.is_empty()
            && !flushes.any(|due| due)
            && self.are_writers_free()
    }

    /// Whether nothing holds writers back, now: where the last look found something, it may be gone since, and
    /// without writes and jobs nobody else looks.
    fn are_writers_free(&self) -> bool {
        if self.store.watch.board.allowed().is_finite()
            && !drumlin_base::bug!("old-verdict-holds-on")
        {
            self.store
                .update_write_rate(self.store.id.env.clock.monotonic());
        }
        self.store.watch.board.allowed().is_infinite()
    }
}
