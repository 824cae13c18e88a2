//! The latency of this machine's memory, and of a hand-over between its cores. Every figure about
//! data in memory, and every figure of several writers, depends on them.
//!
//! Memory: each read's address follows from the word that the one before read, so that none overlaps with
//! another, and is anywhere in far more memory than the caches hold, on huge pages where the system has them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use drumlin_base::bytes::{LINE_BYTES, ResidentBytes};
use drumlin_base::{Error, ErrorKind, Result};
use drumlin_fs::Clock;

use crate::stats::{Operation, ThreadStats};

/// Memory read at random.
const MEMORY_BYTES: usize = 1 << 30;
/// Reads, one after the other.
const READS: u64 = 5_000_000;

/// Times a line is handed to another core and back.
const ROUND_TRIPS: u64 = 1_000_000;
/// Looks at a line before the core is offered to others: there may be no second one.
const LOOKS: u32 = 10_000;

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

/// A word on a cache line, and on the one fetched with it, of its own.
#[repr(align(128))]
struct Line(AtomicU64);

/// Hands a cache line to another thread and back, counting into `stats`: its time an operation is a
/// round trip, twice the cost of a line that two cores write in turn.
pub(crate) fn pass_a_line(stats: &mut ThreadStats) {
    let line = Line(AtomicU64::new(0));
    let serve = |turns: &mut dyn Iterator<Item = u64>| {
        for turn in turns {
            wait_for(&line, turn);
            line.0.store(turn + 1, Ordering::Release);
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(|| serve(&mut (0..ROUND_TRIPS).map(|trip| 2 * trip + 1)));
        serve(&mut (0..ROUND_TRIPS).map(|trip| 2 * trip));
    });
    stats.finished(Operation::Other, ROUND_TRIPS);
}

fn wait_for(line: &Line, turn: u64) {
    let mut looks = 0;
    while line.0.load(Ordering::Acquire) != turn {
        looks += 1;
        match looks % LOOKS {
            0 => std::thread::yield_now(),
            _ => std::hint::spin_loop(),
        }
    }
}
