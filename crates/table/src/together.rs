//! Reads together the pages and blocks that a batch of lookups lacks.
//!
//! After their steps ([`crate::Hint`]) many lookups know the page or block they need and that it is not
//! cached. One after the other, each would wait for the disk by itself. Here all of them are read at once
//! and cached, where the lookups find them. A block that cannot be read or is damaged is left out: the
//! lookup that needs it reads it again and reports the error.

use std::sync::Arc;

use drumlin_base::bytes::Draft;
use drumlin_fs::ReadQueue;

use crate::block::IndexPartition;
use crate::block::{BlockTable, TableIndex};
use crate::format::BlockHandle;
use crate::hint::{Hint, Known};
use crate::options::{ReadTier, TableReadOptions};
use crate::searchable::{PageMeta, SearchableTable};
use crate::table::Table;

/// Larger blocks are left to the lookup, because all blocks read together are in memory together.
const PART_BYTES_MAX: usize = 1 << 20;

impl Table {
    /// Whether a lookup after the steps of `hint` would have to read the file.
    #[inline]
    pub fn lacks(&self, hint: &Hint) -> bool {
        match (self, hint.known) {
            (Self::Block(table), Known::Block(at)) => table.lacks(at),
            (Self::Searchable(table), Known::Row(place)) => table.lacks(place.page),
            _ => false,
        }
    }

    /// The read that a lookup after the steps of `hint` would make.
    fn pending_read(&self, hint: &Hint, options: &TableReadOptions) -> Option<PendingRead<'_>> {
        let (source, buffer) = match (self, hint.known) {
            (Self::Block(table), Known::Block(at)) => {
                let TableIndex::Single(partition) = &table.index else {
                    return None;
                };
                let handle = partition.index.handle(at)?;
                let len = table.blocks.stored_len(handle).ok()?;
                let buffer = Buffer::Stored(vec![0; Some(len).filter(|&l| l <= PART_BYTES_MAX)?]);
                let partition = partition.as_ref();
                (ReadSource::Block(table, partition, at, handle), buffer)
            }
            (Self::Searchable(table), Known::Row(row)) => {
                let offset = table.page_offset(row.page)?;
                let buffer = Buffer::Page(table.page_draft(options).ok()?);
                (ReadSource::Page(table, row.page, offset), buffer)
            }
            _ => return None,
        };
        Some(PendingRead { source, buffer })
    }
}

/// Reads into the cache the pages that lookups in these tables lack after the steps of their hints;
/// keys ascend within a table. Does nothing if reads or caching are not allowed.
pub fn read_together(lookups: &[(Arc<Table>, Hint)], options: &TableReadOptions) {
    if options.tier != ReadTier::Disk || !options.fill_cache {
        return;
    }
    let mut reads: Vec<PendingRead<'_>> = Vec::with_capacity(lookups.len());
    for (table, hint) in lookups {
        // Keys ascend, so those of one page come one after the other.
        if let Some(read) = table.pending_read(hint, options)
            && reads
                .last()
                .is_none_or(|last| !last.source.is(&read.source))
        {
            reads.push(read);
        }
    }
    let mut queue = ReadQueue::with_capacity(reads.len());
    for PendingRead { source, buffer } in &mut reads {
        match *source {
            ReadSource::Block(table, _, _, handle) => {
                let file = &*table.blocks.file;
                file.queue_read(handle.offset, buffer.bytes_mut(), &mut queue);
            }
            ReadSource::Page(table, _, offset) => {
                table
                    .file
                    .queue_read(offset, buffer.bytes_mut(), &mut queue);
            }
        }
    }
    let outcomes = queue.run();
    for (read, outcome) in reads.into_iter().zip(outcomes) {
        let len = read.buffer.bytes().len();
        if outcome.is_ok_and(|read| read == len) {
            read.keep(options);
        }
    }
}

/// A page or block on its way to the cache.
struct PendingRead<'a> {
    source: ReadSource<'a>,
    buffer: Buffer,
}

/// Where it is.
enum ReadSource<'a> {
    Block(&'a BlockTable, &'a IndexPartition, usize, BlockHandle),
    Page(&'a SearchableTable, u32, u64),
}

/// Where it is read to.
enum Buffer {
    /// To be decompressed.
    Stored(Vec<u8>),
    /// As it is kept.
    Page(Draft<PageMeta>),
}

impl PendingRead<'_> {
    /// Puts it into the cache, if it is sound.
    fn keep(self, options: &TableReadOptions) {
        match (self.source, self.buffer) {
            (ReadSource::Block(table, partition, at, handle), Buffer::Stored(stored)) => {
                table.keep_block((partition, at), handle, &stored, options);
            }
            (ReadSource::Page(table, at, _), Buffer::Page(draft)) => {
                table.keep_page(at, draft, options);
            }
            _ => {}
        }
    }
}

impl ReadSource<'_> {
    fn is(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Block(_, partition, at, _), Self::Block(_, other_partition, other_at, _)) => {
                std::ptr::eq(*partition, *other_partition) && at == other_at
            }
            (Self::Page(table, at, _), Self::Page(other, other_at, _)) => {
                std::ptr::eq(*table, *other) && at == other_at
            }
            _ => false,
        }
    }
}

impl Buffer {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Stored(stored) => stored,
            Self::Page(draft) => draft.bytes(),
        }
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        match self {
            Self::Stored(stored) => stored,
            Self::Page(draft) => draft.bytes_mut(),
        }
    }
}
