//! What the calling thread reads and waits for, counted for it alone: RocksDB's perf context.
//!
//! Nothing is counted until a thread asks for it. Until one has, a count is a load of a flag that nobody writes; after that, a
//! look at the thread's own level. Times are told by a clock that whoever asks brings along: none is read for counts.
//!
//! Thread safety: each thread has counts of its own; nobody else sees them.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};

/// What is counted. Times are nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Measure {
    /// Blocks found in the cache.
    CacheHits,
    /// Blocks read from files.
    BlockReads,
    /// Their bytes, as they are stored.
    BlockReadBytes,
    /// The time of reading them.
    BlockReadNanos,
    /// The time of checking their checksums.
    ChecksumNanos,
    /// The time of decompressing them.
    DecompressNanos,
    /// Bytes of values that single reads returned.
    GetBytes,
    /// Bytes of values that reads of several keys returned.
    MultiGetBytes,
    /// Bytes of keys and values that walks stood on.
    WalkBytes,
    /// Values read from blob files.
    BlobReads,
    /// Their bytes, as they are stored.
    BlobReadBytes,
    /// The time of reading them.
    BlobReadNanos,
    /// Memtables searched for a key.
    MemtableGets,
    /// The time of searching memtables for a key.
    MemtableGetNanos,
    /// The time of searching tables for a key.
    TableGetNanos,
    /// Memtables that seeks of walks looked in.
    MemtableSeeks,
    /// Memtables and tables that seeks of walks looked in, where there are several.
    SourceSeeks,
    /// The time of seeks of walks.
    SeekNanos,
    /// Filters of tables that let a key through.
    FilterHits,
    /// Filters of tables that said no.
    FilterMisses,
    /// The time of merge operators.
    MergeNanos,
    /// The time of writing to the WAL.
    WalNanos,
    /// The time of writing to memtables.
    MemtableWriteNanos,
    /// Locks of transactions that had to be waited for.
    LockWaits,
    /// The time of waiting for them.
    LockWaitNanos,
}

const MEASURES: usize = Measure::LockWaitNanos as usize + 1;

/// How much a thread wants to know.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Nothing is counted.
    #[default]
    Off,
    /// Counts.
    Counts,
    /// Counts and times.
    Times,
}

/// A clock's nanoseconds.
pub type Nanos = fn() -> u64;

/// Whether some thread counts, or did.
static WANTED: AtomicBool = AtomicBool::new(false);

struct Own {
    level: Cell<Level>,
    clock: Cell<Nanos>,
    counts: [Cell<u64>; MEASURES],
}

thread_local! {
    static OWN: Own = const {
        Own {
            level: Cell::new(Level::Off),
            clock: Cell::new(no_time),
            counts: [const { Cell::new(0) }; MEASURES],
        }
    };
}

fn no_time() -> u64 {
    0
}

/// What the calling thread counts from now on; its times are told by `clock`.
pub fn set_level(level: Level, clock: Nanos) {
    OWN.with(|own| {
        own.level.set(level);
        own.clock.set(clock);
    });
    if level > Level::Off {
        // Relaxed: a thread sees what it stored itself, and counts nothing before.
        WANTED.store(true, Ordering::Relaxed);
    }
}

/// The calling thread's level.
pub fn level() -> Level {
    OWN.with(|own| own.level.get())
}

/// Sets the calling thread's counts to 0.
pub fn reset() {
    OWN.with(|own| own.counts.iter().for_each(|count| count.set(0)));
}

/// A count of the calling thread.
pub fn read(measure: Measure) -> u64 {
    OWN.with(|own| own.counts[measure as usize].get())
}

/// Whether the calling thread counts.
#[inline]
pub fn is_on() -> bool {
    WANTED.load(Ordering::Relaxed) && own_is_on()
}

#[cold]
#[inline(never)]
fn own_is_on() -> bool {
    level() > Level::Off
}

/// Adds `n`, where the calling thread counts.
#[inline]
pub fn count(measure: Measure, n: u64) {
    if WANTED.load(Ordering::Relaxed) {
        add(measure, n);
    }
}

#[cold]
#[inline(never)]
fn add(measure: Measure, n: u64) {
    OWN.with(|own| {
        if own.level.get() > Level::Off {
            let n = match crate::bug!("perf-counts-once") {
                true => 1,
                false => n,
            };
            let count = &own.counts[measure as usize];
            count.set(count.get().wrapping_add(n));
        }
    });
}

/// Does `work`, and adds how long it takes where the calling thread wants times.
#[inline]
pub fn timed<T>(measure: Measure, work: impl FnOnce() -> T) -> T {
    if WANTED.load(Ordering::Relaxed) {
        timed_if_wanted(measure, work)
    } else {
        work()
    }
}

#[cold]
#[inline(never)]
fn timed_if_wanted<T>(measure: Measure, work: impl FnOnce() -> T) -> T {
    let least = match crate::bug!("perf-times-unasked") {
        true => Level::Counts,
        false => Level::Times,
    };
    let clock = OWN.with(|own| (own.level.get() >= least).then_some(own.clock.get()));
    let Some(clock) = clock else {
        return work();
    };
    let begin = clock();
    let result = work();
    add(measure, clock().saturating_sub(begin));
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clock() -> u64 {
        thread_local! {
            static NOW: Cell<u64> = const { Cell::new(0) };
        }
        NOW.set(NOW.get() + 7);
        NOW.get()
    }

    /// One test, for the flag is of the process.
    #[test]
    fn a_thread_counts_for_itself_from_when_it_asks() {
        count(Measure::BlockReads, 1);
        assert!(!is_on());
        set_level(Level::Counts, clock);
        count(Measure::BlockReads, 2);
        count(Measure::BlockReadBytes, 500);
        assert_eq!(timed(Measure::BlockReadNanos, || 3), 3);
        let read = |measures: [Measure; 3]| measures.map(read);
        let measures = [
            Measure::BlockReads,
            Measure::BlockReadBytes,
            Measure::BlockReadNanos,
        ];
        assert_eq!(read(measures), [2, 500, 0]);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                count(Measure::BlockReads, 9);
                assert!(!is_on());
                assert_eq!(read(measures), [0, 0, 0]);
            });
        });
        set_level(Level::Times, clock);
        timed(Measure::BlockReadNanos, || ());
        assert_eq!(read(measures), [2, 500, 7]);
        reset();
        set_level(Level::Off, clock);
        count(Measure::BlockReads, 1);
        assert_eq!(read(measures), [0, 0, 0]);
    }
}
