//! What there is to index and to seal.

use uuid::Uuid;

use super::facts::{ColumnFacts, Limits, SegmentFacts};

/// Vectors whose backlog reached the threshold, and those whose job has not caught up: a job once begun
/// goes on until nothing is left, so that a load ends with every point in the graph. Segments that
/// are full and have nothing left to index are sealed.
#[must_use]
pub fn wishes(segments: &[&SegmentFacts], limits: &Limits) -> (Vec<ColumnFacts>, Vec<Uuid>) {
    let Some(threshold_bytes) = limits.indexing_threshold_bytes else {
        return (Vec::new(), Vec::new());
    };
    let wants = |column: &&ColumnFacts| {
        let backlog_bytes = u64::from(column.unindexed()) * column.vector_bytes;
        column.graph.is_some()
            && column.unindexed() > 0
            && (column.is_running || column.is_full || backlog_bytes >= threshold_bytes)
    };
    let growing = segments.iter().filter(|segment| !segment.is_sealed);
    let columns = growing.clone().flat_map(|segment| &segment.columns);
    let mut work: Vec<ColumnFacts> = columns.filter(wants).copied().collect();
    work.sort_by_key(|c| (std::cmp::Reverse(c.unindexed()), c.segment, c.column));
    let is_complete = |segment: &SegmentFacts| {
        let mut columns = segment.columns.iter();
        columns.all(|column| column.graph.is_none() || column.unindexed() == 0)
    };
    let seal = growing
        .filter(|segment| segment.is_full && is_complete(segment))
        .map(|segment| segment.segment)
        .collect();
    (work, seal)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{LIMITS, growing};
    use super::*;

    fn segment(available: u32, indexed: u32, is_running: bool) -> SegmentFacts {
        let mut segment = growing(1, available.into(), available.into());
        segment.columns[0].available = available;
        segment.columns[0].indexed = indexed;
        segment.columns[0].is_running = is_running;
        segment
    }

    fn work(segment: &SegmentFacts, threshold_kb: u64) -> usize {
        let limits = Limits {
            indexing_threshold_bytes: Some(threshold_kb * 1024),
            ..LIMITS
        };
        wishes(&[segment], &limits).0.len()
    }

    #[test]
    fn indexing_starts_at_the_threshold_and_runs_until_nothing_is_left() {
        assert_eq!(work(&segment(99, 0, false), 100), 0);
        assert_eq!(work(&segment(100, 0, false), 100), 1);
        assert_eq!(work(&segment(100, 99, true), 100), 1);
        assert_eq!(work(&segment(100, 100, true), 100), 0);
    }

    #[test]
    fn with_indexing_off_nothing_is_wanted() {
        let off = Limits {
            indexing_threshold_bytes: None,
            ..LIMITS
        };
        let mut full = segment(u32::MAX, 0, true);
        full.is_full = true;
        assert_eq!(wishes(&[&full], &off), (Vec::new(), Vec::new()));
    }

    #[test]
    fn a_full_segment_is_indexed_to_its_end_then_sealed_once() {
        let mut full = segment(500, 400, false);
        full.is_full = true;
        full.columns[0].is_full = true;
        let (work, seal) = wishes(&[&full], &LIMITS);
        assert_eq!((work.len(), seal.len()), (1, 0));
        full.columns[0].indexed = 500;
        let (work, seal) = wishes(&[&full], &LIMITS);
        assert_eq!((work.len(), seal), (0, vec![full.segment]));
        full.is_sealed = true;
        assert_eq!(wishes(&[&full], &LIMITS), (Vec::new(), Vec::new()));
    }

    #[test]
    fn a_vector_without_a_graph_holds_up_no_seal() {
        let mut full = segment(500, 0, false);
        full.is_full = true;
        full.columns[0].graph = None;
        assert_eq!(wishes(&[&full], &LIMITS), (Vec::new(), vec![full.segment]));
    }

    #[test]
    fn the_largest_backlog_is_first() {
        let (small, mut large) = (segment(5_000, 0, false), segment(9_000, 0, false));
        large.segment = Uuid::from_u128(2);
        large.columns[0].segment = large.segment;
        let (work, _) = wishes(&[&small, &large], &LIMITS);
        let order: Vec<Uuid> = work.iter().map(|column| column.segment).collect();
        assert_eq!(order, [large.segment, small.segment]);
    }
}
