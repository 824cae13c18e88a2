//! Checking a whole block-based table against itself.

use std::sync::Arc;

use drumlin_base::{MemoryBudget, Result};

use super::cursor::BlockTableIter;
use super::table::BlockTable;
use crate::cache::BlockCache;
use crate::format::TableStyle;
use crate::options::{TableReadOptions, TableReaderOptions};
use crate::verify::Counted;

/// The cache verification reads through, for index and filter partitions.
const OWN_CACHE_BYTES: usize = 8 << 20;

impl BlockTable {
    /// Reads every block past the cache and checks checksums, the order of entries, that the filter
    /// admits every key, and that the counts in the properties are right. Gives the number of entries
    /// that refer to values in blob files; those values are not checked.
    ///
    /// # Errors
    /// `Corruption` naming the mismatch; `Io`. Cost: a scan of the file.
    pub fn verify(self: &Arc<Self>) -> Result<u64> {
        // Past the cache, to check the bytes on disk.
        let past_cache = self.reopen()?;
        let mut iter = past_cache.iter(TableReadOptions {
            fill_cache: false,
            readahead_bytes: 1 << 20,
            ..TableReadOptions::default()
        });
        let is_found = |_: &BlockTableIter, key: &[u8]| past_cache.may_contain(key);
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
