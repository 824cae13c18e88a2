//! An open table: lookups, filters, and the start of iterators.
//!
//! A lookup asks the filter, searches the resident index, takes the block from its slot and walks
//! one restart interval: no lock, no allocation, no shared counter while everything is cached. Only
//! pinning a value too large to copy counts a reference on its block.
//!
//! Thread safety: immutable after open but for the cache slots, which are atomic. Dropping the last
//! handle releases the table's charges and its cached blocks.

use std::ops::{ControlFlow, Range};
use std::sync::Arc;

use drumlin_base::bytes::Draft;
use drumlin_base::key::{ValueKind, seek_key, split_internal, tag_kind, tag_seqno};
use drumlin_base::{
    Error, KeyOrder, MemoryBudget, MemoryUse, PinnedSlice, PrefixExtractor, RangeTombstone, Result,
    SEQNO_MAX, SeqNo,
};

use super::block_iter::BlockIter;
use super::fetch::BlockFile;
use super::filter::TableFilter;
use super::index::{FlatIndex, IndexFormat};
use super::layout::{Block, parse_block, parse_draft};
use super::partition::IndexPartition;
use super::point::{PointEnd, PointTarget, visit_versions};
use crate::cache::ReadAhead;
use crate::cache::{BlockCache, Fetched, SlotArray};
use crate::filter::{FilterReader, hash};
use crate::format::BlockHandle;
use crate::format::TableProperties;
use crate::hint::Known;
use crate::options::TableReadOptions;

/// Cache lines that a block's header, its key prefixes and its first key mostly take: a lookup needs them all
/// at once.
pub(crate) const LOOKUP_LINES: usize = 7;

/// An open table file of RocksDB's or LevelDB's. See the module for cost and thread safety.
pub struct BlockTable {
    pub(crate) blocks: BlockFile,
    pub(crate) order: KeyOrder,
    pub(crate) index: TableIndex,
    pub(crate) filter: TableFilter,
    pub(crate) properties: TableProperties,
    pub(crate) range_tombstones: Vec<RangeTombstone>,
    /// The sequence number of every entry, in an ingested table.
    pub(crate) global_seqno: Option<SeqNo>,
    /// Whether the filter knows whole keys.
    pub(crate) whole_key_filter: bool,
    /// Set only when the filter knows the prefixes that this extractor cuts.
    pub(crate) prefix: Option<Arc<dyn PrefixExtractor>>,
    pub(crate) cache: Arc<BlockCache>,
    pub(crate) budget: Arc<MemoryBudget>,
    /// Room for key prefixes that a block of this table gets: an eighth more than its blocks have entries
    /// on average.
    pub(crate) prefixes_max: u32,
    pub(crate) resident_bytes: usize,
    pub(crate) size: u64,
}

/// The index of an open table.
#[derive(Debug)]
pub(crate) enum TableIndex {
    /// Resident as a whole.
    Single(Arc<IndexPartition>),
    /// Of two levels: the top resident, the partitions loaded through the cache.
    Partitioned(PartitionedIndex),
}

/// The top level of an index, and a slot for each partition under it.
#[derive(Debug)]
pub(crate) struct PartitionedIndex {
    pub(crate) top: FlatIndex,
    pub(crate) slots: Arc<SlotArray<Arc<IndexPartition>>>,
    pub(crate) format: IndexFormat,
}

impl TableIndex {
    pub(crate) fn resident_bytes(&self) -> usize {
        match self {
            Self::Single(partition) => partition.resident_bytes(),
            Self::Partitioned(parts) => parts.top.resident_bytes() + parts.slots.resident_bytes(),
        }
    }

    /// Number of partitions.
    pub(crate) fn partitions(&self) -> usize {
        match self {
            Self::Single(_) => 1,
            Self::Partitioned(parts) => parts.top.len(),
        }
    }
}

/// A value in its block.
#[derive(Clone, Copy, Debug)]
pub struct BlockValue<'a> {
    block: &'a Block,
    start: usize,
    end: usize,
}

impl<'a> BlockValue<'a> {
    /// The bytes.
    #[inline]
    pub fn bytes(&self) -> &'a [u8] {
        self.block
            .bytes()
            .get(self.start..self.end)
            .expect("an entry that was decoded is in its block")
    }

    /// The bytes with their block kept in memory; copied if they are few.
    #[inline]
    pub fn pin(&self) -> PinnedSlice {
        PinnedSlice::of_shared(self.block, self.start..self.end)
            .expect("an entry that was decoded is in its block")
    }
}

impl BlockTable {
    /// Visits the versions of `user_key` with a sequence number of at most `seqno`, newest first,
    /// until `visit` breaks. The filter is asked first. Range tombstones are not consulted.
    ///
    /// # Errors
    /// `Corruption`, `Io`; `Incomplete` when only the cache may be read and does not suffice.
    pub fn get(
        &self,
        user_key: &[u8],
        seqno: SeqNo,
        options: &TableReadOptions,
        mut visit: impl FnMut(SeqNo, ValueKind, BlockValue<'_>) -> ControlFlow<()>,
    ) -> Result<()> {
        let Some(seqno) = self.stored_seqno(seqno) else {
            return Ok(());
        };
        match (&self.filter, &self.index, self.prefetch_filter(user_key)) {
            (TableFilter::Full(filter), TableIndex::Single(partition), Known::Filter(spot)) => {
                // The lines that most keys need next are loaded beside the filter's.
                let about = partition.index.prefetch_for(user_key);
                partition.slots.prefetch_slots_about(about);
                if !filter.test(spot) {
                    return Ok(());
                }
            }
            _ if !self.filter_admits(user_key, seqno, options)? => return Ok(()),
            _ => {}
        }
        match &self.index {
            TableIndex::Single(partition) => {
                self.get_in_partition(partition, user_key, seqno, options, &mut visit)?;
            }
            TableIndex::Partitioned(parts) => {
                for at in parts.top.find(user_key, seqno)..parts.top.len() {
                    let partition = self.partition_in_slot(parts, at, options)?;
                    let end = self.get_in_partition(
                        partition.get(),
                        user_key,
                        seqno,
                        options,
                        &mut visit,
                    )?;
                    if end == PointEnd::Done {
                        break;
                    }
                }
            }
        }
        Ok(())
    }

    /// Begins to ask the filter, where it is in memory and knows whole keys.
    #[inline]
    pub(crate) fn prefetch_filter(&self, user_key: &[u8]) -> Known {
        match (&self.filter, &self.index) {
            (_, TableIndex::Partitioned(_)) | (TableFilter::Partitioned(_), _) => Known::Nothing,
            (TableFilter::Full(filter), _) if self.whole_key_filter && filter.is_by_hash() => {
                Known::Filter(filter.locate(hash(user_key)))
            }
            // By prefixes, or of the older kind: the lookup itself asks.
            (TableFilter::Full(_), _) => Known::Nothing,
            (TableFilter::None | TableFilter::LevelDb(_), _) => Known::Admitted,
        }
    }

    fn get_in_partition(
        &self,
        partition: &IndexPartition,
        user_key: &[u8],
        seqno: SeqNo,
        options: &TableReadOptions,
        visit: &mut impl FnMut(SeqNo, ValueKind, BlockValue<'_>) -> ControlFlow<()>,
    ) -> Result<PointEnd> {
        let first = partition.index.find(user_key, seqno);
        self.get_from_block(partition, first, user_key, seqno, options, visit)
    }

    pub(super) fn get_from_block(
        &self,
        partition: &IndexPartition,
        first: usize,
        user_key: &[u8],
        seqno: SeqNo,
        options: &TableReadOptions,
        visit: &mut impl FnMut(SeqNo, ValueKind, BlockValue<'_>) -> ControlFlow<()>,
    ) -> Result<PointEnd> {
        for at in first..partition.index.len() {
            if self.block_may_contain(partition, at, user_key) {
                let target = PointTarget {
                    user_key,
                    seqno,
                    by_prefixes: true,
                };
                // Not through `Fetched`: moving a value right after it was built from parts makes the processor
                // wait for the parts.
                let end = match partition.slots.get(at) {
                    Some(block) => {
                        block.prefetch(LOOKUP_LINES);
                        self.get_in_block(&block, target, visit)
                    }
                    None => self.get_in_new_block(partition, at, target, options, visit),
                }
                .map_err(|error| self.locate(error, partition.index.handle(at)))?;
                if end == PointEnd::Done {
                    return Ok(PointEnd::Done);
                }
            }
            if !partition.index.versions_may_go_on(at, user_key) {
                return Ok(PointEnd::Done);
            }
        }
        Ok(PointEnd::BlockEnded)
    }

    #[inline(never)]
    fn get_in_new_block(
        &self,
        partition: &IndexPartition,
        at: usize,
        target: PointTarget<'_>,
        options: &TableReadOptions,
        visit: &mut impl FnMut(SeqNo, ValueKind, BlockValue<'_>) -> ControlFlow<()>,
    ) -> Result<PointEnd> {
        let block = self.load_block(partition, at, options, None)?;
        // A block met for the first time may never be met again: no key prefixes are made for it.
        let target = PointTarget {
            by_prefixes: false,
            ..target
        };
        self.get_in_block(&block, target, visit)
    }

    #[inline]
    fn get_in_block(
        &self,
        block: &Block,
        target: PointTarget<'_>,
        visit: &mut impl FnMut(SeqNo, ValueKind, BlockValue<'_>) -> ControlFlow<()>,
    ) -> Result<PointEnd> {
        let mut unknown_kind = None;
        let found = |tag: u64, value: Range<usize>| {
            let kind = match ValueKind::from_byte(tag_kind(tag)) {
                Ok(kind) => kind,
                Err(error) => {
                    unknown_kind = Some(error);
                    return ControlFlow::Break(());
                }
            };
            let seqno = self.global_seqno.unwrap_or(tag_seqno(tag));
            let value = BlockValue {
                block,
                start: value.start,
                end: value.end,
            };
            visit(seqno, kind, value)
        };
        let end = match self.order {
            KeyOrder::Bytewise => visit_versions(block, target, found)?,
            _ => visit_versions_slowly(&self.order, block, target, found)?,
        };
        match unknown_kind {
            Some(error) => Err(error),
            None => Ok(end),
        }
    }

    /// The sequence number to look for in the file, for a caller that reads at `seqno`; `None` when
    /// it sees no entry.
    #[inline]
    pub(crate) fn stored_seqno(&self, seqno: SeqNo) -> Option<SeqNo> {
        match self.global_seqno {
            None => Some(seqno),
            Some(global) => (seqno >= global).then_some(SEQNO_MAX),
        }
    }

    /// Whether `user_key` may be in the table, by the filter alone. True when it cannot tell.
    ///
    /// # Errors
    /// `Corruption`, `Io` while loading a filter partition.
    pub fn may_contain(&self, user_key: &[u8]) -> Result<bool> {
        self.filter_admits(user_key, SEQNO_MAX, &TableReadOptions::default())
    }

    /// Whether a key with `key`'s prefix may be in the table. True when it cannot tell: without a
    /// prefix filter, with another extractor, or when `key` has no prefix.
    ///
    /// # Errors
    /// As [`BlockTable::may_contain`].
    pub fn may_contain_prefix(&self, key: &[u8]) -> Result<bool> {
        self.may_contain_prefix_for(key, &TableReadOptions::default())
    }

    /// As [`BlockTable::may_contain_prefix`], for a read with `options`.
    pub(super) fn may_contain_prefix_for(
        &self,
        key: &[u8],
        options: &TableReadOptions,
    ) -> Result<bool> {
        let Some(prefix) = self.prefix.as_ref().and_then(|by| by.prefix(key)) else {
            return Ok(true);
        };
        self.ask_filter(key, prefix, SEQNO_MAX, options)
    }

    #[inline]
    fn filter_admits(
        &self,
        user_key: &[u8],
        seqno: SeqNo,
        options: &TableReadOptions,
    ) -> Result<bool> {
        if self.whole_key_filter {
            return self.ask_filter(user_key, user_key, seqno, options);
        }
        match self.prefix.as_ref().and_then(|by| by.prefix(user_key)) {
            Some(prefix) => self.ask_filter(user_key, prefix, seqno, options),
            None => Ok(true),
        }
    }

    /// Looks up `asked`, a key or a prefix, in the filter that covers `user_key`.
    #[inline]
    fn ask_filter(
        &self,
        user_key: &[u8],
        asked: &[u8],
        seqno: SeqNo,
        options: &TableReadOptions,
    ) -> Result<bool> {
        match &self.filter {
            TableFilter::None | TableFilter::LevelDb(_) => Ok(true),
            TableFilter::Full(filter) => Ok(filter.may_contain_key(asked)),
            TableFilter::Partitioned(parts) => {
                let Some(at) = parts.find(user_key, seqno) else {
                    return Ok(true);
                };
                if let Some(filter) = parts.slots.get(at) {
                    return Ok(filter.may_contain_key(asked));
                }
                let handle = parts.index.handle(at).ok_or_else(no_such_block)?;
                if self.blocks.admit(handle, options).is_err() {
                    return Ok(true);
                }
                let filter = self.load_filter(handle)?;
                let filter = if options.fill_cache {
                    parts.slots.fill(at, Arc::new(filter))
                } else {
                    Arc::new(filter)
                };
                Ok(filter.may_contain_key(asked))
            }
        }
    }

    fn load_filter(&self, handle: BlockHandle) -> Result<FilterReader> {
        self.cache.count_miss();
        Ok(FilterReader::parse(self.blocks.meta_block(handle)?))
    }

    /// LevelDB's filter knows keys by the block they are in.
    #[inline]
    fn block_may_contain(&self, partition: &IndexPartition, at: usize, user_key: &[u8]) -> bool {
        match (&self.filter, partition.index.handle(at)) {
            (TableFilter::LevelDb(filter), Some(handle)) => {
                filter.may_contain(handle.offset, user_key)
            }
            _ => true,
        }
    }

    /// Data block `at` of `partition`, from its slot or the file.
    ///
    /// # Errors
    /// `Corruption`, `Io`, `Incomplete`.
    #[inline]
    pub(crate) fn block<'a>(
        &self,
        partition: &'a IndexPartition,
        at: usize,
        options: &TableReadOptions,
        ahead: Option<&mut ReadAhead>,
    ) -> Result<Fetched<'a, Block>> {
        if let Some(guard) = partition.slots.get(at) {
            return Ok(Fetched::InSlot(guard));
        }
        self.load_block(partition, at, options, ahead)
            .map(Fetched::Owned)
    }

    #[inline(never)]
    fn load_block(
        &self,
        partition: &IndexPartition,
        at: usize,
        options: &TableReadOptions,
        ahead: Option<&mut ReadAhead>,
    ) -> Result<Block> {
        self.cache.count_miss();
        let handle = partition.index.handle(at).ok_or_else(no_such_block)?;
        self.blocks.admit(handle, options)?;
        let room = |len| {
            if options.fill_cache {
                self.cache.draft(len, self.prefixes_max)
            } else {
                Draft::try_on_heap(len, 0)
            }
        };
        let draft = self
            .blocks
            .data_block(handle, options.verify_checksums, ahead, room)?;
        let block = parse_draft(draft).map_err(|error| self.locate(error, Some(handle)))?;
        Ok(if options.fill_cache {
            partition.slots.fill(at, block)
        } else {
            block
        })
    }

    /// Whether block `at` of the only partition is not cached.
    #[inline]
    pub(crate) fn lacks(&self, at: usize) -> bool {
        matches!(&self.index, TableIndex::Single(partition) if partition.slots.peek(at).is_none())
    }

    /// Caches block `at` of `partition`, stored as `stored`; not if it is damaged.
    pub(crate) fn keep_block(
        &self,
        (partition, at): (&IndexPartition, usize),
        handle: BlockHandle,
        stored: &[u8],
        options: &TableReadOptions,
    ) {
        let room = |len| self.cache.draft(len, self.prefixes_max);
        let unpacked = self
            .blocks
            .unpack_stored(handle, options.verify_checksums, stored, room);
        if let Ok(block) = unpacked.and_then(parse_draft) {
            self.cache.count_miss();
            partition.slots.fill(at, block);
        }
    }

    /// Run `at` of the index.
    ///
    /// # Errors
    /// `Corruption`, `Io`, `Incomplete`.
    pub(crate) fn partition(
        &self,
        at: usize,
        options: &TableReadOptions,
    ) -> Result<Arc<IndexPartition>> {
        match &self.index {
            TableIndex::Single(partition) => Ok(Arc::clone(partition)),
            TableIndex::Partitioned(parts) => self
                .partition_in_slot(parts, at, options)
                .map(Fetched::into_handle),
        }
    }

    fn partition_in_slot<'a>(
        &self,
        parts: &'a PartitionedIndex,
        at: usize,
        options: &TableReadOptions,
    ) -> Result<Fetched<'a, Arc<IndexPartition>>> {
        if let Some(guard) = parts.slots.get(at) {
            return Ok(Fetched::InSlot(guard));
        }
        self.cache.count_miss();
        let handle = parts.top.handle(at).ok_or_else(no_such_block)?;
        self.blocks.admit(handle, options)?;
        let index = parse_block(&self.blocks.meta_block(handle)?)
            .and_then(|block| {
                FlatIndex::decode(&block, parts.format, &self.order, self.blocks.limit)
            })
            .map_err(|error| self.locate(error, Some(handle)))?;
        let partition = Arc::new(IndexPartition::new(index, &self.cache));
        Ok(Fetched::Owned(if options.fill_cache {
            parts.slots.fill(at, partition)
        } else {
            partition
        }))
    }

    /// Every range tombstone in the table, as stored: by begin ascending, then newest first.
    pub fn range_tombstones(&self) -> &[RangeTombstone] {
        &self.range_tombstones
    }

    /// The table's properties.
    pub fn properties(&self) -> &TableProperties {
        &self.properties
    }

    /// About where in the file the entries at or after `internal_key` begin. Reads an index
    /// partition if it must; on failure the answer is the end of the data.
    pub fn approximate_offset(&self, internal_key: &[u8]) -> u64 {
        let at = match &self.index {
            TableIndex::Single(partition) => partition
                .index
                .handle(partition.index.find_internal(internal_key)),
            TableIndex::Partitioned(parts) => {
                let at = parts.top.find_internal(internal_key);
                let partition = self.partition_in_slot(parts, at, &TableReadOptions::default());
                partition.ok().and_then(|partition| {
                    let index = &partition.get().index;
                    index.handle(index.find_internal(internal_key))
                })
            }
        };
        at.map_or_else(|| self.data_end(), |handle| handle.offset)
    }

    /// At most `count_max` user keys that cut the table's data into parts of about one size,
    /// ascending; they need not be keys of the table. From the index in memory, nothing is read.
    pub fn key_samples(&self, count_max: usize) -> Vec<Vec<u8>> {
        let index = match &self.index {
            TableIndex::Single(partition) => &partition.index,
            TableIndex::Partitioned(parts) => &parts.top,
        };
        // The end of the last block is no cut.
        let cuts = index.len().saturating_sub(1);
        let step = index.len().div_ceil(count_max + 1).max(1);
        let cuts = (0..cuts).skip(step - 1).step_by(step);
        cuts.map(|at| index.user_separator(at).to_vec()).collect()
    }

    /// Where the data blocks end, as far as the properties tell.
    fn data_end(&self) -> u64 {
        match self.properties.data_size {
            0 => self.blocks.limit,
            bytes => bytes.min(self.blocks.limit),
        }
    }

    /// The file's size in bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Memory that index, filter, properties and range tombstones take while the table is open,
    /// charged to the budget as `TableMeta`.
    pub fn resident_bytes(&self) -> usize {
        self.resident_bytes
    }

    /// The order of the table's keys.
    pub fn order(&self) -> &KeyOrder {
        &self.order
    }

    /// Adds to `error` which file and block it met.
    #[cold]
    pub(crate) fn locate(&self, error: Error, handle: Option<BlockHandle>) -> Error {
        let error = error.with_file(&self.blocks.path);
        match handle {
            Some(handle) => error.with_offset(handle.offset),
            None => error,
        }
    }
}

/// [`visit_versions`] for orders in which the first differing byte does not decide.
fn visit_versions_slowly(
    order: &KeyOrder,
    block: &Block,
    target: PointTarget<'_>,
    mut visit: impl FnMut(u64, Range<usize>) -> ControlFlow<()>,
) -> Result<PointEnd> {
    let mut iter = BlockIter::default();
    iter.set_block(block.clone());
    iter.seek(order, &seek_key(target.user_key, target.seqno), false);
    while iter.valid() {
        let parts = split_internal(iter.key());
        let (found, tag) = parts.expect("the key of a valid cursor has a tag");
        if order.compare(found, target.user_key).is_ne() {
            return Ok(PointEnd::Done);
        }
        let (_, range) = iter.value_range().expect("a valid cursor has a block");
        if visit(tag, range).is_break() {
            return Ok(PointEnd::Done);
        }
        iter.next();
    }
    iter.status()?;
    Ok(PointEnd::BlockEnded)
}

#[cold]
fn no_such_block() -> Error {
    Error::corruption("a block number lies past the index")
}

impl Drop for BlockTable {
    fn drop(&mut self) {
        self.budget
            .release(MemoryUse::TableMeta, self.resident_bytes);
    }
}

impl std::fmt::Debug for BlockTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BlockTable")
            .field("path", &self.blocks.path)
            .field("size", &self.size)
            .finish_non_exhaustive()
    }
}
