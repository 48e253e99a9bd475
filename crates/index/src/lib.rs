//! Algorithms over slices for vector search: distance kernels, codes, the HNSW graph, flat scans.
//!
//! This crate knows no files, no clocks, no wire types and starts no threads: callers hand in the
//! rows, the codes and the workers. Scores are "larger is better" everywhere (see [`Metric`]).
#![deny(missing_docs)]

pub mod codes;
pub mod distance;
pub mod flat;
pub mod hnsw;
pub mod topk;
pub mod types;

pub use types::{Metric, Row, Scored};
