//! The store's memory: the budget, open files, cached blocks, shared models.

use std::sync::Arc;

use drumlin_base::{MemoryBudget, MemoryUse};
use drumlin_table::BlockCache;

use crate::caches::blob_cache::BlobCache;
use crate::caches::models::{Chooser, ModelStore};
use crate::caches::table_cache::TableCache;
use crate::family::moment::MomentCell;
use crate::family::super_version::SuperVersions;

/// See the module.
pub(crate) struct Caches {
    pub(crate) budget: Arc<MemoryBudget>,
    pub(crate) block_cache: Arc<BlockCache>,
    pub(crate) table_cache: Arc<TableCache>,
    pub(crate) blob_cache: Arc<BlobCache>,
    /// The models that searchable tables share.
    pub(crate) models: Arc<ModelStore>,
    /// Chooses which of them a job writes with.
    pub(crate) chooser: Chooser,
    /// The super versions of all families together, for views.
    pub(crate) moments: Arc<MomentCell<SuperVersions>>,
}

impl Caches {
    /// Charges a job's buffers and has the block cache free as many bytes.
    pub(crate) fn charge_job(&self, bytes: usize) -> JobCharge<'_> {
        self.budget.charge(MemoryUse::Jobs, bytes);
        self.block_cache.trim();
        JobCharge {
            budget: &self.budget,
            bytes,
        }
    }
}

/// Memory a job is charged with while it runs.
pub(crate) struct JobCharge<'a> {
    budget: &'a MemoryBudget,
    bytes: usize,
}

impl Drop for JobCharge<'_> {
    fn drop(&mut self) {
        self.budget.release(MemoryUse::Jobs, self.bytes);
    }
}
