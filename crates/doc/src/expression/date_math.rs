//! The calendar: days of a date, and back. Times are milliseconds since 1970 of a clock without a zone.

/// Milliseconds.
pub(super) const SECOND: i64 = 1000;
pub(super) const MINUTE: i64 = 60 * SECOND;
pub(super) const HOUR: i64 = 60 * MINUTE;
pub(super) const DAY: i64 = 24 * HOUR;

/// A date and a time of day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Parts {
    pub(super) year: i64,
    /// 1 to 12.
    pub(super) month: i64,
    /// 1 to 31.
    pub(super) day: i64,
    pub(super) hour: i64,
    pub(super) minute: i64,
    pub(super) second: i64,
    pub(super) ms: i64,
}

/// A week as ISO 8601 counts them: its year, its number, the day from Monday, 1, on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct IsoWeek {
    pub(super) year: i64,
    pub(super) week: i64,
    pub(super) day: i64,
}

/// Days since 1970-01-01. Months beyond 1 to 12 count into other years. Years are within ±10^9.
///
/// The year begins in March, so that the day that leap years have more is the last one; 400 years have 146,097 days. After
/// Howard Hinnant, "chrono-compatible low-level date algorithms".
pub(super) fn days_of(year: i64, month: i64, day: i64) -> i64 {
    let months = year.saturating_mul(12).saturating_add(month - 1);
    let (year, month) = (months.div_euclid(12), months.rem_euclid(12) + 1);
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5;
    let days = of_era * 365 + of_era / 4 - of_era / 100 + of_year;
    (era * 146_097 + days - 719_468).saturating_add(day - 1)
}

/// Year, month and day.
fn date_of(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let (era, of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 {
        from_march + 3
    } else {
        from_march - 9
    };
    let year = year + era * 400 + i64::from(month <= 2);
    (year, month, day)
}

impl Parts {
    pub(super) fn of(local: i64) -> Self {
        let (days, rest) = (local.div_euclid(DAY), local.rem_euclid(DAY));
        let (year, month, day) = date_of(days);
        Self {
            year,
            month,
            day,
            hour: rest / HOUR,
            minute: rest / MINUTE % 60,
            second: rest / SECOND % 60,
            ms: rest % SECOND,
        }
    }

    /// Parts may be out of their ranges, and then count on.
    pub(super) fn local(&self) -> i64 {
        let days = days_of(self.year, self.month, self.day);
        let parts = [
            (days, DAY),
            (self.hour, HOUR),
            (self.minute, MINUTE),
            (self.second, SECOND),
            (self.ms, 1),
        ];
        parts.iter().fold(0i64, |sum, (count, unit)| {
            sum.saturating_add(count.saturating_mul(*unit))
        })
    }

    /// 1 to 366.
    pub(super) fn day_of_year(&self) -> i64 {
        days_of(self.year, self.month, self.day) - days_of(self.year, 1, 1) + 1
    }

    /// From Sunday, 1, on.
    pub(super) fn day_of_week(&self) -> i64 {
        (days_of(self.year, self.month, self.day) + 4).rem_euclid(7) + 1
    }

    /// Weeks that begin with Sundays; days before the first one are in week 0.
    pub(super) fn week(&self) -> i64 {
        (self.day_of_year() + 7 - self.day_of_week()) / 7
    }

    pub(super) fn iso(&self) -> IsoWeek {
        let days = days_of(self.year, self.month, self.day);
        let day = (days + 3).rem_euclid(7) + 1;
        // The year of a week is that of its Thursday.
        let thursday = days - day + 4;
        let (year, _, _) = date_of(thursday);
        let week = (thursday - days_of(year, 1, 1)) / 7 + 1;
        IsoWeek { year, week, day }
    }
}

impl IsoWeek {
    /// Days since 1970-01-01.
    pub(super) fn days(&self) -> i64 {
        let fourth = days_of(self.year, 1, 4);
        let monday = fourth - (fourth + 3).rem_euclid(7);
        monday + (self.week - 1) * 7 + self.day - 1
    }
}

/// How many days a month has.
pub(super) fn days_in(year: i64, month: i64) -> i64 {
    days_of(year, month + 1, 1) - days_of(year, month, 1)
}

/// A span of time of the calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    /// So many months.
    Months(i64),
    /// So many days; weeks are seven.
    Days(i64),
    /// So many milliseconds.
    Ms(i64),
}

impl Unit {
    pub(super) fn of(name: &str) -> Option<Self> {
        Some(match name {
            "year" => Self::Months(12),
            "quarter" => Self::Months(3),
            "month" => Self::Months(1),
            "week" => Self::Days(7),
            "day" => Self::Days(1),
            "hour" => Self::Ms(HOUR),
            "minute" => Self::Ms(MINUTE),
            "second" => Self::Ms(SECOND),
            "millisecond" => Self::Ms(1),
            _ => return None,
        })
    }
}

/// The name of a day as a number from Sunday, 0, on.
pub(super) fn weekday(name: &str) -> Option<i64> {
    const NAMES: [(&str, &str); 7] = [
        ("sunday", "sun"),
        ("monday", "mon"),
        ("tuesday", "tue"),
        ("wednesday", "wed"),
        ("thursday", "thu"),
        ("friday", "fri"),
        ("saturday", "sat"),
    ];
    let name = name.to_ascii_lowercase();
    let at = NAMES
        .iter()
        .position(|(long, short)| name == *long || name == *short)?;
    i64::try_from(at).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_those_of_the_calendar() {
        let known = [
            (1970, 1, 1, 0),
            (2000, 3, 1, 11_017),
            (1969, 12, 31, -1),
            (2024, 2, 29, 19_782),
            (-1, 12, 31, -719_529),
        ];
        for (year, month, day, days) in known {
            assert_eq!(days_of(year, month, day), days);
            assert_eq!(date_of(days), (year, month, day));
        }
        for days in (-800_000..800_000).step_by(37) {
            let parts = Parts::of(days * DAY + 5);
            assert_eq!(parts.local(), days * DAY + 5);
            assert_eq!(parts.iso().days(), days);
        }
        let parts = Parts::of(days_of(2021, 1, 3) * DAY);
        assert_eq!(
            parts.iso(),
            IsoWeek {
                year: 2020,
                week: 53,
                day: 7
            }
        );
        assert_eq!(
            (parts.day_of_week(), parts.week(), parts.day_of_year()),
            (1, 1, 3)
        );
    }
}
