//! The filtered walk: two hops over rows that fail the filter (after ACORN-1, arXiv 2403.04871).
//!
//! Only matching rows are scored and lead the walk. Where few of a row's neighbours match, the
//! neighbours of the others are looked at too, until as many matching rows were met as a list
//! holds: the walk then sees a graph of about the usual degree, whatever the filter passes. The
//! second hop costs links and filter bits but no scores.
//! A filter can cut the matching rows into islands, or leave none near the query, so:
//! 1. where the walk arrives at a failing row (it starts at one if none near the query matches),
//!    and around it there is (almost) no new matching row, the failing neighbours are scored as
//!    well and lead the walk as **bridges**: it goes on as a plain walk would;
//! 2. all other failing neighbours are deferred, and become bridges when the frontier runs empty
//!    before `ef` rows are found.
//!
//! By the second rule the walk reaches every row that a plain one reaches, if it has to.

use super::key::{Key, key, row_of, scored};
use super::scratch::{Scratch, SearchStats};
use super::search::{LinkRead, PREFETCH_AHEAD, descend};
use super::space::Scorer;
use crate::{Row, Scored};

/// A failing row around which there are fewer new matching rows than this leads to more bridges.
/// (Were matching rows to do so too, a walk would end by scoring the failing rows around all the
/// matching ones it has exhausted: at a 2 % filter that was most of a graph of 10,000 rows.)
const BRIDGE_BELOW: usize = 2;

/// [`Walk::search_filtered`](super::Walk::search_filtered) over any links; a level-0 list has at most `links_max` of them.
pub(super) fn search_filtered_links<S: Scorer>(
    links: &impl LinkRead,
    entry: Option<(Row, usize)>,
    links_max: usize,
    scorer: &S,
    ef: usize,
    matches: &impl Fn(Row) -> bool,
    accept: &impl Fn(Row) -> bool,
    scratch: &mut Scratch,
) -> Vec<Scored> {
    scratch.stats = SearchStats::default();
    scratch.begin(ef);
    scratch.bridged.clear();
    scratch.deferred.clear();
    let Some((entry, top)) = entry else {
        return Vec::new();
    };
    if ef > 0 {
        let entry = descend(links, scorer, entry, top, 0, &mut scratch.stats);
        Filtered {
            links,
            links_max,
            scorer,
            matches,
            accept,
            scratch,
        }
        .walk(entry);
    }
    scratch.best.keys().iter().map(|&key| scored(key)).collect()
}

struct Filtered<'a, L, S, M, A> {
    links: &'a L,
    links_max: usize,
    scorer: &'a S,
    matches: &'a M,
    accept: &'a A,
    scratch: &'a mut Scratch,
}

impl<L: LinkRead, S: Scorer, M: Fn(Row) -> bool, A: Fn(Row) -> bool> Filtered<'_, L, S, M, A> {
    fn walk(&mut self, entry: Row) {
        if (self.matches)(entry) {
            self.scratch.visited.insert(entry);
            self.scratch.fresh.clear();
            self.scratch.fresh.push(entry);
            self.score_fresh();
        } else {
            self.bridge(entry);
        }
        while let Some(next) = self.next() {
            self.scratch.stats.hops += 1;
            let failing_from = self.scratch.deferred.len();
            let row = row_of(next);
            self.gather(row);
            let leads_on = self.scratch.fresh.len() < BRIDGE_BELOW && !(self.matches)(row);
            self.score_fresh();
            if leads_on {
                self.bridge_from(failing_from);
            }
        }
    }

    /// The row to expand next, if the walk is not over.
    fn next(&mut self) -> Option<Key> {
        if self.scratch.frontier.is_empty() && !self.scratch.best.is_full() {
            self.bridge_from(0);
        }
        // While there is room the bar is 0, and any key passes.
        self.scratch
            .frontier
            .pop()
            .filter(|&next| next >= self.scratch.best.bar())
    }

    /// Collects the new matching rows around `row` into `fresh`, its failing neighbours at the
    /// end of `deferred`.
    fn gather(&mut self, row: Row) {
        let Scratch {
            visited,
            bridged,
            fresh,
            deferred,
            ..
        } = &mut *self.scratch;
        let links = self.links;
        let failing_from = deferred.len();
        let mut matching = 0;
        fresh.clear();
        for row in links.rows(0, row) {
            if (self.matches)(row) {
                matching += 1;
                if visited.insert(row) {
                    fresh.push(row);
                }
            } else if !bridged.contains(row) {
                deferred.push(row);
            }
        }
        let enough = self.links_max;
        for &failing in &deferred[failing_from..] {
            if matching >= enough {
                break;
            }
            // A failing row counts as visited once its neighbours were looked through.
            if visited.insert(failing) {
                let before = fresh.len();
                let second = links.rows(0, failing);
                fresh.extend(second.filter(|&row| (self.matches)(row) && visited.insert(row)));
                matching += fresh.len() - before;
            }
        }
    }

    fn score_fresh(&mut self) {
        let Scratch {
            frontier,
            best,
            fresh,
            stats,
            ..
        } = &mut *self.scratch;
        stats.distances += fresh.len() as u64;
        for &ahead in fresh.iter().take(PREFETCH_AHEAD) {
            self.scorer.prefetch(ahead);
        }
        for (i, &row) in fresh.iter().enumerate() {
            if let Some(&ahead) = fresh.get(i + PREFETCH_AHEAD) {
                self.scorer.prefetch(ahead);
            }
            let key = key(self.scorer.score(row), row);
            if key > best.bar() {
                frontier.push(key);
                if (self.accept)(row) {
                    best.insert(key);
                }
            }
        }
    }

    /// Makes bridges of the deferred rows from `start` on.
    fn bridge_from(&mut self, start: usize) {
        for i in start..self.scratch.deferred.len() {
            self.bridge(self.scratch.deferred[i]);
        }
        self.scratch.deferred.truncate(start);
    }

    fn bridge(&mut self, row: Row) {
        let Scratch {
            bridged,
            frontier,
            best,
            stats,
            ..
        } = &mut *self.scratch;
        if bridged.insert(row) {
            stats.distances += 1;
            let key = key(self.scorer.score(row), row);
            if key > best.bar() {
                frontier.push(key);
            }
        }
    }
}
