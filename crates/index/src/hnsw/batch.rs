//! What a batch works out before it writes: lists of links, and the links back.

use super::key::Key;
use super::links::{EMPTY, Shape};
use crate::Row;

/// Lists of links side by side in one buffer, each with its row, its level and a note.
#[derive(Debug)]
pub(super) struct Lists<T, N> {
    items: Vec<T>,
    index: Vec<ListAt<N>>,
}

/// Where a list stands in the buffer.
#[derive(Clone, Copy, Debug)]
pub(super) struct ListAt<N> {
    pub(super) row: Row,
    pub(super) level: usize,
    pub(super) note: N,
    start: usize,
    len: usize,
}

/// Neighbours chosen for new rows, best first; the note is the key that a later candidate has to
/// beat, 0 where the search found fewer than `ef_construct`.
pub(super) type Plan = Lists<Key, Key>;

/// Lists as they are to be written.
pub(super) type Writes = Lists<Row, Shape>;

impl<T, N> Default for Lists<T, N> {
    fn default() -> Self {
        Self {
            items: Vec::new(),
            index: Vec::new(),
        }
    }
}

impl<T: Copy, N: Copy> Lists<T, N> {
    pub(super) fn clear(&mut self) {
        self.items.clear();
        self.index.clear();
    }

    pub(super) fn push(
        &mut self,
        level: usize,
        row: Row,
        note: N,
        list: impl IntoIterator<Item = T>,
    ) {
        let start = self.items.len();
        self.items.extend(list);
        self.index.push(ListAt {
            row,
            level,
            note,
            start,
            len: self.items.len() - start,
        });
    }

    /// The lists in the order of `push`, or of rows and levels once merged.
    pub(super) fn iter(&self) -> impl Iterator<Item = (ListAt<N>, &[T])> {
        self.index
            .iter()
            .map(|at| (*at, &self.items[at.start..at.start + at.len]))
    }

    /// One set of lists out of several, by row, then level: the same however they were spread.
    pub(super) fn merge(parts: impl IntoIterator<Item = Self>) -> Self {
        let mut all = Self::default();
        for part in parts {
            let shift = all.items.len();
            all.items.extend_from_slice(&part.items);
            all.index.extend(part.index.iter().map(|at| ListAt {
                start: at.start + shift,
                ..*at
            }));
        }
        all.index.sort_unstable_by_key(|at| (at.row, at.level));
        all
    }

    /// The list of `row` on `level`, in merged lists.
    pub(super) fn get(&self, level: usize, row: Row) -> Option<(N, &[T])> {
        let at = self
            .index
            .binary_search_by_key(&(row, level), |at| (at.row, at.level))
            .ok()?;
        let ListAt {
            note, start, len, ..
        } = self.index[at];
        Some((note, &self.items[start..start + len]))
    }
}

/// A link to be added to `target`'s list.
#[derive(Clone, Copy, Debug)]
pub(super) struct Edge {
    pub(super) level: usize,
    pub(super) target: Row,
    /// The row to link to; [`EMPTY`] asks only that a new row's own list be written.
    pub(super) source: Row,
    pub(super) score: f32,
    /// `target` is the parent of `source`.
    pub(super) is_child: bool,
}

impl Edge {
    pub(super) fn own_list(level: usize, row: Row) -> Self {
        Self {
            level,
            target: row,
            source: EMPTY,
            score: 0.0,
            is_child: false,
        }
    }
}

/// Edges grouped by the list that they change.
#[derive(Debug)]
pub(super) struct Groups {
    edges: Vec<Edge>,
    /// Ends of the groups in `edges`.
    ends: Vec<usize>,
}

impl Groups {
    pub(super) fn new(mut edges: Vec<Edge>) -> Self {
        edges.sort_unstable_by_key(|edge| (edge.level, edge.target, edge.source));
        let mut ends = Vec::new();
        for (i, pair) in edges.windows(2).enumerate() {
            if (pair[0].level, pair[0].target) != (pair[1].level, pair[1].target) {
                ends.push(i + 1);
            }
        }
        ends.push(edges.len());
        Self { edges, ends }
    }

    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(super) fn get(&self, i: usize) -> &[Edge] {
        let start = if i == 0 { 0 } else { self.ends[i - 1] };
        &self.edges[start..self.ends[i]]
    }
}
