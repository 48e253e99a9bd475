//! The embeddable engine: log, shard, segments and views, background indexing, collections, queries.
//!
//! It knows nothing of HTTP, gRPC or the wire's names for things.
#![deny(missing_docs)]

pub mod collection;
pub mod config;
pub mod engine;
pub mod error;
pub mod query;
pub mod wal;
