//! A guess at a record's place, from its key alone.
//!
//! The idea: in a table of evenly spaced keys, a record's place is a linear function of its key.
//!
//! ```text
//! rank  = key as one number                         super::rank
//! knot  = the part of the range of ranks it is in    all parts are of one width: a multiplication
//! place = interpolated between the places of two knots
//! ```
//!
//! The index has the place of each record, but a record can be prefetched only once the index's line has
//! arrived. If keys are consecutive numbers, and values have about one size, the key alone gives the
//! place, by interpolation between a few known records. Then both are prefetched at the same time. A
//! guess decides nothing: a wrong one has only fetched lines in vain.
//!
//! Keys are often several numbers with filling between, such as a customer's and an order's. So a key is
//! first made one number ([`Rank`]): each stretch of bytes that differ from key to key (learned from the
//! anchors' keys) is a number in a range, and these are its digits.
//!
//! Guesses at keys drawn at random, such as those in one of several levels, are some records off. That is
//! still worth a line: it is mostly in the same page, and where memory is larger than the TLB covers,
//! translating the address is a third of the wait. Tables whose guesses are not even that good make none.

use super::rank::Rank;
use super::record::{RECORD_LINES, UNIT_BYTES};

/// Anchors to each knot: few enough that one interpolation between two knots is a good guess.
const ANCHORS_PER_KNOT: usize = 32;
/// Knots at most: those of some dozens of tables stay in a core's own cache.
const KNOTS_MAX: usize = 4096;
/// The error of a guess that still finds the record, in units of places: less than a cache line.
const GOOD: u64 = 15;
/// The error of a guess that mostly finds the record's page.
const NEAR: u64 = (1200 / UNIT_BYTES) as u64;

/// The rule of one table.
#[derive(Debug)]
pub(super) struct Guess {
    rank: Rank,
    first: u64,
    last: u64,
    /// Bits by which a rank, less the first, is shifted to fill a word.
    shift: u32,
    /// Knots in the unit of such a word, in parts of 2^96.
    scale: u64,
    /// Where the record of each knot would be; knots are evenly spaced between the first rank and the
    /// last.
    knots: Vec<u32>,
    lines: usize,
}

impl Guess {
    /// The rule for a table of `count` keys with these `keys` at these `places`, both ascending. `None` when it
    /// would not be good for nearly all of them, or when the keys do not ascend, as in a damaged table only.
    pub(super) fn new(keys: &[&[u8]], count: usize, places: &[u32]) -> Option<Self> {
        let rank = Rank::new(keys, count)?;
        let ranks: Vec<u64> = keys.iter().map(|key| rank.of(key)).collect::<Option<_>>()?;
        let (first, last) = (*ranks.first()?, *ranks.last()?);
        let parts = (ranks.len() / ANCHORS_PER_KNOT).min(KNOTS_MAX);
        if parts == 0 || first == last || !ranks.is_sorted() {
            return None;
        }
        let span = last - first;
        let shift = span.leading_zeros();
        let scale = ((parts as u128) << (32 + u64::BITS)) / u128::from(span << shift);
        let scale = u64::try_from(scale).ok()?;
        let spacing = span as f64 / parts as f64;
        let mut knots = Vec::with_capacity(parts + 1);
        let mut at = 0;
        for knot in 0..=parts {
            let along = (knot as f64 * spacing).min(span as f64);
            let is_before = |next: &&u64| ((**next - first) as f64) < along;
            at += ranks.get(at..)?.iter().take_while(is_before).count();
            knots.push(place_of(along, at, &ranks, places)?);
        }
        let guess = Self {
            rank,
            first,
            last,
            shift,
            scale,
            knots,
            lines: 0,
        };
        let within = |most: u64| {
            let near = ranks.iter().zip(places).filter(|(rank, place)| {
                let guessed = guess.place_at(**rank);
                guessed.is_some_and(|guessed| guessed.abs_diff(u64::from(**place)) <= most)
            });
            near.count()
        };
        // Nine in ten; three in four.
        let lines = match ranks.len() {
            all if within(GOOD) * 10 >= all * 9 => RECORD_LINES,
            all if within(NEAR) * 4 >= all * 3 => 1,
            _ => return None,
        };
        Some(Self { lines, ..guess })
    }

    /// The number of cache lines worth prefetching at a guessed place.
    #[inline]
    pub(super) fn lines(&self) -> usize {
        self.lines
    }

    /// Where the record of `user_key` may be; `None` when it cannot be told.
    #[inline]
    pub(super) fn place(&self, user_key: &[u8]) -> Option<u64> {
        self.place_at(self.rank.of(user_key)?)
    }

    #[inline]
    fn place_at(&self, rank: u64) -> Option<u64> {
        let along = (rank.clamp(self.first, self.last) - self.first) << self.shift;
        // Knots in parts of 2^32.
        let along = ((u128::from(along) * u128::from(self.scale)) >> u64::BITS) as u64;
        let knot = ((along >> 32) as usize).min(self.knots.len() - 2);
        let [from, to] = self.knots.get(knot..)?.first_chunk::<2>()?;
        let behind = along - ((knot as u64) << 32);
        Some(u64::from(*from) + ((u64::from(to.wrapping_sub(*from)) * behind) >> 32))
    }

    /// Memory it takes.
    pub(super) fn resident_bytes(&self) -> usize {
        self.knots.len() * size_of::<u32>()
    }
}

/// Where a record would be whose rank is `along` after the first, between the anchors `at - 1` and
/// `at`.
fn place_of(along: f64, at: usize, ranks: &[u64], places: &[u32]) -> Option<u32> {
    let first = *ranks.first()?;
    let anchor = |at: usize| {
        Some((
            (*ranks.get(at)? - first) as f64,
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
        let keys: Vec<[u8; 8]> = anchors.0.iter().map(|n: &u64| n.to_be_bytes()).collect();
        let keys: Vec<&[u8]> = keys.iter().map(|key| &key[..]).collect();
        Guess::new(&keys, heads.len(), &anchors.1)
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
                let guessed = guess.place(&head.to_be_bytes()).unwrap();
                assert!(
                    guessed.abs_diff(place) <= 1,
                    "{index}: {guessed}, not {place}"
                );
            }
            let first = guess.place(&heads[0].to_be_bytes());
            assert_eq!(guess.place(&[0; 8]), first);
            assert!(guess.place(&[0xff; 8]) >= first);
        }
    }

    #[test]
    fn keys_of_two_numbers_are_guessed_to_the_record() {
        let key = |n: u64| {
            let (customer, order) = (900 + n / 10, n % 10 * 1_000_000 + n / 10);
            [&customer.to_be_bytes()[..], b"0000", &order.to_be_bytes()].concat()
        };
        let keys: Vec<Vec<u8>> = (0..200_000).map(key).collect();
        let anchors: Vec<&[u8]> = keys.iter().step_by(7).map(Vec::as_slice).collect();
        let places: Vec<u32> = (0..keys.len() as u32)
            .step_by(7)
            .map(|n| 16 + 33 * n)
            .collect();
        let guess = Guess::new(&anchors, keys.len(), &places).unwrap();
        assert_eq!(guess.lines(), RECORD_LINES);
        let anchored = (keys.len() - 1) / 7 * 7;
        for (index, key) in keys.iter().enumerate().take(anchored) {
            let off = guess.place(key).unwrap().abs_diff(16 + 33 * index as u64);
            assert!(off <= 12, "{index}: {off}");
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
