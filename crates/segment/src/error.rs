//! What can go wrong in a segment.

use flatwater_index::Row;

use crate::dir::DirError;

/// An error of a segment.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SegmentError {
    /// A file operation failed.
    #[error(transparent)]
    Dir(#[from] DirError),
    /// Bytes on disk do not check.
    #[error("{file} is damaged at byte {offset}: {detail}")]
    Corrupt {
        /// The file, within its directory.
        file: String,
        /// Where.
        offset: u64,
        /// What was expected and found.
        detail: String,
    },
    /// Row numbers are used up.
    #[error("the segment holds {rows} rows, its limit")]
    Full {
        /// Rows it holds.
        rows: Row,
    },
    /// A filter that cannot be evaluated.
    #[error("{0}")]
    Filter(#[from] crate::payload::eval::FilterError),
}
