//! What there is to index: a pure function of the facts of the columns.

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
    /// Why `work` may not run, if it may not.
    pub held: Option<&'static str>,
}

/// Columns whose backlog reached the threshold, and those whose job has not caught up: a job once
/// begun goes on until nothing is left, so that a load ends with every point in the graph.
#[must_use]
pub fn indexing(facts: &[ColumnFacts], config: &OptimizerConfig) -> IndexingPlan {
    if config.indexing_threshold == 0 {
        return IndexingPlan::default();
    }
    let threshold_bytes = (config.indexing_threshold as u64).saturating_mul(1024);
    let wants = |column: &&ColumnFacts| {
        let backlog_bytes = u64::from(column.unindexed()) * column.vector_bytes;
        column.has_graph
            && column.unindexed() > 0
            && (column.is_running || backlog_bytes >= threshold_bytes)
    };
    let mut work: Vec<ColumnFacts> = facts.iter().filter(wants).copied().collect();
    work.sort_by_key(|c| (std::cmp::Reverse(c.unindexed()), c.segment, c.column));
    let held = (config.max_optimization_threads == Some(0) && !work.is_empty())
        .then_some("max_optimization_threads is 0: indexing is wanted and may not run");
    IndexingPlan { work, held }
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
        }
    }

    #[test]
    fn indexing_starts_at_the_threshold_and_runs_until_nothing_is_left() {
        let config = OptimizerConfig {
            indexing_threshold: 100,
            ..OptimizerConfig::default()
        };
        assert!(indexing(&[column(99, 0, false)], &config).work.is_empty());
        assert_eq!(indexing(&[column(100, 0, false)], &config).work.len(), 1);
        assert_eq!(indexing(&[column(100, 99, true)], &config).work.len(), 1);
        assert!(indexing(&[column(100, 100, true)], &config).work.is_empty());
    }

    #[test]
    fn threshold_zero_plans_nothing_and_no_threads_hold_the_work() {
        let off = OptimizerConfig {
            indexing_threshold: 0,
            ..OptimizerConfig::default()
        };
        assert_eq!(
            indexing(&[column(u32::MAX, 0, true)], &off),
            IndexingPlan::default()
        );
        let held = OptimizerConfig {
            max_optimization_threads: Some(0),
            ..OptimizerConfig::default()
        };
        let plan = indexing(&[column(1_000_000, 0, false)], &held);
        assert_eq!(plan.work.len(), 1);
        assert!(plan.held.is_some());
    }

    #[test]
    fn a_column_without_graph_needs_nothing() {
        let plain = ColumnFacts {
            has_graph: false,
            ..column(1_000_000, 0, false)
        };
        assert!(
            indexing(&[plain], &OptimizerConfig::default())
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
            while let Some(first) = indexing(&facts, &config).work.first().copied() {
                assert!(steps < steps_max, "{facts:?}");
                let same = |c: &&mut ColumnFacts| c.segment == first.segment;
                for worked in facts.iter_mut().filter(same) {
                    worked.indexed += 1 + roll(u64::from(worked.unindexed())) as Row;
                    worked.is_running = true;
                }
                steps += 1;
            }
            assert_eq!(indexing(&facts, &config), indexing(&facts, &config));
        }
    }
}
