//! A counted, immutable buffer in one piece of memory, of the heap or of a [`Slab`].
//!
//! ```text
//! handles · slot · lengths · meta  | words (u64 × n) | bytes
//! ^ a cache line                  ^ the next ones
//! ```
//!
//! `meta` is decoded from the bytes. The words are room for numbers that a reader of the buffer computes
//! later, once, for all readers. Everything is in one piece, so that a reader that knows the address can
//! prefetch header and words side by side ([`SharedBytes::prefetch`]) instead of one after the other.
//!
//! A buffer is made as a [`Draft`], which has one owner and can be written, and then shared.
//!
//! Thread safety: handles are cloned, read and dropped on any thread. The last one to be dropped frees the
//! memory, on its own thread.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::fmt;
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::Arc;

use arc_swap::RefCnt;

use super::prefetch::prefetch;
use super::slab::{Slab, SlabPlace, SlabSlot};
use crate::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use crate::{Error, Result};

/// Every buffer is aligned to a cache line.
const ALIGN: usize = 64;
/// Most handles to one buffer; only a leak makes more.
const HANDLES_MAX: usize = isize::MAX as usize;
/// Fills freed memory where assertions are checked.
const POISON: u8 = 0xDB;

/// The part in front of the words.
#[repr(C)]
struct Header<M> {
    handles: AtomicUsize,
    /// Bytes of the whole piece of memory.
    capacity: usize,
    /// The slot it is in; `None` for memory of the heap.
    slot: Option<SlabSlot>,
    len: usize,
    /// Room for words.
    words_max: u32,
    /// The number of words, [`WORDS_NONE`] or [`WORDS_MAKING`].
    words: AtomicU32,
    meta: M,
}

/// Nobody made the words yet.
const WORDS_NONE: u32 = u32::MAX;
/// Some thread makes them.
const WORDS_MAKING: u32 = u32::MAX - 1;

/// Bytes of the header, whole cache lines.
const fn header_bytes<M>() -> usize {
    assert!(align_of::<Header<M>>() <= ALIGN, "the meta fits its place");
    size_of::<Header<M>>().next_multiple_of(ALIGN)
}

/// A piece of memory that is freed when this is dropped.
struct Memory {
    start: NonNull<u8>,
    capacity: usize,
    slot: Option<SlabSlot>,
}

// SAFETY: the memory is plain bytes that belong to the owner of this; slots may be freed by any
// thread.
unsafe impl Send for Memory {}

impl Memory {
    fn on_heap(capacity: usize) -> Self {
        Self::try_on_heap(capacity).unwrap_or_else(|| handle_alloc_error(Self::layout(capacity)))
    }

    fn try_on_heap(capacity: usize) -> Option<Self> {
        let layout = Self::layout(capacity);
        // SAFETY: the layout's size is not zero: it has room for a header.
        let start = unsafe { alloc_zeroed(layout) };
        Some(Self {
            start: NonNull::new(start)?,
            capacity,
            slot: None,
        })
    }

    fn layout(capacity: usize) -> Layout {
        Layout::from_size_align(capacity, ALIGN).expect("buffers are far below isize::MAX")
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if cfg!(debug_assertions) {
            // SAFETY: the memory is ours until it is freed below, and is `capacity` bytes long.
            unsafe { self.start.write_bytes(POISON, self.capacity) };
        }
        if self.slot.is_none() {
            // SAFETY: allocated by `on_heap` with this layout, and freed once.
            unsafe { dealloc(self.start.as_ptr(), Self::layout(self.capacity)) };
        }
    }
}

/// A buffer that is being written; it becomes a [`SharedBytes`].
pub struct Draft<M> {
    memory: Memory,
    len: usize,
    words_max: u32,
    meta: PhantomData<fn() -> M>,
}

impl<M: Send + Sync + 'static> Draft<M> {
    /// A buffer of `len` zeros with room for `words_max` words, in memory of the heap.
    pub fn on_heap(len: usize, words_max: u32) -> Self {
        debug_assert!(words_max < WORDS_MAKING);
        Self {
            memory: Memory::on_heap(Self::memory_bytes(len, words_max)),
            len,
            words_max,
            meta: PhantomData,
        }
    }

    /// [`Draft::on_heap`] for a length that a file claims.
    ///
    /// # Errors
    /// `Io` when the system gives no such memory.
    pub fn try_on_heap(len: usize, words_max: u32) -> Result<Self> {
        debug_assert!(words_max < WORDS_MAKING);
        let bytes = Self::memory_bytes(len, words_max);
        Ok(Self {
            memory: Memory::try_on_heap(bytes).ok_or_else(|| Error::no_memory(bytes))?,
            len,
            words_max,
            meta: PhantomData,
        })
    }

    /// A buffer of `len` bytes, of any content, with room for `words_max` words, in memory of `slab`.
    /// `None` when no slot is free.
    pub fn in_slab(slab: &Arc<Slab>, len: usize, words_max: u32) -> Option<Self> {
        debug_assert!(words_max < WORDS_MAKING);
        let taken = slab.take(Self::memory_bytes(len, words_max))?;
        Some(Self {
            memory: Memory {
                start: taken.start,
                capacity: taken.bytes,
                slot: Some(taken.slot),
            },
            len,
            words_max,
            meta: PhantomData,
        })
    }

    /// Bytes of memory that a buffer of `len` bytes with room for `words_max` words needs.
    pub fn memory_bytes(len: usize, words_max: u32) -> usize {
        let header = const { header_bytes::<M>() };
        header
            .saturating_add(words_max as usize * size_of::<u64>())
            .saturating_add(len)
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: `memory` is at least `memory_bytes(len, words_max)` long, which ends with the bytes;
        // all of it was initialized when it was allocated or mapped, and is this draft's alone.
        unsafe { std::slice::from_raw_parts(self.start().as_ptr(), self.len) }
    }

    /// The bytes, to be written.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `bytes`; `&mut self` makes this the only reference.
        unsafe { std::slice::from_raw_parts_mut(self.start().as_ptr(), self.len) }
    }

    fn start(&self) -> NonNull<u8> {
        // SAFETY: the bytes are inside the memory, see `bytes`.
        unsafe { self.memory.start.add(Self::memory_bytes(0, self.words_max)) }
    }

    /// Cuts the bytes off behind the first `len`; the memory stays as large.
    pub fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    /// Shares the buffer, together with `meta`.
    pub fn share(self, meta: M) -> SharedBytes<M> {
        let Memory {
            start, capacity, ..
        } = self.memory;
        let mut memory = std::mem::ManuallyDrop::new(self.memory);
        let header = Header {
            handles: AtomicUsize::new(1),
            capacity,
            slot: memory.slot.take(),
            len: self.len,
            words_max: self.words_max,
            words: AtomicU32::new(WORDS_NONE),
            meta,
        };
        let at = start.cast::<Header<M>>();
        // SAFETY: the memory is ours alone, begins with room for a header, and is aligned for one.
        unsafe { at.write(header) };
        SharedBytes { header: at }
    }
}

/// An immutable buffer with something decoded from it, to be shared and pinned. A handle: cloning
/// it counts, and copies no byte.
///
/// `meta` may hold offsets into the bytes, which never change and never move.
pub struct SharedBytes<M> {
    header: NonNull<Header<M>>,
}

// SAFETY: a handle gives shared access to the bytes, which are immutable, to atomics, and to `meta`,
// which is dropped on the thread that drops the last handle.
unsafe impl<M: Send + Sync> Send for SharedBytes<M> {}
// SAFETY: as above.
unsafe impl<M: Send + Sync> Sync for SharedBytes<M> {}

impl<M: Send + Sync + 'static> SharedBytes<M> {
    /// A copy of `bytes` in memory of the heap, together with `meta`.
    pub fn new(bytes: &[u8], meta: M) -> Self {
        let mut draft = Draft::on_heap(bytes.len(), 0);
        draft.bytes_mut().copy_from_slice(bytes);
        draft.share(meta)
    }

    /// The slot it is in; `None` when its memory is the heap's.
    pub fn place(&self) -> Option<SlabPlace> {
        self.header().slot.as_ref().map(SlabSlot::place)
    }

    /// Whether both are handles to one buffer.
    pub fn is_same(&self, other: &Self) -> bool {
        self.header == other.header
    }

    /// One more handle, without its type.
    pub(super) fn erase(&self) -> ErasedHandle {
        let handle = std::mem::ManuallyDrop::new(self.clone());
        ErasedHandle {
            header: handle.header.cast(),
            release: release::<M>,
        }
    }
}

impl<M> SharedBytes<M> {
    #[inline]
    fn header(&self) -> &Header<M> {
        // SAFETY: the header is valid as long as a handle exists, and `self` is one.
        unsafe { self.header.as_ref() }
    }

    /// The meta that was decoded from the bytes.
    #[inline]
    pub fn meta(&self) -> &M {
        &self.header().meta
    }

    /// The bytes.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        let header = self.header();
        let at = const { header_bytes::<M>() } + header.words_max as usize * size_of::<u64>();
        // SAFETY: the bytes follow the words in the same piece of memory, as `Draft` laid it out.
        let start = unsafe { self.header.cast::<u8>().add(at) };
        // SAFETY: `len` initialized bytes begin there; nobody writes them once they are shared.
        unsafe { std::slice::from_raw_parts(start.as_ptr(), header.len) }
    }

    /// The words. If nobody made them yet, `make` is called on the room for them and returns the
    /// number it filled in. `None` while another thread makes them.
    #[inline]
    pub fn words(&self, make: impl FnOnce(&mut [u64]) -> usize) -> Option<&[u64]> {
        let header = self.header();
        // Acquire: pairs with the Release of the thread that made them.
        let mut words = header.words.load(Ordering::Acquire);
        if words >= WORDS_MAKING {
            words = self.make_words(make)?;
        }
        // SAFETY: that many words were written before `words` was set, which happens once, and
        // nobody writes them any more.
        Some(unsafe { std::slice::from_raw_parts(self.words_start().as_ptr(), words as usize) })
    }

    /// The words, if somebody made them before.
    #[inline]
    pub fn words_if_made(&self) -> Option<&[u64]> {
        // Acquire: pairs with the Release of the thread that made them.
        let words = self.header().words.load(Ordering::Acquire);
        // SAFETY: as in `words`.
        (words < WORDS_MAKING).then(|| unsafe {
            std::slice::from_raw_parts(self.words_start().as_ptr(), words as usize)
        })
    }

    #[inline]
    fn words_start(&self) -> NonNull<u64> {
        // SAFETY: the words follow the header in the same piece of memory, as `Draft` laid it out.
        let start = unsafe { self.header.cast::<u8>().add(const { header_bytes::<M>() }) };
        start.cast()
    }

    #[inline(never)]
    fn make_words(&self, make: impl FnOnce(&mut [u64]) -> usize) -> Option<u32> {
        let header = self.header();
        let claimed = header.words.compare_exchange(
            WORDS_NONE,
            WORDS_MAKING,
            Ordering::Relaxed, // It claims the making and publishes nothing.
            Ordering::Relaxed,
        );
        if claimed.is_err() {
            return None;
        }
        let max = header.words_max as usize;
        // SAFETY: the room exists, as `Draft` laid it out, is initialized, aligned as the header
        // is, and this thread's alone: only one ever gets from `WORDS_NONE` to here, and nobody
        // reads the words before they are published below.
        let room = unsafe { std::slice::from_raw_parts_mut(self.words_start().as_ptr(), max) };
        let words = make(room).min(max) as u32;
        // Release: pairs with the Acquire in `words`.
        header.words.store(words, Ordering::Release);
        Some(words)
    }

    /// Bytes of memory it takes.
    pub fn memory_bytes(&self) -> usize {
        self.header().capacity
    }

    /// Prefetches the first `lines` cache lines, side by side.
    #[inline]
    pub fn prefetch(&self, lines: usize) {
        prefetch(self.header.as_ptr(), lines);
    }
}

impl<M> Clone for SharedBytes<M> {
    #[inline]
    fn clone(&self) -> Self {
        // Relaxed: the cloning thread has a handle already, and got it in some ordered way.
        let before = self.header().handles.fetch_add(1, Ordering::Relaxed);
        if before > HANDLES_MAX {
            std::process::abort(); // A counter that wraps would free a buffer in use.
        }
        Self {
            header: self.header,
        }
    }
}

impl<M> Drop for SharedBytes<M> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: this handle is given up and not used again.
        unsafe { release::<M>(self.header.cast()) }
    }
}

/// Gives up one handle to the buffer whose header is at `header`; the last one frees it.
///
/// # Safety
/// The caller owns the handle and does not use it again; the buffer's meta is an `M`.
#[inline]
unsafe fn release<M>(header: NonNull<()>) {
    let header = header.cast::<Header<M>>();
    // SAFETY: the header is valid: the handle that is given up still counts.
    let handles = unsafe { &header.as_ref().handles };
    // Release: pairs with the load below, so that this thread's accesses to the buffer come before
    // it is freed.
    if handles.fetch_sub(1, Ordering::Release) == 1 {
        // Acquire: pairs with the Release of every other handle that was given up. A load and not a
        // fence: sanitizers know it.
        handles.load(Ordering::Acquire);
        // SAFETY: no other handle is left, and none can come from nowhere.
        unsafe { free(header) }
    }
}

/// Frees a buffer.
///
/// # Safety
/// Nobody else has a handle to it.
#[inline(never)]
unsafe fn free<M>(at: NonNull<Header<M>>) {
    // SAFETY: the header is valid, is read once, and is not used again where it was.
    let header = unsafe { at.read() };
    drop(Memory {
        start: at.cast(),
        capacity: header.capacity,
        slot: header.slot,
    });
    drop(header.meta);
}

/// A handle to a buffer without the type of its meta.
pub(super) struct ErasedHandle {
    header: NonNull<()>,
    release: unsafe fn(NonNull<()>),
}

// SAFETY: made from a `SharedBytes` of a meta that is Send + Sync, and can only be dropped.
unsafe impl Send for ErasedHandle {}
// SAFETY: as above.
unsafe impl Sync for ErasedHandle {}

impl Drop for ErasedHandle {
    fn drop(&mut self) {
        // SAFETY: `release` is that of the meta the handle was made with, and it is given up once.
        unsafe { (self.release)(self.header) }
    }
}

// SAFETY: `into_ptr` and `from_ptr` are inverse and neither changes the count; `as_ptr` gives the
// same address, which is aligned to a cache line; `inc` and `dec` count one handle up and down.
unsafe impl<M: Send + Sync + 'static> RefCnt for SharedBytes<M> {
    type Base = M;

    fn into_ptr(me: Self) -> *mut M {
        std::mem::ManuallyDrop::new(me).header.as_ptr().cast()
    }

    fn as_ptr(me: &Self) -> *mut M {
        me.header.as_ptr().cast()
    }

    unsafe fn from_ptr(ptr: *const M) -> Self {
        let header = NonNull::new(ptr.cast_mut().cast())
            .expect("the pointer came from into_ptr, which never gives null");
        Self { header }
    }
}

impl<M> fmt::Debug for SharedBytes<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SharedBytes({} bytes)", self.header().len)
    }
}

impl<M> fmt::Debug for Draft<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Draft({} bytes)", self.len)
    }
}
