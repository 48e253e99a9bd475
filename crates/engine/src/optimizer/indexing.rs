//! The background thread that inserts growing rows into their graphs, batch by batch.
//!
//! 1. Wait for the bell that a writer rings after each view.
//! 2. For each collection, build the first index of a field that a segment lacks, as somebody may wait for
//!    it.
//! 3. Where none is lacking, plan ([`super::plan::indexing`]); take the column with the largest
//!    backlog and insert one batch of it with the background workers.
//! 4. Save the graph's links where it has grown by half; seal a full segment whose graphs are complete.
//! 5. Record progress; begin again, so that no collection waits for another's whole backlog.
//!
//! It runs at the lowest priority and holds no lock that a search or a write takes. A graph's
//! `indexed_len` is all it publishes itself; what is built or sealed goes to the writer.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use flatwater_index::Row;
use flatwater_segment::view::SegmentView;
use parking_lot::Mutex;
use uuid::Uuid;

use super::plan::{self, ColumnFacts, IndexingPlan, SegmentFacts};
use crate::clock;
use crate::config::collection::OptimizerConfig;
use crate::error::{EngineError, Result};
use crate::pool::background::ScopedWorkers;
use crate::pool::bell::Bell;
use crate::pool::priority;
use crate::shard::Shard;
use crate::shard::index::missing_index;
use crate::shard::view::ShardView;

/// Finished jobs that are remembered, as many as Qdrant remembers.
const COMPLETED_MAX: usize = 16;

/// How often the thread looks for work when no bell rings.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// How long failed work rests before it is tried again: a full disk does not change every second.
const RETRY_INTERVAL: Duration = Duration::from_secs(60);

/// A background job, running or done.
#[derive(Clone, Debug)]
pub struct JobReport {
    /// Its own id.
    pub id: Uuid,
    /// Wire name of the optimizer, e.g. `indexing`.
    pub optimizer: &'static str,
    /// `None` while it runs; then how it ended (`Ok` = done).
    pub outcome: Option<std::result::Result<(), String>>,
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
    /// The segment that is being sealed.
    sealing: Option<JobReport>,
    /// The last failure, until the same work succeeds: when, and why.
    failure: Option<(Instant, String)>,
    /// As `failure`, of the indexes of fields.
    field_failure: Option<(Instant, String)>,
    completed: VecDeque<JobReport>,
}

impl IndexingJobs {
    /// Running jobs, and the finished ones, newest first.
    #[must_use]
    pub fn reports(&self) -> (Vec<JobReport>, Vec<JobReport>) {
        let state = self.state.lock();
        (
            state
                .running
                .values()
                .chain(&state.sealing)
                .cloned()
                .collect(),
            state.completed.iter().cloned().collect(),
        )
    }

    /// Why the last work failed, until the same work succeeds.
    #[must_use]
    pub fn failure(&self) -> Option<String> {
        let state = self.state.lock();
        let mut failures = state.failure.iter().chain(&state.field_failure);
        failures.next().map(|(_, reason)| reason.clone())
    }

    fn is_waiting_after_failure(&self) -> bool {
        is_recent(self.state.lock().failure.as_ref())
    }

    fn fields_are_waiting_after_failure(&self) -> bool {
        is_recent(self.state.lock().field_failure.as_ref())
    }

    /// Notes how building the index of a field ended.
    fn end_field(&self, outcome: &Result<bool>) {
        self.state.lock().field_failure = match outcome {
            Ok(_) | Err(EngineError::Stopping) => None,
            Err(error) => Some((Instant::now(), error.to_string())),
        };
    }

    fn begin_seal(&self, segment: Uuid, points: u64) {
        self.state.lock().sealing = Some(JobReport {
            id: Uuid::new_v4(),
            optimizer: "indexing",
            outcome: None,
            segments: vec![(segment, points)],
            done: 0,
            total: points,
            started_at_ms: clock::unix_ms(),
            finished_at_ms: None,
        });
    }

    /// Notes how sealing `segment` ended: `Ok(false)` is a cancelled job.
    fn end_seal(&self, segment: Uuid, outcome: Result<bool>) {
        let mut state = self.state.lock();
        let Some(mut report) = state.sealing.take() else {
            return;
        };
        report.finished_at_ms = Some(clock::unix_ms());
        report.outcome = Some(match outcome {
            Ok(true) => {
                report.done = report.total;
                state.failure = None;
                state.running.retain(|(running, _), _| *running != segment);
                Ok(())
            }
            Ok(false) => Err("cancelled".to_owned()),
            Err(error) => {
                state.failure = Some((Instant::now(), error.to_string()));
                Err(error.to_string())
            }
        });
        state.completed.push_front(report);
        state.completed.truncate(COMPLETED_MAX);
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

fn is_recent(failure: Option<&(Instant, String)>) -> bool {
    failure.is_some_and(|(at, _)| at.elapsed() < RETRY_INTERVAL)
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
                is_full: shared.is_full(),
                has_graph: column.graph().is_some(),
                is_running: jobs.is_running(shared.id(), index),
            });
        }
    }
    facts
}

/// Facts of every segment in a view.
#[must_use]
pub fn segment_facts(view: &ShardView) -> Vec<SegmentFacts> {
    let segments = view.segments.iter().map(|segment| segment.segment());
    segments
        .map(|segment| SegmentFacts {
            segment: segment.id(),
            is_full: segment.is_full(),
            is_sealed: segment.is_sealed(),
        })
        .collect()
}

/// The plan of a collection at this moment.
#[must_use]
pub fn plan(view: &ShardView, jobs: &IndexingJobs, config: &OptimizerConfig) -> IndexingPlan {
    plan::indexing(&facts(view, jobs), &segment_facts(view), config)
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

    /// Builds the index of a field; where none is lacking, inserts one batch of the shard's largest backlog,
    /// or seals a segment where there is none. Returns whether something was done.
    fn work_on(&self, target: &IndexingTarget, workers: &ScopedWorkers) -> bool {
        let view = target.shard.view();
        if self.index_field(target, &view) {
            return true;
        }
        let plan = plan(&view, &target.jobs, &target.config);
        if plan.held.is_some() {
            return false;
        }
        match (plan.work.first(), plan.seal.first()) {
            (Some(first), _) => self.insert(target, &view, first, workers),
            (None, Some(&segment)) => self.seal(target, &view, segment),
            (None, None) => false,
        }
    }

    fn index_field(&self, target: &IndexingTarget, view: &ShardView) -> bool {
        let Some(missing) = missing_index(view) else {
            return false;
        };
        if target.jobs.fields_are_waiting_after_failure() {
            return false;
        }
        let outcome = target.shard.build_index(&missing, &|| self.is_stopping());
        match &outcome {
            Ok(_) | Err(EngineError::Stopping) => {}
            Err(error) => {
                tracing::error!(%error, ?missing, "indexing a field failed; it is tried again in a minute");
            }
        }
        target.jobs.end_field(&outcome);
        outcome.is_ok()
    }

    fn insert(
        &self,
        target: &IndexingTarget,
        view: &ShardView,
        first: &ColumnFacts,
        workers: &ScopedWorkers,
    ) -> bool {
        let mut segments = view.segments.iter();
        let Some(segment) = segments.find(|s| s.segment().id() == first.segment) else {
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
        if shared.wants_links_saved(first.column)
            && let Err(error) = shared.save_links(first.column)
        {
            tracing::warn!(%error, "links were not saved; a crash would lose more of the graph");
        }
        is_done
    }

    fn seal(&self, target: &IndexingTarget, view: &ShardView, id: Uuid) -> bool {
        if target.jobs.is_waiting_after_failure() {
            return false;
        }
        let segment = view.segments.iter().find(|s| s.segment().id() == id);
        let points = segment.map_or(0, SegmentView::live_count);
        target.jobs.begin_seal(id, points);
        let outcome = target.shard.seal(id, &|| self.is_stopping());
        let is_done = matches!(outcome, Ok(true));
        if let Err(error) = &outcome {
            tracing::error!(%error, segment = %id, "sealing failed; it is tried again in a minute");
        }
        target.jobs.end_seal(id, outcome);
        is_done
    }
}
