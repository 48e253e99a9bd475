//! What is indexed: rows and queries side by side in memory, and the metric they are compared by.

use std::error::Error;
use std::path::Path;

use flatwater_index::Metric;
use flatwater_index::distance::normalize;

use crate::data::{Data, Length};

/// Rows, queries and metric of one comparison.
#[derive(Debug)]
pub(crate) struct Case {
    /// Set, kind and metric, for reports and file names.
    pub(crate) name: String,
    pub(crate) metric: Metric,
    pub(crate) dim: usize,
    pub(crate) rows: Vec<f32>,
    pub(crate) queries: Vec<f32>,
}

/// What is done to a set before it is indexed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Unit rows as they are.
    Plain,
    /// The first 32 dims of each row.
    FirstDims,
    /// Three standard deviations added to every dim of rows and queries.
    Offset,
    /// Rows of many lengths.
    Unnormalised,
}

/// Cases of which only the recall is compared.
pub(crate) const RECALL_CASES: [(Kind, Metric); 6] = [
    (Kind::FirstDims, Metric::Cosine),
    (Kind::Offset, Metric::Cosine),
    (Kind::Offset, Metric::Euclid),
    (Kind::Offset, Metric::Dot),
    (Kind::Unnormalised, Metric::Euclid),
    (Kind::Unnormalised, Metric::Dot),
];

const FIRST_DIMS: usize = 32;
const OFFSET_SIGMAS: f32 = 3.0;

impl Case {
    /// Reads `set` below `folder` and makes the case of it.
    pub(crate) fn load(
        folder: &Path,
        set: &str,
        kind: Kind,
        metric: Metric,
        limits: (usize, usize),
    ) -> Result<Self, Box<dyn Error>> {
        let length = match kind {
            Kind::Unnormalised => Length::AsStored,
            _ => Length::Unit,
        };
        let data = Data::load_with(&folder.join(set), limits.0, length)?;
        let queries = &data.queries[..limits.1.min(data.queries.len())];
        let mut case = Self {
            name: format!("{set} {} {}", kind.name(), metric_name(metric)),
            metric,
            dim: data.dim,
            rows: data.rows.concat(),
            queries: queries.concat(),
        };
        drop(data);
        match kind {
            Kind::Plain | Kind::Unnormalised => {}
            Kind::FirstDims => case.keep_dims(FIRST_DIMS),
            Kind::Offset => case.shift(),
        }
        if metric == Metric::Cosine {
            for vectors in [&mut case.rows, &mut case.queries] {
                vectors.chunks_exact_mut(case.dim).for_each(normalize);
            }
        }
        Ok(case)
    }

    pub(crate) fn row_count(&self) -> usize {
        self.rows.len() / self.dim
    }

    pub(crate) fn query_count(&self) -> usize {
        self.queries.len() / self.dim
    }

    #[inline]
    pub(crate) fn row(&self, row: u32) -> &[f32] {
        let start = row as usize * self.dim;
        &self.rows[start..start + self.dim]
    }

    pub(crate) fn query(&self, at: usize) -> &[f32] {
        &self.queries[at * self.dim..(at + 1) * self.dim]
    }

    fn keep_dims(&mut self, dims: usize) {
        let cut = |vectors: &[f32], dim: usize| -> Vec<f32> {
            let rows = vectors.chunks_exact(dim);
            rows.flat_map(|row| &row[..dims]).copied().collect()
        };
        self.rows = cut(&self.rows, self.dim);
        self.queries = cut(&self.queries, self.dim);
        self.dim = dims;
    }

    fn shift(&mut self) {
        let mean_of = |term: &dyn Fn(f64) -> f64| {
            let sum: f64 = self.rows.iter().map(|&x| term(f64::from(x))).sum();
            sum / self.rows.len().max(1) as f64
        };
        let mean = mean_of(&|x| x);
        let sigma = mean_of(&|x| (x - mean).powi(2)).sqrt() as f32;
        for x in self.rows.iter_mut().chain(&mut self.queries) {
            *x += OFFSET_SIGMAS * sigma;
        }
    }
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::FirstDims => "first-32-dims",
            Self::Offset => "offset-3-sigma",
            Self::Unnormalised => "unnormalised",
        }
    }
}

/// The metric's name on command lines and in reports.
pub(crate) fn metric_name(metric: Metric) -> &'static str {
    match metric {
        Metric::Cosine => "cosine",
        Metric::Dot => "dot",
        Metric::Euclid => "euclid",
        Metric::Manhattan => "manhattan",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(kind: Kind, metric: Metric) -> Case {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data");
        Case::load(&folder, "wordnet-minilm-384", kind, metric, (50, 5)).unwrap()
    }

    fn length(v: &[f32]) -> f32 {
        v.iter().map(|x| x * x).sum::<f32>().sqrt()
    }

    #[test]
    fn each_kind_changes_rows_and_queries_as_it_says() {
        let plain = case(Kind::Plain, Metric::Cosine);
        assert_eq!(
            (plain.dim, plain.row_count(), plain.query_count()),
            (384, 50, 5)
        );
        let first = case(Kind::FirstDims, Metric::Cosine);
        assert_eq!((first.dim, first.row_count()), (32, 50));
        assert!((length(first.row(49)) - 1.0).abs() < 1e-5);
        let shifted = case(Kind::Offset, Metric::Euclid);
        let by = shifted.row(0)[0] - plain.row(0)[0];
        let all = (0..50).flat_map(|row| shifted.row(row).iter().zip(plain.row(row)));
        assert!(by > 0.1 && all.map(|(s, p)| s - p - by).all(|off| off.abs() < 1e-6));
        let long = case(Kind::Unnormalised, Metric::Dot);
        assert!((length(long.row(0)) - length(long.row(1))).abs() > 0.01 * length(long.row(0)));
    }
}
