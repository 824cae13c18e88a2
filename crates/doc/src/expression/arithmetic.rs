//! Arithmetic: whole numbers stay whole as far as they fit, then they become doubles.

use crate::code::Code;
use crate::decimal;
use crate::decimal_math;
use crate::number::Number;
use crate::raw::{Kind, OwnedValue, Value};
use crate::refusal::{Outcome, Refusal};

use super::function::{Arguments, Function, Made, any_null, argument, kind_of, null};

/// A number that can be computed with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Operand {
    Int(i64),
    Long(i64),
    Double(f64),
    /// Its bytes.
    Decimal([u8; 16]),
}

/// What is done with two numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    Plus,
    Minus,
    Times,
    Over,
}

impl Operation {
    /// Of whole numbers; `None` where it does not fit or is not whole.
    fn exact(self, a: i64, b: i64) -> Option<i64> {
        match self {
            Self::Plus => a.checked_add(b),
            Self::Minus => a.checked_sub(b),
            Self::Times => a.checked_mul(b),
            Self::Over => None,
        }
    }

    fn rough(self, a: f64, b: f64) -> f64 {
        match self {
            Self::Plus => a + b,
            Self::Minus => a - b,
            Self::Times => a * b,
            Self::Over => a / b,
        }
    }

    fn decimal(self, a: Number<'_>, b: Number<'_>) -> Operand {
        let made = match self {
            Self::Plus => decimal_math::sum(a, b),
            Self::Minus => decimal_math::difference(a, b),
            Self::Times => decimal_math::product(a, b),
            Self::Over => decimal_math::quotient(a, b),
        };
        Operand::Decimal(made.bytes.first_chunk().copied().unwrap_or_default())
    }
}

impl Operand {
    /// The number that a value is, of any type.
    pub(super) fn of(value: Value<'_>) -> Option<Self> {
        match (value.kind, Number::of(value)?) {
            (Kind::Int32, Number::Int(number)) => Some(Self::Int(number)),
            (_, Number::Int(number)) => Some(Self::Long(number)),
            (_, Number::Double(number)) => Some(Self::Double(number)),
            (_, Number::Decimal(bytes)) => bytes.first_chunk().copied().map(Self::Decimal),
        }
    }

    /// As [`Operand::of`], for functions that do not reckon with decimals.
    ///
    /// # Errors
    /// `CommandNotSupported` for these.
    pub(super) fn binary(value: Value<'_>) -> Outcome<Option<Self>> {
        match Self::of(value) {
            Some(Self::Decimal(_)) => Err(Refusal::not_supported("arithmetic with decimal128")),
            number => Ok(number),
        }
    }

    fn number(&self) -> Number<'_> {
        match self {
            Self::Int(number) | Self::Long(number) => Number::Int(*number),
            Self::Double(number) => Number::Double(*number),
            Self::Decimal(bytes) => Number::Decimal(bytes),
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "the nearest one is asked for")]
    pub(super) fn double(self) -> f64 {
        match self {
            Self::Int(number) | Self::Long(number) => number as f64,
            Self::Double(number) => number,
            Self::Decimal(bytes) => match decimal::decode(&bytes) {
                decimal::Decimal::NaN => f64::NAN,
                decimal::Decimal::Infinite { is_negative } if is_negative => f64::NEG_INFINITY,
                decimal::Decimal::Infinite { .. } => f64::INFINITY,
                decimal::Decimal::Finite(digits) => digits.nearest_f64(),
            },
        }
    }

    fn whole(self) -> Option<i64> {
        match self {
            Self::Int(number) | Self::Long(number) => Some(number),
            Self::Double(_) | Self::Decimal(_) => None,
        }
    }

    fn is_narrow(self) -> bool {
        matches!(self, Self::Int(_))
    }

    pub(super) fn value(self) -> OwnedValue {
        match self {
            Self::Int(number) => {
                i32::try_from(number).map_or_else(|_| OwnedValue::int64(number), OwnedValue::int32)
            }
            Self::Long(number) => OwnedValue::int64(number),
            Self::Double(number) => OwnedValue::double(number),
            Self::Decimal(bytes) => OwnedValue {
                kind: Kind::Decimal,
                bytes: bytes.to_vec(),
            },
        }
    }

    /// A decimal where either is one; else a whole number of two of them, as long as it fits; else a double.
    pub(super) fn with(self, other: Self, operation: Operation) -> Self {
        if matches!(self, Self::Decimal(_)) || matches!(other, Self::Decimal(_)) {
            return operation.decimal(self.number(), other.number());
        }
        match (self.whole(), other.whole()) {
            (Some(a), Some(b)) => match operation.exact(a, b) {
                Some(made) if self.is_narrow() && other.is_narrow() => match i32::try_from(made) {
                    Ok(_) => Self::Int(made),
                    Err(_) => Self::Long(made),
                },
                Some(made) => Self::Long(made),
                None => Self::Double(operation.rough(self.double(), other.double())),
            },
            _ => Self::Double(operation.rough(self.double(), other.double())),
        }
    }

    pub(super) fn plus(self, other: Self) -> Self {
        self.with(other, Operation::Plus)
    }
}

fn made(operand: Operand) -> Made {
    Ok(Some(operand.value()))
}

/// A date moved by milliseconds.
fn moved(date: i64, by: Operand) -> Made {
    let wrong = || Refusal::new(Code::Overflow, "date overflow");
    let by = match by {
        Operand::Int(number) | Operand::Long(number) => number,
        Operand::Double(_) | Operand::Decimal(_) => {
            let number = by.double();
            #[expect(clippy::cast_possible_truncation, reason = "the bound is looked at")]
            let whole = number.round_ties_even() as i64;
            if !number.is_finite() || number.abs() >= 9.3e18 {
                return Err(wrong());
            }
            whole
        }
    };
    let date = date.checked_add(by).ok_or_else(wrong)?;
    Ok(Some(OwnedValue::date(date)))
}

pub(super) fn add(_: &Function, arguments: Arguments<'_>) -> Made {
    let mut sum = Operand::Int(0);
    let mut date = None;
    let mut is_null = false;
    for at in 0..arguments.len() {
        let Some(value) = argument(arguments, at) else {
            is_null = true;
            continue;
        };
        if value.kind == Kind::Date {
            if date
                .replace(value.fixed_i64().unwrap_or_default())
                .is_some()
            {
                let text = "only one date allowed in an $add expression";
                return Err(Refusal::new(Code::TwoDates, text));
            }
            continue;
        }
        let operand = Operand::of(value).ok_or_else(|| {
            Refusal::type_mismatch(format!(
                "$add only supports numeric or date types, not {}",
                value.kind.name()
            ))
        })?;
        sum = sum.plus(operand);
    }
    match (is_null, date) {
        (true, _) => null(),
        (false, None) => made(sum),
        (false, Some(date)) => moved(date, sum),
    }
}

pub(super) fn subtract(_: &Function, arguments: Arguments<'_>) -> Made {
    let (Some(a), Some(b)) = (argument(arguments, 0), argument(arguments, 1)) else {
        return null();
    };
    let wrong = || {
        Refusal::type_mismatch(format!(
            "can't $subtract {} from {}",
            b.kind.name(),
            a.kind.name()
        ))
    };
    if a.kind == Kind::Date {
        let from = a.fixed_i64().unwrap_or_default();
        if b.kind == Kind::Date {
            let by = from.checked_sub(b.fixed_i64().unwrap_or_default());
            let by = by.ok_or_else(|| Refusal::new(Code::Overflow, "date overflow"))?;
            return made(Operand::Long(by));
        }
        let by = Operand::of(b).ok_or_else(wrong)?;
        return moved(from, Operand::Long(0).with(by, Operation::Minus));
    }
    let (Some(a), Some(b)) = (Operand::of(a), Operand::of(b)) else {
        return Err(wrong());
    };
    made(a.with(b, Operation::Minus))
}

pub(super) fn multiply(_: &Function, arguments: Arguments<'_>) -> Made {
    let mut product = Operand::Int(1);
    let mut is_null = false;
    for at in 0..arguments.len() {
        let Some(value) = argument(arguments, at) else {
            is_null = true;
            continue;
        };
        let operand = Operand::of(value).ok_or_else(|| {
            Refusal::type_mismatch(format!(
                "$multiply only supports numeric types, not {}",
                value.kind.name()
            ))
        })?;
        product = product.with(operand, Operation::Times);
    }
    match is_null {
        true => null(),
        false => made(product),
    }
}

/// Both arguments, of which none is a decimal.
fn two(
    arguments: Arguments<'_>,
    wrong: &dyn Fn() -> Refusal,
) -> Outcome<Option<(Operand, Operand)>> {
    let (Some(a), Some(b)) = (argument(arguments, 0), argument(arguments, 1)) else {
        return Ok(None);
    };
    match (Operand::binary(a)?, Operand::binary(b)?) {
        (Some(a), Some(b)) => Ok(Some((a, b))),
        _ => Err(wrong()),
    }
}

fn kinds(arguments: Arguments<'_>) -> String {
    let kinds: Vec<_> = arguments.iter().map(|value| kind_of(*value)).collect();
    kinds.join(" and ")
}

pub(super) fn divide(_: &Function, arguments: Arguments<'_>) -> Made {
    let wrong = || {
        Refusal::type_mismatch(format!(
            "$divide only supports numeric types, not {}",
            kinds(arguments)
        ))
    };
    let (Some(a), Some(b)) = (argument(arguments, 0), argument(arguments, 1)) else {
        return null();
    };
    let (Some(a), Some(b)) = (Operand::of(a), Operand::of(b)) else {
        return Err(wrong());
    };
    match b.double() == 0.0 {
        true => Err(Refusal::bad_value("can't $divide by zero")),
        false => made(a.with(b, Operation::Over)),
    }
}

pub(super) fn modulus(_: &Function, arguments: Arguments<'_>) -> Made {
    let wrong = || {
        let text = format!("$mod only supports numeric types, not {}", kinds(arguments));
        Refusal::new(Code::ModNumeric, text)
    };
    let Some((a, b)) = two(arguments, &wrong)? else {
        return null();
    };
    if b.double() == 0.0 {
        return Err(Refusal::new(Code::ModZero, "can't $mod by zero"));
    }
    made(match (a.whole(), b.whole()) {
        (Some(x), Some(y)) => match x.wrapping_rem(y) {
            rest if a.is_narrow() && b.is_narrow() => Operand::Int(rest),
            rest => Operand::Long(rest),
        },
        _ => Operand::Double(a.double() % b.double()),
    })
}

pub(super) fn bits(function: &Function, arguments: Arguments<'_>) -> Made {
    let mut is_wide = false;
    let mut all: i64 = if function.name == "$bitAnd" { -1 } else { 0 };
    let mut is_null = false;
    for at in 0..arguments.len() {
        let Some(value) = argument(arguments, at) else {
            is_null = true;
            continue;
        };
        let number = integer(function, value)?;
        is_wide |= value.kind == Kind::Int64;
        all = match function.name {
            "$bitAnd" => all & number,
            "$bitOr" => all | number,
            _ => all ^ number,
        };
    }
    match is_null {
        true => null(),
        false if is_wide => made(Operand::Long(all)),
        false => made(Operand::Int(all)),
    }
}

pub(super) fn bit_not(function: &Function, arguments: Arguments<'_>) -> Made {
    let Some(value) = argument(arguments, 0) else {
        return null();
    };
    let number = !integer(function, value)?;
    made(match value.kind {
        Kind::Int64 => Operand::Long(number),
        _ => Operand::Int(number),
    })
}

fn integer(function: &Function, value: Value<'_>) -> Outcome<i64> {
    let whole = matches!(value.kind, Kind::Int32 | Kind::Int64).then(|| value.fixed_i64());
    whole.flatten().ok_or_else(|| {
        Refusal::type_mismatch(format!(
            "{} only supports int and long operands, not {}.",
            function.name,
            value.kind.name()
        ))
    })
}

/// Functions of one number.
pub(super) fn single(function: &Function, arguments: Arguments<'_>) -> Made {
    let Some(value) = argument(arguments, 0) else {
        return null();
    };
    let name = function.name;
    let wrong = || {
        let text = format!(
            "{name} only supports numeric types, not {}",
            value.kind.name()
        );
        Refusal::new(Code::SingleNumeric, text)
    };
    if let Some(number @ Number::Decimal(_)) = Number::of(value) {
        match name {
            "$abs" => return Ok(Some(decimal_math::magnitude(number))),
            "$ceil" | "$floor" => return Ok(Some(decimal_math::whole(number, name == "$ceil"))),
            _ => {}
        }
    }
    let operand = Operand::binary(value)?.ok_or_else(wrong)?;
    let number = operand.double();
    let domain = |is_in: bool, code: Code, range: &str| match is_in || number.is_nan() {
        true => Ok(()),
        false => Err(Refusal::new(
            code,
            format!("{name}'s argument must be {range}, but is {number}"),
        )),
    };
    match (name, operand.whole()) {
        ("$abs", Some(whole)) => {
            let text = "can't take $abs of long long min";
            let magnitude = whole.checked_abs();
            let magnitude = magnitude.ok_or_else(|| Refusal::new(Code::AbsOverflow, text))?;
            return made(match operand {
                Operand::Int(_) => Operand::Int(magnitude),
                _ => Operand::Long(magnitude),
            });
        }
        ("$ceil" | "$floor", Some(_)) => return made(operand),
        _ => {}
    }
    let result = match name {
        "$abs" => number.abs(),
        "$ceil" => number.ceil(),
        "$floor" => number.floor(),
        "$exp" => number.exp(),
        "$sqrt" => {
            domain(
                number >= 0.0,
                Code::SqrtNegative,
                "greater than or equal to 0",
            )?;
            number.sqrt()
        }
        "$ln" => {
            domain(number > 0.0, Code::LnPositive, "a positive number")?;
            number.ln()
        }
        "$log10" => {
            domain(number > 0.0, Code::Log10Positive, "a positive number")?;
            number.log10()
        }
        "$acos" | "$asin" => {
            domain(number.abs() <= 1.0, Code::TrigDomain, "in [-1,1]")?;
            if name == "$acos" {
                number.acos()
            } else {
                number.asin()
            }
        }
        "$atanh" => {
            domain(number.abs() <= 1.0, Code::TrigDomain, "in [-1,1]")?;
            number.atanh()
        }
        "$acosh" => {
            domain(number >= 1.0, Code::TrigDomain, "in [1,inf]")?;
            number.acosh()
        }
        "$sin" | "$cos" | "$tan" => {
            domain(number.is_finite(), Code::TrigDomain, "in (-inf,inf)")?;
            match name {
                "$sin" => number.sin(),
                "$cos" => number.cos(),
                _ => number.tan(),
            }
        }
        "$asinh" => number.asinh(),
        "$atan" => number.atan(),
        "$sinh" => number.sinh(),
        "$cosh" => number.cosh(),
        "$tanh" => number.tanh(),
        "$degreesToRadians" => number.to_radians(),
        _ => number.to_degrees(),
    };
    made(Operand::Double(result))
}

pub(super) fn atan2(_: &Function, arguments: Arguments<'_>) -> Made {
    let wrong = || {
        let text = format!(
            "$atan2 only supports numeric types, not {}",
            kinds(arguments)
        );
        Refusal::new(Code::Atan2Numeric, text)
    };
    match two(arguments, &wrong)? {
        Some((a, b)) => made(Operand::Double(a.double().atan2(b.double()))),
        None => null(),
    }
}

pub(super) fn log(_: &Function, arguments: Arguments<'_>) -> Made {
    let (Some(value), Some(base)) = (argument(arguments, 0), argument(arguments, 1)) else {
        return null();
    };
    let wrong = |code, what: &str, kind: &str| {
        let text = format!("$log's {what} must be numeric, not {kind}");
        Refusal::new(code, text)
    };
    let number = Operand::binary(value)?
        .ok_or_else(|| wrong(Code::LogNumeric, "argument", value.kind.name()))?
        .double();
    let base = Operand::binary(base)?
        .ok_or_else(|| wrong(Code::LogBaseNumeric, "base", base.kind.name()))?
        .double();
    if number <= 0.0 {
        let text = format!("$log's argument must be a positive number, but is {number}");
        return Err(Refusal::new(Code::LogPositive, text));
    }
    if base <= 0.0 || base == 1.0 {
        let text = format!("$log's base must be a positive number not equal to 1, but is {base}");
        return Err(Refusal::new(Code::LogBasePositive, text));
    }
    made(Operand::Double(number.ln() / base.ln()))
}

pub(super) fn power(_: &Function, arguments: Arguments<'_>) -> Made {
    let (Some(base), Some(exponent)) = (argument(arguments, 0), argument(arguments, 1)) else {
        return null();
    };
    let wrong = |code, what: &str, kind: &str| {
        let text = format!("$pow's {what} must be numeric, not {kind}");
        Refusal::new(code, text)
    };
    let of = Operand::binary(base)?;
    let of = of.ok_or_else(|| wrong(Code::PowBase, "base", base.kind.name()))?;
    let to = Operand::binary(exponent)?;
    let to = to.ok_or_else(|| wrong(Code::PowExponent, "exponent", exponent.kind.name()))?;
    if of.double() == 0.0 && to.double() < 0.0 {
        let text = "$pow cannot take a base of 0 and a negative exponent";
        return Err(Refusal::new(Code::PowZero, text));
    }
    if let (Some(base), Some(exponent)) = (of.whole(), to.whole()) {
        let exact = match base {
            1 => Some(1),
            -1 => Some(if exponent % 2 == 0 { 1 } else { -1 }),
            _ => u32::try_from(exponent)
                .ok()
                .and_then(|exponent| base.checked_pow(exponent)),
        };
        if let Some(exact) = exact {
            return made(match of.is_narrow() && to.is_narrow() {
                true => Operand::Int(exact),
                false => Operand::Long(exact),
            });
        }
    }
    made(Operand::Double(of.double().powf(to.double())))
}

/// `$round`, to even at a half, and `$trunc`, with places behind or before the point.
pub(super) fn round(function: &Function, arguments: Arguments<'_>) -> Made {
    if any_null(arguments) {
        return null();
    }
    let name = function.name;
    let Some(value) = argument(arguments, 0) else {
        return null();
    };
    let wrong = || {
        let text = format!(
            "{name} only supports numeric types, not {}",
            value.kind.name()
        );
        Refusal::new(Code::RoundNumeric, text)
    };
    let operand = Operand::binary(value)?.ok_or_else(wrong)?;
    let places = match argument(arguments, 1) {
        None => 0,
        Some(places) => {
            let whole = places.as_whole().ok_or_else(|| {
                let text = format!("precision argument to {name} must be a integral value");
                Refusal::new(Code::RoundPlaces, text)
            })?;
            if !(-20..=100).contains(&whole) {
                let text = format!(
                    "cannot apply {name} with precision value {whole} value must be in [-20, 100]"
                );
                return Err(Refusal::new(Code::RoundRange, text));
            }
            whole
        }
    };
    let rounds = name == "$round";
    match operand.whole() {
        Some(_) if places >= 0 => made(operand),
        Some(whole) => {
            let unit = 10i128.pow(u32::try_from(-places).unwrap_or(0));
            let whole = i128::from(whole);
            let (cut, rest) = (whole / unit, (whole % unit).abs());
            let is_up = rest * 2 > unit || (rest * 2 == unit && cut % 2 != 0);
            let cut = if rounds && is_up {
                cut + whole.signum()
            } else {
                cut
            };
            let result = i64::try_from(cut * unit).map_err(|_| {
                Refusal::new(
                    Code::RoundOverflow,
                    format!("invalid conversion from {name} result to long"),
                )
            })?;
            made(match operand {
                Operand::Int(_) => Operand::Int(result),
                _ => Operand::Long(result),
            })
        }
        None => made(Operand::Double(round_double(
            operand.double(),
            places,
            rounds,
        ))),
    }
}

fn round_double(number: f64, places: i64, rounds: bool) -> f64 {
    if !number.is_finite() {
        return number;
    }
    let Ok(places) = usize::try_from(places) else {
        let unit = 10f64.powi(i32::try_from(-places).unwrap_or(0));
        let cut = number / unit;
        return if rounds {
            cut.round_ties_even()
        } else {
            cut.trunc()
        } * unit;
    };
    // The digits are exact, and are rounded to even at a half.
    let text = match rounds {
        true => format!("{number:.places$}"),
        false => {
            let all = format!("{number:.1074}");
            let end = all.find('.').map_or(all.len(), |point| point + 1 + places);
            all.get(..end).unwrap_or(&all).to_owned()
        }
    };
    text.trim_end_matches('.').parse().unwrap_or(number)
}
