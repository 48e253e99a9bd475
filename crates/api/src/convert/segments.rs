//! `GET /ext/collections/{collection_name}/segments`: what a collection is made of.

use flatwater_engine::collection::segments::{SegmentReport, VectorReport};
use serde_json::{Value, json};

use super::text;
use super::time::rfc3339;

/// JSON of the segments; `now_ms` is what their ages count to.
#[must_use]
pub fn encode_segments(segments: &[SegmentReport], now_ms: u64) -> Vec<u8> {
    let shown: Value = segments.iter().map(|one| segment(one, now_ms)).collect();
    text(&json!({ "segments": shown }))
}

fn segment(report: &SegmentReport, now_ms: u64) -> Value {
    let age_ms = report.created_at_ms.map(|at| now_ms.saturating_sub(at));
    let job = report
        .job
        .map(|(id, optimizer)| json!({ "uuid": id, "optimizer": optimizer.name() }));
    json!({
        "uuid": report.id,
        "state": report.state.name(),
        "job": job,
        "created_at": report.created_at_ms.map(rfc3339),
        "age_sec": age_ms.map(|ms| ms as f64 / 1_000.0),
        "rows_count": report.rows,
        "points_count": report.points,
        "deleted_count": report.deleted(),
        "disk_bytes": report.disk_bytes,
        "vectors": report.vectors.iter().map(vector).collect::<Value>(),
    })
}

fn vector(report: &VectorReport) -> Value {
    let graph = report
        .graph
        .map(|graph| json!({ "m": graph.m, "ef_construct": graph.ef_construct }));
    json!({
        "name": report.name,
        "size": report.dim,
        "vectors_count": report.live,
        "indexed_vectors_count": report.indexed,
        "hnsw_config": graph,
    })
}

#[cfg(test)]
mod tests {
    use flatwater_engine::collection::segments::{GraphSettings, Optimizer, SegmentState};
    use uuid::Uuid;

    use super::*;

    #[test]
    fn a_segment_is_told_with_its_job_and_its_age_and_without_where_there_is_none() {
        let busy = SegmentReport {
            id: Uuid::from_u128(1),
            state: SegmentState::Sealed,
            job: Some((Uuid::from_u128(2), Optimizer::ConfigMismatch)),
            created_at_ms: Some(1_709_164_800_123),
            rows: 10,
            points: 7,
            vectors: vec![VectorReport {
                name: "a".to_owned(),
                dim: 4,
                live: 6,
                indexed: 5,
                graph: Some(GraphSettings {
                    m: 16,
                    ef_construct: None,
                }),
            }],
            disk_bytes: 4_096,
        };
        let old = SegmentReport {
            job: None,
            created_at_ms: None,
            vectors: Vec::new(),
            ..busy.clone()
        };
        let bytes = encode_segments(&[busy, old], 1_709_164_801_623);
        let shown: Value = serde_json::from_slice(&bytes).unwrap();
        assert_eq!(
            shown["segments"][0],
            json!({
                "uuid": Uuid::from_u128(1), "state": "sealed",
                "job": {"uuid": Uuid::from_u128(2), "optimizer": "config mismatch"},
                "created_at": "2024-02-29T00:00:00.123Z", "age_sec": 1.5,
                "rows_count": 10, "points_count": 7, "deleted_count": 3, "disk_bytes": 4096,
                "vectors": [{"name": "a", "size": 4, "vectors_count": 6, "indexed_vectors_count": 5,
                             "hnsw_config": {"m": 16, "ef_construct": null}}],
            })
        );
        let old = &shown["segments"][1];
        assert!(old["job"].is_null() && old["created_at"].is_null() && old["age_sec"].is_null());
    }
}
