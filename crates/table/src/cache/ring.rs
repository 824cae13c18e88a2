//! The entries that the clock's hand visits: each names a slot; rings hold those of items on the heap.
//!
//! Thread safety: a ring is filled and turned under its lock; slots are emptied under it too.

use std::sync::Weak;
use std::sync::atomic::{AtomicUsize, Ordering};

use drumlin_base::bytes::RetireBatch;
use drumlin_base::sync::Mutex;

/// Stale entries a ring tolerates before it looks for them.
pub(super) const STALE_MIN: usize = 64;

/// The outcome for a slot that the hand visited.
pub(super) enum Verdict {
    /// Read since the last round; stays.
    Spared,
    /// Emptied; it held this many bytes.
    Evicted(usize),
    /// It was empty already.
    Gone,
}

/// The clock's view of a slot array.
pub(super) trait Evict: Send + Sync {
    /// Empties slot `index`, into `batch`; not if `spare` and it was read since it was last asked.
    fn try_evict(&self, index: usize, spare: bool, batch: &mut RetireBatch) -> Verdict;
}

/// A filled slot.
pub(super) struct FilledSlot {
    pub(super) array: Weak<dyn Evict>,
    pub(super) index: usize,
}

impl FilledSlot {
    pub(super) fn try_evict(&self, spare: bool, batch: &mut RetireBatch) -> Verdict {
        match self.array.upgrade() {
            Some(array) => array.try_evict(self.index, spare, batch),
            None => Verdict::Gone,
        }
    }
}

/// Places that the hand visits in turn. An emptied place is filled again by the next insert: it is
/// behind the hand, so new items are visited last.
#[derive(Default)]
struct Places {
    places: Vec<Option<FilledSlot>>,
    free: Vec<usize>,
    hand: usize,
}

impl Places {
    fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }

    fn add(&mut self, entry: FilledSlot) {
        match self.free.pop() {
            Some(at) => {
                let place = self.places.get_mut(at);
                *place.expect("a free place is one of the ring's") = Some(entry);
            }
            None => self.places.push(Some(entry)),
        }
    }

    fn remove(&mut self, at: usize) {
        if let Some(place) = self.places.get_mut(at)
            && place.take().is_some()
        {
            self.free.push(at);
        }
    }

    /// Forgets the entries of dropped arrays.
    fn compact(&mut self) {
        self.places
            .retain(|place| place.as_ref().is_some_and(|e| e.array.strong_count() > 0));
        self.free.clear();
        self.hand = 0;
    }
}

/// Filled slots whose items are on the heap.
#[derive(Default)]
pub(super) struct Ring {
    places: Mutex<Places>,
    /// Entries whose arrays were dropped.
    stale: AtomicUsize,
}

impl Ring {
    /// Runs `fill` and, when it filled the slot, adds its entry and runs `charge`. Whether it did.
    pub(super) fn insert(
        &self,
        entry: FilledSlot,
        fill: impl FnOnce() -> bool,
        charge: impl FnOnce(),
    ) -> bool {
        let mut places = self.places.lock();
        if !fill() {
            return false;
        }
        places.add(entry);
        charge();
        self.drop_stale(&mut places);
        true
    }

    /// Runs `act` while nobody else fills a slot of this ring.
    pub(super) fn alone<T>(&self, act: impl FnOnce() -> T) -> T {
        let _places = self.places.lock();
        act()
    }

    /// Tells that the array of an entry was dropped.
    pub(super) fn count_stale(&self) {
        self.stale.fetch_add(1, Ordering::Relaxed);
    }

    /// Moves the hand on until there was `enough`, at most twice around: the first round clears
    /// every mark that is not set again behind the hand. Tells `evicted` of each item that goes;
    /// the bytes of all.
    pub(super) fn turn(&self, enough: &dyn Fn() -> bool, evicted: impl Fn(usize)) -> usize {
        // Dropped after the lock is given back, all with one fence.
        let mut batch = RetireBatch::default();
        let mut places = self.places.lock();
        let mut freed = 0;
        let mut steps = 2 * places.places.len();
        while steps > 0 && !enough() {
            steps -= 1;
            let at = if places.hand < places.places.len() {
                places.hand
            } else {
                0
            };
            places.hand = at + 1;
            let Some(Some(entry)) = places.places.get(at) else {
                continue;
            };
            match entry.try_evict(true, &mut batch) {
                Verdict::Spared => {}
                Verdict::Gone => {
                    self.count_stale_removed();
                    places.remove(at);
                }
                Verdict::Evicted(bytes) => {
                    freed += bytes;
                    evicted(bytes);
                    places.remove(at);
                }
            }
        }
        freed
    }

    /// Moves the hand around once. Otherwise as [`Ring::turn`].
    pub(super) fn turn_once(&self, evicted: impl Fn(usize)) -> usize {
        let steps = std::cell::Cell::new(self.places.lock().places.len());
        let enough = || {
            let left = steps.get();
            steps.set(left.saturating_sub(1));
            left == 0
        };
        self.turn(&enough, evicted)
    }

    /// Keeps the count from drifting up when the hand meets a stale entry first.
    fn count_stale_removed(&self) {
        let _ = self
            .stale
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1));
    }

    /// Drops the entries of dead arrays once they are half of the ring. Amortized O(1).
    fn drop_stale(&self, places: &mut Places) {
        let stale = self.stale.load(Ordering::Relaxed);
        if stale < STALE_MIN || stale * 2 < places.len() {
            return;
        }
        self.stale.store(0, Ordering::Relaxed);
        places.compact();
    }

    /// Entries, stale ones included.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.places.lock().len()
    }
}
