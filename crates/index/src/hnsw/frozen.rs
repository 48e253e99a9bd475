//! A finished graph in flat arrays: what a file holds, and how it is searched there.
//!
//! 1. [`Hnsw::freeze`] copies the links of the rows covered so far into [`GraphParts`].
//! 2. [`FrozenGraph`] walks those arrays where they lie, for example in a mapped file.
//! 3. [`Hnsw::restore`] makes a growing graph of them again and goes on from there.
//!
//! Level 0 has `2m` slots a row, an upper list `m`; a list ends at its first free slot. The levels
//! of a row are counted by `upper_start`, not drawn again, so that rows of graphs with other seeds
//! can be put together.

use std::sync::atomic::Ordering;

use super::filtered::search_filtered_links;
use super::links::{EMPTY, Links, Shape};
use super::params::Params;
use super::search::{LinkRead, Walk, search_links};
use super::space::Scorer;
use super::{Hnsw, Scratch};
use crate::distance::prefetch;
use crate::{Row, Scored};

/// The links of rows `0..rows`, as arrays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GraphParts {
    /// Links a row asks for; sets the width of the lists.
    pub m: usize,
    /// Rows covered, skipped ones too.
    pub rows: Row,
    /// Where walks begin: a row and its level; none in a graph without linked rows.
    pub entry: Option<(Row, usize)>,
    /// `[rows, 2m]`: level-0 lists, [`EMPTY_SLOT`] in free slots.
    pub base: Vec<Row>,
    /// `[rows + 1]`: upper lists of the rows before; the last is the number of all.
    pub upper_start: Vec<u32>,
    /// `[lists, m]`: upper lists, by row, then level from 1 up.
    pub upper: Vec<Row>,
    /// `[rows]`: packed lengths of the parts of each level-0 list, for the builder.
    pub shapes: Vec<u32>,
}

/// Marks a free slot in [`GraphParts`].
pub const EMPTY_SLOT: Row = EMPTY;

/// Arrays that do not make a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadGraph {
    /// An array has a length that the others contradict.
    #[error("graph: {array} holds {found} entries, expected {expected}")]
    Length {
        /// Which array.
        array: &'static str,
        /// What the others call for.
        expected: usize,
        /// What it holds.
        found: usize,
    },
    /// A link to a row that is not in the graph, or to itself.
    #[error("graph: row {row} links to row {linked} of {rows}")]
    Link {
        /// Row with the link.
        row: Row,
        /// Where it leads.
        linked: Row,
        /// Rows of the graph.
        rows: Row,
    },
    /// The entry point is not a row of its level.
    #[error("graph: the entry point is row {row} on level {level}, which is not there")]
    Entry {
        /// Row.
        row: Row,
        /// Level.
        level: usize,
    },
    /// A row is on other levels than its seed says.
    #[error("graph: row {row} is on {found} upper levels, the seed says {expected}")]
    Levels {
        /// Row.
        row: Row,
        /// By the seed.
        expected: usize,
        /// In the arrays.
        found: usize,
    },
}

/// A graph that is searched where its arrays lie. Copying it copies five words.
#[derive(Clone, Copy, Debug)]
pub struct FrozenGraph<'a> {
    m: usize,
    entry: Option<(Row, usize)>,
    base: &'a [Row],
    upper_start: &'a [u32],
    upper: &'a [Row],
}

impl<'a> FrozenGraph<'a> {
    /// A graph over arrays of the shapes of [`GraphParts`].
    ///
    /// # Errors
    /// [`BadGraph::Length`] and [`BadGraph::Entry`]. Links are not looked at here (that would read
    /// everything): one that leads nowhere ends at a row without links.
    ///
    /// Cost: constant.
    pub fn new(
        m: usize,
        entry: Option<(Row, usize)>,
        base: &'a [Row],
        upper_start: &'a [u32],
        upper: &'a [Row],
    ) -> Result<Self, BadGraph> {
        let rows = upper_start.len().saturating_sub(1);
        check_len("upper_start", rows + 1, upper_start.len())?;
        check_len("level 0", rows * 2 * m, base.len())?;
        let lists = upper_start.last().map_or(0, |&lists| lists as usize);
        check_len("upper levels", lists * m, upper.len())?;
        let graph = Self {
            m,
            entry,
            base,
            upper_start,
            upper,
        };
        match entry {
            Some((row, level)) if graph.level_of(row) != Some(level) => {
                Err(BadGraph::Entry { row, level })
            }
            _ => Ok(graph),
        }
    }

    /// Rows covered.
    #[must_use]
    pub fn rows_len(&self) -> Row {
        self.upper_start.len().saturating_sub(1) as Row
    }

    /// Highest level of a row; none past the rows.
    #[must_use]
    pub fn level_of(&self, row: Row) -> Option<usize> {
        let next = *self.upper_start.get(row as usize + 1)?;
        Some(next.checked_sub(*self.upper_start.get(row as usize)?)? as usize)
    }

    /// Where walks begin.
    #[must_use]
    pub fn entry(&self) -> Option<(Row, usize)> {
        self.entry
    }

    /// The rows that `row` links to on `level`.
    pub fn links(&self, level: usize, row: Row) -> impl Iterator<Item = Row> + '_ {
        LinkRead::rows(self, level, row)
    }

    /// Checks that every slot is free or names another row of the graph. Reads everything.
    ///
    /// # Errors
    /// [`BadGraph::Link`] with the first that does not.
    pub fn check_links(&self) -> Result<(), BadGraph> {
        let rows = self.rows_len();
        for row in 0..rows {
            for level in 0..=self.level_of(row).unwrap_or(0) {
                let slots = self.slots(level, row).iter();
                let mut linked = slots.copied().filter(|&linked| linked != EMPTY);
                if let Some(linked) = linked.find(|&l| l >= rows || l == row) {
                    return Err(BadGraph::Link { row, linked, rows });
                }
            }
        }
        Ok(())
    }

    /// The slots of `row` on `level`; none where it is not on that level.
    #[inline]
    fn slots(&self, level: usize, row: Row) -> &'a [Row] {
        let slots = if level == 0 {
            let start = row as usize * 2 * self.m;
            self.base.get(start..start + 2 * self.m)
        } else {
            let list = self.upper_start.get(row as usize).copied().unwrap_or(0);
            let start = (list as usize + level - 1) * self.m;
            let is_there = self.level_of(row).is_some_and(|top| level <= top);
            self.upper.get(start..start + self.m).filter(|_| is_there)
        };
        slots.unwrap_or(&[])
    }
}

impl Walk for FrozenGraph<'_> {
    fn search<S: Scorer>(
        &self,
        scorer: &S,
        ef: usize,
        accept: &impl Fn(Row) -> bool,
        scratch: &mut Scratch,
    ) -> Vec<Scored> {
        search_links(self, self.entry, scorer, ef, accept, scratch)
    }

    fn search_filtered<S: Scorer>(
        &self,
        scorer: &S,
        ef: usize,
        matches: &impl Fn(Row) -> bool,
        accept: &impl Fn(Row) -> bool,
        scratch: &mut Scratch,
    ) -> Vec<Scored> {
        let links_max = 2 * self.m;
        search_filtered_links(
            self, self.entry, links_max, scorer, ef, matches, accept, scratch,
        )
    }
}

impl LinkRead for FrozenGraph<'_> {
    #[inline]
    fn rows(&self, level: usize, row: Row) -> impl Iterator<Item = Row> + '_ {
        let rows = self.rows_len();
        // A damaged link ends the list: no row past the end is ever scored.
        let slots = self.slots(level, row).iter().copied();
        slots.take_while(move |&linked| linked < rows)
    }

    #[inline]
    fn prefetch(&self, level: usize, row: Row) {
        prefetch(self.slots(level, row));
    }
}

impl Hnsw {
    /// The links of the rows covered so far. Waits for the batch that is being inserted; searches
    /// go on.
    ///
    /// Cost: a copy of about `8 * m + 24` bytes a row.
    #[must_use]
    pub fn freeze(&self) -> GraphParts {
        // No batch is written while its lock is held; a builder that panicked wrote links that
        // hold at every moment, so its poison is no hindrance.
        let _between_batches = self.builder.lock().unwrap_or_else(|held| held.into_inner());
        let (m, rows) = (self.params.m, self.indexed_len());
        let mut parts = GraphParts {
            m,
            rows,
            entry: None,
            base: Vec::with_capacity(rows as usize * 2 * m),
            upper_start: Vec::with_capacity(rows as usize + 1),
            upper: Vec::new(),
            shapes: Vec::with_capacity(rows as usize),
        };
        let mut lists = 0;
        for row in 0..rows {
            // A cancelled batch may have left links to rows that are not covered yet.
            let known = |linked: &Row| *linked < rows;
            let shape = self.links.shape(row);
            let tree = self
                .links
                .rows(0, row)
                .take(shape.tree)
                .filter(known)
                .count();
            let diverse = self.links.rows(0, row).skip(shape.tree).take(shape.diverse);
            let diverse = diverse.filter(known).count();
            parts.shapes.push(Shape { tree, diverse }.pack());
            push_list(
                &mut parts.base,
                self.links.rows(0, row).filter(known),
                2 * m,
            );
            parts.upper_start.push(lists);
            for level in 1..=self.links.level_of(row) {
                push_list(
                    &mut parts.upper,
                    self.links.rows(level, row).filter(known),
                    m,
                );
                lists += 1;
            }
        }
        parts.upper_start.push(lists);
        // A cancelled batch may have moved the entry point behind the covered rows.
        let is_linked = |&row: &Row| self.links.rows(0, row).next().is_some();
        parts.entry = self.entry().filter(|&(row, _)| row < rows).or_else(|| {
            let levels = (0..rows)
                .filter(is_linked)
                .map(|row| (row, self.level_of(row)));
            levels.reduce(|best, next| if next.1 > best.1 { next } else { best })
        });
        parts
    }

    /// A graph that goes on from `parts`, of which the first `keep` rows count: links to later
    /// ones are dropped. Every row keeps its parent, so all of them stay reachable.
    ///
    /// # Errors
    /// [`BadGraph`] where the arrays do not make a graph of these parameters.
    pub fn restore(
        params: Params,
        rows_max: Row,
        parts: &GraphParts,
        keep: Row,
    ) -> Result<Self, BadGraph> {
        let graph = Self::new(params, rows_max);
        check_len("m", graph.params.m, parts.m)?;
        let frozen = FrozenGraph::new(
            parts.m,
            parts.entry,
            &parts.base,
            &parts.upper_start,
            &parts.upper,
        )?;
        check_len("rows", frozen.rows_len() as usize, parts.rows as usize)?;
        check_len("shapes", parts.rows as usize, parts.shapes.len())?;
        frozen.check_links()?;
        let keep = keep.min(parts.rows).min(rows_max);
        graph.links.reserve(0..keep);
        let mut linked_rows = 0;
        let mut entry: Option<(Row, usize)> = None;
        for row in 0..keep {
            let expected = graph.links.level_of(row);
            let found = frozen.level_of(row).unwrap_or(0);
            if expected != found {
                return Err(BadGraph::Levels {
                    row,
                    expected,
                    found,
                });
            }
            let is_entry = parts.entry.is_some_and(|(entry, _)| entry == row);
            if !is_entry && frozen.links(0, row).next().is_none() {
                continue;
            }
            linked_rows += 1;
            if entry.is_none_or(|(_, level)| found > level) {
                entry = Some((row, found));
            }
            restore_lists(&graph.links, &frozen, row, parts.shapes[row as usize], keep);
        }
        if let Some((row, level)) = entry {
            graph
                .entry
                .store((level as u64) << 32 | u64::from(row), Ordering::Release);
        }
        graph.linked_rows.store(linked_rows, Ordering::Release);
        graph.indexed_len.store(keep, Ordering::Release);
        Ok(graph)
    }
}

/// Writes the lists of one row, without the links to rows from `keep` on.
fn restore_lists(links: &Links, frozen: &FrozenGraph<'_>, row: Row, shape: u32, keep: Row) {
    let before = Shape::unpack(shape);
    let mut shape = Shape::default();
    let mut list = Vec::new();
    for (place, linked) in frozen.links(0, row).enumerate() {
        if linked >= keep {
            continue;
        }
        list.push(linked);
        if place < before.tree {
            shape.tree += 1;
        } else if place < before.tree + before.diverse {
            shape.diverse += 1;
        }
    }
    links.write(0, row, shape, &list);
    for level in 1..=links.level_of(row) {
        let list: Vec<Row> = frozen.links(level, row).filter(|&l| l < keep).collect();
        links.write(level, row, Shape::default(), &list);
    }
}

fn push_list(slots: &mut Vec<Row>, list: impl Iterator<Item = Row>, width: usize) {
    let end = slots.len() + width;
    slots.extend(list.take(width));
    slots.resize(end, EMPTY);
}

fn check_len(array: &'static str, expected: usize, found: usize) -> Result<(), BadGraph> {
    if expected == found {
        return Ok(());
    }
    Err(BadGraph::Length {
        array,
        expected,
        found,
    })
}
