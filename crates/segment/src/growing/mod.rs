//! A growing segment: it takes rows from one writer while any number of readers search it.
//!
//! 1. `spec` says what it is made of.
//! 2. `write` appends rows, stamps deletes and payload changes.
//! 3. `column` keeps one vector's originals, codes and graph; `payload_rows` the payload versions.
//! 4. `view` is what one read sees: a length, a watermark, and nothing that changes.
//! 5. `index_step` lets background threads insert rows into the graphs.
//! 6. `checkpoint` records a view so that a restart begins there.

pub mod checkpoint;
pub mod column;
pub mod fields;
pub mod index_step;
pub mod payload_rows;
pub mod space;
pub mod spec;
pub mod view;
pub mod write;

use std::sync::Arc;

use flatwater_index::Row;
use parking_lot::Mutex;
use uuid::Uuid;

use crate::chunk::{ChunkArray, StampPages};
use crate::dir::Directory;
use crate::ids::{PointId, SeqNo};
use crate::points::heads::RowHead;
use crate::points::ids::IdMap;
use checkpoint::SegmentState;
use column::VectorColumn;
use payload_rows::PayloadRows;
use spec::SegmentSpec;

/// The shared part of a growing segment; readers reach it through a [`view::SegmentView`].
#[derive(Debug)]
pub struct GrowingSegment {
    id: Uuid,
    spec: Arc<SegmentSpec>,
    heads: Arc<ChunkArray<u64>>,
    deleted: StampPages,
    ids: IdMap,
    columns: Vec<Arc<VectorColumn>>,
    payload: Arc<PayloadRows>,
    /// Rows deleted up to here were dead before any view of this process existed.
    dead_before: SeqNo,
    dir: Arc<dyn Directory>,
    /// The last checkpoint; its lock lets in one checkpoint at a time and no reader.
    recorded: Mutex<SegmentState>,
}

impl GrowingSegment {
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
        self.heads.len()
    }

    /// Head of a row.
    #[must_use]
    pub fn head(&self, row: Row) -> RowHead {
        RowHead::decode(self.heads.row(row)).expect("heads were checked when they were stored")
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
    pub fn ids(&self) -> &IdMap {
        &self.ids
    }

    /// Newest row of an id and its head, as the writer sees it.
    #[must_use]
    pub fn newest(&self, id: PointId) -> Option<(Row, RowHead)> {
        self.ids.newest(id).map(|row| (row, self.head(row)))
    }
}
