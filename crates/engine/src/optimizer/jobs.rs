//! The jobs of one collection: at work, done, failed.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use flatwater_index::Row;
use parking_lot::Mutex;
use uuid::Uuid;

use super::costs::{Estimate, Work, WorkKind};
use super::policy::facts::{ColumnFacts, Optimizer};
use super::policy::{Plan, Rewrite};
use super::progress::Progress;
use crate::clock;
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
    /// How much it does in all.
    pub work: Work,
}

impl JobReport {
    fn begun(optimizer: Optimizer, segments: Vec<(Uuid, u64)>, work: Work) -> Self {
        Self {
            id: Uuid::new_v4(),
            optimizer,
            outcome: None,
            segments,
            progress: Progress::begun("Segment Optimizing"),
            work,
        }
    }

    /// How long it has run, or ran.
    #[must_use]
    pub fn took(&self) -> Duration {
        let end = self.progress.finished_at_ms.unwrap_or_else(clock::unix_ms);
        let begin = self.progress.started_at_ms.unwrap_or(end);
        Duration::from_millis(end.saturating_sub(begin))
    }

    /// The share of it that is done, by rows; `vectors` are those of a point. A job that does not tell how far
    /// it is has nothing done.
    #[must_use]
    pub fn share_done(&self, vectors: usize) -> f64 {
        match self.work.kind {
            WorkKind::Indexing => {
                let (indexed, available) = self.progress.counts().unwrap_or_default();
                let left = available.saturating_sub(indexed);
                let done = self.work.rows.saturating_sub(left);
                done as f64 / self.work.rows.max(1) as f64
            }
            WorkKind::Seal => 0.0,
            _ => self.progress.share_of_rewrite(vectors),
        }
    }

    /// How long the rest of it takes, where the whole is estimated so.
    #[must_use]
    pub fn rest(&self, whole: Estimate, vectors: usize) -> Estimate {
        whole.rest(self.share_done(vectors), self.took().as_secs_f64())
    }
}

/// What fails and is tried again: who wanted it, of which segments.
type Wish = (Optimizer, BTreeSet<Uuid>);

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
    /// Graphs that take rows, by segment and vector, with the row that each job began at.
    indexing: BTreeMap<(Uuid, usize), (JobReport, Row)>,
    /// Segments that are sealed or written anew, by job.
    rewriting: BTreeMap<Uuid, (JobReport, Arc<AtomicBool>)>,
    failures: BTreeMap<Wish, Failure>,
    /// The last failure to index a field, until one succeeds.
    field_failure: Option<Failure>,
    completed: VecDeque<JobReport>,
}

impl State {
    /// Puts a job to those that ended; what it cost, if it was done.
    fn complete(&mut self, mut report: JobReport, outcome: Outcome) -> Option<(Work, Duration)> {
        report.progress.finish();
        let cost = (outcome == Outcome::Done).then(|| (report.work, report.took()));
        report.outcome = Some(outcome);
        self.completed.push_front(report);
        self.completed.truncate(COMPLETED_MAX);
        cost
    }
}

impl Jobs {
    /// Running jobs, and the ended ones, newest first.
    #[must_use]
    pub fn reports(&self) -> (Vec<JobReport>, Vec<JobReport>) {
        let state = self.state.lock();
        let indexing = state.indexing.values().map(|(report, _)| report);
        let rewriting = state.rewriting.values().map(|(report, _)| report);
        (
            indexing.chain(rewriting).cloned().collect(),
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
        let wanted: BTreeSet<Wish> = rewrites.chain(seals).collect();
        let mut state = self.state.lock();
        state.failures.retain(|work, _| wanted.contains(work));
    }

    /// Whether this work failed a short while ago.
    pub(super) fn rests(&self, work: &Wish) -> bool {
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
        work: Work,
    ) -> (Uuid, Arc<AtomicBool>) {
        let flag = Arc::new(AtomicBool::new(false));
        let report = JobReport::begun(optimizer, segments, work);
        let id = report.id;
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

    /// Notes how a job ended; what it cost, if it was done.
    pub(super) fn end(&self, id: Uuid, outcome: Outcome) -> Option<(Work, Duration)> {
        let mut state = self.state.lock();
        let (report, _) = state.rewriting.remove(&id)?;
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
        state.complete(report, outcome)
    }

    pub(super) fn is_indexing(&self, segment: Uuid, column: usize) -> bool {
        self.state.lock().indexing.contains_key(&(segment, column))
    }

    /// Notes how far a graph is; a job that has caught up is done, and answers what it cost.
    pub(super) fn record_indexing(
        &self,
        facts: &ColumnFacts,
        vector: &str,
        points: u64,
        indexed: Row,
        available: Row,
    ) -> Option<(Work, Duration)> {
        let key = (facts.segment, facts.column);
        let mut state = self.state.lock();
        let work = |from: Row| Work {
            kind: WorkKind::Indexing,
            rows: available.saturating_sub(from).into(),
            graph_rows: available.into(),
            dims: facts.vector_bytes / 4,
        };
        let segments = vec![(facts.segment, points)];
        let (report, from) = state.indexing.entry(key).or_insert_with(|| {
            let report = JobReport::begun(Optimizer::Indexing, Vec::new(), work(indexed));
            (report, indexed)
        });
        (report.segments, report.work) = (segments, work(*from));
        let path = ["vector_index", vector, "main_graph"];
        report.progress.set(&path, indexed.into(), available.into());
        if indexed < available {
            return None;
        }
        let (report, _) = state.indexing.remove(&key)?;
        state.complete(report, Outcome::Done)
    }
}

/// The work of writing segments anew.
pub(super) fn work_of(rewrite: &Rewrite) -> Wish {
    (
        rewrite.optimizer,
        rewrite.segments.iter().copied().collect(),
    )
}

/// The work of sealing a segment.
pub(super) fn seal_work(segment: Uuid) -> Wish {
    (Optimizer::Indexing, BTreeSet::from([segment]))
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORK: Work = Work {
        kind: WorkKind::Vacuum,
        rows: 5,
        graph_rows: 5,
        dims: 4,
    };

    fn rewrite(segment: u128) -> Rewrite {
        Rewrite {
            optimizer: Optimizer::Vacuum,
            segments: vec![Uuid::from_u128(segment)],
        }
    }

    fn run(jobs: &Jobs, rewrite: &Rewrite, outcome: Outcome) {
        let segments = rewrite.segments.iter().map(|&id| (id, 5)).collect();
        let (id, _) = jobs.begin(rewrite.optimizer, segments, WORK);
        assert!(jobs.is_busy(rewrite.segments[0]));
        jobs.progress(id, &["copy_data"], 1, 5);
        let is_done = outcome == Outcome::Done;
        let cost = jobs.end(id, outcome);
        assert_eq!(cost.map(|(work, _)| work), is_done.then_some(WORK));
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
        let (id, flag) = jobs.begin(Optimizer::Merge, vec![(Uuid::from_u128(1), 5)], WORK);
        assert!(!jobs.cancel(Uuid::from_u128(9)) && !flag.load(Ordering::Acquire));
        assert!(jobs.cancel(id) && flag.load(Ordering::Acquire));
        jobs.end(id, Outcome::Cancelled("asked".to_owned()));
        assert_eq!(jobs.failure(), None);
        assert!(!jobs.cancel(id));
    }

    #[test]
    fn a_graph_tells_the_share_of_what_its_job_began_with_and_its_cost_at_the_end() {
        let jobs = Jobs::default();
        let facts = ColumnFacts {
            segment: Uuid::from_u128(1),
            column: 0,
            available: 1_000,
            indexed: 600,
            vector_bytes: 64,
            graph: None,
            wanted: None,
            deleted_vectors: 0,
            is_running: false,
            is_full: false,
        };
        let record =
            |indexed, available| jobs.record_indexing(&facts, "", 1_000, indexed, available);
        let share = || jobs.reports().0[0].share_done(1);
        assert_eq!(record(600, 1_000), None);
        assert!(share().abs() < 1e-9);
        assert_eq!(record(900, 1_000), None);
        assert!((share() - 0.75).abs() < 1e-9);
        // More rows came meanwhile.
        assert_eq!(record(900, 1_200), None);
        assert!((share() - 0.5).abs() < 1e-9);
        let (work, _) = record(1_200, 1_200).unwrap();
        let whole = Work {
            kind: WorkKind::Indexing,
            rows: 600,
            graph_rows: 1_200,
            dims: 16,
        };
        assert_eq!(work, whole);
        let (running, completed) = jobs.reports();
        assert_eq!((running.len(), completed.len()), (0, 1));
    }

    #[test]
    fn a_job_that_writes_anew_tells_its_share_by_the_steps_it_is_in() {
        let jobs = Jobs::default();
        let (id, _) = jobs.begin(Optimizer::Merge, vec![(Uuid::from_u128(1), 5)], WORK);
        let share = || jobs.reports().0[0].share_done(2);
        assert!(share().abs() < 1e-9);
        jobs.progress(id, &["copy_data"], 10, 10);
        let copied = share();
        assert!(copied > 0.0 && copied < 0.2, "{copied}");
        jobs.progress(id, &["vector_index", "a", "main_graph"], 5, 10);
        let quarter = share();
        jobs.progress(id, &["vector_index", "a", "main_graph"], 10, 10);
        jobs.progress(id, &["vector_index", "b", "main_graph"], 0, 10);
        let half = share();
        jobs.progress(id, &["vector_index", "b", "main_graph"], 10, 10);
        assert!(copied < quarter && quarter < half && half < share() && share() <= 1.0);
    }
}
