//! A part of an input on its way into the output: who chose whom, and the links back.
//!
//! 1. The rows of the part and their choices are collected, chunk by chunk ([`Part::collect`]).
//! 2. Each gets a parent ([`Part::adopt`]).
//! 3. The choices are turned round: for each target those who chose it ([`Part::turn`]).
//! 4. Each target's list is worked out: what it had, or chose, and those who chose it; diverse ones
//!    of them if they are too many. So a list is pruned once for the whole part, however many rows
//!    of it are near.

use std::collections::HashMap;

use super::super::batch::{Edge, Groups, Lists, Plan};
use super::super::key::{Key, key, row_of, score_of};
use super::super::links::{EMPTY, Shape};
use super::super::select::{Standing, prune};
use super::super::space::Space;
use super::tree::{Tree, free_from, list_of};
use super::work::{Context, Worker};
use crate::Row;

/// Rows and their choices.
#[derive(Debug, Default)]
pub(super) struct Part {
    /// Output rows in the order of their insertion.
    order: Vec<Row>,
    /// Choices on level 0, side by side, and where those of each row begin; how many of each are
    /// diverse, the others come after them.
    choices: Vec<Key>,
    starts: Vec<u32>,
    diverse: Vec<u16>,
    parents: Vec<Row>,
    /// For each output row its number in `order`, or [`EMPTY`].
    number: Vec<Row>,
    /// For each output row where the keys of those who chose it begin in `incoming`.
    incoming_start: Vec<u32>,
    incoming: Vec<Key>,
    /// Output rows whose lists change.
    targets: Vec<Row>,
    /// Choices on the upper levels, and the lists that they change.
    upper: Plan,
    upper_groups: Option<Groups>,
}

impl Part {
    pub(super) fn new(rows: Row) -> Self {
        Self {
            number: vec![EMPTY; rows as usize],
            starts: vec![0],
            ..Self::default()
        }
    }

    pub(super) fn len(&self) -> usize {
        self.order.len()
    }

    pub(super) fn order(&self) -> &[Row] {
        &self.order
    }

    pub(super) fn targets(&self) -> &[Row] {
        &self.targets
    }

    pub(super) fn clear(&mut self) {
        for &row in &self.order {
            self.number[row as usize] = EMPTY;
        }
        self.order.clear();
        self.choices.clear();
        self.starts.truncate(1);
        self.diverse.clear();
        self.parents.clear();
        self.targets.clear();
        self.upper.clear();
        self.upper_groups = None;
    }

    /// Step 1: `rows` of the output, with their choices by number in `rows`.
    pub(super) fn collect(&mut self, rows: impl Iterator<Item = Row>, plan: &Plan) {
        let first = self.order.len();
        for row in rows {
            self.number[row as usize] = self.order.len() as Row;
            self.order.push(row);
        }
        for (at, list) in plan.iter() {
            let row = self.order[first + at.row as usize];
            if at.level == 0 {
                self.choices.extend_from_slice(list);
                self.starts.push(self.choices.len() as u32);
                self.diverse.push(at.note as u16);
            } else {
                self.upper.push(at.level, row, 0, list.iter().copied());
            }
        }
        debug_assert_eq!(
            self.starts.len(),
            self.order.len() + 1,
            "each row has one list on level 0"
        );
    }

    fn choice(&self, number: usize) -> &[Key] {
        &self.choices[self.starts[number] as usize..self.starts[number + 1] as usize]
    }

    /// Step 2: the nearest neighbour that is in the tree and has a place free; else a row with a free
    /// place beside the nearest.
    pub(super) fn adopt<S: Space>(&mut self, context: &Context<'_, S>, tree: &mut Tree) {
        let mut adopted: HashMap<Row, Vec<Row>> = HashMap::new();
        for number in 0..self.order.len() {
            let row = self.order[number];
            let known = || {
                let rows = self.choice(number).iter().map(|&key| row_of(key));
                rows.filter(|&other| tree.holds(other))
            };
            let parent = match known().find(|&other| tree.is_free(other)) {
                Some(parent) => parent,
                None => {
                    let entry = context.entry.map_or(row, |(entry, _)| entry);
                    let start = known().next().unwrap_or(entry);
                    let is_free = |row| tree.is_free(row);
                    free_from(context.links, start, row, &adopted, is_free)
                }
            };
            tree.adopt(parent, row);
            self.parents.push(parent);
            adopted.entry(parent).or_default().push(row);
            adopted.entry(row).or_default().push(parent);
        }
    }

    /// Step 3.
    pub(super) fn turn<S: Space>(&mut self, context: &Context<'_, S>) {
        let rows = self.number.len();
        let mut starts = vec![0_u32; rows + 1];
        let edges = || {
            (0..self.order.len()).flat_map(|number| {
                let source = self.order[number];
                let parent = self.parents[number];
                let choice = self.choice(number).iter().map(|&key| (row_of(key), key));
                let is_chosen = self.choice(number).iter().any(|&key| row_of(key) == parent);
                let unchosen =
                    (!is_chosen).then(|| (parent, key(context.space.pair(source, parent), parent)));
                let turned = move |(target, to): (Row, Key)| (target, key(score_of(to), source));
                choice.chain(unchosen).map(turned)
            })
        };
        for (target, _) in edges() {
            starts[target as usize + 1] += 1;
        }
        for row in 0..rows {
            starts[row + 1] += starts[row];
        }
        let mut next = starts.clone();
        let mut incoming = vec![0; starts[rows] as usize];
        for (target, source) in edges() {
            let at = &mut next[target as usize];
            incoming[*at as usize] = source;
            *at += 1;
        }
        self.targets = (0..rows as Row)
            .filter(|&row| {
                let row = row as usize;
                starts[row] != starts[row + 1] || self.number[row] != EMPTY
            })
            .collect();
        (self.incoming, self.incoming_start) = (incoming, starts);
        self.turn_upper();
    }

    fn turn_upper(&mut self) {
        let upper = Lists::merge([std::mem::take(&mut self.upper)]);
        let mut edges = Vec::new();
        for (at, list) in upper.iter() {
            edges.push(Edge::own_list(at.level, at.row));
            edges.extend(list.iter().map(|&key| Edge {
                level: at.level,
                target: row_of(key),
                source: at.row,
                score: score_of(key),
                is_child: false,
            }));
        }
        self.upper = upper;
        self.upper_groups = (!edges.is_empty()).then(|| Groups::new(edges));
    }

    pub(super) fn upper_len(&self) -> usize {
        self.upper_groups.as_ref().map_or(0, Groups::len)
    }

    /// Step 4 for one target on level 0, into `worker.writes`.
    pub(super) fn relink<S: Space>(
        &self,
        context: &Context<'_, S>,
        target: Row,
        worker: &mut Worker,
    ) {
        let Worker {
            current,
            candidates,
            kept,
            writes,
            ..
        } = worker;
        current.clear();
        match self.number[target as usize] {
            EMPTY => list_of(context.links, target, current),
            number => {
                let parent = self.parents[number as usize];
                current.push((parent, Standing::Tree));
                let shape = Shape {
                    tree: 0,
                    diverse: usize::from(self.diverse[number as usize]),
                };
                let chosen = self.choice(number as usize).iter().enumerate();
                let chosen = chosen.map(|(i, &key)| (row_of(key), shape.standing(i)));
                current.extend(chosen.filter(|&(row, _)| row != parent));
            }
        }
        let (from, to) = (target as usize, target as usize + 1);
        let incoming =
            &self.incoming[self.incoming_start[from] as usize..self.incoming_start[to] as usize];
        for &key in incoming {
            let source = row_of(key);
            let number = self.number[source as usize];
            let known = current.iter().position(|&(row, _)| row == source);
            if self.parents[number as usize] == target {
                // A child that is a plain neighbour already becomes a tree link.
                if let Some(at) = known {
                    current.remove(at);
                }
                current.push((source, Standing::Tree));
            } else if known.is_none() {
                current.push((source, Standing::Open));
            }
        }
        let max = context.params.links_max(0);
        if current.len() > max {
            let known = |row| {
                let key = incoming.iter().find(|&&key| row_of(key) == row);
                key.map(|&key| score_of(key))
            };
            prune(
                context.space,
                target,
                max,
                known,
                current,
                (candidates, kept),
            );
        }
        current.sort_by_key(|&(_, standing)| standing);
        let rows = current.iter().map(|&(row, _)| row);
        writes.push(0, target, Shape::of(current), rows);
    }

    /// Step 4 for one list of an upper level.
    pub(super) fn relink_upper<S: Space>(
        &self,
        context: &Context<'_, S>,
        group: usize,
        worker: &mut Worker,
    ) {
        let Some(edges) = self.upper_groups.as_ref().map(|groups| groups.get(group)) else {
            return;
        };
        let (level, target) = (edges[0].level, edges[0].target);
        let Worker {
            current,
            candidates,
            kept,
            writes,
            ..
        } = worker;
        current.clear();
        match self.upper.get(level, target) {
            Some((_, list)) => current.extend(list.iter().map(|&k| (row_of(k), Standing::Open))),
            None => {
                current.extend((context.links.rows(level, target)).map(|r| (r, Standing::Open)))
            }
        }
        for edge in edges.iter().filter(|edge| edge.source != EMPTY) {
            if current.iter().all(|&(row, _)| row != edge.source) {
                current.push((edge.source, Standing::Open));
            }
        }
        let max = context.params.links_max(level);
        if current.len() > max {
            let known = |row| edges.iter().find(|e| e.source == row).map(|e| e.score);
            prune(
                context.space,
                target,
                max,
                known,
                current,
                (candidates, kept),
            );
        }
        let rows = current.iter().map(|&(row, _)| row);
        writes.push(level, target, Shape::default(), rows);
    }
}
