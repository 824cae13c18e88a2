//! A block of keys that fit a template: one packed column for each number of the key.
//!
//! Stored: two bytes that mark the columns with a frame of their own (bit `n` for column `n`), the
//! others use the template's; for each of the former a byte with the bits of a number, and its least
//! number as a varint; then the columns, bit after bit. If the first column's byte has its highest
//! bit set, the column is an [`Ascending`] one: behind the least number stand a byte with the length
//! of its high bits, and these.
//!
//! A lookup compares integers and prints no key. A seek compares integers in the first column, if it
//! ascends, and prints the keys with equal integers there.

use std::cmp::Ordering;

use drumlin_base::coding::{Reader, put_varint64, varint_len};

use super::ascending::{self, Ascending};
use super::packed::{BitWriter, read_bits};
use super::rows::Rows;
use super::template::{FIELDS_MAX, Frame, Row, Template};

/// In the byte of a column's bits: the column is an ascending one.
pub(super) const ASCENDING: u8 = 0x80;

/// How one column of a block is stored.
#[derive(Clone, Copy, Default)]
struct ColumnPlan {
    frame: Frame,
    own: bool,
    /// Bytes of high bits when it is an ascending column.
    high_bytes: Option<usize>,
}

/// Appends the block of `rows`, which all fit `template` and ascend as keys.
pub(super) fn encode(template: &Template, rows: &Rows, out: &mut Vec<u8>) {
    let mut plans = [ColumnPlan::default(); FIELDS_MAX];
    let mut own_columns = 0u16;
    for (field, plan) in plans.iter_mut().enumerate().take(template.fields.len()) {
        *plan = plan_column(template, rows, field);
        own_columns |= u16::from(plan.own) << field;
    }
    out.extend_from_slice(&own_columns.to_le_bytes());
    let mut first = [0; super::BLOCK_KEYS];
    for plan in plans.iter().filter(|plan| plan.own) {
        let kind = if plan.high_bytes.is_some() {
            ASCENDING
        } else {
            0
        };
        out.push(plan.frame.bits as u8 | kind);
        put_varint64(out, plan.frame.min);
        if let Some(bytes) = plan.high_bytes {
            out.push(bytes as u8);
            let values = above(rows.column(0), plan.frame.min, &mut first);
            ascending::store_high(values, plan.frame.bits, bytes, out);
        }
    }
    let mut writer = BitWriter::new(out);
    for (field, plan) in plans.iter().enumerate().take(template.fields.len()) {
        if plan.high_bytes.is_some() {
            let values = above(rows.column(0), plan.frame.min, &mut first);
            ascending::store_low(values, plan.frame.bits, &mut writer);
            continue;
        }
        for &value in rows.column(field) {
            writer.push(value - plan.frame.min, plan.frame.bits);
        }
    }
    writer.finish();
}

/// The integers of `column` above `min`.
fn above<'a>(column: &[u64], min: u64, into: &'a mut [u64; super::BLOCK_KEYS]) -> &'a [u64] {
    for (place, value) in into.iter_mut().zip(column) {
        *place = value - min;
    }
    into.get(..column.len()).unwrap_or(&[])
}

/// The cheapest way to store column `field`.
fn plan_column(template: &Template, rows: &Rows, field: usize) -> ColumnPlan {
    let column = rows.column(field);
    let (least, most) = column.iter().fold((u64::MAX, 0), |(least, most), &value| {
        (value.min(least), value.max(most))
    });
    let frame = Frame::spanning(least, most);
    let header_bits = 8 * (1 + varint_len(frame.min));
    let mut plan = ColumnPlan {
        frame,
        own: true,
        high_bytes: None,
    };
    let mut bits = header_bits + rows.len() * frame.bits as usize;
    let usual = template.frames.get(field).copied().unwrap_or_default();
    let usual_bits = rows.len() * usual.bits as usize;
    if usual_bits <= bits && usual.holds(frame.min) && usual.holds(most) {
        plan = ColumnPlan {
            frame: usual,
            own: false,
            high_bytes: None,
        };
        bits = usual_bits;
    }
    if field == 0 && template.first_ascends() {
        let range = most - frame.min;
        if let Some((low_bits, high_bytes)) = ascending::shape(range, rows.len()) {
            let ascending = header_bits + 8 + 8 * high_bytes + rows.len() * low_bits as usize;
            if ascending < bits {
                plan = ColumnPlan {
                    frame: Frame {
                        min: frame.min,
                        bits: low_bits,
                    },
                    own: true,
                    high_bytes: Some(high_bytes),
                };
            }
        }
    }
    plan
}

#[derive(Clone, Copy, Default)]
struct Column {
    min: u64,
    /// The bit its first number begins at.
    at: u32,
    bits: u8,
}

/// A block, read in place.
pub(super) struct Columns<'a> {
    template: &'a Template,
    bytes: &'a [u8],
    count: usize,
    columns: [Column; FIELDS_MAX],
    /// The first column's numbers above its least, when they are stored as ascending.
    ascending: Option<Ascending<'a>>,
}

impl<'a> Columns<'a> {
    /// The block of `count` keys at the front of `bytes`, which may go on behind it. `None` when its
    /// header is damaged.
    #[inline]
    pub(super) fn new(template: &'a Template, bytes: &'a [u8], count: usize) -> Option<Self> {
        let mut block = Self::unread(template, bytes, count);
        block.read_header()?;
        Some(block)
    }

    #[inline]
    fn unread(template: &'a Template, bytes: &'a [u8], count: usize) -> Self {
        Self {
            template,
            bytes,
            count,
            columns: [Column::default(); FIELDS_MAX],
            ascending: None,
        }
    }

    /// Reads the header before the columns. `None` when it is damaged.
    #[inline]
    fn read_header(&mut self) -> Option<()> {
        let mut from = Reader::new(self.bytes);
        let own = u16::from_le_bytes(*from.bytes(2)?.first_chunk::<2>()?);
        let mut high = None;
        let columns = self.columns.iter_mut().zip(&self.template.frames);
        for (field, (column, usual)) in columns.enumerate() {
            (column.min, column.bits) = (usual.min, usual.bits as u8);
            if (own >> field) & 1 == 1 {
                let kind = from.u8()?;
                column.bits = kind & !ASCENDING;
                column.min = from.varint64()?;
                if kind & ASCENDING != 0 {
                    if field != 0 {
                        return None;
                    }
                    let len = usize::from(from.u8()?);
                    let at = self.bytes.len() - from.rest().len();
                    from.bytes(len)?;
                    high = Some(at..at + len);
                }
            }
            if column.bits > 64 {
                return None;
            }
        }
        let mut at = ((self.bytes.len() - from.rest().len()) * 8) as u32;
        let fields = self.template.fields.len();
        for column in self.columns.iter_mut().take(fields) {
            column.at = at;
            at += u32::from(column.bits) * self.count as u32;
        }
        let first = self.columns.first().copied().unwrap_or_default();
        self.ascending = high.map(|high| {
            let (at, bits) = (first.at as usize, u32::from(first.bits));
            Ascending::new(self.bytes, high, at, bits, self.count)
        });
        Some(())
    }

    #[inline]
    fn above(&self, column: &Column, index: usize) -> u64 {
        let bit = column.at as usize + index * usize::from(column.bits);
        read_bits(self.bytes, bit, u32::from(column.bits))
    }

    /// The row at `index`.
    fn row(&self, index: usize, row: &mut Row) {
        let columns = self.columns.iter().take(self.template.fields.len());
        for (field, (place, column)) in row.iter_mut().zip(columns).enumerate() {
            let above = match &self.ascending {
                Some(ascending) if field == 0 => ascending.get(index),
                _ => self.above(column, index),
            };
            *place = column.min.wrapping_add(above);
        }
    }

    /// Appends the key at `index`.
    pub(super) fn key(&self, index: usize, out: &mut Vec<u8>) {
        let mut row = Row::default();
        self.row(index, &mut row);
        self.template.print(&row, out);
    }

    /// Gives each key in turn to `visit`, in a buffer that is used again.
    pub(super) fn keys(&self, out: &mut Vec<u8>, mut end_of_key: impl FnMut(&Vec<u8>)) {
        let mut first = [0; super::BLOCK_KEYS];
        if let Some(ascending) = &self.ascending {
            ascending.decode(&mut first);
        }
        let mut row = Row::default();
        for (index, above_first) in first.iter().enumerate().take(self.count) {
            let columns = self.columns.iter().take(self.template.fields.len());
            for (field, (place, column)) in row.iter_mut().zip(columns).enumerate() {
                let above = match self.ascending.is_some() && field == 0 {
                    true => *above_first,
                    false => self.above(column, index),
                };
                *place = column.min.wrapping_add(above);
            }
            self.template.print(&row, out);
            end_of_key(out);
        }
    }

    #[inline]
    fn first_above(&self, index: usize) -> u64 {
        match &self.ascending {
            Some(ascending) => ascending.get(index),
            None => self
                .columns
                .first()
                .map_or(0, |column| self.above(column, index)),
        }
    }

    /// The first place whose first number, above its least, is not below `value`. Requires that the
    /// column ascends.
    #[inline]
    fn lower_bound_first(&self, value: u64) -> usize {
        if let Some(ascending) = &self.ascending {
            return ascending.lower_bound(value);
        }
        let (mut base, mut len) = (0, self.count);
        while len > 0 {
            let half = len / 2;
            let below = self.first_above(base + half) < value;
            base += if below { half + 1 } else { 0 };
            len = if below { len - half - 1 } else { half };
        }
        base
    }

    /// The first place whose key is not below `key`; `scratch` is for keys.
    pub(super) fn lower_bound(&self, key: &[u8], scratch: &mut Vec<u8>) -> usize {
        let (mut from, mut until) = (0, self.count);
        let min = self.columns.first().map_or(0, |column| column.min);
        if let Some(first) = self.template.parse_first(key) {
            let Some(above) = first.checked_sub(min) else {
                return 0;
            };
            from = self.lower_bound_first(above);
            until = match above.checked_add(1) {
                Some(next) => self.lower_bound_first(next),
                None => self.count,
            };
        }
        while from < until {
            let middle = from + (until - from) / 2;
            match self.compare(middle, key, scratch) {
                Ordering::Less => from = middle + 1,
                _ => until = middle,
            }
        }
        from
    }

    /// How the key at `index` compares with `key`.
    fn compare(&self, index: usize, key: &[u8], scratch: &mut Vec<u8>) -> Ordering {
        scratch.clear();
        self.key(index, scratch);
        scratch.as_slice().cmp(key)
    }
}

impl std::fmt::Debug for Columns<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Columns")
            .field("count", &self.count)
            .finish_non_exhaustive()
    }
}
