//! An allocator that counts, for each thread, the bytes held and requested.
//!
//! Memory that a thread frees for another is subtracted from its own count, so a count may be too low if
//! memory moves between threads; it is never too high by more than the memory taken.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// The memory a thread took since [`begin`].
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Taken {
    /// Most bytes it held at a time, beyond those at the start.
    pub(crate) peak_bytes: u64,
    /// All bytes it was given, one after the other: a bound on work that no clock measures.
    pub(crate) total_bytes: u64,
}

#[derive(Debug, Default)]
struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

thread_local! {
    static HELD: Cell<i64> = const { Cell::new(0) };
    static PEAK: Cell<i64> = const { Cell::new(0) };
    static TOTAL: Cell<u64> = const { Cell::new(0) };
}

/// Begins to count anew for this thread.
pub(crate) fn begin() {
    HELD.set(0);
    PEAK.set(0);
    TOTAL.set(0);
}

/// The memory this thread took since [`begin`].
pub(crate) fn taken() -> Taken {
    Taken {
        peak_bytes: PEAK.get().unsigned_abs(),
        total_bytes: TOTAL.get(),
    }
}

fn take(bytes: usize) {
    let held = HELD.get() + bytes as i64;
    HELD.set(held);
    PEAK.set(PEAK.get().max(held));
    TOTAL.set(TOTAL.get().saturating_add(bytes as u64));
}

fn give(bytes: usize) {
    HELD.set(HELD.get() - bytes as i64);
}

// SAFETY: every call goes to the system's allocator unchanged; the counts are in cells that allocate
// nothing and have no destructor, so that counting never allocates.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        take(layout.size());
        // SAFETY: the caller's promises are those asked for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        take(layout.size());
        // SAFETY: the caller's promises are those asked for.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, start: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        give(layout.size());
        take(size);
        // SAFETY: the caller's promises are those asked for.
        unsafe { System.realloc(start, layout, size) }
    }

    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        give(layout.size());
        // SAFETY: the caller's promises are those asked for.
        unsafe { System.dealloc(start, layout) }
    }
}
