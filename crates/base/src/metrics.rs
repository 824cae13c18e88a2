//! Counters: one line to record, spread over cache lines so that threads do not collide.

use std::sync::atomic::{AtomicU64, Ordering};

const STRIPES: usize = 16;

#[repr(align(128))]
#[derive(Debug, Default)]
struct Stripe(AtomicU64);

/// A counter many threads bump. Reading sums the stripes and is not a snapshot in time.
#[derive(Debug, Default)]
pub struct Counter {
    stripes: [Stripe; STRIPES],
}

impl Counter {
    /// Adds `n`. Relaxed: no other memory is published by a counter.
    #[inline]
    pub fn add(&self, n: u64) {
        if let Some(stripe) = self.stripes.get(stripe_index()) {
            stripe.0.fetch_add(n, Ordering::Relaxed);
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
            .sum()
    }
}

#[inline]
fn stripe_index() -> usize {
    use std::cell::Cell;
    use std::sync::atomic::AtomicUsize;
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static INDEX: Cell<usize> = const { Cell::new(usize::MAX) };
    }
    INDEX.with(|index| {
        if index.get() == usize::MAX {
            index.set(NEXT.fetch_add(1, Ordering::Relaxed) % STRIPES);
        }
        index.get()
    })
}
