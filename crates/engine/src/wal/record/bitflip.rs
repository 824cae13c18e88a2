//! Whether a bad fragment is a sound one with a single bit turned over.
//!
//! A torn write leaves old or no bytes; a medium that rots turns single bits. Telling them apart
//! keeps rot at the end of a log from being taken for the place where writing stopped.
//!
//! CRC is linear: the difference between the stored and the found CRC depends only on which bits
//! differ, not on the others. One wrong bit, followed by `n` bytes, makes the difference of that
//! bit alone stepped through `n` zero bytes. So the difference is stepped *back* a byte at a time
//! from the end, and at each byte compared with the eight differences one bit can make: 32 KiB
//! cost some 100 microseconds instead of 262,144 checksums.

use drumlin_base::checksum::{crc32c, mask, unmask};

use super::fragment::{Header, is_sound};
use super::{BLOCK_BYTES, COVERED_FROM};

/// CRC-32C's polynomial, bits reversed.
const POLYNOMIAL: u32 = 0x82f6_3b78;
const LENGTH_AT: usize = 4;

/// The offset of the byte in `rest` (the rest of a block) in which one turned bit makes the
/// fragment at its front sound; `None` when no single bit does.
pub(super) fn single_bit(rest: &[u8]) -> Option<usize> {
    let rest = rest
        .get(..rest.len().min(BLOCK_BYTES))
        .expect("the length is bounded by the slice");
    let header = Header::decode(rest)?;
    if let Some(at) = in_length_or_type(rest) {
        return Some(at);
    }
    let fragment = rest.get(..header.size())?;
    let covered = fragment.get(COVERED_FROM..)?;
    let found = crc32c(covered);
    let apart = mask(found) ^ header.crc;
    if apart.is_power_of_two() {
        return Some(apart.trailing_zeros() as usize / 8);
    }
    let at = COVERED_FROM + in_covered(covered.len(), found ^ unmask(header.crc))?;
    // A turned type bit can change what the header covers; that was tried above.
    (at != COVERED_FROM).then_some(at)
}

/// Whether the byte at `at`, which [`single_bit`] found in `rest`, may as well be one that was never
/// written: bytes that a write did not reach are zeros, and one that lacked its last bytes, or its first, lacks
/// one bit if they hold no other.
pub(super) fn is_unwritten(rest: &[u8], at: usize) -> bool {
    let zeros = |bytes: Option<&[u8]>| bytes.is_some_and(|b| b.iter().all(|&byte| byte == 0));
    let size = Header::decode(rest).map_or(0, Header::size);
    zeros(rest.get(at..size.max(at + 1))) || zeros(rest.get(..=at))
}

/// Length and type say which bytes the CRC covers, so each of their bits is tried in full.
fn in_length_or_type(rest: &[u8]) -> Option<usize> {
    let mut trial = rest.to_vec();
    for at in LENGTH_AT..=COVERED_FROM {
        for bit in 0..8u8 {
            *trial.get_mut(at)? ^= 1 << bit;
            let header = Header::decode(&trial)?;
            if header.kind != 0 && trial.get(..header.size()).is_some_and(is_sound) {
                return Some(at);
            }
            *trial.get_mut(at)? ^= 1 << bit;
        }
    }
    None
}

/// The offset among `len` covered bytes at which one bit makes the CRC differ by `difference`.
fn in_covered(len: usize, difference: u32) -> Option<usize> {
    let back = step_back_table();
    let mut single = [0u32; 8];
    for (bit, slot) in single.iter_mut().enumerate() {
        *slot = step_byte(1 << bit);
    }
    let mut state = difference;
    for at in (0..len).rev() {
        if single.contains(&state) {
            return Some(at);
        }
        let top = back.get((state >> 24) as usize).copied()?;
        state = (state << 8) ^ top;
    }
    None
}

/// The CRC state after eight zero bits.
const fn step_byte(mut state: u32) -> u32 {
    let mut bit = 0;
    while bit < 8 {
        state = (state >> 1) ^ (POLYNOMIAL & (state & 1).wrapping_neg());
        bit += 1;
    }
    state
}

/// For each top byte of a state, the value to mix in when stepping back over eight zero bits: the low
/// byte that was shifted out decides the top byte, one to one.
fn step_back_table() -> [u32; 256] {
    let mut table = [0u32; 256];
    for low in 0..=255u32 {
        let stepped = step_byte(low);
        if let Some(slot) = table.get_mut((stepped >> 24) as usize) {
            *slot = (stepped << 8) ^ low;
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fragment(len: usize) -> Vec<u8> {
        let mut bytes = vec![0u8; 4];
        bytes.extend_from_slice(&(len as u16).to_le_bytes());
        bytes.push(1);
        bytes.extend((0..len).map(|i| (i * 7 + 3) as u8));
        let crc = mask(crc32c(&bytes[COVERED_FROM..]));
        bytes[..4].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    #[test]
    fn every_single_bit_is_found_and_placed() {
        for len in [0, 1, 5, 60] {
            let sound = fragment(len);
            assert_eq!(single_bit(&sound), None);
            for at in 0..sound.len() {
                for bit in 0..8 {
                    let mut bad = sound.clone();
                    bad[at] ^= 1 << bit;
                    bad.extend_from_slice(&[0xA5; 40]); // The bytes after it must not matter.
                    let found = single_bit(&bad);
                    assert_eq!(found, Some(at), "len {len}, byte {at}, bit {bit}");
                }
            }
        }
    }

    #[test]
    fn a_long_fragment_is_searched_to_its_first_byte() {
        let mut bad = fragment(32_000);
        bad[8] ^= 0x10;
        assert_eq!(single_bit(&bad), Some(8));
    }

    #[test]
    fn two_bits_and_torn_bytes_are_not_single_bits() {
        let sound = fragment(200);
        let mut two = sound.clone();
        two[50] ^= 1;
        two[90] ^= 1;
        assert_eq!(single_bit(&two), None);
        let mut torn = sound.clone();
        torn[100..].fill(0);
        assert_eq!(single_bit(&torn), None);
        assert_eq!(single_bit(&sound[..50]), None, "cut short");
        assert_eq!(single_bit(&[]), None);
    }
}
