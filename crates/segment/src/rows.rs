//! Rows of one width, wherever they lie: in chunks that grow, or in a finished file.

use std::sync::Arc;

use bytemuck::Pod;
use flatwater_index::Row;

use crate::chunk::ChunkArray;
use crate::mapped::MappedRows;

/// Rows `[T; width]` of a segment. Cloning it copies a pointer.
#[derive(Clone, Debug)]
pub enum Rows<T> {
    /// Of a growing segment.
    Growing(Arc<ChunkArray<T>>),
    /// Of a sealed one.
    Sealed(MappedRows<T>),
}

/// Reading single rows; both kinds have it, so that a hot loop is made for one of them.
pub trait RowRead<T>: Sync {
    /// Row `row`.
    ///
    /// # Panics
    /// When there is no such row.
    fn row(&self, row: Row) -> &[T];

    /// Asks the CPU to fetch a row that will be read soon. Any number will do.
    fn prefetch(&self, row: Row);
}

impl<T: Pod + Send + Sync> RowRead<T> for ChunkArray<T> {
    #[inline]
    fn row(&self, row: Row) -> &[T] {
        Self::row(self, row)
    }

    #[inline]
    fn prefetch(&self, row: Row) {
        Self::prefetch(self, row);
    }
}

impl<T: Pod + Send + Sync> RowRead<T> for MappedRows<T> {
    #[inline]
    fn row(&self, row: Row) -> &[T] {
        Self::row(self, row.into())
    }

    #[inline]
    fn prefetch(&self, row: Row) {
        Self::prefetch(self, row.into());
    }
}

impl<T: Pod> Rows<T> {
    /// Rows that readers may see.
    #[must_use]
    pub fn len(&self) -> Row {
        match self {
            Self::Growing(rows) => rows.len(),
            // A segment numbers its rows by u32; a longer file is refused when it is opened.
            Self::Sealed(rows) => rows.len() as Row,
        }
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Values in a row.
    #[must_use]
    pub fn width(&self) -> usize {
        match self {
            Self::Growing(rows) => rows.width(),
            Self::Sealed(rows) => rows.width(),
        }
    }

    /// Row `row`.
    ///
    /// # Panics
    /// When there is no such row.
    #[inline]
    #[must_use]
    pub fn row(&self, row: Row) -> &[T] {
        match self {
            Self::Growing(rows) => rows.row(row),
            Self::Sealed(rows) => rows.row(row.into()),
        }
    }

    /// The rows from `row` on that lie next to it in memory, and their count; none past the end.
    #[must_use]
    pub fn run(&self, row: Row) -> (&[T], Row) {
        match self {
            Self::Growing(rows) => rows.run(row),
            Self::Sealed(rows) => {
                let values = rows.slice(row.into(), rows.len());
                (values, self.len().saturating_sub(row))
            }
        }
    }

    /// Bytes of them that are in memory now.
    #[must_use]
    pub fn resident_bytes(&self) -> u64 {
        match self {
            Self::Growing(rows) => rows.resident_bytes(),
            Self::Sealed(rows) => rows.file().resident_bytes(),
        }
    }

    /// The chunks of a growing segment, which a checkpoint syncs.
    #[must_use]
    pub fn growing(&self) -> Option<&ChunkArray<T>> {
        match self {
            Self::Growing(rows) => Some(rows),
            Self::Sealed(_) => None,
        }
    }
}
