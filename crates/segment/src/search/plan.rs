//! Which way a search on one segment takes: a pure function of a few facts.

use flatwater_index::codes::candidates1;
use flatwater_index::{Metric, Row};

/// Rows whose payload is looked at to judge a filter that no index decides.
pub const SAMPLE_ROWS: usize = 256;

/// Rows up to which the originals themselves are compared: at most some tens of microseconds, and
/// the answer is exact.
const ORIGINALS_ROWS_MAX: u64 = 256;

/// Matching rows up to which their codes are scanned instead of walking the graph: with 20 to 30 ns
/// for a scattered 1-bit code (ann-methods, section 1) about half a millisecond.
const SCAN_ROWS_MAX: u64 = 20_000;

/// Share of rows that match from which the plain walk is taken: most neighbours match then, and
/// a second hop finds nothing new.
const PLAIN_WALK_SHARE: f64 = 0.6;

/// How much wider the beam of a dot query is; see [`beam`].
const DOT_BEAM: usize = 3;

/// Candidates of a 1-bit scan for each row wanted, where that is more than the dimensions alone call
/// for: the best 100 hold .996 of the true 10 at 384 dims, and 8 times `k` keeps near that margin.
const SCAN_CANDIDATES_PER_K: usize = 8;

/// What the choice depends on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Facts {
    /// Rows of the view.
    pub rows: Row,
    /// Rows that the graph covers.
    pub covered: Row,
    /// Rows that the filter passes, about; `None` without a filter.
    pub matching: Option<u64>,
    /// Rows that the filter's indexes left open.
    pub undecided: u64,
    /// Rows wanted.
    pub k: usize,
    /// Whether the user asked for the exact answer.
    pub exact: bool,
}

/// The ways there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Path {
    /// Compare with the original of every row that matches.
    Originals,
    /// Scan the codes of every row that matches.
    Scan,
    /// Walk the graph through rows that match and through bridges between them.
    FilteredWalk,
    /// Walk the graph through any row.
    Walk,
}

/// Chooses the way.
#[must_use]
pub fn choose(facts: &Facts) -> Path {
    let rows = u64::from(facts.rows);
    let matching = facts.matching.unwrap_or(rows).min(rows);
    // An answer of a large part of all rows is no search any more.
    let is_most = facts.k as u64 >= matching.div_ceil(4);
    if facts.exact || is_most || matching <= ORIGINALS_ROWS_MAX {
        return Path::Originals;
    }
    if facts.covered == 0 {
        return Path::Scan;
    }
    match facts.matching {
        None => Path::Walk,
        Some(matching) if matching <= SCAN_ROWS_MAX && facts.undecided == 0 => Path::Scan,
        Some(matching) if matching as f64 >= PLAIN_WALK_SHARE * rows as f64 => Path::Walk,
        Some(_) => Path::FilteredWalk,
    }
}

/// Beam width of a walk for the `ef` that was asked for.
///
/// Rows are linked by their distance, also where the metric is the plain dot product: a graph by
/// the dot product itself found less (.91 against .93 at `ef` 100 on clustered data far from the
/// origin). The walk of a dot query goes across those links, so it gets a wider beam.
#[must_use]
pub fn beam(ef: usize, metric: Metric) -> usize {
    match metric {
        Metric::Dot => ef.saturating_mul(DOT_BEAM),
        Metric::Cosine | Metric::Euclid | Metric::Manhattan => ef,
    }
}

/// How many candidates of a 1-bit scan are scored again for an answer of `k`.
#[must_use]
pub fn scan_candidates(k: usize, dim: usize) -> usize {
    k.saturating_mul(SCAN_CANDIDATES_PER_K)
        .max(candidates1(dim))
}

/// Whether so few rows may match that visiting just those beats a scan in memory order: a scattered
/// code costs about ten in sequence.
#[must_use]
pub fn is_sparse(matching: u64, rows: Row) -> bool {
    matching.saturating_mul(10) < u64::from(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Facts = Facts {
        rows: 100_000,
        covered: 90_000,
        matching: None,
        undecided: 0,
        k: 10,
        exact: false,
    };

    #[test]
    fn each_way_is_taken_where_it_is_meant() {
        assert_eq!(choose(&PLAIN), Path::Walk);
        assert_eq!(
            choose(&Facts {
                exact: true,
                ..PLAIN
            }),
            Path::Originals
        );
        assert_eq!(
            choose(&Facts {
                covered: 0,
                ..PLAIN
            }),
            Path::Scan
        );
        assert_eq!(
            choose(&Facts {
                matching: Some(100),
                ..PLAIN
            }),
            Path::Originals
        );
        assert_eq!(
            choose(&Facts {
                matching: Some(15_000),
                ..PLAIN
            }),
            Path::Scan
        );
        assert_eq!(
            choose(&Facts {
                matching: Some(40_000),
                ..PLAIN
            }),
            Path::FilteredWalk
        );
        assert_eq!(
            choose(&Facts {
                matching: Some(80_000),
                ..PLAIN
            }),
            Path::Walk
        );
        assert_eq!(
            choose(&Facts {
                k: usize::MAX,
                ..PLAIN
            }),
            Path::Originals
        );
    }

    #[test]
    fn the_largest_answer_does_not_overflow() {
        assert_eq!(scan_candidates(usize::MAX, 384), usize::MAX);
        assert_eq!(scan_candidates(10, 384), candidates1(384));
        assert_eq!(beam(usize::MAX, Metric::Dot), usize::MAX);
        assert!(is_sparse(99, 1000) && !is_sparse(100, 1000));
    }
}
