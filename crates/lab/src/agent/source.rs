//! Keys by number, and what must come back for them.

use drumlin_bench::Flags;
use drumlin_bench::datasets::RecordIndex;
use drumlin_bench::keygen::{KeyNumbers, KeyOrder, KeyShape};
use drumlin_bench::mersenne::Mersenne64;
use drumlin_bench::values::Values;

/// Bytes that values are cut from.
const POOL_BYTES: usize = 1 << 20;

/// db_bench's keys, and a value for each that follows from its number.
#[derive(Debug)]
pub(super) struct Numbers {
    shape: KeyShape,
    count: u64,
    value_bytes: usize,
    pool: Vec<u8>,
}

impl Numbers {
    pub(super) fn new(flags: &Flags) -> Self {
        let pool_bytes = POOL_BYTES.max(flags.value_size * 2);
        let mut values = Values::new(flags.compression_ratio, pool_bytes);
        Self {
            shape: KeyShape::new(flags, 0),
            count: flags.num.max(1),
            value_bytes: flags.value_size,
            pool: values.next(pool_bytes).to_vec(),
        }
    }

    /// The value of key `number`: a stretch of the pool, so that writing it and comparing it cost next
    /// to nothing.
    #[inline]
    pub(super) fn value(&self, number: u64) -> &[u8] {
        let room = (self.pool.len() - self.value_bytes) as u64;
        let spread = (number.wrapping_mul(0x9e37_79b9_7f4a_7c15)) >> 32;
        let start = ((spread * room) >> 32) as usize;
        self.pool
            .get(start..start + self.value_bytes)
            .unwrap_or_default()
    }
}

/// What there is to ask for.
#[derive(Debug)]
pub(super) enum Source {
    /// Numbered keys.
    Numbers(Numbers),
    /// Records of a file.
    Records(RecordIndex),
}

impl Source {
    /// How many keys.
    pub(super) fn len(&self) -> u64 {
        match self {
            Self::Numbers(numbers) => numbers.count,
            Self::Records(index) => index.len() as u64,
        }
    }

    /// Replaces `key` by key `number`. The buffer must be given back as it was.
    #[inline]
    pub(super) fn write_key(&self, number: u64, key: &mut Vec<u8>) {
        match self {
            Self::Numbers(numbers) => {
                if key.len() != numbers.shape.key_bytes() {
                    *key = numbers.shape.buffer();
                }
                numbers.shape.write(number, key);
            }
            Self::Records(index) => {
                key.clear();
                key.extend_from_slice(index.key(number as usize));
            }
        }
    }

    /// Whether `value` is that of key `number`.
    #[inline]
    pub(super) fn is_value(&self, number: u64, value: &[u8]) -> bool {
        match self {
            Self::Numbers(numbers) => numbers.value(number) == value,
            Self::Records(index) => index.is_value(number as usize, value),
        }
    }
}

/// The numbers a writer writes, in `order`.
pub(super) fn numbers(source: &Source, order: KeyOrder, seed: u64) -> (KeyNumbers, Mersenne64) {
    (
        KeyNumbers::new(order, source.len(), seed),
        Mersenne64::new(seed),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_value_of_a_number_is_its_own_and_always_the_same() {
        let flags = Flags::parse(&["--num=1000", "--value_size=64"]).expect("sound flags");
        let (one, other) = (Source::Numbers(Numbers::new(&flags)), Numbers::new(&flags));
        for number in 0..1000 {
            assert_eq!(other.value(number).len(), 64);
            assert!(one.is_value(number, other.value(number)));
            assert!(!one.is_value(number, other.value(number + 1)), "{number}");
        }
        let (mut key, expected) = (Vec::new(), b"\0\0\0\0\0\0\0\x0b00000000");
        one.write_key(11, &mut key);
        assert_eq!(key, expected);
    }
}
