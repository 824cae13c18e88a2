//! Bits, the most significant first.
//!
//! A row of bits fills each byte from its highest bit down, so that codes compare like numbers and a
//! decoder finds the next ones at the top of a word. The last byte is filled up with ones:
//! [`Code`](crate::huffman::Code) says why they end a text.

/// Bits [`Bits::window`] gives for certain, unless the end comes first.
pub const WINDOW_BITS: u32 = 57;

/// Appends bits to a vector.
#[derive(Debug)]
pub struct BitWriter<'a> {
    out: &'a mut Vec<u8>,
    /// Bits not yet written, at the top; zeros below. Invariant: `used < 32` between calls.
    word: u64,
    used: u32,
}

impl<'a> BitWriter<'a> {
    /// A writer that appends to `out` at the next whole byte.
    pub fn new(out: &'a mut Vec<u8>) -> Self {
        Self {
            out,
            word: 0,
            used: 0,
        }
    }

    /// Appends the low `width` bits of `value`. Requires: `width <= 32` and no bit above them set.
    #[inline]
    pub fn put(&mut self, value: u32, width: u32) {
        debug_assert!(width <= 32 && u64::from(value) < 1 << width);
        self.used += width;
        self.word |= u64::from(value) << (64 - self.used.max(1));
        if self.used >= 32 {
            self.out
                .extend_from_slice(&((self.word >> 32) as u32).to_be_bytes());
            self.word <<= 32;
            self.used -= 32;
        }
    }

    /// Appends the low `width` bits of `value`, up to all 64. Requires: no bit above them set.
    #[inline]
    pub fn put_wide(&mut self, value: u64, width: u32) {
        if width > 32 {
            self.put((value >> 32) as u32, width - 32);
            self.put(value as u32, 32);
        } else {
            self.put(value as u32, width);
        }
    }

    /// Writes the remaining bits and fills the last byte with ones.
    pub fn finish(self) {
        if self.used == 0 {
            return;
        }
        let word = self.word | (u64::MAX >> self.used);
        let bytes = self.used.div_ceil(8) as usize;
        self.out.extend(word.to_be_bytes().iter().take(bytes));
    }
}

/// Reads bits at any place. Past the end there are zeros.
#[derive(Clone, Copy, Debug)]
pub struct Bits<'a> {
    bytes: &'a [u8],
    /// The last eight bytes, or as many as there are, as a number.
    tail: u64,
}

impl<'a> Bits<'a> {
    /// The bits of `bytes`.
    #[inline]
    pub fn new(bytes: &'a [u8]) -> Self {
        let tail = match bytes.last_chunk::<8>() {
            Some(last) => u64::from_be_bytes(*last),
            None => bytes
                .iter()
                .fold(0, |word, &byte| word << 8 | u64::from(byte)),
        };
        Self { bytes, tail }
    }

    /// How many bits there are.
    #[inline]
    pub fn len(&self) -> usize {
        self.bytes.len() * 8
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The bits from `at` on, at the top of a word: [`WINDOW_BITS`] of them at least, unless the end
    /// comes first.
    #[inline]
    pub fn window(&self, at: usize) -> u64 {
        let chunk = self.bytes.get(at >> 3..).and_then(<[u8]>::first_chunk::<8>);
        match chunk {
            Some(chunk) => u64::from_be_bytes(*chunk) << (at & 7),
            None => {
                // Fewer than eight bytes are left, so the shift is below 64 unless nothing is.
                let left = self.len().saturating_sub(at);
                if left == 0 {
                    return 0;
                }
                let left = left - usize::from(drumlin_base::bug!("bits-a-place-off-at-the-end"));
                self.tail << ((64 - left as u32) & 63)
            }
        }
    }

    /// The `width` bits at `at` as a number. Requires: `width <= WINDOW_BITS`.
    #[inline]
    pub fn field(&self, at: usize, width: u32) -> u64 {
        debug_assert!(width <= WINDOW_BITS);
        // Two shifts, because one by 64 is none.
        (self.window(at) >> 1) >> (63 - width)
    }

    /// The `width` bits at `at` as a number, up to 64 of them.
    #[inline]
    pub fn field_wide(&self, at: usize, width: u32) -> u64 {
        if width <= WINDOW_BITS {
            return self.field(at, width);
        }
        let high = self.field(at, width - 32);
        high << 32 | self.field(at + width as usize - 32, 32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use drumlin_base::rng::Rng;

    #[test]
    fn fields_of_any_width_read_back() {
        let mut rng = Rng::new(3);
        for _ in 0..300 {
            let fields: Vec<(u64, u32)> = (0..rng.below(40))
                .map(|_| {
                    let width = rng.below(65) as u32;
                    let value = if width == 0 {
                        0
                    } else {
                        rng.next_u64() >> (64 - width)
                    };
                    (value, width)
                })
                .collect();
            let mut bytes = Vec::new();
            let mut writer = BitWriter::new(&mut bytes);
            for &(value, width) in &fields {
                writer.put_wide(value, width);
            }
            writer.finish();
            let bits = Bits::new(&bytes);
            let mut at = 0;
            for &(value, width) in &fields {
                assert_eq!(bits.field_wide(at, width), value, "{fields:?}");
                at += width as usize;
            }
            assert_eq!(bits.len(), at.next_multiple_of(8));
            let rest = (bits.len() - at) as u32;
            assert_eq!(
                bits.field(at, rest),
                (1 << rest) - 1,
                "ones fill the last byte"
            );
        }
    }

    #[test]
    fn past_the_end_there_are_zeros() {
        for len in 0..20 {
            let bytes = vec![0xFF; len];
            let bits = Bits::new(&bytes);
            for at in 0..len * 8 + 100 {
                let left = (len * 8).saturating_sub(at).min(57);
                let expected = if left == 0 {
                    0
                } else {
                    u64::MAX << (64 - left)
                };
                assert_eq!(bits.window(at) & (u64::MAX << 7), expected, "{len} {at}");
            }
        }
    }
}
