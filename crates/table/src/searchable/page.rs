//! Rows in a page, each found by its number alone.
//!
//! Rows of a page are of much the same length, so row `i` of `n` begins near `i/n` of their bytes; a
//! page stores how far off that is, in as few bits as the widest difference takes. Rows of one length
//! cost nothing. A row that is larger than a page has whole pages to itself.
//!
//! ```text
//! rows u16 | bytes of rows u16 | least difference i16 | bits u8 | 0 u8
//! differences of rows 1.., bit-packed | rows | zeros | masked CRC-32C of all before u32
//! ```
//!
//! A large row: `1 u16 | 0 u16 | 0 i16 | 0 u8 | 1 u8 | bytes u32 | row | zeros | CRC`.

use std::ops::Range;

use drumlin_base::checksum::{crc32c, mask};
use drumlin_base::coding::{fixed32_at, fixed64_at};

use super::format::PAGE_BYTES;

const HEADER_BYTES: usize = 8;
const LARGE_HEADER_BYTES: usize = 12;
const CHECKSUM_BYTES: usize = 4;
/// On disk: in the last byte of a header, the page is a large row.
const LARGE: u8 = 1;
/// Bits a difference takes at most: differences are less than a page.
const BITS_MAX: usize = 13;

/// Rows of a page at most: empty rows take no bytes.
const ROWS_MAX: usize = 4096;

/// Collects rows for a page.
#[derive(Debug, Default)]
pub(super) struct PageBuilder {
    rows: Vec<u8>,
    /// Where each row ends.
    ends: Vec<u32>,
}

impl PageBuilder {
    /// Number of rows.
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Bytes of the rows.
    pub(super) fn bytes(&self) -> usize {
        self.rows.len()
    }

    /// Whether one page can hold `row`; a larger row goes through [`large_page`].
    pub(super) fn can_hold(row: &[u8]) -> bool {
        HEADER_BYTES + row.len() + CHECKSUM_BYTES <= PAGE_BYTES
    }

    /// Adds `row` if there is room for it.
    pub(super) fn add(&mut self, row: &[u8]) -> bool {
        let before = self.rows.len();
        let rows = self.ends.len() + 1;
        let bytes = HEADER_BYTES + before + row.len() + CHECKSUM_BYTES;
        if bytes > PAGE_BYTES || rows > ROWS_MAX {
            return false;
        }
        self.rows.extend_from_slice(row);
        self.ends.push(self.rows.len() as u32);
        // Differences are computed only when they matter.
        if bytes + (rows * BITS_MAX).div_ceil(8) <= PAGE_BYTES {
            return true;
        }
        let (_, bits) = self.differences();
        if bytes + ((rows - 1) * bits).div_ceil(8) <= PAGE_BYTES {
            return true;
        }
        self.rows.truncate(before);
        self.ends.pop();
        false
    }

    /// The least difference, and the bits of the widest above it.
    fn differences(&self) -> (i64, usize) {
        let (rows, total) = (self.ends.len(), self.rows.len());
        let starts = self.ends.iter().take(rows.saturating_sub(1));
        let (mut least, mut most) = (i64::MAX, i64::MIN);
        for (row, &start) in starts.enumerate() {
            let difference = i64::from(start) - expected_start(row + 1, rows, total) as i64;
            least = least.min(difference);
            most = most.max(difference);
        }
        if least <= most {
            (least, (64 - (most - least).leading_zeros()) as usize)
        } else {
            (0, 0)
        }
    }

    /// Appends the page to `out` and empties the builder.
    pub(super) fn finish(&mut self, out: &mut Vec<u8>) {
        let start = out.len();
        let (rows, total) = (self.ends.len(), self.rows.len());
        let (least, bits) = self.differences();
        assert!(rows > 0 && rows <= ROWS_MAX, "a page has rows");
        assert!(bits <= BITS_MAX, "a reader refuses wider differences");
        out.extend_from_slice(&(rows as u16).to_le_bytes());
        out.extend_from_slice(&(total as u16).to_le_bytes());
        out.extend_from_slice(&(least as i16).to_le_bytes());
        out.extend_from_slice(&[bits as u8, 0]);
        let (mut waiting, mut waiting_bits) = (0u64, 0);
        for (row, &at) in self.ends.iter().take(rows.saturating_sub(1)).enumerate() {
            let above = i64::from(at) - expected_start(row + 1, rows, total) as i64 - least;
            waiting |= (above as u64) << waiting_bits;
            waiting_bits += bits;
            while waiting_bits >= 8 {
                out.push(waiting as u8);
                waiting >>= 8;
                waiting_bits -= 8;
            }
        }
        if waiting_bits > 0 {
            out.push(waiting as u8);
        }
        out.extend_from_slice(&self.rows);
        seal(out, start, PAGE_BYTES);
        self.rows.clear();
        self.ends.clear();
    }
}

/// Appends `row` in pages of its own and gives their number.
pub(super) fn large_page(row: &[u8], out: &mut Vec<u8>) -> u32 {
    let start = out.len();
    out.extend_from_slice(&[1, 0, 0, 0, 0, 0, 0, LARGE]);
    out.extend_from_slice(&(row.len() as u32).to_le_bytes());
    out.extend_from_slice(row);
    let len = large_bytes(row.len());
    seal(out, start, len);
    (len / PAGE_BYTES) as u32
}

/// Bytes of the pages of a large row.
fn large_bytes(row: usize) -> usize {
    (LARGE_HEADER_BYTES + row + CHECKSUM_BYTES).next_multiple_of(PAGE_BYTES)
}

/// Pads the page that begins at `start` to `len` bytes, the checksum last.
fn seal(out: &mut Vec<u8>, start: usize, len: usize) {
    assert!(
        out.len() <= start + len - CHECKSUM_BYTES,
        "rows leave room for the checksum"
    );
    out.resize(start + len - CHECKSUM_BYTES, 0);
    let checksum = mask(crc32c(out.get(start..).expect("the page is at its end")));
    out.extend_from_slice(&checksum.to_le_bytes());
}

/// Where row `row` of `rows` begins if all have one length.
#[inline]
fn expected_start(row: usize, rows: usize, total: usize) -> usize {
    row * total / rows
}

/// Bytes of the page that begins with `front`, one page of bytes: more than a page for a large row. A claim
/// until [`is_sound`].
pub(super) fn stored_bytes(front: &[u8]) -> usize {
    match front.get(HEADER_BYTES - 1) {
        Some(&LARGE) => large_bytes(fixed32_at(front, HEADER_BYTES).unwrap_or(0) as usize),
        _ => PAGE_BYTES,
    }
}

/// Whether the checksum of a whole page fits.
pub(super) fn is_sound(page: &[u8]) -> bool {
    page.split_last_chunk::<CHECKSUM_BYTES>()
        .is_some_and(|(body, stored)| {
            mask(crc32c(body)) == u32::from_le_bytes(*stored)
                || drumlin_base::bug!("damaged-page-taken")
        })
}

/// Where row `row` is in its page; `None` when it has none, or is damaged.
#[inline]
pub(super) fn row_range(page: &[u8], row: usize) -> Option<Range<usize>> {
    let header = u64::from_le_bytes(*page.first_chunk::<HEADER_BYTES>()?);
    let rows = usize::from(header as u16);
    if row >= rows {
        return None;
    }
    if (header >> 56) as u8 == LARGE {
        let end = LARGE_HEADER_BYTES + fixed32_at(page, HEADER_BYTES)? as usize;
        return (end <= page.len()).then_some(LARGE_HEADER_BYTES..end);
    }
    let total = usize::from((header >> 16) as u16);
    let least = i64::from((header >> 32) as u16 as i16);
    let bits = usize::from((header >> 48) as u8);
    if bits > BITS_MAX {
        return None;
    }
    let rows_at = HEADER_BYTES + ((rows - 1) * bits).div_ceil(8);
    let start_of = |row: usize| -> Option<usize> {
        if row == 0 {
            return Some(0);
        }
        if row == rows {
            return Some(total);
        }
        let bit = (row - 1) * bits;
        // A page ends with its checksum, so eight bytes are there unless it is nearly full of rows.
        let at = HEADER_BYTES + bit / 8;
        let word = match fixed64_at(page, at) {
            Some(word) => word,
            None => u64::from(fixed32_at(page, at)?),
        };
        let above = (word >> (bit % 8)) & ((1 << bits) - 1);
        let start = expected_start(row, rows, total) as i64 + least + above as i64;
        usize::try_from(start).ok()
    };
    let (start, end) = (rows_at + start_of(row)?, rows_at + start_of(row + 1)?);
    (start <= end && end <= page.len()).then_some(start..end)
}

#[cfg(test)]
mod tests {
    use drumlin_base::rng::Rng;

    use super::*;

    #[test]
    fn rows_of_any_lengths_come_back() {
        for seed in 0..300 {
            let mut rng = Rng::new(seed);
            let (least, spread) = (rng.below(200), 1 + rng.below(800));
            let mut builder = PageBuilder::default();
            let mut rows: Vec<Vec<u8>> = Vec::new();
            loop {
                let mut row = vec![0; (least + rng.below(spread)) as usize];
                rng.fill(&mut row);
                if !builder.add(&row) || rows.len() > 5000 {
                    break;
                }
                rows.push(row);
            }
            let mut page = Vec::new();
            builder.finish(&mut page);
            assert_eq!(page.len(), PAGE_BYTES, "seed {seed}");
            assert!(is_sound(&page) && stored_bytes(&page) == PAGE_BYTES);
            for (at, row) in rows.iter().enumerate() {
                let range = row_range(&page, at).unwrap();
                assert_eq!(&page[range], row, "seed {seed}, row {at}");
            }
            assert_eq!(row_range(&page, rows.len()), None);
        }
    }

    #[test]
    fn rows_of_one_length_cost_eight_bytes_a_page_and_the_checksum() {
        let mut builder = PageBuilder::default();
        while builder.add(&[7; 12]) {}
        assert_eq!(builder.len(), (PAGE_BYTES - 12) / 12);
    }

    #[test]
    fn a_large_row_has_pages_of_its_own() {
        for len in [
            PAGE_BYTES - 11,
            PAGE_BYTES,
            3 * PAGE_BYTES - 16,
            3 * PAGE_BYTES - 15,
        ] {
            let row: Vec<u8> = (0..len).map(|at| at as u8).collect();
            assert!(!PageBuilder::can_hold(&row));
            let mut page = Vec::new();
            let pages = large_page(&row, &mut page);
            assert_eq!(page.len(), pages as usize * PAGE_BYTES);
            assert_eq!(stored_bytes(&page[..PAGE_BYTES]), page.len());
            assert!(is_sound(&page));
            assert_eq!(&page[row_range(&page, 0).unwrap()], row);
        }
    }

    #[test]
    fn damaged_pages_give_no_range_outside_them() {
        let mut rng = Rng::new(4);
        let mut page = vec![0; PAGE_BYTES];
        for _ in 0..20_000 {
            rng.fill(&mut page[..16]);
            page[6] &= 15;
            let row = rng.below(70) as usize;
            if let Some(range) = row_range(&page, row) {
                assert!(range.end <= page.len());
            }
        }
    }
}
