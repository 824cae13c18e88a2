//! Numbers of any width, bit after bit, lowest bit first.
//!
//! Readers take bits past the end as zero, so a damaged width gives a wrong number, never a panic.

use drumlin_base::coding::varint64_at;

/// Appends numbers of given widths to a byte vector.
pub(super) struct BitWriter<'a> {
    out: &'a mut Vec<u8>,
    waiting: u64,
    /// Below 64.
    waiting_bits: u32,
}

impl<'a> BitWriter<'a> {
    /// A writer that goes on at the end of `out`.
    pub(super) fn new(out: &'a mut Vec<u8>) -> Self {
        Self {
            out,
            waiting: 0,
            waiting_bits: 0,
        }
    }

    /// Appends the lowest `width` bits of `value`; at most 64, and no higher bit may be set.
    #[inline]
    pub(super) fn push(&mut self, value: u64, width: u32) {
        debug_assert!(width <= 64 && (width == 64 || value >> width == 0));
        let free = 64 - self.waiting_bits;
        self.waiting |= value << self.waiting_bits;
        if width < free {
            self.waiting_bits += width;
            return;
        }
        self.out.extend_from_slice(&self.waiting.to_le_bytes());
        self.waiting = value.checked_shr(free).unwrap_or(0);
        self.waiting_bits = width - free;
    }

    /// Ends the stream at a whole byte; the bits added for that are zero.
    pub(super) fn finish(self) {
        let bytes = self.waiting_bits.div_ceil(8) as usize;
        let tail = self.waiting.to_le_bytes();
        self.out.extend_from_slice(tail.split_at(bytes).0);
    }
}

/// Bits that `value` needs.
#[inline]
pub(super) const fn width_of(value: u64) -> u32 {
    64 - value.leading_zeros()
}

/// The eight bytes at `at`, little-endian; those past the end are zero.
#[inline]
pub(super) fn word_at(bytes: &[u8], at: usize) -> u64 {
    match bytes.get(at..).and_then(|rest| rest.first_chunk::<8>()) {
        Some(word) => u64::from_le_bytes(*word),
        None => short_word(bytes.get(at..).unwrap_or(&[])),
    }
}

#[cold]
fn short_word(rest: &[u8]) -> u64 {
    rest.iter()
        .take(8)
        .rev()
        .fold(0, |word, &byte| (word << 8) | u64::from(byte))
}

/// The first eight bytes of `text`, the first lowest; zeros where it has fewer. Two words of half the width
/// that overlap hold a short text: a loop would end where nobody foresees.
#[inline]
pub(super) fn front(text: &[u8]) -> u64 {
    if let Some(word) = text.first_chunk::<8>() {
        return u64::from_le_bytes(*word);
    }
    let len = text.len();
    if let (Some(first), Some(last)) = (text.first_chunk::<4>(), text.last_chunk::<4>()) {
        let last = u64::from(u32::from_le_bytes(*last));
        return u64::from(u32::from_le_bytes(*first)) | last << (8 * (len - 4));
    }
    if let (Some(first), Some(last)) = (text.first_chunk::<2>(), text.last_chunk::<2>()) {
        let last = u64::from(u16::from_le_bytes(*last));
        return u64::from(u16::from_le_bytes(*first)) | last << (8 * (len - 2));
    }
    text.first().copied().map_or(0, u64::from)
}

/// `text` behind `prefix`, if it begins so. A short prefix is one word, not a call.
#[inline]
pub(super) fn without<'t>(text: &'t [u8], prefix: &[u8]) -> Option<&'t [u8]> {
    if prefix.is_empty() {
        return Some(text);
    }
    if prefix.len() > 8 {
        return text.strip_prefix(prefix);
    }
    let rest = text.get(prefix.len()..)?;
    let differing = (front(text) ^ front(prefix)) & mask(8 * prefix.len() as u32);
    (differing == 0).then_some(rest)
}

/// The number of `width` bits (at most 64) that begins at bit `bit` of `bytes`.
#[inline]
pub(super) fn read_bits(bytes: &[u8], bit: usize, width: u32) -> u64 {
    let (at, shift) = (bit >> 3, (bit & 7) as u32);
    let low = word_at(bytes, at) >> shift;
    if width + shift <= 64 || drumlin_base::bug!("ninth-byte-unread") {
        return low & mask(width);
    }
    // Nine bytes, so `shift` is not zero.
    let high = u64::from(bytes.get(at + 8).copied().unwrap_or(0));
    (low | (high << (64 - shift))) & mask(width)
}

/// As [`varint64_at`]: up to eight bytes of it without a jump for each.
#[inline]
pub(super) fn varint_at(bytes: &[u8], at: usize) -> Option<(u64, usize)> {
    const HIGHEST: u64 = 0x8080_8080_8080_8080;
    let word = bytes.get(at..)?.first_chunk::<8>();
    let word = word.map_or(HIGHEST, |word| u64::from_le_bytes(*word));
    let ends = !word & HIGHEST;
    if ends == 0 {
        return varint64_at(bytes, at);
    }
    // Seven bits of each byte up to the first without its highest bit, joined two by two.
    let sevens = word & (ends ^ (ends - 1)) & !HIGHEST;
    let twos = (sevens & 0x007F_007F_007F_007F) | (sevens & 0x7F00_7F00_7F00_7F00) >> 1;
    let fours = (twos & 0x0000_FFFF_0000_FFFF) | (twos & 0xFFFF_0000_FFFF_0000) >> 2;
    let value = (fours & 0xFFFF_FFFF) | (fours >> 32) << 28;
    Some((value, at + ends.trailing_zeros() as usize / 8 + 1))
}

/// `width` ones, at most 64.
#[inline]
pub(super) const fn mask(width: u32) -> u64 {
    if width == 0 {
        0
    } else {
        u64::MAX >> (64 - if width > 64 { 64 } else { width })
    }
}

#[cfg(test)]
mod tests {
    use drumlin_base::rng::Rng;

    use super::*;

    #[test]
    fn numbers_of_any_width_are_read_back() {
        let mut rng = Rng::new(7);
        for _ in 0..50 {
            let numbers: Vec<(u64, u32)> = (0..100)
                .map(|_| {
                    let width = rng.below(65) as u32;
                    (rng.next_u64() & mask(width), width)
                })
                .collect();
            let mut out = vec![0xAA];
            let mut writer = BitWriter::new(&mut out);
            for &(value, width) in &numbers {
                writer.push(value, width);
            }
            writer.finish();
            let mut bit = 8;
            for &(value, width) in &numbers {
                assert_eq!(read_bits(&out, bit, width), value);
                bit += width as usize;
            }
            assert_eq!(out.len(), bit.div_ceil(8));
        }
    }

    #[test]
    fn prefixes_of_any_length_come_off() {
        let mut rng = Rng::new(8);
        for _ in 0..5000 {
            let mut text = vec![0; rng.below(20) as usize];
            text.iter_mut().for_each(|byte| *byte = rng.below(2) as u8);
            let mut prefix = text.clone();
            prefix.truncate(rng.below(12) as usize);
            if let Some(byte) = prefix.last_mut() {
                *byte ^= u8::from(rng.below(3) == 0);
            }
            let expected = text.strip_prefix(prefix.as_slice());
            assert_eq!(without(&text, &prefix), expected, "{text:?} {prefix:?}");
            let word: u64 = (text.iter().take(8).zip(0..))
                .map(|(&b, at)| u64::from(b) << (8 * at))
                .sum();
            assert_eq!(front(&text), word);
        }
    }

    #[test]
    fn varints_of_any_length_are_what_byte_by_byte_gives() {
        let mut rng = Rng::new(10);
        for _ in 0..20_000 {
            let mut bytes = vec![0; rng.below(14) as usize];
            rng.fill(&mut bytes);
            let longer = rng.below(12) as usize;
            bytes.iter_mut().take(longer).for_each(|byte| *byte |= 0x80);
            let at = rng.below(4) as usize;
            assert_eq!(varint_at(&bytes, at), varint64_at(&bytes, at), "{bytes:?}");
        }
    }

    #[test]
    fn bits_past_the_end_are_zero() {
        assert_eq!(read_bits(&[0xFF], 4, 64), 0xF);
        assert_eq!(read_bits(&[], 1000, 64), 0);
        assert_eq!(width_of(0), 0);
        assert_eq!(width_of(u64::MAX), 64);
    }
}
