//! Milliseconds since 1970 as RFC 3339 in UTC.

/// Text like `2026-02-03T04:05:06.789Z`.
///
/// Days to a date by counting in eras of 400 years that start on 1 March, so that the leap day is
/// the last day of a year (Hinnant, "chrono-compatible low-level date algorithms", `civil_from_days`).
pub(crate) fn rfc3339(since_1970_ms: u64) -> String {
    const DAY_MS: u64 = 86_400_000;
    const DAYS_TO_1970_FROM_ERA: u64 = 719_468;
    const ERA_DAYS: u64 = 146_097;
    let in_day = since_1970_ms % DAY_MS;
    let day = since_1970_ms / DAY_MS + DAYS_TO_1970_FROM_ERA;
    let (era, of_era) = (day / ERA_DAYS, day % ERA_DAYS);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * of_year + 2) / 153;
    let day_of_month = of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 {
        shifted_month + 3
    } else {
        shifted_month - 9
    };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    let (hours, minutes) = (in_day / 3_600_000, in_day / 60_000 % 60);
    let (seconds, ms) = (in_day / 1_000 % 60, in_day % 1_000);
    format!("{year:04}-{month:02}-{day_of_month:02}T{hours:02}:{minutes:02}:{seconds:02}.{ms:03}Z")
}

#[cfg(test)]
mod tests {
    use super::rfc3339;

    #[test]
    fn known_moments_are_written_right() {
        for (ms, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_399_999, "2000-02-28T23:59:59.999Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (951_868_800_000, "2000-03-01T00:00:00.000Z"),
            (1_709_164_800_123, "2024-02-29T00:00:00.123Z"),
            (1_735_689_599_000, "2024-12-31T23:59:59.000Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
        ] {
            assert_eq!(rfc3339(ms), text);
        }
    }
}
