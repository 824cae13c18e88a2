//! Comparing many short numbers with one at a time.

/// A bit for each of the twelve 16-bit lanes of `words`, the lowest of the first word first, that
/// equals `wanted`.
#[inline(always)]
pub fn equal_lanes(words: [u64; 3], wanted: u16) -> u32 {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: every processor of this architecture has SSE2.
    return unsafe { with_sse2(words, wanted) };
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    in_words(words, wanted)
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline]
#[target_feature(enable = "sse2")]
fn with_sse2([first, second, third]: [u64; 3], wanted: u16) -> u32 {
    use std::arch::x86_64::{
        _mm_cmpeq_epi16, _mm_cvtsi64_si128, _mm_movemask_epi8, _mm_packs_epi16, _mm_set_epi64x,
        _mm_set1_epi16,
    };
    const LANES: u32 = 0xfff;
    let wanted = _mm_set1_epi16(wanted as i16);
    let front = _mm_cmpeq_epi16(_mm_set_epi64x(second as i64, first as i64), wanted);
    let back = _mm_cmpeq_epi16(_mm_cvtsi64_si128(third as i64), wanted);
    _mm_movemask_epi8(_mm_packs_epi16(front, back)) as u32 & LANES
}

/// In plain arithmetic, four lanes at a time.
#[cfg(any(test, not(all(target_arch = "x86_64", not(miri)))))]
#[inline]
fn in_words(words: [u64; 3], wanted: u16) -> u32 {
    /// The lowest bit of each lane.
    const LOWEST: u64 = 0x0001_0001_0001_0001;
    /// All bits but the highest of each.
    const LOW_BITS: u64 = 0x7fff_7fff_7fff_7fff;
    let lanes = words.map(|word| {
        let differs = word ^ (u64::from(wanted) * LOWEST);
        // The highest bit of each lane that does not differ.
        let bits = !(((differs & LOW_BITS) + LOW_BITS) | differs | LOW_BITS) >> 15;
        ((bits | bits >> 15 | bits >> 30 | bits >> 45) & 0xf) as u32
    });
    lanes[0] | lanes[1] << 4 | lanes[2] << 8
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::rng::Rng;

    #[test]
    fn all_ways_to_compare_agree_with_one_by_one() {
        let mut rng = Rng::new(5);
        for _ in 0..20_000 {
            // Lanes that differ in any of their bytes, or not at all.
            let mut lane =
                || u64::from((rng.below(3) as u16 * 0x7fff) ^ ((rng.below(3) as u16) << 8));
            let lanes: [u64; 12] = std::array::from_fn(|_| lane());
            let word = |at: usize| (0..4).fold(0, |word, n| word | lanes[4 * at + n] << (16 * n));
            let words = [word(0), word(1), word(2)];
            let wanted = lanes[rng.below(12) as usize] as u16;
            let equal = (0..12).filter(|at| lanes[*at] == u64::from(wanted));
            let want = equal.fold(0, |bits, at| bits | 1 << at);
            assert_eq!(equal_lanes(words, wanted), want);
            assert_eq!(in_words(words, wanted), want);
        }
    }
}
