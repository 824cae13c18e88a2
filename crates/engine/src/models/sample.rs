//! Values from across the key range of a job, for a model to be learned from or judged by.
//!
//! Each input gives its share: from places spread evenly over its keys, from each a short run of
//! neighbours, because one read from the disk brings them all.

use std::sync::Arc;

use drumlin_base::key::{ValueKind, seek_key, split_internal, tag_kind};
use drumlin_base::{InternalIterator, Result, SEQNO_MAX};
use drumlin_table::{Table, TableReadOptions};

/// Bytes of values that are taken from one place.
const RUN_BYTES: usize = 16 << 10;
/// Entries looked at in one place, whatever they hold.
const RUN_ENTRIES: usize = 4096;

/// Values, one after the other.
#[derive(Debug, Default)]
pub(super) struct Sample {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Sample {
    /// About `bytes_max` bytes of values from `tables`, fewer when they hold fewer.
    ///
    /// # Errors
    /// `Corruption`, `Io` of reading a table.
    pub(super) fn take(tables: &[Arc<Table>], bytes_max: u64) -> Result<Self> {
        let mut sample = Self::default();
        let held = |table: &Arc<Table>| table.properties().raw_value_size;
        let total: u64 = tables.iter().map(held).sum();
        for table in tables {
            let share = bytes_max as f64 * (held(table) as f64 / total.max(1) as f64);
            let whole = (total <= bytes_max).then_some(bytes_max);
            sample.take_from(table, share as usize, whole)?;
        }
        Ok(sample)
    }

    /// Takes `share` bytes, or everything as long as the sample has at most `whole`.
    fn take_from(&mut self, table: &Table, share: usize, whole: Option<u64>) -> Result<()> {
        let mut cursor = table.iter(TableReadOptions {
            fill_cache: false,
            ..TableReadOptions::default()
        });
        cursor.seek_to_first();
        if let Some(bytes_max) = whole {
            // What tables tell of their values is partly reckoned: they may hold more.
            let room = (bytes_max as usize).saturating_sub(self.bytes.len());
            self.run(&mut cursor, room, usize::MAX);
            return cursor.status();
        }
        let places = (share / RUN_BYTES).max(1);
        let run = (share / places).max(1);
        self.run(&mut cursor, run, RUN_ENTRIES);
        cursor.status()?;
        for key in table.key_samples(places - 1) {
            cursor.seek(&seek_key(&key, SEQNO_MAX));
            self.run(&mut cursor, run, RUN_ENTRIES);
            cursor.status()?;
        }
        Ok(())
    }

    fn run(&mut self, cursor: &mut impl InternalIterator, bytes: usize, entries: usize) {
        let end = self.bytes.len().saturating_add(bytes);
        for _ in 0..entries {
            if !cursor.valid() || self.bytes.len() >= end {
                return;
            }
            let kind = split_internal(cursor.key()).map(|(_, tag)| tag_kind(tag));
            if kind == Some(ValueKind::Value as u8) {
                self.bytes.extend_from_slice(cursor.value());
                self.ends.push(self.bytes.len());
            }
            cursor.next();
        }
    }

    /// Bytes of all values.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// The values.
    pub(super) fn values(&self) -> Vec<&[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        let ranges = starts.zip(&self.ends);
        ranges
            .filter_map(|(start, &end)| self.bytes.get(start..end))
            .collect()
    }
}
