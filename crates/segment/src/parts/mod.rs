//! What a segment consists of, growing or sealed, as its readers see it.
//!
//! 1. `spec` says what it is made of.
//! 2. `column` keeps one vector's originals, codes and graph; `graph` the two kinds of graph, `space`
//!    what they compare.
//! 3. `payload_rows` keeps the payload versions, `base` the payloads that a sealed segment began with;
//!    `fields` the field indexes.

pub mod base;
pub mod column;
pub mod fields;
pub mod graph;
pub mod payload_rows;
pub mod space;
pub mod spec;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use flatwater_index::Row;
use parking_lot::Mutex;
use uuid::Uuid;

use crate::chunk::{BlobPos, StampPages};
use crate::dir::Directory;
use crate::ids::{PointId, SeqNo};
use crate::points::Points;
use crate::points::heads::RowHead;
use column::VectorColumn;
use payload_rows::PayloadRows;
use spec::SegmentSpec;

/// The shared part of a segment; readers reach it through a [`crate::view::SegmentView`].
#[derive(Debug)]
pub struct Segment {
    pub(crate) id: Uuid,
    pub(crate) spec: Arc<SegmentSpec>,
    pub(crate) points: Points,
    pub(crate) deleted: StampPages,
    pub(crate) columns: Vec<Arc<VectorColumn>>,
    pub(crate) payload: Arc<PayloadRows>,
    /// Rows deleted up to here were dead before any view of this process existed.
    pub(crate) dead_before: SeqNo,
    pub(crate) dir: Arc<dyn Directory>,
    /// Set once: the segment takes no more rows although there is room.
    pub(crate) closed: AtomicBool,
    /// The last checkpoint; its lock lets in one checkpoint at a time and no reader.
    pub(crate) recorded: Mutex<Recorded>,
}

/// How far the last checkpoint reaches.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Recorded {
    /// Watermark of the recorded view; 0 before the first.
    pub(crate) seq: SeqNo,
    /// Rows.
    pub(crate) rows: Row,
    /// Payload versions.
    pub(crate) versions: u32,
    /// End of the payload bytes.
    pub(crate) blobs_end: BlobPos,
    /// Deleted rows.
    pub(crate) deleted: u64,
    /// Rows without a vector, over all vectors.
    pub(crate) stamps: u64,
    /// Rows of originals and of codes, for each vector.
    pub(crate) columns: Vec<(Row, Row)>,
}

impl Segment {
    /// Its own id.
    #[must_use]
    pub fn id(&self) -> Uuid {
        self.id
    }

    /// What it is made of.
    #[must_use]
    pub fn spec(&self) -> &SegmentSpec {
        &self.spec
    }

    /// Whether it is made of immutable files and takes no rows.
    #[must_use]
    pub fn is_sealed(&self) -> bool {
        matches!(self.points, Points::Sealed(_))
    }

    /// Whether it takes no more rows.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.is_sealed()
            || self.rows_len() >= self.spec.rows_max
            || self.closed.load(Ordering::Acquire)
    }

    /// Lets it take no more rows. Not recorded: after a restart it takes rows again.
    pub fn close(&self) {
        self.closed.store(true, Ordering::Release);
    }

    /// Its vectors, in the order of [`SegmentSpec::vectors`].
    #[must_use]
    pub fn columns(&self) -> &[Arc<VectorColumn>] {
        &self.columns
    }

    /// Payload versions.
    #[must_use]
    pub fn payload(&self) -> &PayloadRows {
        &self.payload
    }

    /// Rows stored so far, dead ones too.
    #[must_use]
    pub fn rows_len(&self) -> Row {
        self.points.rows_len()
    }

    /// Head of a row.
    #[must_use]
    pub fn head(&self, row: Row) -> RowHead {
        self.points.head(row)
    }

    /// When the row was deleted; `u64::MAX` if it was not.
    #[must_use]
    pub fn deleted_at(&self, row: Row) -> SeqNo {
        self.deleted.get(row)
    }

    /// Operation up to which the last checkpoint holds everything; 0 before the first.
    #[must_use]
    pub fn recorded_seq(&self) -> SeqNo {
        self.recorded.lock().seq
    }

    /// Ids and their newest rows.
    #[must_use]
    pub fn points(&self) -> &Points {
        &self.points
    }

    /// Newest row of an id and its head, as the writer sees it.
    #[must_use]
    pub fn newest(&self, id: PointId) -> Option<(Row, RowHead)> {
        self.points.newest(id).map(|row| (row, self.head(row)))
    }
}
