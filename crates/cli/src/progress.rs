//! The bar that shows how far a long command is. It is drawn on standard error, and only when that
//! is a terminal.

use std::sync::Arc;

use drumlin::ProgressListener;
use indicatif::{ProgressBar, ProgressStyle};

const BAR: &str = "{msg:>10} {bar:40} {bytes}/{total_bytes} {bytes_per_sec} {eta}";
const SPINNER: &str = "{msg:>10} {spinner} {bytes} {bytes_per_sec} {elapsed}";

const SECONDS: &str = "{msg:>10} {bar:40} {pos}/{len} s";

/// Bytes between two updates: the bar costs a lock each.
const STEP_BYTES: u64 = 1 << 20;

/// A bar over a number of bytes, or a running count where the end is not known.
#[derive(Debug)]
pub(crate) struct Progress {
    bar: ProgressBar,
    pending: u64,
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
        Self { bar, pending: 0 }
    }

    /// A bar over a number of seconds.
    pub(crate) fn seconds(name: &'static str, total: u64) -> Self {
        let bar = ProgressBar::new(total);
        if let Ok(style) = ProgressStyle::with_template(SECONDS) {
            bar.set_style(style.progress_chars("=> "));
        }
        bar.set_message(name);
        Self { bar, pending: 0 }
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
