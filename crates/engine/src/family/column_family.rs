//! A column family: its order and options, and the memtables and version its readers see.
//!
//! Thread safety: `super_version` and the settings are swapped whole under the state's lock and are loaded
//! without one. Everything else is immutable or atomic.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use arc_swap::{ArcSwap, ArcSwapOption};
use drumlin_base::{CompactionFilterFactory, Error, KeyOrder, MemoryBudget, Result};
use drumlin_memtable::Memtable;
use drumlin_table::TableFormat;

use crate::caches::blob_cache::BlobCache;
use crate::caches::table_cache::TableCache;
use crate::family::moment::MomentCell;
use crate::family::settings::FamilySettings;
use crate::family::super_version::{SuperVersion, SuperVersionCell, SuperVersions};
use crate::family::ttl::{self, Ttl};
use crate::options::settings::{FamilyOptions, Options, write_buffer_under};
use crate::read::{FamilyReads, ReadContext, WalkPool};

/// Dead entries stepped over in a memtable until it is flushed: about as much time as a
/// small flush takes, so that walks never waste more than twice what they must.
const DEAD_WALKED_MAX: usize = 1 << 18;

pub use crate::version::DEFAULT_FAMILY;

/// A handle to a column family. Cheap to clone; stays usable for reading after the family is
/// dropped, for as long as it is held.
#[derive(Clone)]
pub struct ColumnFamily(pub(crate) Arc<Family>);

impl ColumnFamily {
    /// The family's name.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// The number under which the family stands in batches and the MANIFEST.
    pub fn id(&self) -> u32 {
        self.0.id
    }

    /// The order of its keys.
    pub fn order(&self) -> &KeyOrder {
        &self.0.options.order
    }

    /// How long what is written lives, zero for ever; `None` where values have no time behind them.
    pub fn ttl(&self) -> Option<Duration> {
        let ttl = self.0.reads.ttl.as_ref()?;
        Some(Duration::from_secs(ttl.seconds()))
    }
}

impl fmt::Debug for ColumnFamily {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ColumnFamily({}, {:?})", self.0.id, self.0.name)
    }
}

/// A number that no store opened before in this process has, this one reopened included.
pub(crate) fn next_store() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// The state that all handles to one family share.
pub(crate) struct Family {
    /// The opened store it belongs to, see [`next_store`].
    pub(crate) store: u64,
    pub(crate) id: u32,
    pub(crate) name: String,
    pub(crate) options: FamilyOptions,
    /// Most bytes of a user key.
    pub(crate) key_bytes_max: usize,
    pub(crate) super_version: SuperVersionCell,
    pub(crate) reads: Arc<FamilyReads>,
    /// Looks at what compactions carry: the user's, under that of the time to live.
    pub(crate) filter: Option<Arc<dyn CompactionFilterFactory>>,
    settings: ArcSwap<FamilySettings>,
    /// As its version has it, see [`crate::version::FamilyVersions`].
    pub(crate) full_history_ts_low: ArcSwapOption<Vec<u8>>,
    /// Of the settings, for every write: bytes of a full memtable; 0 for what the budget gives.
    write_buffer_bytes: AtomicUsize,
    pub(crate) dropped: AtomicBool,
    budget: Arc<MemoryBudget>,
    /// Of all families of the store together.
    moments: Arc<MomentCell<SuperVersions>>,
}

impl Family {
    /// A family that shows `first` to its readers.
    pub(crate) fn new(
        (id, name): (u32, &str),
        options: FamilyOptions,
        database: &Options,
        (tables, blobs): (Arc<TableCache>, &BlobCache),
        (store, budget, moments): (u64, &Arc<MemoryBudget>, &Arc<MomentCell<SuperVersions>>),
        first: Arc<SuperVersion>,
    ) -> Arc<Self> {
        let settings = FamilySettings::new(&options, database, budget.limit_bytes());
        let ttl = options.ttl.map(|ttl| Ttl::new(ttl, &database.env.clock));
        let context = ReadContext {
            order: options.order.clone(),
            merge_operator: ttl::merge_operator(&options.merge_operator, ttl.as_ref()),
            ttl: ttl.clone(),
            in_memory: options.table_format == Some(TableFormat::Plain),
            prefix: options.prefix_extractor.clone(),
            tables,
            blobs: blobs.for_family(id),
        };
        let reads = Arc::new(FamilyReads {
            context,
            walks: WalkPool::new(first.number),
        });
        Arc::new(Self {
            store,
            id,
            name: name.to_owned(),
            key_bytes_max: settings.tuning.key_bytes_max,
            super_version: SuperVersionCell::new(first),
            reads,
            filter: ttl::compaction_filter(&options.compaction_filter, ttl.as_ref()),
            write_buffer_bytes: AtomicUsize::new(settings.tuning.write_buffer_bytes.unwrap_or(0)),
            settings: ArcSwap::from_pointee(settings),
            full_history_ts_low: ArcSwapOption::empty(),
            options,
            dropped: AtomicBool::new(false),
            budget: Arc::clone(budget),
            moments: Arc::clone(moments),
        })
    }

    /// Fails once the family was dropped.
    pub(crate) fn check_alive(&self) -> Result<()> {
        if self.dropped.load(Ordering::Acquire) {
            let message = format!("the column family {:?} was dropped", self.name);
            return Err(Error::invalid_argument(message));
        }
        Ok(())
    }

    /// Makes `next` the super version that readers load from now on.
    ///
    /// Requires: the state's lock is held.
    pub(crate) fn install(&self, next: Arc<SuperVersion>) {
        let number = next.number;
        let former = self.super_version.install(next);
        self.moments.forget();
        self.reads.walks.advance(number);
        drop(former);
    }

    /// The settings of the moment. A job takes them once, when it begins.
    pub(crate) fn settings(&self) -> Arc<FamilySettings> {
        self.settings.load_full()
    }

    /// Makes `next` the settings of the next jobs and writes.
    ///
    /// Requires: the state's lock is held.
    pub(crate) fn set_settings(&self, next: FamilySettings) {
        let bytes = next.tuning.write_buffer_bytes.unwrap_or(0);
        self.settings.store(Arc::new(next));
        // Relaxed: a write that misses it is ended by the next one.
        self.write_buffer_bytes.store(bytes, Ordering::Relaxed);
    }

    /// Bytes of a memtable before it is flushed: the size set, or what the budget of the moment gives.
    pub(crate) fn write_buffer(&self) -> usize {
        match self.write_buffer_bytes.load(Ordering::Relaxed) {
            0 => write_buffer_under(self.budget.limit_bytes()),
            set => set,
        }
    }

    /// An empty memtable, charged to the budget.
    pub(crate) fn fresh_memtable(&self) -> Arc<Memtable> {
        let order = self.options.order.clone();
        let prefix = self.options.prefix_extractor.clone();
        Arc::new(Memtable::charged(order, prefix, Arc::clone(&self.budget)))
    }

    /// Brings the budget's count of the mutable memtable up to date; whether it is full, or wastes so
    /// much time of walks that a flush is cheaper. Any number of threads at once, each before the group
    /// it applies is published: the memtable is mutable until then.
    pub(crate) fn account(&self, memtable: &Memtable) -> bool {
        memtable.account() >= self.write_buffer()
            || memtable.dead_walked() >= DEAD_WALKED_MAX
                && !drumlin_base::bug!("dead-walks-unaccounted")
    }
}

impl fmt::Debug for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Family({}, {:?})", self.id, self.name)
    }
}
