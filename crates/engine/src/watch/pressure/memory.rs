//! The backlog of the memtables: the bytes that no flush has passed, against their limit.
//!
//! While nothing waits for a flush nothing is behind, however full the memtable that is written to: it is
//! changed for an empty one when it is full, and nobody waits. From then on the bytes that flushes have
//! to pass and those in the memtable that is written to count together.
//!
//! One memtable may be flushed while the others fill, so the limit is one less than there may be. With
//! two that would be the state at each change, when one is full and none of it is flushed. There writers
//! have to go as fast as the flush, for then the second is full when the first is gone; that
//! speed is allowed three quarters on the way to the limit, which puts the limit a third above.

use super::verdict::Fill;

/// Memtables' worth of bytes at the limit where there are two of them.
const LIMIT_OF_TWO: f64 = 4.0 / 3.0;

/// Of a family whose memtables hold `buffer` bytes and may be `memtables_max`: `mutable` bytes are in the
/// one that is written to, `waiting` in the others, if there are any, without what their flushes have passed.
pub(super) fn memory_fill(
    mutable: f64,
    waiting: Option<f64>,
    buffer: f64,
    memtables_max: usize,
) -> Fill {
    Fill {
        used: waiting.map_or(0.0, |waiting| mutable + waiting.max(0.0)),
        limit: (memtables_max.saturating_sub(1) as f64).max(LIMIT_OF_TWO) * buffer,
    }
}

#[cfg(test)]
mod tests {
    use super::super::Verdict;
    use super::*;

    fn allowed(mutable: f64, waiting: Option<f64>, memtables_max: usize) -> f64 {
        let fill = memory_fill(mutable, waiting, 100.0, memtables_max);
        Verdict::of_memory(fill.share(), 1.0).bytes_per_second
    }

    #[test]
    fn a_full_memtable_holds_nobody_while_none_waits_for_its_flush() {
        for memtables_max in 2..6 {
            assert!(allowed(110.0, None, memtables_max).is_infinite());
        }
    }

    #[test]
    fn with_two_memtables_writers_go_as_fast_as_the_flush_from_the_change_on() {
        assert!((allowed(0.0, Some(100.0), 2) - 1.0).abs() < 1e-9);
        assert!((allowed(60.0, Some(40.0), 2) - 1.0).abs() < 1e-9);
        // A flush that is ahead lets them go faster, one that is behind holds them more.
        assert!(allowed(30.0, Some(40.0), 2) > 2.0);
        assert!(allowed(91.0, Some(40.0), 2) < 0.1);
    }
}
