//! Whether a load kept its pace, computed from its seconds.

use crate::outcome::Point;
use crate::summary::Summary;

/// Fewer seconds say nothing about the pace.
const SECONDS_MIN: usize = 10;
/// The ends of a load that are compared, in seconds; its halves where it is shorter than both.
const END_SECONDS: usize = 60;

fn rates<'p>(points: impl IntoIterator<Item = &'p Point>) -> Option<Summary> {
    let rates = points.into_iter().filter_map(|point| point.rates.first());
    Summary::of(rates.copied().filter(|rate| rate.is_finite()))
}

fn mean(points: &[Point]) -> f64 {
    let rates = points.iter().filter_map(|point| point.rates.first());
    rates.sum::<f64>() / points.len().max(1) as f64
}

/// The slowest second over the median second: 0 for a store that stood still.
pub(crate) fn slowest_over_median(points: &[Point]) -> Option<f64> {
    let all = rates(points)?;
    (points.len() >= SECONDS_MIN && all.median > 0.0).then_some(all.min / all.median)
}

/// The slowest second of the load's second half, where the store is filled and compacted, over the median second.
pub(crate) fn slowest_of_second_half(points: &[Point]) -> Option<f64> {
    let all = rates(points)?;
    let half = rates(points.get(points.len() / 2..)?)?;
    (points.len() >= SECONDS_MIN && all.median > 0.0).then_some(half.min / all.median)
}

/// The slowest second of the manual compaction over the median second of the load.
pub(crate) fn slowest_while_compacting(points: &[Point]) -> Option<f64> {
    let all = rates(points)?;
    let compacting = rates(points.iter().filter(|point| point.compacting))?;
    (points.len() >= SECONDS_MIN && all.median > 0.0).then_some(compacting.min / all.median)
}

/// The rate of the last minute over that of the first, or of the halves of a short load.
pub(crate) fn last_over_first(points: &[Point]) -> Option<f64> {
    let end = END_SECONDS.min(points.len() / 2);
    let (first, last) = (points.get(..end)?, points.get(points.len() - end..)?);
    let first = mean(first);
    (points.len() >= SECONDS_MIN && first > 0.0).then(|| mean(last) / first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample;

    fn points(rates: &[(f64, bool)]) -> Vec<Point> {
        let model = sample().stages[0].engines[0][0].points[0].clone();
        let point = |(rate, compacting): &(f64, bool)| Point {
            rates: vec![*rate],
            compacting: *compacting,
            ..model.clone()
        };
        rates.iter().map(point).collect()
    }

    #[test]
    fn slow_seconds_and_slow_ends_show() {
        let mut seconds = vec![(100.0, false); 10];
        seconds[4] = (80.0, true);
        seconds[7] = (20.0, false);
        let seconds = points(&seconds);
        assert_eq!(slowest_over_median(&seconds), Some(0.2));
        assert_eq!(slowest_while_compacting(&seconds), Some(0.8));
        assert_eq!(slowest_of_second_half(&seconds), Some(0.2));
        let turned: Vec<Point> = seconds.iter().rev().cloned().collect();
        assert_eq!(slowest_of_second_half(&turned), Some(0.8));
        assert_eq!(last_over_first(&seconds), Some(420.0 / 480.0));
    }

    #[test]
    fn a_short_load_or_one_without_a_compaction_tells_nothing() {
        let few = points(&[(100.0, true); 9]);
        assert_eq!(slowest_over_median(&few), None);
        assert_eq!(slowest_while_compacting(&few), None);
        assert_eq!(slowest_of_second_half(&few), None);
        assert_eq!(last_over_first(&few), None);
        assert_eq!(
            slowest_while_compacting(&points(&[(100.0, false); 20])),
            None
        );
        assert_eq!(last_over_first(&points(&[(0.0, false); 20])), None);
    }
}
