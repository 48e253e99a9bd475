//! What the graph asks of the vectors, and of the threads that build it.

use crate::Row;

/// One query, ready to be compared with rows; larger scores are better.
pub trait Scorer {
    /// Score of `row`.
    fn score(&self, row: Row) -> f32;

    /// Hint that `row` is scored soon: start loading its code into the cache.
    #[inline]
    fn prefetch(&self, row: Row) {
        let _ = row;
    }
}

/// The rows' codes, compared with one another while the graph is built.
///
/// `pair(a, b)` must be symmetric and equal to `scorer_of(a).score(b)`: the choice of diverse
/// neighbours weighs one against the other.
pub trait Space: Sync {
    /// A row in the role of the query.
    type RowScorer<'a>: Scorer
    where
        Self: 'a;

    /// `row` as a query.
    fn scorer_of(&self, row: Row) -> Self::RowScorer<'_>;

    /// Score of `a` against `b`.
    fn pair(&self, a: Row, b: Row) -> f32;

    /// Hint that `row` takes part in a `pair` soon.
    #[inline]
    fn prefetch(&self, row: Row) {
        let _ = row;
    }
}

/// Threads lent by the caller.
pub trait Workers: Sync {
    /// Upper bound of `worker_index`, at least 1.
    fn threads(&self) -> usize;

    /// Calls `f(i, worker_index)` once for every `i` in `0..n`, on any threads, and returns when
    /// all calls are done and their writes are visible here. No two calls with the same
    /// `worker_index` (below [`threads`](Self::threads)) run at one time.
    fn run(&self, n: usize, f: &(dyn Fn(usize, usize) + Sync));
}

/// The calling thread alone.
#[derive(Clone, Copy, Debug, Default)]
pub struct Inline;

impl Workers for Inline {
    fn threads(&self) -> usize {
        1
    }

    fn run(&self, n: usize, f: &(dyn Fn(usize, usize) + Sync)) {
        for i in 0..n {
            f(i, 0);
        }
    }
}
