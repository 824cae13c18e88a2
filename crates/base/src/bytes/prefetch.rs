//! Prefetching cache lines.

/// Bytes of a cache line.
pub const LINE_BYTES: usize = 64;

/// Prefetches the `lines` cache lines from `start` on. A hint: any address is allowed, nothing is read in
/// the sense of the memory model.
#[inline(always)]
pub fn prefetch<T>(start: *const T, lines: usize) {
    for line in 0..lines {
        fetch(start.cast::<u8>().wrapping_add(line * LINE_BYTES));
    }
}

#[cfg(all(target_arch = "x86_64", not(loom), not(miri)))]
#[inline(always)]
fn fetch(line: *const u8) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    // SAFETY: a prefetch of any address never faults.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(line.cast()) }
}

#[cfg(not(all(target_arch = "x86_64", not(loom), not(miri))))]
#[inline(always)]
fn fetch(_line: *const u8) {}
