//! Counters that cost a thread one store to a cache line of its own.
//!
//! A counter has a stripe for each of the first [`OWN_STRIPES`] live threads. Nobody else writes that stripe,
//! so counting is a load and a store. A thread that ends leaves its stripe, with its count, to the next one.
//! Further threads share the other stripes and pay for an atomic addition.

use std::cell::Cell;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

/// Stripes that belong to one thread at a time: a bit each in [`OWNED`].
pub(crate) const OWN_STRIPES: usize = 16;
/// Stripes for all other threads.
const SHARED_STRIPES: usize = 16;
/// All stripes.
pub(crate) const STRIPES: usize = OWN_STRIPES + SHARED_STRIPES;

/// A bit for each own stripe that is taken.
static OWNED: AtomicU32 = AtomicU32::new(0);
/// Spreads the threads without a stripe of their own.
static NEXT_SHARED: AtomicUsize = AtomicUsize::new(0);

#[repr(align(128))]
#[derive(Debug, Default)]
struct Stripe(AtomicU64);

/// A counter many threads bump. Reading sums the stripes and is not a snapshot in time.
#[derive(Debug, Default)]
pub struct Counter {
    stripes: [Stripe; STRIPES],
}

impl Counter {
    /// Adds `n`.
    #[inline]
    pub fn add(&self, n: u64) {
        let at = own_stripe();
        let Some(Stripe(count)) = self.stripes.get(at) else {
            return;
        };
        // Relaxed, all: no other memory is published by a counter.
        if at < OWN_STRIPES {
            count.store(
                count.load(Ordering::Relaxed).wrapping_add(n),
                Ordering::Relaxed,
            );
        } else {
            count.fetch_add(n, Ordering::Relaxed);
        }
    }

    /// Adds one.
    #[inline]
    pub fn bump(&self) {
        self.add(1);
    }

    /// The sum so far.
    pub fn get(&self) -> u64 {
        self.stripes
            .iter()
            .map(|stripe| stripe.0.load(Ordering::Relaxed))
            .fold(0, u64::wrapping_add)
    }
}

const UNKNOWN: usize = usize::MAX;

thread_local! {
    static INDEX: Cell<usize> = const { Cell::new(UNKNOWN) };
    /// Leaves the stripe to another when the thread ends.
    static LEAVING: Leaving = const { Leaving };
}

struct Leaving;

impl Drop for Leaving {
    fn drop(&mut self) {
        let index = INDEX.replace(shared_index());
        if index < OWN_STRIPES {
            // Release: pairs with the Acquire in `choose_index`, so that the next thread counts on
            // from this one's count.
            OWNED.fetch_and(!(1 << index), Ordering::Release);
        }
    }
}

/// The stripe, of [`STRIPES`], that the calling thread counts on; the first [`OWN_STRIPES`] are one
/// thread's each.
#[inline]
pub(crate) fn own_stripe() -> usize {
    match INDEX.get() {
        UNKNOWN => choose_index(),
        index => index,
    }
}

#[cold]
#[inline(never)]
fn choose_index() -> usize {
    // A thread that is ending could not give a stripe back.
    let own = LEAVING.try_with(|_| ()).ok().and_then(|()| own_index());
    let index = own.unwrap_or_else(shared_index);
    INDEX.set(index);
    index
}

fn own_index() -> Option<usize> {
    let free = |owned: u32| {
        let index = owned.trailing_ones() as usize;
        (index < OWN_STRIPES).then_some(index)
    };
    // Acquire: pairs with the Release in `Leaving`.
    let taken = OWNED.fetch_update(Ordering::Acquire, Ordering::Relaxed, |owned| {
        free(owned).map(|index| owned | 1 << index)
    });
    taken.ok().and_then(free)
}

fn shared_index() -> usize {
    OWN_STRIPES + NEXT_SHARED.fetch_add(1, Ordering::Relaxed) % SHARED_STRIPES
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_lost_however_many_threads_count_and_end() {
        let counter = Counter::default();
        for _ in 0..10 {
            std::thread::scope(|scope| {
                for _ in 0..3 * OWN_STRIPES {
                    scope.spawn(|| (0..100).for_each(|_| counter.bump()));
                }
            });
        }
        assert_eq!(counter.get(), 10 * 3 * OWN_STRIPES as u64 * 100);
    }
}
