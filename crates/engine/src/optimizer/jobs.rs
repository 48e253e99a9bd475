//! The jobs of one collection: at work, done, failed.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use flatwater_index::Row;
use parking_lot::Mutex;
use uuid::Uuid;

use super::policy::facts::{ColumnFacts, Optimizer};
use super::policy::{Plan, Rewrite};
use super::progress::Progress;
use crate::error::{EngineError, Result};

/// Finished jobs that are remembered, as many as Qdrant remembers.
const COMPLETED_MAX: usize = 16;

/// How long failed work rests before it is tried again: a full disk does not change every second.
const RETRY_INTERVAL: Duration = Duration::from_secs(60);

/// How a job ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Its result is in place.
    Done,
    /// It was stopped; nothing of it is left.
    Cancelled(String),
    /// It failed; nothing of it is left.
    Failed(String),
}

/// A background job, at work or ended.
#[derive(Clone, Debug)]
pub struct JobReport {
    /// Its own id.
    pub id: Uuid,
    /// Who wanted it.
    pub optimizer: Optimizer,
    /// `None` while it runs.
    pub outcome: Option<Outcome>,
    /// Input segments: id and points.
    pub segments: Vec<(Uuid, u64)>,
    /// Its steps.
    pub progress: Progress,
}

impl JobReport {
    fn begun(id: Uuid, optimizer: Optimizer, segments: Vec<(Uuid, u64)>) -> Self {
        Self {
            id,
            optimizer,
            outcome: None,
            segments,
            progress: Progress::begun("Segment Optimizing"),
        }
    }
}

/// What fails and is tried again: who wanted it, of which segments.
type Work = (Optimizer, BTreeSet<Uuid>);

#[derive(Debug)]
struct Failure {
    at: Instant,
    reason: String,
}

impl Failure {
    fn now(reason: &str) -> Self {
        Self {
            at: Instant::now(),
            reason: reason.to_owned(),
        }
    }

    fn is_recent(&self) -> bool {
        self.at.elapsed() < RETRY_INTERVAL
    }
}

/// Jobs of one collection.
#[derive(Debug, Default)]
pub struct Jobs {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Graphs that take rows, by segment and vector.
    indexing: BTreeMap<(Uuid, usize), JobReport>,
    /// Segments that are sealed or written anew, by job.
    rewriting: BTreeMap<Uuid, (JobReport, Arc<AtomicBool>)>,
    failures: BTreeMap<Work, Failure>,
    /// The last failure to index a field, until one succeeds.
    field_failure: Option<Failure>,
    completed: VecDeque<JobReport>,
}

impl State {
    fn complete(&mut self, mut report: JobReport, outcome: Outcome) {
        report.outcome = Some(outcome);
        report.progress.finish();
        self.completed.push_front(report);
        self.completed.truncate(COMPLETED_MAX);
    }
}

impl Jobs {
    /// Running jobs, and the ended ones, newest first.
    #[must_use]
    pub fn reports(&self) -> (Vec<JobReport>, Vec<JobReport>) {
        let state = self.state.lock();
        let rewriting = state.rewriting.values().map(|(report, _)| report);
        (
            state.indexing.values().chain(rewriting).cloned().collect(),
            state.completed.iter().cloned().collect(),
        )
    }

    /// Why the last work failed, until the same work succeeds or is not wanted any more.
    #[must_use]
    pub fn failure(&self) -> Option<String> {
        let state = self.state.lock();
        let failures = state.failures.values().chain(&state.field_failure);
        let last = failures.max_by_key(|failure| failure.at);
        last.map(|failure| failure.reason.clone())
    }

    /// Asks a job to stop; whether there is such a job that can be stopped.
    pub fn cancel(&self, id: Uuid) -> bool {
        let state = self.state.lock();
        let job = state.rewriting.get(&id);
        if let Some((_, cancelled)) = job {
            cancelled.store(true, Ordering::Release);
        }
        job.is_some()
    }

    /// Jobs at work.
    #[must_use]
    pub fn running(&self) -> usize {
        let state = self.state.lock();
        state.indexing.len() + state.rewriting.len()
    }

    /// Forgets failures of work that `plan` does not want any more.
    pub(super) fn forget_failures(&self, plan: &Plan) {
        let rewrites = plan.rewrites.iter().map(work_of);
        let seals = plan.seal.iter().map(|&segment| seal_work(segment));
        let wanted: BTreeSet<Work> = rewrites.chain(seals).collect();
        let mut state = self.state.lock();
        state.failures.retain(|work, _| wanted.contains(work));
    }

    /// Whether this work failed a short while ago.
    pub(super) fn rests(&self, work: &Work) -> bool {
        let state = self.state.lock();
        state.failures.get(work).is_some_and(Failure::is_recent)
    }

    /// Whether the index of a field failed a short while ago.
    pub(super) fn field_rests(&self) -> bool {
        let state = self.state.lock();
        state.field_failure.as_ref().is_some_and(Failure::is_recent)
    }

    /// Notes how building the index of a field ended.
    pub(super) fn end_field(&self, outcome: &Result<bool>) {
        self.state.lock().field_failure = match outcome {
            Ok(_) | Err(EngineError::Stopping) => None,
            Err(error) => Some(Failure::now(&error.to_string())),
        };
    }

    /// Whether a job writes `segment` anew.
    pub(super) fn is_busy(&self, segment: Uuid) -> bool {
        let state = self.state.lock();
        let mut inputs = state.rewriting.values().flat_map(|(job, _)| &job.segments);
        inputs.any(|(input, _)| *input == segment)
    }

    /// Notes a job that writes segments anew; the flag tells when it is to stop.
    pub(super) fn begin(
        &self,
        optimizer: Optimizer,
        segments: Vec<(Uuid, u64)>,
    ) -> (Uuid, Arc<AtomicBool>) {
        let (id, flag) = (Uuid::new_v4(), Arc::new(AtomicBool::new(false)));
        let report = JobReport::begun(id, optimizer, segments);
        let entry = (report, Arc::clone(&flag));
        self.state.lock().rewriting.insert(id, entry);
        (id, flag)
    }

    /// Notes how far a job is.
    pub(super) fn progress(&self, id: Uuid, path: &[&str], done: u64, total: u64) {
        if let Some((report, _)) = self.state.lock().rewriting.get_mut(&id) {
            report.progress.set(path, done, total);
        }
    }

    /// Notes how a job ended.
    pub(super) fn end(&self, id: Uuid, outcome: Outcome) {
        let mut state = self.state.lock();
        let Some((report, _)) = state.rewriting.remove(&id) else {
            return;
        };
        let segments = report.segments.iter().map(|(segment, _)| *segment);
        let work = (report.optimizer, segments.collect());
        match &outcome {
            Outcome::Done => {
                state.failures.remove(&work);
                // The graph of a segment that is no more takes no more rows.
                state
                    .indexing
                    .retain(|(segment, _), _| !work.1.contains(segment));
            }
            Outcome::Failed(reason) => {
                state.failures.insert(work, Failure::now(reason));
            }
            Outcome::Cancelled(_) => {}
        }
        state.complete(report, outcome);
    }

    pub(super) fn is_indexing(&self, segment: Uuid, column: usize) -> bool {
        self.state.lock().indexing.contains_key(&(segment, column))
    }

    /// Notes how far a graph is; a job that has caught up is done.
    pub(super) fn record_indexing(
        &self,
        facts: &ColumnFacts,
        vector: &str,
        points: u64,
        indexed: Row,
        available: Row,
    ) {
        let key = (facts.segment, facts.column);
        let mut state = self.state.lock();
        let segments = vec![(facts.segment, points)];
        let report = state
            .indexing
            .entry(key)
            .or_insert_with(|| JobReport::begun(Uuid::new_v4(), Optimizer::Indexing, Vec::new()));
        report.segments = segments;
        let path = ["vector_index", vector, "main_graph"];
        report.progress.set(&path, indexed.into(), available.into());
        if indexed >= available
            && let Some(report) = state.indexing.remove(&key)
        {
            state.complete(report, Outcome::Done);
        }
    }
}

/// The work of writing segments anew.
pub(super) fn work_of(rewrite: &Rewrite) -> Work {
    (
        rewrite.optimizer,
        rewrite.segments.iter().copied().collect(),
    )
}

/// The work of sealing a segment.
pub(super) fn seal_work(segment: Uuid) -> Work {
    (Optimizer::Indexing, BTreeSet::from([segment]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rewrite(segment: u128) -> Rewrite {
        Rewrite {
            optimizer: Optimizer::Vacuum,
            segments: vec![Uuid::from_u128(segment)],
        }
    }

    fn run(jobs: &Jobs, rewrite: &Rewrite, outcome: Outcome) {
        let segments = rewrite.segments.iter().map(|&id| (id, 5)).collect();
        let (id, _) = jobs.begin(rewrite.optimizer, segments);
        assert!(jobs.is_busy(rewrite.segments[0]));
        jobs.progress(id, &["copy_data"], 1, 5);
        jobs.end(id, outcome);
        assert!(!jobs.is_busy(rewrite.segments[0]));
    }

    #[test]
    fn a_failure_shows_until_the_same_work_succeeds() {
        let jobs = Jobs::default();
        run(&jobs, &rewrite(1), Outcome::Failed("disk".to_owned()));
        assert_eq!(jobs.failure().as_deref(), Some("disk"));
        assert!(jobs.rests(&work_of(&rewrite(1))) && !jobs.rests(&work_of(&rewrite(2))));
        run(&jobs, &rewrite(2), Outcome::Done);
        assert_eq!(jobs.failure().as_deref(), Some("disk"));
        run(&jobs, &rewrite(1), Outcome::Done);
        assert_eq!(jobs.failure(), None);
        let (running, completed) = jobs.reports();
        assert_eq!((running.len(), completed.len()), (0, 3));
    }

    #[test]
    fn a_failure_of_work_that_nobody_wants_any_more_is_forgotten() {
        let jobs = Jobs::default();
        run(&jobs, &rewrite(1), Outcome::Failed("disk".to_owned()));
        let mut plan = Plan {
            rewrites: vec![rewrite(1)],
            ..Plan::default()
        };
        jobs.forget_failures(&plan);
        assert!(jobs.failure().is_some());
        plan.rewrites.clear();
        jobs.forget_failures(&plan);
        assert_eq!(jobs.failure(), None);
    }

    #[test]
    fn a_running_job_can_be_asked_to_stop() {
        let jobs = Jobs::default();
        let (id, flag) = jobs.begin(Optimizer::Merge, vec![(Uuid::from_u128(1), 5)]);
        assert!(!jobs.cancel(Uuid::from_u128(9)) && !flag.load(Ordering::Acquire));
        assert!(jobs.cancel(id) && flag.load(Ordering::Acquire));
        jobs.end(id, Outcome::Cancelled("asked".to_owned()));
        assert_eq!(jobs.failure(), None);
        assert!(!jobs.cancel(id));
    }
}
