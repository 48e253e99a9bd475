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
}
