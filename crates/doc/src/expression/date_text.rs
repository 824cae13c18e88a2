//! Dates as text, by formats with `%`.

use std::fmt::Write;

use super::date_math::{DAY, IsoWeek, Parts, days_of};
use super::zone::offset;

/// The format where none is given.
pub(super) const ISO: &str = "%Y-%m-%dT%H:%M:%S.%LZ";
pub(super) const ISO_LOCAL: &str = "%Y-%m-%dT%H:%M:%S.%L";

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// The first letter behind a `%` that means nothing, or nothing where a `%` is the last; of formats that are wrong.
pub(super) fn wrong_in(format: &str) -> Option<Option<char>> {
    let mut chars = format.chars();
    while let Some(char) = chars.next() {
        if char == '%' {
            match chars.next() {
                Some(known) if "dGHjLmMSuUVYzZbB%".contains(known) => {}
                other => return Some(other),
            }
        }
    }
    None
}

/// A local time, with the seconds that it is ahead.
pub(super) fn write(format: &str, local: i64, ahead: i64) -> String {
    let parts = Parts::of(local);
    let mut out = String::new();
    let mut chars = format.chars();
    while let Some(char) = chars.next() {
        if char != '%' {
            out.push(char);
            continue;
        }
        let month = usize::try_from(parts.month - 1)
            .ok()
            .and_then(|at| MONTHS.get(at));
        let month = month.copied().unwrap_or_default();
        // Writing to a string does not fail.
        let _ = match chars.next() {
            Some('Y') => write!(out, "{:04}", parts.year),
            Some('m') => write!(out, "{:02}", parts.month),
            Some('d') => write!(out, "{:02}", parts.day),
            Some('H') => write!(out, "{:02}", parts.hour),
            Some('M') => write!(out, "{:02}", parts.minute),
            Some('S') => write!(out, "{:02}", parts.second),
            Some('L') => write!(out, "{:03}", parts.ms),
            Some('j') => write!(out, "{:03}", parts.day_of_year()),
            Some('u') => write!(out, "{}", parts.iso().day),
            Some('U') => write!(out, "{:02}", parts.week()),
            Some('V') => write!(out, "{:02}", parts.iso().week),
            Some('G') => write!(out, "{:04}", parts.iso().year),
            Some('b') => write!(out, "{}", month.get(..3).unwrap_or_default()),
            Some('B') => write!(out, "{month}"),
            Some('z') => {
                let sign = if ahead < 0 { '-' } else { '+' };
                let minutes = ahead.abs() / 60;
                write!(out, "{sign}{:02}{:02}", minutes / 60, minutes % 60)
            }
            Some('Z') => write!(out, "{:+}", ahead / 60),
            Some(other) => write!(out, "{other}"),
            None => Ok(()),
        };
    }
    out
}

/// A text that is read.
struct Reader<'t>(&'t str);

impl Reader<'_> {
    fn number(&mut self, least: usize, most: usize) -> Option<i64> {
        let count = self
            .0
            .bytes()
            .take(most)
            .take_while(u8::is_ascii_digit)
            .count();
        if count < least {
            return None;
        }
        let (digits, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        digits.parse().ok()
    }

    fn take(&mut self, text: &str) -> bool {
        match self.0.strip_prefix(text) {
            Some(rest) => {
                self.0 = rest;
                true
            }
            None => false,
        }
    }

    /// What is behind the point of seconds, as milliseconds.
    fn fraction(&mut self) -> Option<i64> {
        let before = self.0.len();
        let number = self.number(1, 9)?;
        let digits = u32::try_from(before - self.0.len()).ok()?;
        Some(match digits {
            0..=3 => number * 10i64.pow(3 - digits),
            _ => number / 10i64.pow(digits - 3),
        })
    }

    /// `Z`, `UTC`, or an offset.
    fn zone(&mut self) -> Option<i64> {
        if self.take("Z") || self.take("UTC") || self.take("GMT") {
            return Some(0);
        }
        let end = self
            .0
            .find(|char: char| !(char.is_ascii_digit() || "+-:".contains(char)));
        let (text, rest) = self.0.split_at(end.unwrap_or(self.0.len()));
        self.0 = rest;
        offset(text)
    }
}

/// What a text says: a local time, and how many seconds it is ahead where it says so.
type Read = Option<(i64, Option<i64>)>;

/// A time of ISO 8601: a date, and then a time, a fraction and an offset where they are there.
pub(super) fn read_iso(text: &str) -> Read {
    let mut rest = Reader(text.trim());
    let mut parts = Parts::of(0);
    parts.year = rest.number(4, 4)?;
    let has_marks = rest.take("-");
    parts.month = rest.number(2, 2)?;
    if has_marks != rest.take("-") {
        return None;
    }
    parts.day = rest.number(2, 2)?;
    let mut ahead = None;
    if rest.take("T") || rest.take("t") || rest.take(" ") {
        parts.hour = rest.number(2, 2)?;
        if rest.take(":") {
            parts.minute = rest.number(2, 2)?;
            if rest.take(":") {
                parts.second = rest.number(2, 2)?;
                if rest.take(".") || rest.take(",") {
                    parts.ms = rest.fraction()?;
                }
            }
        }
        rest.0 = rest.0.trim_start();
        if !rest.0.is_empty() {
            ahead = Some(rest.zone()?);
        }
    }
    (rest.0.is_empty() && is_date(&parts)).then(|| (parts.local(), ahead))
}

fn is_date(parts: &Parts) -> bool {
    let days = super::date_math::days_in(parts.year, parts.month);
    (1..=12).contains(&parts.month)
        && (1..=days).contains(&parts.day)
        && (0..24).contains(&parts.hour)
        && (0..60).contains(&parts.minute)
        && (0..60).contains(&parts.second)
}

/// A text of the format.
pub(super) fn read(format: &str, text: &str) -> Read {
    let mut rest = Reader(text);
    let mut parts = Parts::of(0);
    let mut iso: Option<IsoWeek> = None;
    let mut day_of_year = None;
    let mut ahead = None;
    let mut chars = format.chars();
    let week = IsoWeek {
        year: 1970,
        week: 1,
        day: 1,
    };
    while let Some(char) = chars.next() {
        let letter = if char == '%' { chars.next()? } else { '\0' };
        match letter {
            '\0' => {
                if !rest.take(char.encode_utf8(&mut [0; 4])) {
                    return None;
                }
            }
            'Y' => parts.year = rest.number(4, 4)?,
            'm' => parts.month = rest.number(1, 2)?,
            'd' => parts.day = rest.number(1, 2)?,
            'H' => parts.hour = rest.number(1, 2)?,
            'M' => parts.minute = rest.number(1, 2)?,
            'S' => parts.second = rest.number(1, 2)?,
            'L' => parts.ms = rest.fraction()?,
            'j' => day_of_year = Some(rest.number(1, 3)?),
            'G' => iso.get_or_insert(week).year = rest.number(4, 4)?,
            'V' => iso.get_or_insert(week).week = rest.number(1, 2)?,
            'u' => iso.get_or_insert(week).day = rest.number(1, 1)?,
            'b' | 'B' => {
                let at = MONTHS.iter().position(|month| {
                    let name = if letter == 'b' {
                        month.get(..3).unwrap_or_default()
                    } else {
                        month
                    };
                    rest.0
                        .get(..name.len())
                        .is_some_and(|text| text.eq_ignore_ascii_case(name))
                })?;
                let long = MONTHS.get(at).map_or(0, |month| month.len());
                rest.0 = rest.0.get(if letter == 'b' { 3 } else { long }..)?;
                parts.month = i64::try_from(at).ok()? + 1;
            }
            'z' => ahead = Some(rest.zone()?),
            'Z' => {
                let sign = if rest.take("-") {
                    -1
                } else {
                    i64::from(rest.take("+"))
                };
                ahead = Some(sign * rest.number(1, 4)? * 60);
            }
            '%' => {
                if !rest.take("%") {
                    return None;
                }
            }
            _ => return None,
        }
    }
    if !rest.0.is_empty() || !is_date(&parts) {
        return None;
    }
    let time = parts.local().rem_euclid(DAY);
    let local = match (iso, day_of_year) {
        (Some(iso), _) if (1..=53).contains(&iso.week) && (1..=7).contains(&iso.day) => {
            iso.days() * DAY + time
        }
        (Some(_), _) => return None,
        (None, Some(day)) if (1..=366).contains(&day) => {
            (days_of(parts.year, 1, 1) + day - 1) * DAY + time
        }
        (None, Some(_)) => return None,
        (None, None) => parts.local(),
    };
    Some((local, ahead))
}
