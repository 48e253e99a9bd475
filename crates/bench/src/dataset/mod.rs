//! Rows to load and held-out queries: from files of the field's formats, or generated.
//!
//! Rows are read where they are needed, so that a set may be larger than memory.

mod file;
pub(crate) mod generator;
pub(crate) mod truth;

use std::error::Error;
use std::fmt::Debug;
use std::io;
use std::path::Path;

use flatwater_index::Metric;
use flatwater_index::distance::normalize;

use file::FileRows;
use generator::Generated;

/// Rows that can be read in any order.
pub(crate) trait Rows: Debug + Send + Sync {
    /// Dimensions.
    fn dim(&self) -> usize;

    /// How many there are.
    fn count(&self) -> usize;

    /// Reads as many rows from `first` on as `out` has room for.
    fn read(&self, first: usize, out: &mut [f32]) -> io::Result<()>;
}

/// What a study loads and asks for.
#[derive(Debug)]
pub(crate) struct Dataset {
    /// As reports call it.
    pub(crate) name: String,
    pub(crate) metric: Metric,
    rows: Box<dyn Rows>,
    /// First row that is loaded: those before it may be the queries.
    first: usize,
    count: usize,
    queries: Vec<f32>,
}

/// Where a set comes from and how much of it is used.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    /// A folder, a file, or `generated:...`.
    pub(crate) data: String,
    /// File of queries; without one (and none in the folder) rows are held out.
    pub(crate) queries: Option<String>,
    pub(crate) metric: Metric,
    pub(crate) rows_max: usize,
    pub(crate) queries_max: usize,
    pub(crate) seed: u64,
}

impl Dataset {
    /// Opens what `source` names.
    pub(crate) fn open(source: &Source) -> Result<Self, Box<dyn Error>> {
        let Source { queries_max, .. } = *source;
        if let Some(spec) = source.data.strip_prefix("generated:") {
            let rows = Generated::parse(spec, source.seed)?;
            let queries = rows.queries(queries_max);
            let name = format!("generated:{spec} seed {}", source.seed);
            return Self::with(source, name, Box::new(rows), queries);
        }
        let path = Path::new(&source.data);
        let name = path.file_name().unwrap_or(path.as_os_str());
        let name = name.to_string_lossy().into_owned();
        let (rows, queries) = if path.is_dir() {
            let queries = FileRows::open(&path.join("query.f16.npy"))?;
            let rows = FileRows::open_dithered(&path.join("base.i8.npy"))?;
            (rows, Some(queries))
        } else {
            let queries = source.queries.as_deref().map(Path::new);
            (
                FileRows::open(path)?,
                queries.map(FileRows::open).transpose()?,
            )
        };
        let Some(queries) = queries else {
            return Self::holding_out(source, name, rows);
        };
        if queries.dim() != rows.dim() {
            let (ours, theirs) = (queries.dim(), rows.dim());
            return Err(format!("queries have {ours} dims, rows {theirs}").into());
        }
        let mut vectors = vec![0.0; queries.count().min(queries_max) * queries.dim()];
        queries.read(0, &mut vectors)?;
        Self::with(source, name, Box::new(rows), vectors)
    }

    /// The first rows are the queries and are not loaded.
    fn holding_out(source: &Source, name: String, rows: FileRows) -> Result<Self, Box<dyn Error>> {
        let held = source.queries_max.min(rows.count() / 2);
        let mut vectors = vec![0.0; held * rows.dim()];
        rows.read(0, &mut vectors)?;
        let mut set = Self::with(source, name, Box::new(rows), vectors)?;
        set.first = held;
        set.count = (set.rows.count() - held).min(source.rows_max);
        Ok(set)
    }

    fn with(
        source: &Source,
        name: String,
        rows: Box<dyn Rows>,
        mut queries: Vec<f32>,
    ) -> Result<Self, Box<dyn Error>> {
        if source.metric == Metric::Cosine {
            queries.chunks_exact_mut(rows.dim()).for_each(normalize);
        }
        if queries.is_empty() || rows.count() == 0 {
            return Err(format!("`{name}` has no rows or no queries").into());
        }
        Ok(Self {
            name,
            metric: source.metric,
            count: rows.count().min(source.rows_max),
            rows,
            first: 0,
            queries,
        })
    }

    /// Dimensions.
    pub(crate) fn dim(&self) -> usize {
        self.rows.dim()
    }

    /// Rows to load.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Queries.
    pub(crate) fn query_count(&self) -> usize {
        self.queries.len() / self.dim()
    }

    /// A query; they begin anew after the last.
    pub(crate) fn query(&self, at: usize) -> &[f32] {
        let at = at % self.query_count();
        &self.queries[at * self.dim()..(at + 1) * self.dim()]
    }

    /// Rows from `first` on; with cosine they have length 1.
    pub(crate) fn read(&self, first: usize, out: &mut [f32]) -> io::Result<()> {
        self.rows.read(self.first + first, out)?;
        if self.metric == Metric::Cosine {
            out.chunks_exact_mut(self.dim()).for_each(normalize);
        }
        Ok(())
    }
}

/// Qdrant's name of a metric.
pub(crate) fn wire_name(metric: Metric) -> &'static str {
    match metric {
        Metric::Cosine => "Cosine",
        Metric::Dot => "Dot",
        Metric::Euclid => "Euclid",
        Metric::Manhattan => "Manhattan",
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// The rows in the repository.
    pub(crate) fn words(rows_max: usize) -> Dataset {
        let folder = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../tests/data/wordnet-minilm-384"
        );
        Dataset::open(&source(folder, rows_max)).unwrap()
    }

    fn source(data: &str, rows_max: usize) -> Source {
        Source {
            data: String::from(data),
            queries: None,
            metric: Metric::Cosine,
            rows_max,
            queries_max: 100,
            seed: 1,
        }
    }

    #[test]
    fn a_folder_is_read_as_the_whole_set_is() {
        let set = words(50);
        assert_eq!((set.dim(), set.count(), set.query_count()), (384, 50, 100));
        let folder = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../tests/data/wordnet-minilm-384"
        );
        let whole = crate::data::Data::load(Path::new(folder), 50).unwrap();
        let mut rows = vec![0.0; 2 * 384];
        set.read(48, &mut rows).unwrap();
        // The sum of row and dither is taken in another order there.
        let same = rows
            .iter()
            .zip(whole.rows[48..].concat())
            .all(|(a, b)| (a - b).abs() < 1e-6);
        assert!(same);
        assert_eq!(set.query(101), whole.queries[1]);
    }

    #[test]
    fn rows_held_out_as_queries_are_not_loaded() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ten.fvecs");
        let row = |i: u8| {
            [
                &2u32.to_le_bytes()[..],
                &f32::from(i + 1).to_le_bytes(),
                &[0; 4],
            ]
            .concat()
        };
        std::fs::write(&path, (0..10).flat_map(row).collect::<Vec<u8>>()).unwrap();
        let mut source = source(path.to_str().unwrap(), usize::MAX);
        (source.metric, source.queries_max) = (Metric::Euclid, 3);
        let set = Dataset::open(&source).unwrap();
        assert_eq!((set.count(), set.query_count()), (7, 3));
        assert_eq!(
            (set.query(2), set.query(3)),
            (&[3.0, 0.0][..], &[1.0, 0.0][..])
        );
        let mut rows = [0.0; 14];
        set.read(0, &mut rows).unwrap();
        assert_eq!((rows[0], rows[12]), (4.0, 10.0));
    }
}
