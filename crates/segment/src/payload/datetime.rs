//! Moments in time, as payloads and filters spell them.
//!
//! A moment is a number of microseconds since 1970 in UTC; finer digits are cut off. Read are RFC 3339
//! and the looser forms that Qdrant reads too:
//!
//! ```text
//! moment = date [ ("T" | "t" | " ") time [ zone ] ]     without a zone: UTC
//!        | date " " hour ":" minute
//! date   = year "-" month "-" day
//! time   = hour ":" minute ":" second [ "." digits ]
//! zone   = [ " " ] ( "Z" | "z" | "UTC" | ("+" | "-") hour [ [ ":" ] minute ] )
//! ```

use std::fmt;

/// Microseconds of a second.
const SECOND_US: i64 = 1_000_000;

/// Microseconds of a day.
const DAY_US: i64 = 86_400 * SECOND_US;

/// A moment: microseconds since 1970-01-01T00:00:00Z. Ordered by time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Datetime(i64);

impl Datetime {
    /// The moment so many microseconds after 1970.
    #[must_use]
    pub fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    /// Microseconds since 1970.
    #[must_use]
    pub fn micros(self) -> i64 {
        self.0
    }

    /// The moment that `text` spells, if it spells one.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut cursor = Cursor(text);
        let year = cursor.number(4, 4)?;
        let month = cursor.after("-")?.number(1, 2)?;
        let day = cursor.after("-")?.number(1, 2)?;
        let days = days_since_1970(year, month, day)?;
        if cursor.is_done() {
            return Some(Self(days * DAY_US));
        }
        let is_spaced = cursor.0.starts_with(' ');
        if !is_spaced && !cursor.0.starts_with(['T', 't']) {
            return None;
        }
        cursor.0 = &cursor.0[1..];
        let hour = cursor.number(1, 2)?;
        let minute = cursor.after(":")?.number(1, 2)?;
        if hour > 23 || minute > 59 {
            return None;
        }
        let minutes = days * 1440 + hour * 60 + minute;
        if is_spaced && cursor.is_done() {
            return Some(Self(minutes * 60 * SECOND_US));
        }
        let second = cursor.after(":")?.number(1, 2)?;
        // 60 is a leap second, which falls together with the one after it.
        if second > 60 {
            return None;
        }
        let fraction_us = cursor.fraction()?;
        let offset_minutes = if cursor.is_done() { 0 } else { cursor.zone()? };
        let seconds = (minutes - offset_minutes) * 60 + second;
        cursor
            .is_done()
            .then(|| Self(seconds * SECOND_US + fraction_us))
    }
}

/// RFC 3339 in UTC, with microseconds where they are not 0. Reads back, for years of four digits.
impl fmt::Display for Datetime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = civil_date(self.0.div_euclid(DAY_US));
        let in_day = self.0.rem_euclid(DAY_US);
        let seconds = in_day / SECOND_US;
        let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
        write!(
            f,
            "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}"
        )?;
        match in_day % SECOND_US {
            0 => f.write_str("Z"),
            micros => write!(f, ".{micros:06}Z"),
        }
    }
}

/// What is left to read.
struct Cursor<'t>(&'t str);

impl Cursor<'_> {
    fn is_done(&self) -> bool {
        self.0.is_empty()
    }

    /// Passes over `text`, which must come next.
    fn after(&mut self, text: &str) -> Option<&mut Self> {
        self.0 = self.0.strip_prefix(text)?;
        Some(self)
    }

    /// Reads as many digits as come, at least `least` and at most `most`.
    fn number(&mut self, least: usize, most: usize) -> Option<i64> {
        let digits = self.digits(most);
        (digits.len() >= least).then(|| {
            digits
                .bytes()
                .fold(0, |number, digit| number * 10 + i64::from(digit - b'0'))
        })
    }

    fn digits(&mut self, most: usize) -> &str {
        let run = self.0.bytes().take_while(u8::is_ascii_digit);
        let (digits, rest) = self.0.split_at(run.take(most).count());
        self.0 = rest;
        digits
    }

    /// Microseconds of ".digits", 0 without; what is finer is cut off.
    fn fraction(&mut self) -> Option<i64> {
        const DIGITS: usize = 6;
        if self.after(".").is_none() {
            return Some(0);
        }
        let digits = self.digits(usize::MAX);
        let first = digits.bytes().chain(std::iter::repeat(b'0')).take(DIGITS);
        let micros = first.fold(0, |number, digit| number * 10 + i64::from(digit - b'0'));
        (!digits.is_empty()).then_some(micros)
    }

    /// Minutes that the zone is ahead of UTC.
    fn zone(&mut self) -> Option<i64> {
        self.0 = self.0.strip_prefix(' ').unwrap_or(self.0);
        if ["Z", "z", "UTC"]
            .into_iter()
            .any(|name| self.after(name).is_some())
        {
            return Some(0);
        }
        let sign = if self.after("+").is_some() {
            1
        } else {
            self.after("-")?;
            -1
        };
        let hours = self.number(2, 2)?;
        let has_colon = self.after(":").is_some();
        let minutes = if self.is_done() && !has_colon {
            0
        } else {
            self.number(2, 2)?
        };
        (hours <= 23 && minutes <= 59).then_some(sign * (hours * 60 + minutes))
    }
}

/// Days from 1970-01-01 to a date, if there is such a date; counted in eras of 400 years that start on
/// 1 March, so that the leap day is the last of its year (Hinnant, "chrono-compatible low-level date
/// algorithms", `days_from_civil`).
fn days_since_1970(year: i64, month: i64, day: i64) -> Option<i64> {
    let is_leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    let days_of_month = match month {
        4 | 6 | 9 | 11 => 30,
        2 => 28 + i64::from(is_leap),
        1..=12 => 31,
        _ => return None,
    };
    if !(1..=days_of_month).contains(&day) {
        return None;
    }
    let year = if month <= 2 { year - 1 } else { year };
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + of_year;
    Some(era * ERA_DAYS + of_era - DAYS_TO_1970_FROM_ERA)
}

const ERA_DAYS: i64 = 146_097;
const DAYS_TO_1970_FROM_ERA: i64 = 719_468;

/// Year, month and day of a number of days since 1970 (as above, `civil_from_days`).
fn civil_date(days: i64) -> (i64, i64, i64) {
    let days = days + DAYS_TO_1970_FROM_ERA;
    let (era, of_era) = (days.div_euclid(ERA_DAYS), days.rem_euclid(ERA_DAYS));
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = (shifted_month + 2) % 12 + 1;
    (era * 400 + year_of_era + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn micros(text: &str) -> Option<i64> {
        Datetime::parse(text).map(Datetime::micros)
    }

    #[test]
    fn one_moment_has_many_spellings() {
        for text in [
            "2024-02-29T12:30:05Z",
            "2024-02-29t12:30:05z",
            "2024-02-29 12:30:05Z",
            "2024-02-29T12:30:05",
            "2024-02-29 12:30:05",
            "2024-2-29 12:30:5",
            "2024-02-29T12:30:05.000000000Z",
            "2024-02-29T14:30:05+02:00",
            "2024-02-29T14:30:05+0200",
            "2024-02-29T14:30:05+02",
            "2024-02-29 07:00:05 -05:30",
            "2024-02-29 12:30:05 UTC",
            "2024-03-01T00:30:05+12:00",
        ] {
            assert_eq!(micros(text), Some(1_709_209_805_000_000), "{text}");
        }
        assert_eq!(micros("2024-02-29"), Some(1_709_164_800_000_000));
        assert_eq!(micros("2024-02-29 12:30"), Some(1_709_209_800_000_000));
        assert_eq!(micros("1969-12-31T23:59:59.999999Z"), Some(-1));
        assert_eq!(micros("1970-01-01T00:00:00.1234567Z"), Some(123_456));
        assert_eq!(
            micros("2016-12-31T23:59:60Z"),
            micros("2017-01-01T00:00:00Z")
        );
    }

    #[test]
    fn what_is_no_moment_is_refused() {
        for text in [
            "",
            "2024",
            "2024-01",
            "24-01-01",
            "2023-02-29",
            "1900-02-29",
            "2024-13-01",
            "2024-00-01",
            "2024-01-32",
            "2024-01-00",
            "2024-01-01T",
            "2024-01-01T10",
            "2024-01-01T10:00",
            "2024-01-01T24:00:00Z",
            "2024-01-01T10:60:00Z",
            "2024-01-01T10:00:61Z",
            "2024-01-01T10:00:00.Z",
            "2024-01-01T10:00:00+1",
            "2024-01-01T10:00:00+24:00",
            "2024-01-01T10:00:00+01:",
            "2024-01-01T10:00:00Zulu",
            "2024-01-01Z",
            " 2024-01-01",
            "2024-01-01 ",
            "2024-01-01\u{e9}10:00:00",
            "1709209805",
            "yesterday",
        ] {
            assert_eq!(micros(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_moment_of_a_four_digit_year_reads_back_what_it_prints(
            // 0000-01-01 to 9999-12-31
            micros in -62_167_219_200_000_000..253_402_300_800_000_000_i64,
        ) {
            let moment = Datetime::from_micros(micros);
            prop_assert_eq!(Datetime::parse(&moment.to_string()), Some(moment));
        }

        #[test]
        fn any_text_is_read_without_a_panic(
            text in r"[0-9TtZzUC:+\-. \u{e9}]{0,32}",
            near in r"[0-9]{4}-[0-2]?[0-9]-[0-3]?[0-9]([Tt ][0-2]?[0-9]:[0-6][0-9](:[0-6][0-9](\.[0-9]{0,9})?)?)?( ?(Z|z|UTC|[+-][0-2][0-9](:?[0-9]{2})?))?",
        ) {
            let _is_read = Datetime::parse(&text);
            if let Some(moment) = Datetime::parse(&near) {
                // A zone may lead out of the years of four digits, which is another spelling.
                let year = moment.micros().div_euclid(DAY_US).div_euclid(365);
                if (-1960..8000).contains(&year) {
                    prop_assert_eq!(Datetime::parse(&moment.to_string()), Some(moment));
                }
            }
        }
    }
}
