//! Looking through the bytes behind the end of a log, which is mostly zeros reserved ahead, or what another log left: a stride
//! at a time, in loops without branches that become vectors, over all where nothing can be.

use drumlin_base::coding::fixed32_at;

use super::{COVERED_FROM, HEADER_BYTES, RECYCLABLE_HEADER_BYTES};

/// Bytes looked at together.
const STRIDE_BYTES: usize = 64;
/// The types of fragments that have a part of a record.
const FIRST_TYPE: u8 = 1;
const TYPES: u8 = 8;

/// What is known of a fragment before it is looked at.
#[derive(Clone, Copy, Debug)]
pub(super) enum Sign {
    /// It has this number of its log.
    Number(u32),
    /// It has the type of a part of a record.
    Type,
}

/// The offsets in `bytes`, ascending, where a fragment with `sign` may begin, each with the bytes from there on: every one where one
/// does.
pub(super) fn candidates(bytes: &[u8], sign: Sign) -> impl Iterator<Item = (usize, &[u8])> {
    let strides = (0..bytes.len()).step_by(STRIDE_BYTES);
    let strides = strides.filter(move |&at| stride_may_have(bytes, at, sign));
    let offsets = strides.flat_map(|at| at..at + STRIDE_BYTES);
    let tails = offsets.map_while(move |at| Some((at, bytes.get(at..)?)));
    tails.filter(move |(_, tail)| match sign {
        Sign::Number(number) => fixed32_at(tail, HEADER_BYTES) == Some(number),
        Sign::Type => tail.get(COVERED_FROM).is_some_and(|&kind| is_type(kind)),
    })
}

/// Whether all `bytes` are zeros.
pub(crate) fn are_zeros(bytes: &[u8]) -> bool {
    bytes
        .chunks(STRIDE_BYTES)
        .all(|stride| stride.iter().fold(0, |any, byte| any | byte) == 0)
}

fn is_type(kind: u8) -> bool {
    kind.wrapping_sub(FIRST_TYPE) < TYPES
}

/// Whether a fragment with `sign` may begin in the stride at `at`.
fn stride_may_have(bytes: &[u8], at: usize, sign: Sign) -> bool {
    let shifted = |by: usize| bytes.get(at + by..)?.first_chunk::<STRIDE_BYTES>();
    match sign {
        Sign::Type => shifted(COVERED_FROM)
            .is_none_or(|kinds| kinds.iter().fold(false, |any, &kind| any | is_type(kind))),
        Sign::Number(number) => {
            const { assert!(RECYCLABLE_HEADER_BYTES == HEADER_BYTES + 4) };
            let [a, b, c, d] = number.to_le_bytes();
            let [Some(first), Some(second), Some(third), Some(fourth)] =
                [0, 1, 2, 3].map(|byte| shifted(HEADER_BYTES + byte))
            else {
                return true; // The last bytes are looked at one by one.
            };
            let pairs = first.iter().zip(second).zip(third.iter().zip(fourth));
            pairs.fold(false, |any, ((&w, &x), (&y, &z))| {
                any | ((w == a) & (x == b) & (y == c) & (z == d))
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use drumlin_base::rng::Rng;

    use super::*;

    /// Against every offset tried, in bytes of few values, of lengths around a stride's.
    #[test]
    fn every_place_of_a_sign_is_a_candidate() {
        let mut rng = Rng::new(20);
        for _ in 0..2_000 {
            let values = 1 + rng.below(12);
            let len = rng.below(4 * STRIDE_BYTES as u64);
            let bytes: Vec<u8> = (0..len).map(|_| rng.below(values) as u8).collect();
            let number = u32::from_le_bytes([0; 4].map(|_: u8| rng.below(2) as u8));
            let all = || (0..bytes.len()).map(|at| (at, &bytes[at..]));
            let numbered = all().filter(|(_, tail)| tail.get(7..11) == Some(&number.to_le_bytes()));
            assert!(
                candidates(&bytes, Sign::Number(number)).eq(numbered),
                "{bytes:?}"
            );
            let typed = all().filter(|(_, tail)| matches!(tail.get(6), Some(1..=8)));
            assert!(candidates(&bytes, Sign::Type).eq(typed), "{bytes:?}");
            assert_eq!(are_zeros(&bytes), bytes.iter().all(|&byte| byte == 0));
        }
        let mut zeros = vec![0; 3 * STRIDE_BYTES + 5];
        assert!(are_zeros(&zeros));
        for at in 0..zeros.len() {
            zeros[at] = 1;
            assert!(!are_zeros(&zeros), "{at}");
            zeros[at] = 0;
        }
    }
}
