//! Ziplists, which Redis wrote before listpacks. They are read, as listpacks, and never written.
//!
//! ```text
//! bytes u32 · place of the last entry u32 · count u16 (65535: unknown) · entries · 0xff     little-endian
//! entry: length of the entry before (one byte, or 0xfe and u32) · encoding · data
//! 00nnnnnn, 01nnnnnn nnnnnnnn, 10...... n u32 (big-endian)     a string of n bytes
//! 0xc0 0xd0 0xe0 0xf0 0xfe                                      an integer of 16, 32, 64, 24, 8 bits
//! 0xf1..=0xfd                                                   0 to 12
//! ```

use drumlin_base::{Error, Result};

use crate::listpack::{Held, Writer};

const HEADER_BYTES: usize = 10;
const END: u8 = 0xff;
const LONG_BEFORE: u8 = 0xfe;
const COUNT_UNKNOWN: u16 = u16::MAX;

/// The same entries as a listpack.
///
/// # Errors
/// Corruption where the header, an entry, the length of an entry before or the place of the last does not fit.
pub fn to_listpack(ziplist: &[u8]) -> Result<Vec<u8>> {
    let damage = || Error::corruption("a ziplist is damaged");
    let header: &[u8; HEADER_BYTES] = ziplist.first_chunk().ok_or_else(damage)?;
    let [a, b, c, d, e, f, g, h, i, j] = *header;
    let bytes = u32::from_le_bytes([a, b, c, d]) as usize;
    let last = u32::from_le_bytes([e, f, g, h]) as usize;
    let count = u16::from_le_bytes([i, j]);
    if bytes != ziplist.len() || ziplist.last() != Some(&END) || last >= bytes {
        return Err(damage());
    }
    let mut out = Writer::new();
    let (mut at, mut before) = (HEADER_BYTES, 0);
    loop {
        let rest = ziplist.get(at..).ok_or_else(damage)?;
        if rest.first() == Some(&END) {
            break;
        }
        let (told, held, len) = entry(rest).ok_or_else(damage)?;
        if told != before {
            return Err(damage());
        }
        match held {
            Held::Integer(number) => out.push_integer(number),
            Held::Text(text) => out.push(text),
        }
        before = len;
        at += len;
    }
    let last_fits = out.count() == 0 || last + before == at;
    let count_fits = count == COUNT_UNKNOWN || u64::from(count) == out.count();
    if at + 1 != ziplist.len() || !last_fits || !count_fits {
        return Err(damage());
    }
    out.finish()
}

/// The entry that `rest` begins with: its claimed length of the entry before, its content, and its own
/// length.
fn entry(rest: &[u8]) -> Option<(usize, Held<'_>, usize)> {
    let (first, behind) = rest.split_first()?;
    let (before, head) = match *first {
        LONG_BEFORE => (u32::from_le_bytes(*behind.first_chunk()?) as usize, 5),
        short => (usize::from(short), 1),
    };
    let (first, data) = rest.get(head..)?.split_first()?;
    let low = usize::from(first & 0x3f);
    let text = |skip: usize, len: usize| {
        let text = data.get(skip..skip.checked_add(len)?)?;
        Some((before, Held::Text(text), head + 1 + skip + len))
    };
    let integer = |bytes: usize| {
        let mut word = [0; 8];
        word.get_mut(8 - bytes..)?
            .copy_from_slice(data.get(..bytes)?);
        let number = i64::from_le_bytes(word) >> (8 * (8 - bytes));
        Some((before, Held::Integer(number), head + 1 + bytes))
    };
    match *first {
        0x00..=0x3f => text(0, low),
        0x40..=0x7f => text(1, low << 8 | usize::from(*data.first()?)),
        0x80..=0xbf => text(4, u32::from_be_bytes(*data.first_chunk()?) as usize),
        0xc0 => integer(2),
        0xd0 => integer(4),
        0xe0 => integer(8),
        0xf0 => integer(3),
        0xfe => integer(1),
        0xf1..=0xfd => Some((before, Held::Integer(i64::from(first & 0xf) - 1), head + 1)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::listpack;

    /// The example in the comment on top of Redis's `ziplist.c`: "2" and "5".
    const EXAMPLE: [u8; 15] = [15, 0, 0, 0, 12, 0, 0, 0, 2, 0, 0, 0xf3, 2, 0xf6, 0xff];

    fn texts(ziplist: &[u8]) -> Result<Vec<Vec<u8>>> {
        let mut found = Vec::new();
        listpack::walk(&to_listpack(ziplist)?, |_, held| {
            found.push(held.to_bytes());
            Ok(())
        })?;
        Ok(found)
    }

    fn ziplist(entries: &[&[u8]]) -> Vec<u8> {
        let mut bytes = vec![0; HEADER_BYTES];
        let (mut last, mut before) = (0, 0);
        for entry in entries {
            last = bytes.len();
            if before < 254 {
                bytes.push(before as u8);
            } else {
                bytes.push(LONG_BEFORE);
                bytes.extend_from_slice(&(before as u32).to_le_bytes());
            }
            bytes.extend_from_slice(entry);
            before = bytes.len() - last;
        }
        bytes.push(END);
        let size = bytes.len() as u32;
        bytes[..4].copy_from_slice(&size.to_le_bytes());
        bytes[4..8].copy_from_slice(&(last as u32).to_le_bytes());
        bytes[8..10].copy_from_slice(&(entries.len() as u16).to_le_bytes());
        bytes
    }

    #[test]
    fn the_published_example_reads() {
        assert_eq!(texts(&EXAMPLE).unwrap(), [b"2", b"5"]);
    }

    #[test]
    fn every_encoding_reads() {
        let long = [&[0x41, 0x2c][..], &[b'y'; 300]].concat();
        let longer = [&[0x80, 0, 0, 0, 2][..], b"zz"].concat();
        let all: [&[u8]; 9] = [
            &[2, b'h', b'i'],
            &long,
            &longer,
            &[0xc0, 0x39, 0x30],
            &[0xd0, 0xff, 0xff, 0xff, 0xff],
            &[0xe0, 0, 0, 0, 0, 0, 0, 0, 0x80],
            &[0xf0, 0x40, 0xe2, 0x01],
            &[0xfe, 0x80],
            &[0xfd],
        ];
        let expected: [&[u8]; 9] = [
            b"hi",
            &[b'y'; 300],
            b"zz",
            b"12345",
            b"-1",
            b"-9223372036854775808",
            b"123456",
            b"-128",
            b"12",
        ];
        assert_eq!(texts(&ziplist(&all)).unwrap(), expected);
    }

    #[test]
    fn every_cut_and_every_bit_of_the_frame_is_noticed() {
        for len in 0..EXAMPLE.len() {
            assert!(to_listpack(&EXAMPLE[..len]).is_err(), "{len}");
        }
        // Bytes 11 and 13 are the integers themselves.
        for at in (0..15).filter(|at| ![11, 13].contains(at)) {
            for bit in 0..8 {
                let mut damaged = EXAMPLE;
                damaged[at] ^= 1 << bit;
                assert!(to_listpack(&damaged).is_err(), "byte {at}, bit {bit}");
            }
        }
    }
}
