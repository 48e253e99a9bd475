//! Background work with its price: what runs, what is queued, and what would be done under other settings.

use std::collections::HashMap;

use flatwater_segment::parts::spec::SegmentSpec;
use flatwater_segment::sealed::merge::size::output_bytes;
use flatwater_segment::view::SegmentView;
use uuid::Uuid;

use super::Collection;
use super::spec::segment_spec;
use crate::config::collection::CollectionConfig;
pub use crate::optimizer::costs::{Basis, Estimate, Work, WorkKind};
use crate::optimizer::gather;
use crate::optimizer::jobs::JobReport;
use crate::optimizer::policy::outlook::Outlook;
pub use crate::optimizer::policy::outlook::{Input, Step};
use crate::shard::view::ShardView;

/// Background work of a collection at one moment.
#[derive(Clone, Debug)]
pub struct JobsReport {
    /// Jobs at work, each with how long its rest takes.
    pub running: Vec<(JobReport, Estimate)>,
    /// Work that could begin now, each with how long it takes once it has begun.
    pub queued: Vec<(Step, Estimate)>,
    /// The last jobs that ended, newest first.
    pub completed: Vec<JobReport>,
    /// All that runs and is queued, one after another; none where there is nothing to do.
    pub left: Option<Estimate>,
    /// Why nothing may run, if it may not.
    pub held: Option<&'static str>,
}

/// A step of a dry run.
#[derive(Clone, Debug)]
pub struct PricedStep {
    /// The step.
    pub step: Step,
    /// Bytes of the files that it writes. Rows that go into the graph of a growing segment write none but
    /// their links, which are not counted.
    pub write_bytes: u64,
    /// How long it takes.
    pub estimate: Estimate,
}

/// What the optimizers would do.
#[derive(Clone, Debug)]
pub struct DryRun {
    /// The steps, in their order, until nothing is left to do.
    pub steps: Vec<PricedStep>,
    /// Segments before the first.
    pub segments_before: usize,
    /// Segments after the last.
    pub segments_after: usize,
    /// All steps one after another; none without steps.
    pub total: Option<Estimate>,
    /// Why nothing of it may run, if it may not.
    pub held: Option<&'static str>,
    /// Whether nothing follows after the last step.
    pub is_whole: bool,
}

/// Running, queued and finished background work.
pub(super) fn jobs(collection: &Collection) -> JobsReport {
    let view = collection.shard.view();
    let (running, completed) = collection.jobs.reports();
    let vectors = collection.spec.vectors.len();
    let estimate = |work: Work| collection.costs.estimate(work);
    let config = collection.config();
    let spec = collection.shard.spec();
    let outlook = gather::outlook(&view, &collection.jobs, &config.optimizers, &spec);
    let is_running = |input: &Input| {
        let mut inputs = running.iter().flat_map(|job| &job.segments);
        inputs.any(|(segment, _)| Input::Segment(*segment) == *input)
    };
    let first_round = outlook.steps.into_iter().filter(|step| step.round == 0);
    let queued: Vec<(Step, Estimate)> = first_round
        .filter(|step| !step.inputs.iter().any(is_running))
        .map(|step| (step.clone(), estimate(step.work)))
        .collect();
    let running: Vec<(JobReport, Estimate)> = running
        .into_iter()
        .map(|job| {
            let rest = job.rest(estimate(job.work), vectors);
            (job, rest)
        })
        .collect();
    let rests = running.iter().map(|(_, rest)| *rest);
    let left = Estimate::sum(rests.chain(queued.iter().map(|(_, whole)| *whole)));
    JobsReport {
        running,
        queued,
        completed,
        left,
        held: outlook.held,
    }
}

/// What the optimizers would do under `config`.
pub(super) fn dry_run(collection: &Collection, config: &CollectionConfig) -> DryRun {
    let seed = collection.file.lock().rotation_seed;
    let spec = segment_spec(config, seed);
    let view = collection.shard.view();
    let outlook = gather::outlook(&view, &collection.jobs, &config.optimizers, &spec);
    let sizes = sizes(&view, &outlook, &spec);
    let steps: Vec<PricedStep> = outlook
        .steps
        .into_iter()
        .zip(sizes)
        .map(|(step, write_bytes)| PricedStep {
            write_bytes,
            estimate: collection.costs.estimate(step.work),
            step,
        })
        .collect();
    DryRun {
        total: Estimate::sum(steps.iter().map(|step| step.estimate)),
        steps,
        segments_before: outlook.segments_before,
        segments_after: outlook.segments_after,
        held: outlook.held,
        is_whole: outlook.is_whole,
    }
}

/// Bytes that each step writes: those of the rows of its inputs, and what a segment has besides.
fn sizes(view: &ShardView, outlook: &Outlook, spec: &SegmentSpec) -> Vec<u64> {
    let apart_from_rows = output_bytes(&[], spec);
    let of_rows = |views: &[SegmentView]| output_bytes(views, spec).saturating_sub(apart_from_rows);
    let mut of_segments: HashMap<Uuid, u64> = HashMap::new();
    let mut of_steps: Vec<u64> = Vec::new();
    let mut sizes = Vec::new();
    for step in &outlook.steps {
        let rows = step.inputs.iter().map(|input| match input {
            Input::Step(number) => of_steps.get(*number).copied().unwrap_or_default(),
            Input::Segment(id) => *of_segments.entry(*id).or_insert_with(|| {
                let segment = view.segment(*id);
                segment.map_or(0, |segment| of_rows(std::slice::from_ref(segment)))
            }),
        });
        let rows: u64 = rows.sum();
        of_steps.push(rows);
        let writes = step.work.kind != WorkKind::Indexing && step.points > 0;
        sizes.push(if writes { rows + apart_from_rows } else { 0 });
    }
    sizes
}
