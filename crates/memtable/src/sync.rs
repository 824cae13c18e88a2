//! Atomics, fences, locks and yields: the standard library's, or loom's under `cfg(loom)`.
//!
//! Everything in this crate that races goes through here, so that the loom model explores the very
//! code that ships.

#[cfg(loom)]
pub(crate) use loom::sync::{
    Mutex,
    atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence},
};
#[cfg(not(loom))]
pub(crate) use std::sync::{
    Mutex,
    atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence},
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
