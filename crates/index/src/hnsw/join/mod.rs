//! Several graphs become one, without inserting all rows again; a graph with dead rows is healed.
//!
//! The largest input is copied and the others are inserted, each row starting from where its own
//! neighbours have landed (after IGTM, arXiv 2505.16064, and Lucene's join sets; the links back as in
//! `ParlayANN`, arXiv 2305.04359). Deleted rows have no place in the output; their links are bridges.
//!
//! 1. **Copy** (`heal`) the largest input's lists in the output's numbers; rows that lose links to dead
//!    rows choose new ones among those that the dead ones led to.
//! 2. **Tie** (`tree`): check the tree links, and connect the parts into which dead rows cut the tree.
//! 3. **Seek** (`front`, `near`, `seek`): of each other input, in the order of its own links, find each
//!    row's neighbours in the output.
//! 4. **Relink** (`relink`): write their lists and the links back; then go on with 3.
//! 5. Rows that no input's graph holds are inserted as into any growing graph.
//!
//! With one input this is a vacuum: steps 1 and 2. Reading order: `source`, `near`, `heal`, `tree`,
//! `front`, `seek`, `relink`, `work`.

mod front;
mod heal;
mod near;
mod relink;
mod seek;
mod source;
mod tree;
mod work;

use std::sync::Mutex;
use std::sync::atomic::Ordering;

pub use source::{JoinInput, NO_PLACE, Source};

use self::front::Front;
use self::relink::Part;
use self::seek::Landings;
use self::source::Input;
pub(super) use self::tree::free_from;
use self::tree::{Tree, drop_links};
use self::work::{Context, Loan, Worker, lock};
use super::batch::Plan;
use super::insert::Cancelled;
use super::levels::{LEVEL_MAX, Levels};
use super::links::Links;
use super::params::Params;
use super::space::{Space, Workers};
use super::{Hnsw, NO_ENTRY};
use crate::Row;

/// Rows copied in one step: tens of milliseconds where every list has to be healed.
const COPY_ROWS: Row = 2048;
/// Rows looked at in one step by work that scores nothing.
const CHECK_ROWS: Row = 16_384;
/// Lists worked out in one step.
const RELINK_LISTS: usize = 4096;
/// Lists that a worker takes at once.
const LISTS_PER_TASK: usize = 8;
/// Rows of one input inserted before their links back are written: bounds the memory for them, some 300 bytes a
/// row. In larger parts fewer lists are pruned twice, but rows of a part find one another only
/// through their own links.
const PART_ROWS: usize = 1 << 16;

/// How far a join has come, in rows of the output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JoinProgress {
    /// Rows whose links are written.
    pub done: Row,
    /// Rows to come into the graph.
    pub total: Row,
}

/// Places that make no output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadPlaces {
    /// A place past the end of the output.
    #[error("join: row {row} of input {input} goes to row {place} of {rows}")]
    Range {
        /// Which input.
        input: usize,
        /// Its row.
        row: Row,
        /// Where it should go.
        place: Row,
        /// Rows of the output.
        rows: Row,
    },
    /// Two rows with one place.
    #[error("join: row {row} of input {input} goes to row {place}, which is taken")]
    Taken {
        /// Which input.
        input: usize,
        /// Its row.
        row: Row,
        /// Where it should go.
        place: Row,
    },
}

/// A join under way.
#[derive(Debug)]
pub struct Join<'a> {
    /// The one with the most live rows first.
    inputs: Vec<Input<'a>>,
    graph: Hnsw,
    rows: Row,
    tree: Tree,
    /// Rows that lost a tree link.
    broken: Vec<Row>,
    /// Rows that no input's graph holds.
    rest: Vec<Row>,
    stage: Stage,
    front: Front,
    /// For each output row the row of the current input that becomes it.
    origin: Vec<Row>,
    part: Part,
    /// [`PART_ROWS`]; tests take less.
    pub(super) part_rows: usize,
    states: Vec<Mutex<Worker>>,
    progress: JoinProgress,
    distances: u64,
}

/// What the next step does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Copy { next: Row },
    Check { next: Row },
    Tie { pass: TiePass, next: usize },
    Seek { input: usize },
    Turn { input: usize },
    Relink { input: usize, next: usize },
    Upper { input: usize },
    Rest { next: usize },
    Done,
}

/// How the parts of the tree are tied together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TiePass {
    /// Rows that lost a tree link, each to its nearest neighbour in another part.
    Broken,
    /// Whatever is apart from the entry point still.
    All,
}

impl<'a> Join<'a> {
    /// A join of `inputs` into a graph over the rows `0..rows`. Its space, given to each step, is that
    /// of the output rows alone.
    ///
    /// # Errors
    /// [`BadPlaces`].
    ///
    /// Cost: one look at every row; memory for the output's links and some 50 bytes a row more.
    pub fn new(params: Params, rows: Row, inputs: &[JoinInput<'a>]) -> Result<Self, BadPlaces> {
        let params = params.clamped();
        check_places(rows, inputs)?;
        let mut inputs: Vec<Input<'a>> = inputs.iter().copied().map(Input::new).collect();
        inputs.sort_by_cached_key(|input| {
            let live = (0..input.covered()).filter_map(|row| input.linked_place(row));
            std::cmp::Reverse(live.count())
        });
        let drawn = Levels::new(params.m, params.seed);
        let mut levels: Vec<u8> = (0..rows).map(|row| drawn.draw(row) as u8).collect();
        let mut total = 0;
        for input in &inputs {
            for row in 0..input.rows_len() {
                let Some(place) = input.place(row) else {
                    continue;
                };
                total += 1;
                if input.is_linked(row) {
                    levels[place as usize] = input.level_of(row).min(LEVEL_MAX) as u8;
                }
            }
        }
        let links = Links::with_levels(params, rows, drawn.with_given(levels.into()));
        links.reserve(0..rows);
        Ok(Self {
            graph: Hnsw::of_links(params, links),
            rows,
            tree: Tree::new(rows, params.m),
            broken: Vec::new(),
            rest: Vec::new(),
            stage: Stage::Copy { next: 0 },
            front: Front::default(),
            origin: Vec::new(),
            part: Part::new(rows),
            part_rows: PART_ROWS,
            states: Vec::new(),
            progress: JoinProgress { done: 0, total },
            inputs,
            distances: 0,
        })
    }

    /// How far it has come.
    #[must_use]
    pub fn progress(&self) -> JoinProgress {
        self.progress
    }

    /// Whether [`finish`](Self::finish) gives the graph.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.stage == Stage::Done
    }

    /// Rows scored by the searches so far.
    #[must_use]
    pub fn distances(&self) -> u64 {
        self.distances
    }

    /// The graph; none while there is work left.
    #[must_use]
    pub fn finish(self) -> Option<Hnsw> {
        if !self.is_done() {
            return None;
        }
        let graph = self.graph;
        graph.indexed_len.store(self.rows, Ordering::Release);
        Some(graph)
    }

    /// Does the next piece of work: up to some hundred milliseconds of one core, spread over
    /// `workers`.
    ///
    /// # Errors
    /// [`Cancelled`]: the step left no trace and can be done again. `cancel` is asked as in
    /// [`Hnsw::insert_batch`].
    pub fn step<S: Space>(
        &mut self,
        space: &S,
        workers: &dyn Workers,
        cancel: &(dyn Fn() -> bool + Sync),
    ) -> Result<JoinProgress, Cancelled> {
        let mut states = std::mem::take(&mut self.states);
        states.resize_with(workers.threads().max(1).max(states.len()), Mutex::default);
        let loan = Loan {
            space,
            workers,
            states: &states,
            cancel,
        };
        let next = match self.stage {
            Stage::Copy { next } => self.copy(&loan, next),
            Stage::Check { next } => Ok(self.check(next)),
            Stage::Tie { pass, next } => Ok(self.tie(pass, next)),
            Stage::Seek { input } => self.seek(&loan, input),
            Stage::Turn { input } => Ok(self.turn(&loan, input)),
            Stage::Relink { input, next } => self.relink(&loan, input, next),
            Stage::Upper { input } => self.relink_upper(&loan, input),
            Stage::Rest { next } => self.insert_rest(&loan, next),
            Stage::Done => Ok(Stage::Done),
        };
        self.states = states;
        self.stage = next?;
        Ok(self.progress)
    }

    fn copy<S: Space>(&mut self, loan: &Loan<'_, S>, next: Row) -> Result<Stage, Cancelled> {
        let Some(input) = self.inputs.first() else {
            return Ok(Stage::Done);
        };
        let end = input.covered().min(next.saturating_add(COPY_ROWS));
        let context = Context::new(loan, &self.graph);
        context.each((end - next) as usize, &|i, worker| {
            context.copy(input, next + i as Row, worker);
        })?;
        context.write();
        for state in loan.states {
            self.broken.append(&mut lock(state).broken);
        }
        for place in (next..end).filter_map(|row| input.linked_place(row)) {
            self.graph.count_in(place);
            self.progress.done += 1;
        }
        if end < input.covered() {
            return Ok(Stage::Copy { next: end });
        }
        self.broken.sort_unstable();
        self.origin = origins(self.rows, input);
        Ok(Stage::Check { next: 0 })
    }

    fn check(&mut self, next: Row) -> Stage {
        let end = self.rows.min(next.saturating_add(CHECK_ROWS));
        for row in next..end {
            let is_held = |row: Row| self.origin[row as usize] != NO_PLACE;
            if is_held(row) {
                drop_links(&self.graph.links, row, is_held);
                self.tree.check(&self.graph.links, row);
            }
        }
        if end < self.rows {
            Stage::Check { next: end }
        } else {
            Stage::Tie {
                pass: TiePass::Broken,
                next: 0,
            }
        }
    }

    fn tie(&mut self, pass: TiePass, next: usize) -> Stage {
        let Some((main, _)) = self.graph.entry() else {
            return self.begin_input(1);
        };
        let len = match pass {
            TiePass::Broken => self.broken.len(),
            TiePass::All => self.rows as usize,
        };
        let end = len.min(next + CHECK_ROWS as usize);
        for at in next..end {
            match pass {
                TiePass::Broken => self.tree.tie(&self.graph.links, self.broken[at]),
                TiePass::All => self.tree.tie_to(&self.graph.links, at as Row, main),
            }
        }
        match pass {
            _ if end < len => Stage::Tie { pass, next: end },
            TiePass::Broken => Stage::Tie {
                pass: TiePass::All,
                next: 0,
            },
            TiePass::All => self.begin_input(1),
        }
    }

    /// The stage that begins with input `at`.
    fn begin_input(&mut self, at: usize) -> Stage {
        let Some(input) = self.inputs.get(at) else {
            let inputs = self.inputs.iter();
            let placed =
                inputs.flat_map(|input| (0..input.rows_len()).filter_map(|r| input.place(r)));
            self.rest = placed.filter(|&row| !self.tree.holds(row)).collect();
            self.rest.sort_unstable();
            return Stage::Rest { next: 0 };
        };
        self.front = Front::new(input);
        self.origin = origins(self.rows, input);
        Stage::Seek { input: at }
    }

    fn seek<S: Space>(&mut self, loan: &Loan<'_, S>, at: usize) -> Result<Stage, Cancelled> {
        let input = &self.inputs[at];
        let chunk = self.front.chunk(input).to_vec();
        if chunk.is_empty() && self.part.len() == 0 {
            return Ok(self.begin_input(at + 1));
        }
        let context = Context::new(loan, &self.graph);
        let landings = Landings {
            landed: self.front.landed(),
            origin: &self.origin,
        };
        context.each(chunk.len(), &|i, worker| {
            context.seek(input, &landings, (i, chunk[i]), worker);
        })?;
        let plans = loan
            .states
            .iter()
            .map(|state| std::mem::take(&mut lock(state).plan));
        let rows = chunk.iter().filter_map(|&row| input.place(row));
        self.part.collect(rows, &Plan::merge(plans));
        for state in loan.states {
            let state = lock(state);
            self.distances += state.distances;
            for &(row, landed) in &state.landed {
                self.front.land(row, landed);
            }
        }
        self.front.finish_chunk(input);
        if self.part.len() < self.part_rows && !chunk.is_empty() {
            return Ok(Stage::Seek { input: at });
        }
        self.part.adopt(&context, &mut self.tree);
        Ok(Stage::Turn { input: at })
    }

    fn turn<S: Space>(&mut self, loan: &Loan<'_, S>, input: usize) -> Stage {
        let context = Context::new(loan, &self.graph);
        self.part.turn(&context);
        Stage::Relink { input, next: 0 }
    }

    fn relink<S: Space>(
        &mut self,
        loan: &Loan<'_, S>,
        input: usize,
        next: usize,
    ) -> Result<Stage, Cancelled> {
        let context = Context::new(loan, &self.graph);
        let end = self.part.targets().len().min(next + RELINK_LISTS);
        let lists = &self.part.targets()[next..end];
        context.each(lists.len().div_ceil(LISTS_PER_TASK), &|task, worker| {
            let first = task * LISTS_PER_TASK;
            for &target in &lists[first..lists.len().min(first + LISTS_PER_TASK)] {
                self.part.relink(&context, target, worker);
            }
        })?;
        context.write();
        Ok(if end < self.part.targets().len() {
            Stage::Relink { input, next: end }
        } else {
            Stage::Upper { input }
        })
    }

    fn relink_upper<S: Space>(
        &mut self,
        loan: &Loan<'_, S>,
        input: usize,
    ) -> Result<Stage, Cancelled> {
        let context = Context::new(loan, &self.graph);
        context.each(self.part.upper_len(), &|group, worker| {
            self.part.relink_upper(&context, group, worker);
        })?;
        context.write();
        for &row in self.part.order() {
            self.graph.count_in(row);
        }
        self.progress.done += self.part.len() as Row;
        self.part.clear();
        Ok(Stage::Seek { input })
    }

    /// Rows that no input's graph holds, as any growing graph takes them.
    fn insert_rest<S: Space>(
        &mut self,
        loan: &Loan<'_, S>,
        next: usize,
    ) -> Result<Stage, Cancelled> {
        let left = (self.rest.len() - next) as Row;
        let end = next + self.graph.next_batch_len(left) as usize;
        if left == 0 {
            return Ok(Stage::Done);
        }
        let rows = &self.rest[next..end];
        self.distances += self
            .graph
            .insert_rows(loan.space, rows, loan.workers, loan.cancel)?;
        let inserted = (end - next) as Row;
        self.graph
            .linked_rows
            .fetch_add(inserted, Ordering::Release);
        self.progress.done += inserted;
        Ok(Stage::Rest { next: end })
    }
}

/// For each output row the row of `input` that becomes it.
fn origins(rows: Row, input: &Input<'_>) -> Vec<Row> {
    let mut origin = vec![NO_PLACE; rows as usize];
    for row in 0..input.covered() {
        if let Some(place) = input.linked_place(row) {
            origin[place as usize] = row;
        }
    }
    origin
}

fn check_places(rows: Row, inputs: &[JoinInput<'_>]) -> Result<(), BadPlaces> {
    let mut taken = vec![false; rows as usize];
    for (input, places) in inputs.iter().map(|input| input.places).enumerate() {
        for (row, &place) in (0..).zip(places) {
            if place == NO_PLACE {
                continue;
            }
            match taken.get_mut(place as usize) {
                None => {
                    return Err(BadPlaces::Range {
                        input,
                        row,
                        place,
                        rows,
                    });
                }
                Some(taken) if *taken => return Err(BadPlaces::Taken { input, row, place }),
                Some(taken) => *taken = true,
            }
        }
    }
    Ok(())
}

impl Hnsw {
    /// An empty graph over the given lists.
    fn of_links(params: Params, links: Links) -> Self {
        let rows_max = 0;
        Self {
            links,
            ..Self::new(params, rows_max)
        }
    }

    /// Counts a row whose links are written; it is the entry point if it is higher than the one there
    /// is.
    fn count_in(&self, row: Row) {
        self.linked_rows.fetch_add(1, Ordering::Release);
        let level = self.links.level_of(row);
        if self.entry().is_none_or(|(_, top)| level > top) {
            let word = ((level as u64) << 32) | u64::from(row);
            debug_assert!(word != NO_ENTRY, "levels are at most 63");
            self.entry.store(word, Ordering::Release);
        }
    }
}
