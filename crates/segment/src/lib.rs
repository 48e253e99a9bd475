//! One segment, growing or sealed: points, vectors, payload, field indexes, filters and the search
//! on one segment. Synchronous only; every file goes through [`dir::Directory`].
#![deny(missing_docs)]

pub mod chunk;
pub mod dir;
pub mod durable;
pub mod error;
pub mod field;
pub mod file;
pub mod growing;
pub mod ids;
pub mod mapped;
pub mod mask;
pub mod parts;
pub mod payload;
pub mod points;
pub mod rows;
pub mod sealed;
pub mod search;
pub mod usage;
pub mod view;

pub use ids::{PointId, SeqNo};
