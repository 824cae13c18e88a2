//! The steps of a lookup among many: each prefetches the lines that the next one needs.

use std::ops::ControlFlow;

use drumlin_base::key::ValueKind;
use drumlin_base::{Result, SeqNo};

use super::lookup::{KeyHint, PlainValue};
use super::table::PlainTable;
use crate::hint::{Hint, Known};

impl PlainTable {
    /// Takes the next step for `user_key`.
    #[inline]
    pub(crate) fn step(&self, hint: &mut Hint, user_key: &[u8]) {
        match (hint.begin_step(), hint.known) {
            (0, _) => {
                let key = KeyHint::of(user_key);
                self.prefetch(key);
                hint.known = Known::Plain(key);
            }
            (1, Known::Plain(key)) => {
                let mut probe = self.probe(key);
                if probe.find_record() {
                    probe.prefetch_record()
                } else {
                    hint.known = Known::Absent
                }
            }
            _ => {}
        }
    }

    /// As [`PlainTable::get`], after the steps that `hint` took for this key and sequence number.
    #[inline]
    pub(crate) fn get_hinted(
        &self,
        hint: &Hint,
        user_key: &[u8],
        seqno: SeqNo,
        visit: impl FnMut(SeqNo, ValueKind, PlainValue<'_>) -> ControlFlow<()>,
    ) -> Result<()> {
        match hint.known {
            Known::Absent => Ok(()),
            Known::Plain(key) => self.probe(key).get(user_key, seqno, visit),
            _ => self.get(user_key, seqno, visit),
        }
    }
}
