//! Sums and products of numbers of all four types, as updates make them.

use crate::code::Code;
use crate::decimal_math;
use crate::number::Number;
use crate::raw::{Kind, OwnedValue, Value};
use crate::refusal::{Outcome, Refusal};

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

/// The mean of `count` numbers with this sum: a decimal of a decimal, else a double.
pub fn mean(sum: Value<'_>, count: u64) -> OwnedValue {
    #[expect(clippy::cast_precision_loss, reason = "a mean is a double")]
    let of = count as f64;
    match Number::of(sum) {
        Some(sum @ Number::Decimal(_)) => {
            let count = i64::try_from(count).unwrap_or(i64::MAX);
            decimal_math::quotient(sum, Number::Int(count))
        }
        sum => OwnedValue::double(sum.and_then(Number::as_f64).unwrap_or_default() / of),
    }
}
