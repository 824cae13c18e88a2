//! Flushes and compactions: which runs next, and what becomes of its outcome.
//!
//! [`Engine::run_one`] picks one job and runs it on the calling thread; the threads are loops
//! around it, and a simulator calls it in an order of its own. Jobs return what they made; only
//! [`Engine::log_and_apply`] installs it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use drumlin_base::sync::MutexGuard;
use drumlin_base::{Error, ErrorKind, Result};
use drumlin_fs::JoinHandle;
use drumlin_memtable::Memtable;

use crate::compaction::Plan;
use crate::db::engine::{Engine, RETRY_MAX, State};
use crate::family::families::current_version;
use crate::files::names;
use crate::version::{VersionEdit, VersionSet};
use crate::watch::events::Health;

/// First pause after a failed job; doubles with each failure in a row.
const RETRY_FIRST: Duration = Duration::from_millis(50);

/// How often closing looks whether the last job has ended.
const JOB_END_PAUSE: Duration = Duration::from_millis(5);

/// What the background can do.
#[derive(Debug)]
pub(crate) enum Job {
    /// Write a family's immutable memtables to a table.
    Flush(u32),
    /// Carry out a plan for a family.
    Compact(u32, Plan),
    /// Carry out a piece of the request with this number, for a family.
    Manual(u64, u32, Plan),
}

/// The background threads of one database. Dropping it closes the database.
#[derive(Debug)]
pub(crate) struct Running {
    engine: Arc<Engine>,
}

impl Running {
    /// Starts the threads: the first only flushes, so that a long compaction never keeps a full
    /// memtable waiting.
    pub(crate) fn start(engine: &Arc<Engine>) -> Result<Arc<Self>> {
        let running = Arc::new(Self {
            engine: Arc::clone(engine),
        });
        if engine.read_only {
            return Ok(running);
        }
        // Nobody else sets it: a database is started once.
        let _ = engine.me.set(Arc::downgrade(engine));
        let threads = engine.options.background_threads_count();
        if threads > 0 {
            let body = Arc::clone(engine);
            let body = Box::new(move || body.remove_trash());
            let handle = engine.env.spawner.spawn("drumlin-trash", body)?;
            engine.threads.lock().push(handle);
            engine.supply.set_served(true);
            let body = Arc::clone(engine);
            let body = Box::new(move || body.supply_wals());
            let handle = engine.env.spawner.spawn("drumlin-wal", body)?;
            engine.threads.lock().push(handle);
        }
        for index in 0..threads {
            let compacts = index > 0 || threads == 1;
            let name = if compacts {
                format!("drumlin-{index}")
            } else {
                "drumlin-flush".into()
            };
            let body = Arc::clone(engine);
            let handle = engine
                .env
                .spawner
                .spawn(&name, Box::new(move || body.work(compacts)))?;
            engine.threads.lock().push(handle);
        }
        Ok(running)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.engine.process.is_present() {
            // A forked child has neither the threads nor the lock. Nothing of the engine is ever dropped there.
            let _kept = std::mem::ManuallyDrop::new(Arc::clone(&self.engine));
            return;
        }
        let closed = self.engine.close();
        self.engine.notices.tell();
        if let Err(error) = closed {
            tracing::error!(%error, "closing the database met an error nobody waits for");
        }
    }
}

impl Engine {
    /// A background thread's life.
    fn work(&self, compacts: bool) {
        loop {
            let job = {
                let mut state = self.lock_state();
                loop {
                    if self.closing.load(Ordering::Acquire) {
                        return;
                    }
                    if let Some(job) = self.pick(&mut state, compacts) {
                        break job;
                    }
                    if compacts && self.health() == Health::Healthy {
                        // What readers kept when the last job ended: there may be no other job.
                        self.remove_obsolete(&mut state);
                    }
                    if self.notices.wait_to_be_told() {
                        drop(state);
                        self.notices.tell();
                        state = self.lock_state();
                        continue;
                    }
                    state.idle_threads += usize::from(compacts);
                    state = self.wait_for_background(state);
                    state.idle_threads -= usize::from(compacts);
                }
            };
            let failed = self.run(job, true).is_err();
            self.notices.tell();
            if failed {
                self.back_off();
            }
        }
    }

    /// Picks and runs one job on the calling thread; false when there is none.
    ///
    /// # Errors
    /// The job's; it has been counted and will be retried.
    pub(crate) fn run_one(&self) -> Result<bool> {
        let job = self.pick(&mut self.lock_state(), true);
        job.map_or(Ok(false), |job| self.run(job, false).map(|()| true))
    }

    /// Pauses after a failure, longer after each in a row. What other threads do is no reason to end
    /// the pause: two that fail and wake each other would never rest.
    fn back_off(&self) {
        let failures = self.lock_state().failures_in_row.min(16);
        let pause = RETRY_FIRST
            .saturating_mul(1 << failures.saturating_sub(1))
            .min(RETRY_MAX);
        let state = self.lock_state();
        if !self.closing.load(Ordering::Acquire) {
            drop(self.retry.wait_for(state, pause));
        }
    }

    /// The next job, marked as running. A key order of the user's that panics while jobs are compared ends all.
    fn pick(&self, state: &mut State, compacts: bool) -> Option<Job> {
        if self.health() == Health::Poisoned {
            return None;
        }
        let urgent = AssertUnwindSafe(|| self.most_urgent(state, compacts));
        let Ok(job) = catch_unwind(urgent) else {
            let message = "a key order panicked while the next job was chosen";
            let error = Error::new(ErrorKind::Aborted, message);
            self.degrade(state, Health::Poisoned, &error);
            return None;
        };
        if job.is_none() && compacts && state.flushes_running + state.compactions_running == 0 {
            self.note_idle(state);
        }
        job
    }

    /// Nothing runs and nothing is due. What failed last, if something did, is not wanted any more (its
    /// family was dropped, say), so that no job will end well in its place.
    fn note_idle(&self, state: &mut State) {
        state.flush_failing = false;
        if self.health() == Health::BackgroundPaused {
            self.recover_health(state);
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

    /// The flush that lets go of the oldest WAL.
    pub(crate) fn pick_flush(&self, state: &mut State) -> Option<Job> {
        let due = state
            .families
            .values()
            .filter(|f| !f.flushing && !f.immutables.is_empty());
        let oldest = due.min_by_key(|family| family.oldest_wal())?.family.id;
        state.families.get_mut(&oldest)?.flushing = true;
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

    /// Runs a job a callback's panic cannot escape from, and books its end. `tells` where no lock is held: the
    /// listener has then heard of the job when it ends.
    pub(crate) fn run(&self, job: Job, tells: bool) -> Result<()> {
        let _busy = self.turns.begin_job();
        let is_flush = matches!(job, Job::Flush(_));
        let (id, request) = match &job {
            Job::Flush(id) | Job::Compact(id, _) => (*id, None),
            Job::Manual(request, id, _) => (*id, Some(*request)),
        };
        let body = AssertUnwindSafe(|| match job {
            Job::Flush(id) => self.run_flush(id),
            Job::Compact(id, plan) if plan.reason.can_wait() => self.run_in_quiet(id, &plan),
            Job::Compact(id, plan) => self.run_compaction(id, &plan, self.watcher(&plan, None)),
            Job::Manual(request, id, plan) => self.run_manual(request, id, &plan),
        });
        let outcome = catch_unwind(body).unwrap_or_else(|_| {
            Err(Error::new(
                ErrorKind::Aborted,
                "a background job panicked, most likely in a callback",
            ))
        });
        if tells {
            self.notices.tell();
        }
        let mut state = self.lock_state();
        if is_flush {
            state.flushes_running -= 1;
            if let Some(family) = state.families.get_mut(&id) {
                family.flushing = false;
            }
        } else {
            state.compactions_running -= 1;
        }
        let request = request.and_then(|request| state.manual.get(request));
        let outcome = match (request, outcome) {
            (None, outcome) => outcome,
            (Some(request), outcome) => {
                request.running = false;
                // Whoever asked is told; nothing the store needs has failed.
                request.outcome = outcome.err().map(Err);
                Ok(())
            }
        };
        let outcome = match outcome {
            Err(error) if error.kind() == ErrorKind::Shutdown => Ok(()),
            Err(error) => {
                self.job_failed(&mut state, is_flush, &error);
                Err(error)
            }
            Ok(()) => {
                // Only now that the job is gone does nobody hold the tables it replaced.
                self.remove_obsolete(&mut state);
                state.flush_failing &= !is_flush;
                let well = !state.flush_failing && state.compaction_blocked.is_none();
                if self.health() == Health::BackgroundPaused && well {
                    self.recover_health(&mut state);
                }
                Ok(())
            }
        };
        self.changed.notify_all();
        outcome
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
            self.degrade(state, Health::BackgroundPaused, error);
        }
    }

    /// Logs `edits` to the MANIFEST and shows every family its new version.
    pub(crate) fn log_and_apply(&self, state: &mut State, edits: Vec<VersionEdit>) -> Result<()> {
        self.edit_manifest(state, |versions| versions.log_and_apply(edits))?;
        self.show_versions(state, None)
    }

    /// As [`Engine::log_and_apply`], for a flush of the `flushed.1` oldest memtables of family
    /// `flushed.0`: they leave in the same step in which their table comes. A reader that saw both
    /// would apply each merge operand twice.
    pub(crate) fn log_flush(
        &self,
        state: &mut State,
        edits: Vec<VersionEdit>,
        flushed: (u32, usize),
    ) -> Result<()> {
        let logged = self.edit_manifest(state, |versions| versions.log_and_apply(edits));
        if !drumlin_base::bug!("memtable-freed-though-flush-failed") {
            logged?;
        }
        self.show_versions(state, Some(flushed))
    }

    fn show_versions(&self, state: &mut State, flushed: Option<(u32, usize)>) -> Result<()> {
        let State {
            versions, families, ..
        } = state;
        for (id, family) in families.iter_mut() {
            let current = current_version(versions, *id)?;
            let leaving = flushed.filter(|flushed| flushed.0 == *id);
            let leaving = leaving.map_or(0, |flushed| flushed.1.min(family.immutables.len()));
            if leaving == 0 && Arc::ptr_eq(&current, &family.version) {
                continue;
            }
            self.changes.fetch_add(1, Ordering::Relaxed);
            family.version = current;
            family.immutables.drain(..leaving);
            family.install();
        }
        Ok(())
    }

    /// Runs one change of the MANIFEST. A failure that leaves it in doubt what is on disk poisons
    /// the database; a full disk only stops what wanted the change.
    pub(crate) fn edit_manifest<R>(
        &self,
        state: &mut State,
        change: impl FnOnce(&mut VersionSet) -> Result<R>,
    ) -> Result<R> {
        if state.closed {
            self.check_open()?;
        }
        if self.health() == Health::Poisoned {
            return Err(self.refusal(state));
        }
        let changed = change(&mut state.versions);
        if let Some(healed) = state.versions.take_healed() {
            // A new MANIFEST took the place of the one that could not be written.
            self.tell(&healed);
        }
        changed.map_err(|error| {
            let to = match error.kind() {
                ErrorKind::InvalidArgument => return error,
                ErrorKind::NoSpace | ErrorKind::Corruption => Health::BackgroundPaused,
                _ => Health::Poisoned,
            };
            self.degrade(state, to, &error);
            error.context("the MANIFEST could not be written")
        })
    }

    /// Has the memtables of all families flushed, and waits until everything in them is in tables.
    pub(crate) fn flush_all(&self) -> Result<()> {
        self.check_writable()?;
        let ids: Vec<u32> = self.lock_state().families.keys().copied().collect();
        // One new WAL for all of them, instead of one for each.
        let (targets, left) = self.lead_alone(|leader| -> Result<_> {
            self.check_open()?;
            self.rotate_together(leader, &ids)?;
            let state = self.lock_state();
            let (mut targets, mut left) = (Vec::new(), Vec::new());
            for (&id, family) in &state.families {
                match family.mutable.is_empty() {
                    true => targets.extend(
                        family
                            .immutables
                            .back()
                            .map(|i| (id, Arc::clone(&i.memtable))),
                    ),
                    false => left.push(id), // It had no place for one more.
                }
            }
            Ok((targets, left))
        })?;
        for (id, target) in targets {
            self.wait_for_table_of(id, &target)?;
        }
        for id in left {
            match self.flush_family(id) {
                Err(error) if error.kind() == ErrorKind::InvalidArgument => {} // Dropped meanwhile.
                flushed => flushed?,
            }
        }
        Ok(())
    }

    /// Rotates the family's memtable and waits until everything in it is in tables.
    pub(crate) fn flush_family(&self, id: u32) -> Result<()> {
        self.check_writable()?;
        let first = {
            let mut state = self.lock_state();
            Arc::clone(&state.family_mut(id)?.mutable)
        };
        let is_first = |state: &State| {
            let family = state.families.get(&id);
            family.is_some_and(|family| Arc::ptr_eq(&family.mutable, &first))
        };
        let target = loop {
            // Without the lead: writers go on meanwhile, and one of them may do it.
            let state = self.wait_until(|state| !is_first(state) || self.has_place(state, id))?;
            if !is_first(&state) {
                break Some(first);
            }
            drop(state);
            let rotated = self.lead_alone(|leader| -> Result<_> {
                self.check_open()?;
                self.rotate(leader, id, true)?;
                let state = self.lock_state();
                let family = state.families.get(&id);
                let newest = family.and_then(|family| family.immutables.back());
                Ok(newest.map(|newest| Arc::clone(&newest.memtable)))
            });
            match rotated {
                Err(error) if error.kind() == ErrorKind::Busy => {} // Somebody took the place.
                rotated => break rotated?,
            }
        };
        let Some(target) = target else { return Ok(()) };
        self.wait_for_table_of(id, &target)
    }

    /// Waits until what is in `memtable` of the family is in a table.
    fn wait_for_table_of(&self, id: u32, memtable: &Arc<Memtable>) -> Result<()> {
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

    /// The state once `done` says so, and no flush failed meanwhile. What failed before is no
    /// reason to give up: it is tried again while this waits.
    ///
    /// # Errors
    /// The failure that keeps the background from getting there.
    fn wait_until(&self, done: impl Fn(&State) -> bool) -> Result<MutexGuard<'_, State>> {
        let mut state = self.lock_state();
        let failures = state.flush_failures;
        while !done(&state) {
            self.check_open()?;
            if self.health() == Health::Poisoned || state.flush_failures > failures {
                return Err(self.refusal(&state));
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
        if self.options.background_threads != Some(0) {
            return Ok(self.wait_for_background(state));
        }
        drop(state);
        let worked = self.run_one()?;
        let state = self.lock_state();
        Ok(match worked {
            true => state,
            false => self.wait_for_background(state),
        })
    }

    /// Waits until no job runs, none is due, and what they left over is removed, but for what somebody
    /// still reads. Where nothing may be written nothing is done, whatever is due.
    pub(crate) fn wait_for_idle(&self) -> Result<()> {
        if self.read_only {
            return Ok(());
        }
        let failures = {
            let mut state = self.lock_state();
            if self.health() == Health::Healthy {
                // Kept by readers when the last job ended.
                self.remove_obsolete(&mut state);
            }
            // Time, a snapshot let go or a read may have made a compaction due, of which nobody told the
            // threads: without this they would find it at their next look, up to a second from now.
            self.changed.notify_all();
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
                self.release_trash();
            }
            (!flushing && !compacting && self.trash.is_empty()) || failed(state)
        })?;
        match failed(&state) {
            true => Err(self.refusal(&state)),
            false => Ok(()),
        }
    }

    /// Syncs the WAL as a synced write would.
    pub(crate) fn sync_wal(&self) -> Result<()> {
        self.lead_alone(|leader| {
            self.check_open()?;
            if self.health() == Health::Poisoned {
                return Err(self.refusal(&self.lock_state()));
            }
            leader.wal.sync().inspect_err(|error| {
                self.degrade(&mut self.lock_state(), Health::Poisoned, error);
            })
        })
    }

    /// Stops writes and the background, saves what no WAL holds, and releases the directory. Only
    /// the first call does anything.
    pub(crate) fn close(&self) -> Result<()> {
        self.process.check()?;
        for family in self.lock_state().families.values() {
            family.family.reads.walks.close(); // Walks that wait there own the engine.
        }
        if self.read_only {
            return Ok(());
        }
        let saved =
            match self.unlogged.load(Ordering::Acquire) && !self.closing.load(Ordering::Acquire) {
                true => self
                    .families
                    .load()
                    .keys()
                    .try_for_each(|id| self.flush_family(*id)),
                false => Ok(()),
            };
        if self.closing.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        drop(self.lock_state());
        self.changed.notify_all();
        self.retry.notify_all();
        self.trash.end();
        self.supply.set_served(false);
        let handles = std::mem::take(&mut *self.threads.lock());
        let joined = handles
            .into_iter()
            .map(JoinHandle::join)
            .fold(Ok(()), Result::and);
        let closed = self.lead_alone(|leader| {
            leader
                .wal
                .forget_below(self.oldest_wal.load(Ordering::Acquire));
            leader.wal.close()
        });
        let spare = {
            let mut state = self.lock_state();
            while self.numbers.has_pending() || state.wal_pins > 0 {
                // Jobs and checkpoints of callers' own threads; they look at `closing` often.
                state = self.changed.wait_for(state, JOB_END_PAUSE);
            }
            self.remove_obsolete(&mut state);
            state.closed = true;
            std::mem::take(&mut state.spare_wals)
        };
        for number in spare {
            self.trash.put(names::wal(&self.wal_dir, number));
        }
        self.clear_supply();
        self.empty_trash();
        self.locks.lock().clear();
        saved.and(joined).and(closed)
    }
}
