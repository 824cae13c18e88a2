//! RocksDB's Ribbon filter (128 bits wide), for reading.
//!
//! A Ribbon filter is the solution of a system of linear equations over bits: for every key that
//! was added, a few columns of the solution, each masked by 128 coefficients drawn from the key's
//! hash, have the parities that the hash foretells (Dillinger and Walzer, "Ribbon filter:
//! practically smaller than Bloom and Xor", 2021). A stranger meets all parities by chance only.
//!
//! ```text
//! h     = (hash ^ seed) * A            start = (h * starts) >> 64, a slot
//! block = start / 128                  bit   = start % 128
//! c     = h * B                        coefficients = (c << 64 | c ^ C) | 1
//! for each column i of the block:
//!   parity((segment[i] & coefficients << bit) ^ (next block's segment[i] & coefficients >> 128-bit))
//!     must equal bit i of byteswap(c)
//! ```
//!
//! The columns of 128 slots are stored together as segments of 16 bytes. Blocks from `upper_start` on have
//! one column more than those before, which lets the size follow the wished rate closely.

/// On disk: the hash's mixing constants.
const REHASH_FACTOR: u64 = 0x6193_d459_236a_3a0d;
const COEFFICIENT_FACTOR: u64 = 0xc28f_8282_2b65_0bed;
const COEFFICIENT_XOR: u64 = 0xc367_844a_6e52_731d;
const SEED_FACTOR: u64 = 0xc782_19a2_3eea_dd03;
const SEED_MIX_MASK: u64 = 0xf0f0_f0f0_f0f0_f0f0;

/// Slots a block; bits of a segment.
const BLOCK_SLOTS: u64 = 128;
const SEGMENT_BYTES: usize = 16;
/// Result bits a key has at most.
const COLUMNS_MAX: usize = 32;

/// A Ribbon filter.
#[derive(Clone, Debug)]
pub(super) struct Ribbon {
    segments: Box<[u128]>,
    raw_seed: u64,
    starts: u64,
    /// Columns of the blocks from `upper_start` on.
    upper_columns: usize,
    upper_start: usize,
}

impl Ribbon {
    /// The filter of `blocks` blocks in `body`, its hashes seeded by `seed`. `None` for fewer than
    /// two blocks, or when there are not enough bytes for them: such filters admit every key.
    pub(super) fn new(body: &[u8], seed: u32, blocks: u32) -> Option<Self> {
        let blocks = blocks as usize;
        if blocks < 2 {
            return None;
        }
        let (whole, _) = body.as_chunks::<SEGMENT_BYTES>();
        let segments: Box<[u128]> = whole.iter().map(|s| u128::from_le_bytes(*s)).collect();
        let mut upper_columns = segments.len().div_ceil(blocks);
        let mut upper_start = upper_columns * blocks - segments.len();
        if upper_columns > COLUMNS_MAX {
            upper_columns = COLUMNS_MAX;
            upper_start = 0;
        }
        // No columns at all would admit every key.
        (upper_columns > 0).then_some(Self {
            segments,
            raw_seed: raw_seed(seed),
            starts: (blocks as u64 - 1) * BLOCK_SLOTS + 1,
            upper_columns,
            upper_start,
        })
    }

    /// Whether a key of `hash` may have been added.
    pub(super) fn may_contain(&self, hash: u64) -> bool {
        let hash = (hash ^ self.raw_seed).wrapping_mul(REHASH_FACTOR);
        let start = ((u128::from(hash) * u128::from(self.starts)) >> 64) as u64;
        let block = (start / BLOCK_SLOTS) as usize;
        let bit = (start % BLOCK_SLOTS) as u32;
        let first = block * self.upper_columns - block.min(self.upper_start);
        let columns = self.upper_columns - usize::from(block < self.upper_start);

        let mixed = hash.wrapping_mul(COEFFICIENT_FACTOR);
        let coefficients = ((u128::from(mixed) << 64) ^ u128::from(mixed ^ COEFFICIENT_XOR)) | 1;
        let expected = mixed.swap_bytes() as u32;
        let left = coefficients << bit;
        // A start at the block's first slot touches no second block: nothing is left to shift in.
        let right = coefficients.checked_shr(128 - bit).unwrap_or(0);
        let segment = |at: usize| self.segments.get(at).copied();
        (0..columns).all(|column| {
            let here = segment(first + column);
            let next = if bit == 0 {
                Some(0)
            } else {
                segment(first + columns + column)
            };
            let (Some(here), Some(next)) = (here, next) else {
                return true; // Excluded by `new`; never a wrong "no".
            };
            let parity = ((here & left) ^ (next & right)).count_ones() & 1;
            parity == (expected >> column) & 1
        })
    }

    /// Memory it holds.
    pub(super) fn resident_bytes(&self) -> usize {
        self.segments.len() * SEGMENT_BYTES
    }
}

/// The seed as the hash takes it: stored seeds count up from zero and are spread out first.
fn raw_seed(seed: u32) -> u64 {
    let mixed = u64::from(seed).wrapping_mul(SEED_FACTOR);
    let mixed = mixed ^ ((mixed & SEED_MIX_MASK) >> 4);
    u64::from(mixed as u32)
}
