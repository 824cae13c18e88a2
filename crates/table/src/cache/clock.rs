//! The clock that decides which slots are emptied when memory runs short.
//!
//! Every filled slot has an entry in the ring of one shard. The hand of a shard goes round: a slot
//! that was read since the hand last passed is spared once, any other is emptied (Corbató, *A Paging
//! Experiment with the Multics System*, 1968). The capacity belongs to the whole cache and is asked
//! of the budget at each insert, so a growing memtable shrinks the cache.
//!
//! Lock order: a shard's lock is the innermost; nothing else is locked under it, and dropping a
//! slot array (which can happen under it) takes none.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use drumlin_base::metrics::Counter;
use drumlin_base::{MemoryBudget, MemoryUse};
use parking_lot::Mutex;

/// Shards: enough that inserts of a few dozen threads seldom meet.
const SHARDS: usize = 32;
/// What one cached item costs beside its bytes: ring entry, reference counts, allocator.
const ITEM_OVERHEAD_BYTES: usize = 96;
/// Stale ring entries a shard tolerates before it looks for them.
const STALE_MIN: usize = 64;

/// What became of a slot the hand stood on.
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
    /// Empties slot `index` unless it was read since it was last asked.
    fn try_evict(&self, index: usize) -> Verdict;
}

struct RingEntry {
    array: Weak<dyn Evict>,
    index: usize,
}

/// Places that the hand visits in turn. An emptied place is filled again by the next insert: it lies
/// behind the hand, so what is new is visited last.
#[derive(Default)]
struct Ring {
    places: Vec<Option<RingEntry>>,
    free: Vec<usize>,
    hand: usize,
}

impl Ring {
    fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }

    fn add(&mut self, entry: RingEntry) {
        match self.free.pop() {
            Some(at) => {
                if let Some(place) = self.places.get_mut(at) {
                    *place = Some(entry);
                }
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

#[derive(Default)]
struct Shard {
    ring: Mutex<Ring>,
    /// Ring entries whose arrays were dropped.
    stale: AtomicUsize,
}

impl Shard {
    /// Keeps the count from drifting up when the hand meets a stale entry first.
    fn count_stale_removed(&self) {
        let _ = self
            .stale
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1));
    }
}

/// All cached blocks of a database, whatever table they belong to. Shared by its tables.
pub struct BlockCache {
    budget: Arc<MemoryBudget>,
    shards: Box<[Shard]>,
    used_bytes: AtomicUsize,
    next_spread: AtomicUsize,
    hits: Counter,
    misses: Counter,
}

impl BlockCache {
    /// An empty cache whose capacity is what `budget` leaves for blocks, asked at each insert.
    pub fn new(budget: Arc<MemoryBudget>) -> Arc<Self> {
        Arc::new(Self {
            budget,
            shards: (0..SHARDS).map(|_| Shard::default()).collect(),
            used_bytes: AtomicUsize::new(0),
            next_spread: AtomicUsize::new(0),
            hits: Counter::default(),
            misses: Counter::default(),
        })
    }

    /// Bytes held now.
    pub fn used_bytes(&self) -> usize {
        self.used_bytes.load(Ordering::Relaxed)
    }

    /// Lookups that found their block.
    pub fn hits(&self) -> u64 {
        self.hits.get()
    }

    /// Lookups that had to read the file (or gave up because they must not).
    pub fn misses(&self) -> u64 {
        self.misses.get()
    }

    /// Evicts down to the present capacity. Cost: what is evicted.
    pub fn trim(&self) {
        for shard in &self.shards {
            if self.is_full() {
                self.turn(shard);
            }
        }
    }

    #[inline]
    pub(super) fn count_hit(&self) {
        self.hits.bump();
    }

    pub(crate) fn count_miss(&self) {
        self.misses.bump();
    }

    /// A different number for each array, so that small arrays do not all start at one shard.
    pub(super) fn next_spread(&self) -> usize {
        self.next_spread.fetch_add(7, Ordering::Relaxed)
    }

    /// Runs `fill` under the lock of `slot`'s shard; when it filled the slot, takes charge of it.
    pub(super) fn insert(
        &self,
        slot: usize,
        array: Weak<dyn Evict>,
        index: usize,
        bytes: usize,
        fill: impl FnOnce() -> bool,
    ) {
        let Some(shard) = self.shards.get(slot % SHARDS) else {
            return;
        };
        let mut ring = shard.ring.lock();
        if !fill() {
            return;
        }
        ring.add(RingEntry { array, index });
        let bytes = bytes + ITEM_OVERHEAD_BYTES;
        self.used_bytes.fetch_add(bytes, Ordering::Relaxed);
        self.budget.charge(MemoryUse::Blocks, bytes);
        self.drop_stale(shard, &mut ring);
        drop(ring);
        if self.is_full() {
            self.turn(shard);
            let mut others = self.shards.iter();
            while self.is_full()
                && let Some(other) = others.next()
            {
                self.turn(other);
            }
        }
    }

    /// Gives back the charge of an item that left with its array.
    pub(super) fn forget(&self, slot: usize, bytes: usize) {
        self.uncharge(bytes);
        if let Some(shard) = self.shards.get(slot % SHARDS) {
            shard.stale.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn uncharge(&self, bytes: usize) {
        let bytes = bytes + ITEM_OVERHEAD_BYTES;
        self.used_bytes.fetch_sub(bytes, Ordering::Relaxed);
        self.budget.release(MemoryUse::Blocks, bytes);
    }

    fn is_full(&self) -> bool {
        self.used_bytes() > self.budget.available_for_blocks()
    }

    /// Turns the hand of `shard` until the cache fits its capacity or the shard is empty. Two
    /// rounds suffice: the first clears every mark that is not set again behind the hand.
    fn turn(&self, shard: &Shard) {
        let mut ring = shard.ring.lock();
        let mut steps = 2 * ring.places.len();
        while steps > 0 && self.is_full() {
            steps -= 1;
            let at = if ring.hand < ring.places.len() {
                ring.hand
            } else {
                0
            };
            ring.hand = at + 1;
            let Some(Some(entry)) = ring.places.get(at) else {
                continue;
            };
            let verdict = match entry.array.upgrade() {
                Some(array) => array.try_evict(entry.index),
                None => Verdict::Gone,
            };
            match verdict {
                Verdict::Spared => {}
                Verdict::Gone => {
                    shard.count_stale_removed();
                    ring.remove(at);
                }
                Verdict::Evicted(bytes) => {
                    self.uncharge(bytes);
                    ring.remove(at);
                }
            }
        }
    }

    /// Drops the entries of dead arrays once they are half of the ring. Amortized O(1).
    fn drop_stale(&self, shard: &Shard, ring: &mut Ring) {
        let stale = shard.stale.load(Ordering::Relaxed);
        if stale < STALE_MIN || stale * 2 < ring.len() {
            return;
        }
        shard.stale.store(0, Ordering::Relaxed);
        ring.compact();
    }
}

impl std::fmt::Debug for BlockCache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BlockCache")
            .field("used_bytes", &self.used_bytes())
            .field("hits", &self.hits())
            .field("misses", &self.misses())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::super::slot::{Cached, SlotArray};
    use super::*;

    struct Item(usize);
    impl Cached for Item {
        fn charge(&self) -> usize {
            self.0
        }
    }

    fn cache_of(bytes: usize) -> (Arc<MemoryBudget>, Arc<BlockCache>) {
        let budget = MemoryBudget::new(bytes);
        (Arc::clone(&budget), BlockCache::new(budget))
    }

    #[test]
    fn a_full_cache_evicts_what_was_not_read() {
        let (budget, cache) = cache_of(100 * (1000 + ITEM_OVERHEAD_BYTES));
        let slots = SlotArray::new(1000, &cache);
        for index in 0..1000 {
            slots.fill(index, Arc::new(Item(1000)));
            assert!(slots.get(0).is_some(), "a slot read between inserts stays");
            assert!(cache.used_bytes() <= budget.limit_bytes());
        }
        let cached = (0..1000)
            .filter(|&index| slots.get(index).is_some())
            .count();
        let room = budget.available_for_blocks() / (1000 + ITEM_OVERHEAD_BYTES);
        assert!(
            (room * 95 / 100..=room).contains(&cached),
            "{cached} of {room}"
        );
        assert_eq!(budget.used(MemoryUse::Blocks), cache.used_bytes());
    }

    #[test]
    fn dropping_an_array_gives_its_bytes_back() {
        let (budget, cache) = cache_of(1 << 20);
        for _ in 0..200 {
            let slots = SlotArray::new(64, &cache);
            for index in 0..64 {
                slots.fill(index, Arc::new(Item(100)));
            }
        }
        assert_eq!(cache.used_bytes(), 0);
        assert_eq!(budget.used_total(), 0);
        let entries: usize = cache
            .shards
            .iter()
            .map(|shard| shard.ring.lock().len())
            .sum();
        assert!(entries <= 2 * SHARDS * STALE_MIN, "{entries} stale entries");
    }

    #[test]
    fn the_first_reader_to_fill_a_slot_wins() {
        let (_, cache) = cache_of(1 << 20);
        let slots = SlotArray::new(1, &cache);
        let first = slots.fill(0, Arc::new(Item(1)));
        let second = slots.fill(0, Arc::new(Item(2)));
        assert!(Arc::ptr_eq(&first, &second));
        assert_eq!(cache.used_bytes(), 1 + ITEM_OVERHEAD_BYTES);
    }

    #[test]
    fn trim_follows_a_shrinking_budget() {
        let (budget, cache) = cache_of(1 << 20);
        let slots = SlotArray::new(500, &cache);
        for index in 0..500 {
            slots.fill(index, Arc::new(Item(1000)));
        }
        budget.charge(MemoryUse::Memtables, 900 << 10);
        cache.trim();
        assert!(cache.used_bytes() <= 124 << 10);
    }
}
