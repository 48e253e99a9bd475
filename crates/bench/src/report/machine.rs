//! Facts about this machine and this moment.

use std::fs;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

/// Processor, memory and kernel, as far as the system tells.
pub(super) fn facts() -> Value {
    let text = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let value = |text: &str, name: &str| {
        let line = text.lines().find(|line| line.starts_with(name));
        let value = line.and_then(|line| line.split_once(':'));
        value.map_or(String::new(), |(_, value)| value.trim().to_owned())
    };
    let memory_kb = value(&text("/proc/meminfo"), "MemTotal");
    let memory_kb = memory_kb
        .split_whitespace()
        .next()
        .and_then(|n| n.parse::<u64>().ok());
    json!({
        "processor": value(&text("/proc/cpuinfo"), "model name"),
        "cores": std::thread::available_parallelism().map_or(1, usize::from),
        "memory_mb": memory_kb.unwrap_or(0) / 1024,
        "kernel": text("/proc/sys/kernel/osrelease").trim(),
        "load": text("/proc/loadavg").split_whitespace().take(3).collect::<Vec<_>>().join(" "),
        "kernels": flatwater_index::distance::kernels().name,
    })
}

/// `2026-11-30T23:59:59Z`.
pub(super) fn now() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    utc(since.unwrap_or(Duration::ZERO).as_secs())
}

/// Day and time in the calendar of Gregory.
fn utc(seconds: u64) -> String {
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    // Days are counted from 1 March of the year 0, so that the odd day of a leap year is the last:
    // H. Hinnant, "chrono-compatible low-level date algorithms", for days after 1970.
    let days = days + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let (month, turn) = if month < 10 {
        (month + 3, 0)
    } else {
        (month - 9, 1)
    };
    let year = era * 400 + year + turn;
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_those_of_the_calendar() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_798_675_199, "2026-12-30T23:59:59Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(utc(seconds), text);
        }
    }

    #[test]
    fn this_machine_has_cores_and_memory() {
        let facts = facts();
        assert!(
            facts["cores"].as_u64().unwrap() >= 1 && facts["memory_mb"].as_u64().unwrap() > 100
        );
    }
}
