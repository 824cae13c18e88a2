//! The steps of a lookup among many: each prefetches the lines that the next one needs.

use std::ops::ControlFlow;

use drumlin_base::key::ValueKind;
use drumlin_base::{Result, SeqNo};

use super::table::{PAGE_HEADER_LINES, SearchableTable, SearchableValue};
use crate::hint::{Hint, Known};
use crate::options::TableReadOptions;

impl SearchableTable {
    /// Takes the next step for `user_key`.
    #[inline]
    pub(crate) fn step(&self, hint: &mut Hint, user_key: &[u8]) {
        match (hint.begin_step(), hint.known) {
            (0, _) => {
                hint.known = match self.find_block(user_key) {
                    Some(block) => Known::KeyBlock(block),
                    None => Known::Absent,
                };
            }
            (1, Known::KeyBlock(block)) => {
                hint.known = match self.find_in(block, user_key) {
                    Some(place) => {
                        self.slots.prefetch_slot(place.page as usize);
                        Known::Row(place)
                    }
                    None => Known::Absent,
                };
            }
            (2, Known::Row(place)) => self.slots.prefetch(place.page as usize, PAGE_HEADER_LINES),
            (3, Known::Row(place)) => {
                if let Some(span) = self.prefetch_row(place) {
                    hint.known = Known::RowAt(place, span);
                }
            }
            (4, Known::RowAt(place, span)) => self.prefetch_value(place, span),
            _ => {}
        }
    }

    /// As [`SearchableTable::get`], after the steps that `hint` took for this key and sequence number.
    #[inline]
    pub(crate) fn get_hinted(
        &self,
        hint: &Hint,
        user_key: &[u8],
        seqno: SeqNo,
        options: &TableReadOptions,
        visit: impl FnMut(SeqNo, ValueKind, SearchableValue<'_>) -> ControlFlow<()>,
    ) -> Result<()> {
        let (place, span) = match hint.known {
            Known::Absent | Known::Answered => return Ok(()),
            Known::Row(place) => (Some(place), None),
            Known::RowAt(place, span) => (Some(place), Some(span)),
            _ => (self.find(user_key), None),
        };
        match place {
            Some(place) => self.get_row(place, span, seqno, options, visit),
            None => Ok(()),
        }
    }
}
