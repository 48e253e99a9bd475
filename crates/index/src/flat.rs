//! Scans: over original vectors (`exact`, small sets, the oracle of recall) and over 1-bit codes.
//!
//! A 1-bit scan goes through records in blocks:
//! 1. one kernel call counts the weighted bits of the block;
//! 2. each count becomes an estimated score, and those below the worst kept are dropped;
//! 3. what is left is asked for acceptance (liveness, filter), the rare and dear question.
//!
//! The results are candidates to rescore with the originals. A caller that has to stop early, or
//! to share a scan among threads, splits the run of records.

use crate::codes::Query;
use crate::distance::{kernels, prefetch};
use crate::topk::TopK;
use crate::types::{Metric, Row};

/// Records of one block: 144 bytes each at 1,024 dims, so that a block stays in the first-level
/// cache between the counting and the scoring.
const BLOCK: usize = 64;

/// Scores the accepted ones of `rows` against `query` by the metric itself.
///
/// Shapes: `vector(row)` is as long as `query`; it is asked for accepted rows only.
pub fn exact<'a>(
    metric: Metric,
    query: &[f32],
    rows: impl IntoIterator<Item = Row>,
    vector: impl Fn(Row) -> &'a [f32],
    accept: impl Fn(Row) -> bool,
    best: &mut TopK<Row>,
) {
    let kernels = kernels();
    for row in rows.into_iter().filter(|&row| accept(row)) {
        best.push(kernels.score(metric, query, vector(row)), row);
    }
}

/// Scores candidates again with the originals, by the metric itself.
///
/// Shapes: `vector(row)` is as long as `query`. The rows lie anywhere, so each is asked for while
/// the one before it is scored.
pub fn rescore<'a>(
    metric: Metric,
    query: &[f32],
    rows: impl IntoIterator<Item = Row>,
    vector: impl Fn(Row) -> &'a [f32],
    best: &mut TopK<Row>,
) {
    let kernels = kernels();
    let mut rows = rows
        .into_iter()
        .inspect(|&row| prefetch(vector(row)))
        .peekable();
    while let Some(row) = rows.next() {
        let _ahead = rows.peek();
        best.push(kernels.score(metric, query, vector(row)), row);
    }
}

/// Estimates the scores of the run of 1-bit `records`, the first of them of row `first`.
///
/// `accept` is asked only for rows that would enter `best`; pass `|_| true` where all count.
///
/// # Panics
///
/// If `records` is not a whole number of records, or not aligned.
pub fn scan1(
    query: &Query,
    records: &[u8],
    first: Row,
    mut accept: impl FnMut(Row) -> bool,
    best: &mut TopK<Row>,
) {
    let stride = query.stride1();
    assert!(
        records.len().is_multiple_of(stride),
        "a run is a whole number of records"
    );
    let mut sums = [0; BLOCK];
    let mut row = first;
    for block in records.chunks(BLOCK * stride) {
        let sums = &mut sums[..block.len() / stride];
        query.sums1(block, sums);
        let mut floor = best.threshold();
        for (record, &sum) in block.chunks_exact(stride).zip(&*sums) {
            let score = query.score1_of_sum(record, sum);
            // Written so that NaN goes on to `push`, which puts it last.
            let too_low = score < floor;
            if !too_low && accept(row) {
                best.push(score, row);
                floor = best.threshold();
            }
            row += 1;
        }
    }
}

/// Estimates the scores of single `rows` whose records stand at `row - first` in `records`.
///
/// For filters that match few rows: past about one row in ten, [`scan1`] with an `accept` that
/// looks at the filter is faster.
///
/// # Panics
///
/// If a row lies outside the records, or these are not aligned.
pub fn scan1_rows(
    query: &Query,
    records: &[u8],
    first: Row,
    rows: impl IntoIterator<Item = Row>,
    best: &mut TopK<Row>,
) {
    let stride = query.stride1();
    for row in rows {
        let at = (row - first) as usize * stride;
        best.push(query.score1(&records[at..at + stride]), row);
    }
}
