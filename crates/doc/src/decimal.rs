//! Decimal128, as far as its order needs it: each number has one sequence of digits.
//!
//! A finite number that is not zero is `0.d1d2d3… × 10^exponent` with `d1` and the last digit not 0. Doubles have such
//! digits too, at most 767, so that both can be compared exactly.

use std::cmp::Ordering;

/// A number by its digits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Digits {
    pub(crate) is_negative: bool,
    /// Of `0.d1d2…`.
    pub(crate) exponent: i32,
    /// 0 to 9 each; none for zero.
    pub(crate) digits: Vec<u8>,
}

/// What a decimal stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Decimal {
    NaN,
    Infinite { is_negative: bool },
    Finite(Digits),
}

/// Reads the 16 bytes, in the binary encoding of the coefficient.
pub(crate) fn decode(bytes: &[u8]) -> Decimal {
    let Some(bytes) = bytes.first_chunk::<16>() else {
        return Decimal::NaN;
    };
    let bits = u128::from_le_bytes(*bytes);
    let is_negative = bits >> 127 == 1;
    let top = (bits >> 122) & 0x1F;
    if top == 0x1F {
        return Decimal::NaN;
    }
    if top == 0x1E {
        return Decimal::Infinite { is_negative };
    }
    // The form with implied leading bits has coefficients that are too large, which count as 0.
    let (biased, coefficient) = match (bits >> 125) & 3 {
        3 => ((bits >> 111) & 0x3FFF, 0),
        _ => ((bits >> 113) & 0x3FFF, bits & ((1 << 113) - 1)),
    };
    let coefficient = if coefficient < 10u128.pow(34) {
        coefficient
    } else {
        0
    };
    let exponent = i32::try_from(biased).unwrap_or(0) - 6176;
    let text = coefficient.to_string();
    Decimal::Finite(Digits::new(is_negative, text.as_bytes(), exponent))
}

/// The int64 that a decimal is, if it has no fraction.
pub(crate) fn whole(bytes: &[u8]) -> Option<i64> {
    let Decimal::Finite(digits) = decode(bytes) else {
        return None;
    };
    let (whole, has_more) = digits.whole()?;
    let whole = i64::try_from(whole).ok().filter(|_| !has_more)?;
    Some(if digits.is_negative { -whole } else { whole })
}

impl Digits {
    /// `text` is a whole number that is multiplied by a power of ten.
    fn new(is_negative: bool, text: &[u8], power: i32) -> Self {
        let first = text.iter().position(|digit| *digit != b'0');
        let last = text.iter().rposition(|digit| *digit != b'0');
        let (Some(first), Some(last)) = (first, last) else {
            return Self {
                is_negative: false,
                exponent: 0,
                digits: Vec::new(),
            };
        };
        let digits = text.get(first..=last).unwrap_or_default();
        let whole = i32::try_from(text.len() - first).unwrap_or(i32::MAX);
        Self {
            is_negative,
            exponent: whole.saturating_add(power),
            digits: digits.iter().map(|digit| digit - b'0').collect(),
        }
    }

    /// Those of a whole number.
    pub(crate) fn of_i64(number: i64) -> Self {
        Self::new(number < 0, number.unsigned_abs().to_string().as_bytes(), 0)
    }

    /// Those of a finite double, all of them.
    pub(crate) fn of_f64(number: f64) -> Self {
        let text = format!("{:.767e}", number.abs());
        let (digits, power) = text.split_once('e').unwrap_or((&text, "0"));
        let digits: Vec<u8> = digits.bytes().filter(|byte| *byte != b'.').collect();
        let power: i32 = power.parse().unwrap_or(0);
        Self::new(number < 0.0, &digits, power - 767)
    }

    /// By value.
    pub(crate) fn cmp_magnitude(&self, other: &Self) -> Ordering {
        match (self.digits.is_empty(), other.digits.is_empty()) {
            (true, true) => Ordering::Equal,
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
            (false, false) => {
                let by_size = self.exponent.cmp(&other.exponent);
                by_size.then_with(|| self.digits.cmp(&other.digits))
            }
        }
    }

    /// By value.
    pub(crate) fn compare(&self, other: &Self) -> Ordering {
        match (self.is_negative, other.is_negative) {
            (false, true) => Ordering::Greater,
            (true, false) => Ordering::Less,
            (false, false) => self.cmp_magnitude(other),
            (true, true) => other.cmp_magnitude(self),
        }
    }

    /// The part before the point, of the magnitude, if it is below 2^63; and whether there is anything behind it.
    pub(crate) fn whole(&self) -> Option<(u64, bool)> {
        if self.exponent <= 0 {
            return Some((0, !self.digits.is_empty()));
        }
        let places = usize::try_from(self.exponent).unwrap_or(0);
        if places > 19 {
            return None;
        }
        let digits = (0..places).map(|at| self.digits.get(at).copied().unwrap_or(0));
        let whole = digits.fold(0u128, |sum, digit| sum * 10 + u128::from(digit));
        let whole = u64::try_from(whole).ok().filter(|whole| *whole < 1 << 63)?;
        Some((whole, self.digits.len() > places))
    }

    /// The part behind the point, of the magnitude.
    pub(crate) fn fraction(&self) -> Self {
        let places = usize::try_from(self.exponent).unwrap_or(0);
        let text: Vec<u8> = self
            .digits
            .iter()
            .skip(places)
            .map(|digit| digit + b'0')
            .collect();
        let behind = i32::try_from(text.len()).unwrap_or(0);
        let power = if places > 0 {
            -behind
        } else {
            self.exponent - behind
        };
        Self::new(false, &text, power)
    }

    /// The nearest double, with its sign.
    pub(crate) fn nearest_f64(&self) -> f64 {
        let magnitude = self.nearest_magnitude();
        if self.is_negative {
            -magnitude
        } else {
            magnitude
        }
    }

    fn nearest_magnitude(&self) -> f64 {
        let digits = self.digits.iter().map(|digit| char::from(digit + b'0'));
        let text: String = digits.collect();
        let text = format!("0.{text}0e{}", self.exponent);
        text.parse().unwrap_or(0.0)
    }

    /// The largest double that is not above the magnitude.
    pub(crate) fn floor_f64(&self) -> f64 {
        let nearest = self.nearest_magnitude();
        if nearest.is_infinite() {
            return f64::MAX;
        }
        match Self::of_f64(nearest).cmp_magnitude(self) {
            Ordering::Greater => f64::from_bits(nearest.to_bits().saturating_sub(1)),
            _ => nearest,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_of_doubles_are_exact() {
        let tenth = Digits::of_f64(0.1);
        let text: String = tenth
            .digits
            .iter()
            .map(|digit| char::from(digit + b'0'))
            .collect();
        assert_eq!(
            text,
            "1000000000000000055511151231257827021181583404541015625"
        );
        assert_eq!(tenth.exponent, 0);
        assert_eq!(tenth.floor_f64().to_bits(), 0.1f64.to_bits());
        for number in [5e-324, 1.5, 123.456, 1e300, f64::MAX, 0.3] {
            assert_eq!(
                Digits::of_f64(number).floor_f64().to_bits(),
                number.to_bits()
            );
        }
    }

    #[test]
    fn whole_and_fraction_add_up() {
        let number = Digits::of_f64(12.75);
        assert_eq!(number.whole(), Some((12, true)));
        assert_eq!(number.fraction(), Digits::of_f64(0.75));
        assert_eq!(Digits::of_f64(0.001).fraction(), Digits::of_f64(0.001));
        assert_eq!(Digits::of_f64(1e19).whole(), None);
        assert_eq!(Digits::of_f64(8.0).whole(), Some((8, false)));
    }
}
