//! An open plain table: its parts, and its properties.
//!
//! [`super::lookup`] finds one key in it, [`super::seek`] the start of a walk, and [`super::cursor`]
//! walks. Nothing in it is written but the reference count of a pin, which is striped by thread (see
//! [`ResidentBytes`]).
//!
//! Thread safety: immutable after open. The bytes live as long as the table or any value pinned in
//! it; the file's name may be removed meanwhile, its bytes may not change.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use drumlin_base::bytes::ResidentBytes;
use drumlin_base::key::user_key;
use drumlin_base::{
    Error, KeyOrder, MemoryBudget, MemoryUse, PinnedSlice, PrefixExtractor, RangeTombstone, Result,
    SeqNo,
};
use drumlin_fs::RandomAccessFile;

use super::anchors::Anchors;
use super::hash_index::HashIndex;
use super::record::Record;
use crate::format::TableProperties;

/// An open plain table. See the module for cost and thread safety.
pub struct PlainTable {
    pub(super) resident: ResidentBytes,
    /// To be read again by [`PlainTable::verify`].
    pub(super) file: Arc<dyn RandomAccessFile>,
    pub(super) path: PathBuf,
    /// Where the records end in the file.
    pub(super) records_end: usize,
    /// Point entries and different user keys, as the footer tells.
    pub(super) counts: (u64, u64),
    pub(super) keys: Option<HashIndex>,
    /// There only if `prefix` is.
    pub(super) prefixes: Option<HashIndex>,
    /// Set only when it is the extractor that the table was written with.
    pub(super) prefix: Option<Arc<dyn PrefixExtractor>>,
    pub(super) prefixes_contiguous: bool,
    pub(super) anchors: Anchors,
    pub(super) order: KeyOrder,
    pub(super) properties: TableProperties,
    pub(super) range_tombstones: Vec<RangeTombstone>,
    /// The sequence number of every entry, in an ingested table.
    pub(super) global_seqno: Option<SeqNo>,
    pub(super) budget: Arc<MemoryBudget>,
    pub(super) resident_bytes: usize,
    pub(super) size: u64,
}

impl PlainTable {
    /// Gives all entries the sequence number `seqno`: the table was made outside a database and opened before
    /// it got one.
    pub(crate) fn set_seqno(&mut self, seqno: SeqNo) {
        self.global_seqno = Some(seqno);
        for tombstone in &mut self.range_tombstones {
            tombstone.seqno = seqno;
        }
    }

    /// The file up to the end of its records.
    #[inline]
    pub(super) fn records(&self) -> &[u8] {
        let file = self.resident.bytes();
        file.get(..self.records_end)
            .expect("the footer was checked: the records are inside the file")
    }

    /// A part of a record, with the file's memory pinned.
    #[inline]
    pub(super) fn pin(&self, range: Range<usize>) -> PinnedSlice {
        let pinned = self.resident.pin(range);
        pinned.expect("a record was checked to be inside the file")
    }

    /// The record that begins at `at`.
    #[inline]
    pub(super) fn record(&self, at: usize) -> Result<Record> {
        Record::at(self.records(), at).ok_or_else(|| self.damaged(at))
    }

    #[cold]
    fn damaged(&self, at: usize) -> Error {
        Error::corruption("no record where the index says there is one")
            .with_file(&self.path)
            .with_offset(at as u64)
    }

    /// Every range tombstone in the table, as stored: by begin ascending, then newest first.
    #[inline]
    pub fn range_tombstones(&self) -> &[RangeTombstone] {
        &self.range_tombstones
    }

    /// The table's properties.
    pub fn properties(&self) -> &TableProperties {
        &self.properties
    }

    /// At most `count_max` user keys that cut the table's records into parts of about one size,
    /// ascending.
    pub fn key_samples(&self, count_max: usize) -> Vec<Vec<u8>> {
        let step = self.anchors.len().div_ceil(count_max + 1).max(1);
        let cuts = (step..self.anchors.len()).step_by(step);
        let keys = cuts.filter_map(|at| Record::at(self.records(), self.anchors.at(at)?));
        keys.map(|record| user_key(record.key(self.records())).to_vec())
            .collect()
    }

    /// The file's size in bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Memory of this process that the table takes while it is open, charged to the budget as
    /// `TableMeta`: the copy of a file of a disk, not a mapping of one in memory.
    pub fn resident_bytes(&self) -> usize {
        self.resident_bytes
    }

    /// The order of the table's keys.
    pub fn order(&self) -> &KeyOrder {
        &self.order
    }

    /// Point entries and different user keys, as the footer tells.
    pub(crate) fn counts(&self) -> (u64, u64) {
        self.counts
    }

    /// Its file's path, for messages.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for PlainTable {
    fn drop(&mut self) {
        self.budget
            .release(MemoryUse::TableMeta, self.resident_bytes);
    }
}

impl std::fmt::Debug for PlainTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PlainTable")
            .field("path", &self.path)
            .field("size", &self.size)
            .finish_non_exhaustive()
    }
}
