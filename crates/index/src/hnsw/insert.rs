//! Insertion in batches (after ParlayANN, arXiv 2305.04359): work everything out against a graph
//! that stands still, then write.
//!
//! 1. **Find.** Each new row searches the graph, in parallel, and chooses diverse neighbours.
//! 2. **Meet.** Rows of the batch that may be near one another are compared: all of a small batch,
//!    else those that chose the same near neighbours; a mate that would have been found had it
//!    been there earlier joins the choice.
//! 3. **Adopt.** Each row gets a parent: the nearest of its neighbours that was there before it and
//!    has a place free among its `m + 1` tree links; if all are full, a row beside the nearest in the
//!    tree. Every row thus hangs on a tree whose links are never pruned, and level 0 is strongly
//!    connected.
//! 4. **Relink.** Links back are grouped by target; each target's new list is worked out by one
//!    worker: appended to if there is room, else pruned by the choice of diverse neighbours.
//! 5. **Write.** First the new rows' lists, which nothing leads to yet, then those of the targets,
//!    then the entry point, then `indexed_len`.
//!
//! A batch can be cancelled in steps 1 to 4 and then leaves no trace; step 5 only copies memory.
//! Results depend on rows and scores, not on which worker computed them.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::batch::{Edge, Groups, Plan, Writes};
use super::join::free_from;
use super::key::{Key, key, row_of, score_of};
use super::links::{EMPTY, Shape};
use super::scratch::{Scratch, SearchStats};
use super::search::{descend, walk};
use super::select::{Candidate, Standing, choose_diverse, prune};
use super::space::{Scorer, Space, Workers};
use super::{Hnsw, NO_ENTRY};
use crate::Row;

/// Batches up to this size are compared in full in step 2: some 3 % of what step 1 costs.
const MEET_ALL_MAX: usize = 64;
/// In larger batches a row meets those that share one of this many nearest neighbours...
const MEET_NEAREST: usize = 4;
/// ...but of each such group only this many before and after it, so that thousands of equal rows
/// cost no more than others.
const MEET_WINDOW: usize = 8;
/// Rows of a batch on the same upper level are compared in full, up to this many.
const MEET_UPPER_MAX: usize = 512;
/// Lists that a worker takes at once in step 4: tens of microseconds between looks at `cancel`.
const GROUPS_PER_TASK: usize = 8;

/// What a batch did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BatchReport {
    /// Rows that are in the graph now.
    pub inserted: Row,
    /// Rows that were left out.
    pub skipped: Row,
    /// Rows scored by the searches of step 1.
    pub distances: u64,
}

/// The batch was cancelled; the graph is as it was before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cancelled;

impl fmt::Display for Cancelled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the batch was cancelled; its rows can be inserted again")
    }
}

impl std::error::Error for Cancelled {}

/// The builder's memory, kept from batch to batch.
#[derive(Debug, Default)]
pub(super) struct Buffers {
    /// One for each worker index; never contended.
    workers: Vec<Mutex<Worker>>,
}

#[derive(Debug, Default)]
struct Worker {
    scratch: Scratch,
    candidates: Vec<Candidate>,
    kept: Vec<Candidate>,
    mates: Vec<Row>,
    current: Vec<(Row, Standing)>,
    plan: Plan,
    writes: Writes,
    found: SearchStats,
}

impl Hnsw {
    /// Inserts the rows `indexed_len()..end` except those that `skip` names, then advances
    /// `indexed_len` to `end`. Skipped rows are linked to by nobody.
    ///
    /// `cancel` is asked by every worker at intervals of tens of microseconds; it may also wait,
    /// to let searches pass. Once it answers true the batch ends and the graph is unchanged.
    /// Batches of [`next_batch_len`](Self::next_batch_len) rows keep the quality of insertion one
    /// by one; larger ones are valid graphs of lower recall.
    ///
    /// # Errors
    /// [`Cancelled`]: `indexed_len` is where it was; the rows can be inserted later.
    ///
    /// # Panics
    /// If `end` is beyond the `rows_max` given to `new`.
    ///
    /// Blocks: a second caller waits for the first; searches never wait. Cost a row: a search with
    /// `ef_construct`, and about as much again for the choice and the pruning of links.
    pub fn insert_batch<S: Space>(
        &self,
        space: &S,
        end: Row,
        skip: &(dyn Fn(Row) -> bool + Sync),
        workers: &dyn Workers,
        cancel: &(dyn Fn() -> bool + Sync),
    ) -> Result<BatchReport, Cancelled> {
        let mut buffers = self.builder.lock().unwrap_or_else(PoisonError::into_inner);
        let start = self.indexed_len();
        assert!(
            end <= self.links.rows_max(),
            "rows beyond the capacity given to Hnsw::new"
        );
        if end <= start {
            return Ok(BatchReport::default());
        }
        let rows: Vec<Row> = (start..end).filter(|&row| !skip(row)).collect();
        let mut report = BatchReport {
            inserted: rows.len() as Row,
            ..BatchReport::default()
        };
        report.skipped = end - start - report.inserted;
        if !rows.is_empty() {
            self.links.reserve(start..end);
            report.distances = self.insert_with(&mut buffers, space, &rows, workers, cancel)?;
        }
        self.linked_rows
            .fetch_add(report.inserted, Ordering::Release);
        self.indexed_len.store(end, Ordering::Release);
        Ok(report)
    }

    /// Inserts `rows`, in ascending order, wherever they stand; the caller has made their pages and
    /// advances the counts. Returns how many rows were scored.
    pub(super) fn insert_rows<S: Space>(
        &self,
        space: &S,
        rows: &[Row],
        workers: &dyn Workers,
        cancel: &(dyn Fn() -> bool + Sync),
    ) -> Result<u64, Cancelled> {
        let mut buffers = self.builder.lock().unwrap_or_else(PoisonError::into_inner);
        self.insert_with(&mut buffers, space, rows, workers, cancel)
    }

    fn insert_with<S: Space>(
        &self,
        buffers: &mut Buffers,
        space: &S,
        rows: &[Row],
        workers: &dyn Workers,
        cancel: &(dyn Fn() -> bool + Sync),
    ) -> Result<u64, Cancelled> {
        buffers.prepare(workers.threads());
        let batch = Batch {
            graph: self,
            space,
            rows,
            workers,
            states: &buffers.workers,
            cancel,
            cancelled: AtomicBool::new(false),
        };
        batch.insert()
    }
}

impl Buffers {
    fn prepare(&mut self, threads: usize) {
        self.workers
            .resize_with(threads.max(1).max(self.workers.len()), Mutex::default);
        for worker in &mut self.workers {
            let worker = worker.get_mut().unwrap_or_else(PoisonError::into_inner);
            worker.plan.clear();
            worker.writes.clear();
            worker.found = SearchStats::default();
        }
    }
}

/// One batch under way.
struct Batch<'a, S> {
    graph: &'a Hnsw,
    space: &'a S,
    /// The new rows, ascending.
    rows: &'a [Row],
    workers: &'a dyn Workers,
    states: &'a [Mutex<Worker>],
    cancel: &'a (dyn Fn() -> bool + Sync),
    cancelled: AtomicBool,
}

impl<S: Space> Batch<'_, S> {
    fn insert(&self) -> Result<u64, Cancelled> {
        self.each(self.rows.len(), &|i, worker| {
            self.find(self.rows[i], worker);
        })?;
        let plan = self.gather_plan();
        let meeting = Meeting::new(self, &plan);
        self.each(self.rows.len(), &|i, worker| {
            self.meet(self.rows[i], &plan, &meeting, worker);
        })?;
        let plan = self.gather_plan();
        let parents = self.adopt(&plan);
        let groups = self.groups(&plan, &parents);
        self.each(groups.len().div_ceil(GROUPS_PER_TASK), &|task, worker| {
            let first = task * GROUPS_PER_TASK;
            for i in first..groups.len().min(first + GROUPS_PER_TASK) {
                self.relink(groups.get(i), &plan, &parents, worker);
            }
        })?;
        self.write();
        Ok(self
            .states
            .iter()
            .map(|state| lock(state).found.distances)
            .sum())
    }

    /// Calls `f` for `0..n` with the worker's own memory, unless the batch is cancelled.
    fn each(&self, n: usize, f: &(dyn Fn(usize, &mut Worker) + Sync)) -> Result<(), Cancelled> {
        self.workers.run(n, &|i, worker| {
            if !self.stop() {
                f(i, &mut lock(&self.states[worker % self.states.len()]));
            }
        });
        if self.cancelled.load(Ordering::Relaxed) {
            Err(Cancelled)
        } else {
            Ok(())
        }
    }

    fn stop(&self) -> bool {
        // Relaxed: the flag carries no data, and `run` orders it before the check above.
        if self.cancelled.load(Ordering::Relaxed) {
            return true;
        }
        let stop = (self.cancel)();
        if stop {
            self.cancelled.store(true, Ordering::Relaxed);
        }
        stop
    }

    fn gather_plan(&self) -> Plan {
        Plan::merge(
            self.states
                .iter()
                .map(|state| std::mem::take(&mut lock(state).plan)),
        )
    }

    /// Step 1 for one row: neighbours on each of its levels, from the graph as it stands.
    fn find(&self, row: Row, worker: &mut Worker) {
        let links = &self.graph.links;
        let level = links.level_of(row);
        let Some((entry, top)) = self.graph.entry() else {
            for level in 0..=level {
                worker.plan.push(level, row, 0, []);
            }
            return;
        };
        let scorer = self.space.scorer_of(row);
        let Worker {
            scratch,
            candidates,
            kept,
            plan,
            found,
            ..
        } = worker;
        scratch.stats = SearchStats::default();
        let mut at = descend(links, &scorer, entry, top, level, &mut scratch.stats);
        for level in (0..=level).rev() {
            if level > top {
                plan.push(level, row, 0, []);
                continue;
            }
            scratch.begin(self.graph.params.ef_construct);
            if walk(
                links,
                level,
                &scorer,
                &[at],
                &|_| true,
                &|| self.stop(),
                scratch,
            )
            .is_err()
            {
                return;
            }
            let keys = scratch.best.keys();
            at = keys.first().map_or(at, |&nearest| row_of(nearest));
            candidates.clear();
            candidates.extend(keys.iter().map(|&key| Candidate {
                key,
                standing: Standing::Open,
            }));
            choose_diverse(self.space, candidates, self.graph.params.m, kept);
            plan.push(level, row, scratch.best.bar(), kept.iter().map(|c| c.key));
        }
        found.distances += scratch.stats.distances;
        found.hops += scratch.stats.hops;
    }

    /// Step 2 for one row: its lists again, with the mates that belong there.
    fn meet(&self, row: Row, plan: &Plan, meeting: &Meeting, worker: &mut Worker) {
        let Worker {
            candidates,
            kept,
            mates,
            plan: met,
            ..
        } = worker;
        let scorer = self.space.scorer_of(row);
        for level in 0..=self.graph.links.level_of(row) {
            let Some((bar, list)) = plan.get(level, row) else {
                continue;
            };
            meeting.mates(level, row, list, mates);
            candidates.clear();
            for &mate in mates.iter() {
                let key = key(scorer.score(mate), mate);
                if key > bar {
                    candidates.push(Candidate {
                        key,
                        standing: Standing::Open,
                    });
                }
            }
            if candidates.is_empty() {
                met.push(level, row, bar, list.iter().copied());
                continue;
            }
            let known = |&key: &Key| Candidate {
                key,
                standing: Standing::Diverse,
            };
            candidates.extend(list.iter().map(known));
            candidates.sort_unstable_by_key(|c| std::cmp::Reverse(c.key));
            choose_diverse(self.space, candidates, self.graph.params.m, kept);
            met.push(level, row, bar, kept.iter().map(|c| c.key));
        }
    }

    /// Step 3: the parents of the batch's rows, in their order; [`EMPTY`] for the very first row.
    fn adopt(&self, plan: &Plan) -> Parents {
        let mut parents = Parents {
            of: HashMap::new(),
            tied: HashMap::new(),
        };
        let eldest = self.graph.entry().map_or(self.rows[0], |(row, _)| row);
        for &row in self.rows {
            let list = plan.get(0, row).map_or(&[][..], |(_, list)| list);
            let before = || {
                let rows = list.iter().map(|&key| row_of(key));
                rows.filter(|&other| other < row || !self.is_new(other))
            };
            let is_free = |row| self.tree_len(row, &parents) <= self.graph.params.m;
            let free = before().find(|&other| is_free(other));
            let parent = match free {
                Some(parent) => parent,
                None if row == eldest => EMPTY,
                None => {
                    let start = before().next().unwrap_or(eldest);
                    free_from(&self.graph.links, start, row, &parents.tied, is_free)
                }
            };
            parents.of.insert(row, parent);
            if parent != EMPTY {
                parents.tied.entry(parent).or_default().push(row);
                parents.tied.entry(row).or_default().push(parent);
            }
        }
        parents
    }

    /// Tree links of `row`: to its parent and to up to `m` children.
    fn tree_len(&self, row: Row, parents: &Parents) -> usize {
        self.graph.links.shape(row).tree + parents.tied.get(&row).map_or(0, Vec::len)
    }

    fn is_new(&self, row: Row) -> bool {
        self.rows.binary_search(&row).is_ok()
    }

    /// The links back, by target; every list of a new row is a group too.
    fn groups(&self, plan: &Plan, parents: &Parents) -> Groups {
        let mut edges = Vec::new();
        for (at, list) in plan.iter() {
            let (level, source) = (at.level, at.row);
            let parent = if level == 0 {
                parents.of[&source]
            } else {
                EMPTY
            };
            let mut has_parent = parent == EMPTY;
            for &key in list {
                let target = row_of(key);
                let is_child = target == parent;
                has_parent |= is_child;
                edges.push(Edge {
                    level,
                    target,
                    source,
                    score: score_of(key),
                    is_child,
                });
            }
            if !has_parent {
                let score = self.space.pair(source, parent);
                edges.push(Edge {
                    level,
                    target: parent,
                    source,
                    score,
                    is_child: true,
                });
            }
            edges.push(Edge::own_list(level, source));
        }
        Groups::new(edges)
    }

    /// Step 4 for one target: its list with `edges` added.
    fn relink(&self, edges: &[Edge], plan: &Plan, parents: &Parents, worker: &mut Worker) {
        let (level, target) = (edges[0].level, edges[0].target);
        let max = self.graph.params.links_max(level);
        self.current_list(level, target, plan, parents, &mut worker.current);
        let Worker {
            current,
            candidates,
            kept,
            writes,
            ..
        } = worker;
        let old = current.len();
        for edge in edges {
            // Two mates that chose each other have the link already.
            let is_known = || current[..old].iter().any(|&(row, _)| row == edge.source);
            if edge.is_child {
                // A child that is a plain neighbour already becomes a tree link.
                current.retain(|&(row, _)| row != edge.source);
                current.push((edge.source, Standing::Tree));
            } else if edge.source != EMPTY && !is_known() {
                current.push((edge.source, Standing::Open));
            }
        }
        if current.len() > max {
            let known = |row| edges.iter().find(|e| e.source == row).map(|e| e.score);
            prune(self.space, target, max, known, current, (candidates, kept));
        }
        // Stable: the tree links that readers rely on stay where they are.
        current.sort_by_key(|&(_, standing)| standing);
        let shape = Shape::of(current);
        writes.push(level, target, shape, current.iter().map(|&(row, _)| row));
    }

    /// The list of `target` before this batch's links back: of an old row as it stands, of a new
    /// one as planned.
    fn current_list(
        &self,
        level: usize,
        target: Row,
        plan: &Plan,
        parents: &Parents,
        current: &mut Vec<(Row, Standing)>,
    ) {
        current.clear();
        if let Some((_, list)) = plan.get(level, target) {
            let parent = if level == 0 {
                parents.of[&target]
            } else {
                EMPTY
            };
            let standing = if level == 0 {
                Standing::Diverse
            } else {
                Standing::Open
            };
            if parent != EMPTY {
                current.push((parent, Standing::Tree));
            }
            let others = list
                .iter()
                .map(|&key| row_of(key))
                .filter(|&row| row != parent);
            current.extend(others.map(|row| (row, standing)));
        } else {
            let links = &self.graph.links;
            let shape = if level == 0 {
                links.shape(target)
            } else {
                Shape::default()
            };
            let linked = links.rows(level, target).enumerate();
            current.extend(linked.map(|(i, row)| (row, shape.standing(i))));
        }
    }

    /// Step 5.
    fn write(&self) {
        let links = &self.graph.links;
        // New rows first: nothing leads to them until the second pass. `run` orders the passes.
        for new in [true, false] {
            self.workers.run(self.states.len(), &|i, _| {
                let state = lock(&self.states[i]);
                for (at, list) in state
                    .writes
                    .iter()
                    .filter(|(at, _)| self.is_new(at.row) == new)
                {
                    links.write(at.level, at.row, at.note, list);
                }
            });
        }
        self.raise_entry();
    }

    /// The entry point is the first row of the highest level.
    fn raise_entry(&self) {
        let top = self.graph.entry().map(|(_, level)| level);
        let highest = self
            .rows
            .iter()
            .map(|&row| (self.graph.links.level_of(row), row));
        let Some((level, row)) = highest.max_by_key(|&(level, row)| (level, !row)) else {
            return;
        };
        if top.is_none_or(|top| level > top) {
            let word = ((level as u64) << 32) | u64::from(row);
            assert!(word != NO_ENTRY, "levels are at most 64");
            // Release: the row's links are seen by whoever enters there.
            self.graph.entry.store(word, Ordering::Release);
        }
    }
}

/// Parents of a batch's rows.
struct Parents {
    of: HashMap<Row, Row>,
    /// Tree links of this batch, from both ends.
    tied: HashMap<Row, Vec<Row>>,
}

/// Who meets whom in step 2.
struct Meeting<'a> {
    rows: &'a [Row],
    /// (near neighbour, row that chose it), sorted; empty if all meet.
    shared: Vec<(Row, Row)>,
    /// Rows on each upper level, from level 1.
    upper: Vec<Vec<Row>>,
}

impl<'a> Meeting<'a> {
    fn new<S: Space>(batch: &Batch<'a, S>, plan: &Plan) -> Self {
        let mut shared = Vec::new();
        let mut upper: Vec<Vec<Row>> = Vec::new();
        for (at, list) in plan.iter() {
            if at.level > 0 {
                upper.resize_with(upper.len().max(at.level), Vec::new);
                let peers = &mut upper[at.level - 1];
                if peers.len() < MEET_UPPER_MAX {
                    peers.push(at.row);
                }
            } else if batch.rows.len() > MEET_ALL_MAX {
                shared.extend(nearest(list).map(|near| (near, at.row)));
            }
        }
        shared.sort_unstable();
        Self {
            rows: batch.rows,
            shared,
            upper,
        }
    }

    /// The rows that `row` is compared with on `level`, into `mates`.
    fn mates(&self, level: usize, row: Row, list: &[Key], mates: &mut Vec<Row>) {
        mates.clear();
        if level > 0 {
            mates.extend_from_slice(self.upper.get(level - 1).map_or(&[], Vec::as_slice));
        } else if self.shared.is_empty() {
            mates.extend_from_slice(self.rows);
        } else {
            for near in nearest(list) {
                let at = self.shared.partition_point(|&pair| pair < (near, row));
                let window =
                    at.saturating_sub(MEET_WINDOW)..self.shared.len().min(at + MEET_WINDOW + 1);
                let group = self.shared[window]
                    .iter()
                    .filter(|&&(other, _)| other == near);
                mates.extend(group.map(|&(_, mate)| mate));
            }
            mates.sort_unstable();
            mates.dedup();
        }
        mates.retain(|&mate| mate != row);
    }
}

/// The neighbours by which rows are brought together; rows that found none share [`EMPTY`].
fn nearest(list: &[Key]) -> impl Iterator<Item = Row> + '_ {
    let none = list.is_empty().then_some(EMPTY);
    list.iter()
        .take(MEET_NEAREST)
        .map(|&key| row_of(key))
        .chain(none)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic of another worker is raised by `run`; the memory here is cleared before use.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
