//! Places chosen by content: equal content has equal places in any text.
//!
//! A rolling hash covers the bytes before a place (the gear hash: shift, add a random number for the
//! byte; after 64 steps a byte has no effect). A place is an anchor when the hash's highest bits are
//! zero, which depends on nothing but those bytes: two texts that share a long enough run of bytes
//! have their anchors at the same places in it.

use drumlin_base::rng::Rng;

/// Bytes before an anchor that make it one: as many as a 64-bit hash remembers. Shorter ones were
/// tried, and repeat within grammatical text by chance.
pub(super) const WINDOW_BYTES: usize = 64;
/// One place in `2^SPARSE_BITS` is an anchor.
pub(super) const SPARSE_BITS: u32 = 4;

/// The random numbers: fixed, so that the same data gives the same model everywhere.
#[derive(Debug)]
pub(super) struct Gear([u64; 256]);

impl Gear {
    pub(super) fn new() -> Self {
        let mut rng = Rng::new(0x6765_6172);
        Self(std::array::from_fn(|_| rng.next_u64()))
    }

    /// Calls `anchor` with the end of each anchor's window in `text[from..]` and its hash, in order,
    /// until it answers `false`.
    #[inline]
    pub(super) fn anchors(
        &self,
        text: &[u8],
        from: usize,
        mut anchor: impl FnMut(usize, u64) -> bool,
    ) {
        let mut hash = 0u64;
        for (index, &byte) in text.iter().enumerate().skip(from) {
            hash = (hash << 1).wrapping_add(self.0[usize::from(byte)]);
            let complete = index + 1 >= from + WINDOW_BYTES;
            if hash >> (64 - SPARSE_BITS) == 0 && complete && !anchor(index + 1, hash) {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_text_has_the_same_anchors() {
        let mut shared = vec![0; 4000];
        Rng::new(8).fill(&mut shared);
        let gear = Gear::new();
        let ends = |text: &[u8], lead: usize| {
            let mut ends = Vec::new();
            gear.anchors(text, 0, |end, hash| {
                if end >= lead + WINDOW_BYTES {
                    ends.push((end - lead, hash));
                }
                true
            });
            ends
        };
        let other = [b"something else in front".as_slice(), &shared].concat();
        assert_eq!(ends(&shared, 0), ends(&other, 23));
        assert!(ends(&shared, 0).len() > 100);
    }
}
