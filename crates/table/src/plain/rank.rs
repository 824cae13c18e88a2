//! A key as one number that grows with the order of keys, for [`super::guess`].
//!
//! Bytes that all keys share say nothing. Each stretch of other bytes is a digit: a number between its least
//! and its largest value. A digit weighs as much as all digits behind it together. So keys made of a few
//! numbers with filling between become numbers as close together as possible, and where the numbers in the
//! keys are evenly spread, so are these.
//!
//! The rule is learned from some of the keys. A key that does not follow it still gets a number, but nothing
//! may depend on it.

/// Digits at most: later bytes say little about where a record is.
const DIGITS: usize = 3;
/// Bytes of a digit at most.
const DIGIT_BYTES: usize = 8;

/// The rule by which keys become numbers.
#[derive(Debug)]
pub(super) struct Rank {
    /// The digits in use come first, beginning with the last one of the key. The others weigh nothing.
    digits: [Digit; DIGITS],
}

/// Some bytes of a key as a number.
#[derive(Clone, Copy, Debug, Default)]
struct Digit {
    /// Where the eight bytes begin that hold it.
    at: usize,
    shift: u32,
    mask: u64,
    least: u64,
    /// Its largest value, less `least`.
    most: u64,
    /// The weight of a one: as much as all digits behind it together.
    weight: u64,
}

impl Rank {
    /// The rule that `keys` suggest: some of `count` keys, ascending. `None` when all are alike, or some are
    /// shorter than eight bytes.
    pub(super) fn new(keys: &[&[u8]], count: usize) -> Option<Self> {
        let len = keys.iter().map(|key| key.len()).min()?;
        if len < size_of::<u64>() {
            return None;
        }
        let mut found = Vec::new();
        // Keys ascend, so all share the prefix that the first and the last share.
        let mut ends = keys.first()?.iter().zip(*keys.last()?);
        let mut from = ends.position(|(a, b)| a != b).unwrap_or(len);
        // The numbers that the digits so far can be, without and with the gaps behind the last.
        let (mut different, mut space) = (1u64, 1u64);
        while let Some(range) = stretch(keys, from, len).filter(|_| found.len() < DIGITS) {
            from = range.end;
            let digit = Digit::over(range, keys);
            // About `alike` keys agree in the digits so far. If this digit is evenly spread among them, the gap
            // behind its largest value is as wide as that from one value to the next.
            let alike = (count as u64 / different).max(2);
            let gap = (digit.most / (alike - 1)).saturating_add(1);
            let width = digit.most.saturating_add(gap);
            // The rest is left out where the numbers would grow too large.
            let Some(grown) = space.checked_mul(width) else {
                break;
            };
            space = grown;
            different = different.saturating_mul(digit.most.saturating_add(1));
            found.push((digit, width));
        }
        let mut digits = [Digit::default(); DIGITS];
        let mut weight = 1u64;
        for (digit, (found, width)) in digits.iter_mut().zip(found.iter().rev()) {
            *digit = Digit { weight, ..*found };
            weight = weight.saturating_mul(*width);
        }
        (!found.is_empty()).then_some(Self { digits })
    }

    /// The number of `key`; `None` for keys shorter than those it was made for.
    #[inline]
    pub(super) fn of(&self, key: &[u8]) -> Option<u64> {
        let mut rank = 0u64;
        for digit in &self.digits {
            let bytes = key.get(digit.at..)?.first_chunk::<8>()?;
            let number = (u64::from_be_bytes(*bytes) >> digit.shift) & digit.mask;
            let number = number.saturating_sub(digit.least).min(digit.most);
            rank = rank.wrapping_add(number.wrapping_mul(digit.weight));
        }
        Some(rank)
    }
}

/// The first stretch of bytes in `from..len` in each of which keys differ.
fn stretch(keys: &[&[u8]], from: usize, len: usize) -> Option<std::ops::Range<usize>> {
    let (first, rest) = keys.split_first()?;
    let differs = |at: &usize| rest.iter().any(|key| key.get(*at) != first.get(*at));
    let start = (from..len).find(differs)?;
    let longest = len.min(start + DIGIT_BYTES);
    let end = (start..longest).find(|at| !differs(at)).unwrap_or(longest);
    Some(start..end)
}

impl Digit {
    /// The bytes `range` of keys like these. It weighs nothing yet.
    ///
    /// Requires: `keys` have eight bytes, and those of `range`.
    fn over(range: std::ops::Range<usize>, keys: &[&[u8]]) -> Self {
        let at = range.end.saturating_sub(size_of::<u64>());
        let behind = at + size_of::<u64>() - range.end;
        let mut digit = Self {
            at,
            shift: 8 * behind as u32,
            mask: u64::MAX >> (8 * (size_of::<u64>() - range.len())),
            ..Self::default()
        };
        let number = |key: &&[u8]| {
            let bytes = key.get(at..).and_then(|rest| rest.first_chunk::<8>());
            (u64::from_be_bytes(*bytes.unwrap_or(&[0; 8])) >> digit.shift) & digit.mask
        };
        let (least, most) = keys
            .iter()
            .map(number)
            .fold((u64::MAX, 0), |(least, most), n| {
                (least.min(n), most.max(n))
            });
        (digit.least, digit.most) = (least, most.saturating_sub(least));
        digit
    }
}

#[cfg(test)]
mod tests {
    use drumlin_base::rng::Rng;

    use super::*;

    fn rank(keys: &[Vec<u8>]) -> (Option<Rank>, Vec<&[u8]>) {
        let keys: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
        (Rank::new(&keys, keys.len()), keys)
    }

    #[test]
    fn two_keys_as_far_apart_as_keys_can_be_have_ranks() {
        let keys = [vec![0; 8], vec![255; 8]];
        let (rank, keys) = rank(&keys);
        let rank = rank.unwrap();
        assert!(rank.of(keys[0]) < rank.of(keys[1]));
    }

    #[test]
    fn ranks_ascend_with_keys_of_any_shape() {
        for seed in 0..200 {
            let mut rng = Rng::new(seed);
            let len = 8 + rng.below(24) as usize;
            let limits: Vec<u64> = (0..len)
                .map(|_| [1, 1, 2, 10, 256][rng.below(5) as usize])
                .collect();
            let mut key = || -> Vec<u8> {
                let extra = rng.below(3) as usize * usize::from(seed % 4 == 0);
                let bytes = limits
                    .iter()
                    .map(|limit| 40u8.wrapping_add(rng.below(*limit) as u8));
                let mut key: Vec<u8> = bytes.collect();
                key.resize(len + extra, 7);
                key
            };
            let mut keys: Vec<Vec<u8>> = (0..300).map(|_| key()).collect();
            keys.sort_unstable();
            let (Some(rank), keys) = rank(&keys) else {
                assert!(limits.iter().all(|limit| *limit == 1), "seed {seed}");
                continue;
            };
            let ranks: Vec<u64> = keys.iter().map(|key| rank.of(key).unwrap()).collect();
            assert!(ranks.is_sorted(), "seed {seed}");
            assert!(ranks.first() < ranks.last(), "seed {seed}");
        }
    }

    #[test]
    fn numbers_with_filling_between_become_one_without_gaps() {
        let key = |a: u64, b: u64| [&a.to_be_bytes()[..], b"0000", &b.to_be_bytes()].concat();
        let keys: Vec<Vec<u8>> = (0..50_000)
            .map(|n| key(700 + n / 10, 100_000 * (n % 10) + n / 10))
            .collect();
        let (rank, keys) = rank(&keys);
        let rank = rank.unwrap();
        let first = rank.of(keys[0]).unwrap();
        let last = rank.of(keys[keys.len() - 1]).unwrap();
        for (index, key) in keys.iter().enumerate() {
            let even = first as f64 + (last - first) as f64 * index as f64 / 49_999.0;
            let off = (rank.of(key).unwrap() as f64 - even).abs();
            assert!(off < 0.3 * (last - first) as f64 / 49_999.0, "{index}");
        }
    }

    #[test]
    fn keys_with_no_order_have_some_rule_or_none() {
        // Only a damaged table has such: the first and the last key alike, others not.
        for seed in 0..50 {
            let mut rng = Rng::new(seed);
            let mut key = || [&b"same"[..], &(rng.next_u64() >> 40).to_be_bytes()].concat();
            let mut keys: Vec<Vec<u8>> = (0..20).map(|_| key()).collect();
            if seed % 2 == 0 {
                keys.push(keys[0].clone());
            }
            let (rank, keys) = rank(&keys);
            assert_eq!(rank.is_some(), seed % 2 == 1);
            for key in keys {
                assert!(rank.as_ref().is_none_or(|rank| rank.of(key).is_some()));
            }
        }
    }

    #[test]
    fn keys_that_are_short_or_all_alike_have_no_rule() {
        let none: [&[&[u8]]; 4] = [
            &[],
            &[b"abcdefgh"],
            &[b"abcdefgh", b"abcdefgh"],
            &[b"a", b"bbbbbbbbbb"],
        ];
        for keys in none {
            assert!(Rank::new(keys, 10).is_none());
        }
        let keys: [&[u8]; 2] = [b"aaaaaaaa", b"aaaaaaab"];
        let rank = Rank::new(&keys, 2).unwrap();
        assert_eq!(rank.of(b"aaaaaaa"), None);
        let others: [&[u8]; 2] = [b"\xff\xff\xff\xff\xff\xff\xff\xff\xff", b"\0\0\0\0\0\0\0\0"];
        assert_eq!(others.map(|key| rank.of(key)), [Some(1), Some(0)]);
    }
}
