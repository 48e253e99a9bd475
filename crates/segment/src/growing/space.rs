//! What the graph compares: codes where there are codes, originals elsewhere.

use flatwater_index::codes::{Encoder, Query};
use flatwater_index::distance::{Kernels, kernels};
use flatwater_index::hnsw::{Scorer, Space};
use flatwater_index::{Metric, Row};

use crate::chunk::ChunkArray;

/// A query against 8-bit codes.
#[derive(Debug)]
pub struct CodeScorer<'a> {
    query: &'a Query,
    codes8: &'a ChunkArray<u8>,
}

impl<'a> CodeScorer<'a> {
    /// Compares `query` with the rows of `codes8`.
    #[must_use]
    pub fn new(query: &'a Query, codes8: &'a ChunkArray<u8>) -> Self {
        Self { query, codes8 }
    }
}

impl Scorer for CodeScorer<'_> {
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
#[derive(Clone, Copy, Debug)]
pub struct CodeSpace<'a> {
    /// Encoder of the codes.
    pub encoder: &'a Encoder,
    /// The codes.
    pub codes8: &'a ChunkArray<u8>,
}

/// A row in the role of the query.
#[derive(Debug)]
pub struct CodeRow<'a> {
    space: CodeSpace<'a>,
    record: &'a [u8],
}

impl Scorer for CodeRow<'_> {
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

impl Space for CodeSpace<'_> {
    type RowScorer<'b>
        = CodeRow<'b>
    where
        Self: 'b;

    fn scorer_of(&self, row: Row) -> CodeRow<'_> {
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
pub struct OriginalScorer<'a> {
    metric: Metric,
    kernels: &'static Kernels,
    vector: &'a [f32],
    originals: &'a ChunkArray<f32>,
}

impl<'a> OriginalScorer<'a> {
    /// Compares `vector` with the rows of `originals`.
    #[must_use]
    pub fn new(metric: Metric, vector: &'a [f32], originals: &'a ChunkArray<f32>) -> Self {
        Self {
            metric,
            kernels: kernels(),
            vector,
            originals,
        }
    }
}

impl Scorer for OriginalScorer<'_> {
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
pub struct OriginalSpace<'a> {
    metric: Metric,
    originals: &'a ChunkArray<f32>,
}

impl<'a> OriginalSpace<'a> {
    /// The rows of `originals` under `metric`.
    #[must_use]
    pub fn new(metric: Metric, originals: &'a ChunkArray<f32>) -> Self {
        Self { metric, originals }
    }
}

impl Space for OriginalSpace<'_> {
    type RowScorer<'b>
        = OriginalScorer<'b>
    where
        Self: 'b;

    fn scorer_of(&self, row: Row) -> OriginalScorer<'_> {
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
