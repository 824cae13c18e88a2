//! The clock that decides which slots are emptied when memory runs short.
//!
//! Cached items are in the cache's slab ([`Slab`]: data blocks) or on the heap (index and filter
//! partitions, which are decoded; blocks too large for the slab; the first blocks of a small
//! database). Every filled slot is known to one list: that of the slab's span it is in, or one of
//! the heap's rings. The hand goes round over all lists: a slot that was read since the hand last
//! passed is spared once, any other is emptied (Corbató, *A Paging Experiment with the Multics
//! System*, 1968). So the hand empties neighbours, and spans become free for blocks of other sizes.
//!
//! The capacity belongs to the whole cache and is asked of the budget. The slab takes another chunk
//! only where it fits; when others need memory, whole chunks are emptied and given back
//! ([`BlockCache::trim`]), at once, by the thread that charged the budget.
//!
//! Lock order: a ring's lock, a span's, the slab's. Dropping a slot array, which can happen under a list's
//! lock, frees slots of the slab and takes no list's lock.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use drumlin_base::budget::Reclaim;
use drumlin_base::bytes::{CHUNK_SPANS, Draft, HUGE_PAGE_BYTES, RetireBatch, Slab, SlabPlace};
use drumlin_base::metrics::Counter;
use drumlin_base::perf::{self, Measure};
use drumlin_base::sync::Mutex;
use drumlin_base::{MemoryBudget, MemoryUse, Result};

use super::ring::{Evict, FilledSlot, Ring, Verdict};

/// Rings of the items on the heap: enough that inserts of a few dozen threads seldom meet.
const RINGS: usize = 32;
/// The cost of an item on the heap beside its bytes: ring entry, reference counts, allocator.
const ITEM_OVERHEAD_BYTES: usize = 96;
/// Blocks are on the heap until they are this many bytes, so that a small database stays small.
const SMALL_BYTES: usize = 512 << 10;
/// Bytes of other sizes the hand may free on the way to a block's own size; then it empties spans.
const DETOUR_BYTES: usize = HUGE_PAGE_BYTES / CHUNK_SPANS;
/// Turns of the hand before a block is left to the heap: rather that than to empty the cache.
const TURNS_MAX: usize = 256;
/// Blocks that are left to the heap while all chunks wait for readers, before one is used again.
const PASSED_BY_MAX: usize = 4096;
/// Chunks of a slab at most: 512 GiB.
const CHUNKS_MAX: usize = 1 << 18;
/// The part of the budget that chunks on their way back may be and count as given back already.
/// Readers hold blocks for moments, but some value is held in most chunks: were none counted, the
/// whole cache would be emptied for nothing.
const LEAVING_SHARE: usize = 16;

/// An item about to be put into a slot.
pub(super) struct Newcomer<A> {
    pub(super) array: Weak<A>,
    pub(super) index: usize,
    pub(super) place: Option<SlabPlace>,
    pub(super) bytes: usize,
    /// Chooses among the rings.
    pub(super) spread: usize,
}

/// The blocks in one span of the slab, by slot. An entry may be stale: its block was dropped with its
/// table.
type Frames = Mutex<Vec<Option<FilledSlot>>>;

/// All cached blocks of a database, of any of its tables. Shared by its tables.
pub struct BlockCache {
    budget: Arc<MemoryBudget>,
    slab: Arc<Slab>,
    /// By chunk, then by span.
    frames: Box<[OnceLock<Box<[Frames; CHUNK_SPANS]>>]>,
    rings: Box<[Ring]>,
    heap_bytes: AtomicUsize,
    /// Where the hand is in the round of the rings and spans.
    hand: AtomicUsize,
    /// Where the emptying of chunks goes on. Held while they are emptied: one thread is enough.
    next_chunk: Mutex<usize>,
    /// Blocks left to the heap while all chunks waited for readers.
    passed_by: AtomicUsize,
    next_spread: AtomicUsize,
    hits: Counter,
    misses: Counter,
}

impl BlockCache {
    /// An empty cache; `budget` decides its capacity at any time.
    pub fn new(budget: Arc<MemoryBudget>) -> Arc<Self> {
        let chunks_max = (budget.blocks_max() / HUGE_PAGE_BYTES).min(CHUNKS_MAX);
        let cache = Arc::new(Self {
            slab: Slab::new(Arc::clone(&budget), chunks_max),
            frames: (0..chunks_max).map(|_| OnceLock::new()).collect(),
            rings: (0..RINGS).map(|_| Ring::default()).collect(),
            heap_bytes: AtomicUsize::new(0),
            hand: AtomicUsize::new(0),
            next_chunk: Mutex::new(0),
            passed_by: AtomicUsize::new(0),
            next_spread: AtomicUsize::new(0),
            hits: Counter::default(),
            misses: Counter::default(),
            budget,
        });
        let weak: Weak<Self> = Arc::downgrade(&cache);
        cache.budget.reclaim_from(weak);
        cache
    }

    /// Bytes held now, free slots in between included.
    pub fn used_bytes(&self) -> usize {
        self.slab.mapped_bytes() + self.heap_bytes.load(Ordering::Relaxed)
    }

    /// Lookups that found their block.
    pub fn hits(&self) -> u64 {
        self.hits.get()
    }

    /// Lookups that had to read the file (or gave up because they must not).
    pub fn misses(&self) -> u64 {
        self.misses.get()
    }

    #[inline]
    pub(super) fn count_hit(&self) {
        self.hits.bump();
        perf::count(Measure::CacheHits, 1);
    }

    pub(crate) fn count_miss(&self) {
        self.misses.bump();
    }

    /// A different number for each array, so that small arrays do not all start at one ring.
    pub(super) fn next_spread(&self) -> usize {
        self.next_spread.fetch_add(7, Ordering::Relaxed)
    }

    /// A buffer of `len` bytes and room for `words_max` words for an item to be cached. It is in the
    /// slab if cached items can make room there, else on the heap.
    ///
    /// # Errors
    /// `Io` when the system gives no memory.
    pub(crate) fn draft<M: Send + Sync + 'static>(
        &self,
        len: usize,
        words_max: u32,
    ) -> Result<Draft<M>> {
        match self.draft_in_slab(len, words_max) {
            Some(draft) => Ok(draft),
            None => Draft::try_on_heap(len, words_max),
        }
    }

    fn draft_in_slab<M: Send + Sync + 'static>(
        &self,
        len: usize,
        words_max: u32,
    ) -> Option<Draft<M>> {
        let bytes = Draft::<M>::memory_bytes(len, words_max);
        self.slab.slot_bytes(bytes)?;
        if self.slab.mapped_bytes() == 0
            && self.heap_bytes.load(Ordering::Relaxed) + bytes <= SMALL_BYTES
        {
            return None;
        }
        let take = || Draft::in_slab(&self.slab, len, words_max);
        if let Some(draft) = take() {
            return Some(draft);
        }
        let mut freed = 0;
        for _ in 0..TURNS_MAX {
            if self.has_room_for_chunk() && self.slab.grow() {
                return take();
            }
            if self.slab.mapped_bytes() <= self.slab.draining_bytes() {
                return self.is_stuck().then(take)?;
            }
            freed += self.turn(freed <= DETOUR_BYTES);
            if let Some(draft) = take() {
                return Some(draft);
            }
        }
        None
    }

    /// Whether a chunk was taken back that could not be given back: readers hold on to something in
    /// every chunk, and have for many reads, so the rest of it may as well be used.
    fn is_stuck(&self) -> bool {
        let passed = self.passed_by.fetch_add(1, Ordering::Relaxed);
        passed % PASSED_BY_MAX == PASSED_BY_MAX - 1 && self.slab.revive()
    }

    fn has_room_for_chunk(&self) -> bool {
        self.used_bytes() + HUGE_PAGE_BYTES <= self.budget.available_for_blocks()
    }

    /// Runs `fill` under the lock of the list the newcomer belongs to; when it filled the slot, takes
    /// charge of it.
    ///
    /// Every fill of one slot holds the lock of the same ring, also when the item is in the slab: two
    /// readers may load one block at once, the one to the heap and the other to the slab, and only one of
    /// them may find the slot empty.
    pub(super) fn insert<A: Evict + 'static>(
        &self,
        newcomer: Newcomer<A>,
        fill: impl FnOnce() -> bool,
    ) {
        let entry = FilledSlot {
            array: newcomer.array,
            index: newcomer.index,
        };
        let ring = self.ring(newcomer.spread);
        if let Some(place) = newcomer.place {
            let frames = self.frames(place.span as usize);
            let frames = frames.expect("the slab has no more chunks than there are frames for");
            return ring.alone(|| insert_in_span(frames, usize::from(place.slot), entry, fill));
        }
        let charge = || {
            let bytes = newcomer.bytes + ITEM_OVERHEAD_BYTES;
            self.heap_bytes.fetch_add(bytes, Ordering::Relaxed);
            self.budget.charge(MemoryUse::Blocks, bytes);
        };
        if ring.insert(entry, fill, charge) && self.is_over() {
            self.turn_ring(ring, &|| !self.is_over());
            self.trim();
        }
    }

    /// Gives back the charge of an item on the heap that left with its array.
    pub(super) fn forget(&self, spread: usize, bytes: usize) {
        self.uncharge(bytes);
        self.ring(spread).count_stale();
    }

    fn uncharge(&self, bytes: usize) {
        let bytes = bytes + ITEM_OVERHEAD_BYTES;
        self.heap_bytes.fetch_sub(bytes, Ordering::Relaxed);
        self.budget.release(MemoryUse::Blocks, bytes);
    }

    /// One of the rings, the next one for the next number.
    fn ring(&self, number: usize) -> &Ring {
        let ring = self.rings.get(number % RINGS);
        ring.expect("there are RINGS rings")
    }

    fn frames(&self, span: usize) -> Option<&Frames> {
        let row = self.frames.get(span / CHUNK_SPANS)?;
        row.get_or_init(Box::default).get(span % CHUNK_SPANS)
    }

    /// Moves the hand on by one list; bytes that became free.
    fn turn(&self, spare: bool) -> usize {
        let lists = RINGS + self.slab.chunks_seen() * CHUNK_SPANS;
        let at = self.hand.fetch_add(1, Ordering::Relaxed) % lists;
        match self.rings.get(at) {
            Some(ring) => ring.turn_once(|bytes| self.uncharge(bytes)),
            None => self.turn_span(at - RINGS, spare),
        }
    }

    fn turn_span(&self, span: usize, spare: bool) -> usize {
        let Some(frames) = self.frames(span) else {
            return 0;
        };
        let mut freed = 0;
        // Dropped after the lock is given back, all with one fence.
        let mut batch = RetireBatch::default();
        for frame in frames.lock().iter_mut() {
            let verdict = frame
                .as_ref()
                .map(|entry| entry.try_evict(spare, &mut batch));
            match verdict {
                None | Some(Verdict::Spared) => {}
                Some(Verdict::Gone) => *frame = None,
                Some(Verdict::Evicted(bytes)) => {
                    freed += bytes;
                    *frame = None;
                }
            }
        }
        freed
    }

    fn turn_ring(&self, ring: &Ring, enough: &dyn Fn() -> bool) -> usize {
        ring.turn(enough, |bytes| self.uncharge(bytes))
    }

    fn is_over(&self) -> bool {
        let leaving_max = self.budget.limit_bytes() / LEAVING_SHARE;
        let leaving = self.slab.draining_bytes().min(leaving_max);
        self.used_bytes().saturating_sub(leaving) > self.budget.available_for_blocks()
    }

    /// Gives memory back until the cache fits its present capacity. Cost: linear in the memory
    /// given back; none if another thread trims.
    pub fn trim(&self) {
        let Some(mut next_chunk) = self.next_chunk.try_lock() else {
            return;
        };
        // Every chunk once, and every ring twice: more cannot be given back.
        let (mut chunks, mut rings) = (self.slab.chunks_seen(), 2 * RINGS);
        while self.is_over() {
            let on_heap = self.heap_bytes.load(Ordering::Relaxed);
            if self.slab.shrink() {
                continue;
            }
            if chunks > 0 && (rings == 0 || self.slab.mapped_bytes() > on_heap) {
                chunks -= 1;
                *next_chunk = (*next_chunk + 1) % self.slab.chunks_seen().max(1);
                self.empty_chunk(*next_chunk);
            } else if rings > 0 {
                rings -= 1;
                let ring = self.ring(self.hand.fetch_add(1, Ordering::Relaxed));
                self.turn_ring(ring, &|| !self.is_over());
            } else {
                break; // The rest is held by readers.
            }
        }
    }

    /// Empties all slots that are in a chunk, so that it is unmapped once no reader holds any.
    fn empty_chunk(&self, number: usize) {
        if self.slab.drain(number) {
            let first = number * CHUNK_SPANS;
            for span in first..first + CHUNK_SPANS {
                self.turn_span(span, false);
            }
        }
    }
}

impl Reclaim for BlockCache {
    fn reclaim(&self, _bytes: usize) {
        // Down to its share, which the budget tells.
        self.trim();
    }
}

fn insert_in_span(frames: &Frames, slot: usize, entry: FilledSlot, fill: impl FnOnce() -> bool) {
    let mut frames = frames.lock();
    if !fill() {
        return;
    }
    if frames.len() <= slot {
        frames.resize_with(slot + 1, || None);
    }
    *frames.get_mut(slot).expect("made long enough just now") = Some(entry);
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
    use super::super::ring::STALE_MIN;
    use super::super::slot::{Cached, SlotArray};
    use super::*;
    use crate::searchable::PageMeta;
    use drumlin_base::bytes::SharedBytes;

    struct Item(usize);
    impl Cached for Arc<Item> {
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
        let entries: usize = cache.rings.iter().map(Ring::len).sum();
        assert!(entries <= 2 * RINGS * STALE_MIN, "{entries} stale entries");
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

    /// Of two readers that load one block at once, one may get room in the slab and the other not.
    #[test]
    fn a_slot_filled_from_the_heap_and_the_slab_at_once_holds_one_item() {
        const SLOTS: usize = 1000;
        let (budget, cache) = cache_of(64 << 20);
        assert!(cache.slab.grow());
        let heap = || Draft::<PageMeta>::try_on_heap(64, 0).expect("there is memory");
        let slab = || Draft::<PageMeta>::in_slab(&cache.slab, 64, 0).expect("the chunk has room");
        for _ in 0..100 {
            let slots = SlotArray::<SharedBytes<PageMeta>>::new(SLOTS, &cache);
            let turns = [AtomicUsize::new(0), AtomicUsize::new(0)];
            // Both fill the same slot at about the same moment; where their items are.
            let fill_all = |own: usize, draft: &dyn Fn() -> Draft<PageMeta>| {
                let fill = |index| {
                    let item = draft().share(PageMeta);
                    turns[own].store(index + 1, Ordering::Release);
                    while turns[1 - own].load(Ordering::Acquire) <= index {
                        std::hint::spin_loop();
                    }
                    slots.fill(index, item).bytes().as_ptr().addr()
                };
                (0..SLOTS).map(fill).collect::<Vec<_>>()
            };
            let (one, other) = std::thread::scope(|scope| {
                let other = scope.spawn(|| fill_all(1, &slab));
                (fill_all(0, &heap), other.join().expect("it does not panic"))
            });
            assert_eq!(one, other, "both got the item that is in the slot");
        }
        assert_eq!(cache.heap_bytes.load(Ordering::Relaxed), 0);
        assert_eq!(budget.used(MemoryUse::Blocks), cache.used_bytes());
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
