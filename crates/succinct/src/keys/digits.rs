//! Runs of decimal digits to integers, eight digits at a time.
//!
//! Eight bytes are looked at as one word. A byte is a digit if, with the bits of `0` taken off, adding
//! 0x76 leaves its highest bit clear; the first that is none is counted to. The digits are moved to the
//! word's upper end, zeros before them, and three multiplications join neighbours: pairs, fours, eights.
//! Without that, every digit is a jump that the processor cannot foresee where the run ends.

use super::packed::front;

/// Each byte one.
const ONES: u64 = 0x0101_0101_0101_0101;

/// Powers of the base that fit 64 bits.
struct Powers<const BASE: u64>;

impl<const BASE: u64> Powers<BASE> {
    const ALL: [u64; 19] = {
        let mut all = [1; 19];
        let mut at = 1;
        while at < all.len() {
            all[at] = all[at - 1] * BASE;
            at += 1;
        }
        all
    };
}

/// `BASE` (10 or 11) to the power of `exponent`, at most 18; beyond that 1.
#[inline]
pub(super) fn power<const BASE: u64>(exponent: usize) -> u64 {
    Powers::<BASE>::ALL.get(exponent).copied().unwrap_or(1)
}

/// The decimal digits at the front of `text`, at most `most` (18 in base 11, 19 in base 10), each plus
/// `add` (0 or 1) as a digit of `BASE` (10 or 11): the number, and how many they are.
#[inline]
pub(super) fn leading<const BASE: u64>(text: &[u8], most: usize, add: u64) -> (u64, usize) {
    let (mut value, mut len) = (0u64, 0);
    while len < most {
        // Zeros behind a short text are no digits.
        let word = front(text.get(len..).unwrap_or_default());
        let digits = word ^ (ONES * u64::from(b'0'));
        // Carries go up only, past the first byte that is no digit.
        let others = (digits.wrapping_add(ONES * 0x76) | digits) & (ONES * 0x80);
        let count = ((others.trailing_zeros() / 8) as usize).min(most - len);
        if count == 0 {
            return (value, len);
        }
        let moved = digits.wrapping_add(ONES * add) << (64 - 8 * count as u32);
        value = value * power::<BASE>(count) + join::<BASE>(moved);
        len += count;
        if count < 8 {
            return (value, len);
        }
    }
    (value, len)
}

/// The number of eight digits, the first lowest.
#[inline]
fn join<const BASE: u64>(digits: u64) -> u64 {
    let pairs = (digits.wrapping_mul((BASE << 8) | 1) >> 8) & 0x00FF_00FF_00FF_00FF;
    let fours = (pairs.wrapping_mul(((BASE * BASE) << 16) | 1) >> 16) & 0x0000_FFFF_0000_FFFF;
    fours.wrapping_mul((power::<BASE>(4) << 32) | 1) >> 32
}

#[cfg(test)]
mod tests {
    use drumlin_base::rng::Rng;

    use super::*;

    fn slowly(text: &[u8], most: usize, base: u64, add: u64) -> (u64, usize) {
        let digits = text
            .iter()
            .take(most)
            .take_while(|byte| byte.is_ascii_digit());
        digits.fold((0, 0), |(value, len), byte| {
            (value * base + u64::from(byte - b'0') + add, len + 1)
        })
    }

    #[test]
    fn runs_of_any_length_are_what_digit_by_digit_gives() {
        let mut rng = Rng::new(5);
        for _ in 0..20_000 {
            let mut text = vec![0; rng.below(30) as usize];
            rng.fill(&mut text);
            let run = rng.below(24) as usize;
            for byte in text.iter_mut().take(run) {
                *byte = b'0' + *byte % 10;
            }
            let most = 1 + rng.below(18) as usize;
            for add in [0, 1] {
                assert_eq!(
                    leading::<11>(&text, most, add),
                    slowly(&text, most, 11, add),
                    "{text:?}"
                );
            }
            let most = most + 1;
            assert_eq!(leading::<10>(&text, most, 0), slowly(&text, most, 10, 0));
        }
    }
}
