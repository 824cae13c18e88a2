//! A striped reference count: pins of one value are counted by stripe of threads.
//!
//! All readers pin the same memtable. Were its pins counted in one place, every get would write to that
//! line. Here each thread counts on a stripe of its own, and a pin is given up on the stripe it was counted
//! on, by any thread. The stripes of a living owner do not give the number of pins, and nobody needs it:
//! they are added up once, when the owner is dropped.
//!
//! ```text
//! pin      stripe += 1
//! unpin    stripe -= 1; if the stripe has ended: left -= 1, and the pin that makes it 0 frees the value
//! owner    mark each stripe as ended and add its pins to `left`; the one that makes it 0 frees the value
//! ```
//!
//! Trick 1: the mark is a bit of the stripe's own word. So a pin is given up either before the mark and is
//! not added, or after it and is taken off `left`; never neither, never both.
//!
//! Trick 2: `left` begins with [`OWNER`], which the owner takes off last, so that it is not 0 while the owner
//! still adds.
//!
//! Thread safety: pins are taken through the owner and given up by any thread, also after it is gone.

use std::ops::Deref;
use std::ptr::NonNull;

use super::pinned::PinnedSlice;
use crate::sync::atomic::{AtomicUsize, Ordering};

/// In a stripe: the owner is gone and has counted it.
const ENDED: usize = 1 << (usize::BITS - 1);
/// In `left`: the owner has not counted all stripes yet. More than there are pins.
const OWNER: usize = 1 << (usize::BITS - 2);

#[cfg(not(loom))]
pub(super) const STRIPES: usize = crate::metrics::STRIPES;
#[cfg(loom)]
pub(super) const STRIPES: usize = 2;

#[repr(align(64))]
struct Stripe(AtomicUsize);

/// The stripes come first, so that a pin finds its own without knowing the value's type.
#[repr(C)]
struct Kept<T> {
    stripes: [Stripe; STRIPES],
    left: AtomicUsize,
    value: T,
}

/// Owns a value and leaves it to the last pin when it is dropped. Dereferences to the value.
pub struct StripedPin<T> {
    kept: NonNull<Kept<T>>,
}

// SAFETY: gives shared access to the value, which is dropped by the last thread.
unsafe impl<T: Send + Sync> Send for StripedPin<T> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync> Sync for StripedPin<T> {}

/// One pin: keeps the value of a [`StripedPin`] in memory.
pub(super) struct CountedPin {
    /// The stripe it is counted on.
    stripe: NonNull<Stripe>,
    kept: NonNull<()>,
    free_one: unsafe fn(NonNull<()>),
}

// SAFETY: does nothing but give itself up, which any thread may.
unsafe impl Send for CountedPin {}
// SAFETY: as above.
unsafe impl Sync for CountedPin {}

impl<T: Send + Sync + 'static> StripedPin<T> {
    /// Keeps `value`, which may borrow nothing: no lifetime bounds the pins.
    pub fn new(value: T) -> Self {
        let kept = Box::new(Kept {
            stripes: std::array::from_fn(|_| Stripe(AtomicUsize::new(0))),
            left: AtomicUsize::new(OWNER),
            value,
        });
        Self {
            kept: NonNull::from(Box::leak(kept)),
        }
    }

    /// `bytes`, kept alive with the value, or copied if they are few. Costs two changes of this
    /// thread's own line.
    ///
    /// # Safety
    /// `bytes` must stay valid and unchanged, at their present address, as long as the value lives.
    #[inline]
    pub unsafe fn slice(&self, bytes: &[u8]) -> PinnedSlice {
        match PinnedSlice::small(bytes) {
            Some(small) => small,
            // SAFETY: as the caller promises, and the value lives as long as the pin.
            None => unsafe { PinnedSlice::kept(self.pin(), bytes) },
        }
    }

    #[inline]
    fn pin(&self) -> CountedPin {
        let kept = self.kept();
        let [first, ..] = &kept.stripes;
        let stripe = kept.stripes.get(own_stripe()).unwrap_or(first);
        // Relaxed: the owner lives, so nobody frees the value; it adds the pin up in some ordered way.
        stripe.0.fetch_add(1, Ordering::Relaxed);
        CountedPin {
            stripe: NonNull::from(stripe),
            kept: self.kept.cast(),
            free_one: free_one::<T>,
        }
    }
}

impl<T> StripedPin<T> {
    fn kept(&self) -> &Kept<T> {
        // SAFETY: lives at least as long as its owner, which is `self`.
        unsafe { self.kept.as_ref() }
    }
}

impl<T> Deref for StripedPin<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.kept().value
    }
}

impl<T> Drop for StripedPin<T> {
    fn drop(&mut self) {
        let kept = self.kept();
        let mut pins = 0;
        for stripe in &kept.stripes {
            // AcqRel: pairs with the Release of pins given up before, and with the Acquire of those
            // given up after, which `left` counts.
            pins += stripe.0.fetch_or(ENDED, Ordering::AcqRel);
        }
        assert!(
            pins < OWNER,
            "there are fewer pins than the owner counts for"
        );
        // `left` is less than OWNER by the pins that were given up since their stripe ended.
        let taken_off = OWNER - pins;
        // AcqRel: pairs with that of `free_one`.
        if kept.left.fetch_sub(taken_off, Ordering::AcqRel) == taken_off {
            // SAFETY: neither owner nor pins are left.
            drop(unsafe { Box::from_raw(self.kept.as_ptr()) });
        }
    }
}

impl Drop for CountedPin {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: the stripe is part of the value that this pin keeps.
        let stripe = unsafe { self.stripe.as_ref() };
        // Release: pairs with the Acquire of the owner, so that this thread's reads come before the
        // value is freed.
        if stripe.0.fetch_sub(1, Ordering::Release) & ENDED != 0 {
            // Acquire: pairs with the owner's Release, so that its `left` is seen. A load and not a fence:
            // sanitizers know it.
            stripe.0.load(Ordering::Acquire);
            // SAFETY: this pin was added to `left` and is given up here, once.
            unsafe { (self.free_one)(self.kept) }
        }
    }
}

/// Takes one pin off `left`, and frees the value if it was the last.
///
/// # Safety
/// `kept` is the `Kept<T>` of a pin that was counted in `left` and is not used again.
#[cold]
unsafe fn free_one<T>(kept: NonNull<()>) {
    let kept = kept.cast::<Kept<T>>();
    // SAFETY: the pin that is given up still counts.
    let left = unsafe { &kept.as_ref().left };
    // AcqRel: pairs with that of every other decrement.
    if left.fetch_sub(1, Ordering::AcqRel) == 1 {
        // SAFETY: neither owner nor pins are left.
        drop(unsafe { Box::from_raw(kept.as_ptr()) });
    }
}

#[cfg(not(loom))]
#[inline]
pub(super) fn own_stripe() -> usize {
    crate::metrics::own_stripe()
}

/// In turn: a model must not depend on the counts of other tests.
#[cfg(loom)]
pub(super) fn own_stripe() -> usize {
    loom::lazy_static! {
        static ref NEXT: AtomicUsize = AtomicUsize::new(0);
    }
    NEXT.fetch_add(1, Ordering::Relaxed) % STRIPES
}

impl<T> std::fmt::Debug for StripedPin<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("StripedPin")
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::rng::Rng;

    #[test]
    fn the_value_goes_with_the_last_of_owner_and_pins() {
        for seed in 0..200 {
            let mut rng = Rng::new(seed);
            let counted = Arc::new(());
            let owner = StripedPin::new((vec![7u8; 500], Arc::clone(&counted)));
            let slice = || {
                let (bytes, _) = &*owner;
                // SAFETY: nobody changes the vector, which goes with the value.
                unsafe { owner.slice(bytes) }
            };
            let mut pins: Vec<_> = (0..rng.below(6)).map(|_| slice()).collect();
            std::thread::scope(|scope| {
                pins.extend(scope.spawn(slice).join());
                let given_up = pins.split_off(pins.len() / 2);
                scope.spawn(|| drop(given_up));
            });
            let is_left = !pins.is_empty();
            drop(owner);
            assert_eq!(Arc::strong_count(&counted), 1 + usize::from(is_left));
            assert!(pins.iter().all(|pin| pin.is_pinned() && **pin == [7; 500]));
            drop(pins);
            assert_eq!(Arc::strong_count(&counted), 1);
        }
    }
}
