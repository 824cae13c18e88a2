//! Looking one key up in a block of columns.
//!
//! A lookup needs only the header of a block and the numbers that its own are compared with, so it keeps only
//! those. [`super::columns::Columns`] knows all of a block and costs more to build than the lookup itself.

use super::ascending::Ascending;
use super::columns::ASCENDING;
use super::packed::{mask, read_bits, varint_at};
use super::template::{FIELDS_MAX, Row, Template};

/// The numbers of a key above the least of each column, and how a block stores its columns.
struct Probe<'a> {
    /// The block and the bytes behind it.
    bytes: &'a [u8],
    count: usize,
    fields: usize,
    sought: Row,
    /// In words: a load of another width than its store would stall.
    widths: [u32; FIELDS_MAX],
    /// The bit at which the columns begin.
    columns_at: usize,
}

/// The place of the key of `row` in the block of `count` keys at the front of `bytes`, which may go on behind
/// it. `None` when it is absent, or the block's header is damaged.
#[inline]
pub(super) fn find(template: &Template, bytes: &[u8], count: usize, row: &Row) -> Option<usize> {
    let own = u16::from_le_bytes(*bytes.first_chunk::<2>()?);
    let mut probe = Probe {
        bytes,
        count,
        fields: template.fields.len(),
        sought: Row::default(),
        widths: [0; FIELDS_MAX],
        columns_at: 0,
    };
    let (mut at, mut high) = (2, None);
    let places = probe.sought.iter_mut().zip(&mut probe.widths);
    let columns = template.frames.iter().zip(row).zip(places);
    for (field, ((usual, &value), (sought, width))) in columns.enumerate() {
        let (mut min, mut bits) = (usual.min, usual.bits);
        let mut is_ascending = false;
        if (own >> field) & 1 == 1 {
            let kind = *bytes.get(at)?;
            (min, at) = varint_at(bytes, at + 1)?;
            bits = u32::from(kind & !ASCENDING);
            is_ascending = kind & ASCENDING != 0;
            if is_ascending {
                let len = usize::from(*bytes.get(at)?);
                high = Some(at + 1..at + 1 + len);
                at += 1 + len;
                if field != 0 || at > bytes.len() {
                    return None;
                }
            }
        }
        *sought = value.checked_sub(min)?;
        *width = bits;
        // Of an ascending column these are the low bits alone.
        if bits > 64 || (*sought & !mask(bits) != 0 && !is_ascending) {
            return None;
        }
    }
    probe.columns_at = 8 * at;
    let (first, width) = (probe.sought[0], probe.widths[0]);
    if let Some(high) = high {
        let column = Ascending::new(bytes, high, probe.columns_at, width, count);
        return column.find(first, |index| probe.equals(index, 1));
    }
    if !template.first_ascends() {
        return (0..count).find(|&index| probe.equals(index, 0));
    }
    let mut index = probe.lower_bound(first);
    while index < count && probe.first(index) == first {
        if probe.equals(index, 1) {
            return Some(index);
        }
        index += 1;
    }
    None
}

impl Probe<'_> {
    /// Whether the key at `index` has the sought numbers from field `from` on.
    #[inline]
    fn equals(&self, index: usize, from: usize) -> bool {
        let mut at = self.columns_at;
        let columns = self.sought.iter().zip(&self.widths).take(self.fields);
        for (field, (&sought, &width)) in columns.enumerate() {
            let bits = width as usize;
            if field >= from && read_bits(self.bytes, at + index * bits, width) != sought {
                return false;
            }
            at += self.count * bits;
        }
        true
    }

    /// The number in the first column of the key at `index`.
    #[inline]
    fn first(&self, index: usize) -> u64 {
        let width = self.widths[0];
        read_bits(self.bytes, self.columns_at + index * width as usize, width)
    }

    /// The first place whose first number is not below `value`. Requires that the column ascends.
    #[inline]
    fn lower_bound(&self, value: u64) -> usize {
        let (mut base, mut len) = (0, self.count);
        while len > 0 {
            let half = len / 2;
            let below = self.first(base + half) < value;
            base += if below { half + 1 } else { 0 };
            len = if below { len - half - 1 } else { half };
        }
        base
    }
}
