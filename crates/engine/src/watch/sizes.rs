//! About how many bytes ranges of keys take on disk, from the indexes of tables.

use std::sync::Arc;

use drumlin_base::key::seek_key;
use drumlin_base::{KeyOrder, Result, SEQNO_MAX};

use crate::caches::table_cache::TableCache;
use crate::db::handle::Db;
use crate::family::column_family::ColumnFamily;
use crate::version::FileMeta;

impl Db {
    /// About how many bytes of `family`'s tables each range takes; a range is its first key and the first key after it,
    /// and empty where that is not larger. RocksDB's `GetApproximateSizes`.
    ///
    /// What only memtables hold, and values in blob files, are not counted; what was overwritten or deleted and is not
    /// compacted yet is. Right to about a block at each end of each table.
    ///
    /// Cost: a look at the bounds of every table for each range; the tables at a range's ends are opened where they are
    /// not open, and their index is searched. No data is read.
    ///
    /// # Errors
    /// `InvalidArgument` for a family of another database; `Io` and `Corruption` of a table that has to be opened.
    pub fn approximate_sizes(
        &self,
        family: &ColumnFamily,
        ranges: &[(&[u8], &[u8])],
    ) -> Result<Vec<u64>> {
        let _call = self.engine.store.begin_call()?;
        self.engine.store.check_own(&family.0)?;
        let super_version = family.0.super_version.load_full();
        let sizes = RangeSizes {
            order: family.order(),
            tables: &family.0.reads.tables,
        };
        let mut totals = Vec::with_capacity(ranges.len());
        for (begin, end) in ranges {
            let mut total = 0;
            for (_, file) in super_version.version.files() {
                total += sizes.in_file(file, begin, end)?;
            }
            totals.push(total);
        }
        Ok(totals)
    }
}

struct RangeSizes<'a> {
    order: &'a KeyOrder,
    tables: &'a TableCache,
}

impl RangeSizes<'_> {
    /// About the bytes of `file` from `begin` up to `end`.
    fn in_file(&self, file: &Arc<FileMeta>, begin: &[u8], end: &[u8]) -> Result<u64> {
        let is_below = |a: &[u8], b: &[u8]| self.order.compare(a, b).is_lt();
        let misses = !is_below(begin, end)
            || is_below(file.largest_user_key(), begin)
            || !is_below(file.smallest_user_key(), end);
        if misses {
            return Ok(0);
        }
        let has_begin = is_below(file.smallest_user_key(), begin);
        let has_end = !is_below(file.largest_user_key(), end);
        if !has_begin && !has_end {
            return Ok(file.size);
        }
        let table = self.tables.find(file)?;
        let offset_of = |key: &[u8]| table.approximate_offset(&seek_key(key, SEQNO_MAX));
        let from = if has_begin { offset_of(begin) } else { 0 };
        let until = if has_end { offset_of(end) } else { file.size };
        Ok(until.saturating_sub(from))
    }
}
