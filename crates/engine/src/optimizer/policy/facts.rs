//! What policies look at: numbers about segments and limits from the settings. No clock, no files.

use flatwater_index::Row;
use uuid::Uuid;

/// Name of an optimizer on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Optimizer {
    /// Small segments become one.
    Merge,
    /// Rows go into graphs; full segments are sealed.
    Indexing,
    /// Dead rows are dropped.
    Vacuum,
    /// Graphs are built anew under other settings.
    ConfigMismatch,
}

impl Optimizer {
    /// As Qdrant writes it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Merge => "merge",
            Self::Indexing => "indexing",
            Self::Vacuum => "vacuum",
            Self::ConfigMismatch => "config mismatch",
        }
    }
}

/// Settings of a graph that call for another graph when they change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GraphSettings {
    /// Links a row asks for.
    pub m: usize,
    /// Width of the searches that build it; `None` where that is not known.
    pub ef_construct: Option<usize>,
}

impl GraphSettings {
    /// Whether a graph of these settings may serve for `wanted`.
    #[must_use]
    pub fn serves(self, wanted: Self) -> bool {
        let same_width = match (self.ef_construct, wanted.ef_construct) {
            (Some(a), Some(b)) => a == b,
            _ => true,
        };
        self.m == wanted.m && same_width
    }
}

/// Facts of one vector of one segment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ColumnFacts {
    /// Segment.
    pub segment: Uuid,
    /// Place of the vector in the segment.
    pub column: usize,
    /// Rows that the graph could take.
    pub available: Row,
    /// Rows that it covers.
    pub indexed: Row,
    /// Bytes of one original vector.
    pub vector_bytes: u64,
    /// Settings of its graph; none where it has no graph.
    pub graph: Option<GraphSettings>,
    /// Settings that the collection asks for; none for no graph.
    pub wanted: Option<GraphSettings>,
    /// Vectors that were deleted from points which live on.
    pub deleted_vectors: u64,
    /// Whether a job has begun here and not caught up yet.
    pub is_running: bool,
    /// Whether the segment takes no more rows: the rest of its graph is built however small it is.
    pub is_full: bool,
}

impl ColumnFacts {
    /// Rows that only the scan serves.
    #[must_use]
    pub fn unindexed(&self) -> Row {
        self.available.saturating_sub(self.indexed)
    }
}

/// Facts of one segment.
#[derive(Clone, Debug, PartialEq)]
pub struct SegmentFacts {
    /// Segment.
    pub segment: Uuid,
    /// Whether it takes no more rows.
    pub is_full: bool,
    /// Whether it is made of immutable files.
    pub is_sealed: bool,
    /// Whether a job writes it anew at this moment.
    pub is_busy: bool,
    /// Rows, dead ones too.
    pub rows: u64,
    /// Live rows.
    pub live: u64,
    /// Its vectors.
    pub columns: Vec<ColumnFacts>,
}

/// Limits that the settings give.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// Bytes of vectors outside a graph from which indexing starts; `None` = never.
    pub indexing_threshold_bytes: Option<u64>,
    /// Rows of the largest segment.
    pub rows_max: u64,
    /// Sealed segments that merging aims for.
    pub segments_target: usize,
    /// Share of dead rows past which a segment is vacuumed.
    pub deleted_threshold: f64,
    /// Rows a segment needs before it is vacuumed.
    pub vacuum_min: u64,
    /// Jobs that may run side by side; `None` = any number, 0 = none.
    pub jobs_max: Option<usize>,
}
