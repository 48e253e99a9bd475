//! Figures of samples.
//!
//! **By count**: percentiles over calls, from an HDR histogram of three digits.
//!
//! **By time**: every second weighs the same, however many calls fell into it; a call belongs to each
//! second in which it waited. A closed loop sends few calls in slow seconds, and percentiles by count
//! then tell of the fast ones; these tell what somebody met who came at any moment.

use std::time::Duration;

use hdrhistogram::Histogram;
use serde_json::{Value, json};

use super::sample::{Outcome, Sample};

/// Longest latency that is told apart: an hour, in nanoseconds.
const LATENCY_MAX_NS: u64 = 3_600_000_000_000;
/// Digits that a histogram keeps.
const DIGITS: u8 = 3;

/// Shares that reports show.
pub(crate) const SHARES: [(&str, f64); 5] = [
    ("p50", 0.5),
    ("p90", 0.9),
    ("p95", 0.95),
    ("p99", 0.99),
    ("p999", 0.999),
];

/// Figures of one phase.
#[derive(Clone, Debug)]
pub(crate) struct Summary {
    latency: Histogram<u64>,
    server: Histogram<u64>,
    own: Histogram<u64>,
    timed_out: usize,
    failed: usize,
    unsent: usize,
    by_time: Vec<(Duration, f64)>,
    mean: Duration,
    max: Duration,
}

/// An empty histogram of latencies.
pub(crate) fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, LATENCY_MAX_NS, DIGITS)
        .expect("bounds and digits are constants that the crate allows")
}

/// Adds a time; longer than an hour counts as an hour.
pub(crate) fn record(histogram: &mut Histogram<u64>, time: Duration) {
    let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    histogram.saturating_record(nanos.max(1));
}

impl Summary {
    /// Of samples in any order.
    pub(crate) fn of(samples: &[Sample]) -> Self {
        let (mut latency, mut server, mut own) = (histogram(), histogram(), histogram());
        let mut total = Duration::ZERO;
        for sample in samples {
            record(&mut latency, sample.latency());
            total += sample.latency();
            if sample.outcome == Outcome::Answered {
                record(&mut own, sample.own);
            }
            if let Some(time) = sample.server {
                record(&mut server, time);
            }
        }
        let count = |outcome| samples.iter().filter(|s| s.outcome == outcome).count();
        Self {
            latency,
            server,
            own,
            timed_out: count(Outcome::TimedOut),
            failed: count(Outcome::Failed),
            unsent: count(Outcome::Unsent),
            by_time: by_time(samples),
            mean: total.checked_div(samples.len() as u32).unwrap_or_default(),
            max: samples
                .iter()
                .map(Sample::latency)
                .max()
                .unwrap_or_default(),
        }
    }

    /// All calls, answered or not.
    pub(crate) fn count(&self) -> u64 {
        self.latency.len()
    }

    /// Share of calls, 0 to 1, to milliseconds by count.
    pub(crate) fn at(&self, share: f64) -> f64 {
        ms(self.latency.value_at_quantile(share))
    }

    /// The longest.
    pub(crate) fn max_ms(&self) -> f64 {
        self.max.as_secs_f64() * 1e3
    }

    /// Share of the time, 0 to 1, to milliseconds.
    pub(crate) fn at_time(&self, share: f64) -> f64 {
        let total: f64 = self.by_time.iter().map(|(_, weight)| weight).sum();
        let mut sum = 0.0;
        let reached = self.by_time.iter().find(|(_, weight)| {
            sum += weight;
            // Weights are fractions; their sum may fall short by rounding.
            sum >= share * total - 1e-9
        });
        let last = self.by_time.last();
        reached
            .or(last)
            .map_or(0.0, |(time, _)| time.as_secs_f64() * 1e3)
    }

    /// All figures, in milliseconds.
    pub(crate) fn json(&self) -> Value {
        let shares = |of: &dyn Fn(f64) -> f64| -> serde_json::Map<String, Value> {
            let figure =
                |(name, share): &(&str, f64)| ((*name).to_owned(), json!(round(of(*share))));
            SHARES.iter().map(figure).collect()
        };
        let mut by_count = shares(&|share| self.at(share));
        by_count.insert(
            String::from("mean"),
            json!(round(self.mean.as_secs_f64() * 1e3)),
        );
        by_count.insert(String::from("max"), json!(round(self.max_ms())));
        let inside = |histogram: &Histogram<u64>| match histogram.len() {
            0 => Value::Null,
            _ => Value::Object(shares(&|share| ms(histogram.value_at_quantile(share)))),
        };
        json!({
            "calls": self.count(),
            "timed_out": self.timed_out,
            "failed": self.failed,
            "unsent": self.unsent,
            "latency_ms": by_count,
            "latency_by_time_ms": shares(&|share| self.at_time(share)),
            "server_ms": inside(&self.server),
            "client_work_ms": inside(&self.own),
        })
    }
}

/// Latencies with their weights, ascending. Each second that some call waited in gives its calls
/// together the weight 1.
fn by_time(samples: &[Sample]) -> Vec<(Duration, f64)> {
    let seconds =
        |sample: &Sample| sample.due.as_secs()..=sample.ended.as_secs().max(sample.due.as_secs());
    let mut in_second = std::collections::HashMap::<u64, f64>::new();
    for sample in samples {
        for second in seconds(sample) {
            *in_second.entry(second).or_default() += 1.0;
        }
    }
    let weight = |sample: &Sample| -> f64 { seconds(sample).map(|s| 1.0 / in_second[&s]).sum() };
    let mut weighted: Vec<_> = samples.iter().map(|s| (s.latency(), weight(s))).collect();
    weighted.sort_by_key(|(latency, _)| *latency);
    weighted
}

fn ms(nanos: u64) -> f64 {
    nanos as f64 / 1e6
}

/// Four digits are more than any of these figures is worth.
pub(crate) fn round(x: f64) -> f64 {
    if x == 0.0 || !x.is_finite() {
        return 0.0;
    }
    let scale = 10f64.powf(4.0 - x.abs().log10().ceil());
    (x * scale).round() / scale
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(due_ms: u64, latency_ms: u64) -> Sample {
        let due = Duration::from_millis(due_ms);
        Sample {
            due,
            begun: due,
            ended: due + Duration::from_millis(latency_ms),
            outcome: Outcome::Answered,
            server: Some(Duration::from_millis(latency_ms / 2)),
            own: Duration::ZERO,
            query: 0,
        }
    }

    #[test]
    fn percentiles_of_one_to_a_thousand_are_themselves() {
        let samples: Vec<Sample> = (1..=1000).map(|i| sample(0, i)).collect();
        let summary = Summary::of(&samples);
        for (_, share) in SHARES {
            let (got, right) = (summary.at(share), (share * 1000.0).round());
            assert!((got / right - 1.0).abs() < 2e-3, "{share}: {got} {right}");
        }
        assert_eq!((summary.max_ms(), summary.count()), (1000.0, 1000));
        let json = summary.json();
        assert_eq!(json["latency_ms"]["mean"], 500.5);
        let server = json["server_ms"]["p50"].as_f64().unwrap();
        assert!((server / 250.0 - 1.0).abs() < 2e-3, "{server}");
    }

    #[test]
    fn one_sample_is_every_percentile_and_none_is_zero() {
        let one = Summary::of(&[sample(5, 8)]);
        for (_, share) in SHARES {
            assert!((one.at(share) - 8.0).abs() < 0.01);
            assert_eq!(one.at_time(share), 8.0);
        }
        let none = Summary::of(&[]);
        assert_eq!(
            (none.count(), none.at(0.5), none.at_time(0.5)),
            (0, 0.0, 0.0)
        );
    }

    /// Nine seconds of one slow call each, one second of a thousand fast ones.
    #[test]
    fn by_time_a_second_counts_once_however_many_calls_it_had() {
        let slow = (0..9).map(|s| sample(s * 1000, 900));
        let fast = (0..1000).map(|i| sample(9000 + i % 900, 1));
        let samples: Vec<Sample> = slow.chain(fast).collect();
        let summary = Summary::of(&samples);
        assert!((summary.at(0.95) - 1.0).abs() < 0.01);
        assert_eq!(summary.at_time(0.5), 900.0);
        assert_eq!(summary.at_time(0.05), 1.0);
        // A call of ten seconds is in ten of them.
        let long: Vec<Sample> = [sample(0, 9_500)]
            .into_iter()
            .chain((0..100).map(|i| sample(9_600 + i, 1)))
            .collect();
        assert_eq!(Summary::of(&long).at_time(0.5), 9_500.0);
    }

    #[test]
    fn figures_have_four_digits() {
        assert_eq!(
            (round(1.234_56), round(123_456.0), round(0.0)),
            (1.235, 123_500.0, 0.0)
        );
    }
}
