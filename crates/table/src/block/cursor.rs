//! A cursor over a whole table.
//!
//! It pins the block it stands in and the index partition that led to it, so that neither eviction nor
//! closing the table moves anything under it. Within a block a step is the block cursor's; the index
//! is not searched again to find the next block.

use std::sync::Arc;

use drumlin_base::key::{compare_internal, pack_tag, split_internal, tag_kind, user_key};
use drumlin_base::{Error, InternalIterator, PinnedSlice, Result, SEQNO_MAX, SeqNo};
use drumlin_fs::RandomAccessFile;

use super::block_iter::BlockIter;
use super::partition::IndexPartition;
use super::place::Place;
use super::table::{BlockTable, LOOKUP_LINES, TableIndex};
use crate::cache::{Fetched, ReadAhead};
use crate::options::TableReadOptions;

/// Bytes that memory is loaded in.
const CACHE_LINE_BYTES: usize = 64;

/// Walks a table's entries both ways. Not shared between threads; see [`InternalIterator`] for the
/// contract.
pub struct BlockTableIter {
    table: Arc<BlockTable>,
    options: TableReadOptions,
    partition: Option<Arc<IndexPartition>>,
    partition_at: usize,
    block_at: usize,
    block: BlockIter,
    /// The present block was cached before the cursor came to it.
    in_slot: bool,
    ahead: ReadAhead,
    error: Option<Error>,
    global_seqno: Option<SeqNo>,
    /// The present key with the table's global sequence number in it, if it has one.
    patched: Vec<u8>,
}

impl BlockTable {
    /// A cursor over the table's entries, not yet positioned.
    pub fn iter(self: &Arc<Self>, options: TableReadOptions) -> BlockTableIter {
        BlockTableIter::new(Arc::clone(self), options)
    }
}

impl BlockTableIter {
    pub(crate) fn new(table: Arc<BlockTable>, options: TableReadOptions) -> Self {
        Self {
            options,
            partition: None,
            partition_at: 0,
            block_at: 0,
            block: BlockIter::default(),
            in_slot: false,
            ahead: ReadAhead::new(options.readahead_bytes),
            error: None,
            global_seqno: table.global_seqno,
            patched: Vec::new(),
            table,
        }
    }

    /// The value under the cursor with its block kept in memory; copied if it is small.
    ///
    /// Requires: the cursor is valid.
    pub fn pin_value(&self) -> PinnedSlice {
        let (block, range) = self
            .block
            .value_range()
            .expect("a valid cursor has a block");
        PinnedSlice::of_shared(block, range).expect("an entry that was decoded is in its block")
    }

    /// User key and tag under the cursor, for callers that need both.
    ///
    /// Requires: the cursor is valid.
    #[inline]
    pub fn parts(&self) -> (&[u8], u64) {
        split_internal(self.key()).expect("the key of a valid cursor has a tag")
    }

    /// Where the entry under the cursor is, for [`BlockTable::visit_before`]. `None` where there is none, and of
    /// an entry that takes over bytes of the tag before it: a visit cannot begin there.
    pub fn place(&self) -> Option<Place> {
        Some(Place {
            partition: u32::try_from(self.partition_at).ok()?,
            block: u32::try_from(self.block_at).ok()?,
            at: u32::try_from(self.block.at_with_own_tag()?).ok()?,
        })
    }

    /// Reads ahead from `file`, another handle of the table's file, such as one that bypasses the page cache.
    /// Other reads go to the table's own handle.
    pub fn read_through(&mut self, file: Arc<dyn RandomAccessFile>) {
        self.ahead.through(file);
    }

    /// The table walked.
    pub fn table(&self) -> &Arc<BlockTable> {
        &self.table
    }

    /// As [`BlockTable::may_contain_prefix`], read as the cursor reads: true where it may not read the
    /// part of the filter that would tell.
    ///
    /// # Errors
    /// `Corruption`, `Io` while loading a part of a filter.
    pub fn may_contain_prefix(&self, key: &[u8]) -> Result<bool> {
        self.table.may_contain_prefix_for(key, &self.options)
    }

    /// Goes to block `at` of the present partition. False when it could not be read; the error is kept.
    fn enter_block(&mut self, at: usize) -> bool {
        let Some(partition) = &self.partition else {
            return false;
        };
        self.block_at = at;
        let block = self
            .table
            .block(partition, at, &self.options, Some(&mut self.ahead))
            .map(|block| (matches!(block, Fetched::InSlot(_)), block.into_handle()));
        match block {
            Ok((in_slot, block)) => {
                self.in_slot = in_slot;
                if let (true, Some(handle)) = (self.in_slot, partition.index.handle(at)) {
                    let len = handle.size_with_trailer().unwrap_or(0);
                    self.ahead.skip(handle.offset, len);
                }
                self.block.set_block(block);
                true
            }
            Err(error) => {
                self.fail(error);
                false
            }
        }
    }

    /// Goes to partition `at`. False when it could not be read; the error is kept.
    fn enter_partition(&mut self, at: usize) -> bool {
        if self.partition.is_some() && self.partition_at == at {
            return true;
        }
        match self.table.partition(at, &self.options) {
            Ok(partition) => {
                self.partition = Some(partition);
                self.partition_at = at;
                true
            }
            Err(error) => {
                self.fail(error);
                false
            }
        }
    }

    /// Loads every cache line of a block that was in the cache already. A walk through it would wait
    /// for memory at one line after the other; these loads wait side by side.
    fn warm(&self) {
        let Some(block) = self.block.block().filter(|_| self.in_slot) else {
            return;
        };
        let lines = block.bytes().iter().step_by(CACHE_LINE_BYTES);
        std::hint::black_box(lines.fold(0, |sum, byte| sum ^ byte));
    }

    fn fail(&mut self, error: Error) {
        self.block.clear();
        self.error = Some(error);
    }

    /// Keeps the block cursor's error, if it ended on one.
    fn take_block_error(&mut self) -> bool {
        match self.block.status() {
            Ok(()) => false,
            Err(error) => {
                let handle = self
                    .partition
                    .as_ref()
                    .and_then(|r| r.index.handle(self.block_at));
                let error = self.table.locate(error, handle);
                self.fail(error);
                true
            }
        }
    }

    /// Number of blocks in the present partition.
    fn blocks(&self) -> usize {
        self.partition
            .as_ref()
            .map_or(0, |partition| partition.index.len())
    }

    /// From the end of a block to the first entry of a block after it.
    #[inline(never)]
    fn cross_forward(&mut self) {
        while !self.block.valid() {
            if self.take_block_error() {
                return;
            }
            if self.block_at + 1 < self.blocks() {
                if !self.enter_block(self.block_at + 1) {
                    return;
                }
            } else if !self.enter_next_partition() {
                return;
            }
            self.warm();
            self.block.seek_to_first();
        }
    }

    /// The first block of the next partition that has one.
    fn enter_next_partition(&mut self) -> bool {
        for at in self.partition_at + 1..self.table.index.partitions() {
            if !self.enter_partition(at) {
                return false;
            }
            if self.blocks() > 0 {
                return self.enter_block(0);
            }
        }
        self.block.clear();
        false
    }

    /// From the front of a block to the last entry of a block before it.
    #[inline(never)]
    fn cross_backward(&mut self) {
        while !self.block.valid() {
            if self.take_block_error() {
                return;
            }
            if let Some(before) = self.block_at.checked_sub(1) {
                if !self.enter_block(before) {
                    return;
                }
            } else if !self.enter_partition_before() {
                return;
            }
            self.warm();
            self.block.seek_to_last();
        }
    }

    /// The last block of the partition before that has one.
    fn enter_partition_before(&mut self) -> bool {
        for at in (0..self.partition_at).rev() {
            if !self.enter_partition(at) {
                return false;
            }
            if let Some(last) = self.blocks().checked_sub(1) {
                return self.enter_block(last);
            }
        }
        self.block.clear();
        false
    }

    /// Forgets where the cursor was and any error.
    fn reset(&mut self) {
        self.error = None;
        self.block.clear();
    }

    /// Puts the global sequence number into the present key.
    #[inline(never)]
    fn patch(&mut self, global: SeqNo) {
        if !self.block.valid() {
            return;
        }
        let parts = split_internal(self.block.key());
        let (user_key, tag) = parts.expect("the key of a valid cursor has a tag");
        self.patched.clear();
        self.patched.extend_from_slice(user_key);
        let tag = pack_tag(global.min(SEQNO_MAX), tag_kind(tag));
        self.patched.extend_from_slice(&tag.to_le_bytes());
    }

    #[inline]
    fn settle(&mut self) {
        if let Some(global) = self.global_seqno {
            self.patch(global);
        }
    }

    /// Stands on the first stored entry at or after `target`.
    fn seek_stored(&mut self, target: &[u8]) {
        self.reset();
        let partition_at = match &self.table.index {
            TableIndex::Single(_) => 0,
            TableIndex::Partitioned(parts) => parts.top.find_internal(target),
        };
        if partition_at >= self.table.index.partitions() || !self.enter_partition(partition_at) {
            return;
        }
        let Some(partition) = &self.partition else {
            return;
        };
        let at = partition.index.find_internal(target);
        if at < partition.index.len() {
            if !self.enter_block(at) {
                return;
            }
            if let Some(block) = self.block.block().filter(|_| self.in_slot) {
                block.prefetch(LOOKUP_LINES);
            }
            self.block.seek(&self.table.order, target, self.in_slot);
        } else {
            // The partition ends before the target, although its separator is not before it.
            self.block_at = at;
        }
        if !self.block.valid() {
            self.cross_forward();
        }
    }
}

impl InternalIterator for BlockTableIter {
    #[inline]
    fn valid(&self) -> bool {
        self.block.valid()
    }

    fn seek_to_first(&mut self) {
        self.reset();
        if self.table.index.partitions() > 0 && self.enter_partition(0) {
            if self.blocks() == 0 {
                self.block_at = 0;
            } else if self.enter_block(0) {
                self.block.seek_to_first();
            } else {
                return;
            }
            self.cross_forward();
        }
        self.settle();
    }

    fn seek_to_last(&mut self) {
        self.reset();
        let Some(last_partition) = self.table.index.partitions().checked_sub(1) else {
            return;
        };
        if self.enter_partition(last_partition) {
            match self.blocks().checked_sub(1) {
                None => self.block_at = 0,
                Some(last) => {
                    if !self.enter_block(last) {
                        return;
                    }
                    self.block.seek_to_last();
                }
            }
            self.cross_backward();
        }
        self.settle();
    }

    fn seek(&mut self, target: &[u8]) {
        let Some(global) = self.global_seqno else {
            return self.seek_stored(target);
        };
        // Stored entries have other sequence numbers than they show: start at the key's first
        // version and go on from there.
        let first = drumlin_base::key::seek_key(user_key(target), SEQNO_MAX);
        self.seek_stored(&first);
        self.patch(global);
        while self.block.valid()
            && compare_internal(&self.table.order, &self.patched, target).is_lt()
        {
            self.next();
        }
    }

    fn seek_for_prev(&mut self, target: &[u8]) {
        self.seek(target);
        if self.error.is_some() {
            return;
        }
        if !self.valid() {
            self.seek_to_last();
        } else if compare_internal(&self.table.order, self.key(), target).is_gt() {
            self.prev();
        }
    }

    #[inline]
    fn next(&mut self) {
        debug_assert!(self.valid());
        self.block.next();
        if !self.block.valid() {
            self.cross_forward();
        }
        self.settle();
    }

    fn prev(&mut self) {
        debug_assert!(self.valid());
        self.block.prev();
        if !self.block.valid() {
            self.cross_backward();
        }
        self.settle();
    }

    #[inline]
    fn key(&self) -> &[u8] {
        match self.global_seqno {
            None => self.block.key(),
            Some(_) => &self.patched,
        }
    }

    #[inline]
    fn key_prefix(&self) -> u64 {
        self.block.key_prefix()
    }

    #[inline]
    fn value(&self) -> &[u8] {
        self.block.value()
    }

    fn status(&self) -> Result<()> {
        match &self.error {
            Some(error) => Err(error.duplicate()),
            None => Ok(()),
        }
    }
}

impl std::fmt::Debug for BlockTableIter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BlockTableIter")
            .field("table", &self.table)
            .field("valid", &self.valid())
            .finish_non_exhaustive()
    }
}
