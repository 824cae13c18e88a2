//! The engine's knowledge of one table file without opening it.

use std::fmt;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use drumlin_base::budget::Charge;
use drumlin_base::bytes::HazardPtr;
use drumlin_base::key::{append_internal, compare_internal, user_key};
use drumlin_base::{
    KeyOrder, MemoryBudget, MemoryUse, RangeTombstone, Result, SEQNO_MAX, SeqNo, ValueKind,
};
use drumlin_table::{Table, TableProperties};

use super::key_ranks::{KeyRanks, Ranked};
use crate::iter::range_tombstone::Fragments;

/// A table with fewer entries than this is not worth compacting for its tombstones.
const TOMBSTONED_ENTRIES_MIN: u64 = 128;

/// Dead entries walked over that are no reason yet: some 30 milliseconds of walking.
const DEAD_WALKED_MIN: u64 = 1 << 20;

/// Bytes that are rewritten about as fast as a walk passes one entry.
const BYTES_PER_STEP: u64 = 8;

/// A checksum over a whole file, under the name of the function that made it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileChecksum {
    /// The function's stored name.
    pub function: String,
    /// The function's result.
    pub bytes: Vec<u8>,
}

/// One table as the MANIFEST describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewFile {
    /// The number in the file's name.
    pub number: u64,
    /// Size in bytes.
    pub size: u64,
    /// The smallest internal key, range tombstones included.
    pub smallest: Vec<u8>,
    /// The largest internal key, range tombstones included.
    pub largest: Vec<u8>,
    /// The lowest sequence number inside; 0 when unknown (LevelDB).
    pub smallest_seqno: SeqNo,
    /// The highest sequence number inside; 0 when unknown (LevelDB).
    pub largest_seqno: SeqNo,
    /// Orders the tables of L0: a higher epoch is newer. 0 when unknown; a recovered version holds
    /// no unknown epoch.
    pub epoch: u64,
    /// Unix seconds at which the file was made; 0 when unknown.
    pub creation_time: u64,
    /// Unix seconds at which the oldest data inside was first flushed; 0 when unknown.
    pub oldest_ancestor_time: u64,
    /// The lowest number of a blob file that the table refers to; 0 for none.
    pub oldest_blob_file: u64,
    /// The numbers of all blob files that the table refers to, ascending; `None` when unknown. Not
    /// in the MANIFEST: only tables written since the database was opened are known.
    pub blob_files: Option<Arc<[u64]>>,
    /// Whether its writer asked for it to be compacted.
    pub marked_for_compaction: bool,
    /// RocksDB's unique id of the file, if its writer gave one.
    pub unique_id: Option<[u8; 16]>,
    /// Bytes from the start of the meta blocks to the end; 0 when unknown.
    pub tail_size: u64,
    /// Bytes that range deletions inside are thought to delete elsewhere; 0 when unknown.
    pub compensated_range_deletion_bytes: u64,
    /// A checksum over the whole file, if its writer kept one.
    pub checksum: Option<FileChecksum>,
    /// The id of the model file that the table names, if it names one and its writer recorded it.
    pub model: Option<u64>,
    /// RocksDB's temperature of the file; 0 when unknown. Kept, not used.
    pub temperature: u8,
    /// What the table says of itself, for listeners. Not in the MANIFEST: only who wrote it knows, until the table is installed.
    pub properties: Option<Arc<TableProperties>>,
}

impl NewFile {
    /// The user key of [`NewFile::smallest`].
    #[inline]
    pub fn smallest_user_key(&self) -> &[u8] {
        user_key(&self.smallest)
    }

    /// The user key of [`NewFile::largest`].
    #[inline]
    pub fn largest_user_key(&self) -> &[u8] {
        user_key(&self.largest)
    }

    /// Whether the table may refer to blob file `number`.
    pub fn may_refer_to(&self, number: u64) -> bool {
        let from = self.oldest_blob_file;
        from != 0
            && from <= number
            && self
                .blob_files
                .as_ref()
                .is_none_or(|files| files.binary_search(&number).is_ok())
    }

    /// Has the bounds take in the internal keys from `smallest` to `largest`; empty bounds hold nothing yet.
    pub fn widen(&mut self, order: &KeyOrder, smallest: &[u8], largest: &[u8]) {
        if self.smallest.is_empty() || compare_internal(order, smallest, &self.smallest).is_lt() {
            self.smallest = smallest.to_vec();
        }
        if self.largest.is_empty() || compare_internal(order, largest, &self.largest).is_gt() {
            self.largest = largest.to_vec();
        }
    }

    /// Has the bounds take in `tombstone`, whose end is itself not covered.
    pub fn widen_by_range(&mut self, order: &KeyOrder, tombstone: &RangeTombstone) {
        let (mut begin, mut end) = (Vec::new(), Vec::new());
        let kind = ValueKind::RangeDeletion as u8;
        append_internal(&mut begin, &tombstone.begin, tombstone.seqno, kind);
        append_internal(&mut end, &tombstone.end, SEQNO_MAX, kind);
        self.widen(order, &begin, &end);
    }

    /// Whether `user_key` is within the file's bounds.
    #[inline]
    pub fn may_hold(&self, order: &KeyOrder, user_key: &[u8]) -> bool {
        order.compare(user_key, self.smallest_user_key()).is_ge()
            && order.compare(user_key, self.largest_user_key()).is_le()
    }
}

/// One live table: the MANIFEST's description of it (reached by dereference), and its state in memory.
///
/// Shared by every version that holds the table, also across levels when it is moved without being
/// rewritten. While any `Arc<FileMeta>` lives the file is not deleted. Immutable but for
/// [`FileMeta::table`] and the claim of a compaction, both of which any thread may change.
pub struct FileMeta {
    file: NewFile,
    compacting: AtomicBool,
    /// The open table, filled and emptied by the table cache.
    pub table: HazardPtr<Arc<Table>>,
    /// Whether the table, once it was open, turned out to hold little but tombstones.
    is_mostly_tombstones: AtomicBool,
    /// Dead entries that walks stepped over in a row in this table.
    dead_walked: AtomicU64,
    /// See [`FileMeta::charge_reads`].
    read_charge: Apart,
    /// The model that the table names, found out later than from the MANIFEST.
    noted_model: OnceLock<u64>,
    /// The range tombstones inside that count, once the table was open and if it has any.
    fragments: OnceLock<Fragments>,
    /// See [`FileMeta::counts`].
    counts: OnceLock<EntryCounts>,
    /// See [`FileMeta::ranks_of`].
    ranks: OnceLock<KeyRanks>,
}

/// How many entries a table has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntryCounts {
    /// All of them.
    pub entries: u64,
    /// Those that delete.
    pub deletions: u64,
    /// Bytes of their keys as they are stored: with eight of number and kind each.
    pub key_bytes: u64,
    /// Bytes of their values; of one in a blob file those of the reference.
    pub value_bytes: u64,
}

impl FileMeta {
    /// A closed table that no compaction has claimed.
    pub fn new(file: NewFile) -> Self {
        Self {
            file: NewFile {
                properties: None,
                ..file
            },
            compacting: AtomicBool::new(false),
            table: HazardPtr::empty(),
            is_mostly_tombstones: AtomicBool::new(false),
            dead_walked: AtomicU64::new(0),
            read_charge: Apart::default(),
            noted_model: OnceLock::new(),
            fragments: OnceLock::new(),
            counts: OnceLock::new(),
            ranks: OnceLock::new(),
        }
    }

    /// The ranks of the keys of `table`, which is this file opened. Learned at the first call by reading it, charged to
    /// `budget` and kept while the file lives.
    ///
    /// # Errors
    /// As [`KeyRanks::learn`].
    pub fn ranks_of(&self, table: &Table, budget: &Arc<MemoryBudget>) -> Result<&KeyRanks> {
        if let Some(known) = self.ranks.get() {
            return Ok(known);
        }
        let ranked = Ranked {
            table,
            fragments: self.fragments_of(table.order(), table),
        };
        let charge = Charge::new(Arc::clone(budget), MemoryUse::TableMeta);
        let learned = KeyRanks::learn(ranked, charge)?;
        Ok(self.ranks.get_or_init(|| learned))
    }

    /// The ranks that [`FileMeta::ranks_of`] learned.
    pub fn ranks(&self) -> Option<&KeyRanks> {
        self.ranks.get()
    }

    /// The range tombstones inside that count, cut to the file's bounds; `None` when `table`, which
    /// is this file opened, has none. Made at the first call, kept while the file lives.
    #[inline]
    pub fn fragments_of(&self, order: &KeyOrder, table: &Table) -> Option<&Fragments> {
        let tombstones = table.range_tombstones();
        if tombstones.is_empty() {
            return None;
        }
        let fragments = self.fragments.get_or_init(|| {
            Fragments::within_file(order, tombstones, &self.file.smallest, &self.file.largest)
        });
        Some(fragments)
    }

    /// The result of [`FileMeta::fragments_of`]; `None` while it has not been called.
    #[inline]
    pub fn fragments(&self) -> Option<&Fragments> {
        self.fragments.get()
    }

    /// Takes over the `properties` of the table.
    pub fn note_properties(&self, properties: &TableProperties) -> EntryCounts {
        let (entries, dead) = (properties.num_entries, properties.num_deletions);
        if entries >= TOMBSTONED_ENTRIES_MIN && dead > entries / 4 * 3 {
            self.is_mostly_tombstones.store(true, Ordering::Relaxed);
        }
        *self.counts.get_or_init(|| EntryCounts {
            entries,
            deletions: dead,
            key_bytes: properties.raw_key_size,
            value_bytes: properties.raw_value_size,
        })
    }

    /// How many entries the table has, if it was open since the database was, or its properties read.
    pub fn counts(&self) -> Option<EntryCounts> {
        self.counts.get().copied()
    }

    /// The id of the model in a file of its own that the table names, as far as is known.
    pub fn model(&self) -> Option<u64> {
        self.file.model.or_else(|| self.noted_model.get().copied())
    }

    /// Notes that the table names the model `id`, which the MANIFEST does not record: another engine may
    /// have written it anew.
    pub fn note_model(&self, id: u64) {
        let known = *self.noted_model.get_or_init(|| id);
        debug_assert_eq!(known, id, "a table names one model");
    }

    /// Whether more than three quarters of the table's entries are tombstones, as far as is known.
    #[inline]
    pub fn is_mostly_tombstones(&self) -> bool {
        self.is_mostly_tombstones.load(Ordering::Relaxed)
    }

    /// Counts `entries` that a walk stepped over to no avail.
    pub fn note_dead_walked(&self, entries: u64) {
        self.dead_walked.fetch_add(entries, Ordering::Relaxed);
    }

    /// Whether walks wasted more time here than it takes to rewrite the table.
    #[inline]
    pub fn is_wasteful(&self) -> bool {
        let wasted = self.dead_walked.load(Ordering::Relaxed);
        wasted >= DEAD_WALKED_MIN.max(self.file.size / BYTES_PER_STEP)
    }

    /// Charges the table with reads that had to look into it before an older run answered them, or
    /// to merge it with one: `bytes` is the rewriting that sparing them is worth.
    #[inline]
    pub fn charge_reads(&self, bytes: u64) {
        self.read_charge.0.fetch_add(bytes, Ordering::Relaxed);
    }

    /// The sum of [`FileMeta::charge_reads`].
    #[inline]
    pub fn read_charge(&self) -> u64 {
        self.read_charge.0.load(Ordering::Relaxed)
    }

    /// Starts the account of [`FileMeta::charge_reads`] anew.
    pub fn forget_reads(&self) {
        self.read_charge.0.store(0, Ordering::Relaxed);
    }

    /// The MANIFEST's description of the file.
    pub fn described(&self) -> &NewFile {
        &self.file
    }

    /// Whether a compaction has claimed the table as input.
    pub fn is_compacting(&self) -> bool {
        self.compacting.load(Ordering::Acquire)
    }

    /// Claims the table for a compaction; false when another one has it.
    #[must_use]
    pub fn claim(&self) -> bool {
        // Pairs with the release in `release_claim`: the next owner sees the former one's changes to the
        // table's bookkeeping.
        self.compacting
            .compare_exchange(false, true, Ordering::AcqRel, Ordering::Acquire)
            .is_ok()
    }

    /// Gives the claim back.
    pub fn release_claim(&self) {
        let was = self.compacting.swap(false, Ordering::Release);
        debug_assert!(was, "a claim is given back once, by its owner");
    }
}

/// A counter on cache lines of its own: adding to it does not evict its neighbours from other cores' caches.
#[repr(align(128))]
#[derive(Default)]
struct Apart(AtomicU64);

impl Deref for FileMeta {
    type Target = NewFile;

    #[inline]
    fn deref(&self) -> &NewFile {
        &self.file
    }
}

impl From<NewFile> for FileMeta {
    fn from(file: NewFile) -> Self {
        Self::new(file)
    }
}

impl fmt::Debug for FileMeta {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileMeta")
            .field("file", &self.file)
            .field("compacting", &self.is_compacting())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_claimed_by_one_compaction_at_a_time() {
        let file = FileMeta::new(NewFile::default());
        assert!(file.claim());
        assert!(!file.claim());
        file.release_claim();
        assert!(file.claim());
    }
}
