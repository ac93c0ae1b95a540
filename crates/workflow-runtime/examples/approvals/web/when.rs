//! Times as people read them.

/// `ms` since 1970 as a date and a time of day in UTC.
pub(super) fn utc(ms: u64) -> String {
    let seconds = ms / 1_000;
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = date(days);
    format!("{year:04}-{month:02}-{day:02} {:02}:{:02}:{:02} UTC", second / 3_600, second / 60 % 60, second % 60)
}

/// Year, month and day of the Gregorian calendar, from days since 1970: years are counted from March on, so that the
/// day that some years have more is the last.
fn date(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::utc;

    #[test]
    fn dates_are_those_of_the_calendar() {
        let checks = [
            (0, "1970-01-01 00:00:00 UTC"),
            (951_782_399_999, "2000-02-28 23:59:59 UTC"),
            (951_782_400_000, "2000-02-29 00:00:00 UTC"),
            (1_740_787_200_000, "2025-03-01 00:00:00 UTC"),
            (1_798_761_599_000, "2026-12-31 23:59:59 UTC"),
            (4_107_542_400_000, "2100-03-01 00:00:00 UTC"),
        ];
        for (ms, expected) in checks {
            assert_eq!(utc(ms), expected);
        }
    }
}
