//! Values from across the key range of a job, for a model to be learned from or judged by.
//!
//! Each input gives its share: from places spread evenly over its keys, from each a short run of
//! neighbours, because one read from the disk brings them all.

use std::sync::Arc;

use drumlin_base::key::{ValueKind, seek_key, split_internal, tag_kind};
use drumlin_base::{InternalIterator, Result, SEQNO_MAX};
use drumlin_table::{Table, TableReadOptions};

use super::scope::Within;

/// Bytes of values that are taken from one place.
const RUN_BYTES: usize = 16 << 10;
/// Learning keeps this many bytes of notes for each value, so a small value counts for as much.
const NOTED_BYTES: usize = 64;
/// Entries looked at in one place, whatever they hold.
const RUN_ENTRIES: usize = 4096;

/// Values, one after the other.
#[derive(Debug, Default)]
pub(super) struct Sample {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Sample {
    /// About `bytes_max` bytes of values of the keys `within` from `tables`, fewer when they hold fewer; more only by as
    /// much as the last value is too long.
    ///
    /// # Errors
    /// `Corruption`, `Io` of reading a table.
    pub(super) fn take(tables: &[Arc<Table>], within: Within<'_>, bytes_max: u64) -> Result<Self> {
        let mut sample = Self::default();
        let held =
            |table: &Arc<Table>| table.properties().raw_value_size as f64 * within.share_of(table);
        let held: Vec<f64> = tables.iter().map(held).collect();
        let total: f64 = held.iter().sum();
        let mut due = 0;
        for (table, held) in tables.iter().zip(held) {
            let share = bytes_max as f64 * (held / total.max(1.0));
            let whole = (total <= bytes_max as f64).then_some(bytes_max);
            sample.take_from(table, within, share as usize, whole, &mut due)?;
        }
        Ok(sample)
    }

    /// Takes `share` bytes, or everything as long as the sample has at most `whole`. `due` counts the bytes that
    /// the sample should have by now. Where a value is longer than its place was to give, later places are
    /// passed over until the sample is no longer ahead.
    fn take_from(
        &mut self,
        table: &Table,
        within: Within<'_>,
        share: usize,
        whole: Option<u64>,
        due: &mut usize,
    ) -> Result<()> {
        let mut cursor = table.iter(TableReadOptions {
            fill_cache: false,
            ..TableReadOptions::default()
        });
        match within.first() {
            None => cursor.seek_to_first(),
            Some(first) => cursor.seek(&seek_key(first, SEQNO_MAX)),
        }
        if let Some(bytes_max) = whole {
            // The sizes that tables record are partly estimates: they may hold more.
            let room = (bytes_max as usize).saturating_sub(self.taken());
            self.run(&mut cursor, within, room, usize::MAX);
            return cursor.status();
        }
        let places = (share / RUN_BYTES).max(1);
        let run = (share / places).max(1);
        let mut starts = table.key_samples(places - 1);
        starts.retain(|key| within.has(key));
        for start in std::iter::once(None).chain(starts.iter().map(Some)) {
            *due += run;
            let owed = due.saturating_sub(self.taken());
            if owed == 0 {
                continue;
            }
            if let Some(key) = start {
                cursor.seek(&seek_key(key, SEQNO_MAX));
            }
            self.run(&mut cursor, within, run.min(owed), RUN_ENTRIES);
            cursor.status()?;
        }
        Ok(())
    }

    fn run(
        &mut self,
        cursor: &mut impl InternalIterator,
        within: Within<'_>,
        bytes: usize,
        entries: usize,
    ) {
        let end = self.taken().saturating_add(bytes);
        for _ in 0..entries {
            if !cursor.valid() || self.taken() >= end {
                return;
            }
            let parts = split_internal(cursor.key());
            let is_within = parts.is_some_and(|(key, _)| within.has(key));
            if !is_within && within.first().is_some() {
                return; // Behind the scope.
            }
            let kind = parts.map(|(_, tag)| tag_kind(tag));
            if is_within && kind == Some(ValueKind::Value as u8) {
                self.bytes.extend_from_slice(cursor.value());
                self.ends.push(self.bytes.len());
            }
            cursor.next();
        }
    }

    /// The size that the sample counts for: the bytes of its values, or of the notes on them, if those are more.
    pub(super) fn taken(&self) -> usize {
        self.bytes.len().max(self.ends.len() * NOTED_BYTES)
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

#[cfg(test)]
mod tests {
    use drumlin_base::KeyOrder;
    use drumlin_base::key::internal_key;
    use drumlin_base::rng::Rng;

    use super::*;
    use crate::read::test_tables::TestTables;
    use crate::version::{FileMeta, NewFile};

    /// A table of so many values of `value_bytes`, each filled with its number.
    fn table(tables: &mut TestTables, number: u64, count: u64, value_bytes: usize) -> Arc<Table> {
        let entries: Vec<(Vec<u8>, Vec<u8>)> = (0..count)
            .map(|n| {
                let key = internal_key(&n.to_be_bytes(), 1 + n, ValueKind::Value);
                (key, vec![n as u8; value_bytes])
            })
            .collect();
        let file = FileMeta::new(NewFile {
            number,
            ..NewFile::default()
        });
        let file = tables.write(file, &entries, &[]);
        file.table.load_full().expect("just opened")
    }

    #[test]
    fn long_values_do_not_make_a_sample_larger_than_asked_for() {
        const VALUE_BYTES: usize = 40_000;
        let mut made = TestTables::new(KeyOrder::Bytewise, Rng::new(5));
        let tables = [1, 2].map(|number| table(&mut made, number, 60, VALUE_BYTES));
        for bytes_max in [1, 100_000, 400_000] {
            let sample = Sample::take(&tables, Within::All, bytes_max).expect("sound tables");
            let bytes = sample.bytes();
            assert!(
                bytes > 0 && bytes < bytes_max + VALUE_BYTES as u64,
                "{bytes}"
            );
        }
        let sample = Sample::take(&tables, Within::All, 400_000).expect("sound tables");
        let from: Vec<u8> = sample
            .values()
            .iter()
            .filter_map(|v| v.first().copied())
            .collect();
        assert!(
            from.iter().any(|&n| n >= 30),
            "only from the first half: {from:?}"
        );
    }

    #[test]
    fn short_values_come_from_all_over_the_tables() {
        let mut made = TestTables::new(KeyOrder::Bytewise, Rng::new(6));
        let tables = [1, 2].map(|number| table(&mut made, number, 250, 4000));
        let sample = Sample::take(&tables, Within::All, 200_000).expect("sound tables");
        assert!(
            (150_000..=204_000).contains(&sample.bytes()),
            "{}",
            sample.bytes()
        );
        for quarter in 0..4 {
            let within = |value: &&[u8]| value.first().is_some_and(|n| n / 63 == quarter);
            assert!(sample.values().iter().any(within), "{quarter}");
        }
        let all = Sample::take(&tables, Within::All, u64::MAX).expect("sound tables");
        assert!(all.bytes() > sample.bytes());
    }

    #[test]
    fn of_small_values_no_more_are_taken_than_may_be_noted() {
        let mut tables = TestTables::new(KeyOrder::Bytewise, Rng::new(7));
        let table = table(&mut tables, 1, 20_000, 4);
        let sample = Sample::take(&[table], Within::All, 64 << 10).expect("sound");
        let count = sample.values().len();
        assert!((900..=1100).contains(&count), "{count}");
    }
}
