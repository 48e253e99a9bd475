//! Nearest points over the segments of one view.
//!
//! 1. The query vector is checked and brought into stored form (or read from a point).
//! 2. Every segment answers with its best `limit + offset`, scored by the original vectors.
//! 3. The answers are merged, ties by id, cut at the threshold, and the parts asked for are read.

use flatwater_index::Row;
use flatwater_segment::PointId;
use flatwater_segment::mask::Mask;
use flatwater_segment::parts::spec::SegmentSpec;
use flatwater_segment::search::{SegmentSearch, search_segment};
use flatwater_segment::view::SegmentView;

use super::record::Selectors;
use super::request::{QueryTarget, ScoredPoint, SearchRequest};
use crate::config::collection::CollectionConfig;
use crate::error::{EngineError, Result};
use crate::shard::compile;
use crate::shard::view::ShardView;
use crate::vectors;

/// Answers a search from `view`.
pub(crate) fn search(
    view: &ShardView,
    spec: &SegmentSpec,
    config: &CollectionConfig,
    request: &SearchRequest,
) -> Result<Vec<ScoredPoint>> {
    let column = vectors::vector_place(spec, &request.using)?;
    let metric = spec.vectors[column].metric;
    let selectors = Selectors::new(&request.with_payload, &request.with_vector)?;
    let filter = request.filter.as_ref().map(compile).transpose()?;
    let (vector, itself) = query_vector(view, spec, column, &request.target)?;
    let wanted = request.limit.saturating_add(request.offset);
    // The point that the query is near to takes a place in its segment's answer and is left out.
    let k = wanted.saturating_add(usize::from(itself.is_some()));
    let ef = request
        .hnsw_ef
        .unwrap_or_else(|| default_ef(config, &request.using));

    let mut best: Vec<(f32, PointId, &SegmentView, Row)> = Vec::new();
    for segment in &view.segments {
        let mask = filter
            .as_ref()
            .map(|filter| Mask::build(filter, segment.fields(), segment));
        let search = SegmentSearch {
            column,
            vector: &vector,
            k,
            ef,
            exact: request.exact,
            mask: mask.as_ref(),
        };
        let hits = search_segment(segment, &search)?;
        best.extend(
            hits.into_iter()
                .map(|hit| (hit.score, hit.id, segment, hit.row)),
        );
    }
    best.retain(|(score, id, _, _)| {
        Some(*id) != itself && passes(metric.wire_score(*score), request.score_threshold, metric)
    });
    best.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    best.iter()
        .skip(request.offset)
        .take(request.limit)
        .map(|&(score, id, segment, row)| {
            Ok(ScoredPoint {
                point: selectors.record(segment, row, id)?,
                version: segment.version_of(row),
                score: metric.wire_score(score),
            })
        })
        .collect()
}

/// The vector that is searched for and, if it is a point's, the point.
fn query_vector(
    view: &ShardView,
    spec: &SegmentSpec,
    column: usize,
    target: &QueryTarget,
) -> Result<(Vec<f32>, Option<PointId>)> {
    match target {
        QueryTarget::Vector(vector) => {
            let vector = vectors::stored_vector(&spec.vectors[column], vector.clone())
                .map_err(EngineError::Invalid)?;
            Ok((vector, None))
        }
        QueryTarget::Point(id) => {
            let (segment, row) = view
                .find(*id)
                .ok_or_else(|| EngineError::PointNotFound(id.to_string()))?;
            let vector = segment.vector_of(row, column).ok_or_else(|| {
                EngineError::Invalid(format!(
                    "point {id} has no vector `{}` to search with",
                    spec.vectors[column].name
                ))
            })?;
            Ok((vector.to_vec(), Some(*id)))
        }
    }
}

/// Beam width when the request names none: what the graph was built with, as in Qdrant.
fn default_ef(config: &CollectionConfig, using: &str) -> usize {
    let own = config
        .vectors
        .get(using)
        .and_then(|vector| vector.hnsw.ef_construct);
    own.unwrap_or(config.hnsw.ef_construct)
}

/// Whether a score is strictly better than the threshold, both in the unit that a user sees.
fn passes(score: f32, threshold: Option<f32>, metric: flatwater_index::Metric) -> bool {
    match threshold {
        None => true,
        Some(threshold) if metric.wire_larger_is_better() => score > threshold,
        Some(threshold) => score < threshold,
    }
}
