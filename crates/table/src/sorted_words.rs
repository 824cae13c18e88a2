//! Searching sorted arrays of numbers with few dependent cache misses.
//!
//! A plain binary search waits for one cache line before it knows which is next. Here the last
//! [`SAMPLE_EVERY`] candidates are counted instead: their lines are loaded side by side.

/// Numbers that are counted rather than searched: eight cache lines.
pub(crate) const SAMPLE_EVERY: usize = 64;

/// The first position in `words` (ascending) whose number is not below `word`.
///
/// `samples` is every [`SAMPLE_EVERY`]th of `words`, beginning with the first, or empty.
#[inline]
pub(crate) fn lower_bound(words: &[u64], samples: &[u64], word: u64) -> usize {
    let (mut base, mut len) = (0, words.len());
    if !samples.is_empty() {
        // The last sample below `word` begins the window that the position is in.
        base = narrow(samples, 0, samples.len(), word, 1)
            .0
            .saturating_mul(SAMPLE_EVERY);
        len = (words.len() - base.min(words.len())).min(SAMPLE_EVERY);
    }
    let (base, len) = narrow(words, base, len, word, SAMPLE_EVERY);
    let window = words.get(base..base + len).unwrap_or_default();
    base + window.iter().filter(|&&at| at < word).count()
}

/// Halves `base..base + len` until it is at most `until` long; the position sought is in it or just
/// behind it. The loop's only branch is its counter, so nothing is mispredicted.
#[inline]
fn narrow(
    words: &[u64],
    mut base: usize,
    mut len: usize,
    word: u64,
    until: usize,
) -> (usize, usize) {
    while len > until {
        let half = len / 2;
        let below = words.get(base + half).is_some_and(|&at| at < word);
        base += if below { half } else { 0 };
        len -= half;
    }
    (base, len)
}

#[cfg(test)]
mod tests {
    use drumlin_base::rng::Rng;

    use super::*;

    #[test]
    fn agrees_with_the_standard_library() {
        for seed in 0..400 {
            let mut rng = Rng::new(seed);
            let bound = 1 + rng.below(1000);
            let mut words: Vec<u64> = (0..rng.below(700)).map(|_| rng.below(bound)).collect();
            words.sort_unstable();
            let samples: Vec<u64> = words.iter().step_by(SAMPLE_EVERY).copied().collect();
            for word in (0..=bound).step_by(1 + bound as usize / 50) {
                let expected = words.partition_point(|&at| at < word);
                assert_eq!(lower_bound(&words, &[], word), expected, "seed {seed}");
                assert_eq!(lower_bound(&words, &samples, word), expected, "seed {seed}");
            }
        }
    }
}
