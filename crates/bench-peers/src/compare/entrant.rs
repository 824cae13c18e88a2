//! One engine in a comparison: its store, kept open from line to line.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::time::Instant;

use drumlin_base::{Error, ErrorKind, Result};
use drumlin_bench::mersenne::Mersenne64;
use drumlin_bench::rate::RateLimit;
use drumlin_bench::stats::{RunStats, ThreadStats};
use drumlin_bench::workloads::{Shared, Work, Worker};
use drumlin_bench::{Flags, Store};
use drumlin_fs::Env;

use super::line::Line;
use super::result::Outcome;
use crate::engines::{Engine, quiet};

/// An engine, whatever the type of its store.
pub(super) trait Entrant {
    /// Runs `line`; `None` when the engine has no such thing.
    fn run(&mut self, line: &Line, flags: &Flags) -> Result<Option<Outcome>>;

    /// Closes the store and removes it.
    fn leave(&mut self) -> Result<()>;

    /// The engine's name and version.
    fn version(&self) -> String;
}

/// An engine by its store.
pub(super) struct StoreEntrant<S> {
    store: Option<S>,
    /// The flags that opened the store.
    flags: Flags,
    knows_when_done: bool,
    env: Env,
}

impl<S: Store> StoreEntrant<S> {
    /// An engine that keeps its store at `flags.db`. Removes what is there.
    pub(super) fn new(engine: Engine, flags: Flags, env: Env) -> Result<Self> {
        S::destroy(&flags, &env)?;
        Ok(Self {
            store: None,
            flags,
            knows_when_done: engine.knows_when_done(),
            env,
        })
    }

    /// The store, opened under the flags of `line` if it is not open.
    fn store(&mut self, line: &Line, flags: &Flags) -> Result<&S> {
        if line.is_fresh {
            self.leave()?;
        }
        match &mut self.store {
            Some(store) => Ok(store),
            slot => {
                std::fs::create_dir_all(&self.flags.db)
                    .map_err(|error| Error::io("make directory", self.flags.db.as_ref(), error))?;
                let mut opened = self.flags.clone();
                (opened.sync, opened.disable_wal) = (flags.sync, flags.disable_wal);
                Ok(slot.insert(S::open(&opened, &self.env)?))
            }
        }
    }
}

impl<S: Store> Entrant for StoreEntrant<S> {
    fn run(&mut self, line: &Line, flags: &Flags) -> Result<Option<Outcome>> {
        let (env, knows_when_done) = (self.env.clone(), self.knows_when_done);
        if !line.is_fresh && self.store.is_none() {
            // The line that would have filled it is one the engine does not have.
            return Ok(None);
        }
        let store = match self.store(line, flags) {
            Err(error) if line.no_wal && error.kind() == ErrorKind::NotSupported => {
                return Ok(None);
            }
            store => store?,
        };
        let run = match measure(store, line, flags, &env) {
            Err(error) if line.work == Work::Compact && error.kind() == ErrorKind::NotSupported => {
                return Ok(None);
            }
            run => run?,
        };
        let finished = Instant::now();
        let idle = if !line.is_write {
            quiet::wait_a_moment()
        } else if knows_when_done {
            store.wait_for_background()?;
            quiet::wait_a_moment()
        } else {
            quiet::wait_until_idle()
        };
        let settle = finished.elapsed().saturating_sub(idle);
        let operations = run.operations.max(1);
        Ok(Some(Outcome {
            micros: run.thread_seconds * 1e6 / operations as f64,
            operations,
            found: run.found.map(|(found, _)| found),
            settle_seconds: Some(settle.as_secs_f64()),
        }))
    }

    fn leave(&mut self) -> Result<()> {
        if let Some(store) = self.store.take() {
            store.close()?;
        }
        S::destroy(&self.flags, &self.env)
    }

    fn version(&self) -> String {
        S::version()
    }
}

/// Runs `line` on `store` with threads of its own, which all start at once.
pub(crate) fn measure<S: Store>(
    store: &S,
    line: &Line,
    flags: &Flags,
    env: &Env,
) -> Result<RunStats> {
    let shared = Shared {
        running: AtomicUsize::new(line.threads),
        write_limit: RateLimit::new(flags.benchmark_write_rate_limit, Arc::clone(&env.clock)),
        clock: Arc::clone(&env.clock),
        records: None,
    };
    let gate = Barrier::new(line.threads);
    let work = |index: usize| -> Result<ThreadStats> {
        // As the peer's: every thread of a run has a generator of its own.
        let random = Mersenne64::new(flags.seed.wrapping_add(index as u64));
        gate.wait();
        let mut worker = Worker {
            store,
            flags,
            shared: &shared,
            random,
            stats: ThreadStats::start(&shared.clock, false, None),
            index,
        };
        let result = worker.run(line.work);
        worker.stats.stop(&shared.clock);
        // Relaxed: no workload here reads it; the threads are joined.
        shared.running.fetch_sub(1, Ordering::Relaxed);
        result.map(|()| worker.stats)
    };
    let finished: Vec<Result<ThreadStats>> = std::thread::scope(|scope| {
        let work = &work;
        let threads: Vec<_> = (0..line.threads)
            .map(|index| scope.spawn(move || work(index)))
            .collect();
        let died = |_| Err(Error::new(ErrorKind::Aborted, "a worker panicked"));
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(died))
            .collect()
    });
    let finished: Vec<ThreadStats> = finished.into_iter().collect::<Result<_>>()?;
    let finished: Vec<&ThreadStats> = finished.iter().collect();
    RunStats::merge(&finished).ok_or_else(|| Error::invalid_argument("a line without threads"))
}
