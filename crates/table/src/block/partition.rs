//! One partition of an index: an index block, and a slot of the cache for each block under it.

use std::sync::Arc;

use drumlin_base::bytes::SlabPlace;

use super::index::FlatIndex;
use super::layout::Block;
use crate::cache::{BlockCache, Cached, SlotArray};

/// The blocks under one index block. A table whose index has one level has one of these.
#[derive(Debug)]
pub(crate) struct IndexPartition {
    pub(crate) index: FlatIndex,
    pub(crate) slots: Arc<SlotArray<Block>>,
}

impl IndexPartition {
    /// A partition whose blocks are not cached yet.
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

impl Cached for Arc<IndexPartition> {
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
