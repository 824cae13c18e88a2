//! The usual lookup, on the shortest way: one key, whose newest version is visible and a value, in a table whose
//! entries have their own sequence numbers, in a record of short lengths.
//!
//! A processor that waits for a record sees some four hundred instructions ahead, and with them the
//! beginning of the next lookup, if little lies between. So there is no call on this way, and what is found is
//! handed back in registers; all else is left to [`PlainTable::get_hinted`].

use drumlin_base::key::{ValueKind, is_same_bytes, split_internal, tag_kind, tag_seqno};
use drumlin_base::{PinnedSlice, SeqNo};

use super::record::{Record, UNIT_BYTES};
use super::table::{KeyHint, PlainTable, PlainValue, RECORD_LINES};

/// What a table has of a key.
#[derive(Clone, Copy, Debug)]
pub enum Newest<'a> {
    /// Nothing.
    Absent,
    /// This value.
    Value(PlainValue<'a>),
    /// To be asked by [`PlainTable::get_hinted`].
    Unusual,
}

impl PlainTable {
    /// The newest version of `user_key` whose sequence number is at most `seqno`, where that can be told
    /// without much ado.
    ///
    /// Requires: `hint` is the one of `user_key`.
    #[inline(always)]
    pub fn newest(&self, user_key: &[u8], hint: KeyHint, seqno: SeqNo) -> Newest<'_> {
        let (Some(keys), None) = (&self.keys, self.global_seqno) else {
            return Newest::Unusual;
        };
        let records = self.records();
        for place in keys.places(self.resident.bytes(), hint.hash()) {
            let at = place as usize * UNIT_BYTES;
            // Asked for at once: the value lies behind the key.
            self.resident.prefetch(at, RECORD_LINES);
            let Some(record) = Record::short_at(records, at) else {
                return Newest::Unusual;
            };
            let Some((found, tag)) = split_internal(record.key(records)) else {
                return Newest::Unusual;
            };
            if !is_same_bytes(found, user_key) {
                continue;
            }
            if tag_kind(tag) != ValueKind::Value as u8 || tag_seqno(tag) > seqno {
                return Newest::Unusual;
            }
            return Newest::Value(self.value_of(record));
        }
        Newest::Absent
    }
}

impl PlainValue<'_> {
    /// As [`PlainValue::pin`], into `slice`.
    #[inline(always)]
    pub fn pin_to(&self, slice: &mut PinnedSlice) {
        if !slice.copy_small(self.bytes()) {
            *slice = self.pin();
        }
    }
}
