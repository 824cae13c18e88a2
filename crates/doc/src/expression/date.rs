//! Dates: their parts, and what is made of them.

use crate::build::Builder;
use crate::code::Code;
use crate::raw::{Kind, OwnedValue, Value};
use crate::refusal::{Outcome, Refusal};

use super::convert::moment;
use super::date_math::{DAY, IsoWeek, Parts, Unit, days_in, days_of, weekday};
use super::date_text::{ISO, ISO_LOCAL, read, read_iso, write, wrong_in};
use super::function::{Arguments, Function, Made, argument, null, whole};
use super::zone::Zone;

fn refuse<T>(code: Code, text: impl Into<String>) -> Outcome<T> {
    Err(Refusal::new(code, text))
}

fn raw<'a>(arguments: Arguments<'a>, at: usize) -> Option<Value<'a>> {
    arguments.get(at).copied().flatten()
}

fn date(value: Value<'_>) -> Outcome<i64> {
    moment(value).ok_or_else(|| {
        let text = format!("can't convert from BSON type {} to Date", value.kind.name());
        Refusal::new(Code::ToDate, text)
    })
}

/// A date and its zone, where both are there.
fn zoned(arguments: Arguments<'_>, zone: usize) -> Outcome<Option<(i64, Zone)>> {
    let zone = Zone::of(raw(arguments, zone))?;
    let date = argument(arguments, 0).map(date).transpose()?;
    Ok(date.zip(zone))
}

/// `$year` and its like.
pub(super) fn part(function: &Function, arguments: Arguments<'_>) -> Made {
    let Some((date, zone)) = zoned(arguments, 1)? else {
        return null();
    };
    let parts = Parts::of(zone.local(date));
    let number = match function.name {
        "$year" => parts.year,
        "$month" => parts.month,
        "$dayOfMonth" => parts.day,
        "$hour" => parts.hour,
        "$minute" => parts.minute,
        "$second" => parts.second,
        "$millisecond" => parts.ms,
        "$dayOfWeek" => parts.day_of_week(),
        "$dayOfYear" => parts.day_of_year(),
        "$week" => parts.week(),
        "$isoWeek" => parts.iso().week,
        "$isoWeekYear" => return Ok(Some(OwnedValue::int64(parts.iso().year))),
        _ => parts.iso().day,
    };
    Ok(Some(whole(number)))
}

/// `$tsSecond`, `$tsIncrement`.
pub(super) fn timestamp(function: &Function, arguments: Arguments<'_>) -> Made {
    let Some(value) = argument(arguments, 0) else {
        return null();
    };
    if value.kind != Kind::Timestamp {
        let text = format!(
            "{} requires a timestamp argument, and found {}",
            function.name,
            value.kind.name()
        );
        return refuse(Code::TimestampType, text);
    }
    let stamp = value.fixed_i64().unwrap_or_default();
    let half = if function.name == "$tsSecond" {
        stamp.wrapping_shr(32)
    } else {
        stamp
    };
    Ok(Some(OwnedValue::int64(half.rem_euclid(1 << 32))))
}

pub(super) fn to_parts(_: &Function, arguments: Arguments<'_>) -> Made {
    let Some((date, zone)) = zoned(arguments, 1)? else {
        return null();
    };
    let is_iso = match raw(arguments, 2) {
        None => false,
        Some(flag) if flag.is_null() => return null(),
        Some(flag) => match flag.as_bool() {
            Some(flag) => flag,
            None => return refuse(Code::ToPartsIso, "iso8601 must evaluate to a bool"),
        },
    };
    let parts = Parts::of(zone.local(date));
    let iso = parts.iso();
    let days = match is_iso {
        true => [
            ("isoWeekYear", iso.year),
            ("isoWeek", iso.week),
            ("isoDayOfWeek", iso.day),
        ],
        false => [
            ("year", parts.year),
            ("month", parts.month),
            ("day", parts.day),
        ],
    };
    let times = [
        ("hour", parts.hour),
        ("minute", parts.minute),
        ("second", parts.second),
        ("millisecond", parts.ms),
    ];
    let mut out = Builder::new();
    for (name, number) in days.into_iter().chain(times) {
        out.value(name, whole(number).get());
    }
    Ok(Some(OwnedValue::document(out.finish())))
}

pub(super) fn from_parts(_: &Function, arguments: Arguments<'_>) -> Made {
    let is_given = |at: usize| raw(arguments, at).is_some();
    let is_iso = is_given(1);
    let others = if is_iso { [0, 2, 4] } else { [1, 3, 5] };
    if others.iter().any(|at| is_given(*at)) {
        let text = "$dateFromParts does not allow mixing natural dates with ISO week dates";
        return refuse(Code::PartsMixed, text);
    }
    if !is_iso && !is_given(0) {
        let text = "$dateFromParts requires either 'year' or 'isoWeekYear' to be present";
        return refuse(Code::PartsMissing, text);
    }
    let mut numbers = [0i64; 10];
    for (at, number) in numbers.iter_mut().enumerate() {
        *number = match raw(arguments, at) {
            None => i64::from((2..6).contains(&at)),
            Some(value) if value.is_null() => return null(),
            Some(value) => {
                let wrong = || {
                    Refusal::new(
                        Code::PartsWhole,
                        "a part of $dateFromParts must evaluate to an integer",
                    )
                };
                value.as_whole().ok_or_else(wrong)?
            }
        };
    }
    let [
        year,
        iso_year,
        month,
        iso_week,
        day,
        iso_day,
        hour,
        minute,
        second,
        ms,
    ] = numbers;
    let of_year = if is_iso { iso_year } else { year };
    if !(1..=9999).contains(&of_year) {
        let text =
            format!("'year' must evaluate to an integer in the range 1 to 9999, found {of_year}");
        return refuse(Code::PartsYear, text);
    }
    let small = [month, iso_week, day, iso_day, hour, minute];
    if small.iter().any(|number| i16::try_from(*number).is_err())
        || second.abs().max(ms.abs()) > 1 << 53
    {
        return refuse(
            Code::PartsRange,
            "a part of $dateFromParts must evaluate to a value in the range [-32768, 32767]",
        );
    }
    let Some(zone) = Zone::of(raw(arguments, 10))? else {
        return null();
    };
    let time = Parts {
        hour,
        minute,
        second,
        ms,
        ..Parts::of(0)
    }
    .local();
    let days = match is_iso {
        true => IsoWeek {
            year: iso_year,
            week: iso_week,
            day: iso_day,
        }
        .days(),
        false => days_of(year, month, day),
    };
    let local = days.saturating_mul(DAY).saturating_add(time);
    Ok(Some(OwnedValue::date(zone.moment_of(local))))
}

fn format<'a>(name: &str, value: Value<'a>) -> Outcome<&'a str> {
    let text = value.as_str().filter(|_| value.kind == Kind::String);
    let wrong = || {
        let text = format!(
            "{name} requires that 'format' be a string, found: {}",
            value.kind.name()
        );
        Refusal::new(Code::FormatType, text)
    };
    let text = text.ok_or_else(wrong)?;
    match wrong_in(text) {
        None => Ok(text),
        Some(None) => refuse(Code::FormatEnd, "Unmatched '%' at end of format string"),
        Some(Some(other)) => refuse(
            Code::FormatUnknown,
            format!("Invalid format character '%{other}' in format string"),
        ),
    }
}

pub(super) fn to_string(function: &Function, arguments: Arguments<'_>) -> Made {
    let wanted = match raw(arguments, 1) {
        Some(value) if value.is_null() => return null(),
        Some(value) => Some(format(function.name, value)?),
        None => None,
    };
    let zone = Zone::of(raw(arguments, 2))?;
    let Some(value) = argument(arguments, 0) else {
        return Ok(Some(raw(arguments, 3).unwrap_or(Value::NULL).to_owned()));
    };
    let Some(zone) = zone else {
        return null();
    };
    let moment = date(value)?;
    let local = zone.local(moment);
    let year = Parts::of(local).year;
    if !(0..=9999).contains(&year) {
        let text =
            format!("$dateToString is only defined on year 0-9999, tried to use year {year}");
        return refuse(Code::ToTextYear, text);
    }
    let wanted = wanted.unwrap_or(if zone.is_utc() { ISO } else { ISO_LOCAL });
    Ok(Some(OwnedValue::string(&write(
        wanted,
        local,
        zone.offset_at(moment),
    ))))
}

pub(super) fn from_string(function: &Function, arguments: Arguments<'_>) -> Made {
    let wanted = match raw(arguments, 1) {
        Some(value) if value.is_null() => return null(),
        Some(value) => Some(format(function.name, value)?),
        None => None,
    };
    let zone = Zone::of(raw(arguments, 2))?;
    let Some(value) = argument(arguments, 0) else {
        return Ok(Some(raw(arguments, 4).unwrap_or(Value::NULL).to_owned()));
    };
    let Some(zone) = zone else {
        return null();
    };
    let text = value.as_str().filter(|_| value.kind == Kind::String);
    let found = match (text, wanted) {
        (Some(text), Some(wanted)) => read(wanted, text),
        (Some(text), None) => read_iso(text),
        (None, _) => None,
    };
    match found {
        Some((local, Some(ahead))) if zone.is_utc() => {
            Ok(Some(OwnedValue::date(local - ahead * 1000)))
        }
        Some((local, None)) => Ok(Some(OwnedValue::date(zone.moment_of(local)))),
        _ => match raw(arguments, 3) {
            Some(instead) => Ok(Some(instead.to_owned())),
            None => refuse(
                Code::ConversionFailure,
                format!(
                    "Error parsing date string '{}': this server reads those of ISO 8601, and those of a 'format'",
                    crate::show(value)
                ),
            ),
        },
    }
}

fn unit(value: Value<'_>, name: &str, code: Code) -> Outcome<(Unit, bool)> {
    let text = value.as_str().filter(|_| value.kind == Kind::String);
    let Some(text) = text else {
        return refuse(
            code,
            format!(
                "{name} requires 'unit' to be a string, but got {}",
                value.kind.name()
            ),
        );
    };
    match Unit::of(text) {
        Some(unit) => Ok((unit, text == "week")),
        None => refuse(
            Code::FailedToParse,
            format!("unknown time unit value: {text}"),
        ),
    }
}

/// `$dateAdd`, `$dateSubtract`.
pub(super) fn add(function: &Function, arguments: Arguments<'_>) -> Made {
    let name = function.name;
    let zone = Zone::of(raw(arguments, 3))?;
    let (Some(start), Some(wanted), Some(amount), Some(zone)) = (
        argument(arguments, 0),
        argument(arguments, 1),
        argument(arguments, 2),
        zone,
    ) else {
        return null();
    };
    let Some(start) = moment(start) else {
        return refuse(
            Code::DateAddStart,
            format!("{name} requires startDate to be convertible to a date"),
        );
    };
    let (unit, _) = unit(wanted, name, Code::DateAddUnit)?;
    let Some(amount) = amount.as_whole() else {
        return refuse(
            Code::DateAddAmount,
            format!("{name} expects integer amount of time units"),
        );
    };
    let overflow = || Refusal::new(Code::DateAddRange, format!("{name} overflowed"));
    let amount = match name {
        "$dateSubtract" => amount.checked_neg().ok_or_else(overflow)?,
        _ => amount,
    };
    let span = |of: i64| amount.checked_mul(of);
    let local = zone.local(start);
    let moved = match unit {
        Unit::Ms(ms) => span(ms).and_then(|by| start.checked_add(by)),
        Unit::Days(days) => span(days)
            .and_then(|days| days.checked_mul(DAY))
            .and_then(|by| local.checked_add(by))
            .map(|local| zone.moment_of(local)),
        Unit::Months(months) => span(months)
            .filter(|by| by.abs() < 4_000_000_000)
            .and_then(|by| {
                let parts = Parts::of(local);
                let all = parts
                    .year
                    .checked_mul(12)?
                    .checked_add(parts.month - 1)?
                    .checked_add(by)?;
                let (year, month) = (all.div_euclid(12), all.rem_euclid(12) + 1);
                // A month may be shorter than the day that it began with.
                let day = match drumlin_base::bug!("mongo-months-overflow") {
                    true => parts.day,
                    false => parts.day.min(days_in(year, month)),
                };
                let days = days_of(year, month, day).checked_mul(DAY)?;
                let local = days.checked_add(local.rem_euclid(DAY))?;
                Some(zone.moment_of(local))
            }),
    };
    Ok(Some(OwnedValue::date(moved.ok_or_else(overflow)?)))
}

/// The day that weeks begin with; Sunday where it is not said.
fn week_start(name: &str, arguments: Arguments<'_>, code: Code) -> Outcome<Option<i64>> {
    let Some(value) = raw(arguments, 4) else {
        return Ok(Some(0));
    };
    if value.is_null() {
        return Ok(None);
    }
    let found = value.as_str().and_then(weekday);
    let wrong = || {
        Refusal::new(
            code,
            format!(
                "{name} parameter 'startOfWeek' value cannot be recognized as a day of a week: {}",
                crate::show(value)
            ),
        )
    };
    found.map(Some).ok_or_else(wrong)
}

pub(super) fn difference(function: &Function, arguments: Arguments<'_>) -> Made {
    let name = function.name;
    let zone = Zone::of(raw(arguments, 3))?;
    let (Some(start), Some(end), Some(wanted), Some(zone)) = (
        argument(arguments, 0),
        argument(arguments, 1),
        argument(arguments, 2),
        zone,
    ) else {
        return null();
    };
    let (Some(start), Some(end)) = (moment(start), moment(end)) else {
        return refuse(
            Code::DateDiffDate,
            format!("{name} requires 'startDate' and 'endDate' to be dates"),
        );
    };
    let (unit, is_week) = unit(wanted, name, Code::TimeUnit)?;
    let Some(first_day) = (if is_week {
        week_start(name, arguments, Code::WeekStart)?
    } else {
        Some(0)
    }) else {
        return null();
    };
    let count = |ms: i64| match unit {
        Unit::Months(months) => {
            let parts = Parts::of(zone.local(ms));
            (parts.year * 12 + parts.month - 1).div_euclid(months)
        }
        // 1970 began with a Thursday.
        Unit::Days(7) => (zone.local(ms).div_euclid(DAY) + 4 - first_day).div_euclid(7),
        Unit::Days(_) => zone.local(ms).div_euclid(DAY),
        Unit::Ms(of) => ms
            .saturating_add(zone.offset_at(start) * 1000)
            .div_euclid(of),
    };
    Ok(Some(OwnedValue::int64(count(end) - count(start))))
}

pub(super) fn truncate(function: &Function, arguments: Arguments<'_>) -> Made {
    let name = function.name;
    let zone = Zone::of(raw(arguments, 3))?;
    let size = match raw(arguments, 2) {
        None => 1,
        Some(size) if size.is_null() => return null(),
        Some(size) => match size
            .as_whole()
            .filter(|size| (1..=100_000_000_000).contains(size))
        {
            Some(size) => size,
            None => {
                return refuse(
                    Code::DateTruncSize,
                    format!("{name} requires 'binSize' to be a whole number above 0"),
                );
            }
        },
    };
    let (Some(value), Some(wanted), Some(zone)) =
        (argument(arguments, 0), argument(arguments, 1), zone)
    else {
        return null();
    };
    let Some(moment) = moment(value) else {
        return refuse(
            Code::DateTruncDate,
            format!(
                "{name} requires 'date' to be a date, and not {}",
                value.kind.name()
            ),
        );
    };
    let (unit, is_week) = unit(wanted, name, Code::TimeUnit)?;
    let Some(first_day) = (if is_week {
        week_start(name, arguments, Code::WeekStart)?
    } else {
        Some(0)
    }) else {
        return null();
    };
    let local = zone.local(moment);
    let begin = days_of(2000, 1, 1);
    let cut = match unit {
        Unit::Months(months) => {
            let parts = Parts::of(local);
            let all = (parts.year - 2000) * 12 + parts.month - 1;
            let span = months * size;
            zone.moment_of(
                days_of(
                    2000,
                    all.div_euclid(span).saturating_mul(span).saturating_add(1),
                    1,
                )
                .saturating_mul(DAY),
            )
        }
        Unit::Days(days) => {
            // The first day of a week from the beginning of 2000 on, a Saturday.
            let from = if days == 7 {
                begin + (first_day - 6).rem_euclid(7)
            } else {
                begin
            };
            let span = days * size;
            let bins = (local.div_euclid(DAY) - from).div_euclid(span);
            zone.moment_of(
                bins.saturating_mul(span)
                    .saturating_add(from)
                    .saturating_mul(DAY),
            )
        }
        Unit::Ms(ms) => {
            let from = zone.moment_of(begin * DAY);
            let span = ms.saturating_mul(size);
            moment
                .saturating_sub(from)
                .div_euclid(span)
                .saturating_mul(span)
                .saturating_add(from)
        }
    };
    Ok(Some(OwnedValue::date(cut)))
}
