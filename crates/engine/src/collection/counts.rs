//! The numbers of a collection that are watched: all from one view, no file is touched.

use std::collections::BTreeMap;

use super::Collection;
use super::segments::SegmentState;

/// Vectors of one name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VectorCounts {
    /// Live ones.
    pub live: u64,
    /// Live ones that a graph covers.
    pub indexed: u64,
    /// Bytes of one original.
    pub bytes: u64,
}

impl VectorCounts {
    /// Live vectors outside any graph: only the scan of codes serves them.
    #[must_use]
    pub fn unindexed(self) -> u64 {
        self.live - self.indexed
    }
}

/// Numbers of a collection at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Counts {
    /// Live points.
    pub points: u64,
    /// Rows of points that were deleted or replaced.
    pub deleted_rows: u64,
    /// Vectors by name.
    pub vectors: BTreeMap<String, VectorCounts>,
    /// Segments by state; states without one are left out.
    pub segments: BTreeMap<SegmentState, u64>,
    /// Updates accepted and not applied yet.
    pub update_queue_length: usize,
}

impl Counts {
    /// Live vectors outside any graph, and the bytes of their originals.
    #[must_use]
    pub fn backlog(&self) -> (u64, u64) {
        let vectors = self.vectors.values();
        vectors.fold((0, 0), |(count, bytes), vector| {
            let unindexed = vector.unindexed();
            (count + unindexed, bytes + unindexed * vector.bytes)
        })
    }
}

pub(super) fn collect(collection: &Collection) -> Counts {
    let view = collection.shard.view();
    let spec = collection.spec.vectors.iter();
    let empty = spec.map(|vector| {
        let bytes = vector.dim as u64 * 4;
        let none = VectorCounts {
            bytes,
            ..VectorCounts::default()
        };
        (vector.name.clone(), none)
    });
    let mut counts = Counts {
        vectors: empty.collect(),
        update_queue_length: collection.shard.queue_len(),
        ..Counts::default()
    };
    for segment in &view.segments {
        counts.points += segment.live_count();
        counts.deleted_rows += u64::from(segment.rows_len()) - segment.live_count();
        let state = SegmentState::of(segment.segment());
        *counts.segments.entry(state).or_default() += 1;
        for (place, column) in segment.segment().columns().iter().enumerate() {
            if let Some(vector) = counts.vectors.get_mut(&column.spec().name) {
                vector.live += segment.live_vectors(place);
                vector.indexed += segment.indexed_vectors_of(place);
            }
        }
    }
    counts
}
