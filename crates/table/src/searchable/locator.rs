//! From a key's rank to the page and the place in it where its row is.
//!
//! For each block of 64 keys: the page and place of its first row, and a bit for each row that is the
//! first of a page. Counting these bits leads to any row: sixteen bytes in memory for 64 keys. Pages are
//! numbered in the order of their rows. Jumps give the place of a page: a jump is a page that does not
//! directly follow another one in the file, but keys or the pages of a large row.

use std::ops::Range;

use drumlin_base::coding::{Reader, put_fixed32, put_fixed64};
use drumlin_base::{Error, Result};
use drumlin_succinct::keys::BLOCK_KEYS;

const BLOCK: u64 = BLOCK_KEYS as u64;
const _: () = assert!(BLOCK_KEYS == 64, "a bit of a word for each key of a block");

/// Where the row of a key is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RowPlace {
    pub(crate) page: u32,
    pub(crate) row: usize,
    /// The row is a list of versions.
    pub(crate) versioned: bool,
}

/// Where in its page a row is: its first byte, and in the upper half its end. One word, because moving two
/// halves together right after they were written makes the processor wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RowSpan(u64);

impl RowSpan {
    /// The span of the bytes `range`; `None` for ends beyond 32 bits.
    #[inline]
    pub(crate) fn of(range: &Range<usize>) -> Option<Self> {
        debug_assert!(range.start <= range.end);
        let (start, end) = (u32::try_from(range.start), u32::try_from(range.end));
        Some(Self(u64::from(start.ok()?) | u64::from(end.ok()?) << 32))
    }

    /// The bytes of the page.
    #[inline]
    pub(crate) fn range(self) -> Range<usize> {
        (self.0 as u32 as usize)..(self.0 >> 32) as usize
    }
}

/// From page `page` on, pages are one after the other from `block` on, in blocks of a page's size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Jump {
    page: u32,
    block: u32,
}

/// The rows of a block of keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct BlockRows {
    /// Bit `n` is set when row `n` begins a page, other than the first row's.
    begins: u64,
    page: u32,
    row: u32,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Locator {
    places: Vec<BlockRows>,
    /// Rows that are lists of versions; empty if none is.
    versioned: Vec<u64>,
    jumps: Vec<Jump>,
}

impl Locator {
    /// Adds the row of the key of `rank`, which ascends from 0 by one.
    pub(super) fn push(&mut self, rank: u64, place: RowPlace) {
        let bit = 1u64 << (rank % BLOCK);
        debug_assert_eq!(
            rank.div_ceil(BLOCK),
            self.places.len() as u64,
            "rows come in the order of their keys"
        );
        if rank.is_multiple_of(BLOCK) {
            self.places.push(BlockRows {
                begins: 0,
                page: place.page,
                row: place.row as u32,
            });
        } else if place.row == 0
            && let Some(last) = self.places.last_mut()
        {
            last.begins |= bit;
        }
        if place.versioned {
            self.versioned.resize(self.places.len(), 0);
            if let Some(last) = self.versioned.last_mut() {
                *last |= bit;
            }
        }
    }

    /// Notes that page `page`, which ascends, is at `block`.
    pub(super) fn page_lies_at(&mut self, page: u32, block: u32) {
        let expected = self
            .jumps
            .last()
            .map(|last| last.block + (page - last.page));
        if expected != Some(block) {
            self.jumps.push(Jump { page, block });
        }
    }

    /// Prefetches the lines that [`Locator::find`] reads for the keys of block `block`.
    #[inline]
    pub(super) fn prefetch(&self, block: usize) {
        if let Some(place) = self.places.get(block) {
            drumlin_base::bytes::prefetch(place, 1);
        }
    }

    /// The page where the rows of the keys of `block` begin.
    #[inline]
    pub(super) fn first_page(&self, block: usize) -> Option<u32> {
        self.places.get(block).map(|place| place.page)
    }

    /// Where the row of `rank` is. `None` past the last.
    #[inline]
    pub(super) fn find(&self, rank: u64) -> Option<RowPlace> {
        let block = usize::try_from(rank / BLOCK).ok()?;
        let place = self.places.get(block)?;
        let index = (rank % BLOCK) as u32;
        // The bits of the block's rows up to this one.
        let before = place.begins & (u64::MAX >> (63 - index));
        let row = match before {
            0 => place.row + index,
            before => index - (63 - before.leading_zeros()),
        };
        let versioned = self.versioned.get(block).copied().unwrap_or(0);
        Some(RowPlace {
            page: place.page.checked_add(before.count_ones())?,
            row: row as usize,
            versioned: (versioned >> index) & 1 == 1,
        })
    }

    /// Where page `page` is, in blocks of a page's size.
    #[inline]
    pub(super) fn block_of(&self, page: u32) -> Option<u32> {
        let behind = self.jumps.partition_point(|jump| jump.page <= page);
        let jump = self.jumps.get(behind.checked_sub(1)?)?;
        jump.block.checked_add(page - jump.page)
    }

    /// Whether some rows are lists of versions.
    pub(super) fn has_versions(&self) -> bool {
        !self.versioned.is_empty()
    }

    /// Bytes in memory.
    pub(super) fn resident_bytes(&self) -> usize {
        self.places.capacity() * size_of::<BlockRows>()
            + self.versioned.capacity() * 8
            + self.jumps.capacity() * size_of::<Jump>()
    }

    /// Bytes stored.
    pub(super) fn stored_bytes(&self) -> usize {
        self.places.len() * 14 + self.versioned.len() * 8 + self.jumps.len() * 8
    }

    /// The sections jumps, places and versioned.
    pub(super) fn encode(&self) -> [Vec<u8>; 3] {
        let [mut jumps, mut places, mut versioned] = [const { Vec::new() }; 3];
        for jump in &self.jumps {
            put_fixed32(&mut jumps, jump.page);
            put_fixed32(&mut jumps, jump.block);
        }
        for place in &self.places {
            put_fixed64(&mut places, place.begins);
            put_fixed32(&mut places, place.page);
            places.extend_from_slice(&(place.row as u16).to_le_bytes());
        }
        for &word in &self.versioned {
            put_fixed64(&mut versioned, word);
        }
        [jumps, places, versioned]
    }

    /// Decodes the sections that [`Locator::encode`] wrote, for `keys` keys in `pages` pages.
    ///
    /// # Errors
    /// `Corruption`, also where a row is in none of the pages.
    pub(super) fn decode(
        [jumps, places, versioned]: [&[u8]; 3],
        keys: u64,
        pages: u64,
    ) -> Result<Self> {
        let damaged = || Error::corruption("the locator of a searchable table is damaged");
        let blocks = usize::try_from(keys.div_ceil(BLOCK)).map_err(|_| damaged())?;
        let sizes_fit = blocks.checked_mul(14) == Some(places.len())
            && jumps.len().is_multiple_of(8)
            && versioned.len().is_multiple_of(8)
            && versioned.len() / 8 <= blocks;
        if !sizes_fit {
            return Err(damaged());
        }
        let jumps = read_all(jumps, |from| {
            Some(Jump {
                page: from.fixed32()?,
                block: from.fixed32()?,
            })
        });
        if !jumps.is_sorted_by(|a, b| a.page < b.page && a.block < b.block) {
            return Err(damaged());
        }
        let places = read_all(places, |from| {
            let (begins, page) = (from.fixed64()?, from.fixed32()?);
            let row = u16::from_le_bytes(*from.bytes(2)?.first_chunk::<2>()?);
            let row = u32::from(row);
            Some(BlockRows { begins, page, row })
        });
        let last_page = |it: &BlockRows| u64::from(it.page) + u64::from(it.begins.count_ones());
        if !places.iter().all(|place| last_page(place) < pages) {
            return Err(damaged());
        }
        Ok(Self {
            jumps,
            places,
            versioned: read_all(versioned, Reader::fixed64),
        })
    }
}

fn read_all<'a, T>(bytes: &'a [u8], mut read: impl FnMut(&mut Reader<'a>) -> Option<T>) -> Vec<T> {
    let mut from = Reader::new(bytes);
    let mut items = Vec::with_capacity(bytes.len() / 8);
    while let Some(item) = read(&mut from) {
        items.push(item);
    }
    items.shrink_to_fit();
    items
}

#[cfg(test)]
mod tests {
    use drumlin_base::rng::Rng;

    use super::*;

    #[test]
    fn every_row_is_found_where_it_was_put() {
        for seed in 0..40 {
            let mut rng = Rng::new(seed);
            let rows_max = 1 + rng.below(200);
            let versions_in = 1 + rng.below(100);
            let mut made = Locator::default();
            let (mut page, mut block, mut row) = (0, 0, 0);
            let mut places = Vec::new();
            made.page_lies_at(page, block);
            let mut blocks = vec![block];
            let keys = rng.below(1000);
            for rank in 0..keys {
                if row > 0 && rng.one_in(rows_max) {
                    page += 1;
                    block += 1 + (rng.one_in(5) as u32) * 3;
                    made.page_lies_at(page, block);
                    blocks.push(block);
                    row = 0;
                }
                let place = RowPlace {
                    page,
                    row,
                    versioned: seed % 2 == 0 && rng.one_in(versions_in),
                };
                made.push(rank, place);
                places.push(place);
                row += 1;
            }
            let [jumps, stored, versioned] = made.encode();
            let decode =
                |keys, pages| Locator::decode([&jumps[..], &stored, &versioned], keys, pages);
            let pages = u64::from(page) + 1;
            let locator = decode(keys, pages).unwrap();
            for (rank, place) in places.iter().enumerate() {
                assert_eq!(
                    locator.find(rank as u64),
                    Some(*place),
                    "seed {seed}, {rank}"
                );
            }
            for (page, &block) in blocks.iter().enumerate() {
                assert_eq!(locator.block_of(page as u32), Some(block), "seed {seed}");
            }
            assert!(decode(keys + 64, pages).is_err());
            let has_rows_there = places.last().is_some_and(|place| place.page == page);
            assert_eq!(
                decode(keys, pages - 1).is_err(),
                has_rows_there,
                "seed {seed}"
            );
        }
    }
}
