//! A block of any keys: each leaves out the prefix it shares with the one before it.
//!
//! Stored: the prefix all keys share, with its length before it; a byte with the bits of a "shared"
//! number, a varint with the least "length" and a byte with the bits of a "length" number; then for
//! each key the number of bytes it shares with the key before it (beyond the common prefix); then for
//! each key the number of bits that its remaining bytes take in the code of [`Letters`]; then these
//! codes.
//!
//! With all lengths at the front a search skips most keys without looking at their bytes: among keys
//! below the sought one, only a key that shares exactly as much with its predecessor as the
//! predecessor shares with the sought one can be nearer to it.

use std::cmp::Ordering;

use drumlin_base::coding::{Reader, put_slice, put_varint64};

use super::letters::Letters;
use super::packed::{BitWriter, read_bits};
use super::template::Frame;

/// Room for keys that may take more bytes is asked for before they are decoded.
const USUAL_KEY_BYTES_MAX: usize = 4 << 10;

/// Appends the block of `keys`, which ascend.
pub(super) fn encode<'k>(
    letters: &Letters,
    keys: impl Iterator<Item = &'k [u8]> + Clone,
    out: &mut Vec<u8>,
) {
    let first = keys.clone().next().unwrap_or(&[]);
    let last = keys.clone().last().unwrap_or(&[]);
    let prefix = common(first, last);
    put_slice(out, first.get(..prefix).unwrap_or(&[]));
    let mut shared = [0u64; super::BLOCK_KEYS];
    let mut lens = [0u64; super::BLOCK_KEYS];
    let mut before: &[u8] = &[];
    let mut count = 0;
    for ((key, shared), len) in keys.clone().zip(&mut shared).zip(&mut lens) {
        let key = key.get(prefix..).unwrap_or(&[]);
        let same = common(before, key);
        *shared = same as u64;
        *len = letters.bits(key.get(same..).unwrap_or(&[]));
        before = key;
        count += 1;
    }
    let (shared, lens) = (shared.get(..count), lens.get(..count));
    let (shared, lens) = (shared.unwrap_or(&[]), lens.unwrap_or(&[]));
    let shared_bits = super::packed::width_of(shared.iter().copied().max().unwrap_or(0));
    let frame = Frame::around(lens.iter().copied());
    out.push(shared_bits as u8);
    put_varint64(out, frame.min);
    out.push(frame.bits as u8);
    let mut writer = BitWriter::new(out);
    for &number in shared {
        writer.push(number, shared_bits);
    }
    for &len in lens {
        writer.push(len - frame.min, frame.bits);
    }
    for (key, &shared) in keys.zip(shared) {
        let own = key.get(prefix + shared as usize..).unwrap_or(&[]);
        letters.encode(own, &mut writer);
    }
    writer.finish();
}

/// Bytes that `a` and `b` share at the front.
#[inline]
pub(super) fn common(a: &[u8], b: &[u8]) -> usize {
    let mut at = 0;
    for (a, b) in a.chunks_exact(8).zip(b.chunks_exact(8)) {
        let (a, b) = (super::packed::word_at(a, 0), super::packed::word_at(b, 0));
        if a != b {
            return at + ((a ^ b).trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    let rest = a.iter().zip(b).skip(at);
    at + rest.take_while(|(a, b)| a == b).count()
}

/// Whether `out` can become longer by a key of at most `bytes`. Of usual ones it is not asked.
#[inline]
fn has_room(out: &mut Vec<u8>, bytes: usize) -> bool {
    bytes <= USUAL_KEY_BYTES_MAX || out.try_reserve(bytes).is_ok()
}

/// Where a search ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SearchEnd {
    /// The first place whose key is not below the sought one.
    pub(super) index: usize,
    /// Whether it is the sought one.
    pub(super) equal: bool,
}

/// A block, read in place.
#[derive(Debug)]
pub(super) struct Strings<'a> {
    letters: &'a Letters,
    bytes: &'a [u8],
    /// Where the block's own bits end: no code goes on behind them.
    own_end: usize,
    prefix: &'a [u8],
    count: usize,
    shared_at: usize,
    shared_bits: u32,
    lens_at: usize,
    lens: Frame,
    codes_at: usize,
}

impl<'a> Strings<'a> {
    /// The block of `count` keys that is the first `own` bytes of `bytes`. `None` when its header is
    /// damaged.
    ///
    /// Bytes behind them serve only reads of whole words. Keys come from the block's own bytes, so that all
    /// first keys together are decoded in a time that is linear in the bytes of the index.
    pub(super) fn new(
        letters: &'a Letters,
        bytes: &'a [u8],
        own: usize,
        count: usize,
    ) -> Option<Self> {
        let mut from = Reader::new(bytes.get(..own)?);
        let prefix = from.slice()?;
        let shared_bits = u32::from(from.u8()?);
        let lens = Frame {
            min: from.varint64()?,
            bits: u32::from(from.u8()?),
        };
        if shared_bits > 32 || lens.bits > 40 || lens.min >> 40 != 0 {
            return None;
        }
        let shared_at = (own - from.rest().len()) * 8;
        let lens_at = shared_at + shared_bits as usize * count;
        Some(Self {
            letters,
            bytes,
            own_end: own * 8,
            prefix,
            count,
            shared_at,
            shared_bits,
            lens_at,
            lens,
            codes_at: lens_at + lens.bits as usize * count,
        })
    }

    #[inline(always)]
    fn shared(&self, index: usize) -> usize {
        let bit = self.shared_at + index * self.shared_bits as usize;
        read_bits(self.bytes, bit, self.shared_bits) as usize
    }

    #[inline(always)]
    fn len(&self, index: usize) -> usize {
        let bit = self.lens_at + index * self.lens.bits as usize;
        (self.lens.min + read_bits(self.bytes, bit, self.lens.bits)) as usize
    }

    /// The end of the code that begins at `start`: within the block's bytes.
    #[inline(always)]
    fn end(&self, start: usize, index: usize) -> usize {
        (start + self.len(index)).min(self.own_end)
    }

    /// Appends the key at `index`. False when there is no memory for it.
    pub(super) fn key(&self, index: usize, out: &mut Vec<u8>) -> bool {
        let start = out.len();
        out.extend_from_slice(self.prefix);
        let own = out.len();
        let mut at = self.codes_at;
        for before in 0..=index.min(self.count.saturating_sub(1)) {
            out.truncate(own + self.shared(before).min(out.len() - own));
            let end = self.end(at, before);
            if !has_room(out, end.saturating_sub(at)) {
                return false;
            }
            self.letters.decode_all(self.bytes, at, end, out);
            at = end;
        }
        debug_assert!(out.len() >= start);
        true
    }

    /// Appends all keys one after the other, and calls `end_of_key` after each. False when there is no
    /// memory for them: each may share all of the one before, so they may be many times the block.
    pub(super) fn keys(&self, out: &mut Vec<u8>, mut end_of_key: impl FnMut(&Vec<u8>)) -> bool {
        let (mut before, mut at) = (out.len(), self.codes_at);
        for index in 0..self.count {
            let start = out.len();
            let shared = match index {
                0 => self.prefix.len(),
                _ => (self.prefix.len() + self.shared(index)).min(start - before),
            };
            let end = self.end(at, index);
            // A letter takes at least a bit.
            if !has_room(out, shared + end.saturating_sub(at)) {
                return false;
            }
            match index {
                0 => out.extend_from_slice(self.prefix),
                _ => out.extend_from_within(before..before + shared),
            }
            self.letters.decode_all(self.bytes, at, end, out);
            at = end;
            before = start;
            end_of_key(out);
        }
        true
    }

    /// Searches for `key`.
    pub(super) fn find(&self, key: &[u8]) -> SearchEnd {
        let absent = |index| SearchEnd {
            index,
            equal: false,
        };
        let Some(sought) = key.strip_prefix(self.prefix) else {
            let below = self.prefix < key;
            return absent(if below { self.count } else { 0 });
        };
        // The bytes that the key before shares with the sought one.
        let mut matched = 0;
        let mut at = self.codes_at;
        for index in 0..self.count {
            let shared = self.shared(index);
            let end = self.end(at, index);
            if shared < matched {
                return absent(index);
            }
            if shared == matched {
                let rest = sought.get(matched..).unwrap_or(&[]);
                let (order, more) = self.compare(at, end, rest);
                matched += more;
                match order {
                    Ordering::Less => {}
                    Ordering::Equal => return SearchEnd { index, equal: true },
                    Ordering::Greater => return absent(index),
                }
            }
            at = end;
        }
        absent(self.count)
    }

    /// The order of the text coded in the bits `at..end` and `sought`, and the number of bytes they
    /// share.
    #[inline]
    fn compare(&self, mut at: usize, end: usize, sought: &[u8]) -> (Ordering, usize) {
        for (matched, expected) in sought.iter().enumerate() {
            if at >= end {
                return (Ordering::Less, matched);
            }
            let (byte, bits) = self.letters.decode(self.bytes, at);
            if byte != *expected {
                return (byte.cmp(expected), matched);
            }
            at += bits;
        }
        let order = match at >= end {
            true => Ordering::Equal,
            false => Ordering::Greater,
        };
        (order, sought.len())
    }
}
