//! `rocksdb_block_based_table_options_t` and `rocksdb_filterpolicy_t`.

use crate::cache::Cache;
use crate::fields::BlockBasedTableOptions;

/// `rocksdb_filterpolicy_t`: a Bloom filter; a ribbon filter becomes a Bloom filter of the same size.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FilterPolicy {
    pub(crate) bits: f64,
}

/// What the handle holds.
#[derive(Clone, Debug, Default)]
pub(crate) struct BlockOptions {
    pub(crate) fields: BlockBasedTableOptions,
    pub(crate) filter: Option<FilterPolicy>,
    pub(crate) cache: Option<Cache>,
}

pub(crate) mod calls {
    use super::{BlockOptions, Cache, FilterPolicy};

    /// None can be set.
    pub(crate) fn block_based_options_get_user_defined_index_factory_name(
        _options: &BlockOptions,
    ) -> Option<&[u8]> {
        None
    }

    fn bloom(bits: f64) -> FilterPolicy {
        let bits = if bits.is_finite() { bits } else { 10.0 };
        FilterPolicy {
            bits: bits.clamp(1.0, 100.0),
        }
    }

    pub(crate) fn filterpolicy_create_bloom(bits: f64) -> FilterPolicy {
        bloom(bits)
    }

    pub(crate) fn filterpolicy_create_bloom_full(bits: f64) -> FilterPolicy {
        bloom(bits)
    }

    pub(crate) fn filterpolicy_create_ribbon(bits: f64) -> FilterPolicy {
        bloom(bits)
    }

    pub(crate) fn filterpolicy_create_ribbon_hybrid(bits: f64, _bloom_before: i32) -> FilterPolicy {
        bloom(bits)
    }

    pub(crate) fn block_based_options_set_filter_policy(
        options: &mut BlockOptions,
        policy: Option<FilterPolicy>,
    ) {
        options.filter = policy;
    }

    pub(crate) fn block_based_options_set_block_cache(
        options: &mut BlockOptions,
        cache: Option<&Cache>,
    ) {
        options.cache = cache.cloned();
    }

    /// There is one cache, and blocks in it are not compressed.
    pub(crate) fn block_based_options_set_block_cache_compressed(
        _options: &mut BlockOptions,
        _cache: Option<&Cache>,
    ) {
    }
}
