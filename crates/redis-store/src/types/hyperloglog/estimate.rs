//! The hash of elements, and the estimate that registers make.

/// Bits of a hash that choose the register.
const INDEX_BITS: u32 = 14;
/// How many registers there are.
pub(super) const REGISTERS: usize = 1 << INDEX_BITS;
/// Bits of a hash whose zeros are counted.
const COUNTED_BITS: u32 = 64 - INDEX_BITS;
/// 1 / (2 ln 2)
const ALPHA: f64 = 0.721_347_520_444_481_7;
/// 2^63
const BEYOND: f64 = 9_223_372_036_854_775_808.0;
/// The seed of all hashes, Redis's.
const SEED: u64 = 0xadc8_3b19;

/// How many registers have each value.
pub(super) type Histogram = [u32; 64];

/// `MurmurHash64A` of Austin Appleby's MurmurHash2, over little-endian words.
fn murmur(bytes: &[u8], seed: u64) -> u64 {
    const M: u64 = 0xc6a4_a793_5bd1_e995;
    const R: u32 = 47;
    let mut hash = seed ^ (bytes.len() as u64).wrapping_mul(M);
    let (words, rest) = bytes.as_chunks::<8>();
    for word in words {
        let mut word = u64::from_le_bytes(*word).wrapping_mul(M);
        word ^= word >> R;
        hash = (hash ^ word.wrapping_mul(M)).wrapping_mul(M);
    }
    if !rest.is_empty() {
        let last = rest
            .iter()
            .rev()
            .fold(0, |word, byte| word << 8 | u64::from(*byte));
        hash = (hash ^ last).wrapping_mul(M);
    }
    hash ^= hash >> R;
    hash = hash.wrapping_mul(M);
    hash ^ hash >> R
}

/// The register that an element goes to, and the value that it brings: 1 to 51.
pub(super) fn register_of(element: &[u8]) -> (usize, u8) {
    let hash = murmur(element, SEED);
    let index = hash as usize % REGISTERS;
    let counted = hash >> INDEX_BITS | 1 << COUNTED_BITS;
    (index, counted.trailing_zeros() as u8 + 1)
}

/// How many different elements leave such registers, about. The sums are those of Redis, in its order.
pub(super) fn cardinality(histogram: &Histogram) -> u64 {
    let registers = REGISTERS as f64;
    let of = |value: u32| f64::from(histogram.get(value as usize).copied().unwrap_or(0));
    let mut z = registers * tau((registers - of(COUNTED_BITS + 1)) / registers);
    for value in (1..=COUNTED_BITS).rev() {
        z += of(value);
        z *= 0.5;
    }
    z += registers * sigma(of(0) / registers);
    let estimate = (ALPHA * registers * registers / z).round();
    // Redis has 2^63 for all that is no i64.
    match estimate < BEYOND {
        true => estimate as u64,
        false => 1 << 63,
    }
}

/// Ertl's sigma, for the registers that are 0.
fn sigma(mut x: f64) -> f64 {
    if x >= 1.0 {
        return f64::INFINITY;
    }
    let (mut y, mut z) = (1.0, x);
    loop {
        x *= x;
        let before = z;
        z += x * y;
        y += y;
        if before == z {
            return z;
        }
    }
}

/// Ertl's tau, for the registers that can hold no more.
fn tau(mut x: f64) -> f64 {
    if x <= 0.0 || x >= 1.0 {
        return 0.0;
    }
    let (mut y, mut z) = (1.0, 1.0 - x);
    loop {
        x = x.sqrt();
        let before = z;
        y *= 0.5;
        z -= (1.0 - x) * (1.0 - x) * y;
        if before == z {
            return z / 3.0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: elements go where Redis puts them. Method: `PFADD k x` and `PFDEBUG DECODE k` of Redis 7.0.15.
    #[test]
    fn elements_go_to_the_registers_of_redis() {
        for (element, index, value) in REGISTERS_OF_REDIS {
            assert_eq!(register_of(element), (*index, *value), "{element:?}");
        }
    }

    const REGISTERS_OF_REDIS: &[(&[u8], usize, u8)] = &[
        (b"a", 12_711, 2),
        (b"foo", 7_348, 5),
        (b"hello", 9_216, 1),
        (b"", 5_938, 2),
        (b"abcdefgh", 1_383, 1),
        (b"abcdefghijklm", 9_157, 1),
    ];

    #[test]
    fn no_elements_and_full_registers_are_bounds() {
        let mut histogram = [0; 64];
        histogram[0] = REGISTERS as u32;
        assert_eq!(cardinality(&histogram), 0);
        let mut histogram = [0; 64];
        histogram[63] = REGISTERS as u32;
        assert_eq!(cardinality(&histogram), 1 << 63);
    }
}
