//! A cursor over a table of any format.
//!
//! Each call is one `match`; see [`InternalIterator`] for the contract. Not shared between threads.

use std::sync::Arc;

use drumlin_base::{InternalIterator, PinnedSlice, Result, ValueCode};
use drumlin_fs::RandomAccessFile;

use crate::block::{BlockTableIter, Place};
use crate::plain::PlainTableIter;

/// Walks a table's entries both ways.
#[derive(Debug)]
pub enum TableIter {
    /// Over a block-based table.
    Block(BlockTableIter),
    /// Over a plain table.
    Plain(PlainTableIter),
    /// Over a searchable table.
    Searchable(Box<crate::searchable::SearchableTableIter>),
}

impl TableIter {
    /// The value under the cursor, pinned in its memory. Few bytes are copied instead; a coded value is decoded.
    ///
    /// Requires: the cursor is valid.
    #[inline]
    pub fn pin_value(&self) -> PinnedSlice {
        match self {
            Self::Block(iter) => iter.pin_value(),
            Self::Plain(iter) => iter.pin_value(),
            Self::Searchable(iter) => iter.pin_value(),
        }
    }

    /// User key and tag under the cursor, for callers that need both.
    ///
    /// Requires: the cursor is valid.
    #[inline]
    pub fn parts(&self) -> (&[u8], u64) {
        match self {
            Self::Block(iter) => iter.parts(),
            Self::Plain(iter) => iter.parts(),
            Self::Searchable(iter) => iter.parts(),
        }
    }

    /// Whether the table walked may hold a key with `key`'s prefix; see
    /// [`crate::Table::may_contain_prefix`].
    ///
    /// # Errors
    /// `Corruption`, `Io` while loading a part of a filter.
    pub fn may_contain_prefix(&self, key: &[u8]) -> Result<bool> {
        match self {
            Self::Block(iter) => iter.may_contain_prefix(key),
            Self::Plain(iter) => Ok(iter.table().may_contain_prefix(key)),
            Self::Searchable(iter) => Ok(iter.table().may_contain_prefix(key)),
        }
    }

    /// Where the entry under the cursor is, in a block-based table; see [`BlockTableIter::place`].
    pub fn place(&self) -> Option<Place> {
        match self {
            Self::Block(iter) => iter.place(),
            Self::Plain(_) | Self::Searchable(_) => None,
        }
    }

    /// Reads ahead from `file`, another handle of the table's file, where the format reads ahead.
    pub fn read_through(&mut self, file: Arc<dyn RandomAccessFile>) {
        match self {
            Self::Block(iter) => iter.read_through(file),
            // Its whole file is in memory.
            Self::Plain(_) => {}
            Self::Searchable(iter) => iter.read_through(file),
        }
    }

    /// About where in the file the entries at or after `internal_key` begin.
    pub fn approximate_offset(&self, internal_key: &[u8]) -> u64 {
        match self {
            Self::Block(iter) => iter.table().approximate_offset(internal_key),
            Self::Plain(iter) => iter.table().approximate_offset(internal_key),
            Self::Searchable(iter) => iter.table().approximate_offset(internal_key),
        }
    }
}

impl InternalIterator for TableIter {
    #[inline]
    fn valid(&self) -> bool {
        match self {
            Self::Block(iter) => iter.valid(),
            Self::Plain(iter) => iter.valid(),
            Self::Searchable(iter) => iter.valid(),
        }
    }

    fn seek_to_first(&mut self) {
        match self {
            Self::Block(iter) => iter.seek_to_first(),
            Self::Plain(iter) => iter.seek_to_first(),
            Self::Searchable(iter) => iter.seek_to_first(),
        }
    }

    fn seek_to_last(&mut self) {
        match self {
            Self::Block(iter) => iter.seek_to_last(),
            Self::Plain(iter) => iter.seek_to_last(),
            Self::Searchable(iter) => iter.seek_to_last(),
        }
    }

    #[inline]
    fn seek(&mut self, target: &[u8]) {
        match self {
            Self::Block(iter) => iter.seek(target),
            Self::Plain(iter) => iter.seek(target),
            Self::Searchable(iter) => iter.seek(target),
        }
    }

    fn seek_for_prev(&mut self, target: &[u8]) {
        match self {
            Self::Block(iter) => iter.seek_for_prev(target),
            Self::Plain(iter) => iter.seek_for_prev(target),
            Self::Searchable(iter) => iter.seek_for_prev(target),
        }
    }

    #[inline]
    fn next(&mut self) {
        match self {
            Self::Block(iter) => iter.next(),
            Self::Plain(iter) => iter.next(),
            Self::Searchable(iter) => iter.next(),
        }
    }

    #[inline]
    fn prev(&mut self) {
        match self {
            Self::Block(iter) => iter.prev(),
            Self::Plain(iter) => iter.prev(),
            Self::Searchable(iter) => iter.prev(),
        }
    }

    #[inline]
    fn key(&self) -> &[u8] {
        match self {
            Self::Block(iter) => iter.key(),
            Self::Plain(iter) => iter.key(),
            Self::Searchable(iter) => iter.key(),
        }
    }

    #[inline]
    fn key_prefix(&self) -> u64 {
        match self {
            Self::Block(iter) => iter.key_prefix(),
            Self::Plain(iter) => iter.key_prefix(),
            Self::Searchable(iter) => iter.key_prefix(),
        }
    }

    #[inline]
    fn value(&self) -> &[u8] {
        match self {
            Self::Block(iter) => iter.value(),
            Self::Plain(iter) => iter.value(),
            Self::Searchable(iter) => iter.value(),
        }
    }

    #[inline]
    fn code(&self) -> Option<ValueCode<'_>> {
        match self {
            Self::Block(_) | Self::Plain(_) => None,
            Self::Searchable(iter) => iter.code(),
        }
    }

    fn status(&self) -> Result<()> {
        match self {
            Self::Block(iter) => iter.status(),
            Self::Plain(iter) => iter.status(),
            Self::Searchable(iter) => iter.status(),
        }
    }
}
