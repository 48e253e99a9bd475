//! One segment, growing or sealed: points, vectors, payload, field indexes, filters and the search
//! on one segment. Synchronous only; every file goes through [`dir::Directory`].
#![deny(missing_docs)]

pub mod chunk;
pub mod dir;
pub mod error;
pub mod field;
pub mod file;
pub mod growing;
pub mod ids;
pub mod mask;
pub mod payload;
pub mod points;
pub mod search;

pub use ids::{PointId, SeqNo};
