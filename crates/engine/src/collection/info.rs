//! What a collection tells about itself.

use std::collections::BTreeMap;

use crate::config::collection::{CollectionConfig, FieldSchema};

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

/// A background job, running or done.
#[derive(Clone, Debug)]
pub struct JobReport {
    /// Its own id.
    pub id: uuid::Uuid,
    /// Wire name of the optimizer, e.g. `indexing`.
    pub optimizer: &'static str,
    /// `None` while it runs; then how it ended (`Ok` = done).
    pub outcome: Option<std::result::Result<(), String>>,
    /// Input segments: id and points.
    pub segments: Vec<(uuid::Uuid, u64)>,
    /// Rows done.
    pub done: u64,
    /// Rows in all.
    pub total: u64,
    /// When it started, milliseconds since 1970.
    pub started_at_ms: u64,
    /// When it ended.
    pub finished_at_ms: Option<u64>,
}

/// Answer of `/optimizations`.
#[derive(Clone, Debug, Default)]
pub struct OptimizationReport {
    /// Jobs at work.
    pub running: Vec<JobReport>,
    /// Work that is planned: optimizer, segments (id, points).
    pub queued: Vec<(&'static str, Vec<(uuid::Uuid, u64)>)>,
    /// The last jobs that ended, newest first.
    pub completed: Vec<JobReport>,
    /// Segments that need nothing.
    pub idle_segments: Vec<(uuid::Uuid, u64)>,
}
