//! A step: its threads, its seconds, its end.

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use drumlin_base::{Error, ErrorKind, Result};
use drumlin_bench::histogram::Latencies;
use drumlin_bench::pace::Pace;
use drumlin_bench::{Flags, Store};
use drumlin_fs::Env;

use super::source::Source;
use super::work::{Board, Slot, Worker};
use crate::places::disk_bytes;
use crate::protocol::{Done, Role, RoleDone, RoleSecond, Second, Step, StoreState, Times};
use crate::records::RecordReader;

/// How long the watcher sleeps between looks.
const NAP: Duration = Duration::from_millis(10);
/// A part of a second at the end that is shorter gets no line.
const PART_MIN: Duration = Duration::from_millis(300);

/// The store and the state that a step works on.
pub(super) struct Bench<'b, S> {
    pub(super) store: &'b S,
    pub(super) flags: &'b Flags,
    pub(super) env: &'b Env,
    pub(super) source: &'b Source,
    pub(super) loaded: &'b AtomicU64,
    pub(super) records: Option<&'b Mutex<RecordReader>>,
}

/// Of a distribution, in microseconds.
fn times(latencies: &Latencies) -> Times {
    Times {
        p50: latencies.percentile_us(50.0),
        p95: latencies.percentile_us(95.0),
        p99: latencies.percentile_us(99.0),
        p999: latencies.percentile_us(99.9),
        max: latencies.max_us(),
        mean: latencies.mean_us(),
    }
}

/// The results of all threads, by role, and how long the manual compaction took.
type Outcome = (Vec<Vec<Result<RoleDone>>>, Option<Result<f64>>);

/// The seconds that were closed so far.
struct Watch<'w> {
    slots: &'w [Vec<Slot>],
    /// Operations at the end of the last second, by role.
    counted: Vec<u64>,
    all: Vec<Latencies>,
    begin: Duration,
}

impl<S: Store> Bench<'_, S> {
    /// Carries `step` out and shows each second to `on_second`.
    pub(super) fn carry_out(&self, step: &Step, on_second: &mut dyn FnMut(Second)) -> Result<Done> {
        let clock = &*self.env.clock;
        let threads: usize = step.roles.iter().map(|role| role.threads).sum();
        let leads = |role: &&Role| role.leads;
        let leading: usize = step
            .roles
            .iter()
            .filter(leads)
            .map(|role| role.threads)
            .sum();
        let slots: Vec<Vec<Slot>> = step
            .roles
            .iter()
            .map(|role| (0..role.threads).map(|_| Slot::default()).collect())
            .collect();
        let board = Board {
            clock,
            started: clock.monotonic(),
            stop: AtomicBool::new(false),
            leading: AtomicUsize::new(if leading == 0 { threads } else { leading }),
            all_lead: leading == 0,
            ended: AtomicU64::new(0),
            source: self.source,
            loaded: self.loaded,
        };
        let mut watch = Watch {
            slots: &slots,
            counted: vec![0; slots.len()],
            all: vec![Latencies::new(); slots.len()],
            begin: Duration::ZERO,
        };
        let (results, compaction) = self.work(step, &board, &mut watch, on_second);
        // By the threads' own clocks: this one looks only once in `NAP`.
        let seconds = Duration::from_nanos(board.ended.load(Ordering::Relaxed)).as_secs_f64();
        watch.take(u64::MAX);
        let mut done = Done {
            seconds,
            ..Done::default()
        };
        for (threads, latencies) in results.into_iter().zip(&watch.all) {
            let mut sum = RoleDone {
                times: times(latencies),
                ..RoleDone::default()
            };
            for thread in threads {
                let thread = thread?;
                sum.operations += thread.operations;
                sum.thread_seconds += thread.thread_seconds;
                sum.found += thread.found;
                sum.missing += thread.missing;
                sum.written_bytes += thread.written_bytes;
            }
            done.roles.push(sum);
        }
        done.compaction_seconds = compaction.transpose()?;
        if step.settles {
            let since = clock.monotonic();
            self.store.wait_for_background()?;
            done.settle_seconds = (clock.monotonic() - since).as_secs_f64();
        }
        done.store = self.state();
        done.harness_bytes = match self.source {
            Source::Records(loaded) => loaded.resident_bytes(),
            Source::Numbers(_) => 0,
        };
        Ok(done)
    }

    /// Starts the threads, closes the seconds, and waits for all.
    fn work(
        &self,
        step: &Step,
        board: &Board<'_>,
        watch: &mut Watch<'_>,
        on_second: &mut dyn FnMut(Second),
    ) -> Outcome {
        let is_compacting = &AtomicBool::new(false);
        let slots = watch.slots;
        std::thread::scope(|scope| {
            let mut seed = self.flags.seed;
            let mut started = Vec::new();
            for (role, slots) in step.roles.iter().zip(slots) {
                let mut threads = Vec::new();
                for slot in slots {
                    seed += 1;
                    let own = seed;
                    threads.push(scope.spawn(move || self.thread(role, slot, own, board)));
                }
                started.push(threads);
            }
            let mut manual = None;
            loop {
                let now = self.env.clock.monotonic() - board.started;
                let is_due = |second: u64| now >= Duration::from_secs(second);
                if manual.is_none() && step.compact_at.is_some_and(is_due) {
                    manual = Some(scope.spawn(move || self.compact(is_compacting)));
                }
                let was_compacting = is_compacting.load(Ordering::Relaxed);
                while now >= watch.begin + Duration::from_secs(1) {
                    on_second(watch.close(Duration::from_secs(1), was_compacting, self.state()));
                }
                // Relaxed: the numbers publish nothing; joining orders the threads' writes.
                if board.leading.load(Ordering::Relaxed) == 0 || step.seconds.is_some_and(is_due) {
                    board.stop.store(true, Ordering::Relaxed);
                    if now - watch.begin >= PART_MIN {
                        on_second(watch.close(now - watch.begin, was_compacting, self.state()));
                    }
                    break;
                }
                self.env.clock.sleep(NAP);
            }
            let died = || Error::new(ErrorKind::Aborted, "a thread panicked");
            let results = started
                .into_iter()
                .map(|threads| {
                    let joined = threads.into_iter().map(|thread| thread.join());
                    joined
                        .map(|result| result.unwrap_or_else(|_| Err(died())))
                        .collect()
                })
                .collect();
            let compaction = manual.map(|thread| thread.join().unwrap_or_else(|_| Err(died())));
            (results, compaction)
        })
    }

    fn compact(&self, is_compacting: &AtomicBool) -> Result<f64> {
        is_compacting.store(true, Ordering::Relaxed);
        let began = self.env.clock.monotonic();
        let result = self.store.compact();
        is_compacting.store(false, Ordering::Relaxed);
        match result {
            // An engine that cannot be asked has nothing to be disturbed by.
            Err(error) if error.kind() == ErrorKind::NotSupported => Ok(0.0),
            result => result.map(|()| (self.env.clock.monotonic() - began).as_secs_f64()),
        }
    }

    fn thread(&self, role: &Role, slot: &Slot, seed: u64, board: &Board<'_>) -> Result<RoleDone> {
        let worker = Worker {
            board,
            slot,
            role,
            store: self.store,
            flags: self.flags,
            seed,
            records: self.records,
            done: RoleDone::default(),
            pace: Pace::new(role.rate / role.threads.max(1) as f64, board.started),
            count: 0,
        };
        let result = worker.run();
        if result.is_err() {
            board.stop.store(true, Ordering::Relaxed);
            board.leading.store(0, Ordering::Relaxed);
        }
        if role.leads || board.all_lead {
            let less = |leading: usize| Some(leading.saturating_sub(1));
            // The result is the old number, which is not needed.
            let _before = board
                .leading
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
        }
        result
    }

    fn state(&self) -> StoreState {
        let sample = self.store.sample();
        StoreState {
            files_by_level: sample.files_by_level,
            debt_bytes: sample.debt_bytes,
            written_bytes: sample.written_bytes,
            disk_bytes: disk_bytes(self.env, Path::new(&self.flags.db)),
        }
    }
}

impl Watch<'_> {
    /// Ends the second that is open, after `length`.
    fn close(&mut self, length: Duration, is_compacting: bool, store: StoreState) -> Second {
        let taken = self.take(self.begin.as_secs());
        self.begin += length;
        let roles = taken.iter().enumerate().map(|(role, latencies)| {
            let slots = self.slots.get(role).map(Vec::as_slice).unwrap_or_default();
            let now: u64 = slots
                .iter()
                .map(|slot| slot.operations.load(Ordering::Relaxed))
                .sum();
            let before = self
                .counted
                .get_mut(role)
                .map_or(0, |counted| std::mem::replace(counted, now));
            RoleSecond {
                operations: now.saturating_sub(before),
                times: times(latencies),
            }
        });
        Second {
            roles: roles.collect(),
            end: self.begin.as_secs_f64(),
            length: length.as_secs_f64(),
            is_compacting,
            store,
        }
    }

    /// Takes the times up to second `last`, by role.
    fn take(&mut self, last: u64) -> Vec<Latencies> {
        let mut taken = Vec::new();
        for (slots, all) in self.slots.iter().zip(&mut self.all) {
            let mut sum = Latencies::new();
            for slot in slots {
                slot.take(last, &mut sum);
            }
            all.merge(&sum);
            taken.push(sum);
        }
        taken
    }
}
