//! Ordered map from a point id to its newest row, written by one thread and read by many.

use std::ops::Bound;
use std::sync::atomic::{AtomicU32, Ordering};

use crossbeam_skiplist::SkipMap;
use flatwater_index::Row;

use crate::ids::PointId;

/// Bytes of an entry: key (32), row and references (16), the allocator's share (16), and its tower of one
/// and a third pointers.
const ENTRY_BYTES: u64 = 76;

/// Newest row of every id that a segment has ever held, in the order of ids.
///
/// An entry is never removed: a deleted point keeps its row, whose stamp says so. A reader that
/// finds a row beyond its view goes back along the chain of previous rows.
#[derive(Debug, Default)]
pub struct IdMap {
    // The value is replaced in place: `insert` on an existing key would take the entry out for a
    // moment, and a reader would miss the point.
    rows: SkipMap<PointId, AtomicU32>,
}

impl IdMap {
    /// About the bytes of memory that it takes.
    #[must_use]
    pub fn heap_bytes(&self) -> u64 {
        self.rows.len() as u64 * ENTRY_BYTES
    }

    /// The newest row of `id`, if the segment has ever held it.
    #[must_use]
    pub fn newest(&self, id: PointId) -> Option<Row> {
        self.rows
            .get(&id)
            .map(|entry| entry.value().load(Ordering::Acquire))
    }

    /// Makes `row` the newest row of `id`. Called by the writer only, after the row is published.
    pub fn set(&self, id: PointId, row: Row) {
        let entry = self.rows.get_or_insert_with(id, || AtomicU32::new(row));
        entry.value().store(row, Ordering::Release);
    }

    /// Calls `visit` with every id from `start` on, ascending, until it returns false.
    pub fn walk(&self, start: Option<PointId>, mut visit: impl FnMut(PointId, Row) -> bool) {
        let lower = start.map_or(Bound::Unbounded, Bound::Included);
        for entry in self.rows.range((lower, Bound::Unbounded)) {
            if !visit(*entry.key(), entry.value().load(Ordering::Acquire)) {
                return;
            }
        }
    }
}
