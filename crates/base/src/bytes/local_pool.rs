//! A pool of expensive objects with a slot for each stripe of threads, invalidated by epoch.
//!
//! A thread takes the object in its own slot ([`crate::metrics`] has the stripes) and puts it back when it is
//! done: two exchanges of a word that other threads seldom touch. An object belongs to an *epoch*. Starting
//! the next epoch drops all objects in the pool, and an object that is put back later must be of that epoch:
//!
//! ```text
//! slot     an object, or: empty, open to objects of epoch n
//! take     object                   -> empty, open to the present epoch
//! put      empty for its own epoch  -> object               (else: the object is dropped)
//! advance  anything                 -> empty, open to the next epoch
//! ```
//!
//! The trick is that an empty slot holds the number of its epoch. One exchange both puts an object back and
//! finds out that it is not outdated, and it is the last access of its thread to the pool: an object may own
//! its pool in some roundabout way, and the thread that takes it out may free both.
//!
//! Thread safety: any thread takes and puts; see [`LocalPool::advance`] for the rest.

use std::fmt;
use std::marker::PhantomData;
use std::ptr::{NonNull, without_provenance_mut};

use super::striped_pin::{STRIPES, own_stripe};
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

/// The epoch of a pool that takes no more objects.
const CLOSED: u64 = u64::MAX >> 1;

/// A slot on a pair of cache lines of its own: processors prefetch lines in pairs.
#[repr(align(128))]
struct LocalSlot<T>(AtomicPtr<T>);

/// See the module. The objects in it are dropped with it.
pub struct LocalPool<T> {
    epoch: AtomicU64,
    slots: [LocalSlot<T>; STRIPES],
    /// Hands objects from thread to thread, one at a time.
    owns: PhantomData<Mutex<Box<T>>>,
}

/// The content of an empty slot that is open to `epoch`: odd, as no address of an object is.
fn empty<T>(epoch: u64) -> *mut T {
    const { assert!(align_of::<T>() > 1, "addresses are even") };
    without_provenance_mut((epoch as usize) << 1 | 1)
}

/// The object in a slot that held `at`.
fn thing<T>(at: *mut T) -> Option<NonNull<T>> {
    NonNull::new(at).filter(|at| at.addr().get() & 1 == 0)
}

impl<T> LocalPool<T> {
    /// An empty pool for objects of `epoch`.
    pub fn new(epoch: u64) -> Self {
        debug_assert!(epoch <= CLOSED);
        Self {
            epoch: AtomicU64::new(epoch),
            slots: std::array::from_fn(|_| LocalSlot(AtomicPtr::new(empty(epoch)))),
            owns: PhantomData,
        }
    }

    /// A pool that takes no objects.
    pub fn closed() -> Self {
        Self::new(CLOSED)
    }

    fn own_slot(&self) -> &AtomicPtr<T> {
        let [first, ..] = &self.slots;
        &self.slots.get(own_stripe()).unwrap_or(first).0
    }

    /// The object in the calling thread's slot. It may be of an epoch that has just ended.
    #[inline]
    pub fn take(&self) -> Option<Box<T>> {
        let slot = self.own_slot();
        // Relaxed: only a guess at the content.
        let at = slot.load(Ordering::Relaxed);
        thing(at)?;
        // Relaxed: with an old epoch the slot stays empty until the next `advance`.
        let next = empty(self.epoch.load(Ordering::Relaxed));
        // Acquire: pairs with the Release in `put`, so that the object is seen whole.
        let taken = slot.compare_exchange(at, next, Ordering::Acquire, Ordering::Relaxed);
        let taken = thing(taken.ok()?)?;
        // SAFETY: put there by `put`, and taken out by this exchange alone.
        Some(unsafe { Box::from_raw(taken.as_ptr()) })
    }

    /// Puts `thing` into the pool that `pool_of` names, together with the thing's epoch. It is dropped instead
    /// when that is not the pool's epoch, or the slot is full.
    #[inline]
    pub fn put(thing: Box<T>, pool_of: impl FnOnce(&T) -> (&Self, u64)) {
        let (pool, epoch) = pool_of(&thing);
        let slot = NonNull::from(pool.own_slot());
        let at = Box::into_raw(thing);
        // SAFETY: the pool lives at least as long as the object, which nobody else can reach before this
        // exchange; and nothing follows it.
        let slot = unsafe { slot.as_ref() };
        // Release: pairs with the Acquire of the thread that takes it out.
        let put = slot.compare_exchange(empty(epoch), at, Ordering::Release, Ordering::Relaxed);
        if put.is_err() {
            // SAFETY: turned into an address above, and put nowhere.
            drop(unsafe { Box::from_raw(at) });
        }
    }

    /// Lets the pool take objects of `epoch` only, and drops those in it.
    ///
    /// Requires: no two calls of this and [`LocalPool::close`] at a time; epochs grow.
    pub fn advance(&self, epoch: u64) {
        // Relaxed: changed by one thread at a time, and taken for a guess elsewhere.
        if self.epoch.load(Ordering::Relaxed) == CLOSED {
            return;
        }
        self.epoch.store(epoch, Ordering::Relaxed);
        for LocalSlot(slot) in &self.slots {
            // Acquire: pairs with the Release in `put`.
            let before = slot.swap(empty(epoch), Ordering::Acquire);
            if let Some(before) = thing(before) {
                // SAFETY: put there by `put`, and taken out by this exchange alone.
                drop(unsafe { Box::from_raw(before.as_ptr()) });
            }
        }
    }

    /// Drops all objects, and takes no more of any epoch.
    ///
    /// Requires: as [`LocalPool::advance`].
    pub fn close(&self) {
        self.advance(CLOSED);
    }
}

impl<T> Drop for LocalPool<T> {
    fn drop(&mut self) {
        self.close();
    }
}

impl<T> fmt::Debug for LocalPool<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LocalPool(epoch {})", self.epoch.load(Ordering::Relaxed))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::Arc;

    use super::*;

    /// An object that owns the pool it is in.
    struct Owner {
        pool: Arc<LocalPool<Owner>>,
        epoch: u64,
        _counted: Arc<()>,
    }

    fn put(thing: Box<Owner>) {
        LocalPool::put(thing, |thing| (&thing.pool, thing.epoch));
    }

    #[test]
    fn a_thread_finds_again_what_it_put_back_in_this_epoch() {
        let (pool, counted) = (Arc::new(LocalPool::<Owner>::new(1)), Arc::new(()));
        let owner = |epoch| {
            Box::new(Owner {
                pool: Arc::clone(&pool),
                epoch,
                _counted: Arc::clone(&counted),
            })
        };
        let left = || Arc::strong_count(&counted) - 1;
        assert!(pool.take().is_none());
        put(owner(1));
        put(owner(1));
        assert_eq!(left(), 1, "there is one slot");
        assert_eq!(pool.take().map(|thing| thing.epoch), Some(1));
        put(owner(2));
        assert_eq!(left(), 0, "of no epoch there is yet");
        put(owner(1));
        pool.advance(2);
        assert_eq!((left(), pool.take().is_none()), (0, true));
        put(owner(1));
        assert_eq!(left(), 0, "outdated");
        put(owner(2));
        assert_eq!(left(), 1);
        pool.close();
        pool.advance(3);
        put(owner(3));
        assert_eq!((left(), pool.take().is_none()), (0, true));
        assert_eq!(Arc::strong_count(&pool), 1);
    }

    /// Takes and puts `rounds` times, and advances the pool if this is the thread that does.
    fn use_often(pool: &Arc<LocalPool<Owner>>, counted: &Arc<()>, rounds: u64, advances: bool) {
        for round in 0..rounds {
            let taken = pool.take();
            if advances {
                pool.advance(round / 10);
            }
            let made = || {
                Box::new(Owner {
                    pool: Arc::clone(pool),
                    epoch: round / 10,
                    _counted: Arc::clone(counted),
                })
            };
            put(taken.unwrap_or_else(made));
        }
    }

    #[test]
    fn nothing_is_lost_or_given_twice_among_threads() {
        let (pool, counted) = (Arc::new(LocalPool::<Owner>::new(0)), Arc::new(()));
        std::thread::scope(|scope| {
            for thread in 0..40 {
                let (pool, counted) = (&pool, &counted);
                scope.spawn(move || use_often(pool, counted, 300, thread == 0));
            }
        });
        pool.close();
        let left = (Arc::strong_count(&pool), Arc::strong_count(&counted));
        assert_eq!(left, (1, 1));
    }
}
