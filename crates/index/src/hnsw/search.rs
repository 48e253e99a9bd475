//! Walks through the graph (Algorithms 2 and 5 of the paper).
//!
//! 1. From the entry point, on each level above the target's, step to the best neighbour until
//!    none is better.
//! 2. On the target level keep the best `ef` accepted rows; follow the links of the best one whose
//!    links were not followed; score its neighbours that are new; those that beat the worst of the
//!    best join them, or, where they are not accepted, wait in a heap for their turn.
//! 3. Stop when the best row to follow is worse than the worst of a full `ef`, or nothing is left.
//!
//! Nothing here takes a lock or waits: a walk may run while a batch is written and sees a mix of
//! old and new links, each of which names a row whose code and links exist.

use super::Hnsw;
use super::filtered::search_filtered_links;
use super::key::{key, row_of, scored};
use super::scratch::{Scratch, SearchStats};
use super::space::Scorer;
use crate::{Row, Scored};

/// Rows whose codes are requested ahead of the one that is being scored. At 384 bytes a code
/// (6 lines) three rows about fill a core's miss buffers; more evict one another.
pub(super) const PREFETCH_AHEAD: usize = 4;

/// A walk asks whether to stop once in this many expansions: tens of microseconds.
const EXPANSIONS_PER_ASK: u64 = 8;

/// The walk was told to stop.
#[derive(Debug)]
pub(super) struct Stopped;

/// A graph that is searched: one that grows, or a frozen one.
pub trait Walk {
    /// The best rows for `scorer` that `accept` lets through: best first, ties by row, at most
    /// `ef`. The walk passes through rows that are not accepted.
    ///
    /// Rows at or past [`Hnsw::indexed_len`] can appear while a batch is written, so a caller that
    /// scans the tail loads that length first and accepts only rows below it.
    /// With fewer than `ef` accepted rows in the graph, all of them are returned.
    ///
    /// Blocks: never. Cost: about `ef * m` scores; if few rows are accepted, up to all of them
    /// ([`search_filtered`](Self::search_filtered) is for that case).
    fn search<S: Scorer>(
        &self,
        scorer: &S,
        ef: usize,
        accept: &impl Fn(Row) -> bool,
        scratch: &mut Scratch,
    ) -> Vec<Scored>;

    /// Like [`search`](Self::search) among the rows that `matches`: for filters that pass roughly
    /// 2 to 60 %. Below that a scan of the matching rows is faster, above it the plain walk.
    ///
    /// `matches` is asked often, up to `4 * m^2` times an expansion, and should be a bit test;
    /// `accept` is asked of matching rows alone. With fewer than `ef` such rows in the graph all
    /// of them are returned.
    ///
    /// Blocks: never. Cost: about `ef * m` scores; up to all rows if fewer than `ef` match.
    fn search_filtered<S: Scorer>(
        &self,
        scorer: &S,
        ef: usize,
        matches: &impl Fn(Row) -> bool,
        accept: &impl Fn(Row) -> bool,
        scratch: &mut Scratch,
    ) -> Vec<Scored>;
}

impl Walk for Hnsw {
    fn search<S: Scorer>(
        &self,
        scorer: &S,
        ef: usize,
        accept: &impl Fn(Row) -> bool,
        scratch: &mut Scratch,
    ) -> Vec<Scored> {
        search_links(&self.links, self.entry(), scorer, ef, accept, scratch)
    }

    fn search_filtered<S: Scorer>(
        &self,
        scorer: &S,
        ef: usize,
        matches: &impl Fn(Row) -> bool,
        accept: &impl Fn(Row) -> bool,
        scratch: &mut Scratch,
    ) -> Vec<Scored> {
        let (links, entry) = (&self.links, self.entry());
        let links_max = self.params.links_max(0);
        search_filtered_links(
            links, entry, links_max, scorer, ef, matches, accept, scratch,
        )
    }
}

/// Links that a walk follows: those of a growing graph, or of a frozen one.
pub(super) trait LinkRead {
    /// The rows that `row` links to on `level`; none where it is not on that level.
    fn rows(&self, level: usize, row: Row) -> impl Iterator<Item = Row> + '_;

    /// Hint that the list of `row` on `level` is read soon.
    fn prefetch(&self, level: usize, row: Row);
}

/// [`Walk::search`] over any links.
pub(super) fn search_links<S: Scorer>(
    links: &impl LinkRead,
    entry: Option<(Row, usize)>,
    scorer: &S,
    ef: usize,
    accept: &impl Fn(Row) -> bool,
    scratch: &mut Scratch,
) -> Vec<Scored> {
    scratch.stats = SearchStats::default();
    scratch.begin(ef);
    let Some((entry, top)) = entry else {
        return Vec::new();
    };
    let entry = descend(links, scorer, entry, top, 0, &mut scratch.stats);
    if ef > 0 {
        // The closure never asks to stop, so there is no other outcome.
        let _done = walk(links, 0, scorer, &[entry], accept, &|| false, scratch);
    }
    scratch.best.keys().iter().map(|&key| scored(key)).collect()
}

/// Step 1: the best row that greedy steps reach on the levels `top` down to `floor + 1`.
pub(super) fn descend<S: Scorer>(
    links: &impl LinkRead,
    scorer: &S,
    entry: Row,
    top: usize,
    floor: usize,
    stats: &mut SearchStats,
) -> Row {
    if top <= floor {
        return entry;
    }
    stats.distances += 1;
    let mut best = key(scorer.score(entry), entry);
    for level in (floor + 1..=top).rev() {
        loop {
            let from = row_of(best);
            stats.hops += 1;
            for row in links.rows(level, from) {
                scorer.prefetch(row);
            }
            for row in links.rows(level, from) {
                stats.distances += 1;
                best = best.max(key(scorer.score(row), row));
            }
            if row_of(best) == from {
                break;
            }
        }
    }
    row_of(best)
}

/// Steps 2 and 3 on one level from `entries`, into `scratch.best`; `scratch` must have begun.
pub(super) fn walk<S: Scorer>(
    links: &impl LinkRead,
    level: usize,
    scorer: &S,
    entries: &[Row],
    accept: &impl Fn(Row) -> bool,
    stop: &impl Fn() -> bool,
    scratch: &mut Scratch,
) -> Result<(), Stopped> {
    let Scratch {
        visited,
        frontier,
        best,
        fresh,
        stats,
        ..
    } = scratch;
    fresh.clear();
    fresh.extend(entries.iter().filter(|&&entry| visited.insert(entry)));
    loop {
        stats.distances += fresh.len() as u64;
        for (i, &row) in fresh.iter().enumerate() {
            if let Some(&ahead) = fresh.get(i + PREFETCH_AHEAD) {
                scorer.prefetch(ahead);
            }
            let key = key(scorer.score(row), row);
            if key > best.bar() {
                if !accept(row) {
                    frontier.push(key);
                } else if best.insert(key) {
                    links.prefetch(level, row);
                }
            }
        }
        // An accepted row that fell out of the best would be below the bar here.
        let (accepted, refused) = (best.peek_open(), frontier.peek().copied());
        let Some(next) = accepted.max(refused).filter(|&next| next >= best.bar()) else {
            return Ok(());
        };
        if accepted == Some(next) {
            best.follow_open();
        } else {
            frontier.pop();
        }
        if stats.hops.is_multiple_of(EXPANSIONS_PER_ASK) && stop() {
            return Err(Stopped);
        }
        stats.hops += 1;
        visited.insert_all(links.rows(level, row_of(next)), fresh);
        for &row in fresh.iter().take(PREFETCH_AHEAD) {
            scorer.prefetch(row);
        }
        // The next row to follow, unless one of the fresh ones is better.
        if let Some(then) = best.peek_open() {
            links.prefetch(level, row_of(then));
        }
    }
}
