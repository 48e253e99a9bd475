//! Moments in time: the proto's timestamps as texts, which REST has.

use flatwater_segment::payload::datetime::Datetime;
use qdrant_client::qdrant::Timestamp;

use crate::error::{ApiError, Result};

/// Seconds since 1970 that a timestamp may have by its definition: the years 1 to 9999.
const SECONDS: std::ops::RangeInclusive<i64> = -62_135_596_800..=253_402_300_799;

/// The moment in RFC 3339; what is finer than microseconds is cut off.
///
/// # Errors
/// Seconds or nanoseconds out of their range.
pub(super) fn datetime_text(moment: Timestamp, path: &str) -> Result<String> {
    let Timestamp { seconds, nanos } = moment;
    if !SECONDS.contains(&seconds) || !(0..1_000_000_000).contains(&nanos) {
        return Err(ApiError::Wrong(format!(
            "{path}: {seconds} seconds and {nanos} nanoseconds are no timestamp \
             (seconds from {} to {}, nanoseconds from 0 to 999999999)",
            SECONDS.start(),
            SECONDS.end()
        )));
    }
    let micros = seconds * 1_000_000 + i64::from(nanos) / 1000;
    Ok(Datetime::from_micros(micros).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_are_written_to_the_microsecond() {
        let text = |seconds, nanos| datetime_text(Timestamp { seconds, nanos }, "t").unwrap();
        assert_eq!(text(0, 0), "1970-01-01T00:00:00Z");
        assert_eq!(text(-1, 999_999_999), "1969-12-31T23:59:59.999999Z");
        assert_eq!(text(*SECONDS.start(), 0), "0001-01-01T00:00:00Z");
        assert_eq!(text(*SECONDS.end(), 1_999), "9999-12-31T23:59:59.000001Z");
    }

    #[test]
    fn what_is_no_timestamp_is_refused_with_its_place() {
        for (seconds, nanos) in [(i64::MAX, 0), (i64::MIN, 0), (0, -1), (0, 1_000_000_000)] {
            let text = datetime_text(Timestamp { seconds, nanos }, "a.b")
                .unwrap_err()
                .to_string();
            assert!(
                text.contains("a.b: ") && text.contains("no timestamp"),
                "{text}"
            );
        }
    }
}
