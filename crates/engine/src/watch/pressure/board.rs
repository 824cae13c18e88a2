//! The board: the running jobs and their progress, and the verdict that follows from them.
//!
//! Thread safety: jobs are posted and taken down by the threads that run them, the leader looks
//! while it writes; one short lock, a leaf, guards it all. The verdict can be read without it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::time::Duration;

use drumlin_base::limits::LEVELS;
use drumlin_base::sync::{Mutex, MutexGuard};

use super::controller::{Controller, Sample};
use super::debt::leveled_debt;
use super::memory::memory_fill;
use super::pace::Pace;
use super::verdict::Fill;
use crate::compaction::progress::Progress;
use crate::compaction::{CompactionStyle, pending_bytes};
use crate::family::column_family::Family;
use crate::version::excess_garbage;
use crate::watch::events::WritePressure;
use crate::watch::waits::WaitCause;

/// Debt allowed, in sizes of the first level: the cost to bring down about three of them
/// through a deep tree.
const DEBT_LEVELS: f64 = 32.0;

/// Waste allowed beside the size of the store, however small that is.
const WASTE_MIN: u64 = 1 << 30;

/// Progress of file removal.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Removal {
    /// Bytes of the files still to be removed.
    pub(crate) waiting: u64,
    /// Bytes removed so far.
    pub(crate) freed: u64,
}

/// A flush or a compaction under way.
#[derive(Clone, Debug)]
pub(crate) struct RunningJob {
    /// The family.
    pub(crate) family: u32,
    /// A description for people.
    pub(crate) what: String,
    /// The kind, which says which writers wait for it.
    pub(crate) kind: JobKind,
    /// How far it is.
    pub(crate) progress: Arc<Progress>,
    /// When it began.
    pub(crate) since: Duration,
}

/// The backlog a job drains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JobKind {
    /// Memtables.
    Flush,
    /// The debt, and `l0_tables` of L0.
    Compaction {
        /// Tables of L0 among the inputs.
        l0_tables: usize,
    },
    /// Nothing that writers wait for: the user asked for it.
    Manual,
}

#[derive(Debug, Default)]
struct Inner {
    controller: Controller,
    jobs: Vec<Arc<RunningJob>>,
    /// Bytes of inputs of the jobs that ended well.
    flushed: u64,
    compacted: u64,
    state: Option<PressureState>,
    pace: Pace,
    /// The family because of which writers are slowed; the default one where no family alone is.
    held_for: Option<u32>,
    /// The family whose writers wait for a memtable: who waits has the lead, so there is one at most.
    stopped: Option<u32>,
}

/// Result of the last look, for people.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PressureState {
    pub(crate) sample: Sample,
    pub(crate) flush_speed: Option<f64>,
    pub(crate) compaction_speed: Option<f64>,
    pub(crate) amplification: Option<f64>,
    pub(crate) sustainable: f64,
}

impl Inner {
    /// How writers are held back because of `family`, but for those that wait for a memtable.
    fn but_for_stops(&self, family: u32) -> WritePressure {
        match self.held_for == Some(family) {
            true => WritePressure::Delayed,
            false => WritePressure::None,
        }
    }
}

/// Tells of a change for a family, from one to the other. Called with the board's lock, so that changes are told in their order: it
/// may take the lock of notices, and no other.
pub(crate) type Tell<'a> = &'a dyn Fn(u32, WritePressure, WritePressure);

/// See the module.
#[derive(Debug)]
pub(crate) struct Board {
    inner: Mutex<Inner>,
    /// Bytes written since the database was opened; the leader's to add to.
    written: AtomicU64,
    /// That number when [`Board::was_written`] was last asked.
    asked: AtomicU64,
    /// The present verdict: an `f64` as bits, and the cause's place in `WaitCause::ALL`. Relaxed:
    /// both are advice, and a mix of two verdicts is as good as either.
    allowed: AtomicU64,
    cause: AtomicU8,
}

impl Default for Board {
    fn default() -> Self {
        Self {
            inner: Mutex::default(),
            written: AtomicU64::new(0),
            asked: AtomicU64::new(0),
            allowed: AtomicU64::new(f64::INFINITY.to_bits()),
            cause: AtomicU8::new(0),
        }
    }
}

impl Board {
    /// Bytes a second that writers may write now; infinite when nothing holds them.
    #[inline]
    pub(crate) fn allowed(&self) -> f64 {
        f64::from_bits(self.allowed.load(Ordering::Relaxed))
    }

    /// As if a look had come to this.
    #[cfg(test)]
    pub(crate) fn allow(&self, bytes_per_second: f64) {
        self.allowed
            .store(bytes_per_second.to_bits(), Ordering::Relaxed);
    }

    /// The measure that allows no more than [`Board::allowed`].
    pub(crate) fn cause(&self) -> WaitCause {
        let index = usize::from(self.cause.load(Ordering::Relaxed));
        WaitCause::ALL
            .get(index)
            .copied()
            .unwrap_or(WaitCause::Memtables)
    }

    /// Counts bytes that were written.
    pub(crate) fn add_written(&self, bytes: u64) {
        self.written.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Bytes written since the database was opened.
    pub(crate) fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    /// Whether anything was written since this was last asked.
    pub(crate) fn was_written(&self) -> bool {
        let written = self.written();
        self.asked.swap(written, Ordering::Relaxed) != written
    }

    /// Bytes a second that are written at present, by all writers.
    pub(crate) fn pace(&self, now: Duration) -> f64 {
        let written = self.written();
        self.lock().pace.look(now, written)
    }

    /// Posts a job that begins.
    pub(crate) fn begin(&self, job: RunningJob) -> Arc<RunningJob> {
        let job = Arc::new(job);
        self.lock().jobs.push(Arc::clone(&job));
        job
    }

    /// Takes a job down; `done` says whether it drained what it was to drain.
    pub(crate) fn end(&self, job: &Arc<RunningJob>, done: bool) {
        let mut inner = self.lock();
        inner.jobs.retain(|other| !Arc::ptr_eq(other, job));
        let bytes = if done { job.progress.bytes_total() } else { 0 };
        match job.kind {
            JobKind::Flush => inner.flushed += bytes,
            JobKind::Compaction { .. } => inner.compacted += bytes,
            JobKind::Manual => {}
        }
    }

    /// The running jobs, oldest first.
    pub(crate) fn jobs(&self) -> Vec<Arc<RunningJob>> {
        self.lock().jobs.clone()
    }

    /// Result of the last look.
    pub(crate) fn state(&self) -> Option<PressureState> {
        self.lock().state
    }

    /// Writers of `family` begin to wait for a memtable.
    pub(crate) fn begin_stop(&self, family: u32, tell: Tell<'_>) {
        let mut inner = self.lock();
        inner.stopped = Some(family);
        tell(family, inner.but_for_stops(family), WritePressure::Stopped);
    }

    /// They wait no more.
    pub(crate) fn end_stop(&self, family: u32, tell: Tell<'_>) {
        let mut inner = self.lock();
        inner.stopped = None;
        tell(family, WritePressure::Stopped, inner.but_for_stops(family));
    }

    /// Looks at `families` at the time `now` and judges anew; the bytes they hold. Cost: a microsecond, and a
    /// fraction of one for each family.
    pub(crate) fn look<'a>(
        &self,
        now: Duration,
        removal: Removal,
        families: impl Iterator<Item = &'a Arc<Family>>,
        tell: Tell<'_>,
    ) -> u64 {
        let mut inner = self.lock();
        let mut fullest = Fullest::default();
        let (sample, needed) = self.sample(&inner, removal, families, &mut fullest);
        let verdict = inner.controller.step(now, &sample);
        inner.state = Some(PressureState {
            sample,
            flush_speed: inner.controller.flush_speed(),
            compaction_speed: inner.controller.compaction_speed(),
            amplification: inner.controller.amplification(),
            sustainable: inner.controller.sustainable(),
        });
        self.allowed
            .store(verdict.bytes_per_second.to_bits(), Ordering::Relaxed);
        let cause = WaitCause::ALL
            .iter()
            .position(|cause| Some(*cause) == verdict.cause);
        self.cause
            .store(cause.unwrap_or_default() as u8, Ordering::Relaxed);
        let turned = match (inner.held_for, verdict.cause) {
            (None, Some(cause)) => Some((fullest.of(cause), true)),
            (Some(family), None) => Some((family, false)),
            _ => None,
        };
        if let Some((family, is_held)) = turned {
            let before = inner.but_for_stops(family);
            inner.held_for = is_held.then_some(family);
            if inner.stopped != Some(family) {
                tell(family, before, inner.but_for_stops(family));
            }
        }
        needed
    }

    fn sample<'a>(
        &self,
        inner: &Inner,
        removal: Removal,
        families: impl Iterator<Item = &'a Arc<Family>>,
        fullest: &mut Fullest,
    ) -> (Sample, u64) {
        let (mut waste, mut needed) = (removal.waiting, 0);
        let mut sample = Sample {
            written: self.written.load(Ordering::Relaxed),
            flushed: inner.flushed,
            compacted: inner.compacted,
            freed: removal.freed,
            ..Sample::default()
        };
        for job in &inner.jobs {
            match job.kind {
                JobKind::Flush => {
                    sample.flushing = true;
                    sample.flushed += job.progress.bytes_done();
                }
                JobKind::Compaction { .. } => {
                    sample.compacting = true;
                    sample.compacted += job.progress.bytes_done();
                }
                JobKind::Manual => {}
            }
        }
        for family in families {
            let fills = FamilyFills::of(family, &inner.jobs);
            fullest.note(family.id, &sample, &fills);
            sample.memory = worse(sample.memory, fills.memory);
            sample.level0 = worse(sample.level0, fills.level0);
            sample.debt = worse(sample.debt, fills.debt);
            sample.debt_bytes += fills.debt.used;
            sample.memtable_bytes = sample.memtable_bytes.max(family.write_buffer() as f64);
            waste += fills.excess_garbage;
            needed += fills.needed;
        }
        sample.waste = Fill {
            used: waste as f64,
            limit: needed.max(WASTE_MIN) as f64,
        };
        (sample, needed)
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock()
    }
}

fn worse(a: Fill, b: Fill) -> Fill {
    if b.share() > a.share() { b } else { a }
}

/// The family that is fullest, by each measure.
#[derive(Default)]
struct Fullest {
    memory: u32,
    level0: u32,
    debt: u32,
}

impl Fullest {
    /// Notes the family `id` where its fills are worse than those before.
    fn note(&mut self, id: u32, before: &Sample, fills: &FamilyFills) {
        let places = [
            (&mut self.memory, before.memory, fills.memory),
            (&mut self.level0, before.level0, fills.level0),
            (&mut self.debt, before.debt, fills.debt),
        ];
        for (place, before, fill) in places {
            if fill.share() > before.share() {
                *place = id;
            }
        }
    }

    fn of(&self, cause: WaitCause) -> u32 {
        match cause {
            WaitCause::Memtables | WaitCause::FullLine => self.memory,
            WaitCause::Level0 => self.level0,
            WaitCause::Debt => self.debt,
            WaitCause::Waste => 0,
        }
    }
}

/// How full everything of one family is.
struct FamilyFills {
    memory: Fill,
    level0: Fill,
    debt: Fill,
    /// Bytes of garbage in blob files past the share that is let be.
    excess_garbage: u64,
    /// Bytes of tables, and of blobs they refer to.
    needed: u64,
}

impl FamilyFills {
    fn of(family: &Family, jobs: &[Arc<RunningJob>]) -> Self {
        let super_version = family.super_version.load();
        let mutable = super_version.memtable.bytes();
        let waiting: usize = super_version
            .immutables
            .iter()
            .map(|memtable| memtable.bytes())
            .sum();
        let (mut flushed, mut compacted, mut l0_done) = (0, 0, 0.0);
        for job in jobs.iter().filter(|job| job.family == family.id) {
            match job.kind {
                JobKind::Flush => flushed += job.progress.bytes_done(),
                JobKind::Compaction { l0_tables } => {
                    compacted += job.progress.bytes_done();
                    l0_done += l0_tables as f64 * job.progress.share();
                }
                JobKind::Manual => {}
            }
        }
        let left = |all: f64, done: f64| (all - done).max(0.0);
        let settings = family.settings();
        let buffer = family.write_buffer() as f64;
        let waiting = left(waiting as f64, flushed as f64);
        let memory_bytes = mutable as f64 + waiting;
        let memory = memory_fill(
            mutable as f64,
            (!super_version.immutables.is_empty()).then_some(waiting),
            buffer,
            settings.tuning.memtables_max,
        );
        let blobs = super_version.version.blob_totals();
        let tables: u64 = (0..LEVELS)
            .map(|level| super_version.version.level_bytes(level))
            .sum();
        let excess_garbage = excess_garbage(&blobs);
        let needed = tables + blobs.blob_bytes.saturating_sub(blobs.garbage_bytes);
        if !settings.compaction.style.drains_l0() {
            return Self {
                memory,
                level0: Fill::default(),
                debt: Fill::default(),
                excess_garbage,
                needed,
            };
        }
        let options = &settings.compaction;
        let batch = options.l0_trigger as f64 * buffer;
        let debt = match options.style {
            CompactionStyle::Universal(_) => {
                pending_bytes(&super_version.version, options) as f64 + memory_bytes
            }
            _ => leveled_debt(&super_version.version, options, memory_bytes, batch),
        };
        Self {
            memory,
            level0: Fill {
                used: left(super_version.version.level(0).len() as f64, l0_done),
                limit: 2.0 * settings.tuning.l0_slowdown as f64,
            },
            debt: Fill {
                used: left(debt, compacted as f64),
                limit: DEBT_LEVELS * options.level_base_bytes as f64,
            },
            excess_garbage,
            needed,
        }
    }
}
