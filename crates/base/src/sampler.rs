//! Which of many events one thread looks at more closely: one in so many, at random distances.
//!
//! Every sampler is seeded alike: a run of one thread can be repeated, and no pattern of events falls in step with the
//! samples. One thread at a time.

use crate::rng::Rng;

/// Picks one event in `MEAN`, on average.
#[derive(Clone, Copy, Debug)]
pub struct Sampler<const MEAN: u32> {
    /// Events up to the next that is picked, that one included.
    left: u32,
    /// State of the generator.
    seed: u64,
}

impl<const MEAN: u32> Sampler<MEAN> {
    /// A sampler that picks the event `MEAN` first.
    pub const fn new() -> Self {
        const { assert!(MEAN > 0) };
        Self {
            left: MEAN,
            seed: 0,
        }
    }

    /// Counts `events`, up to the first that is picked, and gives its index. Those after it are not counted
    /// yet.
    #[inline]
    pub fn count(&mut self, events: u32) -> Option<u32> {
        if events < self.left {
            self.left -= events;
            return None;
        }
        let picked = self.left - 1;
        self.left = 1 + self.draw(2 * u64::from(MEAN) - 1) as u32;
        Some(picked)
    }

    /// A number in `0..bound` from the sampler's generator.
    #[cold]
    pub fn draw(&mut self, bound: u64) -> u64 {
        let mut rng = Rng::new(self.seed);
        self.seed = rng.next_u64();
        rng.below(bound)
    }
}

impl<const MEAN: u32> Default for Sampler<MEAN> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const MEAN: u32 = 128;

    /// The events that are picked when they come in batches of these sizes.
    fn picked(batches: &[u32]) -> Vec<u32> {
        let mut sampler = Sampler::<MEAN>::new();
        let (mut places, mut begin) = (Vec::new(), 0);
        for &batch in batches {
            let end = begin + batch;
            while let Some(at) = sampler.count(end - begin) {
                places.push(begin + at);
                begin += at + 1;
            }
            begin = end;
        }
        places
    }

    #[test]
    fn samples_come_at_the_rate_they_stand_for_and_in_step_with_nothing() {
        let places = picked(&vec![1; 1000 * MEAN as usize]);
        assert!((930..1070).contains(&places.len()), "{}", places.len());
        let gaps: std::collections::BTreeSet<_> =
            places.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(gaps.len() > 100, "{} different gaps", gaps.len());
    }

    #[test]
    fn the_same_events_are_picked_in_every_run_however_they_are_batched() {
        let alone = picked(&[1; 10_000]);
        assert_eq!(alone, picked(&[1; 10_000]));
        assert_eq!(alone, picked(&[7, 1, 1000, 0, 992, 8000]));
    }
}
