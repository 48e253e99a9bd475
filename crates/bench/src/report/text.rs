//! A run in a few lines, for the terminal.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::Value;

/// Prints a run and says where the rest is.
#[allow(clippy::print_stdout, reason = "a report is what this program is for")]
pub(crate) fn print(run: &Value, folder: &Path) {
    println!("{}\nmore in {}", text(run), folder.display());
}

/// A line for each phase of each trial.
pub(crate) fn text(run: &Value) -> String {
    let mut text = String::new();
    for trial in list(&run["trials"]) {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{}", title(trial));
        for reason in ["not_run", "failed"] {
            if let Some(reason) = trial[reason].as_str() {
                let _ = writeln!(text, "  not whole: {reason}");
            }
        }
        for phase in list(&trial["phases"]) {
            let _ = writeln!(text, "{}", phase_line(phase));
            for why in list(&phase["why_not"]) {
                let _ = writeln!(
                    text,
                    "    does not count: {}",
                    why.as_str().unwrap_or_default()
                );
            }
        }
        if let Some(markers) = trial["freshness"]["markers"].as_u64() {
            let at_once = trial["freshness"]["found_at_once"].as_u64().unwrap_or(0);
            let _ = writeln!(
                text,
                "  {at_once} of {markers} markers found at their acknowledgement"
            );
        }
        for doubt in list(&trial["doubts"]) {
            let _ = writeln!(text, "  ! {}", doubt.as_str().unwrap_or_default());
        }
    }
    text
}

/// What a trial is called.
pub(crate) fn title(trial: &Value) -> String {
    let word = |name: &str| trial[name].as_str().unwrap_or_default();
    let mut title = format!("{} {}", word("configuration"), word("name"));
    if let Some(kind) = trial["loop"].as_str() {
        let _ = write!(title, ", {kind} loop");
    }
    if let Some(rate) = trial["rate"].as_f64() {
        let _ = write!(title, " at {rate}/s");
    }
    match trial["repeat"].as_u64() {
        Some(0) | None => title,
        Some(repeat) => format!("{title}, repeat {}", repeat + 1),
    }
}

fn phase_line(phase: &Value) -> String {
    let ms = |name: &str| phase["latency_ms"][name].as_f64().unwrap_or(0.0);
    let seconds = phase["seconds"].as_f64().unwrap_or(0.0);
    let name = phase["name"].as_str().unwrap_or_default();
    let mut line = format!("  {name:15}{seconds:8.1} s");
    let calls = phase["calls"].as_u64().unwrap_or(0);
    if calls > 0 {
        let _ = write!(
            line,
            " {calls:8} calls  p50 {} p95 {} p99 {} max {} ms",
            ms("p50"),
            ms("p95"),
            ms("p99"),
            ms("max")
        );
    }
    for bad in ["timed_out", "failed", "unsent"] {
        if let Some(count) = phase[bad].as_u64().filter(|count| *count > 0) {
            let _ = write!(line, ", {count} {}", bad.replace('_', " "));
        }
    }
    if let Some(recall) = phase["recall"].as_f64() {
        let _ = write!(line, ", recall {recall}");
    }
    line
}

/// The elements of an array; none of anything else.
pub(crate) fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}
