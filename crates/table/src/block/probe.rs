//! Doors for fuzzers to decoders that have no other public path: one block at a time, without a
//! file around it. Not for users; nothing in the engine calls this.

use std::ops::ControlFlow;

use drumlin_base::{KeyOrder, Result, SeqNo};

use super::block_iter::BlockIter;
use super::builder::BlockBuilder;
use super::index::{FlatIndex, IndexFormat};
use super::layout::{Block, HASH_INDEX_BIT, parse_block};
use super::point::{PointTarget, visit_versions};
use crate::format::BlockHandle;

/// A block of `entries`, one key in `restart_interval` stored whole; with a hash index of `buckets` as
/// RocksDB's blocks may have one, unless these are none. Their content plays no part.
///
/// Requires: internal keys, ascending.
pub fn build_block(
    entries: &[(Vec<u8>, Vec<u8>)],
    restart_interval: usize,
    buckets: &[u8],
) -> Vec<u8> {
    let mut builder = BlockBuilder::new(restart_interval);
    for (key, value) in entries {
        builder.add(key, value);
    }
    let mut block = builder.into_block();
    if !buckets.is_empty() {
        let packed = block.split_off(block.len() - 4);
        block.extend_from_slice(buckets);
        block.extend_from_slice(&(buckets.len() as u16).to_le_bytes());
        block.extend_from_slice(&packed);
        if let Some(high) = block.last_mut() {
            *high |= (HASH_INDEX_BIT >> 24) as u8;
        }
    }
    block
}

/// A cursor over one data block, with the moves of [`drumlin_base::InternalIterator`].
#[derive(Debug)]
pub struct BlockProbe {
    block: Block,
    cursor: BlockIter,
}

impl BlockProbe {
    /// Parses the uncompressed `bytes` of a data block.
    ///
    /// # Errors
    /// `Corruption`.
    pub fn parse(bytes: Vec<u8>) -> Result<Self> {
        let block = parse_block(&bytes)?;
        let mut cursor = BlockIter::default();
        cursor.set_block(block.clone());
        Ok(Self { block, cursor })
    }

    /// The entry under the cursor.
    pub fn entry(&self) -> Option<(&[u8], &[u8])> {
        self.cursor
            .valid()
            .then(|| (self.cursor.key(), self.cursor.value()))
    }

    /// Why the cursor is not valid, if the block is damaged.
    ///
    /// # Errors
    /// `Corruption`.
    pub fn status(&self) -> Result<()> {
        self.cursor.status()
    }

    /// Stands on the first entry.
    pub fn seek_to_first(&mut self) {
        self.cursor.seek_to_first();
    }

    /// Stands on the last entry.
    pub fn seek_to_last(&mut self) {
        self.cursor.seek_to_last();
    }

    /// Stands on the first entry at or after `target`, found by the block's key prefixes or its restart
    /// points.
    pub fn seek(&mut self, order: &KeyOrder, target: &[u8], by_prefixes: bool) {
        self.cursor.seek(order, target, by_prefixes);
    }

    /// Moves forwards. Requires: the cursor is valid.
    pub fn next(&mut self) {
        self.cursor.next();
    }

    /// Moves backwards. Requires: the cursor is valid.
    pub fn prev(&mut self) {
        self.cursor.prev();
    }

    /// Tags and values of `user_key` at or before `seqno`, newest first.
    ///
    /// # Errors
    /// `Corruption`.
    pub fn versions(
        &self,
        user_key: &[u8],
        seqno: SeqNo,
        by_prefixes: bool,
    ) -> Result<Vec<(u64, Vec<u8>)>> {
        let target = PointTarget {
            user_key,
            seqno,
            by_prefixes,
        };
        let mut found = Vec::new();
        visit_versions(&self.block, target, |tag, value| {
            let value = self.block.bytes().get(value);
            let value = value.expect("an entry that was decoded is in its block");
            found.push((tag, value.to_vec()));
            ControlFlow::Continue(())
        })?;
        Ok(found)
    }
}

/// How the index block given to [`IndexProbe::decode`] is written.
#[derive(Clone, Copy, Debug)]
pub struct IndexShape {
    /// Separators are user keys.
    pub user_keys: bool,
    /// Values are handles or size deltas, without a length.
    pub delta_values: bool,
    /// Values end with the first key of the block.
    pub first_keys: bool,
}

/// A decoded index block.
#[derive(Debug)]
pub struct IndexProbe(FlatIndex);

impl IndexProbe {
    /// Decodes the uncompressed `bytes` of an index block of a file of `limit` bytes.
    ///
    /// # Errors
    /// `Corruption`, `NotSupported`.
    pub fn decode(bytes: Vec<u8>, shape: IndexShape, order: &KeyOrder, limit: u64) -> Result<Self> {
        let format = IndexFormat {
            user_keys: shape.user_keys,
            delta_values: shape.delta_values,
            first_keys: shape.first_keys,
        };
        FlatIndex::decode(&parse_block(&bytes)?, format, order, limit).map(Self)
    }

    /// Handle and separator of block `at`.
    pub fn entry(&self, at: usize) -> Option<(BlockHandle, &[u8])> {
        Some((self.0.handle(at)?, self.0.separator(at)))
    }

    /// The first block that may hold (`user_key`, `seqno`); the number of blocks when none may.
    pub fn find(&self, user_key: &[u8], seqno: SeqNo) -> usize {
        self.0.find(user_key, seqno)
    }
}
