//! The exact answers: by the kernels first, the best of those again in f64, kept in a file.

use std::error::Error;
use std::fs;
use std::path::Path;

use flatwater_index::distance::kernels;
use flatwater_index::topk::TopK;
use flatwater_index::{Metric, Row, flat};

use super::case::Case;

/// Rows scored again in f64: with rows far from the origin, f32 sums alone would order neighbours
/// by their rounding.
const AGAIN: usize = 5;

/// The true `k` rows of each query, from `file` if that has them.
pub(crate) fn of(
    case: &Case,
    k: usize,
    threads: usize,
    file: &Path,
) -> Result<Vec<Row>, Box<dyn Error>> {
    let wanted = case.query_count() * k;
    if let Ok(bytes) = fs::read(file)
        && bytes.len() == wanted * size_of::<Row>()
    {
        let rows = bytes.as_chunks::<4>().0.iter();
        return Ok(rows.map(|b| Row::from_le_bytes(*b)).collect());
    }
    let mut truth = vec![Row::MAX; wanted];
    let part = case.query_count().div_ceil(threads.max(1)).max(1);
    std::thread::scope(|scope| {
        for (i, part_of_truth) in truth.chunks_mut(part * k).enumerate() {
            scope.spawn(move || {
                for (at, answer) in part_of_truth.chunks_mut(k).enumerate() {
                    answer_of(case, case.query(i * part + at), answer);
                }
            });
        }
    });
    let bytes: Vec<u8> = truth.iter().flat_map(|row| row.to_le_bytes()).collect();
    fs::write(file, bytes)?;
    Ok(truth)
}

fn answer_of(case: &Case, query: &[f32], answer: &mut [Row]) {
    let mut near = TopK::new(answer.len() * AGAIN);
    let rows = 0..case.row_count() as Row;
    let accept = |_: Row| true;
    flat::exact(
        case.metric,
        query,
        rows,
        |row| case.row(row),
        accept,
        &mut near,
    );
    let mut again: Vec<(f64, Row)> = near
        .into_sorted_vec()
        .into_iter()
        .map(|(_, row)| (score(case.metric, query, case.row(row)), row))
        .collect();
    again.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    for (slot, (_, row)) in answer.iter_mut().zip(again) {
        *slot = row;
    }
}

fn score(metric: Metric, a: &[f32], b: &[f32]) -> f64 {
    let pairs = a.iter().zip(b).map(|(&a, &b)| (f64::from(a), f64::from(b)));
    match metric {
        Metric::Cosine | Metric::Dot => pairs.map(|(a, b)| a * b).sum(),
        Metric::Euclid => -pairs.map(|(a, b)| (a - b).powi(2)).sum::<f64>(),
        Metric::Manhattan => f64::from(kernels().score(metric, a, b)),
    }
}
