//! Keys, byte for byte as db_bench writes them, and the orders it writes them in.
//!
//! Without a prefix a key is the low `min(key_size, 8)` bytes of its number, big-endian, then `'0'`
//! up to `key_size`. With `--keys_per_prefix` the number's prefix group comes first.

use drumlin_base::rng::Rng;

use crate::flags::Flags;
use crate::mersenne::Mersenne64;

/// How numbers become keys.
#[derive(Clone, Copy, Debug)]
pub struct KeyShape {
    key_bytes: usize,
    prefix_bytes: usize,
    prefixes: u64,
}

impl KeyShape {
    /// The shape `flags` describe, with `extra_bytes` more than `--key_size` (readmissing asks for
    /// keys one byte too long).
    pub fn new(flags: &Flags, extra_bytes: usize) -> Self {
        let grouped = flags.keys_per_prefix > 0;
        Self {
            key_bytes: flags.key_size + extra_bytes,
            prefix_bytes: if grouped {
                flags.prefix_size.min(flags.key_size)
            } else {
                0
            },
            prefixes: if grouped {
                (flags.num / flags.keys_per_prefix).max(1)
            } else {
                0
            },
        }
    }

    /// Bytes a key has.
    pub fn key_bytes(&self) -> usize {
        self.key_bytes
    }

    /// A buffer for [`KeyShape::write`], already padded.
    pub fn buffer(&self) -> Vec<u8> {
        vec![b'0'; self.key_bytes]
    }

    /// Writes key number `number` over `key`, a buffer from [`KeyShape::buffer`].
    #[inline]
    pub fn write(&self, number: u64, key: &mut [u8]) {
        let mut rest = key;
        if self.prefixes > 0 {
            let (prefix, tail) = rest.split_at_mut(self.prefix_bytes);
            write_big_endian(number % self.prefixes, prefix);
            rest = tail;
        }
        write_big_endian(number, rest);
    }
}

/// The low `min(out.len(), 8)` bytes of `number`, high byte first; the rest of `out` is padding and
/// stays.
#[inline]
fn write_big_endian(number: u64, out: &mut [u8]) {
    if let Some(whole) = out.first_chunk_mut::<8>() {
        *whole = number.to_be_bytes();
    } else {
        let bytes = number.to_be_bytes();
        out.copy_from_slice(&bytes[8 - out.len()..]);
    }
}

/// The order in which a fill writes its keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyOrder {
    /// 0, 1, 2, ...
    Ascending,
    /// Drawn, with repetitions.
    Random,
    /// Every number below the count once, in a random order.
    UniqueRandom,
}

/// Key numbers in one of the orders.
#[derive(Debug)]
pub struct KeyNumbers {
    order: KeyOrder,
    count: u64,
    next: u64,
    shuffle: Shuffle,
}

impl KeyNumbers {
    /// Numbers below `count`. Only `UniqueRandom` uses `seed`; `Random` draws from the generator
    /// given to [`KeyNumbers::next`].
    pub fn new(order: KeyOrder, count: u64, seed: u64) -> Self {
        Self {
            order,
            count: count.max(1),
            next: 0,
            shuffle: Shuffle::new(count.max(1), seed),
        }
    }

    /// The next number.
    #[inline]
    pub fn next(&mut self, random: &mut Mersenne64) -> u64 {
        match self.order {
            KeyOrder::Random => random.next_u64() % self.count,
            KeyOrder::Ascending => self.advance(),
            KeyOrder::UniqueRandom => {
                let index = self.advance();
                self.shuffle.at(index % self.count)
            }
        }
    }

    #[inline]
    fn advance(&mut self) -> u64 {
        let index = self.next;
        self.next += 1;
        index
    }
}

/// A permutation of `0..count` in constant memory.
///
/// db_bench shuffles a vector of all numbers, 8 bytes each; a billion keys would cost 8 GB and
/// evict the data to be measured. This is a four-round Feistel network over the smallest even
/// number of bits that holds `count` (Luby and Rackoff, 1988), walked along its cycle until it
/// lands below `count`, in fewer than four steps on average. The set of keys is the same as the
/// peer's, the order is not.
#[derive(Debug)]
struct Shuffle {
    count: u64,
    half_bits: u32,
    rounds: [u64; 4],
}

impl Shuffle {
    fn new(count: u64, seed: u64) -> Self {
        let bits = u64::BITS - (count - 1).leading_zeros();
        let mut rng = Rng::new(seed);
        Self {
            count,
            half_bits: bits.div_ceil(2).max(1),
            rounds: std::array::from_fn(|_| rng.next_u64() | 1),
        }
    }

    #[inline]
    fn at(&self, index: u64) -> u64 {
        let mut value = index;
        loop {
            value = self.step(value);
            if value < self.count {
                return value;
            }
        }
    }

    #[inline]
    fn step(&self, value: u64) -> u64 {
        let mask = (1u64 << self.half_bits) - 1;
        let (mut left, mut right) = (value >> self.half_bits, value & mask);
        for round in self.rounds {
            let mixed = (right ^ round).wrapping_mul(round);
            let mixed = (mixed ^ (mixed >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            (left, right) = (
                right,
                left ^ ((mixed >> 40) & mask) ^ ((mixed >> 20) & mask),
            );
        }
        (left << self.half_bits) | right
    }
}

/// A number below `flags.num`, skewed when `--read_random_exp_range` asks for it.
///
/// The skew is db_bench's: `exp(-u * range)` of the key space, spread by a large prime so that hot
/// keys are not neighbours. (db_bench computes in 80-bit floats; here they have 64 bits, so single
/// draws may differ in the last place.)
#[inline]
pub fn random_number(flags: &Flags, random: &mut Mersenne64) -> u64 {
    let draw = random.next_u64();
    if flags.read_random_exp_range == 0.0 {
        return draw % flags.num.max(1);
    }
    const BIG: u64 = 1 << 62;
    let order = -((draw % BIG) as f64) / BIG as f64 * flags.read_random_exp_range;
    let rank = (order.exp() * flags.num as f64) as u64;
    rank.wrapping_mul(0x5bd1_e995) % flags.num.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(flags: &Flags, number: u64) -> Vec<u8> {
        let shape = KeyShape::new(flags, 0);
        let mut key = shape.buffer();
        shape.write(number, &mut key);
        key
    }

    #[test]
    fn a_key_is_its_number_big_endian_padded_with_zeros() {
        // Taken from a db_bench 7.8.3 database, read with ldb --hex.
        let flags = Flags::default();
        assert_eq!(key(&flags, 11), b"\0\0\0\0\0\0\0\x0b00000000");
        let short = Flags {
            key_size: 5,
            ..Flags::default()
        };
        assert_eq!(key(&short, 2), [0, 0, 0, 0, 2]);
        assert_eq!(key(&short, 0x0102_0304_0506), [2, 3, 4, 5, 6]);
    }

    #[test]
    fn keys_of_one_group_share_their_prefix() {
        let flags = Flags {
            num: 1000,
            key_size: 20,
            prefix_size: 12,
            keys_per_prefix: 10,
            ..Flags::default()
        };
        let expected = b"\0\0\0\0\0\0\0\x050000\0\0\0\0\0\0\x01\x91";
        assert_eq!(key(&flags, 405 - 4), {
            let mut want = expected.to_vec();
            want[7] = 1; // 401 % 100
            want
        });
        assert_eq!(key(&flags, 405)[..12], expected[..12]);
        assert_eq!(key(&flags, 5)[..12], expected[..12]);
    }

    #[test]
    fn random_keys_are_the_ones_db_bench_draws_from_the_same_seed() {
        // db_bench --benchmarks=fillrandom --num=12 --seed=42 left exactly these keys. Its first
        // thread is seeded with seed + 1 and draws once a batch to choose among its databases.
        let mut random = Mersenne64::new(42 + 1);
        let mut numbers = KeyNumbers::new(KeyOrder::Random, 12, 42);
        let mut seen = std::collections::BTreeSet::new();
        for _ in 0..12 {
            random.next_u64();
            seen.insert(numbers.next(&mut random));
        }
        assert_eq!(Vec::from_iter(seen), [1, 2, 3, 5, 6, 9, 11]);
    }

    #[test]
    fn unique_random_numbers_are_a_permutation() {
        for count in [1, 2, 3, 1000, 1024, 4097] {
            let mut random = Mersenne64::new(1);
            let mut numbers = KeyNumbers::new(KeyOrder::UniqueRandom, count, 7);
            let drawn: Vec<u64> = (0..count).map(|_| numbers.next(&mut random)).collect();
            let mut sorted = drawn.clone();
            sorted.sort_unstable();
            assert!(sorted.into_iter().eq(0..count), "count {count}");
            let in_place = drawn.iter().zip(0..).filter(|(a, b)| *a == b).count();
            assert!(count < 1000 || in_place < 20, "count {count}: {in_place}");
        }
    }
}
