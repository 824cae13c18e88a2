//! Checking a whole table against itself.

use std::sync::Arc;

use drumlin_base::key::{ParsedKey, ValueKind, compare_internal, user_key};
use drumlin_base::{Error, InternalIterator, KeyOrder, MemoryBudget, Result};

use crate::block::BlockTable;
use crate::block::BlockTableIter;
use crate::cache::BlockCache;
use crate::format::TableProperties;
use crate::format::TableStyle;
use crate::options::{TableReadOptions, TableReaderOptions};
use crate::plain::PlainTable;

/// The cache verification reads through, for index and filter partitions.
const OWN_CACHE_BYTES: usize = 8 << 20;

/// What verification counts on its way.
#[derive(Default)]
pub(crate) struct Counted {
    pub(crate) entries: u64,
    deletions: u64,
    merges: u64,
    pub(crate) blobs: u64,
    pub(crate) user_keys: u64,
}

impl Counted {
    /// Walks all entries of `iter`: they must parse and ascend, and `is_found` tell of each entry's user
    /// key that a lookup comes to it.
    pub(crate) fn walk<I: InternalIterator>(
        iter: &mut I,
        order: &KeyOrder,
        is_found: impl Fn(&I, &[u8]) -> Result<bool>,
    ) -> Result<Self> {
        let mut counted = Self::default();
        let mut last: Vec<u8> = Vec::new();
        iter.seek_to_first();
        while iter.valid() {
            let key = iter.key();
            let parsed = ParsedKey::parse(key)?;
            if !last.is_empty() && compare_internal(order, &last, key).is_ge() {
                return Err(Error::corruption("entries do not ascend"));
            }
            if last.is_empty() || user_key(&last) != parsed.user_key {
                counted.user_keys += 1;
            }
            if !is_found(iter, parsed.user_key)? {
                return Err(Error::corruption("the table denies a key that it holds"));
            }
            counted.entries += 1;
            match parsed.kind {
                ValueKind::Deletion | ValueKind::SingleDeletion => counted.deletions += 1,
                ValueKind::Merge => counted.merges += 1,
                ValueKind::BlobIndex => counted.blobs += 1,
                _ => {}
            }
            last.clear();
            last.extend_from_slice(key);
            iter.next();
        }
        iter.status()?;
        Ok(counted)
    }

    /// Compares with what the properties tell.
    pub(crate) fn check(&self, stored: &TableProperties, tombstones: u64) -> Result<()> {
        // What may be missing from a count: tombstones where the writer left them out.
        let left_out = match stored.counts_tombstones() {
            true => 0,
            false => tombstones,
        };
        let expectations = [
            (
                "entries",
                stored.num_entries,
                self.entries + tombstones,
                left_out,
            ),
            (
                "range tombstones",
                stored.num_range_deletions,
                tombstones,
                left_out,
            ),
            (
                "deletions",
                stored.num_deletions,
                self.deletions + tombstones,
                left_out,
            ),
            ("merge operands", stored.num_merge_operands, self.merges, 0),
        ];
        for (what, stored, counted, left_out) in expectations {
            if stored != counted && stored != counted - left_out {
                return Err(Error::corruption(format!(
                    "the properties tell of {stored} {what}, the table holds {counted}"
                )));
            }
        }
        Ok(())
    }
}

impl BlockTable {
    /// Reads every block past the cache and checks checksums, the order of entries, that the filter
    /// admits every key, that hash indexes in data blocks tell where it is, and that the counts in the properties are right. Tells how many of the
    /// entries refer to values in blob files, which are not looked at.
    ///
    /// # Errors
    /// `Corruption` saying what does not fit; `Io`. Cost: a scan of the file.
    pub fn verify(self: &Arc<Self>) -> Result<u64> {
        // Around the cache, so that what is checked is what is on disk.
        let past_cache = self.reopen()?;
        let mut iter = past_cache.iter(TableReadOptions {
            fill_cache: false,
            readahead_bytes: 1 << 20,
            ..TableReadOptions::default()
        });
        let is_found = |iter: &BlockTableIter, key: &[u8]| {
            Ok(past_cache.may_contain(key)? && iter.is_where_hashed())
        };
        let counted = Counted::walk(&mut iter, self.order(), is_found)
            .map_err(|error| self.locate(error, None))?;
        if self.blocks.framing.style() != TableStyle::LevelDb {
            // LevelDB's tables have no properties to compare with.
            let tombstones = self.range_tombstones().len() as u64;
            counted
                .check(self.properties(), tombstones)
                .map_err(|error| self.locate(error, None))?;
        }
        Ok(counted.blobs)
    }

    /// The same file with a small cache of its own; checks everything that is read at open.
    fn reopen(&self) -> Result<Arc<Self>> {
        let budget = MemoryBudget::new(OWN_CACHE_BYTES);
        let mut options = TableReaderOptions::new(
            self.blocks.path.clone(),
            0,
            BlockCache::new(Arc::clone(&budget)),
            budget,
        );
        options.order = self.order.clone();
        options.prefix = self.prefix.clone();
        options.largest_seqno = self.global_seqno;
        Self::open(Arc::clone(&self.blocks.file), options)
    }
}

impl PlainTable {
    /// Takes the file into memory again, which checks every byte of it, and checks the order of
    /// entries, that each key is found by its hash, each prefix by its own, and that the counts are
    /// right. Tells how many of the entries refer to values in blob files, which are not looked at.
    ///
    /// # Errors
    /// `Corruption` saying what does not fit; `Io`. Cost: a scan of the file.
    pub fn verify(self: &Arc<Self>) -> Result<u64> {
        let again = self.reopen()?;
        let mut iter = again.iter(TableReadOptions::default());
        let is_found = |_: &_, key: &[u8]| Ok(again.holds(key)? && again.may_contain_prefix(key));
        let counted = Counted::walk(&mut iter, self.order(), is_found);
        let checked = counted.and_then(|counted| {
            counted.check(again.properties(), again.range_tombstones().len() as u64)?;
            if again.counts() != (counted.entries, counted.user_keys) {
                return Err(Error::corruption(
                    "the footer's counts are not those of the table",
                ));
            }
            Ok(counted.blobs)
        });
        checked.map_err(|error| error.with_file(self.path()))
    }
}
