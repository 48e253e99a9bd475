//! One segment, growing or sealed: points, vectors, payload, field indexes, filters and the search
//! on one segment. Synchronous only; every file goes through [`dir::Directory`].
#![deny(missing_docs)]

pub mod ids;

pub use ids::{PointId, SeqNo};
pub mod field;
pub mod payload;
