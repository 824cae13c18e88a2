//! The hash under RocksDB's filters: XXH3 as it was in a preview (xxHash 0.7.2), 64 bits, seed 0.
//!
//! RocksDB froze that preview; the released XXH3 gives other values and would deny keys that are
//! there. The one change RocksDB made is the hash of the empty key. Four length classes, each with
//! its own way through the secret: up to 16 bytes, up to 128, up to 240, and longer ones, which run
//! in stripes of 64 bytes over eight accumulators.

const PRIME32_1: u64 = 0x9E37_79B1;
const PRIME32_2: u64 = 0x85EB_CA77;
const PRIME32_3: u64 = 0xC2B2_AE3D;
const PRIME64_1: u64 = 0x9E37_79B1_85EB_CA87;
const PRIME64_2: u64 = 0xC2B2_AE3D_27D4_EB4F;
const PRIME64_3: u64 = 0x1656_67B1_9E37_79F9;
const PRIME64_4: u64 = 0x85EB_CA77_C2B2_AE63;
const PRIME64_5: u64 = 0x27D4_EB2F_1656_67C5;

const SECRET_BYTES: usize = 192;
/// The part of the secret that mid-sized inputs use.
const SECRET_BYTES_MIN: usize = 136;
const STRIPE_BYTES: usize = 64;
/// The secret advances by this much a stripe.
const SECRET_STEP: usize = 8;
/// Stripes until the secret is used up and the accumulators are scrambled.
const STRIPES_PER_ROUND: usize = (SECRET_BYTES - STRIPE_BYTES) / SECRET_STEP;

/// xxHash's default secret.
#[rustfmt::skip]
static SECRET: [u8; SECRET_BYTES] = [
    0xb8, 0xfe, 0x6c, 0x39, 0x23, 0xa4, 0x4b, 0xbe, 0x7c, 0x01, 0x81, 0x2c, 0xf7, 0x21, 0xad, 0x1c,
    0xde, 0xd4, 0x6d, 0xe9, 0x83, 0x90, 0x97, 0xdb, 0x72, 0x40, 0xa4, 0xa4, 0xb7, 0xb3, 0x67, 0x1f,
    0xcb, 0x79, 0xe6, 0x4e, 0xcc, 0xc0, 0xe5, 0x78, 0x82, 0x5a, 0xd0, 0x7d, 0xcc, 0xff, 0x72, 0x21,
    0xb8, 0x08, 0x46, 0x74, 0xf7, 0x43, 0x24, 0x8e, 0xe0, 0x35, 0x90, 0xe6, 0x81, 0x3a, 0x26, 0x4c,
    0x3c, 0x28, 0x52, 0xbb, 0x91, 0xc3, 0x00, 0xcb, 0x88, 0xd0, 0x65, 0x8b, 0x1b, 0x53, 0x2e, 0xa3,
    0x71, 0x64, 0x48, 0x97, 0xa2, 0x0d, 0xf9, 0x4e, 0x38, 0x19, 0xef, 0x46, 0xa9, 0xde, 0xac, 0xd8,
    0xa8, 0xfa, 0x76, 0x3f, 0xe3, 0x9c, 0x34, 0x3f, 0xf9, 0xdc, 0xbb, 0xc7, 0xc7, 0x0b, 0x4f, 0x1d,
    0x8a, 0x51, 0xe0, 0x4b, 0xcd, 0xb4, 0x59, 0x31, 0xc8, 0x9f, 0x7e, 0xc9, 0xd9, 0x78, 0x73, 0x64,
    0xea, 0xc5, 0xac, 0x83, 0x34, 0xd3, 0xeb, 0xc3, 0xc5, 0x81, 0xa0, 0xff, 0xfa, 0x13, 0x63, 0xeb,
    0x17, 0x0d, 0xdd, 0x51, 0xb7, 0xf0, 0xda, 0x49, 0xd3, 0x16, 0x55, 0x26, 0x29, 0xd4, 0x68, 0x9e,
    0x2b, 0x16, 0xbe, 0x58, 0x7d, 0x47, 0xa1, 0xfc, 0x8f, 0xf8, 0xb8, 0xd1, 0x7a, 0xd0, 0x31, 0xce,
    0x45, 0xcb, 0x3a, 0x8f, 0x95, 0x16, 0x04, 0x28, 0xaf, 0xd7, 0xfb, 0xca, 0xbb, 0x4b, 0x40, 0x7e,
];

/// The filter hash of `key`. Both halves are used: one picks a cache line, one the bits in it.
#[inline]
pub fn hash(key: &[u8]) -> u64 {
    match key.len() {
        0 => fold(read64(&SECRET, 0), PRIME64_2),
        1..=3 => hash_1_to_3(key),
        4..=8 => hash_4_to_8(key),
        9..=16 => hash_9_to_16(key),
        17..=128 => hash_17_to_128(key),
        129..=240 => hash_129_to_240(key),
        _ => hash_long(key),
    }
}

/// Eight bytes at `at`, which the length class guarantees to be there.
#[inline(always)]
fn read64(bytes: &[u8], at: usize) -> u64 {
    match bytes.get(at..).and_then(<[u8]>::first_chunk::<8>) {
        Some(word) => u64::from_le_bytes(*word),
        None => 0,
    }
}

#[inline(always)]
fn read32(bytes: &[u8], at: usize) -> u64 {
    match bytes.get(at..).and_then(<[u8]>::first_chunk::<4>) {
        Some(word) => u64::from(u32::from_le_bytes(*word)),
        None => 0,
    }
}

#[inline(always)]
fn byte(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at).map_or(0, |&byte| u64::from(byte))
}

/// The halves of the 128-bit product, xored.
#[inline(always)]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    (product as u64) ^ ((product >> 64) as u64)
}

#[inline(always)]
fn avalanche(mut h: u64) -> u64 {
    h ^= h >> 37;
    h = h.wrapping_mul(PRIME64_3);
    h ^ (h >> 32)
}

#[inline]
fn hash_1_to_3(key: &[u8]) -> u64 {
    let len = key.len();
    let first = byte(key, 0);
    let middle = byte(key, len >> 1);
    let last = byte(key, len - 1);
    let combined = first | (middle << 8) | (last << 16) | ((len as u64) << 24);
    avalanche((combined ^ read32(&SECRET, 0)).wrapping_mul(PRIME64_1))
}

#[inline]
fn hash_4_to_8(key: &[u8]) -> u64 {
    let len = key.len();
    let input = read32(key, 0) | (read32(key, len - 4) << 32);
    let keyed = input ^ read64(&SECRET, 0);
    let mixed = (keyed ^ (keyed >> 51)).wrapping_mul(PRIME32_1);
    let mixed = mixed.wrapping_add(len as u64);
    avalanche((mixed ^ (mixed >> 47)).wrapping_mul(PRIME64_2))
}

#[inline]
fn hash_9_to_16(key: &[u8]) -> u64 {
    let len = key.len();
    let low = read64(key, 0) ^ read64(&SECRET, 0);
    let high = read64(key, len - 8) ^ read64(&SECRET, 8);
    let sum = (len as u64).wrapping_add(low).wrapping_add(high);
    avalanche(sum.wrapping_add(fold(low, high)))
}

/// Mixes 16 bytes of input at `at` with 16 of the secret at `secret_at`.
#[inline(always)]
fn mix16(key: &[u8], at: usize, secret_at: usize) -> u64 {
    fold(
        read64(key, at) ^ read64(&SECRET, secret_at),
        read64(key, at + 8) ^ read64(&SECRET, secret_at + 8),
    )
}

#[inline]
fn hash_17_to_128(key: &[u8]) -> u64 {
    let len = key.len();
    let mut acc = (len as u64).wrapping_mul(PRIME64_1);
    // Pairs of 16 bytes from both ends inwards; there are ceil(len / 32) of them.
    for pair in 0..len.div_ceil(32) {
        let front = mix16(key, 16 * pair, 32 * pair);
        let back = mix16(key, len - 16 * (pair + 1), 32 * pair + 16);
        acc = acc.wrapping_add(front).wrapping_add(back);
    }
    avalanche(acc)
}

#[inline(never)]
fn hash_129_to_240(key: &[u8]) -> u64 {
    let len = key.len();
    let mut acc = (len as u64).wrapping_mul(PRIME64_1);
    for round in 0..8 {
        acc = acc.wrapping_add(mix16(key, 16 * round, 16 * round));
    }
    acc = avalanche(acc);
    for round in 8..len / 16 {
        acc = acc.wrapping_add(mix16(key, 16 * round, 16 * (round - 8) + 3));
    }
    acc = acc.wrapping_add(mix16(key, len - 16, SECRET_BYTES_MIN - 17));
    avalanche(acc)
}

type Accumulators = [u64; 8];

/// Adds one stripe of 64 bytes.
#[inline(always)]
fn accumulate(acc: &mut Accumulators, stripe: &[u8], secret_at: usize) {
    for (lane, slot) in acc.iter_mut().enumerate() {
        let data = read64(stripe, 8 * lane);
        let keyed = data ^ read64(&SECRET, secret_at + 8 * lane);
        let product = (keyed & 0xFFFF_FFFF).wrapping_mul(keyed >> 32);
        *slot = slot.wrapping_add(data).wrapping_add(product);
    }
}

#[inline(always)]
fn scramble(acc: &mut Accumulators) {
    for (lane, slot) in acc.iter_mut().enumerate() {
        let mixed = *slot ^ (*slot >> 47) ^ read64(&SECRET, SECRET_BYTES - STRIPE_BYTES + 8 * lane);
        *slot = mixed.wrapping_mul(PRIME32_1);
    }
}

#[inline(never)]
fn hash_long(key: &[u8]) -> u64 {
    let mut acc: Accumulators = [
        PRIME32_3, PRIME64_1, PRIME64_2, PRIME64_3, PRIME64_4, PRIME32_2, PRIME64_5, PRIME32_1,
    ];
    for round in key.chunks(STRIPE_BYTES * STRIPES_PER_ROUND) {
        let stripes = round.chunks_exact(STRIPE_BYTES);
        let whole = stripes.len() == STRIPES_PER_ROUND;
        for (index, stripe) in stripes.enumerate() {
            accumulate(&mut acc, stripe, SECRET_STEP * index);
        }
        if whole {
            scramble(&mut acc);
        }
    }
    if !key.len().is_multiple_of(STRIPE_BYTES) {
        // The last 64 bytes once more, whole, under a secret off the usual grid.
        let tail = key.last_chunk::<STRIPE_BYTES>();
        let tail = tail.expect("long keys are longer than a stripe");
        accumulate(&mut acc, tail, SECRET_BYTES - STRIPE_BYTES - 7);
    }
    let mut sum = (key.len() as u64).wrapping_mul(PRIME64_1);
    for (pair, lanes) in acc.chunks_exact(2).enumerate() {
        if let [a, b] = lanes {
            let at = 11 + 16 * pair;
            sum = sum.wrapping_add(fold(a ^ read64(&SECRET, at), b ^ read64(&SECRET, at + 8)));
        }
    }
    avalanche(sum)
}
