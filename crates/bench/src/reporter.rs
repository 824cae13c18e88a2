//! The interval report: operations of each interval as a line of CSV, as db_bench's
//! `--report_interval_seconds` writes it. The file shows the course of a stall.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use drumlin_base::Result;
use drumlin_base::metrics::Counter;
use drumlin_fs::{CreateOptions, Env, FileKind, JoinHandle};

use crate::flags::Flags;

/// How long the reporter sleeps between looks at the stop sign.
const NAP: Duration = Duration::from_millis(50);

/// A thread that writes the report until dropped or stopped.
pub(crate) struct Reporter {
    operations: Arc<Counter>,
    stop: Arc<AtomicBool>,
    thread: Option<Box<dyn JoinHandle>>,
}

impl Reporter {
    /// Starts reporting if `flags` ask for it.
    pub(crate) fn start(flags: &Flags, env: &Env) -> Result<Option<Self>> {
        if flags.report_interval_seconds == 0 {
            return Ok(None);
        }
        let operations = Arc::new(Counter::default());
        let stop = Arc::new(AtomicBool::new(false));
        let interval = Duration::from_secs(flags.report_interval_seconds);
        let report = Report {
            env: env.clone(),
            path: PathBuf::from(&flags.report_file),
            interval,
            operations: Arc::clone(&operations),
            stop: Arc::clone(&stop),
        };
        let body = Box::new(move || {
            if let Err(error) = report.write() {
                tracing::warn!(%error, "the interval report ends here");
            }
        });
        let thread = Some(env.spawner.spawn("bench-report", body)?);
        Ok(Some(Self {
            operations,
            stop,
            thread,
        }))
    }

    /// The counter that the workload's threads increment.
    pub(crate) fn operations(&self) -> Arc<Counter> {
        Arc::clone(&self.operations)
    }
}

impl Drop for Reporter {
    fn drop(&mut self) {
        // Relaxed: the flag publishes nothing; joining orders the thread's writes.
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take()
            && let Err(error) = thread.join()
        {
            tracing::warn!(%error, "the reporting thread ended badly");
        }
    }
}

struct Report {
    env: Env,
    path: PathBuf,
    interval: Duration,
    operations: Arc<Counter>,
    stop: Arc<AtomicBool>,
}

impl Report {
    fn write(&self) -> Result<()> {
        let options = CreateOptions::new(FileKind::Other);
        let mut file = self.env.files.create(&self.path, options)?;
        file.append(b"secs_elapsed,interval_qps\n")?;
        let started = self.env.clock.monotonic();
        let (mut due, mut last) = (started + self.interval, 0);
        while !self.stop.load(Ordering::Relaxed) {
            let now = self.env.clock.monotonic();
            if now < due {
                self.env.clock.sleep(NAP.min(due - now));
                continue;
            }
            let operations = self.operations.get();
            let rate = (operations - last) as f64 / self.interval.as_secs_f64();
            let seconds = (due - started).as_secs();
            file.append(format!("{seconds},{rate:.0}\n").as_bytes())?;
            last = operations;
            due += self.interval;
        }
        file.close()
    }
}
