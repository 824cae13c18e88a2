//! Dates of the calendar, in UTC.

/// A moment as people write it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Civil {
    pub(super) year: u64,
    /// From 1 on, as the day.
    pub(super) month: u64,
    pub(super) day: u64,
    pub(super) hour: u64,
    pub(super) minute: u64,
    pub(super) second: u64,
}

/// Of seconds since 1970: Howard Hinnant's way, by eras of 400 years that begin in March.
pub(super) fn civil(seconds: u64) -> Civil {
    let days = seconds / 86_400 + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let shifted = (5 * of_year + 2) / 153;
    let month = if shifted < 10 {
        shifted + 3
    } else {
        shifted - 9
    };
    Civil {
        year: year + era * 400 + u64::from(month <= 2),
        month,
        day: of_year - (153 * shifted + 2) / 5 + 1,
        hour: seconds / 3_600 % 24,
        minute: seconds / 60 % 60,
        second: seconds % 60,
    }
}

#[cfg(test)]
mod tests {
    use super::civil;

    /// Goal: dates are those of the calendar. Method: days around leap years, as `date -u -d @N` has them.
    #[test]
    fn dates_are_those_of_the_calendar() {
        for (seconds, date) in [
            (0, (1970, 1, 1)),
            (951_782_400, (2000, 2, 29)),
            (951_868_800, (2000, 3, 1)),
            (1_709_164_800, (2024, 2, 29)),
            (1_798_761_599, (2026, 12, 31)),
            (4_107_542_400, (2100, 3, 1)),
        ] {
            let civil = civil(seconds);
            assert_eq!((civil.year, civil.month, civil.day), date, "{seconds}");
        }
        let last = civil(1_798_761_599);
        assert_eq!((last.hour, last.minute, last.second), (23, 59, 59));
    }
}
