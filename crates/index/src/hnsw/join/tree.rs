//! The tree of links that keeps level 0 connected while a graph is put together.
//!
//! In a graph that grows, parents stand before their children; in one put together from others no
//! order of rows tells them apart, and none is needed: tree links lead both ways, no row has more
//! than `m + 1`, and together they reach every row. So
//! 1. what an input says of its tree links is *checked*: a link that does not lead back or closes a
//!    circle becomes a plain one;
//! 2. where a dead row is gone the parts are tied together again, by the nearest neighbour that lies
//!    in another part and has a place free;
//! 3. rows inserted later take the nearest neighbour that is in the tree already.

use std::collections::HashMap;

use super::super::levels::mix;
use super::super::links::{Links, Shape};
use super::super::select::Standing;
use crate::Row;

/// Degree of a row that is not in the tree.
const OUTSIDE: u16 = u16::MAX;

/// Parts of the tree, and the number of each row's tree links.
#[derive(Debug)]
pub(super) struct Tree {
    /// Union-find: the way to the row that stands for the part.
    above: Vec<Row>,
    degree: Vec<u16>,
    /// Most tree links of a row: `m` children and a parent.
    degree_max: u16,
}

impl Tree {
    pub(super) fn new(rows: Row, m: usize) -> Self {
        Self {
            above: (0..rows).collect(),
            degree: vec![OUTSIDE; rows as usize],
            degree_max: u16::try_from(m + 1).unwrap_or(OUTSIDE - 1),
        }
    }

    /// The row that stands for the part of `row`.
    pub(super) fn part(&mut self, mut row: Row) -> Row {
        while self.above[row as usize] != row {
            let higher = self.above[self.above[row as usize] as usize];
            self.above[row as usize] = higher;
            row = higher;
        }
        row
    }

    pub(super) fn holds(&self, row: Row) -> bool {
        self.degree[row as usize] != OUTSIDE
    }

    pub(super) fn is_free(&self, row: Row) -> bool {
        self.degree[row as usize] < self.degree_max
    }

    /// Takes note that `child` hangs on `parent`; the caller writes the links.
    pub(super) fn adopt(&mut self, parent: Row, child: Row) {
        self.degree[parent as usize] += 1;
        self.degree[child as usize] = 1;
        self.above[child as usize] = self.part(parent);
    }

    /// Step 1 for one row, whose list is written; rows are to come in ascending order.
    pub(super) fn check(&mut self, links: &Links, row: Row) {
        self.degree[row as usize] = 0;
        for linked in tree_links(links, row) {
            let leads_back = tree_links(links, linked).contains(&row);
            // A link that leads back was weighed when the smaller of the two was checked.
            if leads_back && (linked < row || self.unite(row, linked)) {
                self.degree[row as usize] += 1;
                continue;
            }
            demote(links, row, linked);
            if leads_back {
                demote(links, linked, row);
            }
        }
    }

    fn unite(&mut self, a: Row, b: Row) -> bool {
        let (a, b) = (self.part(a), self.part(b));
        // Towards the smaller row: short ways, the same on every run.
        self.above[a.max(b) as usize] = a.min(b);
        a != b
    }

    /// Step 2 for a row: a tree link to its first neighbour in another part, if both have a place free.
    pub(super) fn tie(&mut self, links: &Links, row: Row) {
        if !self.holds(row) || !self.is_free(row) {
            return;
        }
        let part = self.part(row);
        let near: Vec<Row> = links.rows(0, row).collect();
        let elsewhere = near
            .into_iter()
            .find(|&linked| self.is_free(linked) && self.part(linked) != part);
        if let Some(target) = elsewhere {
            self.link(links, row, target);
        }
    }

    /// Ties the part of `row` to that of `main`, unless they are one: by a neighbour of `row` in it if
    /// there is one, and by any ends that are free.
    pub(super) fn tie_to(&mut self, links: &Links, row: Row, main: Row) {
        if !self.holds(row) {
            return;
        }
        let part = self.part(main);
        if self.part(row) == part {
            return;
        }
        let near: Vec<Row> = links.rows(0, row).collect();
        let target = near.into_iter().find(|&linked| self.part(linked) == part);
        let end = |start| {
            let none = HashMap::new();
            free_from(links, start, row, &none, |row| self.is_free(row))
        };
        let (from, to) = (end(row), end(target.unwrap_or(main)));
        self.link(links, from, to);
    }

    fn link(&mut self, links: &Links, a: Row, b: Row) {
        for (from, to) in [(a, b), (b, a)] {
            promote(links, from, to);
            self.degree[from as usize] += 1;
        }
        self.unite(a, b);
    }
}

/// A row of the tree with a place free, at or beside `start`: a full row is left by a way that `by`
/// picks, so that equal rows spread. `unwritten` holds tree links that are in no list yet.
pub(in super::super) fn free_from(
    links: &Links,
    start: Row,
    by: Row,
    unwritten: &HashMap<Row, Vec<Row>>,
    is_free: impl Fn(Row) -> bool,
) -> Row {
    let (mut before, mut row) = (Row::MAX, start);
    // Never back the way it came: in a tree that ends at a leaf, which is free.
    while !is_free(row) {
        let more = unwritten.get(&row).into_iter().flatten().copied();
        let ways: Vec<Row> = (tree_links(links, row).into_iter().chain(more))
            .filter(|&way| way != before)
            .collect();
        let pick = mix(u64::from(row) ^ (u64::from(by) << 32)) % ways.len().max(1) as u64;
        let Some(&next) = ways.get(pick as usize) else {
            return row;
        };
        (before, row) = (row, next);
    }
    row
}

fn tree_links(links: &Links, row: Row) -> Vec<Row> {
    links.rows(0, row).take(links.shape(row).tree).collect()
}

/// The level-0 list of `row`, with what is known of each link.
pub(super) fn list_of(links: &Links, row: Row, list: &mut Vec<(Row, Standing)>) {
    let shape = links.shape(row);
    let linked = links.rows(0, row).enumerate();
    list.extend(linked.map(|(i, linked)| (linked, shape.standing(i))));
}

/// Drops the links of `row` that do not lead to rows that `keep` names: only damage has such.
pub(super) fn drop_links(links: &Links, row: Row, keep: impl Fn(Row) -> bool) {
    if links.rows(0, row).any(|linked| !keep(linked)) {
        rewrite(links, row, |list| list.retain(|&(linked, _)| keep(linked)));
    }
}

/// Makes a tree link of `row` a plain one.
fn demote(links: &Links, row: Row, linked: Row) {
    rewrite(links, row, |list| {
        list.retain(|&(other, _)| other != linked);
        list.push((linked, Standing::Open));
    });
}

/// Gives `row` a tree link to `linked`; a full list loses the last of the others for it.
fn promote(links: &Links, row: Row, linked: Row) {
    rewrite(links, row, |list| {
        list.retain(|&(other, _)| other != linked);
        if list.len() == links.slots(0, row).len() {
            list.pop();
        }
        list.push((linked, Standing::Tree));
    });
}

fn rewrite(links: &Links, row: Row, change: impl FnOnce(&mut Vec<(Row, Standing)>)) {
    let mut list = Vec::new();
    list_of(links, row, &mut list);
    change(&mut list);
    list.sort_by_key(|&(_, standing)| standing);
    let rows: Vec<Row> = list.iter().map(|&(linked, _)| linked).collect();
    links.write(0, row, Shape::of(&list), &rows);
}
