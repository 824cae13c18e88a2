//! LevelDB's filter block: a Bloom filter for every 2 KiB of the file that data blocks begin in.
//!
//! Layout: the filters one after the other, an array of their offsets (four bytes each), the offset
//! of that array, and the binary logarithm of the range (11). A filter without keys has no bytes
//! and denies everything.

use drumlin_base::coding::{fixed32_at, put_fixed32};

use super::bloom::legacy_hash;

/// On disk: one filter for each `1 << 11` bytes of data.
const RANGE_LOG2: u8 = 11;
/// The array's offset and the logarithm.
const TAIL_BYTES: usize = 5;
/// Filters with more probes are reserved, and admit everything.
const PROBES_MAX: u8 = 30;

/// Makes the filter block of a LevelDB table.
#[derive(Clone, Debug)]
pub struct LevelDbFilterBuilder {
    bits_per_key: usize,
    probes: u8,
    /// Hashes for the range in the making.
    hashes: Vec<u32>,
    filters: Vec<u8>,
    offsets: Vec<u32>,
}

impl LevelDbFilterBuilder {
    /// A builder of filters with `bits_per_key`; LevelDB's own default is 10.
    pub fn new(bits_per_key: usize) -> Self {
        // ln 2 probes a bit, rounded down to probe less.
        let probes = (bits_per_key as f64 * 0.69) as usize;
        Self {
            bits_per_key,
            probes: probes.clamp(1, usize::from(PROBES_MAX)) as u8,
            hashes: Vec::new(),
            filters: Vec::new(),
            offsets: Vec::new(),
        }
    }

    /// A data block begins at `offset` of the file; the keys that follow are in it.
    pub fn start_block(&mut self, offset: u64) {
        let range = (offset >> RANGE_LOG2) as usize;
        while self.offsets.len() < range {
            self.finish_range();
        }
    }

    /// Adds a user key of the present block.
    pub fn add_key(&mut self, key: &[u8]) {
        self.hashes.push(legacy_hash(key));
    }

    /// The filter block.
    pub fn finish(mut self) -> Vec<u8> {
        if !self.hashes.is_empty() {
            self.finish_range();
        }
        let array_at = self.filters.len() as u32;
        let mut out = self.filters;
        for offset in self.offsets {
            put_fixed32(&mut out, offset);
        }
        put_fixed32(&mut out, array_at);
        out.push(RANGE_LOG2);
        out
    }

    fn finish_range(&mut self) {
        self.offsets.push(self.filters.len() as u32);
        if self.hashes.is_empty() {
            return;
        }
        // Small filters would have too many false positives; 64 bits are the least.
        let bits = (self.hashes.len() * self.bits_per_key).max(64);
        let bytes = bits.div_ceil(8);
        let start = self.filters.len();
        self.filters.resize(start + bytes, 0);
        let filter = self.filters.get_mut(start..).expect("room was made for it");
        for hash in self.hashes.drain(..) {
            for bit in bits_of(hash, bytes * 8, self.probes) {
                if let Some(byte) = filter.get_mut(bit / 8) {
                    *byte |= 1 << (bit % 8);
                }
            }
        }
        self.filters.push(self.probes);
    }
}

/// The bits that stand for `hash` in a filter of `bits` bits (double hashing; `bits` is not zero).
fn bits_of(hash: u32, bits: usize, probes: u8) -> impl Iterator<Item = usize> {
    let delta = hash.rotate_right(17);
    let hashes = std::iter::successors(Some(hash), move |h| Some(h.wrapping_add(delta)));
    hashes
        .take(usize::from(probes))
        .map(move |h| h as usize % bits)
}

/// Answers from a LevelDB filter block.
#[derive(Clone, Debug)]
pub struct LevelDbFilterReader {
    block: Vec<u8>,
    array_at: usize,
    filters: usize,
    range_log2: u32,
}

impl LevelDbFilterReader {
    /// Reads the block's tail; `None` when it makes no sense, in which case the table is read
    /// without a filter, as LevelDB does.
    pub fn parse(block: Vec<u8>) -> Option<Self> {
        let tail_at = block.len().checked_sub(TAIL_BYTES)?;
        let array_at = fixed32_at(&block, tail_at)? as usize;
        let range_log2 = u32::from(*block.last()?);
        let array_bytes = tail_at.checked_sub(array_at)?;
        Some(Self {
            array_at,
            filters: array_bytes / 4,
            range_log2,
            block,
        })
    }

    /// Whether `key` may be in the data block that begins at `block_offset`. Damage admits.
    pub fn may_contain(&self, block_offset: u64, key: &[u8]) -> bool {
        match self.filter_at(block_offset) {
            Some(filter) => filter_may_contain(filter, key),
            None => true,
        }
    }

    /// Memory it holds.
    pub fn resident_bytes(&self) -> usize {
        self.block.len()
    }

    fn filter_at(&self, block_offset: u64) -> Option<&[u8]> {
        let range = block_offset.checked_shr(self.range_log2).unwrap_or(0);
        let range = usize::try_from(range).ok()?;
        if range >= self.filters {
            return None;
        }
        let entry = self.array_at + 4 * range;
        // The last filter ends at the array's start, which is stored behind the array.
        let start = fixed32_at(&self.block, entry)? as usize;
        let end = fixed32_at(&self.block, entry + 4)? as usize;
        if end > self.array_at {
            return None;
        }
        self.block.get(start..end)
    }
}

fn filter_may_contain(filter: &[u8], key: &[u8]) -> bool {
    let Some((&probes, bits)) = filter.split_last() else {
        return false; // No key was added.
    };
    if bits.is_empty() {
        return false;
    }
    if probes > PROBES_MAX {
        return true;
    }
    bits_of(legacy_hash(key), bits.len() * 8, probes).all(|bit| {
        let byte = bits.get(bit / 8);
        byte.is_none_or(|byte| byte & (1 << (bit % 8)) != 0)
    })
}
