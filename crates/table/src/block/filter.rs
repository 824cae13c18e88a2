//! The filter of an open table: none, one block, partitions, or LevelDB's by file range.

use std::sync::Arc;

use drumlin_base::SeqNo;

use super::index::FlatIndex;
use crate::cache::{Cached, SlotArray};
use crate::filter::{FilterReader, LevelDbFilterReader};

/// The filter a table asks before it reads a block.
#[derive(Debug)]
pub(crate) enum TableFilter {
    /// Nothing: every key may be there.
    None,
    /// One filter over all keys, resident.
    Full(FilterReader),
    /// A filter for each partition of the keys, loaded through the cache.
    Partitioned(PartitionedFilter),
    /// A filter per 2 KiB of the file, resident; asked once the block is known.
    LevelDb(LevelDbFilterReader),
}

impl TableFilter {
    /// Memory it takes while the table is open, cached partitions not counted.
    pub(crate) fn resident_bytes(&self) -> usize {
        match self {
            Self::None => 0,
            Self::Full(filter) => filter.resident_bytes(),
            Self::Partitioned(parts) => parts.index.resident_bytes() + parts.slots.resident_bytes(),
            Self::LevelDb(filter) => filter.resident_bytes(),
        }
    }
}

/// The top of a partitioned filter, and a slot for each partition.
#[derive(Debug)]
pub(crate) struct PartitionedFilter {
    pub(crate) index: FlatIndex,
    pub(crate) slots: Arc<SlotArray<Arc<FilterReader>>>,
}

impl PartitionedFilter {
    /// The partition that knows about (`user_key`, `seqno`). A key behind all partitions is asked of
    /// the last, whose prefixes reach further than its keys. `None` when there are no partitions.
    pub(crate) fn find(&self, user_key: &[u8], seqno: SeqNo) -> Option<usize> {
        let last = self.index.len().checked_sub(1)?;
        Some(self.index.find(user_key, seqno).min(last))
    }
}

impl Cached for Arc<FilterReader> {
    fn charge(&self) -> usize {
        self.resident_bytes()
    }
}
