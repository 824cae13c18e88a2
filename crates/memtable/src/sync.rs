//! Atomics, fences, locks and yields: the standard library's, or loom's under `cfg(loom)`.
//!
//! Everything in this crate that races goes through here, so that the loom model explores the very
//! code that ships.

#[cfg(loom)]
pub(crate) use loom::sync::{
    Mutex,
    atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence},
};
#[cfg(not(loom))]
pub(crate) use std::sync::{
    Mutex,
    atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence},
};

/// Turns of busy waiting before the processor is given away.
#[cfg(not(loom))]
const TURNS_BUSY_MAX: u32 = 64;

/// Waits a moment for another thread: busily at first, then by giving the processor away, so that
/// a thread that lost its processor inside a critical section gets on.
#[cfg(not(loom))]
#[cold]
pub(crate) fn pause(turns: &mut u32) {
    if *turns < TURNS_BUSY_MAX {
        *turns += 1;
        std::hint::spin_loop();
    } else {
        std::thread::yield_now();
    }
}

/// Lets the model run another thread.
#[cfg(loom)]
pub(crate) fn pause(_turns: &mut u32) {
    loom::thread::yield_now();
}

/// Tries until an attempt succeeds. Each failure means that another thread changed something.
#[inline(always)]
pub(crate) fn retry<T>(mut attempt: impl FnMut() -> Option<T>) -> T {
    let mut turns = 0;
    loop {
        if let Some(done) = attempt() {
            return done;
        }
        pause(&mut turns);
    }
}

/// A point at which a model may switch threads; empty otherwise.
///
/// Loom remembers only the last access to each atomic, so a writer that loads an atomic after a
/// reader, before it stores there, hides the reader's load, and the model never runs the writer in
/// between. A read-modify-write of one common atomic is seen by all. It is relaxed: only the fences
/// around it add ordering.
#[cfg(not(loom))]
#[inline(always)]
pub(crate) fn step() {}

#[cfg(loom)]
loom::lazy_static! {
    static ref STEPS: AtomicUsize = AtomicUsize::new(0);
}

#[cfg(loom)]
std::thread_local! {
    /// Whether steps are taken: they multiply the schedules to explore. Loom runs all threads of a
    /// model on the thread that started it, so this is one flag per model.
    static STEPPING: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

/// Turns the extra switching points of the calling thread's model on or off.
#[cfg(loom)]
pub fn set_stepping(on: bool) {
    STEPPING.set(on);
}

#[cfg(loom)]
pub(crate) fn step() {
    if STEPPING.get() {
        STEPS.fetch_add(1, Ordering::Relaxed);
    }
}
