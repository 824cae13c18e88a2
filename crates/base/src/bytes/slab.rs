//! A slab allocator for block-sized buffers that gives memory back to the system.
//!
//! A general allocator may keep freed memory, and a memory budget would not see that. Here memory is
//! mapped and unmapped in chunks of one huge page, and a chunk is divided twice:
//!
//! ```text
//! chunk    one huge page: 8 spans
//! span     slots of one size: 8 to 1024        (buffers over an eighth of a span: the span is a chunk)
//! slot     one buffer
//!
//! take     the size class's last open span -> its last free slot   (no open span: cut a free span anew)
//! free     the slot back to its span -> an unused span back to the pool -> a drained chunk is unmapped
//! ```
//!
//! Sizes rise in steps of at most an eighth, so that a buffer wastes at most a ninth of its slot. A span whose
//! slots are all free can be cut anew for any size. Buffers over an eighth of a chunk are not served.
//!
//! The slab never maps by itself: its owner, which keeps to a budget, calls [`Slab::grow`]. Chunks come from the budget's spare pages
//! first, and go to them. To make it
//! smaller, a chunk is *drained*: none of its slots is handed out again, and the chunk is given back when the
//! last one comes back. The budget is charged with whole chunks, so the charge equals the resident memory.
//!
//! Thread safety: any thread takes slots, any other frees them. Lock order: a size class, then a span of it or
//! the pool. A chunk is unmapped under no lock.

use std::collections::BTreeSet;
use std::fmt;
use std::ptr::NonNull;
use std::sync::{Arc, OnceLock};

use super::pages::{HUGE_PAGE_BYTES, HugePage};
use crate::budget::{MemoryBudget, MemoryUse};
use crate::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use crate::sync::{Mutex, MutexGuard};

/// Spans of a chunk.
pub const CHUNK_SPANS: usize = 8;
/// Bytes of a small span.
const SPAN_BYTES: usize = HUGE_PAGE_BYTES / CHUNK_SPANS;
/// Fewest slots of a span, so that its tail wastes little.
const SLOTS_MIN: usize = 8;
/// Most slots of a span: smaller buffers share a size.
const SLOTS_MAX: usize = 1024;
/// Slots begin on cache lines.
const SLOT_ALIGN: usize = 64;

/// The address of a slot in its slab.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SlabPlace {
    /// The span; a chunk has [`CHUNK_SPANS`] consecutive ones.
    pub span: u32,
    /// The slot in it.
    pub slot: u16,
    class: u16,
}

/// A slot that was handed out. Dropping it frees it.
pub(super) struct SlabSlot {
    slab: Arc<Slab>,
    place: SlabPlace,
}

impl SlabSlot {
    pub(super) fn place(&self) -> SlabPlace {
        self.place
    }
}

impl Drop for SlabSlot {
    fn drop(&mut self) {
        self.slab.free(self.place);
    }
}

/// A slot and its memory, which is the taker's alone until the slot is dropped, and initialized.
pub(super) struct Taken {
    pub(super) slot: SlabSlot,
    pub(super) start: NonNull<u8>,
    pub(super) bytes: usize,
}

/// One size of slots.
#[derive(Clone, Copy, Debug)]
struct Size {
    slot_bytes: usize,
    slots: u16,
    /// Whether its spans are whole chunks.
    whole_chunks: bool,
}

/// Spans of one size that have a free slot. Slots are taken from the last one.
#[derive(Debug, Default)]
struct Class {
    open: Vec<u32>,
}

/// The first byte of a span.
#[derive(Clone, Copy, Debug)]
struct Base(NonNull<u8>);

// SAFETY: an address of memory that belongs to no thread; nothing is read or written through it.
unsafe impl Send for Base {}

/// One span that is cut into slots. Changed only under the lock of its class.
#[derive(Debug)]
struct CutSpan {
    class: usize,
    base: Base,
    free: Vec<u16>,
    live: usize,
    /// Its index in its class's list, if it is in it.
    open_at: Option<usize>,
}

/// The spans of one chunk number, whether or not there is such a chunk now.
#[derive(Debug, Default)]
struct ChunkSpans {
    /// Whether no slot may be handed out. Relaxed: a slot that is handed out all the same only delays the
    /// end of the chunk.
    closed: AtomicBool,
    /// `None` while the span is free.
    spans: [Mutex<Option<CutSpan>>; CHUNK_SPANS],
}

#[derive(Debug)]
struct Chunk {
    page: HugePage,
    spans_used: usize,
    draining: bool,
}

/// See the module.
pub struct Slab {
    budget: Arc<MemoryBudget>,
    sizes: Vec<Size>,
    classes: Vec<Mutex<Class>>,
    /// By chunk; made when there first is a chunk of that number.
    rows: Box<[OnceLock<Box<ChunkSpans>>]>,
    pool: Mutex<Pool>,
    /// The most chunks that existed at a time: numbers stay below this.
    chunks_seen: AtomicUsize,
    // Relaxed, both: figures for budgets, ordered with nothing.
    mapped: AtomicUsize,
    draining: AtomicUsize,
}

impl Slab {
    /// A slab without memory, of at most `chunks_max` chunks, which are charged to `budget` as
    /// [`MemoryUse::Blocks`] while they are mapped.
    pub fn new(budget: Arc<MemoryBudget>, chunks_max: usize) -> Arc<Self> {
        let sizes = sizes();
        Arc::new(Self {
            budget,
            classes: sizes.iter().map(|_| Mutex::default()).collect(),
            sizes,
            rows: (0..chunks_max).map(|_| OnceLock::new()).collect(),
            pool: Mutex::new(Pool {
                chunks_max,
                ..Pool::default()
            }),
            chunks_seen: AtomicUsize::new(0),
            mapped: AtomicUsize::new(0),
            draining: AtomicUsize::new(0),
        })
    }

    /// Bytes mapped now.
    pub fn mapped_bytes(&self) -> usize {
        self.mapped.load(Ordering::Relaxed) * HUGE_PAGE_BYTES
    }

    /// Bytes, of those mapped, that are given back once their slots are freed.
    pub fn draining_bytes(&self) -> usize {
        self.draining.load(Ordering::Relaxed) * HUGE_PAGE_BYTES
    }

    /// The most chunks that existed at a time; their numbers, and `place.span / CHUNK_SPANS`, are
    /// below.
    pub fn chunks_seen(&self) -> usize {
        self.chunks_seen.load(Ordering::Relaxed)
    }

    /// The slot size that buffers of `bytes` get; `None` when they are too large.
    pub fn slot_bytes(&self, bytes: usize) -> Option<usize> {
        Some(self.sizes.get(self.class_of(bytes)?)?.slot_bytes)
    }

    fn class_of(&self, bytes: usize) -> Option<usize> {
        let class = self.sizes.partition_point(|size| size.slot_bytes < bytes);
        (class < self.sizes.len()).then_some(class)
    }

    /// A slot of at least `bytes` in memory that is mapped. `None` when none is free.
    pub(super) fn take(self: &Arc<Self>, bytes: usize) -> Option<Taken> {
        let class_at = self.class_of(bytes)?;
        let size = self.sizes.get(class_at)?;
        let mut class = self.classes.get(class_at)?.lock();
        let (number, mut span) = loop {
            let Some(&number) = class.open.last() else {
                self.open_span(&mut class, class_at, size)?;
                continue;
            };
            let span = self.span(number)?.lock();
            // A span that was cut just now is used even if its chunk was closed meanwhile: with no slot to
            // come back, nothing would ever free it or its chunk.
            let is_fresh = span.as_ref().is_some_and(|span| span.live == 0);
            if is_fresh || !self.is_closed(number) {
                break (number, span);
            }
            self.pop_open(&mut class, span);
        };
        let present = span.as_mut()?;
        let slot = present.free.pop()?;
        present.live += 1;
        let offset = usize::from(slot) * size.slot_bytes;
        let start = present.base.0.as_ptr().wrapping_add(offset);
        if present.free.is_empty() {
            self.pop_open(&mut class, span);
        }
        Some(Taken {
            slot: SlabSlot {
                slab: Arc::clone(self),
                place: SlabPlace {
                    span: number,
                    slot,
                    class: class_at as u16,
                },
            },
            start: NonNull::new(start)?,
            bytes: size.slot_bytes,
        })
    }

    /// Takes `span`, the last open span, out of its class's list.
    fn pop_open(&self, class: &mut Class, mut span: MutexGuard<'_, Option<CutSpan>>) {
        if let Some(span) = span.as_mut() {
            span.open_at = None;
        }
        class.open.pop();
    }

    /// Cuts a free span into slots of a size that has none left.
    fn open_span(&self, class: &mut Class, class_at: usize, size: &Size) -> Option<()> {
        let (number, base) = self.pool.lock().take(size.whole_chunks)?;
        *self.span(number)?.lock() = Some(CutSpan {
            class: class_at,
            base: Base(base),
            free: (0..size.slots).rev().collect(),
            live: 0,
            open_at: Some(class.open.len()),
        });
        class.open.push(number);
        Some(())
    }

    fn free(&self, place: SlabPlace) {
        let class_at = usize::from(place.class);
        let class = self.classes.get(class_at);
        let mut class = class.expect("slots are of a class of this slab").lock();
        let cell = self.span(place.span);
        let mut guard = cell.expect("slots are in a span of this slab").lock();
        let span = guard.as_mut().expect("a span with slots in use stays cut");
        assert!(
            span.class == class_at,
            "a span has one class while slots are in use"
        );
        assert!(span.live > 0, "a slot in use is counted");
        debug_assert!(!span.free.contains(&place.slot), "a slot came back twice");
        span.free.push(place.slot);
        span.live -= 1;
        if span.live > 0 {
            if span.open_at.is_none() && !self.is_closed(place.span) {
                span.open_at = Some(class.open.len());
                class.open.push(place.span);
            }
            return;
        }
        let open_at = span.open_at;
        *guard = None;
        drop(guard);
        if let Some(at) = open_at {
            class.open.swap_remove(at);
            if let Some(&moved) = class.open.get(at)
                && let Some(cell) = self.span(moved)
                && let Some(moved) = cell.lock().as_mut()
            {
                moved.open_at = Some(at);
            }
        }
        let whole = self.sizes.get(class_at).is_some_and(|s| s.whole_chunks);
        let ended = self.pool.lock().give_back(place.span, whole);
        drop(class);
        if let Some(chunk) = ended {
            self.draining.fetch_sub(1, Ordering::Relaxed);
            self.give_back_chunk(chunk);
        }
    }

    fn is_closed(&self, span: u32) -> bool {
        let row = self.row(span as usize / CHUNK_SPANS);
        row.is_some_and(|row| row.closed.load(Ordering::Relaxed))
    }

    fn close(&self, chunk: usize, to: bool) {
        if let Some(row) = self.row(chunk) {
            row.closed.store(to, Ordering::Relaxed);
        }
    }

    fn row(&self, chunk: usize) -> Option<&ChunkSpans> {
        self.rows
            .get(chunk)
            .map(|row| &**row.get_or_init(Box::default))
    }

    fn span(&self, number: u32) -> Option<&Mutex<Option<CutSpan>>> {
        let number = number as usize;
        self.row(number / CHUNK_SPANS)?
            .spans
            .get(number % CHUNK_SPANS)
    }

    fn give_back_chunk(&self, chunk: Chunk) {
        assert!(
            chunk.spans_used == 0,
            "no span of an unmapped chunk is in use"
        );
        self.mapped.fetch_sub(1, Ordering::Relaxed);
        self.budget.release(MemoryUse::Blocks, HUGE_PAGE_BYTES);
        self.budget.give_page(chunk.page);
    }

    /// Maps one chunk more, or takes back one that is being drained. False when the slab has
    /// `chunks_max` already, or the system has no memory.
    pub fn grow(&self) -> bool {
        if self.draining_bytes() > 0 && self.revive() {
            return true;
        }
        let Some(page) = self.budget.take_page() else {
            return false;
        };
        let mut pool = self.pool.lock();
        let Some(number) = pool.add(page) else {
            return false;
        };
        // Under the lock: nobody takes a span of the chunk while it has the mark of an earlier one.
        self.close(number, false);
        drop(pool);
        self.chunks_seen.fetch_max(number + 1, Ordering::Relaxed);
        self.mapped.fetch_add(1, Ordering::Relaxed);
        self.budget.charge(MemoryUse::Blocks, HUGE_PAGE_BYTES);
        true
    }

    /// Gives back a chunk with no slot in use; false when there is none.
    pub fn shrink(&self) -> bool {
        let empty = self.pool.lock().take_empty();
        match empty {
            Some(chunk) => {
                self.give_back_chunk(chunk);
                true
            }
            None => false,
        }
    }

    /// Stops handing out slots of chunk `number`, and unmaps it when all slots in use have come back;
    /// the caller makes sure that they do. False when there is no such chunk, or it is being drained.
    pub fn drain(&self, number: usize) -> bool {
        let mut pool = self.pool.lock();
        if !pool.close(number) {
            return false;
        }
        self.close(number, true);
        match pool.take_if_empty(number) {
            Some(chunk) => {
                drop(pool);
                self.give_back_chunk(chunk);
            }
            None => {
                self.draining.fetch_add(1, Ordering::Relaxed);
            }
        }
        true
    }

    /// Takes a chunk that is being drained back into use; false when there is none.
    pub fn revive(&self) -> bool {
        let mut pool = self.pool.lock();
        let Some(number) = pool.reopen() else {
            return false;
        };
        self.draining.fetch_sub(1, Ordering::Relaxed);
        // Under the lock, so that it does not undo a drain that begins right now.
        self.close(number, false);
        drop(pool);
        let first = number * CHUNK_SPANS;
        for span in first..first + CHUNK_SPANS {
            self.reopen_span(span as u32);
        }
        true
    }

    /// Puts a span with free slots back into its class's list.
    fn reopen_span(&self, number: u32) -> Option<()> {
        let cell = self.span(number)?;
        let class_at = cell.lock().as_ref()?.class;
        let mut class = self.classes.get(class_at)?.lock();
        let mut guard = cell.lock();
        // It may have been cut for another class while its class was not locked.
        let span = guard.as_mut().filter(|span| span.class == class_at)?;
        if span.open_at.is_none() && !span.free.is_empty() {
            span.open_at = Some(class.open.len());
            class.open.push(number);
        }
        Some(())
    }
}

/// Chunks, and which spans of them are free.
#[derive(Debug, Default)]
struct Pool {
    chunks: Vec<Option<Chunk>>,
    chunks_max: usize,
    /// Free spans of chunks that are partly used. The first is taken first, so that the chunks at
    /// the end become empty.
    spans: BTreeSet<u32>,
    /// Chunks with no span in use.
    empty: BTreeSet<usize>,
}

impl Pool {
    /// Adds a chunk; its number. `None` at the maximum.
    fn add(&mut self, page: HugePage) -> Option<usize> {
        let number = match self.chunks.iter().position(Option::is_none) {
            Some(number) => number,
            None if self.chunks.len() < self.chunks_max => {
                self.chunks.push(None);
                self.chunks.len() - 1
            }
            None => return None,
        };
        *self.chunks.get_mut(number)? = Some(Chunk {
            page,
            spans_used: 0,
            draining: false,
        });
        self.empty.insert(number);
        Some(number)
    }

    /// A free span: its number and its first byte.
    fn take(&mut self, whole_chunk: bool) -> Option<(u32, NonNull<u8>)> {
        let span = match self.spans.first() {
            Some(&span) if !whole_chunk => span,
            _ => {
                let number = self.empty.pop_first()?;
                let first = u32::try_from(number * CHUNK_SPANS).ok()?;
                if !whole_chunk {
                    self.spans.extend(first..first + CHUNK_SPANS as u32);
                }
                first
            }
        };
        self.spans.remove(&span);
        let chunk = self.chunk_of(span)?;
        chunk.spans_used += if whole_chunk { CHUNK_SPANS } else { 1 };
        assert!(chunk.spans_used <= CHUNK_SPANS, "a span is handed out once");
        assert!(!chunk.draining, "no span of a drained chunk is handed out");
        let offset = span as usize % CHUNK_SPANS * SPAN_BYTES;
        let base = chunk.page.base().as_ptr().wrapping_add(offset);
        Some((span, NonNull::new(base)?))
    }

    /// Takes a span back. Returns its chunk when that is being drained and has no other span in use.
    fn give_back(&mut self, span: u32, whole_chunk: bool) -> Option<Chunk> {
        let number = span as usize / CHUNK_SPANS;
        let chunk = self.chunk_of(span);
        let chunk = chunk.expect("a span in use is of a chunk that is mapped");
        let spans = if whole_chunk { CHUNK_SPANS } else { 1 };
        assert!(spans <= chunk.spans_used, "a span in use is counted");
        chunk.spans_used -= spans;
        let (used, draining) = (chunk.spans_used, chunk.draining);
        match (used, draining) {
            (0, true) => return self.chunks.get_mut(number)?.take(),
            (0, false) => {
                self.forget_spans(number);
                self.empty.insert(number);
            }
            (_, true) => {}
            (_, false) => {
                self.spans.insert(span);
            }
        }
        None
    }

    fn chunk_of(&mut self, span: u32) -> Option<&mut Chunk> {
        let number = span as usize / CHUNK_SPANS;
        self.chunks.get_mut(number)?.as_mut()
    }

    fn forget_spans(&mut self, number: usize) {
        let first = (number * CHUNK_SPANS) as u32;
        for span in first..first + CHUNK_SPANS as u32 {
            self.spans.remove(&span);
        }
    }

    /// Takes the last empty chunk out.
    fn take_empty(&mut self) -> Option<Chunk> {
        let number = self.empty.pop_last()?;
        self.chunks.get_mut(number)?.take()
    }

    /// Takes chunk `number` out if no span of it is in use.
    fn take_if_empty(&mut self, number: usize) -> Option<Chunk> {
        let cell = self.chunks.get_mut(number)?;
        cell.take_if(|chunk| chunk.spans_used == 0)
    }

    /// Begins to drain chunk `number`; whether it is there and was not being drained.
    fn close(&mut self, number: usize) -> bool {
        match self.chunks.get_mut(number) {
            Some(Some(chunk)) if !chunk.draining => {
                chunk.draining = true;
                self.forget_spans(number);
                self.empty.remove(&number);
                true
            }
            _ => false,
        }
    }

    /// Ends the draining of some chunk; its number.
    fn reopen(&mut self) -> Option<usize> {
        let mut all = self.chunks.iter_mut().enumerate();
        let (number, chunk) = all.find_map(|(number, chunk)| {
            let chunk = chunk.as_mut().filter(|chunk| chunk.draining)?;
            Some((number, chunk))
        })?;
        chunk.draining = false;
        Some(number)
    }
}

/// The sizes of slots, ascending.
fn sizes() -> Vec<Size> {
    let mut sizes = Vec::new();
    for (span_bytes, whole_chunks) in [(SPAN_BYTES, false), (HUGE_PAGE_BYTES, true)] {
        let mut slots = SLOTS_MIN;
        while slots <= SLOTS_MAX {
            let slot_bytes = span_bytes / slots / SLOT_ALIGN * SLOT_ALIGN;
            let known = sizes
                .iter()
                .any(|size: &Size| size.slot_bytes == slot_bytes);
            if !(known || whole_chunks && slot_bytes <= SPAN_BYTES / SLOTS_MIN) {
                sizes.push(Size {
                    slot_bytes,
                    slots: slots as u16,
                    whole_chunks,
                });
            }
            slots += (slots / 8).max(1);
        }
    }
    sizes.sort_by_key(|size| size.slot_bytes);
    sizes
}

impl fmt::Debug for Slab {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slab")
            .field("mapped_bytes", &self.mapped_bytes())
            .field("draining_bytes", &self.draining_bytes())
            .finish_non_exhaustive()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// The moment between taking a span out of the pool and the first slot of it.
    #[test]
    fn a_span_whose_chunk_is_drained_before_its_first_slot_is_not_lost() {
        let budget = MemoryBudget::new(64 << 20);
        let slab = Slab::new(Arc::clone(&budget), 4);
        assert!(slab.grow());
        let class_at = slab.class_of(1000).unwrap();
        let size = slab.sizes[class_at];
        let mut class = slab.classes[class_at].lock();
        slab.open_span(&mut class, class_at, &size).unwrap();
        drop(class);
        assert!(slab.drain(0));
        let taken = slab.take(1000).expect("the span is served from");
        assert_eq!(slab.draining_bytes(), HUGE_PAGE_BYTES);
        drop(taken);
        assert_eq!((slab.mapped_bytes(), slab.draining_bytes()), (0, 0));
        assert_eq!(budget.used(MemoryUse::Blocks), 0);
    }
}
