//! What is to be done: pure functions of facts and limits.
//!
//! 1. `facts` are all that a policy may look at.
//! 2. `merge`, `vacuum`, `mismatch` name segments to write anew; `indexing` names graphs to go on with
//!    and segments to seal.
//! 3. [`plan`] puts their wishes in order, each segment in one of them at most; `outlook` follows the plans
//!    to the end.
//!
//! The same facts give the same plan. Without writes the plan is empty after finitely many steps: a merge
//! lowers the count of segments, a vacuum leaves no dead row, a rebuilt graph has the wanted settings,
//! and a graph only grows.

pub mod facts;
pub mod indexing;
pub mod merge;
pub mod mismatch;
pub mod outlook;
pub mod vacuum;

use std::collections::HashSet;

use uuid::Uuid;

use facts::{ColumnFacts, Limits, Optimizer, SegmentFacts};

/// Segments to write anew as one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rewrite {
    /// Who wants it.
    pub optimizer: Optimizer,
    /// The segments.
    pub segments: Vec<Uuid>,
}

/// What may be done.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// Segments to write anew, the most urgent first.
    pub rewrites: Vec<Rewrite>,
    /// Vectors whose graphs have rows to take, the largest backlog first.
    pub indexing: Vec<ColumnFacts>,
    /// Segments to seal, oldest first: full, with complete graphs.
    pub seal: Vec<Uuid>,
    /// Why nothing of it may run, if it may not.
    pub held: Option<&'static str>,
}

impl Plan {
    /// Whether there is nothing to do.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rewrites.is_empty() && self.indexing.is_empty() && self.seal.is_empty()
    }
}

/// The plan for the segments of a shard. Order of the policies: merge, vacuum, config mismatch, then the
/// indexing of what none of them writes anew.
#[must_use]
pub fn plan(segments: &[SegmentFacts], limits: &Limits) -> Plan {
    let mut taken: HashSet<Uuid> = HashSet::new();
    let mut rewrites = Vec::new();
    let alone = |segment: Uuid| vec![segment];
    let wishes = [
        (Optimizer::Merge, merge::wishes(segments, limits)),
        (
            Optimizer::Vacuum,
            vacuum::wishes(segments, limits)
                .into_iter()
                .map(alone)
                .collect(),
        ),
        (
            Optimizer::ConfigMismatch,
            mismatch::wishes(segments, limits)
                .into_iter()
                .map(alone)
                .collect(),
        ),
    ];
    for (optimizer, groups) in wishes {
        for group in groups {
            if group.iter().any(|segment| taken.contains(segment)) {
                continue;
            }
            taken.extend(&group);
            rewrites.push(Rewrite {
                optimizer,
                segments: group,
            });
        }
    }
    let left: Vec<&SegmentFacts> = segments
        .iter()
        .filter(|segment| !segment.is_busy && !taken.contains(&segment.segment))
        .collect();
    let (indexing, seal) = indexing::wishes(&left, limits);
    let mut plan = Plan {
        rewrites,
        indexing,
        seal,
        held: None,
    };
    if limits.jobs_max == Some(0) && !plan.is_empty() {
        plan.held = Some("max_optimization_threads is 0: work is wanted and may not run");
    }
    plan
}

#[cfg(test)]
pub(crate) mod tests {
    use facts::GraphSettings;

    use super::*;

    pub(crate) const LIMITS: Limits = Limits {
        indexing_threshold_bytes: Some(1_000_000),
        rows_max: 10_000,
        segments_target: 2,
        deleted_threshold: 0.2,
        vacuum_min: 1_000,
        jobs_max: None,
    };

    const SETTINGS: GraphSettings = GraphSettings {
        m: 16,
        ef_construct: Some(100),
    };

    pub(crate) fn sealed(id: u128, rows: u64, live: u64) -> SegmentFacts {
        let segment = Uuid::from_u128(id);
        SegmentFacts {
            segment,
            is_full: true,
            is_sealed: true,
            is_busy: false,
            rows,
            live,
            columns: vec![ColumnFacts {
                segment,
                column: 0,
                available: rows as u32,
                indexed: rows as u32,
                vector_bytes: 1024,
                graph: Some(SETTINGS),
                wanted: Some(SETTINGS),
                deleted_vectors: 0,
                is_running: false,
                is_full: true,
            }],
        }
    }

    pub(crate) fn growing(id: u128, rows: u64, live: u64) -> SegmentFacts {
        let mut segment = sealed(id, rows, live);
        (segment.is_sealed, segment.is_full) = (false, false);
        segment.columns[0].is_full = false;
        segment.columns[0].indexed = 0;
        segment
    }

    /// A small generator: the seed is in each message.
    struct Dice(u64);

    impl Dice {
        fn roll(&mut self, sides: u64) -> u64 {
            self.0 = self
                .0
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 33) % sides
        }

        fn settings(&mut self) -> Option<GraphSettings> {
            (self.roll(4) > 0).then(|| GraphSettings {
                m: 8 << self.roll(3),
                ef_construct: (self.roll(5) > 0).then(|| 100 + self.roll(2) as usize),
            })
        }

        fn segment(&mut self, id: u128) -> SegmentFacts {
            let rows = self.roll(12_000);
            let live = rows - self.roll(rows + 1) * self.roll(2);
            let mut segment = if self.roll(3) > 0 {
                sealed(id, rows, live)
            } else {
                growing(id, rows, live)
            };
            let column = &mut segment.columns[0];
            column.graph = self.settings();
            column.wanted = self.settings();
            column.deleted_vectors = self.roll(3) * self.roll(live + 1) / 2;
            segment
        }

        fn limits(&mut self) -> Limits {
            Limits {
                indexing_threshold_bytes: (self.roll(4) > 0).then(|| self.roll(4_000_000)),
                rows_max: 1 + self.roll(20_000),
                segments_target: 1 + self.roll(6) as usize,
                deleted_threshold: self.roll(100) as f64 / 100.0,
                vacuum_min: 100 + self.roll(2_000),
                jobs_max: None,
            }
        }
    }

    /// What a rewrite makes of the segments; none if nothing lives.
    fn rewritten(inputs: &[SegmentFacts], limits: &Limits, id: u128) -> Option<SegmentFacts> {
        let live: u64 = inputs.iter().map(|input| input.live).sum();
        let mut output = sealed(id, live, live);
        let had_graph = inputs.iter().any(|input| input.columns[0].graph.is_some());
        let wanted = inputs[0].columns[0].wanted;
        output.columns[0].wanted = wanted;
        let builds = limits.indexing_threshold_bytes.is_some() || had_graph;
        output.columns[0].graph = wanted.filter(|_| builds);
        (live > 0).then_some(output)
    }

    /// Does the first thing of the plan, as the optimizers would.
    fn step(segments: &mut Vec<SegmentFacts>, plan: &Plan, limits: &Limits, id: u128) {
        if let Some(rewrite) = plan.rewrites.first() {
            let is_input = |s: &SegmentFacts| rewrite.segments.contains(&s.segment);
            let inputs: Vec<_> = segments.iter().filter(|s| is_input(s)).cloned().collect();
            segments.retain(|s| !is_input(s));
            segments.extend(rewritten(&inputs, limits, id));
        } else if let Some(column) = plan.indexing.first() {
            for segment in segments.iter_mut().filter(|s| s.segment == column.segment) {
                segment.columns[0].indexed = segment.columns[0].available;
            }
        } else if let Some(id) = plan.seal.first() {
            for segment in segments.iter_mut().filter(|s| s.segment == *id) {
                segment.is_sealed = true;
            }
        }
    }

    #[test]
    fn without_writes_any_plan_is_empty_after_finitely_many_steps() {
        for seed in 0..400 {
            let mut dice = Dice(seed);
            let wanted = dice.settings();
            let mut segments: Vec<SegmentFacts> = (0..dice.roll(12))
                .map(|id| dice.segment(id.into()))
                .collect();
            for round in 0..3u128 {
                // Settings are toggled between the rounds.
                let limits = dice.limits();
                for segment in &mut segments {
                    segment.columns[0].wanted = if round == 0 { wanted } else { dice.settings() };
                }
                let one = segments.first().and_then(|s| s.columns[0].wanted);
                for segment in &mut segments {
                    segment.columns[0].wanted = one;
                }
                let mut steps = 0u128;
                loop {
                    let now = plan(&segments, &limits);
                    assert_eq!(now, plan(&segments, &limits), "seed {seed}");
                    if now.is_empty() {
                        break;
                    }
                    steps += 1;
                    assert!(steps < 60, "seed {seed}: {limits:?} {segments:?} {now:?}");
                    step(&mut segments, &now, &limits, 1000 + 1000 * round + steps);
                }
            }
        }
    }

    #[test]
    fn a_segment_is_in_one_wish_at_most_and_a_busy_one_in_none() {
        for seed in 0..400 {
            let mut dice = Dice(seed);
            let mut segments: Vec<SegmentFacts> = (0..dice.roll(12))
                .map(|id| dice.segment(id.into()))
                .collect();
            for segment in &mut segments {
                segment.is_busy = dice.roll(4) == 0;
            }
            let plan = plan(&segments, &dice.limits());
            let mut seen = HashSet::new();
            let rewritten = plan.rewrites.iter().flat_map(|rewrite| &rewrite.segments);
            let indexed = plan.indexing.iter().map(|column| &column.segment);
            for id in rewritten.chain(indexed).chain(&plan.seal) {
                assert!(seen.insert(*id), "seed {seed}: {id} twice in {plan:?}");
                let is_busy = segments.iter().any(|s| s.segment == *id && s.is_busy);
                assert!(!is_busy, "seed {seed}: {id} is busy");
            }
        }
    }

    #[test]
    fn no_threads_hold_whatever_is_wanted() {
        let limits = Limits {
            jobs_max: Some(0),
            ..LIMITS
        };
        let held = plan(&[sealed(1, 10_000, 1_000)], &limits);
        assert!(held.held.is_some() && !held.is_empty());
        assert_eq!(plan(&[sealed(1, 10_000, 10_000)], &limits).held, None);
    }
}
