//! Which segments carry so much that is dead that they are written anew.

use std::cmp::Ordering;

use uuid::Uuid;

use super::facts::{ColumnFacts, Limits, SegmentFacts};

/// Segments to vacuum, the worst first. One that takes rows is closed first.
///
/// A sealed segment without a live row is one at once: it costs nothing to drop.
#[must_use]
pub fn wishes(segments: &[SegmentFacts], limits: &Limits) -> Vec<Uuid> {
    let mut worst: Vec<(f64, Uuid)> = segments
        .iter()
        .filter(|segment| !segment.is_busy)
        .filter_map(|segment| Some((dead_share(segment, limits)?, segment.segment)))
        .collect();
    worst.sort_by(|a, b| {
        let by_share = b.0.partial_cmp(&a.0).unwrap_or(Ordering::Equal);
        by_share.then(a.1.cmp(&b.1))
    });
    worst.into_iter().map(|(_, segment)| segment).collect()
}

/// Share of the segment that is dead, if that calls for a vacuum.
fn dead_share(segment: &SegmentFacts, limits: &Limits) -> Option<f64> {
    let dead = segment.rows.saturating_sub(segment.live);
    if segment.is_sealed && segment.live == 0 {
        return Some(1.0);
    }
    let share = dead as f64 / segment.rows.max(1) as f64;
    if segment.rows >= limits.vacuum_min && share > limits.deleted_threshold {
        return Some(share);
    }
    let columns = segment.columns.iter();
    columns
        .filter_map(|column| dead_vectors_share(column, limits))
        .max_by(f64::total_cmp)
}

/// The same for one vector in a graph; the least is meant of the deleted ones here, as in Qdrant.
fn dead_vectors_share(column: &ColumnFacts, limits: &Limits) -> Option<f64> {
    column.graph?;
    let share = column.deleted_vectors as f64 / f64::from(column.indexed.max(1));
    let wants = column.deleted_vectors >= limits.vacuum_min && share > limits.deleted_threshold;
    wants.then_some(share.min(1.0))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{LIMITS, growing, sealed};
    use super::*;

    #[test]
    fn past_the_threshold_and_large_enough_worst_first() {
        let segments = [
            sealed(1, 10_000, 7_999),
            sealed(2, 10_000, 8_000),
            sealed(3, 999, 10),
            sealed(4, 1_000, 100),
            growing(5, 10_000, 5_000),
        ];
        let wanted: Vec<u128> = wishes(&segments, &LIMITS)
            .iter()
            .map(Uuid::as_u128)
            .collect();
        assert_eq!(wanted, [4, 5, 1]);
    }

    #[test]
    fn a_sealed_segment_without_live_rows_goes_however_small_it_is() {
        let segments = [sealed(1, 3, 0), growing(2, 3, 0)];
        assert_eq!(wishes(&segments, &LIMITS), [Uuid::from_u128(1)]);
    }

    #[test]
    fn deleted_vectors_of_living_points_count_too() {
        let mut segment = sealed(1, 10_000, 10_000);
        segment.columns[0].deleted_vectors = 2_001;
        assert_eq!(wishes(&[segment.clone()], &LIMITS).len(), 1);
        segment.columns[0].deleted_vectors = 2_000;
        assert!(wishes(&[segment], &LIMITS).is_empty());
    }
}
