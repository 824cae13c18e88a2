//! How many bytes compactions have to rewrite until everything has settled, without jumps.
//!
//! RocksDB's estimate (`leveled::pending_compaction_bytes`) counts L0 only once it is due, and then
//! with all it brings about below: at a few memtables' distance it leaps by gigabytes. As a measure
//! for writers each byte counts from when it is written, with its cost on its whole way down.

use crate::compaction::CompactionOptions;
use crate::compaction::leveled::LevelTargets;
use crate::version::Version;

/// Bytes to be rewritten for `version` and for `memory_bytes` that will come to L0, when L0 is
/// compacted about every `batch_bytes`.
pub(super) fn leveled_debt(
    version: &Version,
    options: &CompactionOptions,
    memory_bytes: f64,
    batch_bytes: f64,
) -> f64 {
    let targets = LevelTargets::of(version, options);
    let bytes_of = |level: usize| version.level_bytes(level) as f64;
    let mut coming = bytes_of(0) + memory_bytes;
    // The whole base level is rewritten with each batch from L0.
    let mut debt = coming * (1.0 + bytes_of(targets.base_level) / coming.max(batch_bytes).max(1.0));
    for level in targets.base_level..targets.last_level {
        let bytes = bytes_of(level) + coming;
        let target = targets
            .bytes_max
            .get(level)
            .map_or(f64::MAX, |&max| max as f64);
        coming = (bytes - target).max(0.0);
        if coming > 0.0 {
            debt += coming * (1.0 + bytes_of(level + 1) / bytes.max(1.0));
        }
    }
    debt
}
