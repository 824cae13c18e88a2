//! `rocksdb_write_buffer_manager_t`: how many bytes a program gives to the memtables of several databases. Each has them in its own
//! memory, as with a cache.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use drumlin::Budget;
use drumlin_base::sync::Mutex;

use crate::cache::Cache;

#[derive(Debug)]
pub(crate) struct Shares {
    bytes: AtomicUsize,
    cache: Option<Cache>,
    budgets: Mutex<Vec<Budget>>,
}

/// What the handle holds.
#[derive(Clone, Debug)]
pub(crate) struct WriteBufferManager(Arc<Shares>);

impl WriteBufferManager {
    fn new(bytes: usize, cache: Option<Cache>) -> Self {
        Self(Arc::new(Shares {
            bytes: AtomicUsize::new(bytes),
            cache,
            budgets: Mutex::default(),
        }))
    }

    /// 0 is no bound.
    pub(crate) fn bytes(&self) -> usize {
        self.0.bytes.load(Ordering::Relaxed)
    }

    /// A database was opened with it.
    pub(crate) fn serves(&self, budget: Budget) {
        self.0.budgets.lock().push(budget);
    }

    /// Bytes of the memtables of all its databases.
    fn used(&self) -> usize {
        let budgets = self.0.budgets.lock();
        let uses = budgets.iter().flat_map(Budget::used_by_name);
        uses.filter(|(name, _)| *name == "memtables")
            .map(|(_, bytes)| bytes)
            .sum()
    }

    /// The memory of its databases grows and shrinks as much.
    fn resize(&self, bytes: usize) {
        let old = self.0.bytes.swap(bytes, Ordering::Relaxed);
        for budget in self.0.budgets.lock().iter() {
            let limit = budget.limit_bytes().saturating_sub(old);
            // Below the least budget it stays: RocksDB has no error here either.
            let _ = budget.set_limit_bytes(limit.saturating_add(bytes));
        }
    }
}

pub(crate) mod calls {
    use super::{Cache, WriteBufferManager};

    /// A writer always waits where memory is full.
    pub(crate) fn write_buffer_manager_create(bytes: usize, _stall: bool) -> WriteBufferManager {
        WriteBufferManager::new(bytes, None)
    }

    /// Memtables are not charged to the cache: both are in a database's memory.
    pub(crate) fn write_buffer_manager_create_with_cache(
        bytes: usize,
        cache: &Cache,
        _stall: bool,
    ) -> WriteBufferManager {
        WriteBufferManager::new(bytes, Some(cache.clone()))
    }

    pub(crate) fn write_buffer_manager_enabled(manager: &WriteBufferManager) -> bool {
        manager.bytes() > 0
    }

    pub(crate) fn write_buffer_manager_cost_to_cache(manager: &WriteBufferManager) -> bool {
        manager.0.cache.is_some()
    }

    pub(crate) fn write_buffer_manager_memory_usage(manager: &WriteBufferManager) -> usize {
        manager.used()
    }

    /// Those that are being flushed are counted, too.
    pub(crate) fn write_buffer_manager_mutable_memtable_memory_usage(
        manager: &WriteBufferManager,
    ) -> usize {
        manager.used()
    }

    pub(crate) fn write_buffer_manager_dummy_entries_in_cache_usage(
        _manager: &WriteBufferManager,
    ) -> usize {
        0
    }

    pub(crate) fn write_buffer_manager_buffer_size(manager: &WriteBufferManager) -> usize {
        manager.bytes()
    }

    pub(crate) fn write_buffer_manager_set_buffer_size(manager: &WriteBufferManager, bytes: usize) {
        manager.resize(bytes);
    }

    pub(crate) fn write_buffer_manager_set_allow_stall(_manager: &WriteBufferManager, _on: bool) {}
}
