//! One code of bits for each byte value, short for bytes that are frequent in a sample.
//!
//! A canonical Huffman code (Huffman 1952, Schwartz and Kallick 1964) with codes of at most
//! [`CODE_BITS_MAX`] bits, so that one look into a table of 4,096 gives a byte and its bits. All 256
//! bytes have a code: none needs an escape.

use drumlin_base::coding::Reader;

use super::packed::{BitWriter, read_bits};

/// Longest code.
pub(super) const CODE_BITS_MAX: u32 = 12;
/// Bytes of a stored code: four bits a byte value.
const STORED_BYTES: usize = 128;
const TABLE: usize = 1 << CODE_BITS_MAX;

/// A code for bytes.
#[derive(Clone)]
pub(super) struct Letters {
    /// Bits of each byte's code, and the code with its first bit lowest.
    codes: [(u8, u16); 256],
    /// For each value of the next twelve bits: the byte, and its bits in the upper half.
    table: Vec<u16>,
}

impl Letters {
    /// The code for text with these counts of bytes.
    pub(super) fn of_counts(counts: &[u64; 256]) -> Self {
        let mut weights: Vec<u64> = counts.iter().map(|count| count + 1).collect();
        loop {
            let lengths = huffman_lengths(&weights);
            if lengths.iter().all(|&len| u32::from(len) <= CODE_BITS_MAX) {
                // A Huffman code is complete, so it is accepted.
                return Self::of_lengths(&lengths).unwrap_or_else(Self::plain);
            }
            for weight in &mut weights {
                *weight = *weight / 2 + 1;
            }
        }
    }

    /// Eight bits a byte.
    fn plain() -> Self {
        Self::of_lengths(&[8; 256]).expect("256 codes of eight bits are complete")
    }

    /// The canonical code with these lengths. `None` unless it is complete.
    fn of_lengths(lengths: &[u8; 256]) -> Option<Self> {
        let mut filled = 0usize;
        for &len in lengths {
            if !(1..=CODE_BITS_MAX).contains(&u32::from(len)) {
                return None;
            }
            filled += TABLE >> len;
        }
        if filled != TABLE {
            return None;
        }
        let mut codes = [(0u8, 0u16); 256];
        let mut table = vec![0u16; TABLE];
        let mut next = 0u32;
        for len in 1..=CODE_BITS_MAX {
            for (byte, _) in lengths
                .iter()
                .enumerate()
                .filter(|&(_, &l)| u32::from(l) == len)
            {
                let code = (next >> (CODE_BITS_MAX - len)).reverse_bits() >> (32 - len);
                if let Some(place) = codes.get_mut(byte) {
                    *place = (len as u8, code as u16);
                }
                let entry = (len as u16) << 8 | byte as u16;
                for place in table.iter_mut().skip(code as usize).step_by(1 << len) {
                    *place = entry;
                }
                next += 1 << (CODE_BITS_MAX - len);
            }
        }
        Some(Self { codes, table })
    }

    /// Bits that `text` takes.
    pub(super) fn bits(&self, text: &[u8]) -> u64 {
        text.iter()
            .map(|&byte| {
                self.codes
                    .get(usize::from(byte))
                    .map_or(0, |c| u64::from(c.0))
            })
            .sum()
    }

    /// Appends the code of `text`.
    pub(super) fn encode(&self, text: &[u8], writer: &mut BitWriter<'_>) {
        for &byte in text {
            let (bits, code) = self.codes.get(usize::from(byte)).copied().unwrap_or((0, 0));
            writer.push(u64::from(code), u32::from(bits));
        }
    }

    /// The byte whose code begins at bit `at` of `bytes`, and its bits.
    #[inline]
    pub(super) fn decode(&self, bytes: &[u8], at: usize) -> (u8, usize) {
        self.look_up(read_bits(bytes, at, CODE_BITS_MAX))
    }

    #[inline]
    fn look_up(&self, next: u64) -> (u8, usize) {
        let place = next as usize & (TABLE - 1);
        let entry = self.table.get(place).copied().unwrap_or(0);
        (entry as u8, usize::from(entry >> 8))
    }

    /// Appends the text whose code is the bits `at..end` of `bytes`. At most eight letters a byte.
    #[inline]
    pub(super) fn decode_all(&self, bytes: &[u8], mut at: usize, end: usize, out: &mut Vec<u8>) {
        while at < end {
            // Four codes are at most 48 bits.
            let mut word = super::packed::word_at(bytes, at >> 3) >> (at & 7);
            for _ in 0..4 {
                let (byte, bits) = self.look_up(word);
                out.push(byte);
                word >>= bits;
                at += bits.max(1);
                if at >= end {
                    return;
                }
            }
        }
    }

    /// Bytes in memory.
    pub(super) fn resident_bytes(&self) -> usize {
        size_of::<Self>() + self.table.len() * 2
    }

    /// Appends the code as it is stored.
    pub(super) fn store(&self, out: &mut Vec<u8>) {
        for pair in self.codes.chunks(2) {
            let nibble = |at: usize| pair.get(at).map_or(0, |code| code.0);
            out.push(nibble(0) | nibble(1) << 4);
        }
    }

    /// Reads letters from the bytes of [`Letters::store`]. `None` when they are no complete code.
    pub(super) fn load(from: &mut Reader<'_>) -> Option<Self> {
        let stored = from.bytes(STORED_BYTES)?;
        let mut lengths = [0u8; 256];
        for (pair, byte) in lengths.chunks_mut(2).zip(stored) {
            for (place, len) in pair.iter_mut().zip([byte & 0xF, byte >> 4]) {
                *place = len;
            }
        }
        Self::of_lengths(&lengths)
    }
}

impl std::fmt::Debug for Letters {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Letters").finish_non_exhaustive()
    }
}

/// Lengths of a Huffman code for `weights`, of which there are 256, none zero.
fn huffman_lengths(weights: &[u64]) -> [u8; 256] {
    let mut nodes: Vec<(u64, usize)> = weights.iter().copied().zip(0..).collect();
    nodes.sort_unstable();
    let leaves = nodes.len();
    let mut parents = vec![0usize; 2 * leaves];
    let mut made: Vec<u64> = Vec::with_capacity(leaves);
    let (mut leaf, mut joined) = (0, 0);
    for parent in 0..leaves.saturating_sub(1) {
        let mut weight = 0u64;
        for _ in 0..2 {
            let from_leaf = nodes.get(leaf).map(|node| node.0);
            let from_joined = made.get(joined).copied();
            let take_leaf = match (from_leaf, from_joined) {
                (Some(a), Some(b)) => a <= b,
                (from_leaf, _) => from_leaf.is_some(),
            };
            let (taken, at) = match take_leaf {
                true => (from_leaf, leaf),
                false => (from_joined, leaves + joined),
            };
            leaf += usize::from(take_leaf);
            joined += usize::from(!take_leaf);
            weight += taken.unwrap_or(0);
            let place = parents.get_mut(at);
            *place.expect("joined nodes are fewer than leaves") = leaves + parent;
        }
        made.push(weight);
    }
    // Parents come after their children, so depths are known from the root down.
    let root = (2 * leaves).saturating_sub(2);
    let mut depths = vec![0u8; 2 * leaves];
    for at in (0..root).rev() {
        let parent = parents.get(at).copied().unwrap_or(root);
        let depth = depths.get(parent).copied().unwrap_or(0).saturating_add(1);
        *depths
            .get_mut(at)
            .expect("nodes up to the root have a depth") = depth;
    }
    let mut lengths = [0u8; 256];
    for (at, &(_, byte)) in nodes.iter().enumerate() {
        if let (Some(place), Some(&depth)) = (lengths.get_mut(byte), depths.get(at)) {
            *place = depth;
        }
    }
    lengths
}

#[cfg(test)]
mod tests {
    use drumlin_base::rng::Rng;

    use super::*;

    #[test]
    fn text_of_any_distribution_is_read_back() {
        for seed in 0..30 {
            let mut rng = Rng::new(seed);
            let spread = 1 + rng.below(256);
            let text: Vec<u8> = (0..2000)
                .map(|_| (rng.below(spread) * rng.below(spread) / spread) as u8)
                .collect();
            let mut counts = [0u64; 256];
            for &byte in &text {
                counts[usize::from(byte)] += 1 << rng.below(30);
            }
            let made = Letters::of_counts(&counts);
            let mut stored = Vec::new();
            made.store(&mut stored);
            let letters = Letters::load(&mut Reader::new(&stored)).unwrap();
            let mut code = Vec::new();
            let mut writer = BitWriter::new(&mut code);
            letters.encode(&text, &mut writer);
            writer.finish();
            let mut decoded = Vec::new();
            letters.decode_all(&code, 0, letters.bits(&text) as usize, &mut decoded);
            assert_eq!(decoded, text, "seed {seed}");
        }
    }

    #[test]
    fn incomplete_codes_are_refused() {
        assert!(Letters::load(&mut Reader::new(&[0; 128])).is_none());
        assert!(Letters::load(&mut Reader::new(&[0x11; 128])).is_none());
        assert!(Letters::load(&mut Reader::new(&[0x88; 128])).is_some());
        assert!(Letters::load(&mut Reader::new(&[0x88; 127])).is_none());
    }
}
