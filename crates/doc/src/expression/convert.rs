//! Types, and values of one as values of another.

use crate::code::Code;
use crate::number::Number;
use crate::raw::{Kind, OwnedValue, Value};
use crate::refusal::{Outcome, Refusal};

use super::date_text::{ISO, read_iso, write};
use super::function::{Arguments, Function, Made, argument, flag, kind_of, null, truth};

pub(super) fn type_of(_: &Function, arguments: Arguments<'_>) -> Made {
    Ok(Some(OwnedValue::string(kind_of(
        arguments.first().copied().flatten(),
    ))))
}

pub(super) fn is_number(_: &Function, arguments: Arguments<'_>) -> Made {
    flag(argument(arguments, 0).is_some_and(|value| value.kind.is_number()))
}

/// `$toInt` and its like.
pub(super) fn to(function: &Function, arguments: Arguments<'_>) -> Made {
    let kind = match function.name {
        "$toBool" => Kind::Bool,
        "$toDate" => Kind::Date,
        "$toDouble" => Kind::Double,
        "$toInt" => Kind::Int32,
        "$toLong" => Kind::Int64,
        "$toObjectId" => Kind::ObjectId,
        _ => Kind::String,
    };
    match argument(arguments, 0) {
        Some(value) => converted(value, kind).map(Some),
        None => null(),
    }
}

/// `$convert` to a type by its name or number.
pub(super) fn convert(input: Option<Value<'_>>, to: Option<Value<'_>>) -> Made {
    let Some(to) = to.filter(|to| !to.is_null()) else {
        return null();
    };
    let by_name = |name: &str| {
        let mut names = Kind::NAMES.iter();
        names
            .find(|(_, known)| *known == name)
            .map(|(kind, _)| *kind)
    };
    let by_number = |number| u8::try_from(number).ok().and_then(Kind::of);
    let kind = to
        .as_str()
        .map_or_else(|| to.as_whole().and_then(by_number), by_name);
    let kind =
        kind.ok_or_else(|| Refusal::bad_value(format!("Unknown type name: {}", crate::show(to))))?;
    match input {
        Some(input) => converted(input, kind).map(Some),
        None => null(),
    }
}

fn failure(text: String) -> Refusal {
    Refusal::new(
        Code::ConversionFailure,
        format!("{text} in $convert with no onError value"),
    )
}

/// `value`, which is not null, as a `kind`.
fn converted(value: Value<'_>, kind: Kind) -> Outcome<OwnedValue> {
    let unsupported = || {
        failure(format!(
            "Unsupported conversion from {} to {}",
            value.kind.name(),
            kind.name()
        ))
    };
    if kind == Kind::Decimal || value.kind == Kind::Decimal && kind.is_number() {
        return Err(Refusal::not_supported("conversion of decimal128"));
    }
    if value.kind == kind {
        return Ok(value.to_owned());
    }
    match kind {
        Kind::Bool => Ok(OwnedValue::bool(truth(value))),
        Kind::String => text_of(value)
            .map(|text| OwnedValue::string(&text))
            .ok_or_else(unsupported),
        Kind::ObjectId => object_id(value).ok_or_else(unsupported)?,
        Kind::Date => date(value).unwrap_or_else(|| Err(unsupported())),
        Kind::Double => match (Number::of(value), value.kind) {
            (Some(number), _) => number
                .as_f64()
                .map(OwnedValue::double)
                .ok_or_else(unsupported),
            (_, Kind::Bool) => Ok(OwnedValue::double(f64::from(u8::from(
                value.as_bool() == Some(true),
            )))),
            #[expect(clippy::cast_precision_loss, reason = "the nearest one is asked for")]
            (_, Kind::Date) => Ok(OwnedValue::double(
                value.fixed_i64().unwrap_or_default() as f64
            )),
            (_, Kind::String) => {
                parsed_double(value.as_str().unwrap_or_default()).map(OwnedValue::double)
            }
            _ => Err(unsupported()),
        },
        Kind::Int32 | Kind::Int64 => {
            if kind == Kind::Int32 && value.kind == Kind::Date {
                return Err(unsupported());
            }
            let whole = integer(value)?.ok_or_else(unsupported)?;
            match kind {
                Kind::Int64 => Ok(OwnedValue::int64(whole)),
                _ => i32::try_from(whole).map(OwnedValue::int32).map_err(|_| {
                    failure(format!(
                        "Conversion would overflow target type: {}",
                        crate::show(value)
                    ))
                }),
            }
        }
        _ => Err(unsupported()),
    }
}

/// A number without its fraction.
fn integer(value: Value<'_>) -> Outcome<Option<i64>> {
    Ok(match value.kind {
        Kind::Int32 | Kind::Int64 | Kind::Date => value.fixed_i64(),
        Kind::Bool => value.as_bool().map(i64::from),
        Kind::Double => {
            let number = value.double().unwrap_or_default();
            if !number.is_finite() {
                return Err(failure(format!(
                    "Attempt to convert {number} to an integer"
                )));
            }
            if !(-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&number) {
                return Err(failure(format!(
                    "Conversion would overflow target type: {number}"
                )));
            }
            #[expect(clippy::cast_possible_truncation, reason = "it fits, as was looked at")]
            let whole = number.trunc() as i64;
            Some(whole)
        }
        Kind::String => {
            let text = value.as_str().unwrap_or_default();
            let digits = text.strip_prefix('-').unwrap_or(text);
            let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
            let parsed = is_number.then(|| text.parse().ok()).flatten();
            return parsed
                .map(Some)
                .ok_or_else(|| failure(format!("Failed to parse number '{text}'")));
        }
        _ => None,
    })
}

fn parsed_double(text: &str) -> Outcome<f64> {
    let is_plain = !text.is_empty() && !text.starts_with('+') && text.trim() == text;
    let parsed = is_plain.then(|| text.parse::<f64>().ok()).flatten();
    parsed.ok_or_else(|| failure(format!("Failed to parse number '{text}'")))
}

fn object_id(value: Value<'_>) -> Option<Outcome<OwnedValue>> {
    let text = value.as_str().filter(|_| value.kind == Kind::String)?;
    let bytes: Option<Vec<u8>> = match text.len() == 24 && text.is_ascii() {
        true => (0..12)
            .map(|at| u8::from_str_radix(text.get(2 * at..2 * at + 2)?, 16).ok())
            .collect(),
        false => None,
    };
    let wrong = || failure(format!("Failed to parse objectId '{text}'"));
    Some(
        bytes
            .map(|bytes| OwnedValue {
                kind: Kind::ObjectId,
                bytes,
            })
            .ok_or_else(wrong),
    )
}

/// A date of a number of milliseconds, an ObjectId, a timestamp, or a text.
fn date(value: Value<'_>) -> Option<Outcome<OwnedValue>> {
    match value.kind {
        Kind::Int64 | Kind::Double => {
            Some(integer(value).map(|ms| OwnedValue::date(ms.unwrap_or_default())))
        }
        Kind::String => {
            let text = value.as_str()?;
            let wrong = || failure(format!("Error parsing date string '{text}'"));
            let read = read_iso(text).ok_or_else(wrong);
            Some(read.map(|(local, ahead)| OwnedValue::date(local - ahead.unwrap_or(0) * 1000)))
        }
        _ => moment(value).map(|ms| Ok(OwnedValue::date(ms))),
    }
}

/// The milliseconds since 1970 of what has a date in it.
pub(super) fn moment(value: Value<'_>) -> Option<i64> {
    match value.kind {
        Kind::Date => value.fixed_i64(),
        Kind::Timestamp => Some(value.fixed_i64()?.wrapping_shr(32).rem_euclid(1 << 32) * 1000),
        Kind::ObjectId => {
            Some(i64::from(u32::from_be_bytes(*value.bytes.first_chunk::<4>()?)) * 1000)
        }
        _ => None,
    }
}

/// A value as text, of types that have one.
pub(super) fn text_of(value: Value<'_>) -> Option<String> {
    Some(match value.kind {
        Kind::String | Kind::Symbol | Kind::Code => value.as_str()?.to_owned(),
        Kind::Bool => (value.as_bool() == Some(true)).to_string(),
        Kind::Int32 | Kind::Int64 => value.fixed_i64()?.to_string(),
        Kind::Double => double_text(value.double()?),
        Kind::Date => write(ISO, value.fixed_i64()?, 0),
        Kind::ObjectId => value
            .bytes
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect(),
        Kind::Timestamp => {
            let stamp = value.fixed_i64()?;
            format!(
                "Timestamp({}, {})",
                stamp.wrapping_shr(32).rem_euclid(1 << 32),
                stamp.rem_euclid(1 << 32)
            )
        }
        _ => return None,
    })
}

/// The shortest text that gives the number back, as JavaScript has it.
fn double_text(number: f64) -> String {
    if number.is_nan() {
        return "NaN".to_owned();
    }
    if number.is_infinite() {
        return if number > 0.0 {
            "Infinity"
        } else {
            "-Infinity"
        }
        .to_owned();
    }
    let magnitude = number.abs();
    if magnitude != 0.0 && !(1e-6..1e21).contains(&magnitude) {
        let text = format!("{number:e}");
        return match text.split_once('e') {
            Some((digits, power)) if !power.starts_with('-') => format!("{digits}e+{power}"),
            _ => text,
        };
    }
    format!("{number}")
}
