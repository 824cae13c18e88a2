//! A batch of writes that is applied as a whole, in RocksDB's bytes.
//!
//! Layout: fixed64 sequence number of the first record, fixed32 count of records that take one,
//! then the records: a tag byte, the family id as varint32 when the tag says so, and one or two
//! length-prefixed slices. Format page: `docs/format/write-batch.md`.
//!
//! A [`WriteBatch`] owns its bytes and is filled by a writer; a [`BatchView`] walks bytes that were
//! read from a WAL. Both decode with the same validated walk.

use drumlin_base::coding::{fixed64_at, put_slice, put_varint32, varint_len};
use drumlin_base::limits::{BATCH_BYTES_MAX, KEY_BYTES_MAX, VALUE_BYTES_MAX};
use drumlin_base::{Error, Result, SEQNO_MAX, SeqNo, ValueKind};

pub use crate::write::batch_view::{
    BATCH_HEADER_BYTES, BatchIter, BatchPart, BatchParts, BatchRecord, BatchView, PreparedSection,
};
use crate::write::batch_view::{COUNT_AT, tag, too_large};

/// What a batch has room for at first: an allocation of this size costs as much as one of the header alone, and the
/// first record needs no second one.
const FIRST_BYTES: usize = 256 - BATCH_HEADER_BYTES;

/// Writes that are applied together, in order.
///
/// Every method that adds a record checks its sizes first: on an error the batch is unchanged.
/// Cost: one copy of key and value into one growing buffer.
#[derive(Clone, PartialEq, Eq)]
pub struct WriteBatch {
    bytes: Vec<u8>,
    count: u32,
}

impl Default for WriteBatch {
    fn default() -> Self {
        Self::new()
    }
}

impl std::fmt::Debug for WriteBatch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WriteBatch")
            .field("seqno", &self.seqno())
            .field("count", &self.count)
            .field("bytes", &self.bytes.len())
            .finish()
    }
}

impl WriteBatch {
    /// An empty batch, with capacity for a small record or two.
    pub fn new() -> Self {
        Self::with_capacity(FIRST_BYTES)
    }

    /// An empty batch with capacity for `bytes` bytes of records.
    pub fn with_capacity(bytes: usize) -> Self {
        let mut buffer = Vec::with_capacity(BATCH_HEADER_BYTES.saturating_add(bytes));
        buffer.resize(BATCH_HEADER_BYTES, 0);
        Self {
            bytes: buffer,
            count: 0,
        }
    }

    /// Sets `key` of the default family to `value`.
    ///
    /// # Errors
    /// `TooLarge` when key, value or batch passes its limit; nothing was added.
    #[inline]
    pub fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.put_cf(0, key, value)
    }

    /// Sets `key` of family `family` to `value`.
    ///
    /// # Errors
    /// As [`WriteBatch::put`].
    #[inline]
    pub fn put_cf(&mut self, family: u32, key: &[u8], value: &[u8]) -> Result<()> {
        self.add_pair((tag::PUT, tag::FAMILY_PUT), family, key, value)
    }

    /// Removes `key` from the default family.
    ///
    /// # Errors
    /// As [`WriteBatch::put`].
    #[inline]
    pub fn delete(&mut self, key: &[u8]) -> Result<()> {
        self.delete_cf(0, key)
    }

    /// Removes `key` from family `family`.
    ///
    /// # Errors
    /// As [`WriteBatch::put`].
    #[inline]
    pub fn delete_cf(&mut self, family: u32, key: &[u8]) -> Result<()> {
        self.add_key((tag::DELETE, tag::FAMILY_DELETE), family, key)
    }

    /// Removes `key`, which was put exactly once since it was last removed.
    ///
    /// # Errors
    /// As [`WriteBatch::put`].
    pub fn single_delete(&mut self, key: &[u8]) -> Result<()> {
        self.single_delete_cf(0, key)
    }

    /// As [`WriteBatch::single_delete`], in family `family`.
    ///
    /// # Errors
    /// As [`WriteBatch::put`].
    pub fn single_delete_cf(&mut self, family: u32, key: &[u8]) -> Result<()> {
        self.add_key((tag::SINGLE_DELETE, tag::FAMILY_SINGLE_DELETE), family, key)
    }

    /// Adds `operand` to `key` of the default family, for its merge operator.
    ///
    /// # Errors
    /// As [`WriteBatch::put`].
    pub fn merge(&mut self, key: &[u8], operand: &[u8]) -> Result<()> {
        self.merge_cf(0, key, operand)
    }

    /// Adds `operand` to `key` of family `family`, for its merge operator.
    ///
    /// # Errors
    /// As [`WriteBatch::put`].
    pub fn merge_cf(&mut self, family: u32, key: &[u8], operand: &[u8]) -> Result<()> {
        self.add_pair((tag::MERGE, tag::FAMILY_MERGE), family, key, operand)
    }

    /// Removes every key from `begin` up to, not including, `end` from the default family.
    ///
    /// # Errors
    /// As [`WriteBatch::put`]. The order of `begin` and `end` is the family's to judge.
    pub fn delete_range(&mut self, begin: &[u8], end: &[u8]) -> Result<()> {
        self.delete_range_cf(0, begin, end)
    }

    /// As [`WriteBatch::delete_range`], in family `family`.
    ///
    /// # Errors
    /// As [`WriteBatch::delete_range`].
    pub fn delete_range_cf(&mut self, family: u32, begin: &[u8], end: &[u8]) -> Result<()> {
        let tags = (tag::DELETE_RANGE, tag::FAMILY_DELETE_RANGE);
        if end.len() > KEY_BYTES_MAX {
            return Err(too_large("key", end.len(), KEY_BYTES_MAX));
        }
        self.add_pair(tags, family, begin, end)
    }

    /// Adds bytes that go to the WAL and nowhere else: no sequence number, no family.
    ///
    /// # Errors
    /// As [`WriteBatch::put`].
    pub fn put_log_data(&mut self, data: &[u8]) -> Result<()> {
        if data.len() > VALUE_BYTES_MAX {
            return Err(too_large("value", data.len(), VALUE_BYTES_MAX));
        }
        self.reserve_record(1 + slice_len(data))?;
        self.bytes.push(tag::LOG_DATA);
        put_slice(&mut self.bytes, data);
        Ok(())
    }

    /// Adds `record` as it is.
    ///
    /// # Errors
    /// As [`WriteBatch::put_cf`].
    pub(crate) fn put_record(&mut self, record: &BatchRecord<'_>) -> Result<()> {
        let (family, key, value) = (record.family, record.key, record.value);
        let tags = match record.kind {
            ValueKind::Value => (tag::PUT, tag::FAMILY_PUT),
            ValueKind::Merge => (tag::MERGE, tag::FAMILY_MERGE),
            ValueKind::RangeDeletion => (tag::DELETE_RANGE, tag::FAMILY_DELETE_RANGE),
            ValueKind::BlobIndex => (tag::BLOB_INDEX, tag::FAMILY_BLOB_INDEX),
            ValueKind::WideColumnEntity => (tag::ENTITY, tag::FAMILY_ENTITY),
            ValueKind::Deletion | ValueKind::DeletionWithTimestamp => {
                return self.delete_cf(family, key);
            }
            ValueKind::SingleDeletion => return self.single_delete_cf(family, key),
        };
        self.add_pair(tags, family, key, value)
    }

    /// A copy with `time` behind each value and merge operand of a family that `is_timed`.
    ///
    /// # Errors
    /// As [`WriteBatch::put_cf`].
    pub(crate) fn stamped(&self, time: &[u8], is_timed: impl Fn(u32) -> bool) -> Result<Self> {
        let mut copy = Self::with_capacity(self.len() + time.len() * self.count as usize);
        let mut value = Vec::new();
        for part in BatchParts::new(self.records()) {
            match part? {
                BatchPart::Record(mut record) => {
                    let is_value = matches!(record.kind, ValueKind::Value | ValueKind::Merge);
                    if is_value && is_timed(record.family) {
                        value.clear();
                        value.extend_from_slice(record.value);
                        value.extend_from_slice(time);
                        record.value = &value;
                    }
                    copy.put_record(&record)?;
                }
                BatchPart::LogData(data) => copy.put_log_data(data)?,
                BatchPart::Prepared(_) | BatchPart::Commit(_) | BatchPart::Rollback(_) => {
                    return Err(Error::invalid_argument(
                        "a batch with a step of two-phase commit",
                    ));
                }
            }
        }
        Ok(copy)
    }

    /// Adds every record of `other` after this batch's own.
    ///
    /// # Errors
    /// `TooLarge` when the sum passes the batch limit; nothing was added.
    pub fn append(&mut self, other: &Self) -> Result<()> {
        let records = other.records();
        self.reserve_record(records.len())?;
        let Some(count) = self.count.checked_add(other.count) else {
            return Err(too_large("batch", self.bytes.len(), BATCH_BYTES_MAX));
        };
        self.bytes.extend_from_slice(records);
        if !drumlin_base::bug!("appended-batch-uncounted") {
            self.set_count(count);
        }
        Ok(())
    }

    /// Adds the records of `other` as the section that the transaction `name` prepared.
    ///
    /// # Errors
    /// As [`WriteBatch::append`].
    pub(crate) fn put_prepared(&mut self, name: &[u8], other: &Self) -> Result<()> {
        self.reserve_record(2 + other.records().len() + slice_len(name))?;
        let Some(count) = self.count.checked_add(other.count) else {
            return Err(too_large("batch", self.bytes.len(), BATCH_BYTES_MAX));
        };
        self.bytes.push(tag::BEGIN_PREPARE);
        self.bytes.extend_from_slice(other.records());
        self.bytes.push(tag::END_PREPARE);
        put_slice(&mut self.bytes, name);
        self.set_count(count);
        Ok(())
    }

    /// Adds the marker that commits what `name` prepared.
    ///
    /// # Errors
    /// As [`WriteBatch::append`].
    pub(crate) fn put_commit(&mut self, name: &[u8]) -> Result<()> {
        self.put_marker(tag::COMMIT, name)
    }

    /// Adds the marker that gives up what `name` prepared.
    ///
    /// # Errors
    /// As [`WriteBatch::append`].
    pub(crate) fn put_rollback(&mut self, name: &[u8]) -> Result<()> {
        self.put_marker(tag::ROLLBACK, name)
    }

    fn put_marker(&mut self, tag: u8, name: &[u8]) -> Result<()> {
        self.reserve_record(1 + slice_len(name))?;
        self.bytes.push(tag);
        put_slice(&mut self.bytes, name);
        Ok(())
    }

    /// The batch of the records of `section`.
    pub(crate) fn of_section(section: &PreparedSection<'_>) -> Self {
        let mut batch = Self::with_capacity(section.records.len());
        batch.bytes.extend_from_slice(section.records);
        batch.set_count(section.count);
        batch
    }

    /// Moves the batch out and leaves nothing, not even a header. Every other method needs one: give the batch back.
    pub(crate) fn take(&mut self) -> Self {
        Self {
            bytes: std::mem::take(&mut self.bytes),
            count: std::mem::take(&mut self.count),
        }
    }

    /// The sequence number of the last record, once the batch was given its own.
    pub(crate) fn last_seqno(&self) -> SeqNo {
        (self.seqno() + u64::from(self.count)).saturating_sub(1)
    }

    /// Forgets what was added after the batch had `len` bytes and `count` records.
    ///
    /// Requires: it once had exactly those.
    pub(crate) fn truncate(&mut self, len: usize, count: u32) {
        debug_assert!((BATCH_HEADER_BYTES..=self.len()).contains(&len) && count <= self.count);
        self.bytes.truncate(len);
        self.set_count(count);
    }

    /// Removes every record and keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.resize(BATCH_HEADER_BYTES, 0);
        self.count = 0;
    }

    /// Records that take a sequence number.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Whether the batch does nothing. A batch of log data alone is not empty.
    pub fn is_empty(&self) -> bool {
        self.bytes.len() == BATCH_HEADER_BYTES
    }

    /// Length in bytes, header included: the size of its WAL record before framing.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// The bytes as they go to the WAL.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The bytes after the header.
    pub fn records(&self) -> &[u8] {
        self.bytes
            .get(BATCH_HEADER_BYTES..)
            .expect("a batch has a header")
    }

    /// The sequence number of the first record.
    pub fn seqno(&self) -> SeqNo {
        fixed64_at(&self.bytes, 0).expect("a batch has a header")
    }

    /// Gives the first record the sequence number `seqno`; the others follow.
    pub fn set_seqno(&mut self, seqno: SeqNo) {
        debug_assert!(seqno <= SEQNO_MAX);
        self.bytes[..COUNT_AT].copy_from_slice(&seqno.to_le_bytes());
    }

    /// Walks the records. They were validated when they came in, but the walk is the same one that
    /// untrusted bytes get.
    pub fn iter(&self) -> BatchIter<'_> {
        BatchIter::new(self.records())
    }

    /// A batch from bytes that anyone may have made.
    ///
    /// # Errors
    /// `Corruption` when a record is cut or unknown or the count is wrong, `NotSupported` for
    /// records of two-phase commit and user timestamps, `TooLarge` past a limit.
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Self> {
        let view = BatchView::new(&bytes)?;
        if view.is_two_phase() {
            // Names the first step.
            view.iter().try_for_each(|record| record.map(drop))?;
        }
        let count = view.count();
        Ok(Self { bytes, count })
    }

    #[inline]
    fn add_pair(&mut self, tags: (u8, u8), family: u32, key: &[u8], value: &[u8]) -> Result<()> {
        if value.len() > VALUE_BYTES_MAX {
            return Err(too_large("value", value.len(), VALUE_BYTES_MAX));
        }
        self.begin_record(tags, family, key, slice_len(value))?;
        put_slice(&mut self.bytes, key);
        put_slice(&mut self.bytes, value);
        Ok(())
    }

    #[inline]
    fn add_key(&mut self, tags: (u8, u8), family: u32, key: &[u8]) -> Result<()> {
        self.begin_record(tags, family, key, 0)?;
        put_slice(&mut self.bytes, key);
        Ok(())
    }

    /// Checks everything, reserves space, counts the record and writes its tag and family.
    #[inline]
    fn begin_record(
        &mut self,
        (short, with_family): (u8, u8),
        family: u32,
        key: &[u8],
        value_len: usize,
    ) -> Result<()> {
        if key.len() > KEY_BYTES_MAX {
            return Err(too_large("key", key.len(), KEY_BYTES_MAX));
        }
        self.reserve_record(1 + varint_len(u64::from(family)) + slice_len(key) + value_len)?;
        let Some(count) = self.count.checked_add(1) else {
            return Err(too_large("batch", self.bytes.len(), BATCH_BYTES_MAX));
        };
        self.set_count(count);
        if family == 0 {
            self.bytes.push(short);
        } else {
            self.bytes.push(with_family);
            put_varint32(&mut self.bytes, family);
        }
        Ok(())
    }

    #[inline]
    fn reserve_record(&mut self, len: usize) -> Result<()> {
        let total = self.bytes.len().saturating_add(len);
        if total > BATCH_BYTES_MAX {
            return Err(too_large("batch", total, BATCH_BYTES_MAX));
        }
        self.bytes.reserve(len);
        Ok(())
    }

    #[inline]
    fn set_count(&mut self, count: u32) {
        self.count = count;
        self.bytes[COUNT_AT..BATCH_HEADER_BYTES].copy_from_slice(&count.to_le_bytes());
    }
}

fn slice_len(bytes: &[u8]) -> usize {
    varint_len(bytes.len() as u64) + bytes.len()
}

#[cfg(test)]
mod tests {
    use drumlin_base::ErrorKind;
    use drumlin_base::rng::Rng;

    use super::*;

    fn sample() -> WriteBatch {
        let mut batch = WriteBatch::new();
        batch.put(b"a", b"1").unwrap();
        batch.delete(b"b").unwrap();
        batch.merge(b"c", b"+").unwrap();
        batch.single_delete(b"d").unwrap();
        batch.delete_range(b"e", b"f").unwrap();
        batch.put_log_data(b"not counted").unwrap();
        batch.put_cf(3, b"a", b"").unwrap();
        batch.delete_cf(300, b"").unwrap();
        batch.merge_cf(3, b"c", b"+").unwrap();
        batch.single_delete_cf(3, b"d").unwrap();
        batch.delete_range_cf(u32::MAX, b"e", b"f").unwrap();
        batch.set_seqno(77);
        batch
    }

    fn record<'a>(family: u32, kind: ValueKind, key: &'a [u8], value: &'a [u8]) -> BatchRecord<'a> {
        BatchRecord {
            family,
            kind,
            key,
            value,
        }
    }

    #[test]
    fn every_record_comes_back_as_it_went_in() {
        let batch = sample();
        let expected = [
            record(0, ValueKind::Value, b"a", b"1"),
            record(0, ValueKind::Deletion, b"b", b""),
            record(0, ValueKind::Merge, b"c", b"+"),
            record(0, ValueKind::SingleDeletion, b"d", b""),
            record(0, ValueKind::RangeDeletion, b"e", b"f"),
            record(3, ValueKind::Value, b"a", b""),
            record(300, ValueKind::Deletion, b"", b""),
            record(3, ValueKind::Merge, b"c", b"+"),
            record(3, ValueKind::SingleDeletion, b"d", b""),
            record(u32::MAX, ValueKind::RangeDeletion, b"e", b"f"),
        ];
        let read: Result<Vec<_>> = batch.iter().collect();
        assert_eq!(read.unwrap(), expected);
        assert_eq!((batch.count(), batch.seqno()), (10, 77));
        assert_eq!(
            WriteBatch::from_bytes(batch.bytes().to_vec()).unwrap(),
            batch
        );
        let view = BatchView::new(batch.bytes()).unwrap();
        assert_eq!(view.log_data().collect::<Vec<_>>(), [b"not counted"]);
    }

    #[test]
    fn the_bytes_are_rocksdbs() {
        let mut batch = WriteBatch::new();
        batch.put(b"key", b"value").unwrap();
        batch.delete_cf(2, b"k2").unwrap();
        batch.set_seqno(0x0102);
        let mut expected = vec![2, 1, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0];
        expected.extend_from_slice(b"\x01\x03key\x05value\x04\x02\x02k2");
        assert_eq!(batch.bytes(), expected);
    }

    #[test]
    fn batches_append_and_clear() {
        let (mut left, right) = (sample(), sample());
        left.append(&right).unwrap();
        assert_eq!(left.count(), 20);
        assert_eq!(left.iter().count(), 20);
        assert_eq!(left.seqno(), 77);
        left.clear();
        assert!(left.is_empty());
        assert_eq!(left, WriteBatch::new());
    }

    #[test]
    fn what_is_too_large_leaves_the_batch_as_it_was() {
        let mut batch = sample();
        let before = batch.clone();
        let long_key = vec![b'k'; KEY_BYTES_MAX + 1];
        for result in [
            batch.put(&long_key, b""),
            batch.delete(&long_key),
            batch.merge_cf(1, &long_key, b""),
            batch.delete_range(b"a", &long_key),
        ] {
            assert_eq!(result.unwrap_err().kind(), ErrorKind::TooLarge);
        }
        assert_eq!(batch, before);
        batch.put(&long_key[1..], b"").unwrap();
    }

    #[test]
    fn foreign_records_are_refused_by_name_and_unknown_ones_as_damage() {
        for (tag, kind) in [
            (0x9, ErrorKind::Corruption), // A section without an end, and an end without a section.
            (0xA, ErrorKind::Corruption),
            (0xB, ErrorKind::NotSupported),
            (0xC, ErrorKind::NotSupported),
            (0x12, ErrorKind::NotSupported),
            (0x13, ErrorKind::NotSupported),
            (0x14, ErrorKind::NotSupported),
            (0x1A, ErrorKind::Corruption),
            (0xFF, ErrorKind::Corruption),
        ] {
            let mut bytes = WriteBatch::new().bytes().to_vec();
            bytes.extend_from_slice(&[tag, 1, b'x']);
            assert_eq!(
                WriteBatch::from_bytes(bytes).unwrap_err().kind(),
                kind,
                "{tag:#x}"
            );
        }
        let mut noop = WriteBatch::new().bytes().to_vec();
        noop.push(0xD);
        assert_eq!(WriteBatch::from_bytes(noop).unwrap().iter().count(), 0);
    }

    #[test]
    fn a_cut_batch_or_a_wrong_count_is_refused() {
        let batch = sample();
        let bytes = batch.bytes();
        for cut in 0..bytes.len() {
            let error = WriteBatch::from_bytes(bytes[..cut].to_vec()).unwrap_err();
            assert!(error.is_corruption(), "cut at {cut}");
        }
        let mut wrong = bytes.to_vec();
        wrong[COUNT_AT] += 1;
        assert!(WriteBatch::from_bytes(wrong).is_err_and(|error| error.is_corruption()));
        let mut late = bytes.to_vec();
        late[..8].copy_from_slice(&SEQNO_MAX.to_le_bytes());
        assert!(WriteBatch::from_bytes(late).is_err_and(|error| error.is_corruption()));
    }

    #[test]
    fn hostile_bytes_never_panic() {
        let mut rng = Rng::new(1);
        let sound = sample().bytes().to_vec();
        for _ in 0..20_000 {
            let mut bytes = sound.clone();
            for _ in 0..1 + rng.below(4) {
                let at = rng.below(bytes.len() as u64) as usize;
                bytes[at] ^= 1 << rng.below(8);
            }
            bytes.truncate(rng.below(bytes.len() as u64 + 1) as usize);
            if let Ok(batch) = WriteBatch::from_bytes(bytes) {
                assert_eq!(batch.iter().count(), batch.count() as usize);
            }
        }
    }
}
