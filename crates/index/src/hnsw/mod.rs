//! The HNSW graph of a growing segment: searched while it is built (Malkov and Yashunin 2018,
//! arXiv 1603.09320).
//!
//! One caller at a time inserts batches of rows with as many threads as it lends; any number of
//! threads search meanwhile. After each batch [`Hnsw::indexed_len`] tells how far the graph
//! reaches. Reading order: [`params`], [`space`], `levels`, `links`, `search`, `filtered`,
//! `select`, `batch`, `insert`; [`join`] makes one graph of several and heals what deletions leave.
//!
//! What holds at every moment, also in the middle of a batch and after a cancelled one:
//! - a link names another row whose code and own links are complete;
//! - level 0 is strongly connected: each row but the first has a parent, a row that was there before
//!   it, and the links between parent and child are never pruned;
//! - the same batches with the same seed give the same links with any number of threads.

pub mod frozen;
pub mod join;
pub mod params;
pub mod space;

mod batch;
mod filtered;
mod insert;
mod key;
mod levels;
mod links;
mod scratch;
mod search;
mod select;
#[cfg(test)]
mod tests;

use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

pub use frozen::{BadGraph, FrozenGraph, GraphParts};
pub use insert::{BatchReport, Cancelled};
pub use join::{BadPlaces, Join, JoinInput, JoinProgress, NO_PLACE, Source};
pub use params::Params;
pub use scratch::{Scratch, SearchStats};
pub use search::Walk;
pub use space::{Inline, Scorer, Space, Workers};

use crate::Row;
use insert::Buffers;
use links::Links;

/// A graph over rows `0..indexed_len()` of one segment.
#[derive(Debug)]
pub struct Hnsw {
    params: Params,
    links: Links,
    /// Level of the entry point in the upper half, its row in the lower; one word, so that a
    /// reader never pairs the row of one moment with the level of another.
    entry: AtomicU64,
    indexed_len: AtomicU32,
    /// Rows in the graph: `indexed_len` less those that were skipped.
    linked_rows: AtomicU32,
    /// What the builder reuses from batch to batch; its lock lets in one builder at a time.
    builder: Mutex<Buffers>,
}

/// Entry word of a graph without rows.
const NO_ENTRY: u64 = u64::MAX;

/// Rows of the first batches. Up to this size rows of a batch are compared with one another in
/// full, so a small graph loses nothing by being built in batches.
const BATCH_ROWS_MIN: Row = 32;

/// A batch is at most one row in this many of the graph: rows of one batch see only a part of
/// one another (ParlayANN, arXiv 2305.04359, uses the same 2 %).
const BATCH_PART: Row = 50;

/// Largest batch: a few seconds of one core, so the searchable part grows steadily; enough for
/// tens of threads.
const BATCH_ROWS_MAX: Row = 4096;

impl Hnsw {
    /// An empty graph that can take rows `0..rows_max`. Parameters are [clamped](Params::clamped).
    ///
    /// Cost: 24 bytes for each 4,096 rows of `rows_max` now, about `8 * m + 24` bytes a row later.
    #[must_use]
    pub fn new(params: Params, rows_max: Row) -> Self {
        let params = params.clamped();
        Self {
            params,
            links: Links::new(params, rows_max),
            entry: AtomicU64::new(NO_ENTRY),
            indexed_len: AtomicU32::new(0),
            linked_rows: AtomicU32::new(0),
            builder: Mutex::new(Buffers::default()),
        }
    }

    /// The parameters in use.
    #[must_use]
    pub fn params(&self) -> Params {
        self.params
    }

    /// Rows below this were inserted or skipped: those inserted can be found.
    #[must_use]
    pub fn indexed_len(&self) -> Row {
        self.indexed_len.load(Ordering::Acquire)
    }

    /// Rows in the graph: those below [`indexed_len`](Self::indexed_len) that were not skipped.
    #[must_use]
    pub fn linked_rows(&self) -> Row {
        self.linked_rows.load(Ordering::Acquire)
    }

    /// Bytes of memory that the links take.
    #[must_use]
    pub fn heap_bytes(&self) -> u64 {
        self.links.heap_bytes()
    }

    /// How many of the `available` rows past `indexed_len` the next batch should take: 32 while
    /// the graph is small, then 2 % of it, at most 4,096.
    #[must_use]
    pub fn next_batch_len(&self, available: Row) -> Row {
        let part = self.linked_rows() / BATCH_PART;
        part.clamp(BATCH_ROWS_MIN, BATCH_ROWS_MAX).min(available)
    }

    /// Highest level that `row` is on.
    #[must_use]
    pub fn level_of(&self, row: Row) -> usize {
        self.links.level_of(row)
    }

    /// The rows that `row` links to on `level`; none if it is not in the graph.
    pub fn links(&self, level: usize, row: Row) -> impl Iterator<Item = Row> + '_ {
        self.links.rows(level, row)
    }

    /// Where walks begin: a row and its level; none while the graph is empty.
    #[must_use]
    pub fn entry(&self) -> Option<(Row, usize)> {
        // Acquire: the entry's links and code are seen with it.
        let word = self.entry.load(Ordering::Acquire);
        #[expect(clippy::cast_possible_truncation, reason = "the lower half is the row")]
        let row = word as Row;
        (word != NO_ENTRY).then_some((row, (word >> 32) as usize))
    }
}
