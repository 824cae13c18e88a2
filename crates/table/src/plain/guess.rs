//! A guess at where a record lies, from eight bytes of its key alone.
//!
//! The index knows where each record is, but the record can only be asked for once the index's line has
//! come. Where keys are numbers given out one after the other, and values of about one size, the place
//! follows from the key as well, by a rule of three between a few known records; then both are asked for
//! at the same time. A guess decides nothing: a wrong one has only fetched lines in vain.
//!
//! Keys drawn at random, as those are that one level of several holds, are guessed some records off.
//! That is still worth a line: it lies in the same page mostly, and with more memory than the processor
//! has translations at hand, to translate the address takes it a third of the wait.
//! Tables whose guesses are no good even for that make none.

use std::ops::RangeInclusive;

use super::record::UNIT_BYTES;
use super::table::RECORD_LINES;

/// Anchors to each knot: few enough that a guess between two knots is one, and not looked up.
const ANCHORS_PER_KNOT: usize = 32;
/// Knots at most: those of some dozens of tables stay in a core's own cache.
const KNOTS_MAX: usize = 4096;
/// How far off a guess is that finds the record, in units of places: less than a cache line.
const GOOD: u64 = 15;
/// The same of one that mostly finds its page.
const NEAR: u64 = (1200 / UNIT_BYTES) as u64;

/// The rule of one table.
#[derive(Debug)]
pub(super) struct Guess {
    heads: RangeInclusive<u64>,
    /// Knots in a unit of a head.
    scale: f64,
    /// Where the key of each knot would lie; knots are evenly spaced between the first head and the
    /// last.
    knots: Vec<u32>,
    lines: usize,
}

impl Guess {
    /// The rule for keys with these `heads` at these `places`, which ascend; `None` when it would not be
    /// good for nearly all of them, or when the heads do not ascend: only a damaged table's do not.
    pub(super) fn new(heads: &[u64], places: &[u32]) -> Option<Self> {
        let (first, last) = (*heads.first()?, *heads.last()?);
        let count = (heads.len() / ANCHORS_PER_KNOT).min(KNOTS_MAX);
        if count == 0 || first == last || !heads.is_sorted() {
            return None;
        }
        let scale = count as f64 / (last - first) as f64;
        let mut knots = Vec::with_capacity(count + 1);
        let mut at = 0;
        for knot in 0..=count {
            let along = (knot as f64 / scale).min((last - first) as f64);
            let is_before = |next: &&u64| ((**next - first) as f64) < along;
            at += heads.get(at..)?.iter().take_while(is_before).count();
            knots.push(place_of(along, at, heads, places)?);
        }
        let guess = Self {
            heads: first..=last,
            scale,
            knots,
            lines: 0,
        };
        let pairs = || heads.iter().zip(places);
        let within = |most: u64| {
            let near = pairs().filter(|(head, place)| {
                let guessed = guess.place(**head);
                guessed.is_some_and(|guessed| guessed.abs_diff(u64::from(**place)) <= most)
            });
            near.count()
        };
        // Nine in ten; three in four.
        let lines = match heads.len() {
            all if within(GOOD) * 10 >= all * 9 => RECORD_LINES,
            all if within(NEAR) * 4 >= all * 3 => 1,
            _ => return None,
        };
        Some(Self { lines, ..guess })
    }

    /// How many cache lines are worth asking for at a guessed place.
    #[inline]
    pub(super) fn lines(&self) -> usize {
        self.lines
    }

    /// Where a record whose key has this head may lie; `None` outside of the table.
    #[inline]
    pub(super) fn place(&self, head: u64) -> Option<u64> {
        if !self.heads.contains(&head) {
            return None;
        }
        let along = (head - self.heads.start()) as f64 * self.scale;
        let knot = (along as usize).min(self.knots.len() - 2);
        let [from, to] = self.knots.get(knot..)?.first_chunk::<2>()?;
        let (from, to) = (f64::from(*from), f64::from(*to));
        // Rounded so, because no target need have an instruction for it.
        Some((from + (to - from) * (along - knot as f64) + 0.5) as u64)
    }

    /// Memory it takes.
    pub(super) fn resident_bytes(&self) -> usize {
        self.knots.len() * size_of::<u32>()
    }
}

/// Where a record would lie whose head is `along` after the first, between the anchors `at - 1` and
/// `at`.
fn place_of(along: f64, at: usize, heads: &[u64], places: &[u32]) -> Option<u32> {
    let first = *heads.first()?;
    let anchor = |at: usize| {
        Some((
            (*heads.get(at)? - first) as f64,
            f64::from(*places.get(at)?),
        ))
    };
    let (after, to) = anchor(at)?;
    let Some((before, from)) = at.checked_sub(1).and_then(anchor) else {
        return Some(to as u32);
    };
    let part = (along - before) / (after - before).max(1.0);
    Some((from + (to - from) * part).round_ties_even() as u32)
}

#[cfg(test)]
mod tests {
    use drumlin_base::rng::Rng;

    use super::*;

    /// One anchor in eight of records whose heads are `heads`, `units` long each.
    fn guess(heads: &[u64], units: impl Fn(usize) -> u32) -> Option<Guess> {
        let mut place = 16;
        let mut anchors = (Vec::new(), Vec::new());
        for (index, head) in heads.iter().enumerate() {
            if index % 8 == 0 {
                anchors.0.push(*head);
                anchors.1.push(place);
            }
            place += units(index);
        }
        Guess::new(&anchors.0, &anchors.1)
    }

    #[test]
    fn numbers_in_a_row_are_guessed_to_the_record() {
        for (count, step) in [(600u64, 1u64), (100_000, 1 << 40), (50_000, 7)] {
            let heads: Vec<u64> = (0..count).map(|n| 900 + n * step).collect();
            let guess = guess(&heads, |_| 33).unwrap();
            assert_eq!(guess.lines(), RECORD_LINES);
            let anchored = (heads.len() - 1) / 8 * 8;
            for (index, head) in heads.iter().enumerate().take(anchored) {
                let place = 16 + 33 * index as u64;
                let guessed = guess.place(*head).unwrap();
                assert!(
                    guessed.abs_diff(place) <= 1,
                    "{index}: {guessed}, not {place}"
                );
            }
            assert_eq!(guess.place(899), None);
            assert_eq!(guess.place(u64::MAX), None);
        }
    }

    #[test]
    fn a_table_that_cannot_be_guessed_is_not() {
        let mut rng = Rng::new(7);
        let mut heads: Vec<u64> = (0..100_000).map(|_| rng.next_u64()).collect();
        heads.sort_unstable();
        let near = guess(&heads, |_| 33).unwrap();
        assert_eq!(near.lines(), 1, "keys at random");
        let half: Vec<u64> = (0..200_000).filter(|_| rng.one_in(2)).collect();
        let near = guess(&half, |_| 33).unwrap();
        assert_eq!(near.lines(), 1, "numbers in a row, every other missing");
        let heads: Vec<u64> = (0..100_000).collect();
        assert!(guess(&heads, |index| 1 + index as u32 % 9000).is_none());
        assert!(guess(&[], |_| 33).is_none());
        assert!(
            guess(&[5; 2000], |_| 33).is_none(),
            "one key for eight bytes"
        );
        assert!(guess(&heads[..8], |_| 33).is_none(), "too few");
        assert!(guess(&[0, u64::MAX], |_| 33).is_none());
        let mut damaged = heads.clone();
        damaged.reverse();
        assert!(guess(&damaged, |_| 33).is_none(), "keys that descend");
        damaged.sort_unstable();
        damaged[4000] = 0;
        damaged[0] = 7;
        assert!(guess(&damaged, |_| 33).is_none(), "a key out of order");
    }
}
