//! The order of sorted sets, and ranges of it.

use std::cmp::Ordering;

/// A member with its score.
#[derive(Clone, Debug, PartialEq)]
pub struct Scored {
    /// Never NaN.
    pub score: f64,
    /// The member.
    pub member: Vec<u8>,
}

impl Scored {
    /// A member that was lent.
    pub(super) fn of((score, member): (f64, &[u8])) -> Self {
        Self {
            score,
            member: member.to_vec(),
        }
    }

    /// The order of sorted sets.
    pub(super) fn order(&self, other: &Self) -> Ordering {
        order((self.score, &self.member), (other.score, &other.member))
    }
}

/// The order of sorted sets: by score as a number, then by member.
pub(super) fn order(one: (f64, &[u8]), other: (f64, &[u8])) -> Ordering {
    let by_score = one.0.partial_cmp(&other.0).unwrap_or(Ordering::Equal);
    by_score.then_with(|| one.1.cmp(other.1))
}

/// The bytes of a score.
pub(super) fn score_bytes(score: f64) -> [u8; 8] {
    score.to_bits().to_be_bytes()
}

/// The score in these bytes, unless they are those of a NaN.
pub(super) fn score_of(bytes: [u8; 8]) -> Option<f64> {
    let score = f64::from_bits(u64::from_be_bytes(bytes));
    (!score.is_nan()).then_some(score)
}

/// An entry of the tree.
pub(super) fn entry(score: f64, member: &[u8]) -> Vec<u8> {
    [&score_bytes(score)[..], member].concat()
}

/// The score and the member of an entry.
pub(super) fn split_entry(entry: &[u8]) -> Option<(f64, &[u8])> {
    let (bytes, member) = entry.split_first_chunk::<8>()?;
    Some((score_of(*bytes)?, member))
}

/// Something short between two entries: the score of the second, and as much of its member as tells them apart.
pub(super) fn separator(left: &[u8], right: &[u8]) -> Vec<u8> {
    let (Some((low, left)), Some((high, member))) = (split_entry(left), split_entry(right)) else {
        return right.to_vec();
    };
    if low < high {
        return score_bytes(high).to_vec();
    }
    let shared = left.iter().zip(member).take_while(|(a, b)| a == b).count();
    let kept = match drumlin_base::bug!("redis-separator-a-byte-short") {
        true => member.get(..shared),
        false => member.get(..=shared),
    };
    entry(high, kept.unwrap_or(member))
}

/// Scores from one to another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScoreRange {
    /// The lowest, never NaN.
    pub min: f64,
    /// The highest, never NaN.
    pub max: f64,
    /// The lowest itself is not in the range.
    pub excludes_min: bool,
    /// The highest itself is not in the range.
    pub excludes_max: bool,
}

impl ScoreRange {
    pub(super) fn is_below(&self, score: f64) -> bool {
        score < self.min || (self.excludes_min && score <= self.min)
    }

    pub(super) fn is_up_to_end(&self, score: f64) -> bool {
        score < self.max || (!self.excludes_max && score <= self.max)
    }
}

/// An end of a range of members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LexBound<'a> {
    /// `-`: before all.
    First,
    /// `[`: this one is in the range.
    Included(&'a [u8]),
    /// `(`: this one is not in the range.
    Excluded(&'a [u8]),
    /// `+`: behind all.
    Last,
}

/// Members from one to another, of a sorted set whose scores are all equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LexRange<'a> {
    /// The lower end.
    pub min: LexBound<'a>,
    /// The upper end.
    pub max: LexBound<'a>,
}

impl LexRange<'_> {
    pub(super) fn is_below(&self, member: &[u8]) -> bool {
        match self.min {
            LexBound::First => false,
            LexBound::Included(bound) => member < bound,
            LexBound::Excluded(bound) => member <= bound,
            LexBound::Last => true,
        }
    }

    pub(super) fn is_up_to_end(&self, member: &[u8]) -> bool {
        match self.max {
            LexBound::First => false,
            LexBound::Included(bound) => member <= bound,
            LexBound::Excluded(bound) => member < bound,
            LexBound::Last => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeros_are_equal_and_separators_lie_between() {
        assert_eq!(order((-0.0, b"a"), (0.0, b"b")), Ordering::Less);
        assert_eq!(order((0.0, b"a"), (-0.0, b"b")), Ordering::Less);
        let entries = [
            (f64::NEG_INFINITY, &b"z"[..]),
            (-1.5, b"y"),
            (0.0, b""),
            (-0.0, b"a"),
            (0.0, b"ab"),
            (0.0, b"abcdef"),
            (-0.0, b"abd"),
            (5e-324, b"a"),
            (f64::INFINITY, b"a"),
        ];
        for pair in entries.windows(2) {
            let (left, right) = (pair[0], pair[1]);
            assert_eq!(order(left, right), Ordering::Less);
            let between = separator(&entry(left.0, left.1), &entry(right.0, right.1));
            let between = split_entry(&between).expect("an entry");
            assert_eq!(order(left, between), Ordering::Less, "{pair:?}");
            assert_ne!(order(between, right), Ordering::Greater, "{pair:?}");
        }
        assert_eq!(score_of(score_bytes(f64::NAN)), None);
    }
}
