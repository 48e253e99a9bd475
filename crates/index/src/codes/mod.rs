//! Codes of vectors (quantization) that need no training: made at ingest, row by row.
//!
//! 1. [`Rotation`]: a random rotation `R`, one for a collection, spreads each vector evenly over
//!    its coordinates, whatever the data looks like.
//! 2. [`Encoder`]: a segment's centre `c` is taken off, `y = Rx - Rc`, and `y` becomes an 8-bit
//!    code (graph build and walk) and a 1-bit code (scan of rows outside the graph).
//! 3. [`Query`]: a vector prepared to be compared with codes. Both codes estimate the metric's own
//!    score, larger is better.
//! 4. [`record`]: how a code and its few exact numbers lie in memory and in files.
//!
//! Estimators: RaBitQ (arXiv 2405.12497, section 3.2). A code `g` (signs, or bytes) stands for the
//! vector `f * g` with `f = |y|^2 / (y . g)`, so that the error `f * g - y` is orthogonal to `y`.
//! The estimate of `y . p` is then free of bias over the rotation, and its error is that of the
//! part of `p` orthogonal to `y` alone: the nearer the two, the smaller.
//!
//! Codes choose candidates; the caller rescores those with the original vectors.

mod center;
mod centered;
mod encoder;
mod query;
pub mod record;
pub mod rotation;
#[cfg(test)]
mod tests;

pub use center::center_of;
pub use encoder::{DotPairs, Encoder, candidates1, candidates8};
pub use query::Query;
pub use rotation::Rotation;
