//! A column family: its order and options, and the memtables and version its readers see.
//!
//! Thread safety: `super_version` is swapped whole under the state's lock and is loaded by readers without a
//! lock. Everything else is immutable or atomic.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use drumlin_base::limits::LEVELS;
use drumlin_base::{Error, KeyOrder, MemoryBudget, Result};
use drumlin_memtable::Memtable;
use drumlin_table::{Codec, Compression, TableFormat};

use crate::caches::blob_cache::BlobCache;
use crate::caches::table_cache::TableCache;
use crate::compaction::CompactionOptions;
use crate::family::moment::MomentCell;
use crate::family::super_version::{SuperVersion, SuperVersionCell, SuperVersions};
use crate::options::settings::{DirectoryFormat, FamilyOptions, Options, Tuning};
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
    pub(crate) tuning: Tuning,
    pub(crate) compression: Compression,
    pub(crate) super_version: SuperVersionCell,
    pub(crate) reads: Arc<FamilyReads>,
    pub(crate) compaction: CompactionOptions,
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
        let tuning = options
            .tuning
            .clone()
            .unwrap_or_else(|| database.tuning.clone());
        let context = ReadContext {
            order: options.order.clone(),
            merge_operator: options.merge_operator.clone(),
            in_memory: options.table_format == Some(TableFormat::Plain),
            prefix: options.prefix_extractor.clone(),
            tables,
            blobs: blobs.for_family(id),
        };
        let reads = Arc::new(FamilyReads {
            context,
            walks: WalkPool::new(first.number),
        });
        let compression = options.compression.unwrap_or(database.compression);
        let compaction = CompactionOptions {
            style: options
                .compaction_style
                .unwrap_or(database.compaction_style),
            // LevelDB takes the table of L0 with the higher number for the newer one.
            merges_within_l0: database.format != DirectoryFormat::LevelDb,
            l0_trigger: tuning.l0_trigger,
            level_base_bytes: tuning.level_base(budget.limit_bytes()),
            level_multiplier: tuning.level_multiplier,
            target_file_bytes: tuning.target_file_bytes,
            age_max_seconds: tuning.age_max_seconds,
            filters: options.compaction_filter.is_some(),
            level_forms: std::array::from_fn(|level| {
                level_compression(compression, level).codec as u8
            }),
            levels: options.levels_max.unwrap_or(LEVELS).clamp(2, LEVELS),
            ..CompactionOptions::new(options.order.clone())
        };
        Arc::new(Self {
            store,
            id,
            name: name.to_owned(),
            compression,
            tuning,
            super_version: SuperVersionCell::new(first),
            reads,
            compaction,
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

    /// Bytes of a memtable before it is flushed: the size set, or what the budget of the moment gives.
    pub(crate) fn write_buffer(&self) -> usize {
        self.tuning.write_buffer(self.budget.limit_bytes())
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

/// The compression of `level`'s tables: data in L0 and L1 is rewritten soon, so a slow codec is
/// not worth its time there.
pub(crate) fn level_compression(chosen: Compression, level: usize) -> Compression {
    match chosen.codec {
        Codec::None | Codec::Snappy | Codec::Lz4 => chosen,
        _ if level < 2 - usize::from(drumlin_base::bug!("slow-codec-in-l1")) => {
            Compression::new(Codec::Lz4)
        }
        _ => chosen,
    }
}

impl fmt::Debug for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Family({}, {:?})", self.id, self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_codecs_are_for_what_stays() {
        let zstd = Compression::new(Codec::Zstd);
        let chosen: Vec<_> = (0..4)
            .map(|level| level_compression(zstd, level).codec)
            .collect();
        assert_eq!(chosen, [Codec::Lz4, Codec::Lz4, Codec::Zstd, Codec::Zstd]);
        assert_eq!(
            level_compression(Compression::new(Codec::None), 0).codec,
            Codec::None
        );
    }
}
