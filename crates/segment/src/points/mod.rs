//! Which points a segment holds: ids, rows and the moments they were stored and deleted.

pub mod heads;
pub mod ids;
pub mod sorted;

use std::sync::Arc;

use flatwater_index::Row;

use crate::chunk::ChunkArray;
use crate::ids::PointId;
use crate::mapped::MappedFile;
use heads::RowHead;
use ids::IdMap;
use sorted::SortedIds;

/// Heads and ids of a segment's rows.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "one a segment; a box would be one more load for each look-up"
)]
pub enum Points {
    /// Of a growing segment.
    Growing {
        /// Heads, row by row.
        heads: Arc<ChunkArray<u64>>,
        /// Newest row of each id.
        ids: IdMap,
    },
    /// Of a sealed one.
    Sealed(SortedIds),
}

impl Points {
    /// Rows stored so far, dead ones too.
    #[must_use]
    pub fn rows_len(&self) -> Row {
        match self {
            Self::Growing { heads, .. } => heads.len(),
            Self::Sealed(ids) => ids.rows_len(),
        }
    }

    /// About the bytes of memory that they take.
    #[must_use]
    pub fn heap_bytes(&self) -> u64 {
        match self {
            Self::Growing { ids, .. } => ids.heap_bytes(),
            Self::Sealed(_) => 0,
        }
    }

    /// Bytes of their files that are in memory now.
    #[must_use]
    pub fn resident_bytes(&self) -> u64 {
        match self {
            Self::Growing { heads, .. } => heads.resident_bytes(),
            Self::Sealed(ids) => ids.files().map(MappedFile::resident_bytes).iter().sum(),
        }
    }

    /// Head of a row.
    ///
    /// # Panics
    /// When there is no such row. Heads are checked when a segment is opened.
    #[must_use]
    pub fn head(&self, row: Row) -> RowHead {
        let head = match self {
            Self::Growing { heads, .. } => RowHead::decode(heads.row(row)),
            Self::Sealed(ids) => ids.head(row),
        };
        head.expect("heads were checked when the segment was opened")
    }

    /// The newest row of `id`, if the segment has ever held it.
    #[must_use]
    pub fn newest(&self, id: PointId) -> Option<Row> {
        match self {
            Self::Growing { ids, .. } => ids.newest(id),
            Self::Sealed(ids) => ids.newest(id),
        }
    }

    /// Calls `visit` with every id from `start` on, ascending, until it returns false.
    pub fn walk(&self, start: Option<PointId>, visit: impl FnMut(PointId, Row) -> bool) {
        match self {
            Self::Growing { ids, .. } => ids.walk(start, visit),
            Self::Sealed(ids) => ids.walk(start, visit),
        }
    }
}
