//! The mark that says how far a log was synced, written into the log itself.
//!
//! The first record after a sync carries one as log data of its batch, which every reader of the format skips.
//! A mark past a bad record proves that the record was once safe on disk: it is damage, and not a
//! write that never finished. Bytes: the tag `drumlin.synced`, fixed64 log number, fixed64 bytes of
//! that log known to be synced when the record was written. Format page: `docs/format/record.md`.

use drumlin_base::coding::{Reader, put_fixed64, put_slice};

use crate::write::batch::BatchView;

const TAG: &[u8] = b"drumlin.synced";
/// The batch tag of log data, on disk.
const LOG_DATA: u8 = 0x3;

/// `bytes` of the log `log_number` were synced. Ordered as places of the log are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SyncedMark {
    /// The WAL file spoken of: the one that holds the mark, or an earlier one.
    pub log_number: u64,
    /// How many of its first bytes were known to be synced.
    pub bytes: u64,
}

impl SyncedMark {
    /// Bytes of the whole record: tag and length, then the data.
    pub const RECORD_BYTES: usize = 2 + TAG.len() + 16;

    /// Appends the mark as a batch record. It is not counted and takes no sequence number.
    pub fn append_record(self, out: &mut Vec<u8>) {
        out.push(LOG_DATA);
        put_slice(out, &self.data());
    }

    /// The mark as log data for [`crate::write::batch::WriteBatch::put_log_data`].
    pub fn data(self) -> Vec<u8> {
        let mut data = Vec::with_capacity(TAG.len() + 16);
        data.extend_from_slice(TAG);
        put_fixed64(&mut data, self.log_number);
        put_fixed64(&mut data, self.bytes);
        data
    }

    /// The mark in `log_data`, if it is one.
    pub fn parse(log_data: &[u8]) -> Option<Self> {
        let mut rest = Reader::new(log_data.strip_prefix(TAG)?);
        let mark = Self {
            log_number: rest.fixed64()?,
            bytes: rest.fixed64()?,
        };
        rest.is_empty().then_some(mark)
    }

    /// The last mark in a batch; `None` when there is none or the bytes are no batch.
    pub fn in_batch(payload: &[u8]) -> Option<Self> {
        let batch = BatchView::new(payload).ok()?;
        batch.log_data().filter_map(Self::parse).last()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::write::batch::WriteBatch;

    #[test]
    fn a_mark_round_trips_through_a_batch() {
        let mark = SyncedMark {
            log_number: 7,
            bytes: 123_456,
        };
        let mut batch = WriteBatch::new();
        batch.put(b"k", b"v").unwrap();
        assert_eq!(SyncedMark::in_batch(batch.bytes()), None);
        batch.put_log_data(&mark.data()).unwrap();
        assert_eq!(batch.count(), 1);
        assert_eq!(SyncedMark::in_batch(batch.bytes()), Some(mark));

        let mut bytes = Vec::new();
        mark.append_record(&mut bytes);
        assert_eq!(bytes.len(), SyncedMark::RECORD_BYTES);
        assert!(batch.bytes().ends_with(&bytes));
    }

    #[test]
    fn other_log_data_is_no_mark() {
        for data in [
            &b""[..],
            b"drumlin.synced",
            b"drumlin.synced1234567",
            b"hello",
        ] {
            assert_eq!(SyncedMark::parse(data), None);
        }
    }
}
