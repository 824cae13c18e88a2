//! Options to open, read and write a table.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use drumlin_base::{KeyOrder, MemoryBudget, PrefixExtractor, SeqNo};
use drumlin_succinct::Model;

use crate::cache::BlockCache;
use crate::compress::Compression;
use crate::format::{ChecksumKind, FORMAT_VERSION_WRITTEN, TableStyle};
use crate::searchable::ModelSource;

/// How an existing table is opened.
#[derive(Clone)]
pub struct TableReaderOptions {
    /// The order of the family the table belongs to.
    pub order: KeyOrder,
    /// The table's number, for messages.
    pub file_number: u64,
    /// Where it is, for messages.
    pub path: PathBuf,
    /// The family's prefix extractor. A table written under another one is read without its prefix
    /// filter.
    pub prefix: Option<Arc<dyn PrefixExtractor>>,
    /// Where its data blocks are kept.
    pub cache: Arc<BlockCache>,
    /// The budget that its index and filter are charged to.
    pub budget: Arc<MemoryBudget>,
    /// The file's largest sequence number in the MANIFEST; `None` when it is not known. Engines
    /// that ingest a file without touching it state its entries' number only there.
    pub largest_seqno: Option<SeqNo>,
    /// Where searchable tables find models that are in files of their own; without it, tables that
    /// name one are not opened.
    pub models: Option<Arc<dyn ModelSource>>,
}

impl TableReaderOptions {
    /// Options for the table `file_number` at `path`, everything else at its default.
    pub fn new(
        path: PathBuf,
        file_number: u64,
        cache: Arc<BlockCache>,
        budget: Arc<MemoryBudget>,
    ) -> Self {
        Self {
            order: KeyOrder::Bytewise,
            file_number,
            path,
            prefix: None,
            cache,
            budget,
            largest_seqno: None,
            models: None,
        }
    }
}

impl std::fmt::Debug for TableReaderOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TableReaderOptions")
            .field("order", &self.order)
            .field("path", &self.path)
            .field("prefix", &self.prefix.as_ref().map(|p| p.name().to_owned()))
            .finish_non_exhaustive()
    }
}

/// How far a read may go for a block that it needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ReadTier {
    /// To the block cache: no file is touched.
    BlockCache,
    /// To the system's page cache: files are read where that waits for no disk, as far as the system tells. For event
    /// loops.
    PageCache,
    /// To the disk.
    #[default]
    Disk,
}

/// How one read goes about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableReadOptions {
    /// Keep the blocks this read loads in the cache.
    pub fill_cache: bool,
    /// Check the checksum of blocks read from the file.
    pub verify_checksums: bool,
    /// How far a read may go for a block; beyond it fails with `Incomplete`.
    pub tier: ReadTier,
    /// Bytes to read ahead of a scan; 0 lets it grow with the scan.
    pub readahead_bytes: usize,
    /// Cursors give the codes of values under this model as they are stored, and decode these only when
    /// they are asked to.
    pub codes_of: Option<u64>,
}

impl Default for TableReadOptions {
    fn default() -> Self {
        Self {
            fill_cache: true,
            verify_checksums: true,
            tier: ReadTier::Disk,
            readahead_bytes: 0,
            codes_of: None,
        }
    }
}

/// The keys that a table's filter answers for.
#[derive(Clone)]
pub struct FilterOptions {
    /// Bits per key; ten give about one false answer in a hundred.
    pub bits_per_key: f64,
    /// Whether the filter answers for whole user keys.
    pub whole_keys: bool,
    /// Whether it answers for prefixes too, and how they are cut.
    pub prefix: Option<Arc<dyn PrefixExtractor>>,
}

impl Default for FilterOptions {
    fn default() -> Self {
        Self {
            bits_per_key: 10.0,
            whole_keys: true,
            prefix: None,
        }
    }
}

impl std::fmt::Debug for FilterOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FilterOptions")
            .field("bits_per_key", &self.bits_per_key)
            .field("whole_keys", &self.whole_keys)
            .field("prefix", &self.prefix.as_ref().map(|p| p.name().to_owned()))
            .finish()
    }
}

/// The format of a table file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TableFormat {
    /// RocksDB's block-based table, or LevelDB's.
    #[default]
    Block,
    /// For data that lives in memory: records found by hash and walked in order, in a file that is in
    /// memory as a whole. Only this store reads it.
    Plain,
    /// For data that is read more often than written: keys and values compressed apart, keys in
    /// memory, each row read by itself. Keys in another than bytewise order get block-based tables.
    /// Only this store reads it.
    Searchable,
}

/// How a table is written.
#[derive(Clone, Debug)]
pub struct TableWriterOptions {
    /// The order of keys; its name is stored.
    pub order: KeyOrder,
    /// The file's format. The following options of blocks, filters and compression concern
    /// block-based tables; of the filter's, plain tables use the prefix extractor.
    pub format: TableFormat,
    /// The engine whose rules a block-based table follows.
    pub style: TableStyle,
    /// How data blocks are compressed.
    pub compression: Compression,
    /// Uncompressed size at which a data block is ended.
    pub block_bytes: usize,
    /// Every how many keys one is stored whole.
    pub restart_interval: usize,
    /// The filter, if there is to be one.
    pub filter: Option<FilterOptions>,
    /// The `format_version` of tables of RocksDB's style: [`FORMAT_VERSION_WRITTEN`], or
    /// [`FORMAT_VERSION_OLD`](crate::FORMAT_VERSION_OLD) for readers before RocksDB 6.6, which also know older filters
    /// only.
    pub format_version: u32,
    /// How blocks are checked; LevelDB tables always use CRC-32C.
    pub checksum: ChecksumKind,
    /// The index of a file expected to be larger than this is cut into partitions, of which only
    /// the top stays resident in a reader.
    pub partition_index_above_bytes: u64,
    /// Whether the filter of such a file is cut into partitions too.
    pub partition_filters: bool,
    /// About how large the file will get; 0 when nothing is known.
    pub expected_bytes: u64,
    /// The column family's id and name.
    pub family_id: u32,
    /// See `family_id`.
    pub family_name: String,
    /// The database's identity, the writing session's, and the table's number: together they name
    /// the table uniquely.
    pub db_id: String,
    /// See `db_id`.
    pub session_id: String,
    /// See `db_id`.
    pub file_number: u64,
    /// The machine, for people; empty for none.
    pub host_id: String,
    /// Unix seconds at which the file is made; 0 when unknown.
    pub creation_time: u64,
    /// Unix seconds at which the oldest ancestor of the file was made; 0 when unknown.
    pub oldest_ancestor_time: u64,
    /// Unix seconds after which nothing in the file was written by its user; 0 when unknown.
    pub newest_key_time: u64,
    /// The name of the family's merge operator; empty for none.
    pub merge_operator_name: String,
    /// The model that a searchable table names. Without one it learns its own from its first entries
    /// and holds it.
    pub model: Option<Arc<Model>>,
    /// Properties beside the known ones.
    pub user_properties: BTreeMap<String, Vec<u8>>,
}

impl Default for TableWriterOptions {
    fn default() -> Self {
        Self {
            order: KeyOrder::Bytewise,
            format: TableFormat::Block,
            style: TableStyle::RocksDb,
            compression: Compression::default(),
            block_bytes: 4096,
            restart_interval: 16,
            filter: None,
            format_version: FORMAT_VERSION_WRITTEN,
            checksum: ChecksumKind::Crc32c,
            partition_index_above_bytes: 256 << 20,
            partition_filters: false,
            expected_bytes: 0,
            family_id: 0,
            family_name: "default".to_owned(),
            db_id: String::new(),
            session_id: String::new(),
            file_number: 0,
            host_id: String::new(),
            creation_time: 0,
            oldest_ancestor_time: 0,
            newest_key_time: 0,
            merge_operator_name: String::new(),
            model: None,
            user_properties: BTreeMap::new(),
        }
    }
}
