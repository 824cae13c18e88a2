//! LZF: literal runs, and references to at most 8 KiB before.
//!
//! ```text
//! 000nnnnn                    n + 1 literal bytes follow
//! lllooooo oooooooo           l + 2 bytes from o + 1 bytes before, l in 1..=6
//! 111ooooo llllllll oooooooo  l + 9 bytes from there
//! ```

use drumlin_base::{Error, Result};

/// Most bytes that one byte of input becomes: 264 from three.
pub const RATIO_MAX: usize = 88;

const LITERALS_MAX: usize = 32;
const DISTANCE_MAX: usize = 1 << 13;
const MATCH_MIN: usize = 3;
const MATCH_MAX: usize = 264;
/// Length codes of one byte end here.
const LONG_CODE: usize = 7;

/// The content of `packed`, which has to be `len` bytes.
///
/// # Errors
/// Corruption when it has another length, or could not hold so much: then nothing is allocated.
pub fn decompress(packed: &[u8], len: usize) -> Result<Vec<u8>> {
    if len > packed.len().saturating_mul(RATIO_MAX) {
        return Err(Error::corruption(format!(
            "{} bytes of LZF cannot hold {len} bytes",
            packed.len()
        )));
    }
    let damage = || Error::corruption("a string compressed by LZF is damaged");
    let mut out = Vec::with_capacity(len);
    let mut input = packed.iter();
    while let Some(control) = input.next() {
        let control = usize::from(*control);
        if control < LITERALS_MAX {
            let run = input.as_slice().get(..=control).ok_or_else(damage)?;
            input = input
                .as_slice()
                .get(control + 1..)
                .unwrap_or_default()
                .iter();
            if out.len() + run.len() > len {
                return Err(damage());
            }
            out.extend_from_slice(run);
            continue;
        }
        let mut code = control >> 5;
        if code == LONG_CODE {
            code += usize::from(*input.next().ok_or_else(damage)?);
        }
        let low = usize::from(*input.next().ok_or_else(damage)?);
        let distance = ((control & 0x1f) << 8 | low) + 1;
        let from = out.len().checked_sub(distance).ok_or_else(damage)?;
        if out.len() + code + 2 > len {
            return Err(damage());
        }
        copy(&mut out, from, code + 2);
    }
    if out.len() != len {
        return Err(damage());
    }
    Ok(out)
}

/// Appends `count` bytes that begin at `from`; some of them may be written by this call. The available bytes double
/// in each round.
fn copy(out: &mut Vec<u8>, from: usize, count: usize) {
    let end = out.len() + count;
    while out.len() < end {
        let there = (end - out.len()).min(out.len() - from);
        out.extend_from_within(from..from + there);
        if drumlin_base::bug!("lzf-overlap-forgotten") {
            return;
        }
    }
}

/// Compresses strings one after the other, with one table for all.
#[derive(Clone, Debug, Default)]
pub struct Compressor {
    /// Where three bytes were seen last, by their hash: a place plus `base`. Smaller ones are of earlier strings,
    /// so the table is never cleared between strings.
    seen: Vec<u32>,
    base: u32,
}

const HASH_BITS: u32 = 13;
/// Longest string that is compressed; places have to fit beside `base`.
const INPUT_MAX: usize = 1 << 30;

impl Compressor {
    /// One without a table yet, which the first string makes.
    pub fn new() -> Self {
        Self::default()
    }

    /// `input` compressed, or none where it does not get at least four bytes shorter.
    pub fn compress(&mut self, input: &[u8]) -> Option<Vec<u8>> {
        let most = input.len().checked_sub(4).filter(|most| *most > 0)?;
        if input.len() > INPUT_MAX {
            return None;
        }
        let room = self.base.checked_add(input.len() as u32 + 1);
        if self.seen.is_empty() || room.is_none() {
            self.seen = vec![0; 1 << HASH_BITS];
            self.base = 1;
        }
        let packed = self.pack(input, most);
        self.base += input.len() as u32 + 1;
        packed
    }

    fn pack(&mut self, input: &[u8], most: usize) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        let (mut at, mut literals) = (0, 0);
        while at < input.len() {
            let found = self.look_up(input, at);
            let Some((distance, len)) = found else {
                at += 1;
                continue;
            };
            put_literals(&mut out, input.get(literals..at)?);
            put_reference(&mut out, distance - 1, len - 2);
            // One place in the match is enough to go on with.
            at += len;
            self.look_up(input, at - 2);
            literals = at;
            if out.len() > most {
                return None;
            }
        }
        put_literals(&mut out, input.get(literals..)?);
        (out.len() <= most).then_some(out)
    }

    /// An earlier occurrence of the bytes at `at`: its distance, and the number of equal bytes. Remembers
    /// `at`.
    fn look_up(&mut self, input: &[u8], at: usize) -> Option<(usize, usize)> {
        let [one, two, three] = *input.get(at..)?.first_chunk::<3>()?;
        let word = u32::from_le_bytes([one, two, three, 0]);
        let slot = (word.wrapping_mul(0x9e37_79b1) >> (32 - HASH_BITS)) as usize;
        let slot = self.seen.get_mut(slot)?;
        let before = slot.checked_sub(self.base);
        *slot = self.base + at as u32;
        let before = before? as usize;
        let distance = at.checked_sub(before)?;
        if distance == 0 || distance > DISTANCE_MAX {
            return None;
        }
        let (old, new) = (input.get(before..)?, input.get(at..)?);
        let pairs = old.iter().zip(new).take(MATCH_MAX);
        let len = pairs.take_while(|(old, new)| old == new).count();
        (len >= MATCH_MIN).then_some((distance, len))
    }
}

fn put_literals(out: &mut Vec<u8>, literals: &[u8]) {
    for run in literals.chunks(LITERALS_MAX) {
        out.push(run.len() as u8 - 1);
        out.extend_from_slice(run);
    }
}

fn put_reference(out: &mut Vec<u8>, offset: usize, code: usize) {
    let high = (offset >> 8) as u8;
    if code < LONG_CODE {
        out.push((code as u8) << 5 | high);
    } else {
        out.extend_from_slice(&[0xe0 | high, (code - LONG_CODE) as u8]);
    }
    out.push(offset as u8);
}

#[cfg(test)]
mod tests {
    use drumlin_base::rng::Rng;

    use super::*;

    #[test]
    fn what_is_compressed_decompresses_whatever_came_before() {
        let mut rng = Rng::new(1);
        let mut lzf = Compressor::new();
        let mut smaller = 0;
        for round in 0..2_000 {
            let letters = 1 + rng.below(20);
            let len = rng.below(if round % 50 == 0 { 40_000 } else { 300 });
            let text: Vec<u8> = (0..len).map(|_| rng.below(letters) as u8).collect();
            if let Some(packed) = lzf.compress(&text) {
                assert!(packed.len() + 4 <= text.len());
                assert_eq!(decompress(&packed, text.len()).unwrap(), text);
                assert!(decompress(&packed, text.len() + 1).is_err());
                assert!(decompress(&packed, text.len() - 1).is_err());
                smaller += 1;
            }
        }
        assert!(smaller > 500, "{smaller}");
    }

    #[test]
    fn references_may_overlap_what_they_write() {
        // "a", then eight bytes from one before.
        assert_eq!(decompress(&[0, b'a', 6 << 5, 0], 9).unwrap(), b"aaaaaaaaa");
        // "ab", then nine bytes from two before.
        let packed = [1, b'a', b'b', 7 << 5, 0, 1];
        assert_eq!(decompress(&packed, 11).unwrap(), b"abababababa");
    }

    #[test]
    fn damage_and_claims_are_refused() {
        assert!(decompress(&[0x20, 0], 3).is_err(), "before the beginning");
        assert!(decompress(&[5, b'a'], 6).is_err(), "fewer literals");
        assert!(decompress(&[0, b'a', 0xe0], 20).is_err(), "a cut reference");
        assert!(decompress(&[], 1).is_err());
        assert_eq!(decompress(&[], 0).unwrap(), b"");
        assert!(decompress(&[0, b'a'], usize::MAX).is_err());
    }

    #[test]
    fn the_most_that_three_bytes_become_is_taken() {
        let zeros = vec![0; 100_000];
        let packed = Compressor::new().compress(&zeros).unwrap();
        assert!(packed.len() * RATIO_MAX >= zeros.len());
        assert!(packed.len() < 1_200, "{}", packed.len());
        assert_eq!(decompress(&packed, zeros.len()).unwrap(), zeros);
    }
}
