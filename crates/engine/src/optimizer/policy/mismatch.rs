//! Which segments have graphs that the settings do not ask for.

use std::cmp::Reverse;

use uuid::Uuid;

use super::facts::{ColumnFacts, Limits, SegmentFacts};

/// Segments to write anew, the largest first. One that takes rows is closed first.
#[must_use]
pub fn wishes(segments: &[SegmentFacts], limits: &Limits) -> Vec<Uuid> {
    let differs = |segment: &&SegmentFacts| {
        let columns = segment.columns.iter();
        !segment.is_busy && segment.live > 0 && { columns }.any(|c| is_mismatch(segment, c, limits))
    };
    let mut wanted: Vec<&SegmentFacts> = segments.iter().filter(differs).collect();
    wanted.sort_by_key(|segment| (Reverse(segment.live), segment.segment));
    wanted.into_iter().map(|segment| segment.segment).collect()
}

fn is_mismatch(segment: &SegmentFacts, column: &ColumnFacts, limits: &Limits) -> bool {
    match (column.graph, column.wanted) {
        (None, None) => false,
        // A graph that is not there is only missed where graphs are built at all.
        (None, Some(_)) => is_worth_a_graph(segment, column, limits),
        // A small growing segment has nothing to lose yet; its successors get the new settings.
        (Some(_), _) if !segment.is_sealed && !is_worth_a_graph(segment, column, limits) => false,
        (Some(_), None) => true,
        (Some(has), Some(wanted)) => !has.serves(wanted),
    }
}

fn is_worth_a_graph(segment: &SegmentFacts, column: &ColumnFacts, limits: &Limits) -> bool {
    let bytes = segment.live.saturating_mul(column.vector_bytes);
    let reaches = |threshold| bytes >= threshold;
    limits.indexing_threshold_bytes.is_some_and(reaches)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{LIMITS, growing, sealed};
    use super::*;
    use crate::optimizer::policy::facts::GraphSettings;

    const OTHER: GraphSettings = GraphSettings {
        m: 32,
        ef_construct: Some(100),
    };

    #[test]
    fn a_graph_of_other_settings_is_built_anew_the_largest_first() {
        let mut segments = [
            sealed(1, 2_000, 2_000),
            sealed(2, 9_000, 9_000),
            sealed(3, 5_000, 5_000),
        ];
        segments[0].columns[0].wanted = Some(OTHER);
        segments[1].columns[0].wanted = Some(OTHER);
        let wanted: Vec<u128> = wishes(&segments, &LIMITS)
            .iter()
            .map(Uuid::as_u128)
            .collect();
        assert_eq!(wanted, [2, 1]);
    }

    #[test]
    fn an_unknown_width_serves_and_no_graph_is_wanted_with_m_zero() {
        let mut segment = sealed(1, 2_000, 2_000);
        segment.columns[0].graph = Some(GraphSettings {
            m: 16,
            ef_construct: None,
        });
        assert!(wishes(&[segment.clone()], &LIMITS).is_empty());
        segment.columns[0].wanted = None;
        assert_eq!(wishes(&[segment], &LIMITS).len(), 1);
    }

    #[test]
    fn a_missing_graph_is_missed_from_the_threshold_on_and_only_while_indexing_is_on() {
        let mut segment = sealed(1, 2_000, 2_000);
        segment.columns[0].graph = None;
        assert_eq!(wishes(&[segment.clone()], &LIMITS).len(), 1);
        let off = Limits {
            indexing_threshold_bytes: None,
            ..LIMITS
        };
        assert!(wishes(&[segment], &off).is_empty());
    }

    #[test]
    fn a_growing_segment_counts_once_it_is_worth_a_graph() {
        let mut segments = [growing(1, 50, 50), growing(2, 5_000, 5_000)];
        for segment in &mut segments {
            segment.columns[0].wanted = Some(OTHER);
        }
        assert_eq!(wishes(&segments, &LIMITS), [Uuid::from_u128(2)]);
    }
}
