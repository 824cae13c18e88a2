//! A column of at most 64 ascending integers in about two bits more than its gaps have.
//!
//! Elias (*Efficient storage and retrieval by content and address of static files*, 1974) and Fano
//! (1971): the lowest bits of each integer are stored as they are; of the rest, each integer sets the
//! bit at "rest + its place in the column", so that each zero stands for a step of the rest. Counting
//! zeros gives the place where an integer would be, with no comparison of integers before it.

use std::ops::Range;

use super::packed::{BitWriter, mask, read_bits, width_of, word_at};

/// Bytes of the high bits at most.
pub(super) const HIGH_BYTES_MAX: usize = 32;
const WORDS: usize = HIGH_BYTES_MAX / 8;
const _: () = assert!(WORDS == 4);

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
        let byte = high.get_mut(bit / 8);
        *byte.expect("`shape` refuses ranges with more high bits") |= 1 << (bit % 8);
    }
    out.extend_from_slice(high.split_at(bytes).0);
}

/// Appends the low bits of `values`.
pub(super) fn store_low(values: &[u64], low_bits: u32, writer: &mut BitWriter<'_>) {
    for &value in values {
        writer.push(value & mask(low_bits), low_bits);
    }
}

/// A column, read in place.
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
    /// The column of `count` integers with its high bits in the bytes `high` of `bytes` and the low ones from
    /// bit `low_at` on. Requires: `high` is within `bytes`.
    #[inline(always)]
    pub(super) fn new(
        bytes: &'a [u8],
        high: Range<usize>,
        low_at: usize,
        low_bits: u32,
        count: usize,
    ) -> Self {
        // Bytes behind the high bits are read too, and masked out.
        let word = |index: usize| {
            let len = high.len().saturating_sub(8 * index).min(8);
            word_at(bytes, high.start + 8 * index) & mask(8 * len as u32)
        };
        Self {
            high: [word(0), word(1), word(2), word(3)],
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
        let bit = select(self.high, index, 0);
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
        let Some((mut bit, mut index)) = self.same_high(value) else {
            return self.count;
        };
        let low = value & mask(self.low_bits);
        while index < self.count && self.is_one(bit) && self.low(index) < low {
            (bit, index) = (bit + 1, index + 1);
        }
        index
    }

    /// The first place whose integer is `value` and that `is_it`.
    #[inline(always)]
    pub(super) fn find(&self, value: u64, is_it: impl Fn(usize) -> bool) -> Option<usize> {
        let (mut bit, mut index) = self.same_high(value)?;
        let low = value & mask(self.low_bits);
        while index < self.count && self.is_one(bit) {
            let found = self.low(index);
            if found > low {
                return None;
            }
            if found == low && is_it(index) {
                return Some(index);
            }
            (bit, index) = (bit + 1, index + 1);
        }
        None
    }

    /// The first place that could have an integer with `value`'s high part, behind the bit in the high bits
    /// where that would stand; `None` beyond the largest high part.
    #[inline(always)]
    fn same_high(&self, value: u64) -> Option<(usize, usize)> {
        let high = value >> self.low_bits;
        let zeros = usize::try_from(high).ok().filter(|&z| z <= WORDS * 64)?;
        // Integers with this high part begin behind the zero that ends the part before.
        let bit = match zeros {
            0 => 0,
            _ => select(self.high, zeros - 1, u64::MAX) + 1,
        };
        if bit > WORDS * 64 {
            return None; // Fewer zeros than that: beyond the largest integer.
        }
        Some((bit, bit.saturating_sub(zeros).min(self.count)))
    }

    #[inline]
    fn is_one(&self, bit: usize) -> bool {
        let word = self.high.get(bit / 64).copied().unwrap_or(0);
        (word >> (bit % 64)) & 1 == 1
    }
}

/// Where the one with `rank` ones before it stands, in `words` xor `flip`; past the end if there is
/// none.
///
/// The word is chosen by comparing, without a jump that nobody foresees, and no word passes through memory:
/// one that is loaded beside its neighbour is waited for until both have left the processor.
#[inline(always)]
fn select(words: [u64; WORDS], rank: usize, flip: u64) -> usize {
    let (mut chosen, mut chosen_sums, mut at, mut before, mut ends) = (0, 0, 0, 0, 0);
    for (index, word) in words.into_iter().enumerate() {
        let word = word ^ flip;
        let sums = byte_sums(word);
        if rank >= ends {
            (chosen, chosen_sums, at, before) = (word, sums, index, ends);
        }
        ends += (sums >> 56) as usize;
    }
    if rank >= ends {
        return WORDS * 64;
    }
    at * 64 + select_in_word(chosen, chosen_sums, (rank - before) as u32) as usize
}

/// In each byte how many ones `word` has up to the end of that byte.
#[inline]
fn byte_sums(word: u64) -> u64 {
    let pairs = word - ((word >> 1) & (ONES * 0x55));
    let fours = (pairs & (ONES * 0x33)) + ((pairs >> 2) & (ONES * 0x33));
    ((fours + (fours >> 4)) & (ONES * 0x0F)).wrapping_mul(ONES)
}

/// Each byte one.
const ONES: u64 = 0x0101_0101_0101_0101;

/// Where the one of `word` with `rank` ones before it stands, whose [`byte_sums`] are `sums`. Requires that
/// there is one.
///
/// All bytes are counted at once, the counts summed up by a multiplication, and the bytes before the
/// sought one are those whose sums are not above `rank` (Vigna, *Broadword implementation of rank/select
/// queries*, 2008); within the byte a table has the position.
#[inline]
fn select_in_word(word: u64, sums: u64, rank: u32) -> u32 {
    const HIGHEST: u64 = ONES << 7;
    let before = ((u64::from(rank) * ONES) | HIGHEST).wrapping_sub(sums) & HIGHEST;
    // At most seven bytes precede the one that has it.
    let bytes = ((before >> 7).wrapping_mul(ONES) >> 56).min(7) as u32;
    let at = 8 * bytes;
    let rank = rank.wrapping_sub(((sums << 8) >> at) as u32 % 256);
    let byte = (word >> at) as u8;
    at + u32::from(IN_BYTE[rank as usize % 8][usize::from(byte)])
}

/// By rank and byte: the position of the byte's one bit that has so many ones before it.
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
                assert_eq!(
                    select_in_word(word, byte_sums(word), rank as u32),
                    bit,
                    "{word:x} {rank}"
                );
            }
        }
        assert_eq!(select_in_word(u64::MAX, byte_sums(u64::MAX), 63), 63);
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
            let mut bytes = high.clone();
            let mut writer = BitWriter::new(&mut bytes);
            store_low(&values, low_bits, &mut writer);
            writer.finish();
            let column = Ascending::new(&bytes, 0..high.len(), 8 * high.len(), low_bits, count);
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
                    let first = (equal > 0).then_some(expected);
                    assert_eq!(column.find(asked, |_| true), first, "seed {seed} {asked}");
                    let second = (equal > 1).then_some(expected + 1);
                    let found = column.find(asked, |index| index > expected);
                    assert_eq!(found, second, "seed {seed} {asked}");
                }
            }
        }
    }
}
