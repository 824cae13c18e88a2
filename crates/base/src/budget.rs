//! One memory budget over everything that grows: memtables, caches, indexes, filters, compaction.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};

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

/// Something that can give memory back.
pub trait Reclaim: Send + Sync {
    /// Gives back what is over [`MemoryBudget::available_for_blocks`]. Called by whoever charged
    /// something else, so it must not wait for anything.
    fn reclaim(&self);
}

/// Counts bytes in use by purpose against one limit.
///
/// It counts; it does not refuse. What other purposes take, the block cache gives back at once
/// ([`MemoryBudget::reclaim_from`]); the table cache closes and memtables are flushed by limits of
/// their own.
pub struct MemoryBudget {
    limit_bytes: usize,
    used: [AtomicUsize; USES],
    reclaimed_from: OnceLock<Weak<dyn Reclaim>>,
}

impl MemoryBudget {
    /// A budget of `limit_bytes`.
    pub fn new(limit_bytes: usize) -> Arc<Self> {
        Arc::new(Self {
            limit_bytes,
            used: Default::default(),
            reclaimed_from: OnceLock::new(),
        })
    }

    /// The limit in bytes.
    pub fn limit_bytes(&self) -> usize {
        self.limit_bytes
    }

    /// Has `holder` of cached blocks called when others need what it holds. The first one stays.
    pub fn reclaim_from(&self, holder: Weak<dyn Reclaim>) {
        // A second cache on one budget is trimmed by its own inserts alone.
        let _ = self.reclaimed_from.set(holder);
    }

    /// Adds `bytes` to what `purpose` uses, and has cached blocks make room for them.
    pub fn charge(&self, purpose: MemoryUse, bytes: usize) {
        self.cell(purpose).fetch_add(bytes, Ordering::Relaxed);
        if purpose != MemoryUse::Blocks
            && self.used(MemoryUse::Blocks) > self.available_for_blocks()
            && let Some(holder) = self.reclaimed_from.get().and_then(Weak::upgrade)
        {
            holder.reclaim();
        }
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

impl fmt::Debug for MemoryBudget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryBudget")
            .field("limit_bytes", &self.limit_bytes)
            .field("used", &self.used)
            .finish_non_exhaustive()
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
