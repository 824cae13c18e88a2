//! Checking a whole searchable table against itself.

use std::sync::Arc;

use drumlin_base::{Error, MemoryBudget, Result};

use super::format::PAGE_BYTES;
use super::model_file::KnownModel;
use super::open::stored_end;
use super::table::SearchableTable;
use crate::cache::BlockCache;
use crate::options::{TableReadOptions, TableReaderOptions};
use crate::verify::Counted;

/// The cache that a table opened again for a check gets; nothing is kept in it.
const OWN_CACHE_BYTES: usize = 8 << 20;

impl SearchableTable {
    /// Reads the file again past the cache and checks every byte of it: sections and key blocks, each
    /// page, and that the file holds nothing else; the order of entries, that each key is found, and that
    /// the counts are right. Gives the number of entries that refer to values in blob files; those values
    /// are not checked.
    ///
    /// # Errors
    /// `Corruption` naming the mismatch; `Io`. Cost: a scan of the file.
    pub fn verify(self: &Arc<Self>) -> Result<u64> {
        let again = self.reopen()?;
        again.keys.verify().map_err(|e| e.with_file(&self.path))?;
        again.check_pages()?;
        let mut iter = again.iter(TableReadOptions {
            fill_cache: false,
            readahead_bytes: 1 << 20,
            ..TableReadOptions::default()
        });
        let is_found =
            |_: &_, key: &[u8]| Ok(again.may_contain(key) && again.may_contain_prefix(key));
        let counted = Counted::walk(&mut iter, self.order(), is_found);
        let checked = counted.and_then(|counted| {
            counted.check(again.properties(), again.range_tombstones().len() as u64)?;
            if counted.user_keys == again.keys.len() {
                Ok(counted.blobs)
            } else {
                Err(Error::corruption(
                    "a searchable table lacks rows of its keys",
                ))
            }
        });
        checked.map_err(|error| error.with_file(&self.path))
    }

    /// Reads every page; pages and extents must fill the file up to the sections.
    fn check_pages(&self) -> Result<()> {
        let options = TableReadOptions {
            fill_cache: false,
            ..TableReadOptions::default()
        };
        let mut spans: Vec<(u64, u64)> = self
            .extents
            .iter()
            .filter_map(|extent| Some((extent.offset, stored_end(extent)?)))
            .collect();
        let pages = self.properties.num_data_blocks;
        for at in 0..u32::try_from(pages).unwrap_or(u32::MAX) {
            let page = self.page(at, &options, None)?;
            let start = self.page_offset(at).unwrap_or(u64::MAX);
            let len = page.get().bytes().len().max(PAGE_BYTES) as u64;
            spans.push((start, start.saturating_add(len)));
        }
        spans.sort_unstable();
        let mut end = 0;
        for (from, until) in spans {
            if from != end {
                break;
            }
            end = until;
        }
        if end == self.tail_start {
            Ok(())
        } else {
            Err(Error::corruption("bytes that belong to no page")
                .with_offset(end)
                .with_file(&self.path))
        }
    }

    /// The same file with a small cache of its own; checks everything that is read at open.
    fn reopen(&self) -> Result<Arc<Self>> {
        let budget = MemoryBudget::new(OWN_CACHE_BYTES);
        let cache = BlockCache::new(Arc::clone(&budget));
        let mut options = TableReaderOptions::new(self.path.clone(), 0, cache, budget);
        options.order = self.order.clone();
        options.prefix = self.prefix.clone();
        options.largest_seqno = self.global_seqno;
        options.models = Some(Arc::new(KnownModel(Arc::clone(&self.model))));
        Self::open(Arc::clone(&self.file), options)
    }
}
