//! A run of data blocks: their index, and a slot of the cache for each.

use std::sync::Arc;

use drumlin_base::bytes::SlabPlace;

use super::index::FlatIndex;
use super::layout::Block;
use crate::cache::{BlockCache, Cached, SlotArray};

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
        assert_eq!(slots.len(), index.len(), "a slot for each block");
        Self { index, slots }
    }

    /// Memory it takes, cached blocks not counted.
    pub(crate) fn resident_bytes(&self) -> usize {
        self.index.resident_bytes() + self.slots.resident_bytes()
    }
}

impl Cached for Arc<BlockRun> {
    fn charge(&self) -> usize {
        self.resident_bytes()
    }
}

impl Cached for Block {
    fn charge(&self) -> usize {
        self.memory_bytes()
    }

    fn place(&self) -> Option<SlabPlace> {
        Self::place(self)
    }
}
