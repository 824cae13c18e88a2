//! A column of at most 64 ascending integers in about two bits more than its gaps have.
//!
//! Elias (*Efficient storage and retrieval by content and address of static files*, 1974) and Fano
//! (1971): the lowest bits of each integer are stored as they are; of the rest, each integer sets the
//! bit at "rest + its place in the column", so that each zero stands for a step of the rest. Where an
//! integer would be is found by counting zeros, with no comparison of integers before it.

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
        let high = value >> self.low_bits;
        let Some(zeros) = usize::try_from(high).ok().filter(|&z| z <= WORDS * 64) else {
            return self.count;
        };
        // Integers with this high part begin behind the zero that ends the part before.
        let mut bit = match zeros {
            0 => 0,
            _ => select(&self.high, zeros - 1, u64::MAX) + 1,
        };
        if bit > WORDS * 64 {
            return self.count; // Fewer zeros than that: beyond the largest integer.
        }
        let mut index = bit.saturating_sub(zeros).min(self.count);
        let low = value & mask(self.low_bits);
        while index < self.count && self.is_one(bit) && self.low(index) < low {
            bit += 1;
            index += 1;
        }
        index
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
#[inline]
fn select_in_word(word: u64, mut rank: u32) -> u32 {
    let mut at = 0;
    for half in [32, 16, 8, 4, 2, 1] {
        let ones = ((word >> at) & mask(half)).count_ones();
        if rank >= ones {
            rank -= ones;
            at += half;
        }
    }
    at
}

#[cfg(test)]
mod tests {
    use drumlin_base::rng::Rng;

    use super::*;

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
                }
            }
        }
    }
}
