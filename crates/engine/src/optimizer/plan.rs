//! What there is to index and to seal: pure functions of the facts of segments and their vectors.

use flatwater_index::Row;
use uuid::Uuid;

use crate::config::collection::OptimizerConfig;

/// Facts of one vector of one segment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ColumnFacts {
    /// Segment.
    pub segment: Uuid,
    /// Place of the vector in the segment.
    pub column: usize,
    /// Rows that the graph could take.
    pub available: Row,
    /// Rows that it covers.
    pub indexed: Row,
    /// Bytes of one original vector.
    pub vector_bytes: u64,
    /// Whether there is a graph at all (`m` above 0).
    pub has_graph: bool,
    /// Whether a job has begun here and not caught up yet.
    pub is_running: bool,
    /// Whether the segment takes no more rows: the rest of its graph is built however small it is.
    pub is_full: bool,
}

/// Facts of one segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentFacts {
    /// Segment.
    pub segment: Uuid,
    /// Whether it takes no more rows.
    pub is_full: bool,
    /// Whether it is made of immutable files.
    pub is_sealed: bool,
}

impl ColumnFacts {
    /// Rows that only the scan serves.
    #[must_use]
    pub fn unindexed(&self) -> Row {
        self.available.saturating_sub(self.indexed)
    }
}

/// What may be done.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct IndexingPlan {
    /// Columns to work on, the largest backlog first.
    pub work: Vec<ColumnFacts>,
    /// Segments to seal, oldest first: full, with complete graphs.
    pub seal: Vec<Uuid>,
    /// Why nothing of it may run, if it may not.
    pub held: Option<&'static str>,
}

/// Columns whose backlog reached the threshold, and those whose job has not caught up: a job once
/// begun goes on until nothing is left, so that a load ends with every point in the graph. Segments that
/// are full and have nothing left to index are sealed.
#[must_use]
pub fn indexing(
    facts: &[ColumnFacts],
    segments: &[SegmentFacts],
    config: &OptimizerConfig,
) -> IndexingPlan {
    if config.indexing_threshold == 0 {
        return IndexingPlan::default();
    }
    let threshold_bytes = (config.indexing_threshold as u64).saturating_mul(1024);
    let wants = |column: &&ColumnFacts| {
        let backlog_bytes = u64::from(column.unindexed()) * column.vector_bytes;
        column.has_graph
            && column.unindexed() > 0
            && (column.is_running || column.is_full || backlog_bytes >= threshold_bytes)
    };
    let mut work: Vec<ColumnFacts> = facts.iter().filter(wants).copied().collect();
    work.sort_by_key(|c| (std::cmp::Reverse(c.unindexed()), c.segment, c.column));
    let is_complete = |segment: Uuid| {
        let mut columns = facts.iter().filter(|column| column.segment == segment);
        columns.all(|column| !column.has_graph || column.unindexed() == 0)
    };
    let seal: Vec<Uuid> = segments
        .iter()
        .filter(|s| s.is_full && !s.is_sealed && is_complete(s.segment))
        .map(|s| s.segment)
        .collect();
    let has_work = !work.is_empty() || !seal.is_empty();
    let held = (config.max_optimization_threads == Some(0) && has_work)
        .then_some("max_optimization_threads is 0: indexing is wanted and may not run");
    IndexingPlan { work, seal, held }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(available: Row, indexed: Row, is_running: bool) -> ColumnFacts {
        ColumnFacts {
            segment: Uuid::nil(),
            column: 0,
            available,
            indexed,
            vector_bytes: 1024,
            has_graph: true,
            is_running,
            is_full: false,
        }
    }

    #[test]
    fn indexing_starts_at_the_threshold_and_runs_until_nothing_is_left() {
        let config = OptimizerConfig {
            indexing_threshold: 100,
            ..OptimizerConfig::default()
        };
        assert!(
            indexing(&[column(99, 0, false)], &[], &config)
                .work
                .is_empty()
        );
        assert_eq!(
            indexing(&[column(100, 0, false)], &[], &config).work.len(),
            1
        );
        assert_eq!(
            indexing(&[column(100, 99, true)], &[], &config).work.len(),
            1
        );
        assert!(
            indexing(&[column(100, 100, true)], &[], &config)
                .work
                .is_empty()
        );
    }

    #[test]
    fn threshold_zero_plans_nothing_and_no_threads_hold_the_work() {
        let off = OptimizerConfig {
            indexing_threshold: 0,
            ..OptimizerConfig::default()
        };
        assert_eq!(
            indexing(&[column(u32::MAX, 0, true)], &[], &off),
            IndexingPlan::default()
        );
        let held = OptimizerConfig {
            max_optimization_threads: Some(0),
            ..OptimizerConfig::default()
        };
        let plan = indexing(&[column(1_000_000, 0, false)], &[], &held);
        assert_eq!(plan.work.len(), 1);
        assert!(plan.held.is_some());
    }

    #[test]
    fn a_full_segment_is_indexed_to_its_end_then_sealed_once() {
        let config = OptimizerConfig {
            indexing_threshold: 1_000_000,
            ..OptimizerConfig::default()
        };
        let full = |indexed| ColumnFacts {
            is_full: true,
            ..column(100, indexed, false)
        };
        let segment = |is_full, is_sealed| SegmentFacts {
            segment: Uuid::nil(),
            is_full,
            is_sealed,
        };
        let rest = indexing(&[full(99)], &[segment(true, false)], &config);
        assert_eq!((rest.work.len(), rest.seal.len()), (1, 0));
        let done = indexing(&[full(100)], &[segment(true, false)], &config);
        assert_eq!((done.work.len(), done.seal), (0, vec![Uuid::nil()]));
        for (is_full, is_sealed) in [(false, false), (true, true)] {
            let none = indexing(&[full(100)], &[segment(is_full, is_sealed)], &config);
            assert_eq!(none, IndexingPlan::default());
        }
        let held = OptimizerConfig {
            max_optimization_threads: Some(0),
            ..config
        };
        assert!(
            indexing(&[full(100)], &[segment(true, false)], &held)
                .held
                .is_some()
        );
        let off = OptimizerConfig {
            indexing_threshold: 0,
            ..config
        };
        let plan = indexing(&[full(0)], &[segment(true, false)], &off);
        assert_eq!(plan, IndexingPlan::default());
    }

    #[test]
    fn a_column_without_graph_needs_nothing() {
        let plain = ColumnFacts {
            has_graph: false,
            ..column(1_000_000, 0, false)
        };
        assert!(
            indexing(&[plain], &[], &OptimizerConfig::default())
                .work
                .is_empty()
        );
    }

    #[test]
    fn the_indexing_policy_converges() {
        let mut state = 7u64;
        let mut roll = |sides: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) % sides
        };
        for _ in 0..500 {
            let mut facts: Vec<ColumnFacts> = (0..roll(6))
                .map(|index| ColumnFacts {
                    segment: Uuid::from_u128(u128::from(index)),
                    has_graph: roll(5) > 0,
                    is_running: roll(3) == 0,
                    ..column(roll(5000) as Row, roll(5000) as Row, false)
                })
                .collect();
            let indexing_threshold = roll(2000) as usize;
            let config = OptimizerConfig {
                indexing_threshold,
                ..OptimizerConfig::default()
            };
            // With no writes, each batch takes at least one row, so this many steps are enough.
            let steps_max: u64 = facts.iter().map(|c| u64::from(c.unindexed())).sum();
            let mut steps = 0;
            while let Some(first) = indexing(&facts, &[], &config).work.first().copied() {
                assert!(steps < steps_max, "{facts:?}");
                let same = |c: &&mut ColumnFacts| c.segment == first.segment;
                for worked in facts.iter_mut().filter(same) {
                    worked.indexed += 1 + roll(u64::from(worked.unindexed())) as Row;
                    worked.is_running = true;
                }
                steps += 1;
            }
            assert_eq!(
                indexing(&facts, &[], &config),
                indexing(&facts, &[], &config)
            );
        }
    }
}
