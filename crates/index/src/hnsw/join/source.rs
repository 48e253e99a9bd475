//! The graphs that are joined, and where their rows go.

use super::super::links::{EMPTY, Shape};
use super::super::select::Standing;
use super::super::{FrozenGraph, Hnsw};
use crate::Row;

/// A graph to be read row by row.
#[derive(Clone, Copy, Debug)]
pub enum Source<'a> {
    /// One in memory. Nothing may be inserted into it meanwhile; what is already inserted counts.
    Growing(&'a Hnsw),
    /// Arrays of the shapes of [`GraphParts`](super::super::GraphParts).
    Frozen {
        /// Links and levels.
        graph: FrozenGraph<'a>,
        /// `GraphParts::shapes`. What they say is checked; without them the join costs more.
        shapes: &'a [u32],
    },
}

/// One input of a [`Join`](super::Join).
#[derive(Clone, Copy, Debug)]
pub struct JoinInput<'a> {
    /// Its graph.
    pub source: Source<'a>,
    /// For each row of the input the row of the output that it becomes, [`NO_PLACE`] for one that is
    /// left out: a deleted row, or one without this vector. Rows that the graph does not hold and
    /// that have a place are inserted by searches.
    pub places: &'a [Row],
}

/// A row without a place in the output.
pub const NO_PLACE: Row = EMPTY;

/// An input, with what is asked of it often.
#[derive(Clone, Copy, Debug)]
pub(super) struct Input<'a> {
    source: Source<'a>,
    places: &'a [Row],
    /// Rows that the graph covered when the join began.
    rows: Row,
}

impl<'a> Input<'a> {
    pub(super) fn new(input: JoinInput<'a>) -> Self {
        let rows = match input.source {
            Source::Growing(graph) => graph.indexed_len(),
            Source::Frozen { graph, .. } => graph.rows_len(),
        };
        Self {
            source: input.source,
            places: input.places,
            rows,
        }
    }

    /// Rows that the graph covers.
    pub(super) fn covered(&self) -> Row {
        self.rows
    }

    /// Rows that the caller speaks of.
    pub(super) fn rows_len(&self) -> Row {
        self.places.len() as Row
    }

    /// Where `row` goes.
    #[inline]
    pub(super) fn place(&self, row: Row) -> Option<Row> {
        let place = self.places.get(row as usize).copied();
        place.filter(|&place| place != NO_PLACE)
    }

    /// Where `row` goes, if the graph holds it.
    pub(super) fn linked_place(&self, row: Row) -> Option<Row> {
        self.place(row).filter(|_| self.is_linked(row))
    }

    pub(super) fn entry(&self) -> Option<(Row, usize)> {
        let entry = match self.source {
            Source::Growing(graph) => graph.entry(),
            Source::Frozen { graph, .. } => graph.entry(),
        };
        entry.filter(|&(row, _)| row < self.rows)
    }

    pub(super) fn level_of(&self, row: Row) -> usize {
        match self.source {
            _ if row >= self.rows => 0,
            Source::Growing(graph) => graph.level_of(row),
            Source::Frozen { graph, .. } => graph.level_of(row).unwrap_or(0),
        }
    }

    /// Whether the graph holds `row`.
    pub(super) fn is_linked(&self, row: Row) -> bool {
        let has_links = || match self.source {
            Source::Growing(graph) => graph.links(0, row).next().is_some(),
            Source::Frozen { graph, .. } => graph.links(0, row).next().is_some(),
        };
        let is_entry = || self.entry().is_some_and(|(entry, _)| entry == row);
        row < self.rows && (has_links() || is_entry())
    }

    /// Calls `visit` with each link of `row` on `level` and what is known of it.
    #[inline]
    pub(super) fn links(&self, level: usize, row: Row, mut visit: impl FnMut(Row, Standing)) {
        let shape = if level == 0 {
            self.shape(row)
        } else {
            Shape::default()
        };
        // What a damaged file may hold is left out: links to the row itself, or to one that is not on
        // the level. On level 0, where it would be dear, the readers of the lists look.
        let is_sound = |linked| {
            let is_there = || self.level_of(linked) >= level && self.is_linked(linked);
            linked < self.rows && linked != row && (level == 0 || is_there())
        };
        let each = |(i, linked): (usize, Row)| {
            if is_sound(linked) {
                visit(linked, shape.standing(i));
            }
        };
        match self.source {
            Source::Growing(graph) => graph.links(level, row).enumerate().for_each(each),
            Source::Frozen { graph, .. } => graph.links(level, row).enumerate().for_each(each),
        }
    }

    fn shape(&self, row: Row) -> Shape {
        match self.source {
            Source::Growing(graph) => graph.links.shape(row),
            Source::Frozen { shapes, .. } => {
                Shape::unpack(shapes.get(row as usize).copied().unwrap_or(0))
            }
        }
    }
}
