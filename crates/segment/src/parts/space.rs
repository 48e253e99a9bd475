//! What the graph compares: codes where there are codes, originals elsewhere.

use flatwater_index::codes::{Encoder, Query};
use flatwater_index::distance::{Kernels, kernels};
use flatwater_index::hnsw::{Scorer, Space};
use flatwater_index::{Metric, Row};

use crate::rows::RowRead;

/// A query against 8-bit codes.
#[derive(Debug)]
pub struct CodeScorer<'a, R> {
    query: &'a Query,
    codes8: &'a R,
}

impl<'a, R: RowRead<u8>> CodeScorer<'a, R> {
    /// Compares `query` with the rows of `codes8`.
    #[must_use]
    pub fn new(query: &'a Query, codes8: &'a R) -> Self {
        Self { query, codes8 }
    }
}

impl<R: RowRead<u8>> Scorer for CodeScorer<'_, R> {
    #[inline]
    fn score(&self, row: Row) -> f32 {
        self.query.score8(self.codes8.row(row))
    }

    #[inline]
    fn prefetch(&self, row: Row) {
        self.codes8.prefetch(row);
    }
}

/// Rows compared by their 8-bit codes, for building.
#[derive(Debug)]
pub struct CodeSpace<'a, R> {
    /// Encoder of the codes.
    pub encoder: &'a Encoder,
    /// The codes.
    pub codes8: &'a R,
}

impl<R> Clone for CodeSpace<'_, R> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<R> Copy for CodeSpace<'_, R> {}

/// A row in the role of the query.
#[derive(Debug)]
pub struct CodeRow<'a, R> {
    space: CodeSpace<'a, R>,
    record: &'a [u8],
}

impl<R: RowRead<u8>> Scorer for CodeRow<'_, R> {
    #[inline]
    fn score(&self, row: Row) -> f32 {
        self.space
            .encoder
            .pair8(self.record, self.space.codes8.row(row))
    }

    #[inline]
    fn prefetch(&self, row: Row) {
        self.space.codes8.prefetch(row);
    }
}

impl<R: RowRead<u8>> Space for CodeSpace<'_, R> {
    type RowScorer<'b>
        = CodeRow<'b, R>
    where
        Self: 'b;

    fn scorer_of(&self, row: Row) -> CodeRow<'_, R> {
        CodeRow {
            space: *self,
            record: self.codes8.row(row),
        }
    }

    #[inline]
    fn pair(&self, a: Row, b: Row) -> f32 {
        self.encoder.pair8(self.codes8.row(a), self.codes8.row(b))
    }

    #[inline]
    fn prefetch(&self, row: Row) {
        self.codes8.prefetch(row);
    }
}

/// A query against original vectors.
#[derive(Debug)]
pub struct OriginalScorer<'a, R> {
    metric: Metric,
    kernels: &'static Kernels,
    vector: &'a [f32],
    originals: &'a R,
}

impl<'a, R: RowRead<f32>> OriginalScorer<'a, R> {
    /// Compares `vector` with the rows of `originals`.
    #[must_use]
    pub fn new(metric: Metric, vector: &'a [f32], originals: &'a R) -> Self {
        Self {
            metric,
            kernels: kernels(),
            vector,
            originals,
        }
    }
}

impl<R: RowRead<f32>> Scorer for OriginalScorer<'_, R> {
    #[inline]
    fn score(&self, row: Row) -> f32 {
        self.kernels
            .score(self.metric, self.vector, self.originals.row(row))
    }

    #[inline]
    fn prefetch(&self, row: Row) {
        self.originals.prefetch(row);
    }
}

/// Rows compared by their originals, for building.
#[derive(Debug)]
pub struct OriginalSpace<'a, R> {
    metric: Metric,
    originals: &'a R,
}

impl<'a, R: RowRead<f32>> OriginalSpace<'a, R> {
    /// The rows of `originals` under `metric`.
    #[must_use]
    pub fn new(metric: Metric, originals: &'a R) -> Self {
        Self { metric, originals }
    }
}

impl<R: RowRead<f32>> Space for OriginalSpace<'_, R> {
    type RowScorer<'b>
        = OriginalScorer<'b, R>
    where
        Self: 'b;

    fn scorer_of(&self, row: Row) -> OriginalScorer<'_, R> {
        OriginalScorer::new(self.metric, self.originals.row(row), self.originals)
    }

    #[inline]
    fn pair(&self, a: Row, b: Row) -> f32 {
        kernels().score(self.metric, self.originals.row(a), self.originals.row(b))
    }

    #[inline]
    fn prefetch(&self, row: Row) {
        self.originals.prefetch(row);
    }
}
