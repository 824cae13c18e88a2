//! Records: one entry each, whole, one behind the other.
//!
//! ```text
//! key length varint32 · value length varint32 · internal key · value · zeros to a multiple of 4
//! ```
//!
//! A record begins at a multiple of [`UNIT_BYTES`], so that 32 bits name its place in 16 GiB.

use std::ops::Range;

use drumlin_base::coding::{put_varint32, varint32_at};
use drumlin_base::key::{TAG_BYTES, split_internal};

/// On disk: the unit of places of records.
pub(super) const UNIT_BYTES: usize = 4;

/// Cache lines of a record that are prefetched at once: most records are no longer.
pub(super) const RECORD_LINES: usize = 3;

/// Where the parts of a record are, as offsets in the file.
///
/// Invariant: they are inside the records it was read from, and the key has a tag.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Record {
    key_at: usize,
    value_at: usize,
    end: usize,
}

/// The offset in the file that a `place` names.
#[inline]
pub(super) fn offset(place: u32) -> usize {
    place as usize * UNIT_BYTES
}

impl Record {
    /// The record that begins at `at` in `records`, the file up to the end of its records. `None`
    /// when there is none that is wholly inside.
    #[inline]
    pub(super) fn at(records: &[u8], at: usize) -> Option<Self> {
        Self::short_at(records, at).or_else(|| Self::long_at(records, at))
    }

    /// As [`Record::at`] where both lengths take one byte.
    #[inline]
    pub(super) fn short_at(records: &[u8], at: usize) -> Option<Self> {
        let (&[key_len, value_len], rest) = records.get(at..)?.split_first_chunk()?;
        let (key_len, value_len) = (key_len as usize, value_len as usize);
        let is_short = (key_len | value_len) < 0x80 && key_len >= TAG_BYTES;
        let slack = usize::from(drumlin_base::bug!("cut-record-taken"));
        let fits = is_short && key_len + value_len <= rest.len() + slack;
        let value_at = at + 2 + key_len;
        fits.then_some(Self {
            key_at: at + 2,
            value_at,
            end: value_at + value_len,
        })
    }

    #[inline(never)]
    fn long_at(records: &[u8], at: usize) -> Option<Self> {
        let (key_len, value_len, key_at) = Self::long_lengths(records, at)?;
        let value_at = key_at + key_len;
        let end = value_at + value_len;
        let fits = key_len >= TAG_BYTES && end <= records.len();
        fits.then_some(Self {
            key_at,
            value_at,
            end,
        })
    }

    fn long_lengths(records: &[u8], at: usize) -> Option<(usize, usize, usize)> {
        let (key_len, value_len_at) = varint32_at(records, at)?;
        let (value_len, key_at) = varint32_at(records, value_len_at)?;
        Some((key_len as usize, value_len as usize, key_at))
    }

    /// Its internal key, in the `records` it was read from.
    #[inline]
    pub(super) fn key<'a>(&self, records: &'a [u8]) -> &'a [u8] {
        let key = records.get(self.key_at..self.value_at);
        key.expect("checked when the record was read")
    }

    /// Its user key and tag.
    #[inline]
    pub(super) fn key_parts<'a>(&self, records: &'a [u8]) -> (&'a [u8], u64) {
        split_internal(self.key(records)).expect("checked when the record was read: it has a tag")
    }

    /// Where its value is.
    #[inline]
    pub(super) fn value_range(&self) -> Range<usize> {
        self.value_at..self.end
    }

    /// Its value.
    #[inline]
    pub(super) fn value<'a>(&self, records: &'a [u8]) -> &'a [u8] {
        let value = records.get(self.value_range());
        value.expect("checked when the record was read")
    }

    /// Where the next record begins, if there is one.
    #[inline]
    pub(super) fn next_at(&self) -> usize {
        if drumlin_base::bug!("records-unaligned") {
            self.end
        } else {
            self.end.next_multiple_of(UNIT_BYTES)
        }
    }
}

/// Appends a record to `out`, whose end is a possible start of a record.
///
/// Requires: both lengths fit 32 bits.
pub(super) fn append_record(out: &mut Vec<u8>, internal_key: &[u8], value: &[u8]) {
    debug_assert!(out.len().is_multiple_of(UNIT_BYTES), "records are aligned");
    put_varint32(out, internal_key.len() as u32);
    put_varint32(out, value.len() as u32);
    out.extend_from_slice(internal_key);
    out.extend_from_slice(value);
    out.resize(out.len().next_multiple_of(UNIT_BYTES), 0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_of_every_length_read_back_and_cut_ones_do_not() {
        let mut bytes = Vec::new();
        let lengths = [8, 9, 127, 128, 300, 20_000];
        let mut starts = Vec::new();
        for key_len in lengths {
            for value_len in [0, 1, 127, 128, 5_000] {
                starts.push((bytes.len(), key_len, value_len));
                append_record(&mut bytes, &vec![b'k'; key_len], &vec![b'v'; value_len]);
            }
        }
        for (index, &(at, key_len, value_len)) in starts.iter().enumerate() {
            let record = Record::at(&bytes, at).unwrap();
            assert_eq!(record.key(&bytes), vec![b'k'; key_len]);
            assert_eq!(record.value(&bytes), vec![b'v'; value_len]);
            let next = starts.get(index + 1).map_or(bytes.len(), |next| next.0);
            assert_eq!(record.next_at(), next);
            for cut in [at, at + 1, record.end - 1] {
                assert!(Record::at(&bytes[..cut], at).is_none());
            }
        }
        assert!(Record::at(&bytes, bytes.len()).is_none());
        assert!(Record::at(&[0; 16], 0).is_none(), "a key has a tag");
        assert!(Record::at(&[0xff; 16], 0).is_none());
    }
}
