//! Medians, spreads, ratios, and whether they can be trusted.

use serde::Serialize;

/// A spread beyond this share of the median, in either engine, makes a ratio untrustworthy.
const NOISE_MAX: f64 = 0.25;

/// Median and range of the rounds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// The middle, or the mean of the two middles.
    pub median: f64,
    /// The least.
    pub min: f64,
    /// The greatest.
    pub max: f64,
    /// How many rounds.
    pub rounds: usize,
}

impl Summary {
    /// Of `numbers`; `None` when there are none.
    pub fn of(numbers: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut sorted: Vec<f64> = numbers.into_iter().collect();
        sorted.sort_by(f64::total_cmp);
        let upper = *sorted.get(sorted.len() / 2)?;
        let lower = *sorted.get((sorted.len() - 1) / 2)?;
        Some(Self {
            median: lower.midpoint(upper),
            min: *sorted.first()?,
            max: *sorted.last()?,
            rounds: sorted.len(),
        })
    }

    /// The range over the median.
    pub fn spread(&self) -> f64 {
        if self.median > 0.0 {
            (self.max - self.min) / self.median
        } else {
            0.0
        }
    }

    /// Whether the rounds differ so much that the median says little.
    pub fn is_noisy(&self) -> bool {
        self.spread() > NOISE_MAX
    }
}

/// One engine against another.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Ratio {
    /// The medians' ratio.
    pub median: f64,
    /// The least ratio of two rounds, one of each.
    pub min: f64,
    /// The greatest.
    pub max: f64,
    /// Whether the rounds cannot tell which of the two is ahead: 1 is between the ends.
    pub is_undecided: bool,
}

impl Ratio {
    /// `ours` over `theirs`.
    pub fn of(ours: Summary, theirs: Summary) -> Option<Self> {
        if theirs.min <= 0.0 || ours.min <= 0.0 {
            return None;
        }
        let (min, max) = (ours.min / theirs.max, ours.max / theirs.min);
        Some(Self {
            median: ours.median / theirs.median,
            min,
            max,
            is_undecided: min < 1.0 && max > 1.0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_lie_in_the_middle_and_ranges_around_them() {
        assert_eq!(Summary::of([]), None);
        let summary = Summary::of([9.0, 1.0, 3.0, 2.0]).expect("numbers");
        assert_eq!(
            (summary.median, summary.min, summary.max, summary.rounds),
            (2.5, 1.0, 9.0, 4)
        );
        assert!(summary.is_noisy());
        assert!(!Summary::of([10.0, 10.5, 11.0]).expect("numbers").is_noisy());
    }

    #[test]
    fn a_ratio_whose_ends_lie_on_both_sides_of_one_is_undecided() {
        let of = |numbers: [f64; 2]| Summary::of(numbers).expect("numbers");
        let ratio = Ratio::of(of([20.0, 22.0]), of([9.0, 11.0])).expect("a ratio");
        assert_eq!((ratio.median, ratio.is_undecided), (2.1, false));
        assert!(
            Ratio::of(of([9.0, 12.0]), of([10.0, 11.0]))
                .expect("a ratio")
                .is_undecided
        );
        assert_eq!(Ratio::of(of([1.0, 1.0]), of([0.0, 1.0])), None);
    }
}
