//! A run of data blocks: their index, and a slot of the cache for each.

use std::sync::Arc;

use arc_swap::Guard;

use crate::block::Block;
use crate::cache::{BlockCache, Cached, SlotArray, SlotGuard};
use crate::index::FlatIndex;

/// The blocks under one (leaf) index block. A table with a single-level index is one run.
#[derive(Debug)]
pub(crate) struct BlockRun {
    pub(crate) index: FlatIndex,
    pub(crate) slots: Arc<SlotArray<Block>>,
}

impl BlockRun {
    /// A run whose blocks are not cached yet.
    pub(crate) fn new(index: FlatIndex, cache: &Arc<BlockCache>) -> Self {
        let slots = SlotArray::new(index.len(), cache);
        Self { index, slots }
    }

    /// Memory it takes, cached blocks not counted.
    pub(crate) fn resident_bytes(&self) -> usize {
        self.index.resident_bytes() + self.slots.resident_bytes()
    }
}

impl Cached for BlockRun {
    fn charge(&self) -> usize {
        self.resident_bytes()
    }
}

/// What a cached block takes beside its bytes: its own fields and the allocator's for three pieces.
const ALLOCATION_BYTES: usize = 160;

impl Cached for Block {
    /// The bytes, and about what the heads take that a lookup may add (eight bytes an entry, mostly
    /// sixteen entries to a restart point). The same at every call, made or not.
    fn charge(&self) -> usize {
        let bytes = self.bytes().len();
        let heads = (self.meta().restart_count as usize * 128).min(bytes / 4);
        bytes + heads + ALLOCATION_BYTES
    }
}

/// Something read through the cache: still in its slot, or owned by this reader alone.
pub(crate) enum Held<T: Cached> {
    /// In its slot. Counts no reference, so that readers of one block do not share a counter.
    InSlot(SlotGuard<T>),
    /// Not cached, or just loaded.
    Owned(Arc<T>),
}

impl<T: Cached> Held<T> {
    /// The item.
    #[inline]
    pub(crate) fn get(&self) -> &Arc<T> {
        match self {
            Self::InSlot(guard) => guard
                .as_ref()
                .expect("a guard is held only when its slot was full"),
            Self::Owned(item) => item,
        }
    }

    /// The item, with a reference of its own.
    pub(crate) fn into_arc(self) -> Arc<T> {
        match self {
            Self::InSlot(guard) => {
                Guard::into_inner(guard).expect("a guard is held only when its slot was full")
            }
            Self::Owned(item) => item,
        }
    }
}
