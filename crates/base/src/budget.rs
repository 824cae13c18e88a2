//! One memory budget over everything that grows: memtables, caches, indexes, filters, compaction.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};

/// The purpose of a charge.
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

/// Memory that no account covers, however large the limit is.
const UNSEEN_BYTES: usize = 6 << 20;

/// Something that can give memory back.
pub trait Reclaim: Send + Sync {
    /// Frees memory down to [`MemoryBudget::available_for_blocks`]. It is called by the thread that
    /// charged something else, so it must not wait for anything.
    fn reclaim(&self);
}

/// Counts bytes in use by purpose against one limit.
///
/// It counts; it does not refuse. The block cache shrinks at once when another purpose grows
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

    /// Registers the `holder` of cached blocks, which is called when others need its memory. The
    /// first one stays.
    pub fn reclaim_from(&self, holder: Weak<dyn Reclaim>) {
        // A second cache on one budget is trimmed by its own inserts alone.
        let _ = self.reclaimed_from.set(holder);
    }

    /// Adds `bytes` to the account of `purpose`, and has cached blocks make room for them.
    pub fn charge(&self, purpose: MemoryUse, bytes: usize) {
        self.cell(purpose).fetch_add(bytes, Ordering::Relaxed);
        if purpose != MemoryUse::Blocks
            && !crate::bug!("cached-blocks-not-asked")
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

    /// Bytes the block cache may hold now: the limit less everything that cannot be evicted and less
    /// the memory that no account covers (the allocator's own waste, stacks, the threads' codecs: a
    /// part of the limit, and some that does not grow with it), but never less than a thirty-second
    /// of the limit, so that reads keep moving.
    pub fn available_for_blocks(&self) -> usize {
        let unseen = self.limit_bytes / 16 + UNSEEN_BYTES.min(self.limit_bytes / 8);
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

/// The charge of one growing thing, released when this is dropped. So the charge lasts as long as
/// the memory, no matter who holds it.
#[derive(Debug)]
pub struct Charge {
    budget: Arc<MemoryBudget>,
    purpose: MemoryUse,
    bytes: AtomicUsize,
}

impl Charge {
    /// An empty charge for `purpose`.
    pub fn new(budget: Arc<MemoryBudget>, purpose: MemoryUse) -> Self {
        Self {
            budget,
            purpose,
            bytes: AtomicUsize::new(0),
        }
    }

    /// Raises the charge to `bytes` in all. Any number of threads may call it at once.
    pub fn grow_to(&self, bytes: usize) {
        // The usual case: a load alone leaves the cache line to other threads.
        if self.bytes.load(Ordering::Relaxed) >= bytes {
            return;
        }
        let before = self.bytes.fetch_max(bytes, Ordering::Relaxed);
        if bytes > before {
            self.budget.charge(self.purpose, bytes - before);
        }
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.budget.release(self.purpose, *self.bytes.get_mut());
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
    fn a_charge_lasts_as_long_as_what_it_is_for() {
        let budget = MemoryBudget::new(1000);
        let charge = Charge::new(Arc::clone(&budget), MemoryUse::Memtables);
        for bytes in [10, 30, 20] {
            charge.grow_to(bytes);
        }
        assert_eq!(budget.used(MemoryUse::Memtables), 30);
        drop(charge);
        assert_eq!(budget.used_total(), 0);
    }

    #[test]
    fn others_are_asked_for_memory_when_it_is_needed() {
        struct Holder(Arc<MemoryBudget>);
        impl Reclaim for Holder {
            fn reclaim(&self) {
                let over = self.0.used(MemoryUse::Blocks) - self.0.available_for_blocks();
                self.0.release(MemoryUse::Blocks, over);
            }
        }
        let budget = MemoryBudget::new(1600);
        let holder: Arc<dyn Reclaim> = Arc::new(Holder(Arc::clone(&budget)));
        budget.reclaim_from(Arc::downgrade(&holder));
        budget.charge(MemoryUse::Blocks, 1300);
        budget.charge(MemoryUse::Memtables, 700);
        assert_eq!(
            budget.used(MemoryUse::Blocks),
            budget.available_for_blocks()
        );
    }

    #[test]
    fn the_block_cache_gets_what_others_leave() {
        let budget = MemoryBudget::new(1600);
        budget.charge(MemoryUse::Memtables, 300);
        budget.charge(MemoryUse::TableMeta, 100);
        assert_eq!(budget.available_for_blocks(), 900);
        budget.charge(MemoryUse::Jobs, 1500);
        assert_eq!(budget.available_for_blocks(), 1600 / 32);
        budget.release(MemoryUse::Jobs, 1500);
        assert_eq!(budget.used_total(), 400);
    }
}
