//! The choice of diverse neighbours (Algorithm 4 of the paper), with memory of the last choice.
//!
//! A candidate is kept if it is no closer to a kept one than to the row itself, so links spread in
//! all directions instead of into one cluster. Differences from the paper:
//! - tree links are kept whatever they are (see [`insert`](super::insert)), and others yield room;
//! - candidates that were chosen together before are known to be diverse among one another, and
//!   are compared only with the rest: a full list of 32 with one newcomer costs about half;
//! - no more than half of the list may have one and the same score: a row among hundreds of exact
//!   copies keeps links that lead away from them.

use super::key::{Key, key, row_of, score_of};
use super::space::{Scorer, Space};
use crate::Row;

/// What is known of a candidate, in the order of the parts of a level-0 list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Standing {
    /// A link to the parent or to a child: always kept.
    Tree,
    /// Chosen before, together with all others of this standing.
    Diverse,
    /// Nothing.
    Open,
}

/// A row that may become a neighbour.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate {
    /// Its score for the row whose neighbours are chosen, and its number.
    pub(super) key: Key,
    pub(super) standing: Standing,
}

/// Chooses at most `max` of `candidates` (sorted best first, each row once) into `kept`, in the
/// same order.
///
/// Cost: about `candidates.len()` times the number kept, halved by early refusals.
pub(super) fn choose_diverse<S: Space>(
    space: &S,
    candidates: &[Candidate],
    max: usize,
    kept: &mut Vec<Candidate>,
) {
    kept.clear();
    debug_assert!(
        candidates.is_sorted_by(|a, b| a.key > b.key),
        "best first, no row twice"
    );
    let mut trees_ahead = candidates
        .iter()
        .filter(|c| c.standing == Standing::Tree)
        .count();
    let mut equal = 0;
    let mut last = None;
    for candidate in candidates {
        if candidate.standing == Standing::Tree {
            trees_ahead -= 1;
            kept.push(*candidate);
            continue;
        }
        if kept.len() + trees_ahead >= max {
            if trees_ahead == 0 {
                break;
            }
            continue;
        }
        let score = score_of(candidate.key);
        if last != Some(score) {
            (equal, last) = (0, Some(score));
        }
        if equal < max / 2 && is_diverse(space, candidate, score, kept) {
            equal += 1;
            kept.push(*candidate);
        }
    }
}

/// The keys of `candidates` that are not among `kept`; both best first.
pub(super) fn not_kept<'a>(
    candidates: &'a [Candidate],
    kept: &'a [Candidate],
) -> impl Iterator<Item = Key> + 'a {
    let mut kept = kept.iter().peekable();
    let keys = candidates.iter().map(|c| c.key);
    keys.filter(move |&key| kept.next_if(|c| c.key == key).is_none())
}

/// Brings the list `current` of `target` to at most `max` links. Beside the tree links, which stay
/// in their order and in front, what is kept is diverse. `known` gives the scores that need not be
/// worked out.
pub(super) fn prune<S: Space>(
    space: &S,
    target: Row,
    max: usize,
    known: impl Fn(Row) -> Option<f32>,
    current: &mut Vec<(Row, Standing)>,
    (candidates, kept): (&mut Vec<Candidate>, &mut Vec<Candidate>),
) {
    let scorer = space.scorer_of(target);
    for &(row, _) in current.iter() {
        space.prefetch(row);
    }
    candidates.clear();
    candidates.extend(current.iter().map(|&(row, standing)| Candidate {
        key: key(known(row).unwrap_or_else(|| scorer.score(row)), row),
        standing,
    }));
    candidates.sort_unstable_by_key(|c| std::cmp::Reverse(c.key));
    choose_diverse(space, candidates, max, kept);
    current.retain(|&(_, standing)| standing == Standing::Tree);
    let chosen = kept.iter().filter(|c| c.standing != Standing::Tree);
    current.extend(chosen.map(|c| (row_of(c.key), Standing::Diverse)));
}

fn is_diverse<S: Space>(space: &S, candidate: &Candidate, score: f32, kept: &[Candidate]) -> bool {
    let row = row_of(candidate.key);
    kept.iter().all(|other| {
        let known = candidate.standing == Standing::Diverse && other.standing == Standing::Diverse;
        let refused = || space.pair(row, row_of(other.key)) > score;
        known || !refused()
    })
}
