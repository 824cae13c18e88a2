//! Checking a whole table against itself.

use std::sync::Arc;

use drumlin_base::key::{ParsedKey, ValueKind, compare_internal};
use drumlin_base::{Error, InternalIterator, MemoryBudget, Result};

use crate::cache::BlockCache;
use crate::format::TableStyle;
use crate::options::{TableReadOptions, TableReaderOptions};
use crate::table::BlockTable;

/// The cache verification reads through, for index and filter partitions.
const OWN_CACHE_BYTES: usize = 8 << 20;

/// What verification counts on its way.
#[derive(Default)]
struct Counted {
    entries: u64,
    deletions: u64,
    merges: u64,
    blobs: u64,
}

impl BlockTable {
    /// Reads every block past the cache and checks checksums, the order of entries, that the filter
    /// admits every key, and that the counts in the properties are right. Tells how many of the
    /// entries refer to values in blob files, which are not looked at.
    ///
    /// # Errors
    /// `Corruption` saying what does not fit; `Io`. Cost: a scan of the file.
    pub fn verify(self: &Arc<Self>) -> Result<u64> {
        let counted = self.verify_entries()?;
        let tombstones = self.range_tombstones().len() as u64;
        let stored = self.properties();
        let expectations = [
            ("entries", stored.num_entries, counted.entries + tombstones),
            ("range tombstones", stored.num_range_deletions, tombstones),
            (
                "deletions",
                stored.num_deletions,
                counted.deletions + tombstones,
            ),
            ("merge operands", stored.num_merge_operands, counted.merges),
        ];
        if self.blocks.framing.style() == TableStyle::LevelDb {
            return Ok(counted.blobs); // Has no properties to compare with.
        }
        for (what, stored, counted) in expectations {
            if stored != counted {
                return Err(self.locate(
                    Error::corruption(format!(
                        "the properties tell of {stored} {what}, the table holds {counted}"
                    )),
                    None,
                ));
            }
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

    fn verify_entries(self: &Arc<Self>) -> Result<Counted> {
        // Around the cache, so that what is checked is what is on disk.
        let past_cache = self.reopen()?;
        let mut iter = past_cache.iter(TableReadOptions {
            fill_cache: false,
            readahead_bytes: 1 << 20,
            ..TableReadOptions::default()
        });
        let mut counted = Counted::default();
        let mut last: Vec<u8> = Vec::new();
        iter.seek_to_first();
        while iter.valid() {
            let key = iter.key();
            let parsed = ParsedKey::parse(key)?;
            if !last.is_empty() && compare_internal(self.order(), &last, key).is_ge() {
                return Err(self.locate(Error::corruption("entries do not ascend"), None));
            }
            if !past_cache.may_contain(parsed.user_key)? {
                return Err(self.locate(
                    Error::corruption("the filter denies a key of its table"),
                    None,
                ));
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
}
