//! Two engines that should give the same figures, round by round.
//!
//! The two take turns, so a slowdown of the machine for longer than a stage slows both, and the ratio of a
//! round is better than that of two medians. The median of the rounds' ratios is between the least and the
//! greatest unless all rounds erred to one side, which of `n` rounds happens by chance once in `2^(n-1)`;
//! no shape of the noise is assumed.

use serde::Serialize;

use crate::outcome::StageOutcome;
use crate::summary::Summary;

/// How far a ratio may be from 1 and still be called close, where the noise does not explain it.
const CLOSE: f64 = 0.1;

/// The verdict of the rounds on two engines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Verdict {
    /// 1 is between the least and the greatest ratio: the noise explains that they differ.
    WithinNoise,
    /// All rounds err to one side, by a tenth at most in the middle.
    Close,
    /// They differ by more.
    Apart,
}

impl Verdict {
    fn of(ratio: Summary) -> Self {
        if ratio.min <= 1.0 && ratio.max >= 1.0 {
            Self::WithinNoise
        } else if (ratio.median - 1.0).abs() <= CLOSE {
            Self::Close
        } else {
            Self::Apart
        }
    }

    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Self::WithinNoise => "within the noise",
            Self::Close => "within a tenth",
            Self::Apart => "apart",
        }
    }
}

/// A stage by two engines.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Pair {
    /// The stage.
    pub stage: String,
    /// Operations a second of the first over those of the second, of the same round.
    pub ratio: Summary,
    /// By how much the second differs between its rounds: their range over their median.
    pub own_spread: f64,
    /// The conclusion.
    pub verdict: Verdict,
}

/// The first two engines of each stage that both measured.
pub(crate) fn pairs(stages: &[StageOutcome]) -> Vec<Pair> {
    let pair = |stage: &StageOutcome| {
        let [first, second, ..] = stage.engines.as_slice() else {
            return None;
        };
        let rates = first.iter().zip(second).filter_map(|(first, second)| {
            let rates = stage.rate(first).zip(stage.rate(second))?;
            (rates.0 > 0.0 && rates.1 > 0.0).then_some(rates)
        });
        let rates: Vec<(f64, f64)> = rates.collect();
        let ratio = Summary::of(rates.iter().map(|(first, second)| first / second))?;
        let second = Summary::of(rates.iter().map(|(_, second)| *second))?;
        Some(Pair {
            stage: stage.label.clone(),
            ratio,
            own_spread: second.spread(),
            verdict: Verdict::of(ratio),
        })
    };
    stages.iter().filter_map(pair).collect()
}

/// All pairs in a few sentences; nothing where there are none.
pub fn conclusion(pairs: &[Pair]) -> Option<String> {
    let middle = Summary::of(pairs.iter().map(|pair| pair.ratio.median))?;
    let rounds = pairs.iter().map(|pair| pair.ratio.rounds).min()?;
    let count = |verdict: Verdict| pairs.iter().filter(|pair| pair.verdict == verdict).count();
    let close = pairs
        .iter()
        .filter(|pair| (pair.ratio.median - 1.0).abs() <= CLOSE)
        .count();
    let chance = 0.5f64.powi(i32::try_from(rounds).unwrap_or(i32::MAX) - 1);
    Some(format!(
        "Of {all} lines {noise} agree within the noise of {rounds} rounds, {tenth} more within a tenth, {apart} do not. \
         {close} have a median ratio within a tenth of 1; the median of all is {median:.2}. By chance alone a line of two equal \
         engines falls out of the noise with probability {chance:.3}.",
        all = pairs.len(),
        noise = count(Verdict::WithinNoise),
        tenth = count(Verdict::Close),
        apart = count(Verdict::Apart),
        median = middle.median,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample;

    fn verdict(ratios: [f64; 3]) -> Verdict {
        Verdict::of(Summary::of(ratios).expect("numbers"))
    }

    #[test]
    fn noise_explains_what_lies_on_both_sides_of_one() {
        assert_eq!(verdict([0.7, 0.8, 1.0]), Verdict::WithinNoise);
        assert_eq!(verdict([0.91, 0.95, 0.99]), Verdict::Close);
        assert_eq!(verdict([0.7, 0.85, 0.99]), Verdict::Apart);
        assert_eq!(verdict([1.01, 1.3, 1.4]), Verdict::Apart);
    }

    #[test]
    fn rounds_are_compared_with_each_other_and_not_medians() {
        // The second engine takes twice the time in each of two rounds that differ by a tenth.
        let pairs = pairs(&sample().stages);
        let [pair] = pairs.as_slice() else {
            panic!("one stage: {pairs:?}");
        };
        assert_eq!((pair.ratio.min, pair.ratio.max), (2.0, 2.0));
        assert!(pair.own_spread > 0.09 && pair.own_spread < 0.11);
        let text = conclusion(&pairs).expect("a pair");
        assert!(
            text.starts_with(
                "Of 1 lines 0 agree within the noise of 2 rounds, 0 more within a tenth, 1 do not."
            ),
            "{text}"
        );
        assert_eq!(conclusion(&[]), None);
    }
}
