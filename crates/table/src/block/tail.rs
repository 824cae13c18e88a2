//! The end of a table being written: filter, index, and the blocks that name them.

use drumlin_base::key::{ValueKind, append_internal};
use drumlin_base::{PrefixExtractor, Result};

use super::builder::BlockBuilder;
use super::filter_writer::FinishedFilter;
use super::index_builder::{INDEX_RESTART_INTERVAL, IndexBlockBuilder, IndexStyle};
use super::open::{DICTIONARY_NAME, INDEX_NAME, PROPERTIES_NAME, RANGE_DEL_NAME};
use super::writer::{BlockTableWriter, TableOutput, sample_bytes};
use crate::compress::{Codec, Compression};
use crate::filter::{
    FILTER_POLICY_NAME, FULL_FILTER_NAME, LEVELDB_FILTER_NAME, PARTITIONED_FILTER_NAME,
};
use crate::format::{BlockHandle, FinishedTable, Footer, TableStyle};
use crate::format::{IndexType, TableProperties};
use crate::options::TableWriterOptions;

/// RocksDB's number for the level that a codec has by itself.
const LEVEL_OF_CODEC: i32 = 32767;

/// The entries of the metaindex, gathered as their blocks are written.
type MetaIndex = Vec<(&'static str, BlockHandle)>;

impl BlockTableWriter {
    /// Writes everything that is left, then syncs and closes the file.
    ///
    /// # Errors
    /// `Io`, `NoSpace`.
    pub fn finish(mut self) -> Result<FinishedTable> {
        self.finish_blocks()?;
        let tail_start = self.output.offset();
        self.properties.data_size = tail_start;
        self.properties.num_data_blocks = self.index.blocks() as u64;
        self.properties.tail_start_offset = tail_start;
        let mut metaindex = MetaIndex::new();
        write_filter(&mut self, &mut metaindex)?;
        let index = write_index(&mut self)?;
        if let Some(dict) = &self.dict {
            let handle = self.output.write_block(dict.raw().to_vec())?;
            metaindex.push((DICTIONARY_NAME, handle));
        }
        if self.tombstone_count > 0 {
            let block = std::mem::replace(&mut self.tombstones, BlockBuilder::new(1));
            let handle = self.output.write_block(block.into_block())?;
            metaindex.push((RANGE_DEL_NAME, handle));
        }
        if self.options.style == TableStyle::RocksDb {
            let handle = write_properties(&mut self)?;
            metaindex.push((PROPERTIES_NAME, handle));
        }
        if names_index_in_metaindex(&self.output) {
            metaindex.push((INDEX_NAME, index));
        }
        let metaindex = write_metaindex(&mut self.output, metaindex)?;
        write_footer(&mut self, metaindex, index)?;
        let size = self.output.offset();
        self.output.close()?;
        assert!(tail_start < size, "a table ends with its footer");
        assert!(
            self.properties.data_size <= tail_start,
            "data blocks are before the tail"
        );
        Ok(FinishedTable {
            size,
            tail_size: size - tail_start,
            properties: self.properties,
        })
    }
}

/// The style index blocks have, now that it is known whether separators are user keys.
fn index_style(writer: &BlockTableWriter) -> IndexStyle {
    IndexStyle {
        user_keys: writer.index.stores_user_keys(),
        ..IndexStyle::of(writer.output.format_version)
    }
}

fn write_filter(writer: &mut BlockTableWriter, metaindex: &mut MetaIndex) -> Result<()> {
    writer.properties.num_filter_entries = writer.filter.entries();
    let style = index_style(writer);
    let filter = std::mem::replace(&mut writer.filter, super::filter_writer::FilterWriter::None);
    let (name, block) = match filter.finish() {
        FinishedFilter::None => return Ok(()),
        FinishedFilter::Full(block) => (FULL_FILTER_NAME, block),
        FinishedFilter::LevelDb(block) => (LEVELDB_FILTER_NAME, block),
        FinishedFilter::Partitioned(partitions) => {
            let mut top = IndexBlockBuilder::new(style, 1);
            for (filter, last_key) in partitions {
                writer.properties.filter_size += filter.len() as u64;
                let handle = writer.output.write_block(filter)?;
                let mut separator = last_key;
                if !style.user_keys {
                    let key = std::mem::take(&mut separator);
                    append_internal(&mut separator, &key, 0, ValueKind::Deletion as u8);
                }
                top.add(&separator, handle);
            }
            (PARTITIONED_FILTER_NAME, top.finish())
        }
    };
    writer.properties.filter_size += block.len() as u64;
    writer.properties.filter_policy_name = FILTER_POLICY_NAME.to_owned();
    let handle = writer.output.write_block(block)?;
    metaindex.push((name, handle));
    Ok(())
}

fn write_index(writer: &mut BlockTableWriter) -> Result<BlockHandle> {
    let style = index_style(writer);
    let start = writer.output.offset();
    let handle = if writer.partitioned && writer.index.blocks() > 0 {
        let partitions = writer.index.finish_partitions();
        writer.properties.index_partitions = partitions.len() as u64;
        let mut top = IndexBlockBuilder::new(style, 1);
        for (block, separator) in partitions {
            let handle = writer.output.write_block(block)?;
            top.add(&separator, handle);
        }
        let top = top.finish();
        writer.properties.top_level_index_size = top.len() as u64;
        writer.properties.set_index_type(IndexType::TwoLevel);
        writer.output.write_block(top)?
    } else {
        writer.properties.set_index_type(IndexType::BinarySearch);
        writer.output.write_block(writer.index.finish())?
    };
    writer.properties.index_size = writer.output.offset() - start;
    writer.properties.index_key_is_user_key = style.user_keys;
    writer.properties.index_value_is_delta_encoded = style.delta_values;
    Ok(handle)
}

fn write_properties(writer: &mut BlockTableWriter) -> Result<BlockHandle> {
    let options = &writer.options;
    let properties = &mut writer.properties;
    properties.data_block_restart_interval = options.restart_interval as u64;
    properties.index_block_restart_interval = INDEX_RESTART_INTERVAL as u64;
    properties.compression_name = options.compression.codec.property_name().to_owned();
    properties.compression_options = compression_text(&options.compression);
    let block = properties_block(properties, options, prefix_of(options));
    writer.output.write_block(block)
}

/// How the blocks were compressed, in the form of RocksDB's text; it has only what holds here, too.
fn compression_text(compression: &Compression) -> String {
    let level = compression.level.unwrap_or(LEVEL_OF_CODEC);
    let dictionary_bytes = match compression.codec.takes_dictionary() {
        true => compression.dictionary_bytes as usize,
        false => 0,
    };
    let samples = sample_bytes(dictionary_bytes);
    let trained = match compression.codec {
        Codec::Zstd => samples,
        _ => 0,
    };
    format!(
        "window_bits=-15; level={level}; strategy=0; max_dict_bytes={dictionary_bytes}; \
         zstd_max_train_bytes={trained}; max_dict_buffer_bytes={samples}; use_zstd_dict_trainer=1; \
         max_compressed_bytes_per_kb=896; checksum=0; "
    )
}

/// The properties block of a table of any format: `properties` and those of the options. `prefix` cuts
/// the prefixes the table knows.
pub(crate) fn properties_block(
    properties: &mut TableProperties,
    options: &TableWriterOptions,
    prefix: Option<&dyn PrefixExtractor>,
) -> Vec<u8> {
    describe(properties, options, prefix);
    let mut block = BlockBuilder::new(usize::MAX);
    for (name, value) in properties.encode() {
        block.add(&name, &value);
    }
    block.into_block()
}

fn describe(
    properties: &mut TableProperties,
    options: &TableWriterOptions,
    prefix: Option<&dyn PrefixExtractor>,
) {
    properties.original_file_number = options.file_number;
    properties.column_family_id = u64::from(options.family_id);
    properties.column_family_name = options.family_name.clone();
    properties.creation_time = match options.oldest_ancestor_time {
        0 => options.creation_time,
        time => time,
    };
    properties.file_creation_time = options.creation_time;
    properties.db_id = options.db_id.clone();
    properties.db_session_id = options.session_id.clone();
    properties.db_host_id = options.host_id.clone();
    properties.newest_key_time = options.newest_key_time;
    properties.comparator_name = options.order.name().to_owned();
    properties.merge_operator_name = name_or_null(&options.merge_operator_name);
    properties.prefix_extractor_name = name_or_null(prefix.map_or("", |by| by.name()));
    properties.property_collectors_names = "[]".to_owned();
    let filter = options.filter.as_ref();
    properties.set_filtering(
        filter.is_none_or(|filter| filter.whole_keys),
        prefix.is_some(),
    );
}

fn prefix_of(options: &TableWriterOptions) -> Option<&dyn PrefixExtractor> {
    options.filter.as_ref()?.prefix.as_deref()
}

/// RocksDB writes the name of nothing as `nullptr`.
fn name_or_null(name: &str) -> String {
    match name {
        "" => "nullptr".to_owned(),
        name => name.to_owned(),
    }
}

fn write_metaindex(output: &mut TableOutput, mut entries: MetaIndex) -> Result<BlockHandle> {
    entries.sort_unstable_by_key(|(name, _)| *name);
    let mut block = BlockBuilder::new(1);
    for (name, handle) in entries {
        block.add(name.as_bytes(), &handle.to_vec());
    }
    output.write_block(block.into_block())
}

/// Footers from version 6 on have no room for the index.
fn names_index_in_metaindex(output: &TableOutput) -> bool {
    output.format_version >= 6
}

fn write_footer(
    writer: &mut BlockTableWriter,
    metaindex: BlockHandle,
    index: BlockHandle,
) -> Result<()> {
    let style = writer.options.style;
    let footer = Footer {
        style,
        format_version: writer.output.format_version,
        checksum: writer.output.checksum(),
        context: writer.output.context,
        metaindex,
        index: (!names_index_in_metaindex(&writer.output)).then_some(index),
    };
    let mut bytes = Vec::new();
    footer.encode(writer.output.offset(), &mut bytes)?;
    writer.output.write_raw(bytes)
}
