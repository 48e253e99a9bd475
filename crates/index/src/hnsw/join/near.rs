//! The live neighbours of a row in its own graph: those it links to, and those that dead rows lead to.

use super::super::select::Standing;
use super::source::Input;
use crate::Row;

/// Dead rows looked into for one row: where much is dead, chains of dead rows are long.
const DEAD_MAX: usize = 64;

/// Live neighbours by their places in the output, reused from row to row.
#[derive(Debug, Default)]
pub(super) struct Near {
    /// Those that the row links to.
    pub(super) direct: Vec<(Row, Standing)>,
    /// Those that the dead rows it links to lead to, and are not in `direct`.
    pub(super) bridged: Vec<Row>,
    /// Links that led to dead rows.
    pub(super) lost: usize,
    /// One of these was a tree link.
    pub(super) lost_tree: bool,
    dead: Vec<Row>,
}

impl Near {
    /// Gathers the neighbours of `row` on `level`. Dead rows beyond the first ones are followed until
    /// `wanted` rows are found.
    pub(super) fn gather(&mut self, input: &Input<'_>, level: usize, row: Row, wanted: usize) {
        self.direct.clear();
        self.bridged.clear();
        self.dead.clear();
        self.lost_tree = false;
        input.links(level, row, |linked, standing| match input.place(linked) {
            Some(place) => self.direct.push((place, standing)),
            None => {
                self.dead.push(linked);
                self.lost_tree |= standing == Standing::Tree;
            }
        });
        self.lost = self.dead.len();
        if self.lost > 0 {
            self.bridge(input, level, row, wanted);
        }
    }

    fn bridge(&mut self, input: &Input<'_>, level: usize, row: Row, wanted: usize) {
        let mut next = 0;
        while let Some(&dead) = self.dead.get(next) {
            next += 1;
            let (found, is_first) = (self.bridged.len(), next <= self.lost);
            if !is_first && found >= wanted {
                break;
            }
            input.links(level, dead, |linked, _| match input.place(linked) {
                Some(place) if linked != row => self.bridged.push(place),
                Some(_) => {}
                None if self.dead.len() < DEAD_MAX && !self.dead.contains(&linked) => {
                    self.dead.push(linked);
                }
                None => {}
            });
        }
        self.bridged.sort_unstable();
        self.bridged.dedup();
        let direct = &self.direct;
        self.bridged
            .retain(|&place| direct.iter().all(|&(known, _)| known != place));
    }
}
