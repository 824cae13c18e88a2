//! Numbers of all four types: their order by exact value, and the whole ones that they are taken for.

use std::cmp::Ordering;

use crate::decimal::{Decimal, Digits, decode};
use crate::raw::{Kind, Value};

/// A number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number<'a> {
    /// An int32 or an int64.
    Int(i64),
    /// A double.
    Double(f64),
    /// A decimal, in its bytes.
    Decimal(&'a [u8]),
}

impl<'a> Number<'a> {
    /// The number that `value` is.
    pub fn of(value: Value<'a>) -> Option<Self> {
        match value.kind {
            Kind::Int32 | Kind::Int64 => value.fixed_i64().map(Self::Int),
            Kind::Double => value.double().map(Self::Double),
            Kind::Decimal => Some(Self::Decimal(value.bytes)),
            _ => None,
        }
    }

    /// Whether it is no number, which is below all others and equal to itself.
    pub fn is_nan(self) -> bool {
        match self {
            Self::Int(_) => false,
            Self::Double(number) => number.is_nan(),
            Self::Decimal(bytes) => decode(bytes) == Decimal::NaN,
        }
    }

    /// The order by value.
    pub fn compare(self, other: Number<'_>) -> Ordering {
        match (self, other) {
            (Self::Int(a), Number::Int(b)) => a.cmp(&b),
            (Self::Int(a), Number::Double(b)) => int_to_double(a, b),
            (Self::Double(a), Number::Int(b)) => int_to_double(b, a).reverse(),
            (Self::Double(a), Number::Double(b)) => {
                let by_nan = b.is_nan().cmp(&a.is_nan());
                by_nan.then_with(|| a.partial_cmp(&b).unwrap_or(Ordering::Equal))
            }
            _ => compare_decimals(&self.decimal(), &other.decimal()),
        }
    }

    /// It by its digits.
    pub(crate) fn decimal(self) -> Decimal {
        match self {
            Self::Int(number) => Decimal::Finite(Digits::of_i64(number)),
            Self::Double(number) if number.is_nan() => Decimal::NaN,
            Self::Double(number) if number.is_infinite() => Decimal::Infinite {
                is_negative: number < 0.0,
            },
            Self::Double(number) => Decimal::Finite(Digits::of_f64(number)),
            Self::Decimal(bytes) => decode(bytes),
        }
    }

    /// The nearest double; `None` of a decimal.
    pub fn as_f64(self) -> Option<f64> {
        match self {
            #[expect(clippy::cast_precision_loss, reason = "the nearest one is asked for")]
            Self::Int(number) => Some(number as f64),
            Self::Double(number) => Some(number),
            Self::Decimal(_) => None,
        }
    }
}

fn compare_decimals(a: &Decimal, b: &Decimal) -> Ordering {
    let rank = |it: &Decimal| match it {
        Decimal::NaN => 0,
        Decimal::Infinite { is_negative: true } => 1,
        Decimal::Finite(_) => 2,
        Decimal::Infinite { is_negative: false } => 3,
    };
    match (a, b) {
        (Decimal::Finite(a), Decimal::Finite(b)) => a.compare(b),
        _ => rank(a).cmp(&rank(b)),
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "the bounds are looked at before"
)]
fn int_to_double(int: i64, double: f64) -> Ordering {
    const BOUND: f64 = 9_223_372_036_854_775_808.0;
    if double.is_nan() || double < -BOUND {
        return Ordering::Greater;
    }
    if double >= BOUND {
        return Ordering::Less;
    }
    let whole = double.trunc() as i64;
    let fraction = double - double.trunc();
    int.cmp(&whole)
        .then_with(|| 0.0f64.partial_cmp(&fraction).unwrap_or(Ordering::Equal))
}

/// The int64 that MongoDB takes a number for where it wants a whole one: a double without its fraction, a decimal as its neighbour, of
/// two the even one; the nearest one of what is beyond, and 0 of no number.
pub fn coerced(value: Value<'_>) -> Option<i64> {
    let number = Number::of(value)?;
    #[expect(clippy::cast_possible_truncation, reason = "it is cut and bounded")]
    match number {
        Number::Int(whole) => return Some(whole),
        Number::Double(double) => return Some(double as i64),
        Number::Decimal(_) => {}
    }
    Some(match number.decimal() {
        Decimal::NaN => 0,
        Decimal::Infinite { is_negative } => bound(is_negative),
        Decimal::Finite(digits) => {
            let half = Digits::of_f64(0.5);
            let Some((whole, _)) = digits.whole() else {
                return Some(bound(digits.is_negative));
            };
            let up = match digits.fraction().cmp_magnitude(&half) {
                Ordering::Less => 0,
                Ordering::Equal => whole & 1,
                Ordering::Greater => 1,
            };
            let whole = i64::try_from(whole + up).unwrap_or(i64::MAX);
            if digits.is_negative { -whole } else { whole }
        }
    })
}

/// The nearest double to a number.
pub fn to_f64(value: Value<'_>) -> Option<f64> {
    let number = Number::of(value)?;
    number.as_f64().or_else(|| {
        let infinity = |is_negative| match is_negative {
            true => f64::NEG_INFINITY,
            false => f64::INFINITY,
        };
        Some(match number.decimal() {
            Decimal::NaN => f64::NAN,
            Decimal::Infinite { is_negative } => infinity(is_negative),
            Decimal::Finite(digits) => digits.nearest_f64(),
        })
    })
}

fn bound(is_negative: bool) -> i64 {
    if is_negative { i64::MIN } else { i64::MAX }
}

/// A number without its fraction.
pub(crate) fn truncated(value: Value<'_>) -> Option<i64> {
    let number = Number::of(value)?;
    if let Number::Int(int) = number {
        return Some(int);
    }
    match number.decimal() {
        Decimal::Finite(digits) => {
            let whole = i64::try_from(digits.whole()?.0).ok()?;
            Some(if digits.is_negative { -whole } else { whole })
        }
        _ => None,
    }
}
