//! Settings of a collection.

use std::collections::BTreeMap;

use flatwater_index::Metric;
use serde::{Deserialize, Serialize};

pub use flatwater_segment::field::FieldType;

/// Name of the unnamed vector.
pub const UNNAMED: &str = "";

/// Parameters of one named vector.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VectorParams {
    /// Dimensions, 1 to 65,536.
    pub size: usize,
    /// Metric.
    #[serde(with = "metric_name")]
    pub distance: Metric,
    /// `on_disk` as the user gave it: stored and shown, it does not change results.
    pub on_disk: Option<bool>,
    /// HNSW settings that differ from the collection's.
    pub hnsw: HnswDiff,
}

/// HNSW settings given in part; `None` keeps the lower layer's value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct HnswDiff {
    /// Links per node above level 0 (level 0 has twice as many).
    pub m: Option<usize>,
    /// Beam width while building, at least 4.
    pub ef_construct: Option<usize>,
    /// Below this many KB of vectors a full scan is used, at least 10.
    pub full_scan_threshold: Option<usize>,
    /// Build threads, 0 = auto.
    pub max_indexing_threads: Option<usize>,
    /// As the user gave it; it does not change results.
    pub on_disk: Option<bool>,
    /// As the user gave it; it does not change results.
    pub payload_m: Option<usize>,
}

/// HNSW settings of a collection, resolved.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct HnswConfig {
    /// Links per node above level 0, default 16.
    pub m: usize,
    /// Beam width while building and the default `ef` of a search, default 100.
    pub ef_construct: usize,
    /// KB, default 10,000.
    pub full_scan_threshold: usize,
    /// 0 = auto.
    pub max_indexing_threads: usize,
    /// As given.
    pub on_disk: Option<bool>,
    /// As given.
    pub payload_m: Option<usize>,
}

impl Default for HnswConfig {
    fn default() -> Self {
        Self {
            m: 16,
            ef_construct: 100,
            full_scan_threshold: 10_000,
            max_indexing_threads: 0,
            on_disk: None,
            payload_m: None,
        }
    }
}

impl HnswConfig {
    /// This configuration with the given parts replaced.
    #[must_use]
    pub fn with(self, diff: HnswDiff) -> Self {
        Self {
            m: diff.m.unwrap_or(self.m),
            ef_construct: diff.ef_construct.unwrap_or(self.ef_construct),
            full_scan_threshold: diff.full_scan_threshold.unwrap_or(self.full_scan_threshold),
            max_indexing_threads: diff
                .max_indexing_threads
                .unwrap_or(self.max_indexing_threads),
            on_disk: diff.on_disk.or(self.on_disk),
            payload_m: diff.payload_m.or(self.payload_m),
        }
    }
}

/// Optimizer settings of a collection with Qdrant's names, units and defaults (sizes in KB of 1,024
/// bytes).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct OptimizerConfig {
    /// Share of deleted points past which a segment is vacuumed, 0 to 1.
    pub deleted_threshold: f64,
    /// Points a segment needs before it is vacuumed.
    pub vacuum_min_vector_number: usize,
    /// Segments aimed at, 0 = auto.
    pub default_segment_number: usize,
    /// KB of vectors, `None` = auto.
    pub max_segment_size: Option<usize>,
    /// KB, as given.
    pub memmap_threshold: Option<usize>,
    /// KB of vectors outside the graph from which indexing starts; 0 = never.
    pub indexing_threshold: usize,
    /// Seconds between syncs of the log when nobody waits.
    pub flush_interval_sec: u64,
    /// `Some(0)` = no background work, `None` = auto.
    pub max_optimization_threads: Option<usize>,
}

impl Default for OptimizerConfig {
    fn default() -> Self {
        Self {
            deleted_threshold: 0.2,
            vacuum_min_vector_number: 1000,
            default_segment_number: 0,
            max_segment_size: None,
            memmap_threshold: None,
            indexing_threshold: 10_000,
            flush_interval_sec: 5,
            max_optimization_threads: None,
        }
    }
}

/// Log settings, stored and shown as Qdrant's.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct WalConfig {
    /// MB per log file, at least 1.
    pub wal_capacity_mb: usize,
    /// As given.
    pub wal_segments_ahead: usize,
    /// As given.
    pub wal_retain_closed: usize,
}

impl Default for WalConfig {
    fn default() -> Self {
        Self {
            wal_capacity_mb: 32,
            wal_segments_ahead: 0,
            wal_retain_closed: 1,
        }
    }
}

/// Everything that is fixed when a collection is created.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CollectionConfig {
    /// Vectors by name; the unnamed one is `""`.
    pub vectors: BTreeMap<String, VectorParams>,
    /// HNSW.
    pub hnsw: HnswConfig,
    /// Optimizers.
    pub optimizers: OptimizerConfig,
    /// Log.
    pub wal: WalConfig,
    /// As given (default true); it does not change results.
    pub on_disk_payload: bool,
    /// Free JSON of the user's.
    pub metadata: Option<serde_json::Map<String, serde_json::Value>>,
}

/// A field index as the user asked for it.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldSchema {
    /// Type.
    pub field_type: FieldType,
    /// The parameters object as given (shown again as it is), without `type`; `None` if the type
    /// was given as a plain word.
    pub params: Option<serde_json::Map<String, serde_json::Value>>,
}

/// Metric by its name in the stored configuration.
mod metric_name {
    use flatwater_index::Metric;
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(metric: &Metric, out: S) -> Result<S::Ok, S::Error> {
        out.serialize_str(match metric {
            Metric::Cosine => "Cosine",
            Metric::Dot => "Dot",
            Metric::Euclid => "Euclid",
            Metric::Manhattan => "Manhattan",
        })
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(input: D) -> Result<Metric, D::Error> {
        match String::deserialize(input)?.as_str() {
            "Cosine" => Ok(Metric::Cosine),
            "Dot" => Ok(Metric::Dot),
            "Euclid" => Ok(Metric::Euclid),
            "Manhattan" => Ok(Metric::Manhattan),
            other => Err(D::Error::custom(format!("unknown distance `{other}`"))),
        }
    }
}
