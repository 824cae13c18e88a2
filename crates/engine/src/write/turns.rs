//! Writers that take turns where there are fewer cores than threads with work.
//!
//! Two writers at once hand some ten cache lines to each other with each small write: the lead, the log's
//! end, the memtable's upper nodes. Between cores that share no cache that takes three times the work
//! itself, so that two write less than one alone would. Where each has a core, that is its own affair.
//! Where background jobs want the cores too, somebody waits for one in any case, and it had better be a
//! writer that would be in another's way: it sleeps for a millisecond and then has the turn, and the other
//! sleeps. What is saved goes to the writer that is awake, and to compactions. Letting fewer threads
//! circulate through what they contend for is the idea of "Malthusian Locks" (Dice, EuroSys 2017).
//!
//! Only a writer in a burst takes part, beside another in a burst; all others pass. Who slept and then lost
//! the turn at once, to a writer that does not take part, passes for a long while: the worst case costs
//! a write 60 ns on average.
//!
//! Invariant: nothing here decides what is written, nor in which order. All of it is a hint, so every access
//! is relaxed, and two writers that both believe that it is their turn do no harm.
//!
//! Thread safety: every method may be called from any thread.

use std::cell::Cell;
use std::time::Duration;

use drumlin_base::SeqNo;
use drumlin_base::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use drumlin_fs::Clock;

use crate::write::published::Published;

/// How long who gives way sleeps: some two thousand writes, so that fewer than one in a thousand is one
/// that slept.
const TURN: Duration = Duration::from_millis(1);

/// A batch of more bytes takes long beside the handing over of lines.
pub(crate) const SMALL_BYTES: usize = 1 << 10;

/// Entries published between two writes of a thread in a burst, at most, for each entry it wrote itself.
const OTHERS_MAX: u64 = 4;

/// Writes in a row that make a burst.
const BURST: i32 = 64;

/// Looks at whoever has the turn, some ten microseconds: two writes in this time are a burst, by a writer that
/// others are in the way of, too.
const LOOKS: u32 = 600;

/// Writes that sleeping should have been good for. A few: who is driven from its core in its turn loses it too.
const TURN_WRITES_MIN: u32 = 16;

/// Writes for which a writer passes whose turn was shorter.
const PASSES: i32 = 1 << 14;

/// See the module.
#[derive(Debug)]
pub(crate) struct Turns {
    cores: usize,
    /// Background jobs under way.
    jobs: AtomicUsize,
    turn: Turn,
}

/// On a line of its own, which stays with the core of whoever has the turn.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Turn {
    /// Whose turn it is; 0 is nobody's.
    owner: AtomicUsize,
    /// Writes in turns so far. Stored by the owner.
    writes: AtomicU64,
}

/// What a thread knows of its own writes.
#[derive(Clone, Copy, Debug)]
struct Writer {
    /// What was published when its last write began.
    seen: SeqNo,
    /// Writes in a burst; below 0 it passes.
    streak: i32,
    /// Writes since it slept for its turn; `u32::MAX` when it did not.
    written: u32,
}

impl Writer {
    const fn new() -> Self {
        Self {
            seen: 0,
            streak: 0,
            written: u32::MAX,
        }
    }

    /// Counts a write of `entries` that begins when `published` is.
    fn count(&mut self, entries: u32, published: SeqNo) {
        let others = published.saturating_sub(self.seen);
        self.seen = published;
        let is_near = others <= OTHERS_MAX * u64::from(entries);
        self.streak = match self.streak {
            passing if passing < 0 => passing + 1,
            streak if is_near || drumlin_base::bug!("any-writer-in-a-burst") => {
                (streak + 1).min(BURST)
            }
            _ => 0,
        };
    }

    /// Ends the turn it had, if it had one.
    fn end_turn(&mut self) {
        let written = std::mem::replace(&mut self.written, u32::MAX);
        if written < TURN_WRITES_MIN && !drumlin_base::bug!("short-turns-unpunished") {
            self.streak = -PASSES;
        }
    }
}

thread_local! {
    static WRITER: Cell<Writer> = const { Cell::new(Writer::new()) };
}

/// A background job under way, as far as writers are concerned.
#[derive(Debug)]
pub(crate) struct BusyJob<'a> {
    jobs: &'a AtomicUsize,
}

impl Drop for BusyJob<'_> {
    fn drop(&mut self) {
        self.jobs.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Turns {
    /// Nobody's turn, on a machine of so many cores.
    pub(crate) fn new(cores: usize) -> Self {
        Self {
            cores,
            jobs: AtomicUsize::new(0),
            turn: Turn::default(),
        }
    }

    /// Counts a background job until the result is dropped.
    pub(crate) fn begin_job(&self) -> BusyJob<'_> {
        self.jobs.fetch_add(1, Ordering::Relaxed);
        BusyJob { jobs: &self.jobs }
    }

    /// Returns when the calling thread may write `entries`: at once, or after [`TURN`]. Whether it slept.
    /// Costs two loads of lines that seldom change, while it is the caller's turn or nobody is in its way.
    #[inline]
    pub(crate) fn enter(&self, entries: u32, published: &Published, clock: &dyn Clock) -> bool {
        // With one more writer beside the caller.
        if self.jobs.load(Ordering::Relaxed) + 2 <= self.cores {
            return false;
        }
        WRITER.with(|cell| {
            let mut writer = cell.get();
            let id = std::ptr::from_ref(cell).addr();
            writer.count(entries, published.load());
            let slept = self.enter_as(id, &mut writer, std::hint::spin_loop, || clock.sleep(TURN));
            cell.set(writer);
            slept
        })
    }

    /// `look` passes the time between two looks at whoever has the turn.
    fn enter_as(
        &self,
        id: usize,
        writer: &mut Writer,
        look: impl FnMut(),
        sleep: impl FnOnce(),
    ) -> bool {
        let owner = self.turn.owner.load(Ordering::Relaxed);
        if owner == id {
            writer.written = writer.written.saturating_add(1);
            let writes = self.turn.writes.load(Ordering::Relaxed);
            self.turn.writes.store(writes + 1, Ordering::Relaxed);
            return false;
        }
        writer.end_turn();
        if writer.streak < BURST {
            return false;
        }
        let gives_way = owner != 0 && self.owner_is_in_burst(look);
        if gives_way {
            sleep();
            writer.written = 0;
        }
        self.turn.owner.store(id, Ordering::Relaxed);
        gives_way
    }

    #[cold]
    fn owner_is_in_burst(&self, mut look: impl FnMut()) -> bool {
        let begin = self.turn.writes.load(Ordering::Relaxed);
        (0..LOOKS).any(|_| {
            look();
            self.turn.writes.load(Ordering::Relaxed) >= begin + 2
        })
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use drumlin_fs::ManualClock;

    const SECOND: usize = 2;

    /// Two writers in one thread, in turn, each write of one entry; how often each slept. While one looks
    /// at the other, the other goes on if `goes_on`.
    fn alternate(turns: &Turns, writers: &mut [Writer; 2], writes: u64, goes_on: bool) -> [u64; 2] {
        let mut slept = [0; 2];
        let mut published = writers[0].seen.max(writers[1].seen);
        for _ in 0..writes {
            for (who, writer) in writers.iter_mut().enumerate() {
                published += 1;
                writer.count(1, published);
                let look = || {
                    if goes_on {
                        turns.turn.writes.fetch_add(1, Ordering::Relaxed);
                    }
                };
                slept[who] += u64::from(turns.enter_as(who + 1, writer, look, || {}));
            }
        }
        slept
    }

    #[test]
    fn two_in_a_burst_have_the_turn_one_after_the_other() {
        let turns = Turns::new(1);
        let mut writers = [Writer::new(); 2];
        assert_eq!(alternate(&turns, &mut writers, 63, true), [0, 0]);
        assert_eq!(turns.turn.owner.load(Ordering::Relaxed), 0);
        // The first takes it, and the second finds the first at work.
        assert_eq!(alternate(&turns, &mut writers, 1, true), [0, 1]);
        assert_eq!(turns.turn.owner.load(Ordering::Relaxed), SECOND);
        for _ in 0..1000 {
            writers[1].count(1, writers[1].seen + 1);
            assert!(!turns.enter_as(SECOND, &mut writers[1], || (), || ()));
        }
        writers[0].seen = writers[1].seen;
        assert_eq!(alternate(&turns, &mut writers, 1, true)[0], 1);
    }

    #[test]
    fn nobody_sleeps_for_a_writer_that_pauses() {
        let turns = Turns::new(1);
        let mut writers = [Writer::new(); 2];
        assert_eq!(alternate(&turns, &mut writers, 100_000, false), [0, 0]);
    }

    #[test]
    fn who_loses_the_turn_at_once_passes_for_long() {
        let turns = Turns::new(1);
        let mut writers = [Writer::new(); 2];
        // Each takes the turn from the other at its first write: the worst there can be.
        let slept = alternate(&turns, &mut writers, 8 * PASSES as u64, true);
        assert!(
            slept.iter().all(|&slept| (4..=9).contains(&slept)),
            "{slept:?}"
        );
    }

    #[test]
    fn a_writer_among_many_or_with_pauses_is_in_no_burst() {
        let mut writer = Writer::new();
        for write in 0..1000 {
            writer.count(1, write * 5);
            assert_eq!(writer.streak, i32::from(write == 0));
        }
        for write in 1000..2000 {
            writer.count(2, write * 7);
        }
        assert_eq!(
            writer.streak, BURST,
            "others wrote three and a half for each of its two"
        );
    }

    #[test]
    fn with_a_core_for_each_nobody_takes_part() {
        let turns = Turns::new(2);
        let published = Published::new(0);
        let clock = ManualClock::new(0);
        for _ in 0..1000 {
            turns.enter(1, &published, &clock);
        }
        assert_eq!(turns.turn.owner.load(Ordering::Relaxed), 0);
        let job = turns.begin_job();
        for _ in 0..1000 {
            assert!(!turns.enter(1, &published, &clock));
        }
        assert_ne!(turns.turn.owner.load(Ordering::Relaxed), 0);
        drop(job);
        assert_eq!(turns.jobs.load(Ordering::Relaxed), 0);
    }
}
