//! Sums, products, quotients and whole parts of decimals, rounded to 34 digits, to the even one of two neighbours, as IEEE 754 has them. Zeros at the end of
//! a number are kept: 1.50 and 2 make 3.50.

use std::cmp::Ordering;

use crate::number::Number;
use crate::raw::{Kind, OwnedValue, Value};

const DIGITS_MAX: usize = 34;
const EXPONENT_MIN: i32 = -6176;
const EXPONENT_MAX: i32 = 6111;
/// Digits behind which a number does not change another one but for its rounding.
const REACH: i32 = 72;
/// Digits that a double counts for.
const DOUBLE_DIGITS: usize = 15;

/// A decimal: its digits, the first ones first, as a whole number times a power of ten.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Exact {
    is_negative: bool,
    digits: Vec<u8>,
    exponent: i32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Decimal {
    NaN,
    Infinite { is_negative: bool },
    Finite(Exact),
}

/// The sum, as a decimal.
pub(crate) fn sum(a: Number<'_>, b: Number<'_>) -> OwnedValue {
    encode(Decimal::of(a).plus(Decimal::of(b)))
}

/// The difference, as a decimal.
pub(crate) fn difference(a: Number<'_>, b: Number<'_>) -> OwnedValue {
    encode(Decimal::of(a).plus(Decimal::of(b).negated()))
}

/// The quotient, as a decimal: with the exponent of `a` less that of `b` where it is exact and has room. Of a number and zero it is none.
pub(crate) fn quotient(a: Number<'_>, b: Number<'_>) -> OwnedValue {
    let (a, b) = (Decimal::of(a), Decimal::of(b));
    let is_negative = a.is_negative() != b.is_negative();
    encode(match (a, b) {
        (Decimal::Finite(a), Decimal::Finite(b)) if !b.is_zero() => Exact {
            is_negative,
            ..divided(&a, &b)
        }
        .rounded(),
        (Decimal::Finite(_), Decimal::Infinite { .. }) => Decimal::Finite(Exact {
            is_negative,
            digits: Vec::new(),
            exponent: EXPONENT_MIN,
        }),
        (Decimal::Infinite { .. }, Decimal::Finite(_)) => Decimal::Infinite { is_negative },
        _ => Decimal::NaN,
    })
}

/// The product, as a decimal.
pub(crate) fn product(a: Number<'_>, b: Number<'_>) -> OwnedValue {
    let (a, b) = (Decimal::of(a), Decimal::of(b));
    let is_negative = a.is_negative() != b.is_negative();
    encode(match (a, b) {
        (Decimal::NaN, _) | (_, Decimal::NaN) => Decimal::NaN,
        (Decimal::Finite(a), Decimal::Finite(b)) => Exact {
            is_negative,
            digits: multiplied(&a.digits, &b.digits),
            exponent: a.exponent + b.exponent,
        }
        .rounded(),
        (Decimal::Finite(a), _) | (_, Decimal::Finite(a)) if a.is_zero() => Decimal::NaN,
        _ => Decimal::Infinite { is_negative },
    })
}

/// Whether a number is so many times another one, a whole number of times.
pub(crate) fn is_multiple(value: Value<'_>, of: Value<'_>) -> bool {
    let exact = |value| match Number::of(value).map(Decimal::of) {
        Some(Decimal::Finite(it)) => Some(it),
        _ => None,
    };
    let (Some(mut value), Some(mut of)) = (exact(value), exact(of)) else {
        return false;
    };
    of.shorten();
    value.shorten();
    if value.is_zero() {
        return true;
    }
    // A shortened number is no multiple of one that ends further to the left.
    let Ok(zeros) = usize::try_from(value.exponent - of.exponent) else {
        return false;
    };
    let divisor = of.coefficient();
    let zeros = std::iter::repeat_n(&0, zeros);
    let rest = value.digits.iter().chain(zeros).fold(0, |rest, digit| {
        (rest * 10 + u128::from(*digit)) % divisor.max(1)
    });
    rest == 0
}

/// The number without its sign.
pub(crate) fn magnitude(of: Number<'_>) -> OwnedValue {
    encode(match Decimal::of(of) {
        Decimal::NaN => Decimal::NaN,
        Decimal::Infinite { .. } => Decimal::Infinite { is_negative: false },
        Decimal::Finite(it) => Decimal::Finite(Exact {
            is_negative: false,
            ..it
        }),
    })
}

/// The next whole number that is not above, or, `up`, not below; with the exponent 0 where its digits have room.
pub(crate) fn whole(of: Number<'_>, up: bool) -> OwnedValue {
    let mut exact = match Decimal::of(of) {
        Decimal::Finite(exact) => exact,
        other => return encode(other),
    };
    let zeros = usize::try_from(exact.exponent).unwrap_or(0);
    if exact.exponent >= 0 {
        if exact.digits.len() + zeros <= DIGITS_MAX || exact.is_zero() {
            exact.lengthen(0);
        }
        return encode(Decimal::Finite(exact));
    }
    let places = usize::try_from(exact.exponent.unsigned_abs()).unwrap_or(usize::MAX);
    let kept = exact.digits.len().saturating_sub(places);
    let has_more = exact.digits.iter().skip(kept).any(|digit| *digit > 0);
    exact.digits.truncate(kept);
    if has_more && exact.is_negative != up {
        exact.digits = added(&exact.digits, &[1]);
    }
    exact.exponent = 0;
    encode(Decimal::Finite(exact))
}

impl Decimal {
    fn of(number: Number<'_>) -> Self {
        match number {
            Number::Int(int) => Self::Finite(Exact {
                is_negative: int < 0,
                digits: digits_of(u128::from(int.unsigned_abs())),
                exponent: 0,
            }),
            Number::Double(double) if double.is_nan() => Self::NaN,
            Number::Double(double) if double.is_infinite() => Self::Infinite {
                is_negative: double < 0.0,
            },
            Number::Double(double) => Self::Finite(of_double(double)),
            Number::Decimal(bytes) => decode(bytes),
        }
    }

    fn plus(self, other: Self) -> Self {
        match (self, other) {
            (Self::Finite(a), Self::Finite(b)) => a.plus(b).rounded(),
            (Self::Infinite { is_negative: a }, Self::Infinite { is_negative: b }) if a != b => {
                Self::NaN
            }
            (Self::NaN, _) | (_, Self::NaN) => Self::NaN,
            (it @ Self::Infinite { .. }, _) | (_, it) => it,
        }
    }

    fn negated(mut self) -> Self {
        match &mut self {
            Self::NaN => {}
            Self::Infinite { is_negative } | Self::Finite(Exact { is_negative, .. }) => {
                *is_negative = !*is_negative;
            }
        }
        self
    }

    fn is_negative(&self) -> bool {
        match self {
            Self::NaN => false,
            Self::Infinite { is_negative } => *is_negative,
            Self::Finite(it) => it.is_negative,
        }
    }
}

/// The digits of a number, none at all for zero.
fn digits_of(number: u128) -> Vec<u8> {
    match number {
        0 => Vec::new(),
        _ => number.to_string().bytes().map(|it| it - b'0').collect(),
    }
}

fn of_double(double: f64) -> Exact {
    let text = format!("{:.*e}", DOUBLE_DIGITS - 1, double.abs());
    let (digits, power) = text.split_once('e').unwrap_or((&text, "0"));
    let digits = digits.bytes().filter(u8::is_ascii_digit);
    let power: i32 = power.parse().unwrap_or(0);
    let behind = i32::try_from(DOUBLE_DIGITS).unwrap_or(0) - 1;
    match double == 0.0 {
        true => Exact {
            is_negative: double.is_sign_negative(),
            digits: Vec::new(),
            exponent: 0,
        },
        false => Exact {
            is_negative: double < 0.0,
            digits: digits.map(|it| it - b'0').collect(),
            exponent: power - behind,
        },
    }
}

/// The 16 bytes, in the binary encoding of the coefficient.
fn decode(bytes: &[u8]) -> Decimal {
    let Some(bytes) = bytes.first_chunk::<16>() else {
        return Decimal::NaN;
    };
    let bits = u128::from_le_bytes(*bytes);
    let is_negative = bits >> 127 == 1;
    match (bits >> 122) & 0x1F {
        0x1F => return Decimal::NaN,
        0x1E => return Decimal::Infinite { is_negative },
        _ => {}
    }
    // The form with implied leading bits has coefficients that are too large, which count as 0.
    let (biased, coefficient) = match (bits >> 125) & 3 {
        3 => ((bits >> 111) & 0x3FFF, 0),
        _ => ((bits >> 113) & 0x3FFF, bits & ((1 << 113) - 1)),
    };
    let is_whole = coefficient < 10u128.pow(34);
    Decimal::Finite(Exact {
        is_negative,
        digits: digits_of(if is_whole { coefficient } else { 0 }),
        exponent: i32::try_from(biased).unwrap_or(0) + EXPONENT_MIN,
    })
}

fn encode(decimal: Decimal) -> OwnedValue {
    let bits = match &decimal {
        Decimal::NaN => 0x1F << 122,
        Decimal::Infinite { .. } => 0x1E << 122,
        Decimal::Finite(it) => {
            let biased = u128::try_from(it.exponent - EXPONENT_MIN).unwrap_or(0);
            (biased << 113) | it.coefficient()
        }
    };
    let sign = u128::from(decimal.is_negative()) << 127;
    OwnedValue {
        kind: Kind::Decimal,
        bytes: (sign | bits).to_le_bytes().to_vec(),
    }
}

impl Exact {
    fn is_zero(&self) -> bool {
        self.digits.is_empty()
    }

    /// Requires: no more digits than a decimal has.
    fn coefficient(&self) -> u128 {
        let digits = self.digits.iter();
        digits.fold(0, |sum, digit| sum * 10 + u128::from(*digit))
    }

    /// Takes off zeros at the end.
    fn shorten(&mut self) {
        while self.digits.last() == Some(&0) {
            self.digits.pop();
            self.exponent += 1;
        }
    }

    /// With zeros up to a smaller exponent.
    fn lengthen(&mut self, exponent: i32) {
        let zeros = usize::try_from(self.exponent - exponent).unwrap_or(0);
        if !self.is_zero() {
            self.digits.extend(std::iter::repeat_n(0, zeros));
        }
        self.exponent = exponent;
    }

    fn plus(self, other: Self) -> Self {
        let (mut high, mut low) = match self.exponent >= other.exponent {
            true => (self, other),
            false => (other, self),
        };
        if high.exponent - low.exponent > REACH && !high.is_zero() {
            // What lies further down only says to which side a half goes.
            if !low.is_zero() {
                low.digits = vec![1];
            }
            low.exponent = high.exponent - REACH;
        }
        high.lengthen(low.exponent);
        let exponent = low.exponent;
        if high.is_negative == low.is_negative {
            return Self {
                is_negative: high.is_negative,
                digits: added(&high.digits, &low.digits),
                exponent,
            };
        }
        let (large, small) = match order(&high.digits, &low.digits) {
            Ordering::Less => (low, high),
            _ => (high, low),
        };
        let digits = subtracted(&large.digits, &small.digits);
        Self {
            is_negative: large.is_negative && !digits.is_empty(),
            digits,
            exponent,
        }
    }

    /// It with no more digits than a decimal has, and an exponent that there is.
    fn rounded(mut self) -> Decimal {
        let is_negative = self.is_negative;
        let too_long = self.digits.len().saturating_sub(DIGITS_MAX);
        let too_low = usize::try_from(EXPONENT_MIN - self.exponent).unwrap_or(0);
        let dropped = too_long.max(too_low);
        if dropped > 0 {
            self.drop_digits(dropped);
        }
        if self.digits.len() > DIGITS_MAX {
            // It was rounded up to a power of ten.
            self.drop_digits(1);
        }
        if self.is_zero() {
            self.exponent = self.exponent.min(EXPONENT_MAX);
        }
        while self.exponent > EXPONENT_MAX && self.digits.len() < DIGITS_MAX {
            self.lengthen(self.exponent - 1);
        }
        match self.exponent > EXPONENT_MAX {
            true => Decimal::Infinite { is_negative },
            false => Decimal::Finite(self),
        }
    }

    fn drop_digits(&mut self, count: usize) {
        let kept = self.digits.len().saturating_sub(count);
        // More digits may go than there are: those in front of them are zeros.
        let first = (count <= self.digits.len()).then(|| self.digits.get(kept));
        let first = first.flatten().copied().unwrap_or(0);
        let has_more = self.digits.iter().skip(kept + 1).any(|it| *it > 0);
        self.digits.truncate(kept);
        let is_odd = self.digits.last().is_some_and(|it| it % 2 == 1);
        if first > 5 || (first == 5 && (has_more || is_odd)) {
            self.digits = added(&self.digits, &[1]);
        }
        self.exponent = self
            .exponent
            .saturating_add(i32::try_from(count).unwrap_or(i32::MAX));
    }
}

/// Long division, a digit at a time, until nothing is left or there are more digits than a decimal has; then a last digit stands for the
/// rest. Requires: `b` is not zero, and both have no more digits than a decimal.
fn divided(a: &Exact, b: &Exact) -> Exact {
    let divisor = b.coefficient();
    let mut exponent = a.exponent - b.exponent;
    let mut digits = Vec::with_capacity(2 * DIGITS_MAX);
    let mut rest = 0;
    let mut more = a.digits.iter();
    loop {
        let next = more.next();
        if next.is_none() {
            if rest == 0 || digits.len() > DIGITS_MAX {
                break;
            }
            exponent -= 1;
        }
        rest = rest * 10 + next.map_or(0, |digit| u128::from(*digit));
        let digit = u8::try_from(rest / divisor).unwrap_or(9);
        rest %= divisor;
        if digit > 0 || !digits.is_empty() {
            digits.push(digit);
        }
    }
    if rest > 0 {
        digits.push(1);
        exponent -= 1;
    }
    Exact {
        is_negative: false,
        digits,
        exponent,
    }
}

/// Without zeros in front.
fn trimmed(digits: Vec<u8>) -> Vec<u8> {
    let zeros = digits.iter().take_while(|it| **it == 0).count();
    digits.into_iter().skip(zeros).collect()
}

/// Requires: no zeros in front.
fn order(a: &[u8], b: &[u8]) -> Ordering {
    a.len().cmp(&b.len()).then_with(|| a.cmp(b))
}

fn added(a: &[u8], b: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(a.len().max(b.len()) + 1);
    let (mut a, mut b) = (a.iter().rev(), b.iter().rev());
    let mut carry = 0;
    loop {
        let (x, y) = (a.next(), b.next());
        if x.is_none() && y.is_none() && carry == 0 {
            break;
        }
        let digit = x.unwrap_or(&0) + y.unwrap_or(&0) + carry;
        out.push(digit % 10);
        carry = digit / 10;
    }
    out.reverse();
    trimmed(out)
}

/// Requires: `a` is not below `b`.
fn subtracted(a: &[u8], b: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(a.len());
    let mut b = b.iter().rev();
    let mut borrow = 0;
    for digit in a.iter().rev() {
        let taken = b.next().unwrap_or(&0) + borrow;
        borrow = u8::from(*digit < taken);
        out.push(digit + 10 * borrow - taken);
    }
    out.reverse();
    trimmed(out)
}

fn multiplied(a: &[u8], b: &[u8]) -> Vec<u8> {
    let mut sums = vec![0u32; a.len() + b.len()];
    for (i, x) in a.iter().rev().enumerate() {
        for (j, y) in b.iter().rev().enumerate() {
            if let Some(sum) = sums.get_mut(i + j) {
                *sum += u32::from(*x) * u32::from(*y);
            }
        }
    }
    let mut carry = 0;
    let mut out = Vec::with_capacity(sums.len());
    for sum in sums {
        let all = sum + carry;
        out.push(u8::try_from(all % 10).unwrap_or(0));
        carry = all / 10;
    }
    out.reverse();
    trimmed(out)
}
