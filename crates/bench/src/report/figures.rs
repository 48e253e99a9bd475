//! Figures of a run by name, repeats gathered: what `compare` and `gate` work with.

use std::collections::BTreeMap;

use serde_json::Value;

use super::text::list;

/// What is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Better {
    Less,
    More,
}

/// A figure of a phase: its name, where it stands, which way is better.
pub(super) struct Kind {
    pub(super) name: &'static str,
    path: &'static [&'static str],
    pub(super) better: Better,
}

const fn kind(name: &'static str, path: &'static [&'static str], better: Better) -> Kind {
    Kind { name, path, better }
}

/// All figures that are compared.
#[rustfmt::skip]
pub(super) const KINDS: &[Kind] = &[
    kind("seconds", &["seconds"], Better::Less),
    kind("calls_per_s", &["calls_per_s"], Better::More),
    kind("p50", &["latency_ms", "p50"], Better::Less),
    kind("p95", &["latency_ms", "p95"], Better::Less),
    kind("p99", &["latency_ms", "p99"], Better::Less),
    kind("max", &["latency_ms", "max"], Better::Less),
    kind("p50_by_time", &["latency_by_time_ms", "p50"], Better::Less),
    kind("p95_by_time", &["latency_by_time_ms", "p95"], Better::Less),
    kind("slow", &["slow", "count"], Better::Less),
    kind("recall", &["recall"], Better::More),
    kind("cpu_s", &["server", "cpu_s"], Better::Less),
    kind("written_mb", &["server", "written_mb"], Better::Less),
];

/// Phases whose length is of interest: others last as long as they were told to.
const TIMED: [&str; 6] = [
    "upload",
    "draining",
    "late indexing",
    "merge",
    "cleaning up",
    "indexing",
];

/// What a trial and phase are called, without the number of the repeat.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) trial: String,
    pub(super) phase: String,
}

/// Values of all repeats by place and name of the figure.
pub(super) type Figures = BTreeMap<(Place, &'static str), Vec<f64>>;

/// Of all trials that ran.
pub(super) fn of(run: &Value) -> Figures {
    let mut figures = Figures::new();
    for trial in list(&run["trials"]) {
        for phase in list(&trial["phases"]) {
            let place = Place {
                trial: trial_name(trial),
                phase: phase_name(phase),
            };
            let is_timed = TIMED.iter().any(|name| phase["name"] == *name);
            let has_calls = phase["calls"].as_u64().is_some_and(|calls| calls > 0);
            for kind in KINDS {
                let is_of_calls =
                    ["latency_ms", "latency_by_time_ms", "calls_per_s"].contains(&kind.path[0]);
                if (kind.name == "seconds" && !is_timed) || (is_of_calls && !has_calls) {
                    continue;
                }
                let value = kind.path.iter().fold(phase, |value, key| &value[*key]);
                if let Some(value) = value.as_f64() {
                    figures
                        .entry((place.clone(), kind.name))
                        .or_default()
                        .push(value);
                }
            }
        }
    }
    figures
}

fn trial_name(trial: &Value) -> String {
    let words = ["configuration", "loop"].map(|key| trial[key].as_str().unwrap_or_default());
    words.join(" ").trim().to_owned()
}

fn phase_name(phase: &Value) -> String {
    let name = phase["name"].as_str().unwrap_or_default();
    match phase["clients"].as_u64() {
        Some(clients) => format!("{name} {clients} clients"),
        None => name.to_owned(),
    }
}

/// The middle of some values; of an even number the mean of the two in the middle.
pub(super) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.get(middle) {
        None => 0.0,
        Some(upper) if sorted.len() % 2 == 1 => *upper,
        Some(upper) => f64::midpoint(sorted[middle - 1], *upper),
    }
}

/// How far the repeats lie apart: the greatest over the least.
pub(super) fn spread(values: &[f64]) -> Option<f64> {
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let greatest = values.iter().copied().fold(0.0, f64::max);
    (values.len() > 1 && least > 0.0).then(|| greatest / least)
}

/// How much worse `value` is than `base`: above 1 is worse, below better.
pub(super) fn worse_by(better: Better, value: f64, base: f64) -> f64 {
    let (over, under) = match better {
        Better::Less => (value, base),
        Better::More => (base, value),
    };
    if over == under {
        return 1.0;
    }
    over / under
}
