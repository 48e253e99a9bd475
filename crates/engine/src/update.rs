//! Updates of a collection and their acknowledgement.

use flatwater_segment::PointId;
use flatwater_segment::payload::Payload;
use flatwater_segment::payload::filter::Filter;

use crate::config::collection::FieldSchema;
use crate::error::Result;

/// A point to store: it replaces any point of the same id.
#[derive(Clone, Debug, PartialEq)]
pub struct PointInput {
    /// Id.
    pub id: PointId,
    /// Vectors by name, each name at most once.
    pub vectors: Vec<(String, Vec<f32>)>,
    /// Payload; `None` stores an empty one.
    pub payload: Option<Payload>,
}

/// Points that an update is about.
#[derive(Clone, Debug, PartialEq)]
pub enum Selection {
    /// These ids; those that do not exist are passed over.
    Ids(Vec<PointId>),
    /// All that match now.
    Filter(Filter),
}

/// New vectors of one point.
#[derive(Clone, Debug, PartialEq)]
pub struct PointVectors {
    /// Id.
    pub id: PointId,
    /// Vectors by name, each name at most once; the point keeps its others.
    pub vectors: Vec<(String, Vec<f32>)>,
}

/// An update. Every one is applied whole or not at all.
#[derive(Clone, Debug, PartialEq)]
pub enum Update {
    /// Store points.
    Upsert(Vec<PointInput>),
    /// Delete points.
    Delete(Selection),
    /// Merge these keys into the payload of the points (`key` = path of the object to merge into).
    SetPayload {
        /// Which points.
        selection: Selection,
        /// Keys and values.
        payload: Payload,
        /// Path inside the payload; `None` = the top.
        key: Option<String>,
    },
    /// Replace the payload of the points.
    OverwritePayload {
        /// Which points.
        selection: Selection,
        /// Keys and values.
        payload: Payload,
    },
    /// Take these paths out of the payload of the points.
    DeletePayload {
        /// Which points.
        selection: Selection,
        /// Payload paths.
        keys: Vec<String>,
    },
    /// Empty the payload of the points.
    ClearPayload(Selection),
    /// Replace the named vectors of points, which must exist.
    UpdateVectors(Vec<PointVectors>),
    /// Take these vectors away from the points.
    DeleteVectors {
        /// Which points.
        selection: Selection,
        /// Names of vectors.
        names: Vec<String>,
    },
    /// Index a field.
    CreateFieldIndex {
        /// Payload path.
        field: String,
        /// Type and parameters.
        schema: FieldSchema,
    },
    /// Drop a field's index.
    DeleteFieldIndex {
        /// Payload path.
        field: String,
    },
}

/// How far an update got when it was acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpdateStatus {
    /// In the log and visible; survives kill -9.
    Acknowledged,
    /// Also synced; survives power loss.
    Completed,
}

/// Acknowledgement of an update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UpdateResult {
    /// Its place in the order of the shard.
    pub seq: u64,
    /// How far it got.
    pub status: UpdateStatus,
}

/// Called once, from an engine thread, with the acknowledgement. It must be quick.
pub type OnAck = Box<dyn FnOnce(Result<UpdateResult>) + Send>;
