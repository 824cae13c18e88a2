//! About how many bytes ranges of keys take on disk, from the indexes of tables.

use std::sync::Arc;

use drumlin_base::key::seek_key;
use drumlin_base::{KeyOrder, Result, SEQNO_MAX};

use crate::caches::table_cache::TableCache;
use crate::db::handle::Db;
use crate::family::column_family::ColumnFamily;
use crate::version::FileMeta;

/// What a range of keys takes, by the counts that tables keep of themselves.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct RangeUsage {
    /// Bytes on disk, compressed as they are.
    pub bytes: u64,
    /// Entries, each version of a key and each deletion counted.
    pub entries: u64,
    /// Bytes of their keys.
    pub key_bytes: u64,
    /// Bytes of their values; of one in a blob file those of the reference.
    pub value_bytes: u64,
}

impl Db {
    /// About what each range takes; ranges as of [`Db::approximate_sizes`]. Entries are reckoned from the share of each
    /// table's bytes that lies in the range and from the table's own counts, so a table of uneven rows is taken for an
    /// even one.
    ///
    /// Cost: as of [`Db::approximate_sizes`], and the properties of every table that overlaps a range are read once: some five
    /// small reads. No data is read.
    ///
    /// # Errors
    /// As [`Db::approximate_sizes`].
    pub fn approximate_usage(
        &self,
        family: &ColumnFamily,
        ranges: &[(&[u8], &[u8])],
    ) -> Result<Vec<RangeUsage>> {
        let _call = self.engine.store.begin_call()?;
        self.engine.store.check_own(&family.0)?;
        let super_version = family.0.super_version.load_full();
        let sizes = RangeSizes {
            order: family.order(),
            tables: &family.0.reads.tables,
        };
        let mut totals = vec![RangeUsage::default(); ranges.len()];
        for (total, (begin, end)) in totals.iter_mut().zip(ranges) {
            for (_, file) in super_version.version.files() {
                let bytes = sizes.in_file(file, begin, end)?;
                if bytes == 0 {
                    continue;
                }
                let counts = sizes.tables.counts_of(file)?;
                let share = match drumlin_base::bug!("usage-of-whole-tables") {
                    true => 1.0,
                    false => bytes as f64 / file.size.max(1) as f64,
                };
                let part = |count: u64| (count as f64 * share).round() as u64;
                total.bytes += bytes;
                total.entries += part(counts.entries);
                total.key_bytes += part(counts.key_bytes);
                total.value_bytes += part(counts.value_bytes);
            }
        }
        Ok(totals)
    }

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
