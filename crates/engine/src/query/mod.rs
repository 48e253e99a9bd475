//! Reads: each takes one view of the shard and nothing else.

mod order;
pub mod record;
pub mod request;
pub mod scroll;
pub mod search;
