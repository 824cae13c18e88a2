//! The controller: a pure state machine from samples of the store to verdicts.
//!
//! Four measures are watched, each as a share of its limit: the bytes in memtables, the tables
//! of L0, the bytes compactions have to rewrite, and the waste on the disk. For each the speed at which it drains is
//! known in bytes of *writes*:
//!
//! - memtables drain at the speed of flushes, measured while they work. Over seconds it is the speed that
//!   writers get: a compaction beside takes from a flush for a second or two, and the line of memtables takes up
//!   the difference, so that writers hardly feel it.
//! - L0 and the debt drain at the speed of compactions divided by the *amplification*: the bytes
//!   of debt that came into being for each byte written, over the last many memtables. Both are
//!   measured, so the size of the tree, its style and the values' sizes need no model here.
//! - waste (files that wait to be removed, garbage in blob files past the share that is let be)
//!   drains at the speed files are removed with, divided by the waste each byte written brings.
//!
//! Debt comes and goes in jumps (a table appears in L0 and a whole level is due) while compactions
//! are slow, so its share is smoothed over seconds; memtables are filled and flushed within a
//! second, so theirs is not.

use std::time::Duration;

use super::speed::Speed;
use super::verdict::{Fill, Verdict};
use crate::watch::waits::WaitCause;

/// Work over which the speed of flushes is averaged: with compactions beside them and without.
const FLUSH_HORIZON: Duration = Duration::from_secs(8);
/// Work over which the speed of compactions is averaged: several jobs.
const COMPACTION_HORIZON: Duration = Duration::from_secs(20);
/// Over how long the shares of L0 and of the debt are smoothed.
const SHARE_HORIZON: Duration = Duration::from_secs(4);
/// Time over which the speed of freeing is averaged: files go in lumps, when a long job has ended.
const FREEING_HORIZON: Duration = Duration::from_secs(20);
/// Over how long the share of waste is smoothed, for the same reason.
const WASTE_HORIZON: Duration = Duration::from_secs(8);
/// Memtables over which the amplification is measured.
const AMPLIFICATION_MEMTABLES: f64 = 64.0;
/// A store that only moves its tables down has hardly any amplification; it is never taken for none.
const AMPLIFICATION_MIN: f64 = 0.1;
/// Taken for any speed that was not measured yet, in bytes a second.
const SPEED_GUESS: f64 = 64e6;

/// The state of the store at one moment. Sums only grow.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sample {
    /// Bytes written so far.
    pub(crate) written: u64,
    /// Bytes of memtables that flushes have passed so far, those under way included.
    pub(crate) flushed: u64,
    /// Whether a flush is under way.
    pub(crate) flushing: bool,
    /// Bytes of inputs that automatic compactions have passed so far, those under way included.
    pub(crate) compacted: u64,
    /// Whether an automatic compaction is under way.
    pub(crate) compacting: bool,
    /// Bytes in memtables that no flush has passed, of the family that is worst off.
    pub(crate) memory: Fill,
    /// Tables of L0, of the family that is worst off.
    pub(crate) level0: Fill,
    /// Bytes compactions still have to pass, of the family that is worst off.
    pub(crate) debt: Fill,
    /// Bytes on the disk that nothing needs any more.
    pub(crate) waste: Fill,
    /// Bytes of files removed so far.
    pub(crate) freed: u64,
    /// The debt over all families, for the amplification.
    pub(crate) debt_bytes: f64,
    /// Bytes of a memtable.
    pub(crate) memtable_bytes: f64,
}

/// See the module.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Controller {
    last: Option<(Duration, Sample)>,
    flush: Speed,
    compaction: Speed,
    freeing: Speed,
    /// Debt and waste that came into being, and bytes written meanwhile; all forgotten slowly.
    added: f64,
    wasted: f64,
    written: f64,
    level0_share: f64,
    debt_share: f64,
    waste_share: f64,
}

impl Default for Controller {
    fn default() -> Self {
        Self {
            last: None,
            flush: Speed::new(match drumlin_base::bug!("flushes-judged-by-the-moment") {
                true => FLUSH_HORIZON / 8,
                false => FLUSH_HORIZON,
            }),
            compaction: Speed::new(COMPACTION_HORIZON),
            freeing: Speed::new(FREEING_HORIZON),
            added: 0.0,
            wasted: 0.0,
            written: 0.0,
            level0_share: 0.0,
            debt_share: 0.0,
            waste_share: 0.0,
        }
    }
}

impl Controller {
    /// Takes in `sample`, seen at `now`, and says how fast writers may go from here.
    pub(crate) fn step(&mut self, now: Duration, sample: &Sample) -> Verdict {
        match self.last.replace((now, *sample)) {
            None => {
                self.level0_share = sample.level0.share();
                self.debt_share = sample.debt.share();
                self.waste_share = sample.waste.share();
            }
            Some((then, before)) => self.learn(now.saturating_sub(then), &before, sample),
        }
        let flush = self.flush.get().unwrap_or(SPEED_GUESS);
        let drain = self.sustainable();
        Verdict::of_memory(sample.memory.share(), flush)
            .and(Verdict::of(WaitCause::Level0, self.level0_share, drain))
            .and(Verdict::of(WaitCause::Debt, self.debt_share, drain))
            .and(self.waste())
    }

    /// The verdict on waste. Its drain is unknown until some was freed.
    fn waste(&self) -> Verdict {
        let Some(speed) = self.freeing.get().filter(|_| self.written > 0.0) else {
            return Verdict::FREE;
        };
        let wasted = (self.wasted / self.written).max(AMPLIFICATION_MIN);
        Verdict::of(WaitCause::Waste, self.waste_share, speed / wasted)
    }

    /// Measured speed of flushes over the last while, bytes of memtables a second of work.
    pub(crate) fn flush_speed(&self) -> Option<f64> {
        self.flush.get()
    }

    /// Measured speed of automatic compactions together, bytes of inputs a second of work.
    pub(crate) fn compaction_speed(&self) -> Option<f64> {
        self.compaction.get()
    }

    /// Bytes of debt for each byte written, if any were written.
    pub(crate) fn amplification(&self) -> Option<f64> {
        (self.written > 0.0).then(|| (self.added / self.written).max(AMPLIFICATION_MIN))
    }

    /// Bytes of writes a second that compactions can follow.
    pub(crate) fn sustainable(&self) -> f64 {
        let speed = self.compaction.get().unwrap_or(SPEED_GUESS);
        speed / self.amplification().unwrap_or(1.0)
    }

    fn learn(&mut self, passed: Duration, before: &Sample, sample: &Sample) {
        if before.flushing {
            self.flush
                .record(grown(before.flushed, sample.flushed), passed);
        }
        let compacted = grown(before.compacted, sample.compacted);
        if before.compacting {
            self.compaction.record(compacted, passed);
        }
        let freed = grown(before.freed, sample.freed);
        if before.waste.used > 0.0 {
            self.freeing.record(freed, passed);
        }
        let written = grown(before.written, sample.written);
        let kept = (-written / (AMPLIFICATION_MEMTABLES * sample.memtable_bytes.max(1.0))).exp();
        let added = sample.debt_bytes - before.debt_bytes + compacted;
        self.added = self.added * kept + added;
        let wasted = sample.waste.used - before.waste.used + freed;
        self.wasted = self.wasted * kept + wasted;
        self.written = self.written * kept + written;
        let weight =
            |horizon: Duration| 1.0 - (-passed.as_secs_f64() / horizon.as_secs_f64()).exp();
        let share = weight(SHARE_HORIZON);
        self.level0_share += share * (sample.level0.share() - self.level0_share);
        self.debt_share += share * (sample.debt.share() - self.debt_share);
        self.waste_share += weight(WASTE_HORIZON) * (sample.waste.share() - self.waste_share);
    }
}

fn grown(before: u64, now: u64) -> f64 {
    now.saturating_sub(before) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writers bring `wasted` bytes of waste for each byte they write, and may write 1,000 MB/s; 400
    /// MB/s are freed while there is any. Returns the bytes written in the last second, and the waste then.
    fn run(wasted: f64, seconds: u64) -> (f64, f64) {
        let mut controller = Controller::default();
        let (mut written, mut freed, mut waste) = (0.0f64, 0.0f64, 0.0f64);
        let mut last_second = 0.0;
        for step in 0..seconds * 100 {
            let sample = Sample {
                written: written as u64,
                freed: freed as u64,
                waste: Fill {
                    used: waste,
                    limit: 4e9,
                },
                memtable_bytes: 64e6,
                ..Sample::default()
            };
            let verdict = controller.step(Duration::from_millis(10 * step), &sample);
            let now = verdict.bytes_per_second.min(1e9) / 100.0;
            let gone = waste.min(4e6);
            written += now;
            waste += now * wasted - gone;
            freed += gone;
            if step >= (seconds - 1) * 100 {
                last_second += now;
            }
        }
        (last_second, waste)
    }

    #[test]
    fn writers_come_down_to_the_speed_at_which_waste_is_freed() {
        let (written, waste) = run(2.0, 120);
        assert!((written - 200e6).abs() < 30e6, "{written}");
        assert!(waste < 4e9, "{waste}");
    }

    #[test]
    fn waste_that_is_freed_as_fast_as_it_comes_holds_nobody() {
        let (written, waste) = run(0.3, 60);
        assert!((written - 1e9).abs() < 1e6, "{written}");
        assert!(waste < 1e9, "{waste}");
    }
}
