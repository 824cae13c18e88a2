//! Moments as dates, in UTC. The arithmetic is Howard Hinnant's `civil_from_days`.

/// A moment in UTC, to the second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Utc {
    /// The year.
    pub year: u64,
    /// The month, from 1.
    pub month: u64,
    /// The day of the month, from 1.
    pub day: u64,
    /// The hour, from 0 to 23.
    pub hour: u64,
    /// The minute.
    pub minute: u64,
    /// The second, without leap seconds.
    pub second: u64,
}

impl Utc {
    /// The moment this many seconds after 1970 began.
    pub fn of(unix_seconds: u64) -> Self {
        let (days, second) = (unix_seconds / 86_400, unix_seconds % 86_400);
        let days = days + 719_468;
        let (era, day_of_era) = (days / 146_097, days % 146_097);
        let year_of_era =
            (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let month_from_march = (5 * day_of_year + 2) / 153;
        let month = (month_from_march + 2) % 12 + 1;
        Self {
            year: year_of_era + era * 400 + u64::from(month <= 2),
            month,
            day: day_of_year - (153 * month_from_march + 2) / 5 + 1,
            hour: second / 3600,
            minute: second / 60 % 60,
            second: second % 60,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_follow_each_other_through_months_and_leap_years() {
        let mut expected = (1970, 1, 1);
        for day in 0..200_000 {
            let at = Utc::of(day * 86_400 + 86_399);
            assert_eq!((at.year, at.month, at.day), expected);
            assert_eq!((at.hour, at.minute, at.second), (23, 59, 59));
            let leap = at.year.is_multiple_of(4)
                && (!at.year.is_multiple_of(100) || at.year.is_multiple_of(400));
            let days = match at.month {
                2 => 28 + u64::from(leap),
                4 | 6 | 9 | 11 => 30,
                _ => 31,
            };
            expected = match (at.day == days, at.month) {
                (false, _) => (at.year, at.month, at.day + 1),
                (true, 12) => (at.year + 1, 1, 1),
                (true, _) => (at.year, at.month + 1, 1),
            };
        }
    }
}
