//! Slots: the places of one table's (or one index partition's) cached blocks.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arc_swap::RefCnt;
use drumlin_base::bytes::{HazardGuard, HazardPtr, LINE_BYTES, RetireBatch, SlabPlace, prefetch};

use super::clock::{BlockCache, Newcomer};
use super::ring::{Evict, Verdict};

/// A counted handle to something that can be kept in a slot.
pub(crate) trait Cached: RefCnt + Send + Sync + 'static {
    /// Bytes it takes of the heap. Charged to the budget while it is in a slot, unless it is in
    /// the cache's slab, which is charged as a whole.
    fn charge(&self) -> usize;

    /// Where in the cache's slab it is, if it is there.
    fn place(&self) -> Option<SlabPlace> {
        None
    }
}

struct Slot<T: Cached> {
    cell: HazardPtr<T>,
    /// Set by readers, cleared by the clock hand as it passes. Relaxed: it publishes nothing.
    referenced: AtomicBool,
}

/// Bytes of a slot, full or empty.
const SLOT_BYTES: usize = 2 * size_of::<usize>();

/// One slot per block, all empty at first.
///
/// A slot is filled and emptied only under a lock of the [`BlockCache`], and read without any.
/// Dropping the array releases the charges of the items it still holds.
pub(crate) struct SlotArray<T: Cached> {
    slots: Box<[Slot<T>]>,
    cache: Arc<BlockCache>,
    /// Where this array's slots begin in the round of the rings.
    spread: usize,
}

impl<T: Cached> SlotArray<T> {
    /// `count` empty slots that `cache` will fill.
    pub(crate) fn new(count: usize, cache: &Arc<BlockCache>) -> Arc<Self> {
        const { assert!(size_of::<Slot<T>>() == SLOT_BYTES) };
        let slots = (0..count)
            .map(|_| Slot {
                cell: HazardPtr::empty(),
                referenced: AtomicBool::new(false),
            })
            .collect();
        Arc::new(Self {
            slots,
            cache: Arc::clone(cache),
            spread: cache.next_spread(),
        })
    }

    /// Number of slots.
    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    /// The item in slot `index`, under a guard: no reference is counted. Counts a hit and marks the slot,
    /// unless it is empty.
    #[inline]
    pub(crate) fn get(&self, index: usize) -> Option<HazardGuard<'_, T>> {
        let slot = self.slots.get(index)?;
        let guard = slot.cell.load()?;
        // A store only when it changes something keeps the line shared between readers.
        if !slot.referenced.load(Ordering::Relaxed) {
            slot.referenced.store(true, Ordering::Relaxed);
        }
        self.cache.count_hit();
        Some(guard)
    }

    /// The item in slot `index`; neither counts a hit nor marks the slot.
    #[inline]
    pub(crate) fn peek(&self, index: usize) -> Option<HazardGuard<'_, T>> {
        self.slots.get(index)?.cell.load()
    }

    /// Whether slot `index` holds nothing.
    #[inline]
    pub(crate) fn is_empty(&self, index: usize) -> bool {
        let slot = self.slots.get(index);
        slot.is_none_or(|slot| slot.cell.is_empty())
    }

    /// Prefetches slot `index` itself.
    #[inline]
    pub(crate) fn prefetch_slot(&self, index: usize) {
        if let Some(slot) = self.slots.get(index) {
            prefetch(slot, 1);
        }
    }

    /// Prefetches a few slots before and behind `index`, which need not be there.
    #[inline]
    pub(crate) fn prefetch_slots_about(&self, index: usize) {
        /// Where words are drawn at random, two guesses of three are as close.
        const NEAR: usize = 4;
        const LINES: usize = (2 * NEAR * SLOT_BYTES).div_ceil(LINE_BYTES) + 1;
        if let Some(slot) = self.slots.get(index.saturating_sub(NEAR)) {
            prefetch(slot, LINES);
        }
    }

    /// Prefetches the first `lines` cache lines of the item in slot `index`, if there is one.
    #[inline]
    pub(crate) fn prefetch(&self, index: usize, lines: usize) {
        if let Some(slot) = self.slots.get(index) {
            slot.cell.prefetch(lines);
        }
    }

    /// Prefetches `lines` cache lines of the item in slot `index` from its byte `offset` on, if there is one.
    #[inline]
    pub(crate) fn prefetch_at(&self, index: usize, offset: usize, lines: usize) {
        if let Some(slot) = self.slots.get(index) {
            slot.cell.prefetch_at(offset, lines);
        }
    }

    /// Puts `item` into slot `index`, unless another reader was faster, and returns the item in the
    /// slot.
    pub(crate) fn fill(self: &Arc<Self>, index: usize, item: T) -> T {
        let slot = self.slots.get(index).expect("a slot for each block");
        let newcomer = Newcomer {
            array: Arc::downgrade(self),
            index,
            place: item.place(),
            bytes: item.charge(),
            spread: self.spread + index,
        };
        let mut winner = None;
        self.cache.insert(newcomer, || {
            if let Some(present) = slot.cell.load_full() {
                winner = Some(present);
                return false;
            }
            slot.referenced.store(false, Ordering::Relaxed);
            slot.cell.store(Some(item.clone()));
            true
        });
        winner.unwrap_or(item)
    }

    /// Bytes of the slots themselves.
    pub(crate) fn resident_bytes(&self) -> usize {
        self.slots.len() * size_of::<Slot<T>>()
    }
}

impl<T: Cached> Evict for SlotArray<T> {
    fn try_evict(&self, index: usize, spare: bool, batch: &mut RetireBatch) -> Verdict {
        let Some(slot) = self.slots.get(index) else {
            return Verdict::Gone;
        };
        if slot.referenced.swap(false, Ordering::Relaxed) && spare {
            return Verdict::Spared;
        }
        match slot.cell.swap(None) {
            Some(item) => {
                let bytes = item.charge();
                batch.add(item);
                Verdict::Evicted(bytes)
            }
            None => Verdict::Gone,
        }
    }
}

impl<T: Cached> Drop for SlotArray<T> {
    fn drop(&mut self) {
        for (index, slot) in self.slots.iter_mut().enumerate() {
            if let Some(item) = slot.cell.take_mut()
                && item.place().is_none()
            {
                self.cache.forget(self.spread + index, item.charge());
            }
        }
    }
}

impl<T: Cached> std::fmt::Debug for SlotArray<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SlotArray({} slots)", self.slots.len())
    }
}

/// Something read through the cache: borrowed from its slot, or a handle of the reader's own.
pub(crate) enum Fetched<'a, T: Cached> {
    /// In its slot. Counts no reference, so that readers of one block do not share a counter.
    InSlot(HazardGuard<'a, T>),
    /// Not cached, or cached by this very read.
    Owned(T),
}

impl<T: Cached> Fetched<'_, T> {
    /// The item.
    #[inline]
    pub(crate) fn get(&self) -> &T {
        match self {
            Self::InSlot(guard) => guard,
            Self::Owned(item) => item,
        }
    }

    /// A counted handle.
    pub(crate) fn into_handle(self) -> T {
        match self {
            Self::InSlot(guard) => T::clone(&guard),
            Self::Owned(item) => item,
        }
    }
}
