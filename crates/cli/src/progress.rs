//! The bar that shows how far a long command is. It is drawn on standard error, and only when that
//! is a terminal.

use std::sync::Arc;
use std::time::Duration;

use drumlin::{Db, ProgressListener};
use drumlin_fs::{Env, JoinHandle};
use indicatif::{ProgressBar, ProgressStyle};

use crate::failure::Outcome;

const BAR: &str = "{msg:>10} {bar:40} {bytes}/{total_bytes} {bytes_per_sec} {eta}";
const SPINNER: &str = "{msg:>10} {spinner} {bytes} {bytes_per_sec} {elapsed}";

const WAITING: &str = "{msg:>10} {spinner} {elapsed}";
const SECONDS: &str = "{msg:>10} {bar:40} {pos}/{len} s";

/// Between two looks.
const TICK: Duration = Duration::from_millis(100);
/// Bytes between two updates: the bar costs a lock each.
const STEP_BYTES: u64 = 1 << 20;

/// A bar over a number of bytes, or a running count where the end is not known.
#[derive(Debug)]
pub(crate) struct Progress {
    bar: ProgressBar,
    pending: u64,
    /// What looks how far the work is.
    thread: Option<Box<dyn JoinHandle>>,
}

impl Progress {
    /// A bar called `name`.
    pub(crate) fn new(name: &'static str, total_bytes: Option<u64>) -> Self {
        let (bar, template) = match total_bytes {
            Some(total) => (ProgressBar::new(total), BAR),
            None => (ProgressBar::new_spinner(), SPINNER),
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.progress_chars("=> "));
        }
        bar.set_message(name);
        Self::over(bar)
    }

    fn over(bar: ProgressBar) -> Self {
        Self {
            bar,
            pending: 0,
            thread: None,
        }
    }

    /// A bar over a number of seconds.
    pub(crate) fn seconds(name: &'static str, total: u64) -> Self {
        let bar = ProgressBar::new(total);
        if let Ok(style) = ProgressStyle::with_template(SECONDS) {
            bar.set_style(style.progress_chars("=> "));
        }
        bar.set_message(name);
        Self::over(bar)
    }

    /// A sign of life with the time that has passed, for work that does not tell how far it is.
    pub(crate) fn waiting(name: &'static str) -> Self {
        let bar = ProgressBar::new_spinner();
        if let Ok(style) = ProgressStyle::with_template(WAITING) {
            bar.set_style(style);
        }
        bar.set_message(name);
        bar.enable_steady_tick(TICK);
        Self::over(bar)
    }

    /// A count of the bytes that compactions of `db` read, looked at while they run.
    pub(crate) fn of_compactions(name: &'static str, db: &Db) -> Outcome<Self> {
        let mut progress = Self::new(name, None);
        if progress.bar.is_hidden() {
            return Ok(progress);
        }
        let (bar, db, env) = (progress.bar.clone(), db.clone(), Env::system());
        let clock = Arc::clone(&env.clock);
        let before = db.statistics().compaction_read_bytes.get();
        let look = move || {
            while !bar.is_finished() {
                let jobs = db
                    .metrics()
                    .map_or_else(|_| Vec::new(), |metrics| metrics.jobs);
                let running: f64 = jobs.iter().map(|job| job.share * job.bytes as f64).sum();
                let done = db.statistics().compaction_read_bytes.get() - before;
                // A job that ends is counted twice for a moment, or not at all.
                bar.set_position(bar.position().max(done + running as u64));
                clock.sleep(TICK);
            }
        };
        progress.thread = Some(env.spawner.spawn("progress", Box::new(look))?);
        Ok(progress)
    }

    /// So many seconds have passed.
    pub(crate) fn reach_second(&mut self, second: u64) {
        self.bar.set_position(second);
    }

    /// `bytes` more are done.
    pub(crate) fn advance(&mut self, bytes: u64) {
        self.pending += bytes;
        if self.pending >= STEP_BYTES {
            self.bar.inc(std::mem::take(&mut self.pending));
        }
    }

    /// Moves the bar as a backup or restore tells; its end may come later and later.
    pub(crate) fn listener(&self) -> ProgressListener {
        let bar = self.bar.clone();
        Arc::new(move |progress| {
            bar.set_length(progress.bytes_total);
            bar.set_position(progress.bytes);
        })
    }

    /// Takes the bar off the screen.
    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join(); // A bar that went wrong is no failure of the work.
        }
    }
}
