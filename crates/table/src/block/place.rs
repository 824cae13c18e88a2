//! Entries of a block that are before a key, visited from an entry that was met before: neither the index nor the
//! block is searched.
//!
//! Who counts the keys before a bound comes back to the same entries over and over, and keeps their places.

use drumlin_base::Result;
use drumlin_base::bytes::{Draft, LINE_BYTES};

use super::layout::{Block, BlockMeta, BlockView};
use super::point::visit_before;
use super::table::{BlockTable, TableIndex};
use crate::options::TableReadOptions;

/// Bytes of entries that are prefetched: most visits read no more.
const PREFETCHED_BYTES: usize = 1 << 10;

/// Where an entry is in its table; means nothing in another one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// Of the index.
    pub(super) partition: u32,
    /// In the partition.
    pub(super) block: u32,
    /// The entry's offset in the block.
    pub(super) at: u32,
}

impl Place {
    /// Whether both entries are in one block.
    pub fn is_in_block_of(self, other: Self) -> bool {
        (self.partition, self.block) == (other.partition, other.block)
    }
}

impl BlockTable {
    /// Begins to load the entries from `place` on, if their block is cached: its first line and theirs, side by side.
    #[inline]
    pub fn prefetch(&self, place: Place) {
        if let TableIndex::Single(partition) = &self.index {
            let at = place.block as usize;
            // Where they are if the block was laid out when it was read; else the hint is of no use.
            let offset = Draft::<BlockMeta>::memory_bytes(place.at as usize, self.prefixes_max);
            partition.slots.prefetch(at, 1);
            let lines = PREFETCHED_BYTES / LINE_BYTES;
            partition.slots.prefetch_at(at, offset, lines);
        }
    }

    /// Visits the entries from `place` on that are before `user_key`, up to the end of their block: the byte of their kind,
    /// and the bytes of user key and value. A cursor of this table told the place ([`super::BlockTableIter::place`]).
    ///
    /// Requires: bytewise order, and `first`, the user key at `place`, is before `user_key`.
    ///
    /// # Errors
    /// `Io`; `Corruption`, also where the entry at `place` is not of `first`.
    #[inline]
    pub fn visit_before(
        &self,
        place: Place,
        first: &[u8],
        user_key: &[u8],
        visit: impl FnMut(u8, u64),
    ) -> Result<()> {
        let (options, at) = (TableReadOptions::default(), place.block as usize);
        let visit = |block: &Block| {
            visit_before(block.entries(), (place.at as usize, first), user_key, visit)
        };
        if let TableIndex::Single(partition) = &self.index {
            let block = self.block(partition, at, &options, None)?;
            return visit(block.get())
                .map_err(|error| self.locate(error, partition.index.handle(at)));
        }
        let partition = self.partition(place.partition as usize, &options)?;
        let block = self.block(&partition, at, &options, None)?;
        visit(block.get()).map_err(|error| self.locate(error, partition.index.handle(at)))
    }
}
