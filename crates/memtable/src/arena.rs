//! Bump memory: an allocation stays, at one address, until the arena is dropped.
//!
//! Memory comes in chunks. An allocation is one `fetch_add` on the current chunk's cursor; only
//! when the chunk is full does a thread take the lock, append a chunk and make it current. Requests
//! larger than a quarter of the current chunk get a chunk of their own, so that no tail is wasted on
//! their account. Chunks grow with the arena (an eighth of its bytes, between [`CHUNK_BYTES_MIN`]
//! and [`CHUNK_BYTES_MAX`]), so a small memtable stays small and a large one rarely takes the lock.
//!
//! Larger chunks are cut from the huge pages of a [`Pool`], which the arenas of a memtable share.
//!
//! Thread safety: any number of threads allocate at once. Nothing is freed on its own, and no destructor of
//! a value in the arena is ever run.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::fmt;
use std::ptr::NonNull;
use std::sync::{Arc, PoisonError};

use drumlin_base::bytes::HUGE_PAGE_BYTES;

use crate::pool::{CHUNK_ALIGN, CUT_BYTES_MIN, Pool};
use crate::sync::{AtomicPtr, AtomicUsize, Mutex, Ordering};

/// First chunk of an arena.
pub(crate) const CHUNK_BYTES_MIN: usize = 4 << 10;
/// Largest one that is shared by several allocations and is no part of a page: less than what an allocator may map for itself
/// (`drumlin_fs::machine::return_freed_memory` has it do so from 48 KiB on).
const ALLOCATED_BYTES_MAX: usize = 32 << 10;
/// Largest one that is shared by several allocations: one huge page, which goes back to the budget or
/// the system when the memtable does.
pub(crate) const CHUNK_BYTES_MAX: usize = HUGE_PAGE_BYTES;

/// One piece of memory and how much of it is taken.
struct Chunk {
    base: NonNull<u8>,
    layout: Layout,
    /// Whether it is the allocator's, and not the pool's.
    is_allocated: bool,
    /// Bytes taken from the front. Runs past the capacity when allocations that do not fit race.
    cursor: AtomicUsize,
}

impl Chunk {
    fn new(bytes: usize, taken: usize, pool: &Pool) -> Box<Self> {
        let layout = Layout::from_size_align(bytes, CHUNK_ALIGN)
            .expect("chunks are far below isize::MAX and alignments are powers of two");
        let cut = pool.cut(bytes);
        let base = cut.or_else(|| {
            // SAFETY: the layout's size is not zero: chunks hold at least one byte.
            NonNull::new(unsafe { alloc(layout) })
        });
        Box::new(Self {
            base: base.unwrap_or_else(|| handle_alloc_error(layout)),
            layout,
            is_allocated: cut.is_none(),
            cursor: AtomicUsize::new(taken),
        })
    }

    /// The largest request this chunk serves: a larger one would waste too much of its tail.
    #[inline]
    fn request_bytes_max(&self) -> usize {
        self.layout.size() / 4
    }

    /// `bytes` bytes, if they still fit.
    #[inline]
    fn take(&self, bytes: usize) -> Option<NonNull<u8>> {
        if bytes > self.request_bytes_max() {
            return None;
        }
        // Relaxed: the cursor only divides the chunk; the chunk itself was published by `current`.
        let at = self.cursor.fetch_add(bytes, Ordering::Relaxed);
        // Cannot overflow: 2^40 failed requests of a quarter of the largest chunk would be needed.
        if at + bytes > self.layout.size() {
            return None;
        }
        // SAFETY: `at + bytes` is at most the chunk's size, as just checked.
        Some(unsafe { self.base.add(at) })
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        if !self.is_allocated {
            return;
        }
        // SAFETY: allocated in `new` with this layout, and only its owner drops it.
        unsafe { dealloc(self.base.as_ptr(), self.layout) }
    }
}

/// Bump memory shared by many threads.
pub(crate) struct Arena {
    /// Requests are rounded up to a multiple of this, so that every one is aligned to it.
    align: usize,
    /// The chunk allocations are tried in first. Points into `chunks`; null before the first.
    current: AtomicPtr<Chunk>,
    /// Bytes in all chunks.
    bytes: AtomicUsize,
    /// Every chunk there is. Boxed, so that `current` stays valid while the vector grows.
    #[expect(clippy::vec_box, reason = "`current` points at the chunks themselves")]
    chunks: Mutex<Vec<Box<Chunk>>>,
    /// Outlives the chunks cut from it.
    pool: Arc<Pool>,
}

// SAFETY: the chunks are plain memory owned by the arena; `fetch_add` gives each byte to one caller
// only, which alone may write it.
unsafe impl Send for Arena {}
// SAFETY: as above; all shared fields are atomics or behind the lock.
unsafe impl Sync for Arena {}

impl Arena {
    /// As [`Arena::of`], with a pool of its own and no budget.
    #[cfg(test)]
    pub(crate) fn new(align: usize) -> Self {
        Self::of(&Arc::new(Pool::new(None)), align)
    }

    /// An arena that holds no memory yet and whose allocations are aligned to `align`. Larger chunks are cut from the pages
    /// of `pool`, which counts all.
    ///
    /// Requires: `align` is a power of two of at most 64.
    pub(crate) fn of(pool: &Arc<Pool>, align: usize) -> Self {
        assert!(align.is_power_of_two() && align <= CHUNK_ALIGN);
        Self {
            align,
            current: AtomicPtr::new(std::ptr::null_mut()),
            bytes: AtomicUsize::new(0),
            chunks: Mutex::new(Vec::new()),
            pool: Arc::clone(pool),
        }
    }

    /// Where it has its memory from.
    pub(crate) fn pool(&self) -> &Pool {
        &self.pool
    }

    /// Bytes in all chunks, taken or not. One relaxed load.
    #[inline]
    pub(crate) fn bytes(&self) -> usize {
        // Relaxed: a figure for budgets, ordered with nothing.
        self.bytes.load(Ordering::Relaxed)
    }

    /// `bytes` uninitialized bytes, the caller's alone, valid until the arena is dropped.
    ///
    /// Requires: `bytes` is not zero and far below `isize::MAX`.
    #[inline]
    pub(crate) fn allocate(&self, bytes: usize) -> NonNull<u8> {
        debug_assert!(bytes > 0);
        let bytes = (bytes + (self.align - 1)) & !(self.align - 1);
        // Acquire: pairs with the Release in `allocate_slow`, so that the chunk is seen whole.
        let current = self.current.load(Ordering::Acquire);
        // SAFETY: null, or a chunk in `chunks`, which live as long as the arena.
        if let Some(chunk) = unsafe { current.as_ref() }
            && let Some(memory) = chunk.take(bytes)
        {
            debug_assert!(memory.as_ptr().addr().is_multiple_of(self.align));
            return memory;
        }
        self.allocate_slow(bytes)
    }

    /// `value`, which stays where it is put until the arena is dropped.
    ///
    /// Requires: `T` needs no more alignment than the arena gives.
    pub(crate) fn place<T: Copy>(&self, value: T) -> &T {
        const { assert!(size_of::<T>() > 0) };
        assert!(align_of::<T>() <= self.align);
        let place = self.allocate(size_of::<T>()).cast::<T>();
        // SAFETY: fresh memory of the value's size and alignment, this thread's alone.
        unsafe { place.write(value) };
        // SAFETY: just written, never written again, and alive as long as the arena.
        unsafe { place.as_ref() }
    }

    /// A copy of `values`, as [`Arena::place`] places one.
    pub(crate) fn place_slice<T: Copy>(&self, values: &[T]) -> &[T] {
        assert!(align_of::<T>() <= self.align);
        if size_of_val(values) == 0 {
            return &[];
        }
        let place = self.allocate(size_of_val(values)).cast::<T>();
        // SAFETY: fresh memory of the values' size and alignment, this thread's alone.
        unsafe { place.copy_from_nonoverlapping(NonNull::from(values).cast(), values.len()) };
        // SAFETY: just written, never written again, and alive as long as the arena.
        unsafe { std::slice::from_raw_parts(place.as_ptr(), values.len()) }
    }

    #[cold]
    fn allocate_slow(&self, bytes: usize) -> NonNull<u8> {
        // A thread that died while it held the lock left the vector whole: pushes are all it does.
        let mut chunks = self.chunks.lock().unwrap_or_else(PoisonError::into_inner);
        // Relaxed, both: written only under the lock, which is held.
        let allocated = self.bytes.load(Ordering::Relaxed);
        let current = self.current.load(Ordering::Relaxed);
        // SAFETY: null, or a chunk in `chunks`, which live as long as the arena.
        let current = unsafe { current.as_ref() };
        if let Some(memory) = current.and_then(|chunk| chunk.take(bytes)) {
            return memory; // Another thread appended a chunk while this one waited.
        }
        let chunk_bytes = match (allocated / 8).next_power_of_two() {
            bytes @ ..CUT_BYTES_MIN => bytes.clamp(CHUNK_BYTES_MIN, ALLOCATED_BYTES_MAX),
            bytes => bytes.min(CHUNK_BYTES_MAX),
        };
        let is_its_own = bytes > current.map_or(chunk_bytes / 4, Chunk::request_bytes_max);
        let chunk_bytes = if is_its_own { bytes } else { chunk_bytes };
        assert!(
            bytes <= chunk_bytes,
            "the request that starts a chunk fits into it"
        );
        let mut chunk = Chunk::new(chunk_bytes, bytes, &self.pool);
        let memory = chunk.base;
        assert!(
            memory.as_ptr().addr().is_multiple_of(CHUNK_ALIGN),
            "chunks begin on a cache line"
        );
        let pointer: *mut Chunk = &raw mut *chunk;
        chunks.push(chunk);
        // Relaxed: see `bytes`.
        self.bytes.fetch_add(chunk_bytes, Ordering::Relaxed);
        if !is_its_own {
            // Release: pairs with the Acquire in `allocate`.
            self.current.store(pointer, Ordering::Release);
        }
        memory
    }
}

impl fmt::Debug for Arena {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Arena({} bytes)", self.bytes())
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use drumlin_base::{MemoryBudget, MemoryUse};

    use super::*;

    #[test]
    fn allocations_are_aligned_and_do_not_overlap() {
        for align in [1, 8, 64] {
            let arena = Arena::new(align);
            let mut taken: Vec<(usize, usize)> = Vec::new();
            for round in 0..2000usize {
                let bytes = 1 + round * 7 % 300;
                let at = arena.allocate(bytes).as_ptr() as usize;
                assert_eq!(at % align, 0);
                taken.push((at, at + bytes.next_multiple_of(align)));
            }
            taken.sort_unstable();
            assert!(taken.windows(2).all(|pair| pair[0].1 <= pair[1].0));
            let used: usize = taken.iter().map(|(from, to)| to - from).sum();
            assert!(arena.bytes() >= used && arena.bytes() < used + used / 4);
        }
    }

    #[test]
    fn chunks_of_all_arenas_do_not_overlap_and_their_pages_come_back() {
        let budget = MemoryBudget::new(1 << 30);
        budget.charge(MemoryUse::Memtables, 64 << 20); // Pages are kept while memtables are in use.
        let spare = || budget.used(MemoryUse::Spare);
        for round in 0..3usize {
            let pool = Arc::new(Pool::new(Some(Arc::clone(&budget))));
            let arenas = [1, 8, 64].map(|align| Arena::of(&pool, align));
            let mut taken: Vec<(usize, usize)> = Vec::new();
            for step in 0..9000usize {
                let bytes = match step % 50 {
                    0 => 1 + (round + step) * 7919 % (1200 << 10),
                    _ => 1 + step * 7 % 10_000,
                };
                let at = arenas[step % 3].allocate(bytes);
                // SAFETY: the arena's memory, and this test's alone.
                unsafe { at.write_bytes(round as u8, bytes) };
                let at = at.as_ptr().addr();
                taken.push((at, at + bytes));
            }
            taken.sort_unstable();
            assert!(taken.windows(2).all(|pair| pair[0].1 <= pair[1].0));
            assert_eq!(spare(), 0, "all pages of the round before are taken");
            pool.account();
            let chunks: usize = arenas.iter().map(Arena::bytes).sum();
            let charged = budget.used(MemoryUse::Memtables) - (64 << 20);
            assert!((chunks..chunks * 4 / 3).contains(&charged), "{charged}");
            drop((arenas, pool));
            assert_eq!(budget.used(MemoryUse::Memtables), 64 << 20);
            assert!(spare() > 16 << 20, "{} bytes came back", spare());
        }
    }

    #[test]
    fn a_request_larger_than_any_chunk_is_served_without_wasting_the_current_one() {
        let arena = Arena::new(8);
        let before = arena.allocate(8).as_ptr() as usize;
        arena.allocate(CHUNK_BYTES_MAX * 3);
        let after = arena.allocate(8).as_ptr() as usize;
        assert!(after - before < CHUNK_BYTES_MIN, "same chunk");
        assert_eq!(arena.bytes(), CHUNK_BYTES_MIN + CHUNK_BYTES_MAX * 3);
    }

    #[test]
    fn threads_never_share_a_byte() {
        let arena = Arena::new(8);
        let mut all = std::thread::scope(|scope| {
            let workers: Vec<_> = (0..4)
                .map(|_| {
                    scope.spawn(|| {
                        (0..2000)
                            .map(|_| arena.allocate(24).as_ptr() as usize)
                            .collect::<Vec<_>>()
                    })
                })
                .collect();
            workers
                .into_iter()
                .flat_map(|worker| worker.join().unwrap())
                .collect::<Vec<_>>()
        });
        all.sort_unstable();
        assert!(all.windows(2).all(|pair| pair[1] - pair[0] >= 24));
    }
}
