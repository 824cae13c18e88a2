//! Checksums of the on-disk formats: masked CRC-32C, and the xxHash family in released form.

/// CRC-32C of `bytes`.
#[inline]
pub fn crc32c(bytes: &[u8]) -> u32 {
    crc32c::crc32c(bytes)
}

/// CRC-32C of the bytes that `crc` covers followed by `bytes`.
#[inline]
pub fn crc32c_extend(crc: u32, bytes: &[u8]) -> u32 {
    crc32c::crc32c_append(crc, bytes)
}

const MASK_DELTA: u32 = 0xa282_ead8;

/// A CRC as it is stored: rotated and offset, because a CRC over bytes that hold CRCs is weak.
#[inline]
pub const fn mask(crc: u32) -> u32 {
    crc.rotate_right(15).wrapping_add(MASK_DELTA)
}

/// Undoes [`mask`].
#[inline]
pub const fn unmask(masked: u32) -> u32 {
    masked.wrapping_sub(MASK_DELTA).rotate_left(15)
}

/// Released XXH3 of 64 bits, seed 0. Block checksums use it; filters use another hash, see
/// `drumlin-table`'s `filter` room.
#[inline]
pub fn xxh3_64(bytes: &[u8]) -> u64 {
    xxhash_rust::xxh3::xxh3_64(bytes)
}

/// [`xxh3_64`] of a stream of pieces.
#[derive(Clone, Default)]
pub struct Xxh3(xxhash_rust::xxh3::Xxh3Default);

impl Xxh3 {
    /// The hash of no bytes.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The hash of all bytes so far.
    pub fn finish(&self) -> u64 {
        self.0.digest()
    }
}

impl std::fmt::Debug for Xxh3 {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Xxh3({:#018x})", self.finish())
    }
}

/// XXH64 with seed 0.
#[inline]
pub fn xxh64(bytes: &[u8]) -> u64 {
    xxhash_rust::xxh64::xxh64(bytes, 0)
}

/// XXH32 with seed 0.
#[inline]
pub fn xxh32(bytes: &[u8]) -> u32 {
    xxhash_rust::xxh32::xxh32(bytes, 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crc_matches_the_published_vectors() {
        // RFC 3720, appendix B.4.
        assert_eq!(crc32c(&[0u8; 32]), 0x8a91_36aa);
        assert_eq!(crc32c(&[0xFFu8; 32]), 0x62a8_ab43);
        assert_eq!(
            crc32c_extend(crc32c(b"hello "), b"world"),
            crc32c(b"hello world")
        );
    }

    #[test]
    fn xxh3_of_pieces_is_that_of_the_whole() {
        let bytes: Vec<u8> = (0..5_000u32).map(|n| (n * 7) as u8).collect();
        for piece in [1, 63, 256, 999, 5_000] {
            let mut hash = Xxh3::new();
            bytes.chunks(piece).for_each(|bytes| hash.update(bytes));
            assert_eq!(hash.finish(), xxh3_64(&bytes), "pieces of {piece}");
        }
    }

    #[test]
    fn mask_round_trips_and_differs() {
        let crc = crc32c(b"foo");
        assert_ne!(mask(crc), crc);
        assert_eq!(unmask(mask(crc)), crc);
    }
}
