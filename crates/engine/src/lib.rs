//! The embeddable engine: log, shard, segments and views, background indexing, collections, queries.
//!
//! It knows nothing of HTTP, gRPC or the wire's names for things.
#![deny(missing_docs)]

pub mod aliases;
pub mod clock;
pub mod collection;
pub mod config;
pub mod engine;
pub mod error;
pub mod optimizer;
pub mod pool;
pub mod query;
pub mod shard;
pub mod update;
pub mod vectors;
pub mod verify;
pub mod wal;
