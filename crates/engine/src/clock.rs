//! The only source of time in the engine.

use std::time::{SystemTime, UNIX_EPOCH};

use uuid::{Uuid, Version};

/// Milliseconds since 1970, for reports. A clock before 1970 reads as 0.
#[must_use]
pub fn unix_ms() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| {
            u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
        })
}

/// A new id that tells when it was made (a UUID of version 7, RFC 9562).
#[must_use]
pub fn dated_id() -> Uuid {
    Uuid::now_v7()
}

/// When an id was made, milliseconds since 1970; none where the id does not tell.
#[must_use]
pub fn moment_of(id: Uuid) -> Option<u64> {
    if id.get_version() != Some(Version::SortRand) {
        return None;
    }
    let (seconds, nanos) = id.get_timestamp()?.to_unix();
    Some(seconds.saturating_mul(1_000) + u64::from(nanos / 1_000_000))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dated_id_tells_its_moment_and_another_id_none() {
        let before = unix_ms();
        let moment = moment_of(dated_id()).unwrap();
        assert!((before..=unix_ms()).contains(&moment), "{before} {moment}");
        assert_eq!(moment_of(Uuid::new_v4()), None);
        assert_eq!(moment_of(Uuid::from_u128(5)), None);
    }
}
