//! Append-only chunks that one thread writes and any number read, without locks.
//!
//! This module owns the lock-free, append-only memory of a segment:
//! - [`ChunkArray`] / [`ChunkWriter`]: rows of a fixed width (vectors, codes, ids);
//! - [`BlobLog`] / [`BlobWriter`]: byte strings of any length (payload);
//! - [`StampPages`] / [`HeadPages`]: one number a row, set later and seldom.
//!
//! How the first two work:
//! 1. A chunk is a [`Region`](crate::dir::Region): a mapped file of fixed length whose blocks were
//!    allocated before. The chunk table is an array of `OnceLock`s of fixed size; chunks are added and
//!    never moved or replaced, so an address once handed out stays good while the array lives.
//! 2. The writer reserves (the only step that can fail), stores rows past the published length,
//!    then publishes the new length with a Release store.
//! 3. A reader loads the length with Acquire and touches nothing past it. What lies below is never
//!    written again, so plain shared slices are sound there.
//! 4. A checkpoint syncs the chunks up to a length that it records; at open that length is given
//!    back, and what lay beyond is written anew.
//!
//! `unsafe` stands in `memory.rs` and where the two writers and readers keep its contract.

mod array;
mod blob;
mod memory;
mod schedule;
mod stamps;

pub use array::{ChunkArray, ChunkWriter};
pub use blob::{BLOB_BYTES_MAX, BlobAddr, BlobLog, BlobPos, BlobWriter};
pub(crate) use memory::Chunk;
pub use schedule::CHUNK_BYTES_MIN;
pub use stamps::{Cell, HeadPages, Pages, StampPages};

#[cfg(test)]
mod tests;
