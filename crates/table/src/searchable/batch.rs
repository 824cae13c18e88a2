//! Many keys looked up together, as far as their pages are in memory.
//!
//! All keys take a step before any takes the next, so that each waits for memory while the others compute.
//! The steps lead to blocks of keys, places of rows, pages, rows, and the bytes that rows refer to. Then the
//! rows are decoded into one allocation, which their values share: an allocation for each value would cost
//! more than decoding it.
//!
//! Everything else is left to [`SearchableTable::get_hinted`], with the facts found on the way:
//! rows whose pages are not cached, rows that are lists of versions, and rows that are damaged.

use std::ops::Range;
use std::sync::Arc;

use drumlin_base::SeqNo;
use drumlin_base::key::{ValueKind, tag_seqno};

use super::locator::RowPlace;
use super::row::PLAIN_TAG;
use super::table::{PAGE_HEADER_LINES, SearchableTable, SearchableValue};
use crate::hint::{Hint, Known};

/// Keys that are looked up together at most.
pub const TOGETHER_MAX: usize = 32;
/// Values share an allocation of about this many bytes at most: keeping one of them keeps all.
const SHARED_BYTES_MAX: usize = 32 << 10;
/// Most bytes that a decoder writes past the last value.
const SLACK_BYTES: usize = 256;

impl SearchableTable {
    /// Looks up `keys`, at most [`TOGETHER_MAX`], as a reader at `seqno`. Gives values that are in memory to
    /// `visit` with the place of their key. The hints, one for each key, tell of the others that the key is
    /// absent, or how far the search got.
    pub(crate) fn get_together(
        &self,
        keys: &[&[u8]],
        hints: &mut [Hint],
        seqno: SeqNo,
        mut visit: impl FnMut(usize, SeqNo, ValueKind, SearchableValue<'_>),
    ) {
        debug_assert!(keys.len() <= TOGETHER_MAX && keys.len() == hints.len());
        self.find_rows(keys, hints);
        let tag = self.shown_tag(PLAIN_TAG);
        let found = tag_seqno(tag);
        if found > seqno && !drumlin_base::bug!("batches-see-what-came-later") {
            // The reader sees lists of versions only.
            hints.iter_mut().for_each(|hint| match hint.known {
                Known::Row(place) | Known::RowAt(place, _) if place.versioned => {}
                _ => hint.known = Known::Absent,
            });
            return;
        }
        let mut values = Values::default();
        for (at, hint) in hints.iter_mut().enumerate() {
            let Known::RowAt(place, span) = hint.known else {
                continue;
            };
            let Some(page) = self.slots.get(place.page as usize) else {
                continue; // Evicted meanwhile.
            };
            let Some(code) = page.bytes().get(span.range()) else {
                continue; // Evicted, and damaged when it was read again.
            };
            if self.values_are_raw {
                let value = SearchableValue::in_page(&page, span.range());
                visit(at, found, ValueKind::Value, value);
                hint.known = Known::Answered;
                continue;
            }
            if values.bytes.len() + self.model.expected_bytes(code) > SHARED_BYTES_MAX {
                values.give(|at, value| visit(at, found, ValueKind::Value, value));
            }
            if values.bytes.capacity() == 0 {
                let left = keys.len() - at;
                let expected = left.saturating_mul(self.model.expected_bytes(code));
                values
                    .bytes
                    .reserve(expected.min(SHARED_BYTES_MAX) + SLACK_BYTES);
            }
            let longest = self.value_bytes_max;
            let decoded = self.model.decode_within(code, longest, &mut values.bytes);
            if decoded.is_ok() {
                values.push(at);
                hint.known = Known::Answered;
            }
        }
        values.give(|at, value| visit(at, found, ValueKind::Value, value));
    }

    /// Finds the rows of `keys` and prefetches the bytes they refer to. The hint of a row to be answered here
    /// then tells where in its page it is.
    fn find_rows(&self, keys: &[&[u8]], hints: &mut [Hint]) {
        let mut blocks = [None; TOGETHER_MAX];
        let blocks = blocks.get_mut(..keys.len());
        let blocks = blocks.expect("at most TOGETHER_MAX keys");
        self.keys.blocks_of(keys, blocks);
        for block in blocks.iter().flatten() {
            self.locator.prefetch(*block);
        }
        for ((hint, &mut block), key) in hints.iter_mut().zip(blocks).zip(keys) {
            hint.known = match block.and_then(|block| self.find_in(block, key)) {
                Some(place) => {
                    self.slots.prefetch_slot(place.page as usize);
                    Known::Row(place)
                }
                None => Known::Absent,
            };
            hint.end_steps();
        }
        for place in hints.iter().filter_map(simple_row) {
            self.slots.prefetch(place.page as usize, PAGE_HEADER_LINES);
        }
        for hint in &mut *hints {
            if let Some(place) = simple_row(hint)
                && let Some(span) = self.prefetch_row(place)
            {
                hint.known = Known::RowAt(place, span);
            }
        }
        if !self.values_are_raw {
            for hint in hints {
                if let Known::RowAt(place, span) = hint.known {
                    self.prefetch_value(place, span);
                }
            }
        }
    }
}

/// The row of a hint, if it is found and is no list of versions.
#[inline]
fn simple_row(hint: &Hint) -> Option<RowPlace> {
    match hint.known {
        Known::Row(place) if !place.versioned => Some(place),
        _ => None,
    }
}

/// Values that were decoded one behind the other.
#[derive(Debug)]
struct Values {
    bytes: Vec<u8>,
    /// The place of each value's key, and where the value ends.
    ends: [(u8, u32); TOGETHER_MAX],
    count: usize,
}

impl Default for Values {
    fn default() -> Self {
        Self {
            bytes: Vec::new(),
            ends: [(0, 0); TOGETHER_MAX],
            count: 0,
        }
    }
}

impl Values {
    /// Notes that the bytes appended last are the value of key `at`.
    #[inline]
    fn push(&mut self, at: usize) {
        if let Some(end) = self.ends.get_mut(self.count) {
            *end = (at as u8, self.bytes.len() as u32);
            self.count += 1;
        }
    }

    /// Gives all values to `visit` and empties itself.
    fn give(&mut self, mut visit: impl FnMut(usize, SearchableValue<'_>)) {
        let count = std::mem::take(&mut self.count);
        let mut bytes = std::mem::take(&mut self.bytes);
        if count < 2 {
            if let Some(&(at, _)) = self.ends.get(..count).and_then(<[_]>::first) {
                visit(at.into(), SearchableValue::decoded(&mut bytes));
            }
            return;
        }
        let bytes = Arc::new(bytes);
        let mut start = 0;
        for &(at, end) in self.ends.iter().take(count) {
            let range: Range<usize> = start..end as usize;
            start = range.end;
            visit(at.into(), SearchableValue::shared(&bytes, range));
        }
    }
}
