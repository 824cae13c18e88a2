//! How long this machine waits for memory: what every figure about data in memory is made of.
//!
//! Each read's address follows from what the one before read, so that none overlaps with another, and
//! lies anywhere in far more memory than the caches hold, on huge pages where the system has them.

use std::sync::Arc;

use drumlin_base::bytes::{LINE_BYTES, ResidentBytes};
use drumlin_base::{Error, ErrorKind, Result};
use drumlin_fs::Clock;

use crate::stats::{Operation, ThreadStats};

/// Memory read at random.
const MEMORY_BYTES: usize = 1 << 30;
/// Reads, one after the other.
const READS: u64 = 5_000_000;

/// Reads memory, counting into `stats`: its time an operation is the latency of a read.
///
/// # Errors
/// `TooLarge` without the memory.
pub(crate) fn read_memory(stats: &mut ThreadStats, clock: &Arc<dyn Clock>) -> Result<()> {
    let none = || Error::new(ErrorKind::TooLarge, "no memory to measure");
    let memory = ResidentBytes::filled(MEMORY_BYTES, |bytes| {
        bytes.fill(1);
        Ok::<(), Error>(())
    });
    let memory = memory.ok_or_else(none)??;
    let bytes = memory.bytes();
    stats.begin_again(clock);
    let mut state = 1u64;
    for _ in 0..READS {
        let line = (state >> 33) as usize % (MEMORY_BYTES / LINE_BYTES);
        let read = bytes.get(line * LINE_BYTES).copied().unwrap_or_default();
        // Knuth's constants (MMIX).
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407 + u64::from(read));
    }
    std::hint::black_box(state);
    stats.finished(Operation::Other, READS);
    Ok(())
}
