//! Opening a table: footer, metaindex, properties, index, filter, range tombstones.
//!
//! Everything a lookup needs is decoded here, once. A filter, index or properties block
//! that is damaged fails the open: read as "no filter" it would cost speed, read as an empty filter
//! it would hide keys.

use std::path::Path;
use std::sync::Arc;

use drumlin_base::key::ParsedKey;
use drumlin_base::{Error, KeyOrder, MemoryUse, RangeTombstone, Result, SeqNo};
use drumlin_fs::RandomAccessFile;

use super::block_iter::BlockIter;
use super::fetch::BlockFile;
use super::filter::{PartitionedFilter, TableFilter};
use super::index::{FlatIndex, IndexFormat};
use super::layout::parse_block;
use super::meta_block::MetaBlock;
use super::partition::IndexPartition;
use super::table::{BlockTable, PartitionedIndex, TableIndex};
use crate::cache::SlotArray;
use crate::compress::{Codec, Framing, PreparedDict, zeros};
use crate::filter::{
    FULL_FILTER_NAME, FilterReader, LEVELDB_FILTER_NAME, LevelDbFilterReader,
    PARTITIONED_FILTER_NAME,
};
use crate::format::{BlockHandle, FOOTER_BYTES_MAX, Footer, TableStyle, verify_block};
use crate::format::{GLOBAL_SEQNO, IndexType, TableProperties};
use crate::options::TableReaderOptions;

/// Metaindex names (on disk).
pub(crate) const PROPERTIES_NAME: &str = "rocksdb.properties";
/// The dictionary of the data blocks.
pub(crate) const DICTIONARY_NAME: &str = "rocksdb.compression_dict";
/// Range tombstones.
pub(crate) const RANGE_DEL_NAME: &str = "rocksdb.range_del";
/// The index block, from format version 6 on.
pub(crate) const INDEX_NAME: &str = "rocksdb.index";

impl BlockTable {
    /// Opens `file`, told to be RocksDB's or LevelDB's by its magic number. Reads and decodes
    /// footer, properties, index, filter and range tombstones, and charges them to the budget.
    ///
    /// # Errors
    /// `Corruption` for damage, `NotSupported` naming a feature that cannot be read faithfully,
    /// `InvalidArgument` when the table is sorted by another order, `Io`.
    pub fn open(file: Arc<dyn RandomAccessFile>, options: TableReaderOptions) -> Result<Arc<Self>> {
        let path = options.path.clone();
        let table = open_parts(file, options).map_err(|error| error.with_file(&path))?;
        table
            .budget
            .charge(MemoryUse::TableMeta, table.resident_bytes);
        Ok(Arc::new(table))
    }

    /// The properties of the table `file`, which is at `path`. Reads no index and no filter.
    ///
    /// # Errors
    /// `Corruption`, `NotSupported`, `Io`.
    pub(crate) fn properties_of(
        file: Arc<dyn RandomAccessFile>,
        path: &Path,
    ) -> Result<TableProperties> {
        Ok(Front::read(file, path)?.properties)
    }
}

/// What says where the rest of a table is.
struct Front {
    footer: Footer,
    blocks: BlockFile,
    metaindex: MetaBlock,
    properties: TableProperties,
}

impl Front {
    fn read(file: Arc<dyn RandomAccessFile>, path: &Path) -> Result<Self> {
        let size = file.size();
        let footer = read_footer(&*file, size)?;
        let blocks = BlockFile {
            file,
            path: path.to_path_buf(),
            checksum: footer.checksum,
            context: footer.context,
            framing: Framing::of(footer.style, footer.format_version),
            limit: footer.offset_in(size)?,
            compressed: true,
            dict: None,
        };
        let metaindex = MetaBlock::parse(&blocks.meta_block(footer.metaindex)?)?;
        let properties = read_properties(&blocks, &metaindex, footer.style)?;
        Ok(Self {
            footer,
            blocks,
            metaindex,
            properties,
        })
    }
}

fn open_parts(file: Arc<dyn RandomAccessFile>, options: TableReaderOptions) -> Result<BlockTable> {
    let size = file.size();
    let Front {
        footer,
        mut blocks,
        metaindex,
        properties,
    } = Front::read(file, &options.path)?;
    check_readable(&properties, &footer, &options.order)?;
    blocks.compressed = properties.compression_name != Codec::None.property_name();
    if let Some(handle) = metaindex.handle(DICTIONARY_NAME)? {
        blocks.dict = Some(PreparedDict::for_reading(blocks.meta_block(handle)?));
    }
    let index_handle = match footer.index {
        Some(handle) => handle,
        None => metaindex
            .handle(INDEX_NAME)?
            .ok_or_else(|| Error::corruption("the metaindex names no index"))?,
    };
    let index = open_index(&blocks, index_handle, &properties, &options)?;
    let filter = open_filter(&blocks, &metaindex, &properties, &options)?;
    let global_seqno = properties.seqno_of_all(options.largest_seqno)?;
    let range_tombstones = match metaindex.handle(RANGE_DEL_NAME)? {
        Some(handle) => read_tombstones(&blocks, handle, global_seqno)?,
        None => Vec::new(),
    };
    let prefix_filter = properties.prefix_filtering()
        && options
            .prefix
            .as_ref()
            .is_some_and(|prefix| prefix.name() == properties.prefix_extractor_name);
    let tombstone_bytes: usize = range_tombstones
        .iter()
        .map(|t| t.begin.len() + t.end.len() + size_of::<RangeTombstone>())
        .sum();
    let dict_bytes = blocks.dict.as_ref().map_or(0, PreparedDict::resident_bytes);
    Ok(BlockTable {
        resident_bytes: index.resident_bytes()
            + filter.resident_bytes()
            + properties.resident_bytes()
            + tombstone_bytes
            + dict_bytes
            + size_of::<BlockTable>(),
        whole_key_filter: footer.style == TableStyle::LevelDb || properties.whole_key_filtering(),
        prefix: options.prefix.filter(|_| prefix_filter),
        prefixes_max: prefixes_max(&properties),
        order: options.order,
        cache: options.cache,
        budget: options.budget,
        blocks,
        index,
        filter,
        properties,
        range_tombstones,
        global_seqno,
        size,
    })
}

/// Key prefixes that a block finds room for. Without properties, as in LevelDB's tables, as many as blocks
/// of the usual size have entries of 64 bytes.
fn prefixes_max(properties: &TableProperties) -> u32 {
    const PREFIXES_UNKNOWN: u64 = 72;
    /// Beyond that they would take too much memory, and the restart points do.
    const PREFIXES_MOST: u64 = 4096;
    let average = properties
        .num_entries
        .checked_div(properties.num_data_blocks);
    let prefixes = average.map_or(PREFIXES_UNKNOWN, |average| average + average / 8 + 5);
    u32::try_from(prefixes.min(PREFIXES_MOST)).unwrap_or(0)
}

/// The footer of a block-based table.
///
/// # Errors
/// `Corruption`, `NotSupported`, `Io`.
pub fn read_footer(file: &dyn RandomAccessFile, size: u64) -> Result<Footer> {
    let len = size.min(FOOTER_BYTES_MAX as u64);
    let mut tail = vec![0; len as usize];
    let read = file.read_at(size - len, &mut tail)?;
    tail.truncate(read);
    if read as u64 != len {
        return Err(Error::corruption("the file ends before its size"));
    }
    Footer::decode(&tail, size)
}

/// Refuses, by name, features that would be read wrongly.
fn check_readable(properties: &TableProperties, footer: &Footer, order: &KeyOrder) -> Result<()> {
    let stored = &properties.comparator_name;
    if !stored.is_empty() && stored != order.name() {
        return Err(Error::invalid_argument(format!(
            "the table is sorted by {stored}, not by {}",
            order.name()
        )));
    }
    let manager = properties
        .compression_name
        .split(';')
        .next()
        .unwrap_or_default();
    if footer.format_version >= 7 && !matches!(manager, "" | "BuiltinV2") {
        return Err(Error::not_supported(format!(
            "blocks compressed by {manager:?}"
        )));
    }
    Ok(())
}

fn read_properties(
    blocks: &BlockFile,
    metaindex: &MetaBlock,
    style: TableStyle,
) -> Result<TableProperties> {
    let Some(handle) = metaindex.handle(PROPERTIES_NAME)? else {
        if style == TableStyle::LevelDb {
            return Ok(TableProperties::default());
        }
        // Without properties an index cannot be told from one with other keys and values.
        return Err(Error::corruption("the table has no properties block"));
    };
    let bytes = match blocks.meta_block(handle) {
        Ok(bytes) => bytes,
        Err(error) if error.is_corruption() => unpatch_properties(blocks, handle).ok_or(error)?,
        Err(error) => return Err(error),
    };
    let block = MetaBlock::parse(&bytes)?;
    TableProperties::decode(block.iter().map(Ok))
}

/// Ingestion used to patch the sequence number into the properties of a finished file, which the
/// block's checksum does not know of: the block is sound when the checksum fits with the number put
/// back to zero. The patched contents, if so.
fn unpatch_properties(blocks: &BlockFile, handle: BlockHandle) -> Option<Vec<u8>> {
    let len = usize::try_from(handle.size_with_trailer()?).ok()?;
    handle.check_within(blocks.limit).ok()?;
    let mut stored = zeros(len).ok()?;
    if blocks.file.read_at(handle.offset, &mut stored).ok()? != len {
        return None;
    }
    let contents = stored.get(..usize::try_from(handle.size).ok()?)?.to_vec();
    let patched = MetaBlock::parse(&contents).ok()?;
    let range = patched.value_range(GLOBAL_SEQNO)?;
    if range.len() != 8 {
        return None;
    }
    stored.get_mut(range)?.fill(0);
    let kind = verify_block(&stored, blocks.checksum, blocks.context, handle.offset).ok()?;
    (kind == 0).then_some(contents)
}

fn index_format(properties: &TableProperties) -> IndexFormat {
    IndexFormat {
        user_keys: properties.index_key_is_user_key,
        delta_values: properties.index_value_is_delta_encoded,
        first_keys: false,
    }
}

fn open_index(
    blocks: &BlockFile,
    handle: BlockHandle,
    properties: &TableProperties,
    options: &TableReaderOptions,
) -> Result<TableIndex> {
    let block = parse_block(&blocks.meta_block(handle)?)?;
    let kind = properties.index_type()?;
    let mut format = index_format(properties);
    format.first_keys = kind == IndexType::BinarySearchWithFirstKey;
    let index = FlatIndex::decode(&block, format, &options.order, blocks.limit)?;
    if kind != IndexType::TwoLevel {
        let partition = IndexPartition::new(index, &options.cache);
        return Ok(TableIndex::Single(Arc::new(partition)));
    }
    Ok(TableIndex::Partitioned(PartitionedIndex {
        slots: SlotArray::new(index.len(), &options.cache),
        top: index,
        format,
    }))
}

fn open_filter(
    blocks: &BlockFile,
    metaindex: &MetaBlock,
    properties: &TableProperties,
    options: &TableReaderOptions,
) -> Result<TableFilter> {
    if !options.order.equality_is_bytewise() {
        return Ok(TableFilter::None); // Keys that count as equal may hash differently.
    }
    if let Some(handle) = metaindex.handle(FULL_FILTER_NAME)? {
        let filter = FilterReader::parse(blocks.meta_block(handle)?);
        return Ok(TableFilter::Full(filter));
    }
    if let Some(handle) = metaindex.handle(PARTITIONED_FILTER_NAME)? {
        let block = parse_block(&blocks.meta_block(handle)?)?;
        let format = index_format(properties);
        let index = FlatIndex::decode(&block, format, &options.order, blocks.limit)?;
        let slots = SlotArray::new(index.len(), &options.cache);
        return Ok(TableFilter::Partitioned(PartitionedFilter { index, slots }));
    }
    if let Some(handle) = metaindex.handle(LEVELDB_FILTER_NAME)? {
        let filter = LevelDbFilterReader::parse(blocks.meta_block(handle)?);
        return Ok(filter.map_or(TableFilter::None, TableFilter::LevelDb));
    }
    Ok(TableFilter::None)
}

fn read_tombstones(
    blocks: &BlockFile,
    handle: BlockHandle,
    global_seqno: Option<SeqNo>,
) -> Result<Vec<RangeTombstone>> {
    let block = parse_block(&blocks.meta_block(handle)?)?;
    let mut iter = BlockIter::default();
    iter.set_block(block);
    iter.seek_to_first();
    let mut tombstones = Vec::new();
    while iter.valid() {
        let key = ParsedKey::parse(iter.key())?;
        tombstones.push(RangeTombstone {
            begin: key.user_key.to_vec(),
            end: iter.value().to_vec(),
            seqno: global_seqno.unwrap_or(key.seqno),
        });
        iter.next();
    }
    iter.status()?;
    Ok(tombstones)
}
