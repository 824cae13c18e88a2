//! A phase of a benchmark: threads, their pace, and the results.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use drumlin_base::{Error, ErrorKind, Result};
use drumlin_bench::pace::Pace;
use drumlin_fs::Env;

use crate::binding::Binding;
use crate::core::Core;
use crate::file::FileWorkload;
use crate::measurements::{Interval, Measurements};
use crate::properties::Properties;
use crate::workload::{Stopwatch, Workload};

/// How long the caller sleeps between looks at the threads.
const NAP: Duration = Duration::from_millis(20);
/// Most threads.
const THREADS_MAX: usize = 1024;

/// A phase of a benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The records are written.
    Load,
    /// Operations in the workload's proportions.
    Run,
}

/// How far a phase is.
#[derive(Clone, Copy, Debug)]
pub struct Status {
    /// Since it began.
    pub elapsed: Duration,
    /// Operations so far.
    pub operations: u64,
    /// Operations a second since the status before.
    pub rate: f64,
}

/// The result of a phase.
#[derive(Clone, Debug)]
pub struct Run {
    /// From the start of the threads to the end of the last.
    pub took: Duration,
    /// Operations of all threads.
    pub operations: u64,
    /// Their times.
    pub measurements: Measurements,
    interval: Interval,
    percentiles: Vec<f64>,
}

impl Run {
    /// Carries out `phase` of the workload that `properties` describe on `binding`, and tells
    /// `on_status` how far it is every `status.interval` seconds (10).
    ///
    /// Properties: those of the workload; `threadcount` (1), `target` operations a second (0: as many
    /// as can be), `operationcount`, `maxexecutiontime` in seconds, `measurement.interval`,
    /// `hdrhistogram.percentiles` (95,99).
    ///
    /// # Errors
    /// `InvalidArgument` for properties that cannot be served; the first error of a thread.
    pub fn carry_out<B: Binding>(
        phase: Phase,
        properties: &Properties,
        binding: &B,
        env: &Env,
        on_status: &mut dyn FnMut(Status),
    ) -> Result<Self> {
        let name = properties.text("workload", "core");
        match name.rsplit('.').next().unwrap_or(&name) {
            "core" | "CoreWorkload" => {
                let workload = Core::new(properties)?;
                Crew::new(phase, properties, env)?.work(&workload, binding, on_status)
            }
            "file" => {
                let workload = FileWorkload::new(properties, phase == Phase::Run, env)?;
                Crew::new(phase, properties, env)?.work(&workload, binding, on_status)
            }
            _ => {
                let message = format!("workload={name}: there is core and file");
                Err(Error::invalid_argument(message))
            }
        }
    }

    /// YCSB's report.
    pub fn report(&self) -> String {
        let Self {
            took,
            operations,
            interval,
            percentiles,
            ..
        } = self;
        self.measurements
            .report(*took, *operations, *interval, percentiles)
    }
}

/// The threads of a phase.
struct Crew<'e> {
    phase: Phase,
    env: &'e Env,
    threads: usize,
    operations: u64,
    seconds: Option<Duration>,
    /// Operations a second of one thread; 0: no limit.
    rate: f64,
    status_every: Duration,
    interval: Interval,
    percentiles: Vec<f64>,
}

/// State shared by the threads of a phase.
struct Board {
    done: AtomicU64,
    running: AtomicUsize,
    stop: AtomicBool,
}

impl<'e> Crew<'e> {
    fn new(phase: Phase, properties: &Properties, env: &'e Env) -> Result<Self> {
        let threads: usize = properties.number("threadcount", 1)?;
        if threads == 0 || threads > THREADS_MAX {
            return Err(Error::invalid_argument(format!(
                "threadcount must be 1 to {THREADS_MAX}"
            )));
        }
        let seconds: u64 = properties.number("maxexecutiontime", 0)?;
        let operations = properties.number("operationcount", 0)?;
        if phase == Phase::Run && operations == 0 && seconds == 0 {
            let message = "operationcount or maxexecutiontime says when a run ends";
            return Err(Error::invalid_argument(message));
        }
        let percentiles = properties.text("hdrhistogram.percentiles", "95,99");
        let percentiles: std::result::Result<Vec<f64>, _> = percentiles
            .split(',')
            .map(|percent| percent.trim().parse())
            .collect();
        let percentiles = percentiles.map_err(|_| {
            Error::invalid_argument("hdrhistogram.percentiles: numbers are wanted, as 95,99")
        })?;
        let status: u64 = properties.number("status.interval", 10)?;
        Ok(Self {
            phase,
            env,
            threads,
            operations: if operations == 0 || phase == Phase::Load {
                u64::MAX
            } else {
                operations
            },
            seconds: (seconds > 0).then(|| Duration::from_secs(seconds)),
            rate: properties.number("target", 0.0)? / threads as f64,
            status_every: Duration::from_secs(status.max(1)),
            interval: Interval::parse(&properties.text("measurement.interval", "op"))?,
            percentiles,
        })
    }

    fn work<W: Workload, B: Binding>(
        &self,
        workload: &W,
        binding: &B,
        on_status: &mut dyn FnMut(Status),
    ) -> Result<Run> {
        let board = Board {
            done: AtomicU64::new(0),
            running: AtomicUsize::new(self.threads),
            stop: AtomicBool::new(false),
        };
        let began = self.env.clock.monotonic();
        let results: Vec<Result<Measurements>> = std::thread::scope(|scope| {
            let board = &board;
            let threads: Vec<_> = (0..self.threads as u64)
                .map(|index| scope.spawn(move || self.thread(index, workload, binding, board)))
                .collect();
            self.watch(began, board, on_status);
            let died = |_| Err(Error::new(ErrorKind::Aborted, "a thread panicked"));
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap_or_else(died))
                .collect()
        });
        let took = self.env.clock.monotonic() - began;
        let mut measurements = Measurements::default();
        for result in results {
            measurements.merge(&result?);
        }
        if self.phase == Phase::Load {
            binding.flush()?;
        }
        Ok(Run {
            took,
            operations: board.done.into_inner(),
            measurements,
            interval: self.interval,
            percentiles: self.percentiles.clone(),
        })
    }

    /// Tells how far it is, and stops the threads when the time is over.
    fn watch(&self, began: Duration, board: &Board, on_status: &mut dyn FnMut(Status)) {
        let (mut told, mut told_at) = (0, Duration::ZERO);
        // Relaxed: the numbers publish nothing; joining the threads orders their counts.
        while board.running.load(Ordering::Relaxed) > 0 {
            self.env.clock.sleep(NAP);
            let elapsed = self.env.clock.monotonic() - began;
            if self.seconds.is_some_and(|seconds| elapsed >= seconds) {
                board.stop.store(true, Ordering::Relaxed);
            }
            if elapsed >= told_at + self.status_every {
                let operations = board.done.load(Ordering::Relaxed);
                let rate = (operations - told) as f64 / (elapsed - told_at).as_secs_f64();
                (told, told_at) = (operations, elapsed);
                on_status(Status {
                    elapsed,
                    operations,
                    rate,
                });
            }
        }
    }

    fn thread<W: Workload, B: Binding>(
        &self,
        index: u64,
        workload: &W,
        binding: &B,
        board: &Board,
    ) -> Result<Measurements> {
        let result = self.operate(index, workload, binding, board);
        if result.is_err() {
            // The other threads would only work on a broken store.
            board.stop.store(true, Ordering::Relaxed);
        }
        board.running.fetch_sub(1, Ordering::Relaxed);
        result
    }

    fn operate<W: Workload, B: Binding>(
        &self,
        index: u64,
        workload: &W,
        binding: &B,
        board: &Board,
    ) -> Result<Measurements> {
        let clock = &*self.env.clock;
        let mut client = binding.client()?;
        let mut thread = workload.thread(index);
        let mut watch = Stopwatch {
            clock,
            measurements: Measurements::default(),
            intended: Duration::ZERO,
        };
        // The first operations of the threads are spread over one tick.
        let offset = if self.rate > 0.0 {
            index as f64 / self.threads as f64 / self.rate
        } else {
            0.0
        };
        let mut pace = Pace::new(
            self.rate,
            clock.monotonic() + Duration::from_secs_f64(offset),
        );
        let spread = self.operations % self.threads as u64 > index;
        let operations = self.operations / self.threads as u64 + u64::from(spread);
        for _ in 0..operations {
            if board.stop.load(Ordering::Relaxed) {
                break;
            }
            watch.intended = pace.wait(clock);
            match self.phase {
                Phase::Run => workload.run_one(&mut thread, &mut client, &mut watch)?,
                Phase::Load => {
                    if !workload.load_one(&mut thread, &mut client, &mut watch)? {
                        break;
                    }
                }
            }
            board.done.fetch_add(1, Ordering::Relaxed);
        }
        Ok(watch.measurements)
    }
}
