//! `rocksdb_table_properties_t`: what a table says of itself, lent to who hears of a flush, a compaction or an ingest.

use std::sync::Arc;

use drumlin::TableProperties;
use drumlin_base::coding::varint64_at;

/// What the handle holds.
#[derive(Clone, Debug)]
pub(crate) struct Properties(pub(crate) Arc<TableProperties>);

impl Properties {
    /// A number that the engine has no use for, by its name in the table; 0 where it is not there.
    fn other(&self, name: &str) -> u64 {
        let stored = self.0.user.get(name);
        stored
            .and_then(|stored| varint64_at(stored, 0))
            .map_or(0, |(number, _)| number)
    }
}

/// Numbers that are fields of the engine's.
macro_rules! numbers {
    ($($function:ident $field:ident)*) => {
        $(pub(crate) fn $function(of: &Properties) -> u64 {
            of.0.$field.into()
        })*
    };
}

/// Texts that are.
macro_rules! texts {
    ($($function:ident $field:ident)*) => {
        $(pub(crate) fn $function(of: &Properties) -> Option<&[u8]> {
            Some(of.0.$field.as_bytes())
        })*
    };
}

/// Numbers that only RocksDB's tables have.
macro_rules! others {
    ($($function:ident $name:literal)*) => {
        $(pub(crate) fn $function(of: &Properties) -> u64 {
            of.other($name)
        })*
    };
}

pub(crate) mod calls {
    use super::Properties;

    /// "No sequence number is stored".
    const UNKNOWN: u64 = u64::MAX;

    numbers! {
        table_properties_orig_file_number original_file_number
        table_properties_data_size data_size
        table_properties_index_size index_size
        table_properties_index_partitions index_partitions
        table_properties_top_level_index_size top_level_index_size
        table_properties_index_key_is_user_key index_key_is_user_key
        table_properties_index_value_is_delta_encoded index_value_is_delta_encoded
        table_properties_filter_size filter_size
        table_properties_raw_key_size raw_key_size
        table_properties_raw_value_size raw_value_size
        table_properties_num_data_blocks num_data_blocks
        table_properties_num_data_blocks_compression_rejected num_blocks_rejected
        table_properties_num_data_blocks_compression_bypassed num_blocks_bypassed
        table_properties_num_entries num_entries
        table_properties_num_filter_entries num_filter_entries
        table_properties_num_deletions num_deletions
        table_properties_num_merge_operands num_merge_operands
        table_properties_num_range_deletions num_range_deletions
        table_properties_format_version format_version
        table_properties_fixed_key_len fixed_key_length
        table_properties_column_family_id column_family_id
        table_properties_creation_time creation_time
        table_properties_oldest_key_time oldest_key_time
        table_properties_newest_key_time newest_key_time
        table_properties_file_creation_time file_creation_time
        table_properties_tail_start_offset tail_start_offset
        table_properties_user_defined_timestamps_persisted user_defined_timestamps_persisted
        table_properties_key_largest_seqno largest_seqno
        table_properties_key_smallest_seqno smallest_seqno
        table_properties_data_block_restart_interval data_block_restart_interval
        table_properties_index_block_restart_interval index_block_restart_interval
        table_properties_separate_key_value_in_data_block separate_key_value_in_data_block
    }

    texts! {
        table_properties_db_id db_id
        table_properties_db_session_id db_session_id
        table_properties_db_host_id db_host_id
        table_properties_column_family_name column_family_name
        table_properties_filter_policy_name filter_policy_name
        table_properties_comparator_name comparator_name
        table_properties_merge_operator_name merge_operator_name
        table_properties_prefix_extractor_name prefix_extractor_name
        table_properties_property_collectors_names property_collectors_names
        table_properties_compression_name compression_name
        table_properties_compression_options compression_options
    }

    others! {
        table_properties_slow_compression_estimated_data_size "rocksdb.sample_for_compression.slow.data.size"
        table_properties_fast_compression_estimated_data_size "rocksdb.sample_for_compression.fast.data.size"
        table_properties_num_uniform_blocks "rocksdb.num.uniform.blocks"
        table_properties_udi_is_primary_index "rocksdb.udi.is.primary.index"
    }

    /// Is in no file, so RocksDB too knows it of none that it opened.
    pub(crate) fn table_properties_uncompressed_data_size(_of: &Properties) -> u64 {
        0
    }

    /// Numbers of tables that were taken in are in the MANIFEST: nothing is written into such a table.
    pub(crate) fn table_properties_external_sst_file_global_seqno_offset(_of: &Properties) -> u64 {
        0
    }

    pub(crate) fn table_properties_has_key_largest_seqno(of: &Properties) -> bool {
        of.0.largest_seqno != UNKNOWN
    }

    pub(crate) fn table_properties_has_key_smallest_seqno(of: &Properties) -> bool {
        of.0.smallest_seqno != UNKNOWN
    }

    pub(crate) fn table_properties_seqno_to_time_mapping(of: &Properties) -> Option<&[u8]> {
        let stored = of.0.user.get("rocksdb.seqno.time.map");
        Some(stored.map_or(&[], Vec::as_slice))
    }

    pub(crate) fn table_properties_user_collected_properties_count(of: &Properties) -> usize {
        of.0.user.len()
    }

    pub(crate) fn table_properties_user_collected_properties_key_at(
        of: &Properties,
        at: usize,
    ) -> Option<&[u8]> {
        of.0.user.keys().nth(at).map(String::as_bytes)
    }

    pub(crate) fn table_properties_user_collected_properties_value_at(
        of: &Properties,
        at: usize,
    ) -> Option<&[u8]> {
        of.0.user.values().nth(at).map(Vec::as_slice)
    }

    /// Collectors of the program's, of which there are none, would put them into words.
    pub(crate) fn table_properties_readable_properties_count(_of: &Properties) -> usize {
        0
    }

    pub(crate) fn table_properties_readable_properties_key_at(
        _of: &Properties,
        _at: usize,
    ) -> Option<&[u8]> {
        None
    }

    pub(crate) fn table_properties_readable_properties_value_at(
        _of: &Properties,
        _at: usize,
    ) -> Option<&[u8]> {
        None
    }
}
