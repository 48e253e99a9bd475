//! The facts and limits of a shard at this moment, for the policies.

use flatwater_segment::parts::Segment;
use flatwater_segment::parts::column::VectorColumn;
use flatwater_segment::parts::spec::SegmentSpec;
use flatwater_segment::view::SegmentView;

use super::jobs::Jobs;
use super::policy::facts::{ColumnFacts, GraphSettings, Limits, SegmentFacts};
use super::policy::outlook::{self, Outlook};
use super::policy::{self, Plan};
use crate::config::collection::OptimizerConfig;
use crate::shard::view::ShardView;

/// The plan of a collection now: `spec` is what its segments are made of under its settings.
///
/// Cost: O(segments), and O(rows without a vector) where there are such.
#[must_use]
pub fn plan(view: &ShardView, jobs: &Jobs, config: &OptimizerConfig, spec: &SegmentSpec) -> Plan {
    policy::plan(&facts(view, jobs, spec), &limits(config, spec))
}

/// Where the plan of a collection leads, under any settings; `spec` is what segments are made of under them.
///
/// Cost: as [`plan`], for each round.
#[must_use]
pub fn outlook(
    view: &ShardView,
    jobs: &Jobs,
    config: &OptimizerConfig,
    spec: &SegmentSpec,
) -> Outlook {
    outlook::outlook(&facts(view, jobs, spec), &limits(config, spec))
}

/// Dimensions of all vectors of a point together.
#[must_use]
pub fn dims(spec: &SegmentSpec) -> u64 {
    spec.vectors.iter().map(|vector| vector.dim as u64).sum()
}

/// Facts of every segment in a view.
#[must_use]
pub fn facts(view: &ShardView, jobs: &Jobs, spec: &SegmentSpec) -> Vec<SegmentFacts> {
    view.segments
        .iter()
        .map(|view| segment_facts(view, jobs, spec))
        .collect()
}

fn segment_facts(view: &SegmentView, jobs: &Jobs, spec: &SegmentSpec) -> SegmentFacts {
    let segment = view.segment();
    let columns = segment.columns().iter().enumerate();
    SegmentFacts {
        segment: segment.id(),
        is_full: segment.is_full(),
        is_sealed: segment.is_sealed(),
        is_busy: jobs.is_busy(segment.id()),
        rows: view.rows_len().into(),
        live: view.live_count(),
        columns: columns
            .map(|(index, column)| {
                let wanted = spec.vectors.get(index).and_then(|vector| vector.hnsw);
                let wanted = wanted.map(|params| {
                    let params = params.clamped();
                    GraphSettings {
                        m: params.m,
                        ef_construct: Some(params.ef_construct),
                    }
                });
                column_facts(view, segment, index, column, wanted, jobs)
            })
            .collect(),
    }
}

fn column_facts(
    view: &SegmentView,
    segment: &Segment,
    index: usize,
    column: &VectorColumn,
    wanted: Option<GraphSettings>,
    jobs: &Jobs,
) -> ColumnFacts {
    ColumnFacts {
        segment: segment.id(),
        column: index,
        available: column.graph_available(),
        indexed: column.indexed_len(),
        vector_bytes: column.spec().dim as u64 * 4,
        graph: graph_settings(column),
        wanted,
        deleted_vectors: view.deleted_vectors(index),
        is_running: jobs.is_indexing(segment.id(), index),
        is_full: segment.is_full(),
    }
}

/// Settings of the graph that a vector has; none where it has no graph.
#[must_use]
pub fn graph_settings(column: &VectorColumn) -> Option<GraphSettings> {
    column.graph().map(|graph| GraphSettings {
        m: graph.m(),
        ef_construct: graph.ef_construct(),
    })
}

/// Limits of the policies under the settings of a collection.
#[must_use]
pub fn limits(config: &OptimizerConfig, spec: &SegmentSpec) -> Limits {
    let threshold = config.indexing_threshold as u64;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    Limits {
        indexing_threshold_bytes: (threshold > 0).then(|| threshold.saturating_mul(1024)),
        rows_max: spec.rows_max.into(),
        segments_target: segments_target(config.default_segment_number, cores),
        deleted_threshold: config.deleted_threshold,
        vacuum_min: config.vacuum_min_vector_number as u64,
        jobs_max: config.max_optimization_threads,
    }
}

/// Sealed segments that merging aims for. 0 asks for Qdrant's number: half the cores, 2 to 8.
fn segments_target(wanted: usize, cores: usize) -> usize {
    match wanted {
        0 => (cores / 2).clamp(2, 8),
        wanted => wanted,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_automatic_number_of_segments_is_half_the_cores_between_two_and_eight() {
        let targets = [1, 2, 6, 14, 64].map(|cores| segments_target(0, cores));
        assert_eq!(targets, [2, 2, 3, 7, 8]);
        assert_eq!(segments_target(1, 64), 1);
    }
}
