//! Counters of one thread, and their sum over the threads.

use std::sync::Arc;
use std::time::Duration;

use drumlin_base::metrics::Counter;
use drumlin_fs::Clock;

use crate::histogram::Latencies;

/// The kind of an operation. Each has its own distribution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// A lookup, or a step of a scan.
    Read,
    /// A put, or a batch of them.
    Write,
    /// A deletion, or a batch of them.
    Delete,
    /// A seek and the steps after it.
    Seek,
    /// A block compressed.
    Compress,
    /// A block uncompressed.
    Uncompress,
    /// A checksum of a block.
    Checksum,
    /// Anything else.
    Other,
}

impl Operation {
    const ALL: [Self; 8] = [
        Self::Read,
        Self::Write,
        Self::Delete,
        Self::Seek,
        Self::Compress,
        Self::Uncompress,
        Self::Checksum,
        Self::Other,
    ];

    /// The peer's word for it in "Microseconds per ...".
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Delete => "delete",
            Self::Seek => "seek",
            Self::Compress => "compress",
            Self::Uncompress => "uncompress",
            Self::Checksum => "crc",
            Self::Other => "op",
        }
    }
}

/// The distributions of one thread; the clock is read once an operation.
#[derive(Debug)]
struct Timing {
    clock: Arc<dyn Clock>,
    last: Duration,
    latencies: Vec<(Operation, Latencies)>,
}

/// One thread's counts. Owned by the thread; merged when all are done.
#[derive(Debug, Default)]
pub struct ThreadStats {
    /// Operations done.
    pub operations: u64,
    /// Bytes of keys and values moved.
    pub bytes: u64,
    /// Keys found and keys asked for, of workloads that look keys up.
    pub found: Option<(u64, u64)>,
    /// A remark for the end of the line.
    pub remark: String,
    /// Whether this thread only accompanied the workload: its counts are reported on a line of
    /// their own.
    pub companion: bool,
    started: Duration,
    finished: Duration,
    timing: Option<Box<Timing>>,
    progress: Option<Arc<Counter>>,
}

impl ThreadStats {
    /// Starts counting. With `histogram` each operation is timed; `progress` is bumped by each.
    pub fn start(clock: &Arc<dyn Clock>, histogram: bool, progress: Option<Arc<Counter>>) -> Self {
        let started = clock.monotonic();
        let timing = histogram.then(|| {
            Box::new(Timing {
                clock: Arc::clone(clock),
                last: started,
                latencies: Vec::with_capacity(2),
            })
        });
        Self {
            started,
            finished: started,
            timing,
            progress,
            ..Self::default()
        }
    }

    /// `count` operations were finished, all in the time since the last call.
    #[inline]
    pub fn finished(&mut self, operation: Operation, count: u64) {
        self.operations += count;
        if let Some(timing) = &mut self.timing {
            timing.record(operation);
        }
        if let Some(progress) = &self.progress {
            progress.add(count);
        }
    }

    /// The time since the last operation belongs to none: it was slept away.
    pub fn skip_pause(&mut self) {
        if let Some(timing) = &mut self.timing {
            timing.last = timing.clock.monotonic();
        }
    }

    /// Restarts the thread's time: the operations before were preparations.
    pub fn begin_again(&mut self, clock: &Arc<dyn Clock>) {
        self.started = clock.monotonic();
        self.finished = self.started;
    }

    /// Stops the thread's time.
    pub fn stop(&mut self, clock: &Arc<dyn Clock>) {
        self.finished = clock.monotonic();
    }
}

impl Timing {
    fn record(&mut self, operation: Operation) {
        let now = self.clock.monotonic();
        let nanos = u64::try_from((now - self.last).as_nanos()).unwrap_or(u64::MAX);
        self.last = now;
        let known = self
            .latencies
            .iter_mut()
            .find(|(known, _)| *known == operation);
        if let Some((_, latencies)) = known {
            latencies.record(nanos);
            return;
        }
        let mut latencies = Latencies::new();
        latencies.record(nanos);
        self.latencies.push((operation, latencies));
    }
}

/// The sum over the threads of one run.
#[derive(Debug, Default)]
pub struct RunStats {
    /// Operations of all threads.
    pub operations: u64,
    /// Bytes of all threads.
    pub bytes: u64,
    /// Keys found and asked for, of all threads. (The peer prints one thread's.)
    pub found: Option<(u64, u64)>,
    /// The first thread's remark.
    pub remark: String,
    /// Seconds the threads worked, summed: the dividend of micros/op.
    pub thread_seconds: f64,
    /// Seconds from the first thread's start to the last one's end: the divisor of rates.
    pub elapsed_seconds: f64,
    /// Distributions by operation.
    pub latencies: Vec<(Operation, Latencies)>,
}

impl RunStats {
    /// Adds up `threads`. `None` when there are none.
    pub fn merge(threads: &[&ThreadStats]) -> Option<Self> {
        let started = threads.iter().map(|stats| stats.started).min()?;
        let finished = threads.iter().map(|stats| stats.finished).max()?;
        let mut sum = Self {
            elapsed_seconds: finished.saturating_sub(started).as_secs_f64(),
            ..Self::default()
        };
        for stats in threads {
            sum.operations += stats.operations;
            sum.bytes += stats.bytes;
            sum.thread_seconds += stats.finished.saturating_sub(stats.started).as_secs_f64();
            if let Some((found, asked)) = stats.found {
                let (found_before, asked_before) = sum.found.unwrap_or_default();
                sum.found = Some((found_before + found, asked_before + asked));
            }
            if sum.remark.is_empty() {
                sum.remark.clone_from(&stats.remark);
            }
        }
        sum.latencies = merge_latencies(threads);
        Some(sum)
    }
}

fn merge_latencies(threads: &[&ThreadStats]) -> Vec<(Operation, Latencies)> {
    let mut merged = Vec::new();
    for operation in Operation::ALL {
        let parts = threads
            .iter()
            .filter_map(|stats| stats.timing.as_ref())
            .flat_map(|timing| &timing.latencies)
            .filter(|(known, _)| *known == operation);
        let sum = parts.fold(None, |sum: Option<Latencies>, (_, part)| match sum {
            None => Some(part.clone()),
            Some(mut sum) => {
                sum.merge(part);
                Some(sum)
            }
        });
        merged.extend(sum.map(|latencies| (operation, latencies)));
    }
    merged
}
