//! Searching sorted arrays of numbers with few dependent cache misses.
//!
//! A plain binary search waits for one cache line before it knows the next. Here the last
//! [`COUNTED`] candidates are counted instead: their lines are loaded side by side.

use std::hint::select_unpredictable;

use drumlin_base::bytes::{LINE_BYTES, prefetch};

/// Numbers between two samples: eight cache lines.
pub const SAMPLE_EVERY: usize = 64;
/// Numbers that are counted rather than searched: two cache lines.
const COUNTED: usize = 16;

/// The first position in `words` (ascending) whose number is not below `word`.
///
/// `samples` is every [`SAMPLE_EVERY`]th of `words`, beginning with the first, or empty.
#[inline]
pub fn lower_bound(words: &[u64], samples: &[u64], word: u64) -> usize {
    let (base, len) = window(words, samples, word);
    let (base, len) = narrow(words, base, len, word, COUNTED);
    let window = words
        .get(base..base + len)
        .expect("a window is in its words");
    base + window.iter().filter(|&&at| at < word).count()
}

/// Prefetches the words that [`lower_bound`] would read last. Gives about its answer: within [`SAMPLE_EVERY`]
/// of it, and right if the words between two samples are evenly spread.
#[inline]
pub(crate) fn prefetch_window(words: &[u64], samples: &[u64], word: u64) -> usize {
    let (base, len) = window(words, samples, word);
    let lines = (len.min(SAMPLE_EVERY) * size_of::<u64>()).div_ceil(LINE_BYTES);
    if let Some(first) = words.get(base) {
        prefetch(first, lines);
    }
    let at = base / SAMPLE_EVERY;
    let Some(&below) = samples.get(at) else {
        return base;
    };
    let above = samples.get(at + 1).copied().unwrap_or(u64::MAX);
    let step = above.wrapping_sub(below) / SAMPLE_EVERY as u64 + 1;
    base + (word.saturating_sub(below) / step).min(SAMPLE_EVERY as u64) as usize
}

/// The window that holds the position sought, by the samples alone: its first index and its length.
#[inline]
fn window(words: &[u64], samples: &[u64], word: u64) -> (usize, usize) {
    if samples.is_empty() {
        return (0, words.len());
    }
    // The last sample below `word` begins the window that the position is in.
    let base = narrow(samples, 0, samples.len(), word, 1).0 * SAMPLE_EVERY;
    let rest = words.len() - base.min(words.len());
    (base, rest.min(SAMPLE_EVERY))
}

/// Halves `base..base + len` until it is at most `until` long. The position sought is in it or just
/// behind it. The only branch is the loop's counter, so nothing is mispredicted.
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
        // The compiler would make this a branch, which is mispredicted every other time.
        base = select_unpredictable(below, base + half, base);
        len -= half;
    }
    (base, len)
}

#[cfg(test)]
mod tests {
    use drumlin_base::rng::Rng;

    use super::*;

    #[test]
    fn words_that_lie_evenly_are_found_at_once() {
        let words: Vec<u64> = (0..1000).map(|at| 1 << 40 | at << 20).collect();
        let samples: Vec<u64> = words.iter().step_by(SAMPLE_EVERY).copied().collect();
        for word in (1..960).map(|at| (1 << 40 | at << 20) - 7) {
            let about = prefetch_window(&words, &samples, word);
            assert!(about.abs_diff(lower_bound(&words, &samples, word)) <= 1);
        }
    }

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
                let about = prefetch_window(&words, &samples, word);
                assert!(about.abs_diff(expected) <= SAMPLE_EVERY.max(words.len() % SAMPLE_EVERY));
            }
        }
    }
}
