//! The only source of time in the engine.

use std::time::{SystemTime, UNIX_EPOCH};

/// Milliseconds since 1970, for reports. A clock before 1970 reads as 0.
#[must_use]
pub fn unix_ms() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| {
            u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
        })
}
