//! One memory budget over everything that grows: memtables, caches, indexes, filters, compaction.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What a charge is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MemoryUse {
    /// Memtables, mutable and immutable.
    Memtables,
    /// Data blocks in the block cache.
    Blocks,
    /// Indexes, filters and properties of open tables.
    TableMeta,
    /// Buffers of flushes and compactions.
    Jobs,
}

const USES: usize = 4;

/// Counts bytes in use by purpose against one limit.
///
/// It counts; it does not refuse. Owners ask [`MemoryBudget::available_for_blocks`] and give back
/// what they can (the block cache evicts, the table cache closes, memtables are flushed).
#[derive(Debug)]
pub struct MemoryBudget {
    limit_bytes: usize,
    used: [AtomicUsize; USES],
}

impl MemoryBudget {
    /// A budget of `limit_bytes`.
    pub fn new(limit_bytes: usize) -> Arc<Self> {
        Arc::new(Self {
            limit_bytes,
            used: Default::default(),
        })
    }

    /// The limit in bytes.
    pub fn limit_bytes(&self) -> usize {
        self.limit_bytes
    }

    /// Adds `bytes` to what `purpose` uses.
    pub fn charge(&self, purpose: MemoryUse, bytes: usize) {
        self.cell(purpose).fetch_add(bytes, Ordering::Relaxed);
    }

    /// Gives back `bytes` charged before.
    pub fn release(&self, purpose: MemoryUse, bytes: usize) {
        let before = self.cell(purpose).fetch_sub(bytes, Ordering::Relaxed);
        debug_assert!(
            before >= bytes,
            "released more {purpose:?} than was charged"
        );
    }

    /// Bytes `purpose` uses now.
    pub fn used(&self, purpose: MemoryUse) -> usize {
        self.cell(purpose).load(Ordering::Relaxed)
    }

    /// Bytes in use for every purpose together.
    pub fn used_total(&self) -> usize {
        self.used
            .iter()
            .map(|cell| cell.load(Ordering::Relaxed))
            .sum()
    }

    /// What the block cache may hold now: the limit less everything that cannot be evicted and less
    /// an eighth for what no account sees (the allocator's own waste, stacks), but never less than
    /// a thirty-second of the limit, so that reads keep moving.
    pub fn available_for_blocks(&self) -> usize {
        let unseen = self.limit_bytes / 8;
        let fixed = unseen
            + self.used(MemoryUse::Memtables)
            + self.used(MemoryUse::TableMeta)
            + self.used(MemoryUse::Jobs);
        self.limit_bytes
            .saturating_sub(fixed)
            .max(self.limit_bytes / 32)
    }

    fn cell(&self, purpose: MemoryUse) -> &AtomicUsize {
        let [memtables, blocks, meta, jobs] = &self.used;
        match purpose {
            MemoryUse::Memtables => memtables,
            MemoryUse::Blocks => blocks,
            MemoryUse::TableMeta => meta,
            MemoryUse::Jobs => jobs,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_block_cache_gets_what_others_leave() {
        let budget = MemoryBudget::new(1600);
        budget.charge(MemoryUse::Memtables, 300);
        budget.charge(MemoryUse::TableMeta, 100);
        assert_eq!(budget.available_for_blocks(), 1000);
        budget.charge(MemoryUse::Jobs, 1500);
        assert_eq!(budget.available_for_blocks(), 1600 / 32);
        budget.release(MemoryUse::Jobs, 1500);
        assert_eq!(budget.used_total(), 400);
    }
}
