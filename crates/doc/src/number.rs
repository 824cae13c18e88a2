//! Numbers of all four types: their order by exact value, sums and products as updates make them.

use std::cmp::Ordering;

use crate::code::Code;
use crate::decimal::{Decimal, Digits, decode};
use crate::decimal_math;
use crate::raw::{Kind, OwnedValue, Value};
use crate::refusal::{Outcome, Refusal};

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

/// How two numbers become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arithmetic {
    Add,
    Multiply,
}

impl Arithmetic {
    /// The sum or product: a decimal or a double if either is one; an int32 of two int32s where it fits, else an int64.
    ///
    /// # Errors
    /// `BadValue` beyond an int64; `TypeMismatch` for what is no number.
    pub(crate) fn of(self, a: Value<'_>, b: Value<'_>) -> Outcome<OwnedValue> {
        let (Some(left), Some(right)) = (Number::of(a), Number::of(b)) else {
            return Err(Refusal::type_mismatch("a number was expected"));
        };
        match (left, right) {
            (Number::Decimal(_), _) | (_, Number::Decimal(_)) => Ok(match self {
                Self::Add => decimal_math::sum(left, right),
                Self::Multiply => decimal_math::product(left, right),
            }),
            (Number::Int(x), Number::Int(y)) => {
                let result = match self {
                    Self::Add => x.checked_add(y),
                    Self::Multiply => x.checked_mul(y),
                };
                let result = result.ok_or_else(|| {
                    Refusal::new(
                        Code::BadValue,
                        format!("the result of {x} and {y} does not fit into a 64-bit integer"),
                    )
                })?;
                let is_narrow = a.kind == Kind::Int32 && b.kind == Kind::Int32;
                let narrow = i32::try_from(result).ok().filter(|_| is_narrow);
                Ok(narrow.map_or_else(|| OwnedValue::int64(result), OwnedValue::int32))
            }
            _ => {
                let (x, y) = (
                    left.as_f64().unwrap_or_default(),
                    right.as_f64().unwrap_or_default(),
                );
                Ok(OwnedValue::double(match self {
                    Self::Add => x + y,
                    Self::Multiply => x * y,
                }))
            }
        }
    }
}

/// The sum of two numbers, as [`crate::Update`]'s `$inc` makes it.
///
/// # Errors
/// `BadValue`, `TypeMismatch`.
pub fn add(a: Value<'_>, b: Value<'_>) -> Outcome<OwnedValue> {
    Arithmetic::Add.of(a, b)
}

/// The int64 that MongoDB takes a number for where it wants a whole one: a double without its fraction, a decimal as its neighbour, of
/// two the even one; the nearest one of what is beyond, and 0 of no number.
pub fn coerced(value: Value<'_>) -> Option<i64> {
    let number = Number::of(value)?;
    #[expect(clippy::cast_possible_truncation, reason = "it is cut and bounded")]
    if let Number::Double(double) = number {
        return Some(double as i64);
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

/// A number that has no fraction and is an int64.
pub(crate) fn whole(value: Value<'_>) -> Option<i64> {
    match Number::of(value)?.decimal() {
        Decimal::Finite(digits) => {
            let (whole, has_more) = digits.whole()?;
            let whole = i64::try_from(whole).ok().filter(|_| !has_more)?;
            Some(if digits.is_negative { -whole } else { whole })
        }
        _ => None,
    }
}
