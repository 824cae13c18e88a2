//! Running a watched load: starts the threads, closes the seconds, waits for background work.

use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use drumlin_base::Result;
use drumlin_fs::{Env, JoinHandle};

use super::plan::Plan;
use super::report::{Compaction, Report};
use super::second::{Second, Times, distinct_keys};
use super::writer::Board;
use crate::flags::Flags;
use crate::histogram::Latencies;
use crate::pace::WritePace;
use crate::store::Store;

/// A part of a second at the end that is shorter gets no line; its writes count all the same.
const PART_MIN: Duration = Duration::from_millis(500);
/// How long the watcher sleeps between looks at whether the writers have ended.
const NAP: Duration = Duration::from_millis(20);
/// How long nobody writes before a store counts as at rest.
const UNDISTURBED: Duration = Duration::from_secs(6);

/// Runs `plan` on `store` with the keys, values, threads and pace of `flags`, and shows each second
/// to `on_second` as it ends. Returns when the writers have ended, the manual compaction is done
/// and the store has no background work left.
///
/// # Errors
/// The first error of a writer, of the compaction or of the background; those of `on_second`; `Io`
/// when a thread cannot be started.
pub fn run<S: Store>(
    store: &Arc<S>,
    flags: &Flags,
    env: &Env,
    plan: &Plan,
    on_second: &mut dyn FnMut(&Second) -> Result<()>,
) -> Result<Report> {
    let limit = WritePace::new(flags.benchmark_write_rate_limit, Arc::clone(&env.clock));
    let board = Arc::new(Board::new(flags.threads, limit));
    let writers = start_writers(store, flags, env, plan, &board)?;
    let before = store.sample();
    let mut watch = Watch {
        store,
        flags,
        env,
        plan,
        started: env.clock.monotonic(),
        waited_before: before.waited_micros,
        written_before: before.written_bytes,
        manual: None,
        report: Report::default(),
    };
    board.start(flags.threads, watch.started);
    let watched = watch.until_done(&board, on_second);
    // Relaxed: the flag publishes nothing.
    board.stop.store(true, Ordering::Relaxed);
    let joined = writers.into_iter().try_for_each(JoinHandle::join);
    watch.take_last(&board);
    let compacted = watch.finish_compaction();
    board.failure().map_or(Ok(()), Err)?;
    watched.and(joined).and(compacted)?;
    watch.settle()?;
    Ok(watch.report)
}

fn start_writers<S: Store>(
    store: &Arc<S>,
    flags: &Flags,
    env: &Env,
    plan: &Plan,
    board: &Arc<Board>,
) -> Result<Vec<Box<dyn JoinHandle>>> {
    let mut writers = Vec::with_capacity(flags.threads);
    for index in 0..flags.threads {
        let (store, board, flags) = (Arc::clone(store), Arc::clone(board), flags.clone());
        let (clock, writes_max) = (Arc::clone(&env.clock), plan.writes_per_thread);
        let gate = Arc::clone(&board);
        let body = Box::new(move || board.write(&*store, &flags, &*clock, index, writes_max));
        match env.spawner.spawn(&format!("writer-{index}"), body) {
            Ok(writer) => writers.push(writer),
            Err(error) => {
                gate.gate.call_off();
                writers.into_iter().try_for_each(JoinHandle::join)?;
                return Err(error);
            }
        }
    }
    Ok(writers)
}

/// The time at which the manual compaction returned, and its result; empty while it runs.
type Done = Mutex<Option<(Duration, Result<()>)>>;

/// A manual compaction under way or done.
struct Manual {
    asked: Duration,
    done: Arc<Done>,
    thread: Option<Box<dyn JoinHandle>>,
}

/// The watcher's own state.
struct Watch<'a, S> {
    store: &'a Arc<S>,
    flags: &'a Flags,
    env: &'a Env,
    plan: &'a Plan,
    /// When the load began, by the clock.
    started: Duration,
    /// The store's counters at the end of the second before, and at the start.
    waited_before: Option<u64>,
    written_before: Option<u64>,
    manual: Option<Manual>,
    report: Report,
}

impl<S: Store> Watch<'_, S> {
    fn elapsed(&self) -> Duration {
        self.env.clock.monotonic().saturating_sub(self.started)
    }

    /// Closes seconds until the plan's time is over or no writer is left.
    fn until_done(
        &mut self,
        board: &Board,
        on_second: &mut dyn FnMut(&Second) -> Result<()>,
    ) -> Result<()> {
        let deadline = self.plan.seconds.map(Duration::from_secs);
        let compact_at = self.plan.compact_at.map(Duration::from_secs);
        let whole = Duration::from_secs(1);
        let mut begin = Duration::ZERO;
        loop {
            let now = self.elapsed();
            let is_over = deadline.is_some_and(|deadline| now >= deadline)
                || board.running.load(Ordering::Relaxed) == 0;
            if self.manual.is_none() && compact_at.is_some_and(|at| now >= at) {
                self.ask_compaction()?;
            }
            while now >= begin + whole {
                self.close_second(board, begin, whole, on_second)?;
                begin += whole;
            }
            if is_over {
                self.report.length = now.as_secs_f64();
                let part = now - begin;
                if part >= PART_MIN {
                    self.close_second(board, begin, part, on_second)?;
                }
                return Ok(());
            }
            let due = (begin + whole).min(deadline.unwrap_or(Duration::MAX));
            let rest = due.saturating_sub(self.elapsed());
            self.env.clock.sleep(rest.min(NAP));
        }
    }

    /// Ends the second that began at `begin`.
    fn close_second(
        &mut self,
        board: &Board,
        begin: Duration,
        length: Duration,
        on_second: &mut dyn FnMut(&Second) -> Result<()>,
    ) -> Result<()> {
        let mut latencies = Latencies::new();
        board.take_times(begin.as_secs(), &mut latencies);
        let is_compacting = self.is_compacting_within(begin, begin + length);
        self.count(&latencies, is_compacting);
        let sample = self.store.sample();
        let waited = sample.waited_micros.zip(self.waited_before);
        self.waited_before = sample.waited_micros;
        let second = Second {
            end: (begin + length).as_secs_f64(),
            length: length.as_secs_f64(),
            writes: latencies.count(),
            times: Times::of(&latencies),
            is_compacting,
            waited_micros: waited.map(|(now, before)| now.saturating_sub(before)),
            sample,
            disk_bytes: disk_bytes(self.env, Path::new(&self.flags.db)),
            live_bytes: self.live_bytes(),
        };
        on_second(&second)?;
        self.report.seconds.push(second);
        Ok(())
    }

    /// Counts the writes that returned after the last second: of a store that hangs, the longest.
    fn take_last(&mut self, board: &Board) {
        let mut latencies = Latencies::new();
        board.take_times(u64::MAX, &mut latencies);
        let now = self.elapsed();
        let is_compacting = self.is_compacting_within(now, now);
        self.count(&latencies, is_compacting);
    }

    fn count(&mut self, latencies: &Latencies, is_compacting: bool) {
        self.report.writes += latencies.count();
        self.report.all.merge(latencies);
        if is_compacting {
            self.report.compacting.merge(latencies);
        }
    }

    /// Bytes of keys and values a reader would see after the writes so far.
    fn live_bytes(&self) -> u64 {
        let keys = self.flags.num;
        let live = if self.plan.is_filled {
            keys as f64
        } else {
            distinct_keys(keys, self.report.writes)
        };
        (live * (self.flags.key_size + self.flags.value_size) as f64) as u64
    }

    fn ask_compaction(&mut self) -> Result<()> {
        let done = Arc::new(Done::default());
        let (slot, store) = (Arc::clone(&done), Arc::clone(self.store));
        let clock = Arc::clone(&self.env.clock);
        let body = Box::new(move || {
            let outcome = store.compact();
            drop(store);
            let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
            *slot = Some((clock.monotonic(), outcome));
        });
        let asked = self.env.clock.monotonic();
        let thread = Some(self.env.spawner.spawn("manual-compaction", body)?);
        self.manual = Some(Manual {
            asked,
            done,
            thread,
        });
        Ok(())
    }

    /// Whether the compaction was running at any moment from `begin` to `end` of the load.
    fn is_compacting_within(&self, begin: Duration, end: Duration) -> bool {
        let Some(manual) = &self.manual else {
            return false;
        };
        let done = manual.done.lock().unwrap_or_else(PoisonError::into_inner);
        let is_done_before = done
            .as_ref()
            .is_some_and(|(at, _)| *at <= self.started + begin);
        manual.asked < self.started + end && !is_done_before
    }

    /// Waits for the manual compaction and reports it.
    fn finish_compaction(&mut self) -> Result<()> {
        let Some(mut manual) = self.manual.take() else {
            return Ok(());
        };
        manual.thread.take().map_or(Ok(()), JoinHandle::join)?;
        let mut done = manual.done.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((at, outcome)) = done.take() else {
            return Ok(());
        };
        outcome?;
        self.report.compaction = Some(Compaction {
            asked_at: manual.asked.saturating_sub(self.started).as_secs_f64(),
            took: at.saturating_sub(manual.asked).as_secs_f64(),
        });
        Ok(())
    }

    /// Waits until the store is at rest and takes its sizes.
    fn settle(&mut self) -> Result<()> {
        let since = self.env.clock.monotonic();
        self.store.wait_for_background()?;
        let rested = self.env.clock.monotonic().saturating_sub(since);
        // Some things an engine only does once nobody has written for a while.
        self.env.clock.sleep(UNDISTURBED);
        self.store.wait_for_background()?;
        let sample = self.store.sample();
        let entry_bytes = (self.flags.key_size + self.flags.value_size) as u64;
        let report = &mut self.report;
        report.settle_seconds = rested.as_secs_f64();
        report.user_bytes = report.writes * entry_bytes;
        report.written_bytes = sample
            .written_bytes
            .zip(self.written_before)
            .map(|(now, before)| now.saturating_sub(before));
        report.disk_bytes = disk_bytes(self.env, Path::new(&self.flags.db));
        self.report.live_bytes = self.live_bytes();
        Ok(())
    }
}

/// Bytes of the files in `dir`, logs left out: their space is reserved beforehand and says nothing
/// about their content. Files that vanish meanwhile count nothing, and so does a directory that
/// cannot be listed.
fn disk_bytes(env: &Env, dir: &Path) -> u64 {
    let names = env.files.list(dir).unwrap_or_default();
    let kept = names
        .iter()
        .filter(|name| name.extension().is_none_or(|kind| kind != "log"));
    let infos = kept.filter_map(|name| env.files.info(&dir.join(name)).ok());
    infos
        .filter(|info| !info.is_dir)
        .map(|info| info.size)
        .sum()
}
