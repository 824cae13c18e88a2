//! `rocksdb_cache_t`: how many bytes a program gives to blocks. A database's memory budget is made of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use drumlin_base::sync::Mutex;

use drumlin::Budget;

/// What handles of one cache share. Databases share no blocks: each has a budget, and the cache lists them.
#[derive(Debug, Default)]
pub(crate) struct Shares {
    capacity: AtomicUsize,
    /// The budgets of databases that were opened with it, and the bytes of each that are not the cache's.
    budgets: Mutex<Vec<(Budget, usize)>>,
}

/// What the handle holds.
#[derive(Clone, Debug)]
pub(crate) struct Cache(Arc<Shares>);

impl Cache {
    pub(crate) fn new(capacity: usize) -> Self {
        let shares = Shares::default();
        shares.capacity.store(capacity, Ordering::Relaxed);
        Self(Arc::new(shares))
    }

    pub(crate) fn bytes(&self) -> usize {
        self.0.capacity.load(Ordering::Relaxed)
    }

    /// A database was opened with it, whose budget is `others` bytes beside this.
    pub(crate) fn serves(&self, budget: Budget, others: usize) {
        self.0.budgets.lock().push((budget, others));
    }

    /// Bytes of cached blocks of all its databases.
    pub(crate) fn used(&self) -> usize {
        let budgets = self.0.budgets.lock();
        let uses = budgets.iter().flat_map(|(budget, _)| budget.used_by_name());
        uses.filter(|(name, _)| *name == "blocks")
            .map(|(_, bytes)| bytes)
            .sum()
    }
}

pub(crate) mod calls {
    use super::{Cache, Ordering};
    use crate::fields::{HyperClockCacheOptions, LruCacheOptions};
    use crate::misc::MemoryAllocator;

    pub(crate) fn cache_create_lru(capacity: usize) -> Cache {
        Cache::new(capacity)
    }

    /// Blocks are cached in one way, however many bytes an entry is thought to take.
    pub(crate) fn cache_create_hyper_clock(capacity: usize, _entry_bytes: usize) -> Cache {
        Cache::new(capacity)
    }

    pub(crate) fn cache_create_hyper_clock_opts(options: &HyperClockCacheOptions) -> Cache {
        Cache::new(options.capacity())
    }

    pub(crate) fn hyper_clock_cache_options_create(
        capacity: usize,
        entry_bytes: usize,
    ) -> HyperClockCacheOptions {
        HyperClockCacheOptions {
            capacity: Some(capacity),
            estimated_entry_charge: Some(entry_bytes),
            ..HyperClockCacheOptions::default()
        }
    }

    pub(crate) fn cache_create_lru_with_strict_capacity_limit(capacity: usize) -> Cache {
        Cache::new(capacity)
    }

    pub(crate) fn cache_create_lru_opts(options: &LruCacheOptions) -> Cache {
        Cache::new(options.capacity())
    }

    /// No function makes an allocator.
    pub(crate) fn lru_cache_options_set_memory_allocator(
        _options: &mut LruCacheOptions,
        _allocator: &MemoryAllocator,
    ) {
    }

    pub(crate) fn cache_disown_data(_cache: &Cache) {}

    /// The budgets of databases that are open with it follow.
    pub(crate) fn cache_set_capacity(cache: &Cache, capacity: usize) {
        cache.0.capacity.store(capacity, Ordering::Relaxed);
        for (budget, others) in cache.0.budgets.lock().iter() {
            // Below the least budget it stays: RocksDB has no error here either.
            let _ = budget.set_limit_bytes(capacity.saturating_add(*others));
        }
    }

    pub(crate) fn cache_get_capacity(cache: &Cache) -> usize {
        cache.bytes()
    }

    pub(crate) fn cache_get_usage(cache: &Cache) -> usize {
        cache.used()
    }

    /// Blocks that reads hold are not told apart.
    pub(crate) fn cache_get_pinned_usage(_cache: &Cache) -> usize {
        0
    }
}
