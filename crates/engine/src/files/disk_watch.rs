//! The cost of the disk: the share of their time that jobs wait for it, and how long a sync takes.
//!
//! Thread safety: one short lock, a leaf, taken once a job and once a sync of the WAL.

use std::time::Duration;

use drumlin_base::sync::Mutex;
use drumlin_fs::IoTimes;

/// The weight of the newest figure in a moving average.
const NEWEST: f64 = 0.25;
/// From this part of their time on jobs are as fast as the disk lets them.
const DISK_BOUND: f64 = 0.5;

/// A moving average; `None` before the first figure.
#[derive(Clone, Copy, Debug, Default)]
struct Average(Option<f64>);

impl Average {
    fn add(&mut self, figure: f64) {
        self.0 = Some(match self.0 {
            None => figure,
            Some(before) => before + NEWEST * (figure - before),
        });
    }
}

#[derive(Debug, Default)]
struct Figures {
    flush_share: Average,
    compaction_share: Average,
    /// Seconds.
    wal_sync: Average,
    table_sync: Average,
}

/// The recent cost of the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct DiskCost {
    /// The part of their time, up to 1, that flushes wait for the disk.
    pub(crate) flush_share: Option<f64>,
    /// The same of compactions. One on several threads waits as soon as one of them does.
    pub(crate) compaction_share: Option<f64>,
    /// Time of a WAL sync.
    pub(crate) wal_sync: Option<Duration>,
    /// Time of a sync of a table or blob file.
    pub(crate) table_sync: Option<Duration>,
}

impl DiskCost {
    /// Whether flushes are as fast as the disk lets them.
    pub(crate) fn bounds_flushes(&self) -> bool {
        self.flush_share.is_some_and(|share| share >= DISK_BOUND)
    }

    /// Whether compactions are.
    pub(crate) fn bounds_compactions(&self) -> bool {
        self.compaction_share
            .is_some_and(|share| share >= DISK_BOUND)
    }
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct DiskWatch {
    figures: Mutex<Figures>,
}

impl DiskWatch {
    /// Notes a job that took `took`, with its calls.
    pub(crate) fn job_ended(&self, is_flush: bool, took: Duration, io: &IoTimes) {
        let mut figures = self.figures.lock();
        if let Some(sync) = io.syncs.mean() {
            figures.table_sync.add(sync.as_secs_f64());
        }
        if let Some(share) = share(took, io) {
            match is_flush || drumlin_base::bug!("compactions-watched-as-flushes") {
                true => figures.flush_share.add(share),
                false => figures.compaction_share.add(share),
            }
        }
    }

    /// Notes a sync of the WAL.
    pub(crate) fn wal_synced(&self, took: Duration) {
        self.figures.lock().wal_sync.add(took.as_secs_f64());
    }

    /// The recent cost of the disk.
    pub(crate) fn cost(&self) -> DiskCost {
        let figures = self.figures.lock();
        let time = |average: Average| average.0.map(Duration::from_secs_f64);
        DiskCost {
            flush_share: figures.flush_share.0,
            compaction_share: figures.compaction_share.0,
            wal_sync: time(figures.wal_sync),
            table_sync: time(figures.table_sync),
        }
    }
}

/// The part of `took` that a job waited for the disk; `None` when no time passed.
pub(crate) fn share(took: Duration, io: &IoTimes) -> Option<f64> {
    let seconds = took.as_secs_f64();
    let most = if drumlin_base::bug!("disk-share-unbounded") {
        f64::MAX
    } else {
        1.0
    };
    (seconds > 0.0).then(|| (io.total().as_secs_f64() / seconds).min(most))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn nothing_is_known_before_the_first_job() {
        let watch = DiskWatch::default();
        assert_eq!(watch.cost(), DiskCost::default());
        watch.job_ended(true, Duration::ZERO, &IoTimes::default());
        assert_eq!(watch.cost(), DiskCost::default());
        assert!(!watch.cost().bounds_flushes());
    }

    #[test]
    fn a_disk_that_becomes_slow_shows_and_one_that_recovers_too() {
        let watch = DiskWatch::default();
        let job = |writes: u64, sync: u64| {
            let io = IoTimes::default();
            io.writes.add(1, Duration::from_millis(writes));
            io.syncs.add(1, Duration::from_millis(sync));
            watch.job_ended(false, SECOND, &io);
        };
        job(10, 10);
        assert!(!watch.cost().bounds_compactions());
        (0..5).for_each(|_| job(700, 290));
        assert!(watch.cost().bounds_compactions());
        assert!(watch.cost().table_sync > Some(Duration::from_millis(200)));
        (0..8).for_each(|_| job(10, 10));
        assert!(!watch.cost().bounds_compactions());
        assert_eq!(watch.cost().flush_share, None);
    }

    #[test]
    fn threads_that_wait_together_wait_no_more_than_all_the_time() {
        let io = IoTimes::default();
        io.reads.add(2, 3 * SECOND);
        assert_eq!(share(SECOND, &io), Some(1.0));
    }
}
