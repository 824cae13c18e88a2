//! Things that are dear to make, laid down where their thread finds them again.
//!
//! A shelf has a place for each stripe of threads ([`crate::metrics`]). Who needs a thing takes what lies at
//! its own place, and lays it down there when it is done: two exchanges of a word that other threads seldom
//! touch. Things belong to an *edition*. Whoever starts the next one takes away all there is, so that nothing
//! outdated lies about, and what is laid down later must be of that edition:
//!
//! ```text
//! place    a thing, or: empty, and open to things of edition n
//! take     thing            -> empty for the present edition
//! put      empty for its own edition -> thing        (else: the thing is dropped)
//! renew    anything         -> empty for the next edition
//! ```
//!
//! So one exchange both lays a thing down and finds out that it is not outdated, and is the last that its
//! thread does with the shelf: a thing may own the shelf it lies on, in some roundabout way, and whoever
//! takes it away may be the one who frees both.
//!
//! Thread safety: any thread takes and puts; see [`Shelf::renew`] for the rest.

use std::fmt;
use std::marker::PhantomData;
use std::ptr::{NonNull, without_provenance_mut};

use super::keeper::{STRIPES, own_stripe};
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

/// The edition of a shelf that takes nothing any more.
const CLOSED: u64 = u64::MAX >> 1;

/// A place on a line of its own, and on one that is fetched beside no other's.
#[repr(align(128))]
struct Place<T>(AtomicPtr<T>);

/// See the module. What lies on it is dropped with it.
pub struct Shelf<T> {
    edition: AtomicU64,
    places: [Place<T>; STRIPES],
    /// Hands things from thread to thread, one at a time.
    owns: PhantomData<Mutex<Box<T>>>,
}

/// What an empty place holds that is open to `edition`: odd, as no address of a thing is.
fn empty<T>(edition: u64) -> *mut T {
    const { assert!(align_of::<T>() > 1, "addresses are even") };
    without_provenance_mut((edition as usize) << 1 | 1)
}

/// The thing in a place that held `at`.
fn thing<T>(at: *mut T) -> Option<NonNull<T>> {
    NonNull::new(at).filter(|at| at.addr().get() & 1 == 0)
}

impl<T> Shelf<T> {
    /// An empty shelf for things of `edition`.
    pub fn new(edition: u64) -> Self {
        debug_assert!(edition <= CLOSED);
        Self {
            edition: AtomicU64::new(edition),
            places: std::array::from_fn(|_| Place(AtomicPtr::new(empty(edition)))),
            owns: PhantomData,
        }
    }

    /// A shelf that takes nothing.
    pub fn closed() -> Self {
        Self::new(CLOSED)
    }

    fn own_place(&self) -> &AtomicPtr<T> {
        let [first, ..] = &self.places;
        &self.places.get(own_stripe()).unwrap_or(first).0
    }

    /// The thing at the calling thread's place. It may be of an edition that has just ended.
    #[inline]
    pub fn take(&self) -> Option<Box<T>> {
        let place = self.own_place();
        // Relaxed: only a guess at what is there.
        let at = place.load(Ordering::Relaxed);
        thing(at)?;
        // Relaxed: should it be an old one, the place takes nothing until the next `renew`.
        let next = empty(self.edition.load(Ordering::Relaxed));
        // Acquire: pairs with the Release in `put`, so that the thing is seen whole.
        let taken = place.compare_exchange(at, next, Ordering::Acquire, Ordering::Relaxed);
        let taken = thing(taken.ok()?)?;
        // SAFETY: laid down by `put`, and taken away by this alone.
        Some(unsafe { Box::from_raw(taken.as_ptr()) })
    }

    /// Lays `thing` down on the shelf that `shelf_of` names, beside the thing's edition. Dropped instead when
    /// that is not the shelf's, or something lies there.
    #[inline]
    pub fn put(thing: Box<T>, shelf_of: impl FnOnce(&T) -> (&Self, u64)) {
        let (shelf, edition) = shelf_of(&thing);
        let place = NonNull::from(shelf.own_place());
        let at = Box::into_raw(thing);
        // SAFETY: the shelf lives at least as long as the thing does, which nobody else can reach before
        // this exchange; and nothing follows it.
        let place = unsafe { place.as_ref() };
        // Release: pairs with the Acquire of whoever takes it away.
        let put = place.compare_exchange(empty(edition), at, Ordering::Release, Ordering::Relaxed);
        if put.is_err() {
            // SAFETY: turned into an address above, and laid down nowhere.
            drop(unsafe { Box::from_raw(at) });
        }
    }

    /// From now on the shelf takes things of `edition` alone; those that lie there are dropped.
    ///
    /// Requires: no two calls of this and [`Shelf::close`] at a time; editions grow.
    pub fn renew(&self, edition: u64) {
        // Relaxed: changed by one thread at a time, and taken for a guess elsewhere.
        if self.edition.load(Ordering::Relaxed) == CLOSED {
            return;
        }
        self.edition.store(edition, Ordering::Relaxed);
        for Place(place) in &self.places {
            // Acquire: pairs with the Release in `put`.
            let before = place.swap(empty(edition), Ordering::Acquire);
            if let Some(before) = thing(before) {
                // SAFETY: laid down by `put`, and taken away by this alone.
                drop(unsafe { Box::from_raw(before.as_ptr()) });
            }
        }
    }

    /// Drops all things, and takes no more of any edition.
    ///
    /// Requires: as [`Shelf::renew`].
    pub fn close(&self) {
        self.renew(CLOSED);
    }
}

impl<T> Drop for Shelf<T> {
    fn drop(&mut self) {
        self.close();
    }
}

impl<T> fmt::Debug for Shelf<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Shelf(edition {})", self.edition.load(Ordering::Relaxed))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::Arc;

    use super::*;

    /// A thing that owns the shelf it lies on.
    struct Owner {
        shelf: Arc<Shelf<Owner>>,
        edition: u64,
        _counted: Arc<()>,
    }

    fn put(thing: Box<Owner>) {
        Shelf::put(thing, |thing| (&thing.shelf, thing.edition));
    }

    #[test]
    fn a_thread_finds_again_what_it_laid_down_in_this_edition() {
        let (shelf, counted) = (Arc::new(Shelf::<Owner>::new(1)), Arc::new(()));
        let owner = |edition| {
            Box::new(Owner {
                shelf: Arc::clone(&shelf),
                edition,
                _counted: Arc::clone(&counted),
            })
        };
        let left = || Arc::strong_count(&counted) - 1;
        assert!(shelf.take().is_none());
        put(owner(1));
        put(owner(1));
        assert_eq!(left(), 1, "there is one place");
        assert_eq!(shelf.take().map(|thing| thing.edition), Some(1));
        put(owner(2));
        assert_eq!(left(), 0, "of no edition there is yet");
        put(owner(1));
        shelf.renew(2);
        assert_eq!((left(), shelf.take().is_none()), (0, true));
        put(owner(1));
        assert_eq!(left(), 0, "outdated");
        put(owner(2));
        assert_eq!(left(), 1);
        shelf.close();
        shelf.renew(3);
        put(owner(3));
        assert_eq!((left(), shelf.take().is_none()), (0, true));
        assert_eq!(Arc::strong_count(&shelf), 1);
    }

    /// Takes and puts `rounds` times, and renews the shelf if this is the thread that does.
    fn use_often(shelf: &Arc<Shelf<Owner>>, counted: &Arc<()>, rounds: u64, renews: bool) {
        for round in 0..rounds {
            let taken = shelf.take();
            if renews {
                shelf.renew(round / 10);
            }
            let made = || {
                Box::new(Owner {
                    shelf: Arc::clone(shelf),
                    edition: round / 10,
                    _counted: Arc::clone(counted),
                })
            };
            put(taken.unwrap_or_else(made));
        }
    }

    #[test]
    fn nothing_is_lost_or_given_twice_among_threads() {
        let (shelf, counted) = (Arc::new(Shelf::<Owner>::new(0)), Arc::new(()));
        std::thread::scope(|scope| {
            for thread in 0..40 {
                let (shelf, counted) = (&shelf, &counted);
                scope.spawn(move || use_often(shelf, counted, 300, thread == 0));
            }
        });
        shelf.close();
        let left = (Arc::strong_count(&shelf), Arc::strong_count(&counted));
        assert_eq!(left, (1, 1));
    }
}
