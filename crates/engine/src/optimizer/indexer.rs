//! The background thread that inserts growing rows into their graphs, batch by batch.
//!
//! 1. Wait for the bell that a writer rings after each view.
//! 2. For each collection, build the first index of a field that a segment lacks, as somebody may wait for
//!    it.
//! 3. Where none is lacking, plan; take the vector with the largest backlog and insert one batch of it
//!    with the background workers.
//! 4. Save the graph's links where it has grown by half.
//! 5. Record progress; begin again, so that no collection waits for another's whole backlog.
//!
//! It runs at the lowest priority and holds no lock that a search or a write takes. A graph's
//! `indexed_len` is all it publishes itself; an index goes to the writer.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::costs::Costs;
use super::policy::facts::ColumnFacts;
use super::{Target, Targets};
use crate::error::EngineError;
use crate::pool::background::BackgroundWorkers;
use crate::pool::bell::Bell;
use crate::pool::priority;
use crate::shard::index::missing_index;
use crate::shard::view::ShardView;

/// How often the thread looks for work when no bell rings.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// The thread.
pub(crate) struct Indexer {
    pub(crate) bell: Bell,
    pub(crate) stop: Arc<AtomicBool>,
    pub(crate) workers: BackgroundWorkers,
    pub(crate) targets: Targets,
    pub(crate) costs: Arc<Costs>,
    /// Rung when a graph is complete, so that its segment can be sealed.
    pub(crate) rewriter: Bell,
}

impl Indexer {
    /// Runs until `stop` is set.
    pub(crate) fn run(self) {
        if !priority::lower_this_thread() {
            tracing::warn!(
                "background threads run at normal priority: the system refused a lower one"
            );
        }
        while !self.is_stopping() {
            let mut worked = false;
            for target in (self.targets)() {
                worked |= self.work_on(&target);
            }
            if !worked {
                self.rewriter.ring();
                self.bell.wait(LOOK_INTERVAL);
            }
        }
        self.rewriter.ring();
    }

    fn is_stopping(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    /// Builds the index of a field; where none is lacking, inserts one batch of the shard's largest
    /// backlog. Returns whether something was done.
    fn work_on(&self, target: &Target) -> bool {
        let view = target.shard.view();
        if self.index_field(target, &view) {
            return true;
        }
        let plan = target.plan(&view);
        let first = plan.indexing.first();
        let Some(first) = first.filter(|_| plan.held.is_none()) else {
            return false;
        };
        // A job that has begun goes on; another begins where there is room for it.
        (first.is_running || target.has_room()) && self.insert(target, &view, first)
    }

    fn index_field(&self, target: &Target, view: &ShardView) -> bool {
        let Some(missing) = missing_index(view) else {
            return false;
        };
        if target.jobs.field_rests() {
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

    fn insert(&self, target: &Target, view: &ShardView, first: &ColumnFacts) -> bool {
        let Some(segment) = view.segment(first.segment) else {
            return false;
        };
        let points = segment.live_count();
        let shared = segment.segment();
        let column = &shared.columns()[first.column];
        let record = |indexed, available| {
            let vector = &column.spec().name;
            let jobs = &target.jobs;
            let done = jobs.record_indexing(first, vector, points, indexed, available);
            if let Some((work, took)) = done {
                self.costs.learn(work, took);
            }
        };
        if !first.is_running {
            record(first.indexed, first.available);
        }
        let cancel = || self.is_stopping();
        let workers = self.workers.at_most(target.threads_max);
        let is_done = shared.index_step(first.column, &workers, &cancel);
        record(column.indexed_len(), column.graph_available());
        if shared.wants_links_saved(first.column)
            && let Err(error) = shared.save_links(first.column)
        {
            tracing::warn!(%error, "links were not saved; a crash would lose more of the graph");
        }
        is_done
    }
}
