//! `rocksdb_cache_t`: how many bytes a program gives to blocks. A database's memory budget is made of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use drumlin_base::sync::Mutex;

use drumlin::{Budget, Db, WeakDb};

/// What handles of one cache share. Databases share no blocks: each has a budget, and the cache lists them.
#[derive(Debug, Default)]
pub(crate) struct Shares {
    capacity: AtomicUsize,
    served: Mutex<Vec<Served>>,
}

/// A database that was opened with the cache.
#[derive(Debug)]
struct Served {
    db: WeakDb,
    budget: Budget,
    /// Bytes of the budget that are not the cache's.
    others: usize,
    /// Whether indexes and filters count as the cache's.
    has_tables: bool,
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

    /// `db` was opened with it. Where `has_tables`, indexes and filters count as its bytes, too.
    pub(crate) fn serves(&self, db: &Db, has_tables: bool) {
        let budget = db.budget();
        let others = budget.limit_bytes().saturating_sub(self.bytes());
        let mut served = self.0.served.lock();
        served.retain(|one| one.db.upgrade().is_some());
        served.push(Served {
            db: db.downgrade(),
            budget,
            others,
            has_tables,
        });
    }

    /// Bytes of all its databases: of cached blocks, of indexes and filters where they count, and of the list of them. So it is more
    /// than none once a database is open, as RocksDB's.
    pub(crate) fn used(&self) -> usize {
        let served = self.0.served.lock();
        let of_one = |one: &Served| {
            let uses = one.budget.used_by_name().into_iter();
            let counts = |name| name == "blocks" || name == "tables" && one.has_tables;
            let bytes: usize = uses
                .filter(|(name, _)| counts(*name))
                .map(|(_, bytes)| bytes)
                .sum();
            bytes + size_of::<Served>()
        };
        served.iter().map(of_one).sum()
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
        for one in cache.0.served.lock().iter() {
            // Below the least budget it stays: RocksDB has no error here either.
            let _ = one
                .budget
                .set_limit_bytes(capacity.saturating_add(one.others));
        }
    }

    pub(crate) fn cache_get_capacity(cache: &Cache) -> usize {
        cache.bytes()
    }

    pub(crate) fn cache_get_usage(cache: &Cache) -> usize {
        cache.used()
    }

    /// Blocks are not counted one by one: both answers are RocksDB's of caches that do not count.
    pub(crate) fn cache_get_occupancy_count(_cache: &Cache) -> usize {
        usize::MAX
    }

    pub(crate) fn cache_get_table_address_count(_cache: &Cache) -> usize {
        0
    }

    /// Blocks that reads hold are not told apart.
    pub(crate) fn cache_get_pinned_usage(_cache: &Cache) -> usize {
        0
    }
}
