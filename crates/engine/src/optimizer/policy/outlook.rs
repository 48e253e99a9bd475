//! Where a plan leads: what follows from its steps, until nothing is left to do.
//!
//! 1. The plan of this moment is the first round. Its steps are done in thought: facts of the segments
//!    they make take the place of the facts of those they take.
//! 2. The next plan is the next round, until a plan is empty.
//!
//! So a change of settings can be looked at before it is made. Writes that come meanwhile, and segments
//! that a job writes anew at this moment, are left out of it.

use std::collections::HashMap;

use uuid::Uuid;

use super::facts::{ColumnFacts, Limits, Optimizer, SegmentFacts};
use super::{Plan, Rewrite, plan};
use crate::optimizer::costs::{Work, WorkKind};

/// Rounds after which the look ends: plans converge in fewer (their tests see at most a few dozen steps).
const ROUNDS_MAX: usize = 64;

/// What a step takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Input {
    /// A segment that is there.
    Segment(Uuid),
    /// The segment that an earlier step made.
    Step(usize),
}

/// One piece of work.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// Who wants it.
    pub optimizer: Optimizer,
    /// What it takes.
    pub inputs: Vec<Input>,
    /// Live points of the inputs.
    pub points: u64,
    /// How much it is.
    pub work: Work,
    /// In which round it comes; 0 is what could begin now.
    pub round: usize,
}

/// The steps to a state in which nothing is left to do.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outlook {
    /// In their order.
    pub steps: Vec<Step>,
    /// Segments before the first.
    pub segments_before: usize,
    /// Segments after the last.
    pub segments_after: usize,
    /// Why nothing of it may run, if it may not.
    pub held: Option<&'static str>,
    /// Whether nothing follows after the last step.
    pub is_whole: bool,
}

/// The steps from these segments on under these limits.
#[must_use]
pub fn outlook(segments: &[SegmentFacts], limits: &Limits) -> Outlook {
    let mut thought = Thought {
        segments: segments.to_vec(),
        made: HashMap::new(),
        builds_graphs: limits.indexing_threshold_bytes.is_some(),
        steps: Vec::new(),
    };
    let first = plan(segments, limits);
    let held = first.held;
    let (mut round, mut next) = (0, first);
    while !next.is_empty() && round < ROUNDS_MAX {
        thought.take(&next, round);
        round += 1;
        next = plan(&thought.segments, limits);
    }
    Outlook {
        steps: thought.steps,
        segments_before: segments.len(),
        segments_after: thought.segments.len(),
        held,
        is_whole: next.is_empty(),
    }
}

struct Thought {
    segments: Vec<SegmentFacts>,
    /// Segments that a step made: which step.
    made: HashMap<Uuid, usize>,
    builds_graphs: bool,
    steps: Vec<Step>,
}

impl Thought {
    fn take(&mut self, plan: &Plan, round: usize) {
        for rewrite in &plan.rewrites {
            self.rewrite(rewrite, round);
        }
        for column in &plan.indexing {
            self.index(column, round);
        }
        for &segment in &plan.seal {
            self.seal(segment, round);
        }
    }

    fn input(&self, segment: Uuid) -> Input {
        let made = self.made.get(&segment);
        made.map_or(Input::Segment(segment), |&step| Input::Step(step))
    }

    fn rewrite(&mut self, rewrite: &Rewrite, round: usize) {
        let is_input = |facts: &SegmentFacts| rewrite.segments.contains(&facts.segment);
        let (inputs, others) = std::mem::take(&mut self.segments)
            .into_iter()
            .partition::<Vec<_>, _>(is_input);
        self.segments = others;
        let live = inputs.iter().map(|input| input.live).sum();
        let kind = WorkKind::of_rewrite(rewrite.optimizer);
        let number = self.steps.len();
        let output = output(&inputs, live, self.builds_graphs, id_of(number));
        let dims = inputs.first().map_or(0, dims);
        self.steps.push(Step {
            optimizer: rewrite.optimizer,
            inputs: rewrite.segments.iter().map(|&id| self.input(id)).collect(),
            points: live,
            work: Work::whole(kind, live, dims),
            round,
        });
        if live > 0 {
            self.made.insert(id_of(number), number);
            self.segments.extend(output);
        }
    }

    fn index(&mut self, column: &ColumnFacts, round: usize) {
        let input = self.input(column.segment);
        let Some(facts) = self.find(column.segment) else {
            return;
        };
        let points = facts.live;
        if let Some(own) = facts.columns.get_mut(column.column) {
            own.indexed = own.available;
            own.is_running = false;
        }
        let work = Work {
            kind: WorkKind::Indexing,
            rows: column.unindexed().into(),
            graph_rows: column.available.into(),
            dims: column.vector_bytes / 4,
        };
        self.steps.push(Step {
            optimizer: Optimizer::Indexing,
            inputs: vec![input],
            points,
            work,
            round,
        });
    }

    fn seal(&mut self, segment: Uuid, round: usize) {
        let input = self.input(segment);
        let Some(facts) = self.find(segment) else {
            return;
        };
        facts.is_sealed = true;
        let (points, rows, dims) = (facts.live, facts.rows, dims(facts));
        self.steps.push(Step {
            optimizer: Optimizer::Indexing,
            inputs: vec![input],
            points,
            work: Work::whole(WorkKind::Seal, rows, dims),
            round,
        });
    }

    fn find(&mut self, segment: Uuid) -> Option<&mut SegmentFacts> {
        self.segments
            .iter_mut()
            .find(|facts| facts.segment == segment)
    }
}

/// Dimensions of all vectors of a row together.
fn dims(facts: &SegmentFacts) -> u64 {
    facts.columns.iter().map(|c| c.vector_bytes / 4).sum()
}

/// Stands for the segment that a step makes; no segment has such an id.
fn id_of(step: usize) -> Uuid {
    Uuid::from_u128(u128::MAX - step as u128)
}

/// Facts of what becomes of the inputs; none without inputs.
fn output(
    inputs: &[SegmentFacts],
    live: u64,
    builds_graphs: bool,
    id: Uuid,
) -> Option<SegmentFacts> {
    let first = inputs.first()?;
    let rows = u32::try_from(live).unwrap_or(u32::MAX);
    let columns = first.columns.iter().enumerate().map(|(place, column)| {
        let mut same = inputs.iter().filter_map(|input| input.columns.get(place));
        let builds = builds_graphs || same.any(|column| column.graph.is_some());
        let graph = column.wanted.filter(|_| builds);
        ColumnFacts {
            segment: id,
            available: rows,
            indexed: if graph.is_some() { rows } else { 0 },
            graph,
            deleted_vectors: 0,
            is_running: false,
            is_full: true,
            ..*column
        }
    });
    Some(SegmentFacts {
        segment: id,
        is_full: true,
        is_sealed: true,
        is_busy: false,
        rows: live,
        live,
        columns: columns.collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::{LIMITS, growing, sealed};
    use super::*;

    fn kinds(outlook: &Outlook) -> Vec<WorkKind> {
        outlook.steps.iter().map(|step| step.work.kind).collect()
    }

    #[test]
    fn a_plan_that_is_empty_leads_nowhere() {
        let still = outlook(&[sealed(1, 2_000, 2_000)], &LIMITS);
        assert_eq!((still.segments_before, still.segments_after), (1, 1));
        assert!(still.steps.is_empty() && still.is_whole && still.held.is_none());
    }

    #[test]
    fn a_merge_whose_output_is_merged_again_is_followed_to_the_end() {
        // A full growing segment is indexed, then sealed; then there is one segment too many.
        let mut full = growing(3, 3_000, 3_000);
        full.is_full = true;
        full.columns[0].is_full = true;
        let segments = [sealed(1, 2_000, 2_000), sealed(2, 2_500, 2_500), full];
        let steps = outlook(&segments, &LIMITS);
        use WorkKind::{Indexing, Merge, Seal};
        assert_eq!(kinds(&steps), [Indexing, Seal, Merge]);
        let [index, seal, merge] = steps.steps.as_slice() else {
            unreachable!("three steps");
        };
        assert_eq!((index.round, seal.round, merge.round), (0, 1, 2));
        assert_eq!(index.work.rows, 3_000);
        let two = [1, 2].map(|id| Input::Segment(Uuid::from_u128(id)));
        assert_eq!((merge.points, merge.inputs.as_slice()), (4_500, &two[..]));
        assert_eq!((steps.segments_before, steps.segments_after), (3, 2));
        assert!(steps.is_whole);
    }

    #[test]
    fn what_a_step_made_is_named_by_its_number() {
        // What the vacuum leaves of the third is a sealed segment too many.
        let segments = [
            sealed(1, 2_000, 2_000),
            sealed(2, 2_500, 2_500),
            growing(3, 3_000, 500),
        ];
        let steps = outlook(&segments, &LIMITS);
        assert_eq!(kinds(&steps), [WorkKind::Vacuum, WorkKind::Merge]);
        assert_eq!(steps.steps[0].work.rows, 500);
        let merged = [Input::Step(0), Input::Segment(Uuid::from_u128(1))];
        assert_eq!(steps.steps[1].inputs, merged);
        assert_eq!(steps.steps[1].points, 2_500);
        assert!(steps.is_whole && steps.segments_after == 2);
    }

    #[test]
    fn what_fits_into_no_segment_stays_apart() {
        let limits = Limits {
            segments_target: 1,
            rows_max: 2_000,
            ..LIMITS
        };
        let many: Vec<SegmentFacts> = (1..=4).map(|id| sealed(id, 900, 900)).collect();
        let steps = outlook(&many, &limits);
        assert_eq!(kinds(&steps), [WorkKind::Merge, WorkKind::Merge]);
        assert!(steps.is_whole && steps.segments_after == 2);
    }

    #[test]
    fn a_segment_without_live_rows_goes_and_held_work_is_told_all_the_same() {
        let limits = Limits {
            jobs_max: Some(0),
            ..LIMITS
        };
        let gone = outlook(&[sealed(1, 100, 0)], &limits);
        assert_eq!((gone.segments_before, gone.segments_after), (1, 0));
        assert!(gone.held.is_some());
        assert_eq!(gone.steps[0].work.rows, 0);
    }
}
