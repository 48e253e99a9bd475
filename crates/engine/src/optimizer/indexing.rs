//! The background thread that inserts growing rows into their graphs, batch by batch.
//!
//! 1. Wait for the bell that a writer rings after each view.
//! 2. For each collection, plan ([`super::plan::indexing`]); take the column with the largest
//!    backlog and insert one batch of it with the background workers.
//! 3. Record progress; begin again, so that no collection waits for another's whole backlog.
//!
//! It runs at the lowest priority, holds no lock that a search or a write takes, and publishes
//! nothing but the graph's `indexed_len`.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use flatwater_index::Row;
use parking_lot::Mutex;
use uuid::Uuid;

use super::plan::{self, ColumnFacts, IndexingPlan};
use crate::clock;
use crate::config::collection::OptimizerConfig;
use crate::pool::background::ScopedWorkers;
use crate::pool::bell::Bell;
use crate::pool::priority;
use crate::shard::Shard;
use crate::shard::view::ShardView;

/// Finished jobs that are remembered, as many as Qdrant remembers.
const COMPLETED_MAX: usize = 16;

/// How often the thread looks for work when no bell rings.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// A background job, running or done.
#[derive(Clone, Debug)]
pub struct JobReport {
    /// Its own id.
    pub id: Uuid,
    /// Wire name of the optimizer, e.g. `indexing`.
    pub optimizer: &'static str,
    /// `None` while it runs; then how it ended (`Ok` = done).
    pub outcome: Option<Result<(), String>>,
    /// Input segments: id and points.
    pub segments: Vec<(Uuid, u64)>,
    /// Rows done.
    pub done: u64,
    /// Rows in all.
    pub total: u64,
    /// When it started, milliseconds since 1970.
    pub started_at_ms: u64,
    /// When it ended.
    pub finished_at_ms: Option<u64>,
}

/// Indexing jobs of one collection.
#[derive(Debug, Default)]
pub struct IndexingJobs {
    state: Mutex<JobState>,
}

#[derive(Debug, Default)]
struct JobState {
    running: BTreeMap<(Uuid, usize), JobReport>,
    completed: VecDeque<JobReport>,
}

impl IndexingJobs {
    /// Running jobs, and the finished ones, newest first.
    #[must_use]
    pub fn reports(&self) -> (Vec<JobReport>, Vec<JobReport>) {
        let state = self.state.lock();
        (
            state.running.values().cloned().collect(),
            state.completed.iter().cloned().collect(),
        )
    }

    fn is_running(&self, segment: Uuid, column: usize) -> bool {
        self.state.lock().running.contains_key(&(segment, column))
    }

    fn record(&self, facts: &ColumnFacts, points: u64, indexed: Row, available: Row) {
        let key = (facts.segment, facts.column);
        let mut state = self.state.lock();
        let report = state.running.entry(key).or_insert_with(|| JobReport {
            id: Uuid::new_v4(),
            optimizer: "indexing",
            outcome: None,
            segments: vec![(facts.segment, points)],
            done: 0,
            total: 0,
            started_at_ms: clock::unix_ms(),
            finished_at_ms: None,
        });
        report.done = u64::from(indexed);
        report.total = u64::from(available);
        report.segments = vec![(facts.segment, points)];
        if indexed < available {
            return;
        }
        if let Some(mut report) = state.running.remove(&key) {
            report.outcome = Some(Ok(()));
            report.finished_at_ms = Some(clock::unix_ms());
            state.completed.push_front(report);
            state.completed.truncate(COMPLETED_MAX);
        }
    }
}

/// Facts of every vector of every segment in a view.
#[must_use]
pub fn facts(view: &ShardView, jobs: &IndexingJobs) -> Vec<ColumnFacts> {
    let mut facts = Vec::new();
    for segment in &view.segments {
        let shared = segment.segment();
        for (index, column) in shared.columns().iter().enumerate() {
            facts.push(ColumnFacts {
                segment: shared.id(),
                column: index,
                available: column.graph_available(),
                indexed: column.indexed_len(),
                vector_bytes: column.spec().dim as u64 * 4,
                has_graph: column.graph().is_some(),
                is_running: jobs.is_running(shared.id(), index),
            });
        }
    }
    facts
}

/// The plan of a collection at this moment.
#[must_use]
pub fn plan(view: &ShardView, jobs: &IndexingJobs, config: &OptimizerConfig) -> IndexingPlan {
    plan::indexing(&facts(view, jobs), config)
}

/// A shard to index, with its jobs and settings.
#[derive(Clone, Debug)]
pub struct IndexingTarget {
    /// The shard.
    pub shard: Arc<Shard>,
    /// Its jobs.
    pub jobs: Arc<IndexingJobs>,
    /// Its collection's settings.
    pub config: OptimizerConfig,
}

/// The background thread.
pub(crate) struct Indexer {
    pub(crate) bell: Bell,
    pub(crate) stop: Arc<AtomicBool>,
    pub(crate) threads: usize,
    /// Shards of the open collections, asked anew each time.
    pub(crate) targets: Box<dyn Fn() -> Vec<IndexingTarget> + Send + Sync>,
}

impl Indexer {
    /// Runs until `stop` is set.
    pub(crate) fn run(self) {
        if !priority::lower_this_thread() {
            tracing::warn!(
                "background threads run at normal priority: the system refused a lower one"
            );
        }
        let workers = ScopedWorkers::new(self.threads);
        while !self.is_stopping() {
            let mut worked = false;
            for target in (self.targets)() {
                worked |= self.work_on(&target, &workers);
            }
            if !worked {
                self.bell.wait(LOOK_INTERVAL);
            }
        }
    }

    fn is_stopping(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    /// Inserts one batch of the shard's largest backlog. Returns whether there was any.
    fn work_on(&self, target: &IndexingTarget, workers: &ScopedWorkers) -> bool {
        let view = target.shard.view();
        let plan = plan(&view, &target.jobs, &target.config);
        let Some(first) = plan.work.first().filter(|_| plan.held.is_none()) else {
            return false;
        };
        let Some(segment) = view
            .segments
            .iter()
            .find(|s| s.segment().id() == first.segment)
        else {
            return false;
        };
        let points = segment.live_count();
        let shared = segment.segment();
        if first.indexed == 0 || !first.is_running {
            target
                .jobs
                .record(first, points, first.indexed, first.available);
        }
        let cancel = || self.is_stopping();
        let is_done = shared.index_step(first.column, workers, &cancel);
        let column = &shared.columns()[first.column];
        target.jobs.record(
            first,
            points,
            column.indexed_len(),
            column.graph_available(),
        );
        is_done
    }
}
