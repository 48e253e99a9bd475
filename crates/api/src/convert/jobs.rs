//! Background work with its price, below `/ext/`: jobs, and plans that are not run.

use flatwater_engine::collection::counts::Counts;
use flatwater_engine::collection::work::{
    Basis, DryRun, Estimate, Input, JobsReport, PricedStep, Step,
};
use flatwater_engine::config::collection::CollectionConfig;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::optimizations::job;
use super::patch::decode_patch;
use super::text;
use crate::error::{ApiError, Result};
use crate::fields::short;

/// Reads the id of a job from a path.
///
/// # Errors
/// Not a UUID (400).
pub fn decode_job_id(part: &str) -> Result<Uuid> {
    part.parse().map_err(|_| {
        let shown = short(part);
        ApiError::Wrong(format!("job_id: `{shown}` is not a UUID"))
    })
}

/// Reads the body of a dry run: settings as in PATCH, put over `current`; no body for these.
///
/// # Errors
/// As [`decode_patch`].
pub fn decode_plan(body: &[u8], current: &CollectionConfig) -> Result<CollectionConfig> {
    if body.iter().all(u8::is_ascii_whitespace) {
        return Ok(current.clone());
    }
    decode_patch(body, current)
}

/// JSON of the jobs of a collection.
#[must_use]
pub fn encode_jobs(report: &JobsReport, counts: &Counts) -> Vec<u8> {
    text(&Value::Object(jobs(report, counts)))
}

/// JSON of the jobs of several collections, with their names.
#[must_use]
pub fn encode_all_jobs(all: &[(String, JobsReport, Counts)]) -> Vec<u8> {
    let list = all.iter().map(|(name, report, counts)| {
        let mut shown = jobs(report, counts);
        shown.insert("collection".to_owned(), json!(name));
        Value::Object(shown)
    });
    let backlogs = all.iter().map(|(_, _, counts)| counts.backlog());
    let total = backlogs.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    let left = all.iter().filter_map(|(_, report, _)| report.left);
    text(&json!({
        "collections": list.collect::<Value>(),
        "backlog": backlog(total, Estimate::sum(left)),
    }))
}

fn jobs(report: &JobsReport, counts: &Counts) -> Map<String, Value> {
    let running = report.running.iter().map(|(report, rest)| {
        let mut shown = job(report);
        let more = [
            ("kind", json!(report.work.kind.name())),
            ("rows", json!(report.work.rows)),
            ("elapsed_sec", json!(report.took().as_secs_f64())),
            ("eta", eta(*rest)),
        ];
        add(&mut shown, more);
        shown
    });
    let queued = report.queued.iter().map(|(step, whole)| {
        let mut shown = planned(step);
        add(&mut shown, [("eta", eta(*whole))]);
        shown
    });
    let completed = report.completed.iter().map(|report| {
        let mut shown = job(report);
        let more = [
            ("kind", json!(report.work.kind.name())),
            ("rows", json!(report.work.rows)),
            ("elapsed_sec", json!(report.took().as_secs_f64())),
        ];
        add(&mut shown, more);
        shown
    });
    let mut shown = Map::new();
    shown.insert("running".to_owned(), running.collect());
    shown.insert("queued".to_owned(), queued.collect());
    shown.insert("completed".to_owned(), completed.collect());
    shown.insert("held".to_owned(), json!(report.held));
    let backlog = backlog(counts.backlog(), report.left);
    shown.insert("backlog".to_owned(), backlog);
    shown
}

fn add<const N: usize>(shown: &mut Value, more: [(&str, Value); N]) {
    if let Some(map) = shown.as_object_mut() {
        map.extend(more.map(|(key, value)| (key.to_owned(), value)));
    }
}

fn backlog((vectors, bytes): (u64, u64), left: Option<Estimate>) -> Value {
    json!({
        "unindexed_vectors_count": vectors,
        "unindexed_bytes": bytes,
        "eta": left.map(eta),
    })
}

fn eta(estimate: Estimate) -> Value {
    let (basis, samples) = match estimate.basis {
        Basis::Prior => ("prior", 0),
        Basis::Learnt { samples } => ("learnt", samples),
    };
    json!({
        "seconds": estimate.seconds,
        "low_seconds": estimate.low,
        "high_seconds": estimate.high,
        "basis": basis,
        "samples": samples,
    })
}

fn planned(step: &Step) -> Value {
    let inputs = step.inputs.iter().map(|input| match input {
        Input::Segment(id) => json!({ "uuid": id }),
        Input::Step(number) => json!({ "step": number }),
    });
    json!({
        "kind": step.work.kind.name(),
        "optimizer": step.optimizer.name(),
        "segments": inputs.collect::<Value>(),
        "points_count": step.points,
        "rows": step.work.rows,
    })
}

/// JSON of a dry run.
#[must_use]
pub fn encode_plan(run: &DryRun) -> Vec<u8> {
    let step = |priced: &PricedStep| {
        let mut shown = planned(&priced.step);
        let more = [
            ("bytes_to_write", json!(priced.write_bytes)),
            ("eta", eta(priced.estimate)),
        ];
        add(&mut shown, more);
        shown
    };
    let bytes: u64 = run.steps.iter().map(|step| step.write_bytes).sum();
    text(&json!({
        "steps": run.steps.iter().map(step).collect::<Value>(),
        "segments_before": run.segments_before,
        "segments_after": run.segments_after,
        "bytes_to_write": bytes,
        "eta": run.total.map(eta),
        "held": run.held,
        "is_complete": run.is_whole,
    }))
}

#[cfg(test)]
mod tests {
    use flatwater_engine::collection::info::Optimizer;
    use flatwater_engine::collection::work::{Work, WorkKind};

    use super::*;

    fn estimate(basis: Basis) -> Estimate {
        Estimate {
            seconds: 2.0,
            low: 1.0,
            high: 4.0,
            basis,
        }
    }

    fn priced(inputs: Vec<Input>, basis: Basis) -> PricedStep {
        PricedStep {
            step: Step {
                optimizer: Optimizer::Merge,
                inputs,
                points: 70,
                work: Work::whole(WorkKind::Merge, 70, 4),
                round: 0,
            },
            write_bytes: 1_000,
            estimate: estimate(basis),
        }
    }

    #[test]
    fn a_dry_run_tells_its_steps_their_price_and_what_it_rests_on() {
        let first = Input::Segment(Uuid::from_u128(1));
        let steps = vec![
            priced(vec![first], Basis::Learnt { samples: 3 }),
            priced(vec![Input::Step(0)], Basis::Prior),
        ];
        let run = DryRun {
            total: Estimate::sum(steps.iter().map(|step| step.estimate)),
            steps,
            segments_before: 2,
            segments_after: 1,
            held: None,
            is_whole: true,
        };
        let shown: Value = serde_json::from_slice(&encode_plan(&run)).unwrap();
        assert_eq!(
            shown["steps"][0],
            json!({
                "kind": "merge", "optimizer": "merge", "points_count": 70, "rows": 70,
                "segments": [{"uuid": Uuid::from_u128(1)}], "bytes_to_write": 1000,
                "eta": {"seconds": 2.0, "low_seconds": 1.0, "high_seconds": 4.0, "basis": "learnt",
                        "samples": 3},
            })
        );
        assert_eq!(shown["steps"][1]["segments"], json!([{"step": 0}]));
        assert_eq!(shown["eta"]["basis"], "prior");
        assert_eq!(shown["bytes_to_write"], 2_000);
        assert_eq!(
            (&shown["segments_before"], &shown["segments_after"]),
            (&json!(2), &json!(1))
        );
    }

    #[test]
    fn a_plan_without_a_body_is_that_of_the_settings_and_a_bad_one_is_named() {
        let current = CollectionConfig::default();
        assert_eq!(decode_plan(b" \n", &current).unwrap(), current);
        let body = br#"{"optimizers_config": {"default_segment_number": 1}}"#;
        let changed = decode_plan(body, &current).unwrap();
        assert_eq!(changed.optimizers.default_segment_number, 1);
        let bad = br#"{"optimizers_config": {"deleted_threshold": 2.0}}"#;
        let text = decode_plan(bad, &current).unwrap_err().to_string();
        assert!(
            text.contains("optimizers_config.deleted_threshold") && text.contains('1'),
            "{text}"
        );
        let text = decode_job_id("x").unwrap_err().to_string();
        assert_eq!(text, "Wrong input: job_id: `x` is not a UUID");
    }
}
