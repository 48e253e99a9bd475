//! Rows as the graph sees them: 8-bit records side by side, or the floats themselves.

use std::thread;

use flatwater_index::Row;
use flatwater_index::codes::{Encoder, Query};
use flatwater_index::distance::{Kernels, kernels, prefetch};
use flatwater_index::hnsw::{Scorer, Space};

use super::case::Case;

/// Bytes of a cache line: a record begins at one.
const LINE: usize = 64;

/// The codes of all rows of a case.
pub(super) struct Codes {
    encoder: Encoder,
    /// Bytes from one 8-bit record to the next.
    stride: usize,
    eight: Aligned,
    /// A segment makes these too, for the rows its graph does not hold yet.
    _one: Aligned,
}

/// Bytes that begin at a cache line, as those of a mapped file do.
struct Aligned {
    bytes: Vec<u8>,
    start: usize,
}

impl Aligned {
    fn new(len: usize) -> Self {
        let bytes = vec![0; len + LINE];
        let start = bytes.as_ptr().align_offset(LINE) % LINE;
        Self { bytes, start }
    }

    #[inline]
    fn at(&self, start: usize, len: usize) -> &[u8] {
        &self.bytes[self.start + start..self.start + start + len]
    }

    fn all(&mut self, len: usize) -> &mut [u8] {
        &mut self.bytes[self.start..self.start + len]
    }
}

impl Codes {
    /// Rotates and encodes the rows, each thread a part of them.
    pub(super) fn of(case: &Case, encoder: Encoder, threads: usize) -> Self {
        let (rows, wide, narrow) = (case.row_count(), encoder.stride8(), encoder.stride1());
        let (mut eight, mut one) = (Aligned::new(rows * wide), Aligned::new(rows * narrow));
        let part = rows.div_ceil(threads.max(1)).max(1);
        thread::scope(|scope| {
            let codes = eight.all(rows * wide).chunks_mut(part * wide);
            let signs = one.all(rows * narrow).chunks_mut(part * narrow);
            for ((codes, signs), rows) in codes.zip(signs).zip(case.rows.chunks(part * case.dim)) {
                let encoder = &encoder;
                scope.spawn(move || encode(encoder, rows, codes, signs));
            }
        });
        Self {
            encoder,
            stride: wide,
            eight,
            _one: one,
        }
    }

    pub(super) fn encoder(&self) -> &Encoder {
        &self.encoder
    }

    pub(super) fn scorer<'a>(&'a self, query: &'a Query) -> QueryScorer<'a> {
        QueryScorer { codes: self, query }
    }

    #[inline]
    fn record(&self, row: Row) -> &[u8] {
        self.eight.at(row as usize * self.stride, self.stride)
    }
}

fn encode(encoder: &Encoder, rows: &[f32], codes: &mut [u8], signs: &mut [u8]) {
    let mut rotated = vec![0.0; encoder.dim()];
    let codes = codes.chunks_exact_mut(encoder.stride8());
    let signs = signs.chunks_exact_mut(encoder.stride1());
    for ((row, record8), record1) in rows.chunks_exact(encoder.dim()).zip(codes).zip(signs) {
        rotated.copy_from_slice(row);
        encoder.rotation().rotate(&mut rotated);
        encoder.encode(&rotated, record8, record1);
    }
}

/// A query against the records.
pub(super) struct QueryScorer<'a> {
    codes: &'a Codes,
    query: &'a Query,
}

impl Scorer for QueryScorer<'_> {
    #[inline]
    fn score(&self, row: Row) -> f32 {
        self.query.score8(self.codes.record(row))
    }

    #[inline]
    fn prefetch(&self, row: Row) {
        prefetch(self.codes.record(row));
    }
}

/// Records against one another.
#[derive(Clone, Copy)]
pub(super) struct CodeSpace<'a> {
    pub(super) codes: &'a Codes,
}

pub(super) struct RecordScorer<'a> {
    space: CodeSpace<'a>,
    record: &'a [u8],
}

impl Scorer for RecordScorer<'_> {
    #[inline]
    fn score(&self, row: Row) -> f32 {
        let codes = self.space.codes;
        codes.encoder.pair8(self.record, codes.record(row))
    }

    #[inline]
    fn prefetch(&self, row: Row) {
        self.space.prefetch(row);
    }
}

impl Space for CodeSpace<'_> {
    type RowScorer<'b>
        = RecordScorer<'b>
    where
        Self: 'b;

    fn scorer_of(&self, row: Row) -> RecordScorer<'_> {
        RecordScorer {
            space: *self,
            record: self.codes.record(row),
        }
    }

    #[inline]
    fn pair(&self, a: Row, b: Row) -> f32 {
        let codes = self.codes;
        codes.encoder.pair8(codes.record(a), codes.record(b))
    }

    #[inline]
    fn prefetch(&self, row: Row) {
        prefetch(self.codes.record(row));
    }
}

/// The floats, where there are no codes.
pub(super) struct FloatSpace<'a> {
    pub(super) case: &'a Case,
}

pub(super) struct FloatScorer<'a> {
    case: &'a Case,
    kernels: &'static Kernels,
    vector: &'a [f32],
}

impl<'a> FloatSpace<'a> {
    pub(super) fn scorer(&self, vector: &'a [f32]) -> FloatScorer<'a> {
        FloatScorer {
            case: self.case,
            kernels: kernels(),
            vector,
        }
    }
}

impl Scorer for FloatScorer<'_> {
    #[inline]
    fn score(&self, row: Row) -> f32 {
        let case = self.case;
        self.kernels.score(case.metric, self.vector, case.row(row))
    }
}

impl Space for FloatSpace<'_> {
    type RowScorer<'b>
        = FloatScorer<'b>
    where
        Self: 'b;

    fn scorer_of(&self, row: Row) -> FloatScorer<'_> {
        self.scorer(self.case.row(row))
    }

    #[inline]
    fn pair(&self, a: Row, b: Row) -> f32 {
        let case = self.case;
        kernels().score(case.metric, case.row(a), case.row(b))
    }
}
