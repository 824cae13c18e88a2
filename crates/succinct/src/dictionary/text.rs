//! The dictionary and how it is referred to.

use drumlin_base::bytes::{LINE_BYTES, prefetch};
use drumlin_base::{Error, Result};

use crate::held::HeldBytes;

/// The largest dictionary: places have 30 bits.
pub const DICTIONARY_BYTES_MAX: usize = 1 << 30;
/// The shortest reference that has a class of lengths.
pub const REFERENCE_BYTES_MIN: usize = 16;
/// On disk: classes of lengths. Class `c` begins at 16 + 8 (2^c - 1) and has `c + 3` extra bits.
pub const REFERENCE_CLASSES: usize = 13;
/// The longest reference.
pub const REFERENCE_BYTES_MAX: usize = REFERENCE_BYTES_MIN + (8 << REFERENCE_CLASSES) - 9;

/// Bytes of a piece that are asked for ahead; the processor fetches the rest of a long one by itself.
const AHEAD_BYTES_MAX: usize = 512;

/// The shortest length of a class, and the number of bits for the length within it.
#[inline]
pub const fn reference_class(class: usize) -> (usize, u32) {
    (REFERENCE_BYTES_MIN + ((8 << class) - 8), class as u32 + 3)
}

/// The class of a reference of `len` bytes. Requires: a length that has one.
#[inline]
pub const fn class_of(len: usize) -> usize {
    debug_assert!(len >= REFERENCE_BYTES_MIN && len <= REFERENCE_BYTES_MAX);
    ((len - REFERENCE_BYTES_MIN) / 8 + 1).ilog2() as usize
}

/// Text that references take pieces of. Immutable, shared by threads.
#[derive(Debug, PartialEq, Eq)]
pub struct Dictionary {
    text: HeldBytes,
    place_bits: u32,
}

impl Dictionary {
    /// The dictionary of `text`.
    ///
    /// # Panics
    /// When it is longer than [`DICTIONARY_BYTES_MAX`].
    pub fn new(text: Vec<u8>) -> Self {
        assert!(text.len() <= DICTIONARY_BYTES_MAX);
        let last = text.len().saturating_sub(1);
        Self {
            place_bits: usize::BITS - last.leading_zeros(),
            text: text.into(),
        }
    }

    /// All of it.
    #[inline]
    pub fn text(&self) -> &[u8] {
        self.text.bytes()
    }

    /// Bytes of memory it takes.
    pub fn memory(&self) -> usize {
        self.text.memory()
    }

    /// Bits of a place in it.
    #[inline]
    pub fn place_bits(&self) -> u32 {
        self.place_bits
    }

    /// The `len` bytes at `place`.
    ///
    /// # Errors
    /// `Corruption` when they are not all there.
    #[inline]
    pub fn get(&self, place: usize, len: usize) -> Result<&[u8]> {
        let piece = self.text().get(place..).and_then(|rest| rest.get(..len));
        piece.ok_or_else(outside)
    }
}

impl Dictionary {
    /// Prefetches the memory of the text that [`Dictionary::get`] will return.
    #[inline]
    pub fn prefetch(&self, place: usize, len: usize) {
        if let Some(piece) = self.text().get(place..) {
            let bytes = piece.len().min(len).min(AHEAD_BYTES_MAX);
            prefetch(piece.as_ptr(), bytes.div_ceil(LINE_BYTES));
        }
    }
}

#[cold]
fn outside() -> Error {
    Error::corruption("a reference leaves its dictionary")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_has_one_class() {
        for len in REFERENCE_BYTES_MIN..=REFERENCE_BYTES_MAX {
            let (least, extra) = reference_class(class_of(len));
            assert!(least <= len && len - least < 1 << extra, "{len}");
        }
        let (least, extra) = reference_class(REFERENCE_CLASSES - 1);
        assert_eq!(least + (1 << extra) - 1, REFERENCE_BYTES_MAX);
    }

    #[test]
    fn pieces_outside_are_refused() {
        let dictionary = Dictionary::new(b"drumlin".to_vec());
        assert_eq!(dictionary.place_bits(), 3);
        assert_eq!(dictionary.get(4, 3).expect("inside"), b"lin");
        assert!(dictionary.get(4, 4).is_err());
        assert!(dictionary.get(usize::MAX, 2).is_err());
        assert_eq!(Dictionary::new(Vec::new()).place_bits(), 0);
    }
}
