//! Collects separators and handles while a table is written, and makes its index blocks.
//!
//! Whether separators can be user keys is known only at the end (one user key that spans two blocks
//! forbids it), so they are kept as internal keys until then.

use drumlin_base::KeyOrder;
use drumlin_base::coding::{put_varint64, zigzag};
use drumlin_base::key::{SEQNO_MAX, ValueKind, append_internal, compare_internal, user_key};

use super::builder::BlockBuilder;
use crate::format::{BLOCK_TRAILER_BYTES, BlockHandle};

/// One separator in so many is stored whole. Our reader decodes the index once, so a small index is worth
/// more than one that is quick to search.
pub(crate) const INDEX_RESTART_INTERVAL: usize = 16;
/// Size at which a partition is ended; RocksDB's `metadata_block_size`.
const PARTITION_BYTES: usize = 4096;

/// How index blocks are to be written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IndexStyle {
    /// Values are stored without a length, as handles or size deltas (format version 4).
    pub(crate) delta_values: bool,
    /// Separators may be stored as user keys (format version 3).
    pub(crate) user_keys: bool,
}

impl IndexStyle {
    /// The style of tables of `format_version`; 0 is LevelDB's.
    pub(crate) fn of(format_version: u32) -> Self {
        Self {
            delta_values: format_version >= 4,
            user_keys: format_version >= 3,
        }
    }
}

/// The index of a table being written.
#[derive(Debug)]
pub(crate) struct IndexBuilder {
    order: KeyOrder,
    style: IndexStyle,
    /// Separators as internal keys, one behind the other.
    keys: Vec<u8>,
    ends: Vec<usize>,
    handles: Vec<BlockHandle>,
    /// No user key spans two blocks so far.
    user_keys_tell: bool,
    scratch: Vec<u8>,
}

impl IndexBuilder {
    pub(crate) fn new(order: KeyOrder, style: IndexStyle) -> Self {
        Self {
            order,
            style,
            keys: Vec::new(),
            ends: Vec::new(),
            handles: Vec::new(),
            user_keys_tell: true,
            scratch: Vec::new(),
        }
    }

    /// A block ended with `last`; the next begins with `next`, if there is one.
    pub(crate) fn push_separator(&mut self, last: &[u8], next: Option<&[u8]>) {
        let last_user = user_key(last);
        self.scratch.clear();
        self.scratch.extend_from_slice(last_user);
        if let Some(next) = next {
            let next_user = user_key(next);
            if self.order.compare(last_user, next_user).is_eq() {
                self.user_keys_tell = false;
            } else {
                self.order.shorten_separator(&mut self.scratch, next_user);
            }
        }
        // Where it was not shortened the order need not be asked: it is the program's.
        if self.scratch != last_user
            && self.scratch.len() <= last_user.len()
            && self.order.compare(last_user, &self.scratch).is_lt()
        {
            // Not the last user key of the block, so any tag sorts behind the block.
            append_internal(
                &mut self.keys,
                &self.scratch,
                SEQNO_MAX,
                ValueKind::Value as u8,
            );
        } else {
            self.keys.extend_from_slice(last);
        }
        self.ends.push(self.keys.len());
        debug_assert!(
            self.keys_ascend(),
            "separators ascend, as readers of the index claim"
        );
    }

    /// Whether the separator added last is not before the one added before it.
    fn keys_ascend(&self) -> bool {
        let Some(before) = self.ends.len().checked_sub(2) else {
            return true;
        };
        let key = |at| self.full_key(at);
        compare_internal(&self.order, key(before), key(before + 1)).is_le()
    }

    /// The next block in order was written at `handle`.
    pub(crate) fn push_handle(&mut self, handle: BlockHandle) {
        let end = self
            .handles
            .last()
            .map_or(Some(0), |last| last.end_with_trailer());
        assert!(
            end.is_some_and(|end| end <= handle.offset),
            "blocks are written one behind the other"
        );
        self.handles.push(handle);
        assert!(
            self.handles.len() <= self.ends.len(),
            "a block is written after its separator is known"
        );
    }

    /// Blocks written so far.
    pub(crate) fn blocks(&self) -> usize {
        self.handles.len()
    }

    /// Whether separators are stored as user keys, as far as is known now.
    pub(crate) fn stores_user_keys(&self) -> bool {
        self.style.user_keys && self.user_keys_tell
    }

    /// About how many bytes the index will take.
    pub(crate) fn size_estimate(&self) -> usize {
        self.keys.len() + 12 * self.handles.len()
    }

    /// The whole index as one block.
    ///
    /// Requires: as many handles as separators.
    pub(crate) fn finish(&self) -> Vec<u8> {
        assert_eq!(
            self.ends.len(),
            self.handles.len(),
            "one separator per block"
        );
        let mut out = IndexBlockBuilder::new(self.style, INDEX_RESTART_INTERVAL);
        for (at, handle) in self.handles.iter().enumerate() {
            out.add(self.stored(at), *handle);
        }
        out.finish()
    }

    /// The index in partitions: each block, and the separator behind it for the top level.
    pub(crate) fn finish_partitions(&self) -> Vec<(Vec<u8>, Vec<u8>)> {
        assert_eq!(
            self.ends.len(),
            self.handles.len(),
            "one separator per block"
        );
        let mut partitions = Vec::new();
        let mut out = IndexBlockBuilder::new(self.style, INDEX_RESTART_INTERVAL);
        for (at, handle) in self.handles.iter().enumerate() {
            out.add(self.stored(at), *handle);
            if out.size() >= PARTITION_BYTES || at + 1 == self.handles.len() {
                let full = std::mem::replace(
                    &mut out,
                    IndexBlockBuilder::new(self.style, INDEX_RESTART_INTERVAL),
                );
                partitions.push((full.finish(), self.stored(at).to_vec()));
            }
        }
        partitions
    }

    /// Separator `at` as an internal key.
    fn full_key(&self, at: usize) -> &[u8] {
        let end = |at: usize| *self.ends.get(at).expect("a separator for each block");
        let start = at.checked_sub(1).map_or(0, end);
        let separator = self.keys.get(start..end(at));
        separator.expect("separators are kept one behind the other")
    }

    /// Separator `at` as it is stored.
    fn stored(&self, at: usize) -> &[u8] {
        let separator = self.full_key(at);
        if self.stores_user_keys() {
            user_key(separator)
        } else {
            separator
        }
    }
}

/// One index block: of data blocks, of index partitions or of filter partitions.
#[derive(Debug)]
pub(crate) struct IndexBlockBuilder {
    block: BlockBuilder,
    delta_values: bool,
    last: Option<BlockHandle>,
}

impl IndexBlockBuilder {
    pub(crate) fn new(style: IndexStyle, restart_interval: usize) -> Self {
        // LevelDB and format versions below 4 store every separator whole, as their writers do.
        let interval = if style.delta_values {
            restart_interval
        } else {
            1
        };
        Self {
            block: BlockBuilder::new(interval),
            delta_values: style.delta_values,
            last: None,
        }
    }

    pub(crate) fn add(&mut self, separator: &[u8], handle: BlockHandle) {
        let mut full = Vec::with_capacity(crate::format::BLOCK_HANDLE_BYTES_MAX);
        handle.encode(&mut full);
        if !self.delta_values {
            self.block.add(separator, &full);
            return;
        }
        // A block right behind the last is stored as the difference of their sizes; no other can be.
        let delta = self
            .last
            .filter(|last| last.offset + last.size + BLOCK_TRAILER_BYTES as u64 == handle.offset);
        let delta = delta.map(|last| {
            let mut delta = Vec::new();
            put_varint64(&mut delta, zigzag(handle.size as i64 - last.size as i64));
            delta
        });
        self.block.add_index(separator, &full, delta.as_deref());
        self.last = Some(handle);
    }

    pub(crate) fn size(&self) -> usize {
        self.block.size()
    }

    pub(crate) fn finish(self) -> Vec<u8> {
        self.block.into_block()
    }
}
