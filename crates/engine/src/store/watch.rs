//! Counters, timings and notices of a store.

use std::time::Duration;

use drumlin_base::Error;

use crate::files::disk_watch::DiskWatch;
use crate::watch::level_work::LevelCounters;
use crate::watch::notices::{Notice, Notices};
use crate::watch::pressure::Board;
use crate::watch::statistics::Statistics;
use crate::watch::times::StoreTimes;
use crate::watch::waits::{WaitCause, WaitsByCause};

/// See the module.
pub(crate) struct Watch {
    pub(crate) statistics: Statistics,
    /// How long calls and jobs took.
    pub(crate) times: StoreTimes,
    /// What jobs wrote into each level.
    pub(crate) levels: LevelCounters,
    /// How long writers waited.
    pub(crate) waits: WaitsByCause,
    /// For the listener.
    pub(crate) notices: Notices,
    /// Running jobs, and how fast writers may go because of them.
    pub(crate) board: Board,
    /// The cost of the disk to jobs.
    pub(crate) disk: DiskWatch,
}

impl Watch {
    /// Nothing yet; notices are for the listener of `notices`.
    pub(crate) fn new(notices: Notices, times: StoreTimes) -> Self {
        Self {
            statistics: Statistics::default(),
            times,
            levels: LevelCounters::default(),
            waits: WaitsByCause::default(),
            notices,
            board: Board::default(),
            disk: DiskWatch::default(),
        }
    }

    /// Counts a failure that no caller learns of, and notes it for the listener.
    pub(crate) fn report_error(&self, error: &Error) {
        self.statistics.background_errors.bump();
        if !drumlin_base::bug!("errors-untold") {
            self.notices
                .note(|| Notice::BackgroundFailed(error.duplicate()));
        }
    }

    /// Counts a writer's wait, and notifies the listener.
    pub(crate) fn note_wait(&self, wait: Duration, cause: WaitCause) {
        let micros = u64::try_from(wait.as_micros()).unwrap_or(u64::MAX);
        self.statistics.stall_micros.add(micros);
        self.waits.of(cause).record(wait);
        self.times.stall.record(wait);
        let why = cause.as_str();
        self.notices.note(|| Notice::WriteWaited { micros, why });
    }
}
