//! The background thread that writes segments anew: seals, merges, vacuums, rebuilds.
//!
//! 1. Wait for the bell: a view was published, or a graph is complete.
//! 2. For each collection, plan; take the first seal, else the first rewrite that has not failed a moment
//!    ago.
//! 3. A growing segment that is to be written anew is closed first.
//! 4. The shard writes the output beside the inputs and swaps it in; the job's record tells how it ended, and
//!    what it cost is learnt.
//!
//! It runs at the lowest priority and holds no lock that a search or a write takes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use flatwater_segment::sealed::merge::{Step, Watch};
use flatwater_segment::view::SegmentView;
use uuid::Uuid;

use super::costs::{Costs, Work, WorkKind};
use super::gather;
use super::jobs::{Jobs, Outcome, seal_work, work_of};
use super::policy::facts::Optimizer;
use super::policy::{Plan, Rewrite};
use super::{Target, Targets};
use crate::error::Result;
use crate::pool::background::BackgroundWorkers;
use crate::pool::bell::Bell;
use crate::pool::priority;
use crate::shard::view::ShardView;

/// How often the thread looks for work when no bell rings.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// The thread.
pub(crate) struct Rewriter {
    pub(crate) bell: Bell,
    pub(crate) stop: Arc<AtomicBool>,
    pub(crate) workers: BackgroundWorkers,
    pub(crate) targets: Targets,
    pub(crate) costs: Arc<Costs>,
}

impl Rewriter {
    /// Runs until `stop` is set.
    pub(crate) fn run(self) {
        // Refused priority was told by the indexer, which asks for the same.
        let _is_lowered = priority::lower_this_thread();
        while !self.stop.load(Ordering::Acquire) {
            let mut worked = false;
            for target in (self.targets)() {
                worked |= self.work_on(&target);
            }
            if !worked {
                self.bell.wait(LOOK_INTERVAL);
            }
        }
    }

    /// Does one thing of the plan. Returns whether something was done.
    fn work_on(&self, target: &Target) -> bool {
        let view = target.shard.view();
        let plan = target.plan(&view);
        target.jobs.forget_failures(&plan);
        if plan.held.is_some() || !target.has_room() {
            return false;
        }
        let rests = |rewrite: &&Rewrite| !target.jobs.rests(&work_of(rewrite));
        match (
            first_seal(&plan, &target.jobs),
            plan.rewrites.iter().find(rests),
        ) {
            (Some(segment), _) => self.seal(target, &view, segment),
            (None, Some(rewrite)) => self.rewrite(target, &view, rewrite),
            (None, None) => false,
        }
    }

    fn seal(&self, target: &Target, view: &ShardView, segment: Uuid) -> bool {
        self.job(target, view, Optimizer::Indexing, &[segment], |watch| {
            let cancel = || watch.is_cancelled();
            target.shard.seal(segment, &cancel)
        })
    }

    fn rewrite(&self, target: &Target, view: &ShardView, rewrite: &Rewrite) -> bool {
        let (optimizer, segments) = (rewrite.optimizer, &rewrite.segments);
        self.job(target, view, optimizer, segments, |watch| {
            let workers = self.workers.at_most(target.threads_max);
            let builds_graphs = target.config.indexing_threshold > 0;
            let shard = &target.shard;
            shard.rewrite(segments, builds_graphs, &workers, watch)
        })
    }

    /// Runs `work` as a job of its own. Returns whether it was done.
    fn job(
        &self,
        target: &Target,
        view: &ShardView,
        optimizer: Optimizer,
        segments: &[Uuid],
        work: impl FnOnce(&JobWatch<'_>) -> Result<bool>,
    ) -> bool {
        let points = |id: Uuid| view.segment(id).map_or(0, SegmentView::live_count);
        let inputs: Vec<(Uuid, u64)> = segments.iter().map(|&id| (id, points(id))).collect();
        let rows = inputs.iter().map(|(_, points)| points).sum();
        let dims = gather::dims(&target.shard.spec());
        let size = Work::whole(WorkKind::of_rewrite(optimizer), rows, dims);
        let (id, cancelled) = target.jobs.begin(optimizer, inputs, size);
        let watch = JobWatch {
            jobs: &target.jobs,
            id,
            cancelled: &cancelled,
            stop: &self.stop,
        };
        let outcome = match work(&watch) {
            Ok(true) => Outcome::Done,
            Ok(false) => Outcome::Cancelled(watch.reason().to_owned()),
            Err(error) => {
                tracing::error!(%error, optimizer = optimizer.name(), "background work failed; it is tried again in a minute");
                Outcome::Failed(error.to_string())
            }
        };
        let is_done = outcome == Outcome::Done;
        if let Some((size, took)) = target.jobs.end(id, outcome) {
            self.costs.learn(size, took);
        }
        is_done
    }
}

/// The first segment to seal whose sealing did not fail a moment ago.
fn first_seal(plan: &Plan, jobs: &Jobs) -> Option<Uuid> {
    let mut seals = plan.seal.iter().copied();
    seals.find(|&segment| !jobs.rests(&seal_work(segment)))
}

/// Tells a job's record how far it is, and the job when to stop.
struct JobWatch<'a> {
    jobs: &'a Jobs,
    id: Uuid,
    cancelled: &'a AtomicBool,
    stop: &'a AtomicBool,
}

impl JobWatch<'_> {
    fn reason(&self) -> &'static str {
        if self.cancelled.load(Ordering::Acquire) {
            "on request"
        } else if self.stop.load(Ordering::Acquire) {
            "the server is stopping"
        } else {
            "its segments are gone"
        }
    }
}

impl Watch for JobWatch<'_> {
    fn progress(&self, step: Step<'_>, done: u64, total: u64) {
        match step {
            Step::CopyData => self.jobs.progress(self.id, &["copy_data"], done, total),
            Step::Codes(vector) => {
                self.jobs
                    .progress(self.id, &["quantization", vector], done, total);
            }
            Step::Graph(vector) => {
                let path = ["vector_index", vector, "main_graph"];
                self.jobs.progress(self.id, &path, done, total);
            }
        }
    }

    fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Acquire) || self.stop.load(Ordering::Acquire)
    }
}
