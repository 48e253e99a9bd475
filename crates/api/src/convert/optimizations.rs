//! `GET /collections/{c}/optimizations`: jobs at work, planned and done.

use flatwater_engine::collection::info::{
    JobReport, OptimizationReport, Optimizer, Outcome, Progress,
};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::text;
use super::time::rfc3339;
use crate::error::{ApiError, Result};
use crate::fields::short;

/// Finished jobs shown when `completed_limit` is not given, as in Qdrant.
pub const COMPLETED_LIMIT_DEFAULT: usize = 16;

/// Which optional parts of the answer were asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Parts {
    /// Planned jobs.
    pub queued: bool,
    /// Finished jobs, at most so many.
    pub completed: Option<usize>,
    /// Segments that need nothing.
    pub idle_segments: bool,
}

/// Reads the query parameter `with`, a list joined by commas.
///
/// # Errors
/// An unknown part (400).
pub fn decode_parts(with: &str, completed_limit: usize) -> Result<Parts> {
    let mut parts = Parts::default();
    for part in with
        .split(',')
        .map(str::trim)
        .filter(|part| !part.is_empty())
    {
        match part {
            "queued" => parts.queued = true,
            "completed" => parts.completed = Some(completed_limit),
            "idle_segments" => parts.idle_segments = true,
            unknown => {
                return Err(ApiError::Wrong(format!(
                    "Unknown field in 'with' parameter: {}",
                    short(unknown)
                )));
            }
        }
    }
    Ok(parts)
}

/// JSON of the report.
#[must_use]
pub fn encode_report(report: &OptimizationReport, parts: Parts) -> Vec<u8> {
    let queued_segments = || report.queued.iter().flat_map(|(_, segments)| segments);
    let mut shown = Map::new();
    shown.insert(
        "summary".to_owned(),
        json!({
            "queued_optimizations": report.queued.len(),
            "queued_segments": queued_segments().count(),
            "queued_points": queued_segments().map(|(_, points)| points).sum::<u64>(),
            "idle_segments": report.idle_segments.len(),
        }),
    );
    shown.insert(
        "running".to_owned(),
        report.running.iter().map(job).collect(),
    );
    if parts.queued {
        let wish = |(optimizer, inputs): &(Optimizer, Vec<(Uuid, u64)>)| json!({ "optimizer": optimizer.name(), "segments": segments(inputs) });
        shown.insert(
            "queued".to_owned(),
            report.queued.iter().map(wish).collect(),
        );
    }
    if let Some(limit) = parts.completed {
        let jobs = report.completed.iter().take(limit).map(job).collect();
        shown.insert("completed".to_owned(), jobs);
    }
    if parts.idle_segments {
        shown.insert("idle_segments".to_owned(), segments(&report.idle_segments));
    }
    text(&Value::Object(shown))
}

fn segments(list: &[(Uuid, u64)]) -> Value {
    list.iter()
        .map(|(uuid, points)| json!({ "uuid": uuid, "points_count": points }))
        .collect()
}

pub(super) fn job(report: &JobReport) -> Value {
    let status = match &report.outcome {
        None => json!("optimizing"),
        Some(Outcome::Done) => json!("done"),
        Some(Outcome::Cancelled(reason)) => json!({ "cancelled": reason }),
        Some(Outcome::Failed(error)) => json!({ "error": error }),
    };
    json!({
        "uuid": report.id,
        "optimizer": report.optimizer.name(),
        "status": status,
        "segments": segments(&report.segments),
        "progress": progress(&report.progress),
    })
}

/// Qdrant's tree of steps; what a step has not is left out.
fn progress(step: &Progress) -> Value {
    let mut node = Map::new();
    node.insert("name".to_owned(), json!(step.name));
    if let Some(begin) = step.started_at_ms {
        node.insert("started_at".to_owned(), json!(rfc3339(begin)));
    }
    if let (Some(begin), Some(end)) = (step.started_at_ms, step.finished_at_ms) {
        let took_ms = end.saturating_sub(begin);
        node.insert("finished_at".to_owned(), json!(rfc3339(end)));
        node.insert("duration_sec".to_owned(), json!(took_ms as f64 / 1_000.0));
    }
    for (key, number) in [("done", step.done), ("total", step.total)] {
        if let Some(number) = number {
            node.insert(key.to_owned(), json!(number));
        }
    }
    if !step.children.is_empty() {
        let children = step.children.iter().map(progress).collect();
        node.insert("children".to_owned(), children);
    }
    Value::Object(node)
}

#[cfg(test)]
mod tests {
    use flatwater_engine::collection::work::{Work, WorkKind};

    use super::*;

    fn report() -> OptimizationReport {
        let segment = (Uuid::from_u128(2), 1000);
        let begun = |name: &str| Progress {
            name: name.to_owned(),
            started_at_ms: Some(1_709_164_800_123),
            ..Progress::default()
        };
        let mut graph = begun("main_graph");
        (graph.done, graph.total) = (Some(1234), Some(20_000));
        let mut index = begun("vector_index");
        index.children.push(graph);
        let mut root = begun("Segment Optimizing");
        root.children.push(index);
        let running = JobReport {
            id: Uuid::from_u128(1),
            optimizer: Optimizer::Indexing,
            outcome: None,
            segments: vec![segment],
            progress: root,
            work: Work::whole(WorkKind::Indexing, 20_000, 4),
        };
        let mut done = JobReport {
            outcome: Some(Outcome::Done),
            ..running.clone()
        };
        done.progress.finished_at_ms = Some(1_709_164_800_633);
        let failed = JobReport {
            outcome: Some(Outcome::Failed("disk".to_owned())),
            ..done.clone()
        };
        let cancelled = JobReport {
            outcome: Some(Outcome::Cancelled("on request".to_owned())),
            ..done.clone()
        };
        OptimizationReport {
            running: vec![running],
            queued: vec![(Optimizer::Merge, vec![segment, segment])],
            completed: vec![done, failed, cancelled],
            idle_segments: vec![segment],
        }
    }

    fn shown(parts: Parts) -> Value {
        serde_json::from_slice(&encode_report(&report(), parts)).unwrap()
    }

    #[test]
    fn optional_parts_are_there_only_when_asked_for() {
        let bare = shown(Parts::default());
        assert_eq!(
            bare.as_object().unwrap().keys().collect::<Vec<_>>(),
            ["running", "summary"]
        );
        assert_eq!(
            bare["summary"],
            json!({"queued_optimizations": 1, "queued_segments": 2, "queued_points": 2000,
                   "idle_segments": 1})
        );
        let all = shown(decode_parts(" queued, completed,idle_segments", 16).unwrap());
        assert_eq!(all["queued"][0]["optimizer"], json!("merge"));
        assert_eq!(
            all["queued"][0]["segments"].as_array().map(Vec::len),
            Some(2)
        );
        assert_eq!(all["completed"].as_array().map(Vec::len), Some(3));
        assert_eq!(all["completed"][0]["status"], json!("done"));
        assert_eq!(all["completed"][1]["status"], json!({"error": "disk"}));
        let cancelled = &all["completed"][2]["status"];
        assert_eq!(*cancelled, json!({"cancelled": "on request"}));
        assert_eq!(all["idle_segments"][0]["points_count"], json!(1000));
        let one = shown(decode_parts("completed", 1).unwrap());
        assert_eq!(one["completed"].as_array().map(Vec::len), Some(1));
    }

    #[test]
    fn a_running_job_shows_rows_done_and_in_all() {
        let job = &shown(Parts::default())["running"][0];
        assert_eq!(job["status"], json!("optimizing"));
        assert_eq!(job["progress"]["name"], json!("Segment Optimizing"));
        assert_eq!(job["progress"].get("finished_at"), None);
        let graph = &job["progress"]["children"][0]["children"][0];
        assert_eq!(
            *graph,
            json!({"name": "main_graph", "started_at": "2024-02-29T00:00:00.123Z",
                   "done": 1234, "total": 20000})
        );
        let done = shown(decode_parts("completed", 16).unwrap());
        assert_eq!(
            done["completed"][0]["progress"]["duration_sec"],
            json!(0.51)
        );
    }

    #[test]
    fn an_unknown_part_is_named() {
        let text = decode_parts("queued,x", 16).unwrap_err().to_string();
        assert_eq!(text, "Wrong input: Unknown field in 'with' parameter: x");
        assert_eq!(decode_parts("", 16).unwrap(), Parts::default());
    }
}
