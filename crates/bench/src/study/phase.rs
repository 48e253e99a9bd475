//! One part of a trial: what was asked of the server in it, and what that gave.

use std::time::Duration;

use serde_json::{Value, json};

use super::watch::seconds;
use crate::dataset::truth::{self, Answers};
use crate::measure::load::Driven;
use crate::measure::reading::Reading;
use crate::measure::sample::Sample;
use crate::measure::summary::{Summary, histogram, record, round};

/// A part of a trial.
#[derive(Debug)]
pub(super) struct Phase {
    pub(super) name: &'static str,
    pub(super) from: Duration,
    pub(super) to: Duration,
    pub(super) before: Reading,
    pub(super) after: Reading,
    pub(super) driven: Driven,
    /// Facts that only this kind of phase has.
    pub(super) facts: serde_json::Map<String, Value>,
}

impl Phase {
    /// How long it lasted.
    pub(super) fn length(&self) -> Duration {
        self.to.saturating_sub(self.from)
    }

    /// All figures of it.
    pub(super) fn json(&self) -> Value {
        let mut pacing = histogram();
        for late in &self.driven.pacing {
            record(&mut pacing, *late);
        }
        let late_ms = |share: f64| round(pacing.value_at_quantile(share) as f64 / 1e6);
        let took = self.length().as_secs_f64().max(1e-9);
        let mut shown = Summary::of(&self.driven.samples).json();
        if let Some(shown) = shown.as_object_mut() {
            shown.insert(String::from("name"), json!(self.name));
            shown.insert(String::from("from"), json!(seconds(self.from)));
            shown.insert(String::from("to"), json!(seconds(self.to)));
            shown.insert(String::from("seconds"), json!(seconds(self.length())));
            let rate = self.driven.samples.len() as f64 / took;
            shown.insert(String::from("calls_per_s"), json!(round(rate)));
            let used = self.after.server.since(self.before.server);
            shown.insert(String::from("server"), used);
            let own = self.after.own.cpu_s - self.before.own.cpu_s;
            if self.after.is_apart {
                shown.insert(String::from("client_cpu_s"), json!(round(own)));
            }
            if !self.driven.pacing.is_empty() {
                let error = json!({ "p50": late_ms(0.5), "p99": late_ms(0.99) });
                shown.insert(String::from("pacing_error_ms"), error);
            }
            let doubts = self.after.doubts_since(&self.before);
            if !doubts.is_empty() {
                shown.insert(String::from("doubts"), json!(doubts));
            }
            if let Some(failure) = &self.driven.failure {
                shown.insert(String::from("first_failure"), json!(failure));
            }
            shown.extend(self.facts.clone());
        }
        shown
    }

    /// Mean recall of the answers that are kept, over rows `is_known`.
    pub(super) fn recall(&self, right: &Answers, is_known: impl Fn(u64) -> bool) -> Option<f64> {
        let of = |answer: &crate::measure::load::Answer| {
            let right = right.get(answer.call as usize % right.len().max(1))?;
            // With a filter a query may have no right answer at all; it says nothing.
            (!right.is_empty()).then(|| truth::recall(&answer.ids, right, &is_known))
        };
        let recalls: Vec<f64> = self.driven.answers.iter().filter_map(of).collect();
        let count = recalls.len();
        (count > 0).then(|| recalls.iter().sum::<f64>() / count as f64)
    }
}

/// Latency of each second: what a chart over time shows.
pub(super) fn by_second(phases: &[Phase]) -> Vec<Value> {
    let mut rows = Vec::new();
    for phase in phases {
        let mut samples: Vec<&Sample> = phase.driven.samples.iter().collect();
        samples.sort_by_key(|sample| sample.due);
        for chunk in samples.chunk_by(|a, b| a.due.as_secs() == b.due.as_secs()) {
            let of_second: Vec<Sample> = chunk.iter().map(|sample| **sample).collect();
            let summary = Summary::of(&of_second);
            rows.push(json!({
                "t": of_second[0].due.as_secs(),
                "phase": phase.name,
                "calls": summary.count(),
                "p50": round(summary.at(0.5)),
                "p95": round(summary.at(0.95)),
                "max": round(summary.max_ms()),
            }));
        }
    }
    rows
}
