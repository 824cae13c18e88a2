//! What came out of one line, and of all rounds of it.

/// One engine's run of one line.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Outcome {
    /// Microseconds an operation, of one thread's time, as db_bench counts.
    pub(crate) micros: f64,
    /// Operations of all threads.
    pub(crate) operations: u64,
    /// Keys found, of workloads that look keys up.
    pub(crate) found: Option<u64>,
    /// Seconds until the engine had finished its background work afterwards, if that was seen.
    pub(crate) settle_seconds: Option<f64>,
}

/// The rounds of one line by one engine.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rounds(pub(crate) Vec<Outcome>);

/// Median and range.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Summary {
    /// The middle, or the mean of the two middles.
    pub(crate) median: f64,
    /// The least.
    pub(crate) min: f64,
    /// The greatest.
    pub(crate) max: f64,
}

impl Rounds {
    /// Of microseconds an operation; `None` without rounds.
    pub(crate) fn micros(&self) -> Option<Summary> {
        summary(self.0.iter().map(|outcome| outcome.micros))
    }

    /// Of seconds of background work afterwards.
    pub(crate) fn settle_seconds(&self) -> Option<Summary> {
        summary(self.0.iter().filter_map(|outcome| outcome.settle_seconds))
    }
}

fn summary(numbers: impl Iterator<Item = f64>) -> Option<Summary> {
    let mut sorted: Vec<f64> = numbers.collect();
    sorted.sort_by(f64::total_cmp);
    let (min, max) = (*sorted.first()?, *sorted.last()?);
    let upper = sorted[sorted.len() / 2];
    let lower = sorted[(sorted.len() - 1) / 2];
    Some(Summary {
        median: lower.midpoint(upper),
        min,
        max,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_an_even_count_lies_between_the_middles() {
        let of = |numbers: &[f64]| summary(numbers.iter().copied());
        assert_eq!(of(&[]), None);
        let expected = Summary {
            median: 2.5,
            min: 1.0,
            max: 9.0,
        };
        assert_eq!(of(&[9.0, 1.0, 3.0, 2.0]), Some(expected));
        let expected = Summary {
            median: 3.0,
            min: 1.0,
            max: 9.0,
        };
        assert_eq!(of(&[9.0, 1.0, 3.0]), Some(expected));
    }
}
