//! Listpacks: small entries one behind the other, which can be walked from both ends.
//!
//! ```text
//! bytes u32 · count u16 (65535: unknown) · entries · 0xff             little-endian
//! entry: encoding and data · back length: how long the encoding and the data are, seven bits a byte
//! 0nnnnnnn                     7 bits, an integer
//! 10nnnnnn                     a string of n bytes
//! 110nnnnn nnnnnnnn            13 bits, signed
//! 1110nnnn nnnnnnnn            a string of n bytes
//! 11110000 n u32               a string of n bytes
//! 11110001..11110100           an integer of 16, 24, 32, 64 bits
//! ```

use std::cmp::Ordering;

use drumlin_base::{Error, Result};

use crate::number;
use crate::value::Bytes;

const HEADER_BYTES: usize = 6;
const END: u8 = 0xff;
const COUNT_UNKNOWN: u16 = u16::MAX;
/// Longest text of an integer entry.
const INTEGER_TEXT_BYTES_MAX: usize = 20;

/// The content of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Held<'a> {
    /// An integer, which stands for its text.
    Integer(i64),
    /// A string.
    Text(&'a [u8]),
}

impl Held<'_> {
    /// Its text.
    pub fn to_bytes(self) -> Bytes {
        match self {
            Self::Integer(number) => number.to_string().into_bytes(),
            Self::Text(text) => text.to_vec(),
        }
    }

    /// Its integer, if it has the usual form of one.
    pub fn integer(self) -> Option<i64> {
        match self {
            Self::Integer(number) => Some(number),
            Self::Text(text) => number::integer(text),
        }
    }

    /// Order of the texts.
    pub(crate) fn order(&self, other: &Held<'_>) -> Ordering {
        let (mut mine, mut theirs) = ([0; INTEGER_TEXT_BYTES_MAX], [0; INTEGER_TEXT_BYTES_MAX]);
        self.text(&mut mine).cmp(other.text(&mut theirs))
    }

    fn text<'b>(&'b self, buffer: &'b mut [u8; INTEGER_TEXT_BYTES_MAX]) -> &'b [u8] {
        let number = match self {
            Self::Text(text) => return text,
            Self::Integer(number) => *number,
        };
        let mut left = number.unsigned_abs();
        let mut from = INTEGER_TEXT_BYTES_MAX;
        for (place, digit) in buffer.iter_mut().enumerate().rev() {
            if left == 0 && from < INTEGER_TEXT_BYTES_MAX {
                if number < 0 {
                    *digit = b'-';
                    from = place;
                }
                break;
            }
            *digit = b'0' + (left % 10) as u8;
            left /= 10;
            from = place;
        }
        buffer.get(from..).unwrap_or_default()
    }
}

/// Bytes that a back length of `len` takes. The bounds are Redis's own, one below the largest that
/// would fit.
const fn back_bytes(len: u64) -> usize {
    match len {
        0..=127 => 1,
        128..=16_382 => 2,
        16_383..=2_097_150 => 3,
        2_097_151..=268_435_454 => 4,
        _ => 5,
    }
}

/// The back length that ends with `bytes`.
fn back_len(bytes: &[u8]) -> Option<u64> {
    let mut len = 0;
    for (place, byte) in bytes.iter().rev().take(5).enumerate() {
        len |= u64::from(byte & 0x7f) << (7 * place);
        if byte & 0x80 == 0 {
            return Some(len);
        }
    }
    None
}

/// The entry at `at` and where the next one begins; none at the end, and an error for damage.
#[inline]
pub(crate) fn entry(listpack: &[u8], at: usize) -> Result<Option<(Held<'_>, usize)>> {
    let damage = || Error::corruption("an entry of a listpack is damaged");
    let rest = listpack.get(at..).ok_or_else(damage)?;
    if rest.first() == Some(&END) {
        return Ok(None);
    }
    let (held, len) = held(rest).ok_or_else(damage)?;
    let next = at + len + back_bytes(len as u64);
    // The end mark has to follow, so `next` is inside.
    let back = listpack
        .get(at + len..next)
        .filter(|_| next < listpack.len());
    let told = back.and_then(back_len).ok_or_else(damage)?;
    if told != len as u64 && !drumlin_base::bug!("listpack-back-length-believed") {
        return Err(damage());
    }
    Ok(Some((held, next)))
}

/// The entry that `rest` begins with, and the bytes of its encoding and data.
fn held(rest: &[u8]) -> Option<(Held<'_>, usize)> {
    let (first, rest) = rest.split_first()?;
    let low = usize::from(*first);
    let text = |skip: usize, len: usize| {
        let text = rest.get(skip..skip.checked_add(len)?)?;
        Some((Held::Text(text), 1 + skip + len))
    };
    let integer = |bytes: usize| {
        let mut word = [0; 8];
        let taken = rest.get(..bytes)?;
        // To the top, so that shifting down brings the sign along.
        word.get_mut(8 - bytes..)?.copy_from_slice(taken);
        let number = i64::from_le_bytes(word) >> (8 * (8 - bytes));
        Some((Held::Integer(number), 1 + bytes))
    };
    match *first {
        0..=0x7f => Some((Held::Integer(i64::from(*first)), 1)),
        0x80..=0xbf => text(0, low & 0x3f),
        0xc0..=0xdf => {
            let raw = (low & 0x1f) << 8 | usize::from(*rest.first()?);
            let number = ((raw as i64) << 51) >> 51;
            Some((Held::Integer(number), 2))
        }
        0xe0..=0xef => text(1, (low & 0xf) << 8 | usize::from(*rest.first()?)),
        0xf0 => text(4, u32::from_le_bytes(*rest.first_chunk()?) as usize),
        0xf1 => integer(2),
        0xf2 => integer(3),
        0xf3 => integer(4),
        0xf4 => integer(8),
        _ => None,
    }
}

/// Where the first entry is.
pub(crate) const FIRST: usize = HEADER_BYTES;

/// Walks a whole listpack, hands each entry with its place to `visit`, and returns their number.
///
/// # Errors
/// Corruption if its header, an entry, a back length or its end does not fit; those of `visit`.
pub fn walk<'a>(
    listpack: &'a [u8],
    mut visit: impl FnMut(usize, Held<'a>) -> Result<()>,
) -> Result<u64> {
    let damage = || Error::corruption("the header of a listpack does not fit its bytes");
    let bytes: [u8; 4] = *listpack.first_chunk().ok_or_else(damage)?;
    let told = listpack.get(4..HEADER_BYTES).ok_or_else(damage)?;
    let told = u16::from_le_bytes(told.try_into().map_err(|_| damage())?);
    let whole = u32::from_le_bytes(bytes) as usize == listpack.len();
    if !whole || listpack.len() <= HEADER_BYTES || listpack.last() != Some(&END) {
        return Err(damage());
    }
    let (mut at, mut count) = (FIRST, 0);
    while let Some((held, next)) = entry(listpack, at)? {
        visit(at, held)?;
        at = next;
        count += 1;
    }
    if at + 1 != listpack.len() || (told != COUNT_UNKNOWN && u64::from(told) != count) {
        return Err(damage());
    }
    Ok(count)
}

/// Makes a listpack, entry by entry.
#[derive(Clone, Debug)]
pub struct Writer {
    bytes: Vec<u8>,
    count: u64,
}

impl Default for Writer {
    fn default() -> Self {
        Self::new()
    }
}

impl Writer {
    /// An empty one.
    pub fn new() -> Self {
        let bytes = vec![0; HEADER_BYTES];
        Self { bytes, count: 0 }
    }

    /// Bytes that it would have now.
    pub fn size(&self) -> usize {
        self.bytes.len() + 1
    }

    /// Entries so far.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Appends a string, as an integer if it has the usual form of one.
    pub fn push(&mut self, text: &[u8]) {
        if let Some(number) = number::integer(text) {
            return self.push_integer(number);
        }
        let from = self.bytes.len();
        let len = text.len();
        match len {
            0..=0x3f => self.bytes.push(0x80 | len as u8),
            0x40..=0xfff => self
                .bytes
                .extend_from_slice(&[0xe0 | (len >> 8) as u8, len as u8]),
            _ => {
                self.bytes.push(0xf0);
                self.bytes.extend_from_slice(&(len as u32).to_le_bytes());
            }
        }
        self.bytes.extend_from_slice(text);
        self.close(from);
    }

    /// Appends an integer.
    pub fn push_integer(&mut self, number: i64) {
        let from = self.bytes.len();
        let word = number.to_le_bytes();
        let (mark, bytes) = match number {
            0..=127 => (number as u8, 0),
            -4096..=4095 => {
                let raw = number as u16 & 0x1fff;
                self.bytes.push(0xc0 | (raw >> 8) as u8);
                (raw as u8, 0)
            }
            -0x8000..=0x7fff => (0xf1, 2),
            -0x80_0000..=0x7f_ffff => (0xf2, 3),
            -0x8000_0000..=0x7fff_ffff => (0xf3, 4),
            _ => (0xf4, 8),
        };
        self.bytes.push(mark);
        self.bytes
            .extend_from_slice(word.get(..bytes).unwrap_or_default());
        self.close(from);
    }

    /// Writes how long the entry that begins at `from` is.
    fn close(&mut self, from: usize) {
        let len = (self.bytes.len() - from) as u64;
        let bytes = back_bytes(len);
        for place in (0..bytes).rev() {
            // All but the first say that there is one before.
            let more = if place + 1 == bytes { 0 } else { 0x80 };
            self.bytes.push((len >> (7 * place)) as u8 & 0x7f | more);
        }
        self.count += 1;
    }

    /// The listpack.
    ///
    /// # Errors
    /// TooLarge over 4 GiB, which its header cannot express.
    pub fn finish(mut self) -> Result<Vec<u8>> {
        self.bytes.push(END);
        let size = u32::try_from(self.bytes.len()).map_err(|_| {
            let kind = drumlin_base::ErrorKind::TooLarge;
            Error::new(kind, "a listpack would be larger than 4 GiB")
        })?;
        let count = u16::try_from(self.count).unwrap_or(COUNT_UNKNOWN);
        let header = size.to_le_bytes().into_iter().chain(count.to_le_bytes());
        for (slot, byte) in self.bytes.iter_mut().zip(header) {
            *slot = byte;
        }
        Ok(self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(listpack: &[u8]) -> Result<Vec<Bytes>> {
        let mut found = Vec::new();
        walk(listpack, |_, held| {
            found.push(held.to_bytes());
            Ok(())
        })?;
        Ok(found)
    }

    fn samples() -> Vec<Bytes> {
        let mut all: Vec<Bytes> = Vec::new();
        for bits in 0..64 {
            for number in [1i64 << bits, (1i64 << bits).wrapping_sub(1)] {
                all.push(number.to_string().into_bytes());
                all.push(number.wrapping_neg().to_string().into_bytes());
            }
        }
        for len in [
            0, 1, 63, 64, 120, 126, 127, 4095, 4096, 16_377, 16_378, 16_400, 2_097_150,
        ] {
            all.push(vec![b'x'; len]);
        }
        all
    }

    #[test]
    fn what_is_written_reads_back() {
        let mut writer = Writer::new();
        samples().iter().for_each(|text| writer.push(text));
        let size = writer.size();
        let listpack = writer.finish().unwrap();
        assert_eq!(listpack.len(), size);
        assert_eq!(entries(&listpack).unwrap(), samples());
    }

    #[test]
    fn texts_of_integers_compare_as_their_texts() {
        let all = samples();
        for one in &all {
            for other in all.iter().take(40) {
                let held = |text: &Bytes| number::integer(text).map(Held::Integer);
                let mine = held(one).unwrap_or(Held::Text(one));
                assert!(mine.order(&Held::Text(one)).is_eq());
                let theirs = held(other).unwrap_or(Held::Text(other));
                assert_eq!(mine.order(&theirs), one.cmp(other));
            }
        }
    }

    #[test]
    fn the_bytes_are_those_of_redis() {
        let mut writer = Writer::new();
        writer.push(b"a");
        writer.push(b"1000");
        let expected = [13, 0, 0, 0, 2, 0, 0x81, b'a', 2, 0xc3, 0xe8, 2, 0xff];
        assert_eq!(writer.finish().unwrap(), expected);
    }

    /// A back length is part of the claim: it leads a reader that comes from the other end.
    #[test]
    fn back_lengths_are_compared() {
        let sound = [10, 0, 0, 0, 1, 0, 0x81, b'a', 2, 0xff];
        assert!(entries(&sound).is_ok());
        for wrong in [0, 1, 3, 0x82] {
            let mut damaged = sound;
            damaged[8] = wrong;
            assert!(entries(&damaged).is_err(), "{wrong}");
        }
    }

    #[test]
    fn every_cut_and_every_wrong_header_is_refused() {
        let mut writer = Writer::new();
        (0..20).for_each(|n| writer.push_integer(n * 1000));
        let listpack = writer.finish().unwrap();
        for len in 0..listpack.len() {
            assert!(entries(&listpack[..len]).is_err(), "{len}");
        }
        for at in 0..6 {
            let mut damaged = listpack.clone();
            damaged[at] ^= 1;
            assert!(entries(&damaged).is_err(), "{at}");
        }
    }
}
