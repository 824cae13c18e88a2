//! Time zones: offsets, and the names of the time zone database, which is compiled in.

use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::code::Code;
use crate::raw::{Kind, Value};
use crate::refusal::{Outcome, Refusal};

/// See the module.
#[derive(Clone, Debug)]
pub(super) enum Zone {
    /// Seconds that local time is ahead.
    Fixed(i64),
    Named(TimeZone),
}

impl Zone {
    pub(super) const UTC: Self = Self::Fixed(0);

    /// The zone that an argument names; UTC where it is not given, nothing where it is null.
    pub(super) fn of(value: Option<Value<'_>>) -> Outcome<Option<Self>> {
        let Some(value) = value else {
            return Ok(Some(Self::UTC));
        };
        if value.is_null() {
            return Ok(None);
        }
        let wrong = || {
            let text = format!(
                "timezone must evaluate to a string, found {}",
                value.kind.name()
            );
            Refusal::new(Code::ZoneType, text)
        };
        let name = value
            .as_str()
            .filter(|_| value.kind == Kind::String)
            .ok_or_else(wrong)?;
        let unknown = || {
            Refusal::new(
                Code::ZoneUnknown,
                format!("unrecognized time zone identifier: \"{name}\""),
            )
        };
        match name {
            "UTC" | "GMT" | "Z" => Ok(Some(Self::UTC)),
            _ if name.starts_with(['+', '-']) => {
                offset(name).map(Self::Fixed).map(Some).ok_or_else(unknown)
            }
            _ => jiff::tz::db()
                .get(name)
                .map(|zone| Some(Self::Named(zone)))
                .map_err(|_| unknown()),
        }
    }

    pub(super) fn is_utc(&self) -> bool {
        matches!(self, Self::Fixed(0))
    }

    /// Seconds that local time is ahead at a moment. Years beyond 9999 have the offset of the last one.
    pub(super) fn offset_at(&self, ms: i64) -> i64 {
        match self {
            Self::Fixed(seconds) => *seconds,
            Self::Named(zone) => i64::from(zone.to_offset(moment(ms)).seconds()),
        }
    }

    /// Local time, as milliseconds since 1970 of a clock without a zone.
    pub(super) fn local(&self, ms: i64) -> i64 {
        ms.saturating_add(self.offset_at(ms) * 1000)
    }

    /// The moment of a local time. One that there is twice is the first one, one that there is not lies behind the gap.
    pub(super) fn moment_of(&self, local: i64) -> i64 {
        if let Self::Fixed(seconds) = self {
            return local.saturating_sub(seconds * 1000);
        }
        const DAY: i64 = 86_400_000;
        let before = self.offset_at(local.saturating_sub(DAY)) * 1000;
        let after = self.offset_at(local.saturating_add(DAY)) * 1000;
        let early = local.saturating_sub(before);
        let late = local.saturating_sub(after);
        match (self.local(early) == local, self.local(late) == local) {
            (true, true) => early.min(late),
            (false, true) => late,
            _ => early,
        }
    }
}

fn moment(ms: i64) -> Timestamp {
    let least = Timestamp::MIN.as_millisecond();
    let most = Timestamp::MAX.as_millisecond();
    Timestamp::from_millisecond(ms.clamp(least, most)).unwrap_or(Timestamp::UNIX_EPOCH)
}

/// `+hh`, `+hhmm`, `+hh:mm` in seconds.
pub(super) fn offset(text: &str) -> Option<i64> {
    let sign = match text.as_bytes().first()? {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let digits: String = text.get(1..)?.chars().filter(|char| *char != ':').collect();
    let has_colon = text.len() == digits.len() + 2;
    let is_known = matches!(digits.len(), 2 | 4)
        && (text.len() == digits.len() + 1 || has_colon && text.get(3..4) == Some(":"));
    if !is_known || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let hours: i64 = digits.get(..2)?.parse().ok()?;
    let minutes: i64 = digits
        .get(2..)
        .filter(|rest| !rest.is_empty())
        .map_or(Some(0), |rest| rest.parse().ok())?;
    Some(sign * (hours * 3600 + minutes * 60))
}
