//! A column of at most 64 ascending integers in about two bits more than its gaps have.
//!
//! Elias (*Efficient storage and retrieval by content and address of static files*, 1974) and Fano
//! (1971): the lowest bits of each integer are stored as they are; of the rest, each integer sets the
//! bit at "rest + its place in the column", so that each zero stands for a step of the rest. Where an
//! integer would be is found by counting zeros, with no comparison of integers before it.

use std::ops::Range;

use super::packed::{BitWriter, mask, read_bits, width_of, word_at};

/// Bytes of the high bits at most.
pub(super) const HIGH_BYTES_MAX: usize = 32;
const WORDS: usize = HIGH_BYTES_MAX / 8;

/// How many of an integer's bits are stored as they are, for `count` integers up to `range`; and how
/// many bytes the high bits take.
pub(super) fn shape(range: u64, count: usize) -> Option<(u32, usize)> {
    let low_bits = width_of(range / (count.max(1) as u64)).saturating_sub(1);
    let high = usize::try_from(range >> low_bits).ok()?;
    let bytes = (high + count).div_ceil(8);
    (bytes <= HIGH_BYTES_MAX).then_some((low_bits, bytes))
}

/// Appends the high bits of `values`, in `bytes` bytes.
pub(super) fn store_high(values: &[u64], low_bits: u32, bytes: usize, out: &mut Vec<u8>) {
    let mut high = [0u8; HIGH_BYTES_MAX];
    for (index, &value) in values.iter().enumerate() {
        let bit = (value >> low_bits) as usize + index;
        if let Some(byte) = high.get_mut(bit / 8) {
            *byte |= 1 << (bit % 8);
        }
    }
    out.extend_from_slice(high.get(..bytes).unwrap_or(&[]));
}

/// Appends the low bits of `values`.
pub(super) fn store_low(values: &[u64], low_bits: u32, writer: &mut BitWriter<'_>) {
    for &value in values {
        writer.push(value & mask(low_bits), low_bits);
    }
}

/// A column where it lies.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ascending<'a> {
    high: [u64; WORDS],
    /// The block, in which the low bits begin at `low_at`.
    bytes: &'a [u8],
    low_at: usize,
    low_bits: u32,
    count: usize,
}

impl<'a> Ascending<'a> {
    /// The column of `count` integers with its high bits in `high`, and the low ones from bit
    /// `low_at` of `bytes`.
    #[inline]
    pub(super) fn new(
        high: &[u8],
        bytes: &'a [u8],
        low_at: usize,
        low_bits: u32,
        count: usize,
    ) -> Self {
        let mut words = [0; WORDS];
        for (index, word) in words.iter_mut().enumerate() {
            *word = word_at(high, index * 8);
        }
        Self {
            high: words,
            bytes,
            low_at,
            low_bits: low_bits.min(63),
            count,
        }
    }

    #[inline]
    fn low(&self, index: usize) -> u64 {
        let width = self.low_bits;
        read_bits(self.bytes, self.low_at + index * width as usize, width)
    }

    /// The integer at `index`, which is below the count.
    #[inline]
    pub(super) fn get(&self, index: usize) -> u64 {
        let bit = select(&self.high, index, 0);
        ((bit.saturating_sub(index) as u64) << self.low_bits) | self.low(index)
    }

    /// All integers.
    pub(super) fn decode(&self, out: &mut [u64]) {
        let mut index = 0;
        for (at, &word) in self.high.iter().enumerate() {
            let mut rest = word;
            while rest != 0 && index < self.count {
                let bit = at * 64 + rest.trailing_zeros() as usize;
                rest &= rest - 1;
                if let Some(place) = out.get_mut(index) {
                    let high = bit.saturating_sub(index) as u64;
                    *place = (high << self.low_bits) | self.low(index);
                }
                index += 1;
            }
        }
    }

    /// The first place whose integer is not below `value`.
    #[inline]
    pub(super) fn lower_bound(&self, value: u64) -> usize {
        self.search(value).map_or(self.count, |(_, index)| index)
    }

    /// What [`Ascending::lower_bound`] gives, behind the bit in the high bits at which an integer there
    /// with `value`'s high part would stand; `None` beyond the largest high part.
    #[inline]
    fn search(&self, value: u64) -> Option<(usize, usize)> {
        let high = value >> self.low_bits;
        let zeros = usize::try_from(high).ok().filter(|&z| z <= WORDS * 64)?;
        // Integers with this high part begin behind the zero that ends the part before.
        let mut bit = match zeros {
            0 => 0,
            _ => select(&self.high, zeros - 1, u64::MAX) + 1,
        };
        if bit > WORDS * 64 {
            return None; // Fewer zeros than that: beyond the largest integer.
        }
        let mut index = bit.saturating_sub(zeros).min(self.count);
        let low = value & mask(self.low_bits);
        while index < self.count && self.is_one(bit) && self.low(index) < low {
            bit += 1;
            index += 1;
        }
        Some((bit, index))
    }

    /// The places whose integer is `value`.
    #[inline]
    pub(super) fn places(&self, value: u64) -> Range<usize> {
        let Some((mut bit, start)) = self.search(value) else {
            return self.count..self.count;
        };
        let low = value & mask(self.low_bits);
        let mut end = start;
        while end < self.count && self.is_one(bit) && self.low(end) == low {
            bit += 1;
            end += 1;
        }
        start..end
    }

    #[inline]
    fn is_one(&self, bit: usize) -> bool {
        let word = self.high.get(bit / 64).copied().unwrap_or(0);
        (word >> (bit % 64)) & 1 == 1
    }
}

/// Where the one with `rank` ones before it stands, in `words` xor `flip`; past the end if there is
/// none.
#[inline]
fn select(words: &[u64; WORDS], rank: usize, flip: u64) -> usize {
    let mut rank = rank as u32;
    for (at, &word) in words.iter().enumerate() {
        let word = word ^ flip;
        let ones = word.count_ones();
        if rank < ones {
            return at * 64 + select_in_word(word, rank) as usize;
        }
        rank -= ones;
    }
    WORDS * 64
}

/// Where the one of `word` with `rank` ones before it stands. Requires that there is one.
///
/// All bytes are counted at once, the counts summed up by a multiplication, and the bytes before the
/// sought one are those whose sums are not above `rank` (Vigna, *Broadword implementation of rank/select
/// queries*, 2008); within the byte a table tells.
#[inline]
fn select_in_word(word: u64, rank: u32) -> u32 {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGHEST: u64 = ONES << 7;
    let pairs = word - ((word >> 1) & (ONES * 0x55));
    let fours = (pairs & (ONES * 0x33)) + ((pairs >> 2) & (ONES * 0x33));
    let sums = ((fours + (fours >> 4)) & (ONES * 0x0F)).wrapping_mul(ONES);
    let before = ((u64::from(rank) * ONES) | HIGHEST).wrapping_sub(sums) & HIGHEST;
    // At most seven bytes lie before one that is there.
    let at = 8 * before.count_ones().min(7);
    let rank = rank - ((sums << 8) >> at) as u32 % 256;
    let byte = (word >> at) as u8;
    let row = IN_BYTE.get(rank as usize % 8);
    at + u32::from(
        row.and_then(|row| row.get(usize::from(byte)))
            .copied()
            .unwrap_or(0),
    )
}

/// By rank and byte: where the byte's one with so many ones before it stands.
static IN_BYTE: [[u8; 256]; 8] = {
    let mut table = [[0; 256]; 8];
    let mut byte = 0;
    while byte < 256 {
        let (mut bit, mut rank) = (0, 0);
        while bit < 8 {
            if (byte >> bit) & 1 == 1 {
                table[rank][byte] = bit;
                rank += 1;
            }
            bit += 1;
        }
        byte += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use drumlin_base::rng::Rng;

    use super::*;

    #[test]
    fn ones_are_found_by_their_rank() {
        let mut rng = Rng::new(9);
        for round in 0..2000 {
            let word = rng.next_u64() & rng.next_u64() | u64::from(round == 0);
            let ones = (0..64).filter(|bit| (word >> bit) & 1 == 1);
            for (rank, bit) in ones.enumerate() {
                assert_eq!(select_in_word(word, rank as u32), bit, "{word:x} {rank}");
            }
        }
        assert_eq!(select_in_word(u64::MAX, 63), 63);
    }

    #[test]
    fn places_and_integers_agree_with_a_sorted_vector() {
        for seed in 0..500 {
            let mut rng = Rng::new(seed);
            let count = 1 + rng.below(64) as usize;
            let bound = (rng.next_u64() >> rng.below(64)).max(1);
            let mut values: Vec<u64> = (0..count).map(|_| rng.below(bound)).collect();
            values.sort_unstable();
            let range = values.last().copied().unwrap_or(0);
            let Some((low_bits, high_bytes)) = shape(range, count) else {
                panic!("seed {seed}: no shape for {range} and {count}");
            };
            let mut high = Vec::new();
            store_high(&values, low_bits, high_bytes, &mut high);
            let mut low = Vec::new();
            let mut writer = BitWriter::new(&mut low);
            store_low(&values, low_bits, &mut writer);
            writer.finish();
            let column = Ascending::new(&high, &low, 0, low_bits, count);
            let mut decoded = vec![0; count];
            column.decode(&mut decoded);
            assert_eq!(decoded, values, "seed {seed}");
            for (index, &value) in values.iter().enumerate() {
                assert_eq!(column.get(index), value, "seed {seed}");
                let far = range.saturating_mul(1 + rng.below(9));
                for asked in [value, value.saturating_sub(1), value.saturating_add(1), far] {
                    let expected = values.partition_point(|&v| v < asked);
                    assert_eq!(column.lower_bound(asked), expected, "seed {seed} {asked}");
                    let equal = values.iter().filter(|&&v| v == asked).count();
                    let places = column.places(asked);
                    assert_eq!(places.len(), equal, "seed {seed} {asked}");
                    assert!(
                        equal == 0 || places.start == expected,
                        "seed {seed} {asked}"
                    );
                }
            }
        }
    }
}
