//! How much of the true neighbours a graph finds, by a sample of its own rows.

use std::collections::HashSet;

use flatwater_index::Row;
use flatwater_index::hnsw::{NO_PLACE, Scorer, Scratch, Space, Walk};
use flatwater_index::topk::TopK;

/// How much less a joined graph may find than the largest input's: the sample's own error is half of that.
pub(super) const RECALL_LOSS_MAX: f64 = 0.02;

/// Rows that are looked for: each is compared with all rows, some milliseconds for 100,000.
const SAMPLE: usize = 64;
/// Neighbours of each.
const K: usize = 10;
/// Beam width of the walks.
const EF: usize = 64;

/// Share of the `K` nearest of `rows` that walks find, over a sample of these rows; all of them are below
/// `len`. 1 for an empty graph.
///
/// Cost: `SAMPLE` times `rows` scores.
pub(super) fn recall<S: Space>(graph: &impl Walk, space: &S, rows: &[Row], len: Row) -> f64 {
    let is_present: HashSet<Row> = if rows.len() == len as usize {
        HashSet::new()
    } else {
        rows.iter().copied().collect()
    };
    let accept = |row: Row| row < len && (is_present.is_empty() || is_present.contains(&row));
    let mut scratch = Scratch::new();
    let (mut found, mut wanted) = (0, 0);
    for query in sample(rows) {
        let scorer = space.scorer_of(query);
        let mut best = TopK::new(K);
        for &row in rows {
            best.push(scorer.score(row), row);
        }
        let truth: HashSet<Row> = best.into_sorted_vec().into_iter().map(|(_, r)| r).collect();
        let walked = graph.search(&scorer, EF, &accept, &mut scratch);
        wanted += truth.len();
        found += walked
            .iter()
            .take(K)
            .filter(|scored| truth.contains(&scored.row))
            .count();
    }
    if wanted == 0 {
        return 1.0;
    }
    f64::from(found as u32) / f64::from(wanted as u32)
}

/// Rows spread evenly.
fn sample(rows: &[Row]) -> impl Iterator<Item = Row> + '_ {
    let step = (rows.len() / SAMPLE).max(1);
    rows.iter().copied().step_by(step).take(SAMPLE)
}

/// The rows of an input, each compared by the output row that it became.
pub(super) struct Placed<'a, S> {
    pub(super) space: &'a S,
    pub(super) places: &'a [Row],
}

/// A row of an input in the role of the query.
pub(super) struct PlacedRow<'a, R> {
    scorer: R,
    places: &'a [Row],
}

impl<R: Scorer> Scorer for PlacedRow<'_, R> {
    fn score(&self, row: Row) -> f32 {
        match self.places[row as usize] {
            // A dead row has no code in the output. It is passed through last and never accepted.
            NO_PLACE => f32::MIN,
            place => self.scorer.score(place),
        }
    }
}

impl<S: Space> Space for Placed<'_, S> {
    type RowScorer<'b>
        = PlacedRow<'b, S::RowScorer<'b>>
    where
        Self: 'b;

    fn scorer_of(&self, row: Row) -> Self::RowScorer<'_> {
        PlacedRow {
            scorer: self.space.scorer_of(self.places[row as usize]),
            places: self.places,
        }
    }

    fn pair(&self, a: Row, b: Row) -> f32 {
        match (self.places[a as usize], self.places[b as usize]) {
            (NO_PLACE, _) | (_, NO_PLACE) => f32::MIN,
            (a, b) => self.space.pair(a, b),
        }
    }
}
