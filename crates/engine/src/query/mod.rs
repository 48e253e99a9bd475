//! Reads: each takes one view of the shard and nothing else.

pub mod record;
pub mod request;
pub mod scroll;
pub mod search;
