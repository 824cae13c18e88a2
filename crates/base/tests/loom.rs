//! Goal: no interleaving of takers, freers and drains hands a slot out twice, loses one, or unmaps a chunk that is
//! in use; the last handle frees a buffer once, and words are made once; a value that a guard protects stays, and
//! a retired value is dropped with its last guard. Method: loom runs small cases exhaustively, up to a bound of
//! preemptions; buffers are marked and checked.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p drumlin-base --release --test loom`
#![cfg(loom)]

use std::sync::Arc;

use drumlin_base::bytes::{Draft, HUGE_PAGE_BYTES, HazardPtr, LocalPool, SharedBytes, Slab};
use drumlin_base::{MemoryBudget, MemoryUse, PinnedSlice};
use loom::sync::atomic::{AtomicBool, Ordering};
use loom::thread;

type Buffer = SharedBytes<u8>;

/// So large that a chunk has eight slots of it.
const LEN: usize = 250 << 10;

fn slab() -> (Arc<MemoryBudget>, Arc<Slab>) {
    let budget = MemoryBudget::new(1 << 30);
    let slab = Slab::new(Arc::clone(&budget), 1);
    assert!(slab.grow());
    (budget, slab)
}

fn buffer(slab: &Arc<Slab>, mark: u8) -> Option<Buffer> {
    let mut draft = Draft::in_slab(slab, LEN, 1)?;
    for at in [0, LEN - 1] {
        draft.bytes_mut()[at] = mark;
    }
    Some(draft.share(mark))
}

fn check(buffer: &Buffer) {
    for at in [0, LEN - 1] {
        assert_eq!(buffer.bytes()[at], *buffer.meta());
    }
}

fn model(body: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(body);
}

fn empty(budget: &MemoryBudget, slab: &Slab) {
    while slab.shrink() {}
    assert_eq!((slab.mapped_bytes(), slab.draining_bytes()), (0, 0));
    assert_eq!(budget.used(MemoryUse::Blocks), 0);
}

#[test]
fn the_last_free_slot_goes_to_one_thread_at_a_time() {
    model(|| {
        let (budget, slab) = slab();
        let held: Vec<_> = (0..7).map(|mark| buffer(&slab, mark)).collect();
        let threads: Vec<_> = (0..2)
            .map(|thread| {
                let slab = Arc::clone(&slab);
                thread::spawn(move || {
                    let got = buffer(&slab, 100 + thread);
                    thread::yield_now();
                    got.iter().for_each(check);
                })
            })
            .collect();
        for thread in threads {
            thread.join().expect("a thread found another's mark");
        }
        held.iter().flatten().for_each(check);
        drop(held);
        empty(&budget, &slab);
    });
}

#[test]
fn a_drained_chunk_ends_once_whoever_frees_last() {
    model(|| {
        let (budget, slab) = slab();
        let (one, two) = (buffer(&slab, 1), buffer(&slab, 2));
        let freer = thread::spawn(move || drop(one));
        let drainer = {
            let slab = Arc::clone(&slab);
            thread::spawn(move || slab.drain(0))
        };
        drop(two);
        freer.join().expect("freeing does not panic");
        assert!(drainer.join().expect("draining does not panic"));
        empty(&budget, &slab);
    });
}

#[test]
fn a_chunk_taken_back_while_slots_are_freed_stays_usable() {
    model(|| {
        let (budget, slab) = slab();
        let (one, two) = (buffer(&slab, 1), buffer(&slab, 2));
        assert!(slab.drain(0));
        let freer = thread::spawn(move || drop(one));
        assert!(slab.revive());
        freer.join().expect("freeing does not panic");
        let all: Vec<_> = std::iter::from_fn(|| buffer(&slab, 3)).collect();
        assert_eq!((all.len(), slab.mapped_bytes()), (7, HUGE_PAGE_BYTES));
        two.iter().chain(&all).for_each(check);
        drop((two, all));
        empty(&budget, &slab);
    });
}

#[test]
fn handles_dropped_at_once_free_the_buffer_once() {
    model(|| {
        let (budget, slab) = slab();
        let buffer = buffer(&slab, 5).expect("the chunk is empty");
        let pinned = PinnedSlice::of_shared(&buffer, 0..1).expect("it lies in the buffer");
        let other = {
            let buffer = buffer.clone();
            thread::spawn(move || check(&buffer))
        };
        drop(buffer);
        assert_eq!(&*pinned, [5]);
        drop(pinned);
        other
            .join()
            .expect("the other handle reads what was written");
        empty(&budget, &slab);
    });
}

#[test]
fn words_are_made_by_one_thread_and_seen_whole() {
    model(|| {
        let (budget, slab) = slab();
        let buffer = buffer(&slab, 5).expect("the chunk is empty");
        let other = {
            let buffer = buffer.clone();
            thread::spawn(move || words(&buffer, 7))
        };
        let own = words(&buffer, 8);
        let other = other.join().expect("words are seen whole");
        // A thread that came while the other made them saw none; never do both make them.
        assert!(own.is_some() || other.is_some());
        assert!(own.is_none() || other.is_none() || own == other);
        drop(buffer);
        empty(&budget, &slab);
    });
}

/// The buffer's only word, made to be `own` if nobody made it yet.
fn words(buffer: &Buffer, own: u64) -> Option<u64> {
    let words = buffer.words(|room| {
        room[0] = own;
        1
    })?;
    Some(words[0])
}

/// Notes its drop.
struct Tracked {
    number: usize,
    gone: Arc<[AtomicBool; 3]>,
}

impl Drop for Tracked {
    fn drop(&mut self) {
        let before = self.gone[self.number].swap(true, Ordering::Relaxed);
        assert!(!before, "dropped twice");
    }
}

/// A place with readers and writers at it; in the end everything is gone.
fn lending(readers: usize, writers: usize) {
    model(move || {
        let gone: Arc<[AtomicBool; 3]> = Arc::new(std::array::from_fn(|_| AtomicBool::new(false)));
        let tracked = |number| {
            let gone = Arc::clone(&gone);
            Some(SharedBytes::new(b"", Tracked { number, gone }))
        };
        let pointer = Arc::new(HazardPtr::new(tracked(0)));
        let mut threads = Vec::new();
        for number in 1..=writers {
            let (pointer, next) = (Arc::clone(&pointer), tracked(number));
            threads.push(thread::spawn(move || pointer.store(next)));
        }
        let read = |pointer: &HazardPtr<SharedBytes<Tracked>>| {
            let guard = pointer.load().expect("it is never empty");
            let tracked = guard.meta();
            let is_gone = tracked.gone[tracked.number].load(Ordering::Relaxed);
            assert!(!is_gone, "dropped while a guard protected it");
        };
        for _ in 1..readers {
            let pointer = Arc::clone(&pointer);
            threads.push(thread::spawn(move || read(&pointer)));
        }
        read(&pointer);
        for thread in threads {
            thread.join().unwrap();
        }
        let present = pointer.load_full().map(|present| present.meta().number);
        for (number, gone) in gone.iter().enumerate().take(writers + 1) {
            let is_there = present == Some(number);
            assert_eq!(gone.load(Ordering::Relaxed), !is_there, "{number}");
        }
    });
}

#[test]
fn a_guard_outlives_the_retirement() {
    lending(1, 1);
}

#[test]
fn the_last_of_two_guards_drops_what_was_retired() {
    lending(2, 1);
}

#[test]
fn two_retirements_drop_each_what_they_took() {
    lending(1, 2);
}

/// An object that owns the pool it is in, as a walk owns its family's.
struct Lying {
    pool: Arc<LocalPool<Lying>>,
    epoch: u64,
    tracked: Tracked,
}

/// Threads put objects into the pool and take them while it is advanced and then closed: in the end no
/// object is left, and none was dropped twice.
#[test]
fn a_pool_that_is_closed_keeps_nothing_of_any_epoch() {
    model(|| {
        let gone: Arc<[AtomicBool; 3]> = Arc::new(std::array::from_fn(|_| AtomicBool::new(false)));
        let pool = Arc::new(LocalPool::new(1));
        let lying = |number, epoch| {
            let gone = Arc::clone(&gone);
            Box::new(Lying {
                pool: Arc::clone(&pool),
                epoch,
                tracked: Tracked { number, gone },
            })
        };
        let put = |thing: Box<Lying>| LocalPool::put(thing, |thing| (&*thing.pool, thing.epoch));
        let threads: Vec<_> = [lying(0, 1), lying(1, 2)]
            .into_iter()
            .map(|thing| {
                thread::spawn(move || {
                    let pool = Arc::clone(&thing.pool);
                    put(thing);
                    if let Some(thing) = pool.take() {
                        let tracked = &thing.tracked;
                        let is_gone = tracked.gone[tracked.number].load(Ordering::Relaxed);
                        assert!(!is_gone, "given out after it went");
                        put(thing);
                    }
                })
            })
            .collect();
        pool.advance(2);
        pool.close();
        for thread in threads {
            thread.join().unwrap();
        }
        let left = (0..2).filter(|&number| !gone[number].load(Ordering::Relaxed));
        assert_eq!((left.count(), Arc::strong_count(&pool)), (0, 1));
    });
}
