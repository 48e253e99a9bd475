//! What a collection tells about itself.

use std::collections::{BTreeMap, BTreeSet};

use flatwater_segment::view::SegmentView;
use uuid::Uuid;

use super::Collection;
use crate::config::collection::{CollectionConfig, FieldSchema};
use crate::optimizer::gather;
pub use crate::optimizer::jobs::{JobReport, Outcome};
use crate::optimizer::policy::Plan;
pub use crate::optimizer::policy::facts::Optimizer;
pub use crate::optimizer::progress::Progress;
use crate::shard::view::ShardView;

/// Traffic light of a collection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Nothing to do.
    Green,
    /// Background work is running or queued.
    Yellow,
    /// Background work is wanted and may not run.
    Grey,
    /// Something failed.
    Red,
}

/// Facts of a collection at one moment.
#[derive(Clone, Debug)]
pub struct CollectionInfo {
    /// Traffic light.
    pub status: Status,
    /// Why it is red, if it is.
    pub optimizer_error: Option<String>,
    /// Why it is grey, if it is.
    pub grey_reason: Option<String>,
    /// Live vectors inside a graph, all names together.
    pub indexed_vectors_count: u64,
    /// Live points, exact.
    pub points_count: u64,
    /// Segments.
    pub segments_count: usize,
    /// Settings.
    pub config: CollectionConfig,
    /// Field indexes: schema and number of points that have the field.
    pub payload_schema: BTreeMap<String, (FieldSchema, u64)>,
    /// Updates accepted and not applied yet.
    pub update_queue_length: usize,
}

/// Answer of `/optimizations`.
#[derive(Clone, Debug, Default)]
pub struct OptimizationReport {
    /// Jobs at work.
    pub running: Vec<JobReport>,
    /// Work that is planned: optimizer, segments (id, points).
    pub queued: Vec<(Optimizer, Vec<(Uuid, u64)>)>,
    /// The last jobs that ended, newest first.
    pub completed: Vec<JobReport>,
    /// Segments that need nothing.
    pub idle_segments: Vec<(Uuid, u64)>,
}

/// Facts of a collection now.
pub(super) fn collect(collection: &Collection) -> CollectionInfo {
    let view = collection.shard.view();
    let config = collection.config();
    let plan = plan(collection, &view);
    let failure = collection
        .shard
        .shared()
        .health
        .check()
        .err()
        .map(|error| error.to_string())
        .or_else(|| collection.jobs.failure());
    let is_idle = plan.is_empty() && collection.jobs.running() == 0;
    let status = match (&failure, plan.held, is_idle) {
        (Some(_), _, _) => Status::Red,
        (None, Some(_), _) => Status::Grey,
        (None, None, false) => Status::Yellow,
        (None, None, true) => Status::Green,
    };
    CollectionInfo {
        status,
        optimizer_error: failure,
        grey_reason: plan.held.map(str::to_owned),
        indexed_vectors_count: view.segments.iter().map(|s| s.indexed_vectors()).sum(),
        points_count: view.live_count(),
        segments_count: view.segments.len(),
        config: CollectionConfig::clone(&config),
        payload_schema: payload_schema(&view),
        update_queue_length: collection.shard.queue_len(),
    }
}

fn payload_schema(view: &ShardView) -> BTreeMap<String, (FieldSchema, u64)> {
    let points_with = |field: &str| -> u64 {
        view.segments
            .iter()
            .map(|segment| segment.points_with_field(field))
            .sum()
    };
    view.schemas
        .iter()
        .map(|(field, schema)| (field.clone(), (schema.clone(), points_with(field))))
        .collect()
}

/// Running, queued and finished background work.
pub(super) fn optimizations(collection: &Collection) -> OptimizationReport {
    let view = collection.shard.view();
    let plan = plan(collection, &view);
    let (running, completed) = collection.jobs.reports();
    let points = |id: Uuid| view.segment(id).map_or(0, SegmentView::live_count);
    let is_running = |id: &Uuid| {
        let mut inputs = running.iter().flat_map(|job| &job.segments);
        inputs.any(|(input, _)| input == id)
    };
    let rewrites = plan.rewrites.into_iter();
    let mut queued: Vec<(Optimizer, Vec<Uuid>)> = rewrites
        .map(|rewrite| (rewrite.optimizer, rewrite.segments))
        .collect();
    let indexing = plan.indexing.iter().map(|column| column.segment);
    let indexing: BTreeSet<Uuid> = indexing.chain(plan.seal).collect();
    queued.extend(
        indexing
            .into_iter()
            .map(|id| (Optimizer::Indexing, vec![id])),
    );
    queued.retain(|(_, segments)| !segments.iter().any(is_running));
    let is_queued = |id: &Uuid| queued.iter().any(|(_, segments)| segments.contains(id));
    let ids = view.segments.iter().map(|segment| segment.segment().id());
    let idle = ids.filter(|id| !is_running(id) && !is_queued(id));
    OptimizationReport {
        idle_segments: idle.map(|id| (id, points(id))).collect(),
        queued: queued
            .iter()
            .map(|(optimizer, segments)| {
                (
                    *optimizer,
                    segments.iter().map(|&id| (id, points(id))).collect(),
                )
            })
            .collect(),
        running,
        completed,
    }
}

fn plan(collection: &Collection, view: &ShardView) -> Plan {
    let config = collection.config();
    let spec = collection.shard.spec();
    gather::plan(view, &collection.jobs, &config.optimizers, &spec)
}
