//! The cost of reading several sorted runs instead of one, sampled and charged to the newer tables.
//!
//! A get that must search several sorted runs, and a walk that must seek and merge several, would be
//! cheaper if those were one. Its loss to each run but the oldest, in bytes of compaction worth spending to
//! spare it, is charged to that run's table
//! ([`crate::version::FileMeta::charge_reads`]), and compaction merges what was charged enough
//! ([`crate::compaction::for_reads`]).
//!
//! The usual read writes nothing that other threads read: about one get in [`GETS_PER_SAMPLE`] is looked
//! at and charged for all of them, and a walk is each time it has cost [`WALK_SAMPLE_BYTES`]. Where
//! samples fall is drawn by a generator of each thread ([`Sampler`]).

use std::cell::Cell;

use drumlin_base::sampler::Sampler;

use crate::version::FileMeta;

/// Bytes of compaction worth spending to save a get one table. A table searched in vain costs a quarter of a
/// microsecond when it is cached (the filter's cache lines), and one in a hundred (a filter's error) reads a
/// block from the disk. Compacting a byte takes about three nanoseconds of a thread that has nothing else to
/// do; a reader's time counts several times as much.
const GET_BYTES: u64 = 2 << 10;

/// The same where the tables are in memory and are prefetched together: one more table costs some twenty
/// nanoseconds (an estimate, not measured). A reader's time counts twice: on a machine whose cores are all
/// reading, compaction would take theirs.
const GET_BYTES_IN_MEMORY: u64 = 16;

/// The same for a seek and one run less: a seek reads a block of every run, and no filter saves it that.
const SEEK_BYTES: u64 = 4 << 10;

/// The same for a step of a walk and one run less: some ten nanoseconds of merging.
const STEP_BYTES: u64 = 32;

/// Gets to each one that is looked at, on average.
const GETS_PER_SAMPLE: u32 = 128;

/// The cost of a walk for each run at which it is sampled.
const WALK_SAMPLE_BYTES: u64 = GET_BYTES * GETS_PER_SAMPLE as u64;

type GetSampler = Sampler<GETS_PER_SAMPLE>;

thread_local! {
    static SAMPLER: Cell<GetSampler> = const { Cell::new(GetSampler::new()) };
}

fn with_sampler<R>(act: impl FnOnce(&mut GetSampler) -> R) -> R {
    SAMPLER.with(|cell| {
        let mut sampler = cell.get();
        let result = act(&mut sampler);
        cell.set(sampler);
        result
    })
}

/// Whether this get is sampled: it notes the tables it searches in a [`Searched`].
#[inline]
pub(super) fn is_get_sampled() -> bool {
    with_sampler(|sampler| sampler.count(1).is_some())
}

/// The sampled ones of `keys`, a batch: each is looked up once more, noting the tables it searches.
pub(super) fn sampled_of<K>(keys: &[K]) -> impl Iterator<Item = &K> {
    let mut rest = keys;
    std::iter::from_fn(move || {
        let gets = u32::try_from(rest.len()).unwrap_or(u32::MAX);
        let at = with_sampler(|sampler| sampler.count(gets))?;
        let (before, after) = rest.split_at_checked(at as usize + 1)?;
        rest = after;
        before.last()
    })
}

/// The table a get searched last, which is charged once another is searched.
pub(super) struct Searched<'a> {
    last: Option<&'a FileMeta>,
    /// The charge for each table but the last.
    bytes: u64,
}

impl<'a> Searched<'a> {
    /// No table searched yet. A get `in_memory` loses less to each.
    pub(super) fn new(in_memory: bool) -> Self {
        Self {
            last: None,
            bytes: if in_memory {
                GET_BYTES_IN_MEMORY
            } else {
                GET_BYTES
            },
        }
    }

    /// The get searches `file` next, within whose bounds its key is.
    pub(super) fn note(&mut self, file: &'a FileMeta) {
        if let Some(newer) = self.last.replace(file) {
            newer.charge_reads(self.bytes * u64::from(GETS_PER_SAMPLE));
        }
    }
}

/// The cost of a walk for each run it merges, until it is charged.
#[derive(Debug)]
pub(super) struct WalkMeter {
    left: u64,
}

impl WalkMeter {
    /// A meter whose first sample falls anywhere, so that many short walks pay as much as a long one.
    pub(super) fn new() -> Self {
        Self {
            left: 1 + with_sampler(|sampler| sampler.draw(WALK_SAMPLE_BYTES)),
        }
    }

    /// Counts a step. Gives the bytes to charge for it and the steps before it, when they are due.
    #[inline]
    pub(super) fn step(&mut self) -> Option<u64> {
        self.count(STEP_BYTES)
    }

    /// Counts a seek. Gives the bytes to charge for it and the steps before it, when they are due.
    pub(super) fn seek(&mut self) -> Option<u64> {
        self.count(SEEK_BYTES)
    }

    #[inline]
    fn count(&mut self, bytes: u64) -> Option<u64> {
        if bytes < self.left {
            self.left -= bytes;
            return None;
        }
        self.left += WALK_SAMPLE_BYTES - bytes;
        Some(WALK_SAMPLE_BYTES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_walks_pay_as_much_as_long_ones() {
        let mut charged = 0;
        let walks = 64 * WALK_SAMPLE_BYTES / (SEEK_BYTES + 10 * STEP_BYTES);
        for _ in 0..walks {
            let mut meter = WalkMeter::new();
            charged += meter.seek().unwrap_or(0);
            charged += (0..10).filter_map(|_| meter.step()).sum::<u64>();
        }
        let cost = 64 * WALK_SAMPLE_BYTES;
        assert!(
            (cost / 2..cost * 2).contains(&charged),
            "{charged} of {cost}"
        );
        let mut meter = WalkMeter::new();
        let steps = 64 * WALK_SAMPLE_BYTES / STEP_BYTES;
        let charged: u64 = (0..steps).filter_map(|_| meter.step()).sum();
        assert_eq!(charged, cost);
    }
}
