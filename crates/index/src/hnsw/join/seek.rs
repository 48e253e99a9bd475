//! The neighbours of one row of a smaller input: its own, and those that a short search finds.
//!
//! 1. The row's live neighbours in its own graph are scored; they are the first of the best.
//! 2. A walk through the output starts where the nearest of them that were inserted before have
//!    landed, and has to beat what is known already, so it is short. A row without such neighbours
//!    (a root, or one of an upper level) comes down from the entry point.
//! 3. Diverse ones are chosen of both; the row's own are known to be diverse among one another. Where
//!    they are fewer than `m`, the best of the others fill the list up: a short walk knows fewer rows
//!    than a long one, so that chance would leave it fewer links.

use std::cmp::Reverse;

use super::super::key::{Key, key, row_of};
use super::super::links::EMPTY;
use super::super::scratch::SearchStats;
use super::super::search::{descend, walk};
use super::super::select::{Candidate, Standing, choose_diverse, not_kept};
use super::super::space::{Scorer, Space};
use super::source::Input;
use super::work::{Context, Worker};
use crate::Row;

/// Neighbours whose landings start a walk.
const SEEDS: usize = 4;

/// Breadth of a walk that does not begin from afar, in halves of `m`: 40 at the default `m`.
///
/// See decision 10: less costs recall sooner than it saves time.
const SEEK_BREADTH: usize = 5;

/// The nearest rows of the output that a search found, nearest first; free slots hold [`EMPTY`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Landed([Row; 2]);

impl Default for Landed {
    fn default() -> Self {
        Self([EMPTY; 2])
    }
}

impl Landed {
    fn rows(self) -> impl Iterator<Item = Row> {
        self.0.into_iter().filter(|&row| row != EMPTY)
    }
}

/// Where the rows of an input landed, by their output rows.
pub(super) struct Landings<'a> {
    pub(super) landed: &'a [Landed],
    /// For each output row the row of this input that became it.
    pub(super) origin: &'a [Row],
}

impl Landings<'_> {
    /// Whether the input's graph holds the row that went to `place`; damage may lead to others.
    fn hold(&self, place: Row) -> bool {
        self.origin[place as usize] != EMPTY
    }

    fn of(&self, place: Row) -> Landed {
        let origin = self.origin[place as usize];
        self.landed
            .get(origin as usize)
            .copied()
            .unwrap_or_default()
    }
}

impl<S: Space> Context<'_, S> {
    /// The choice of `row` on each of its levels into `worker.plan`, under the number `at`, and where
    /// its search ended into `worker.landed`.
    pub(super) fn seek(
        &self,
        input: &Input<'_>,
        landings: &Landings<'_>,
        (at, row): (usize, Row),
        worker: &mut Worker,
    ) {
        let (Some(place), Some((entry, top))) = (input.place(row), self.entry) else {
            return;
        };
        let scorer = self.space.scorer_of(place);
        let level_max = self.links.level_of(place);
        let mut stats = SearchStats::default();
        let mut from = EMPTY;
        for level in (0..=level_max).rev() {
            worker.near.gather(input, level, row, self.params.m);
            self.score_own(&scorer, landings, worker);
            let Worker {
                scratch,
                candidates,
                kept,
                own,
                plan,
                ..
            } = worker;
            let mut entries = Vec::with_capacity(2 * SEEDS + 1);
            if level == 0 {
                let near = own.iter().map(|&(key, _)| landings.of(row_of(key)));
                let near = near.filter(|landed| landed.rows().next().is_some());
                entries.extend(near.take(SEEDS).flat_map(Landed::rows));
            }
            let is_seeded = !entries.is_empty();
            if from == EMPTY && !is_seeded && level <= top {
                from = descend(self.links, &scorer, entry, top, level, &mut stats);
            }
            if from != EMPTY {
                entries.push(from);
            }
            scratch.begin(self.breadth(is_seeded, level));
            // Rows that came before may link to this one already.
            scratch.visited.insert(place);
            for &(key, _) in own.iter() {
                scratch.visited.insert(row_of(key));
                if key > scratch.best.bar() {
                    scratch.best.insert(key);
                }
            }
            if walk(
                self.links,
                level,
                &scorer,
                &entries,
                &|_| true,
                &|| self.stop(),
                scratch,
            )
            .is_err()
            {
                return;
            }
            standings(scratch.best.keys(), own, candidates);
            let m = self.params.m;
            choose_diverse(self.space, candidates, m, kept);
            let diverse = kept.len() as Key;
            let fill = if level == 0 { m - kept.len() } else { 0 };
            let others = not_kept(candidates, kept).take(fill);
            let list = kept.iter().map(|c| c.key).chain(others);
            plan.push(level, at as Row, diverse, list);
            let mut found = foreign(scratch.best.keys(), own);
            from = found.next().unwrap_or(from);
            if level == 0 {
                let landed = Landed([from, found.next().unwrap_or(EMPTY)]);
                worker.landed.push((row, landed));
            }
        }
        worker.distances += worker.scratch.stats.distances + stats.distances;
        worker.scratch.stats = SearchStats::default();
    }

    /// Step 1: keys of `worker.near`, best first, into `worker.own`.
    fn score_own(&self, scorer: &S::RowScorer<'_>, landings: &Landings<'_>, worker: &mut Worker) {
        let Worker { near, own, .. } = worker;
        own.clear();
        near.direct.retain(|&(place, _)| landings.hold(place));
        near.bridged.retain(|&place| landings.hold(place));
        for &(place, _) in &near.direct {
            scorer.prefetch(place);
        }
        own.extend(near.direct.iter().map(|&(place, standing)| {
            // A tree link was kept whatever it is.
            let standing = match standing {
                Standing::Diverse => Standing::Diverse,
                Standing::Tree | Standing::Open => Standing::Open,
            };
            (key(scorer.score(place), place), standing)
        }));
        own.extend(near.bridged.iter().map(|&place| {
            let key = key(scorer.score(place), place);
            (key, Standing::Open)
        }));
        own.sort_unstable_by_key(|&(key, _)| Reverse(key));
    }

    fn breadth(&self, is_seeded: bool, level: usize) -> usize {
        let short = SEEK_BREADTH * self.params.m / 2;
        if is_seeded || level > 0 {
            short.min(self.params.ef_construct)
        } else {
            self.params.ef_construct
        }
    }
}

/// The best with what is known of them; both lists are sorted.
fn standings(best: &[Key], own: &[(Key, Standing)], candidates: &mut Vec<Candidate>) {
    candidates.clear();
    let mut own = own.iter().peekable();
    candidates.extend(best.iter().map(|&key| {
        while own.next_if(|&&(known, _)| known > key).is_some() {}
        let standing = match own.peek() {
            Some(&&(known, standing)) if known == key => standing,
            _ => Standing::Open,
        };
        Candidate { key, standing }
    }));
}

/// The rows of `best` that are not the row's own.
fn foreign(best: &[Key], own: &[(Key, Standing)]) -> impl Iterator<Item = Row> {
    best.iter().filter_map(|&key| {
        let is_own = own.binary_search_by_key(&Reverse(key), |&(known, _)| Reverse(known));
        is_own.is_err().then_some(row_of(key))
    })
}
