//! The graph of one vector: growing in memory, or frozen in files.

use flatwater_index::Row;
use flatwater_index::hnsw::{BadGraph, FrozenGraph, GraphParts, Hnsw};

use crate::mapped::{MappedFile, MappedRows};

/// A graph that can be searched.
#[derive(Debug)]
pub enum Graph {
    /// Takes rows while it is searched.
    Growing(Hnsw),
    /// Finished.
    Frozen(FrozenFiles),
}

/// The arrays of a frozen graph in mapped files; see [`GraphParts`] for their shapes.
#[derive(Debug)]
pub struct FrozenFiles {
    m: usize,
    ef_construct: Option<usize>,
    entry: Option<(Row, usize)>,
    base: MappedRows<u32>,
    upper_start: MappedRows<u32>,
    upper: MappedRows<u32>,
    shapes: MappedRows<u32>,
}

impl FrozenFiles {
    /// A graph over opened files.
    ///
    /// # Errors
    /// [`BadGraph`] where their lengths contradict one another. Links are not looked at.
    pub fn new(
        m: usize,
        ef_construct: Option<usize>,
        entry: Option<(Row, usize)>,
        [base, upper_start, upper, shapes]: [MappedRows<u32>; 4],
    ) -> Result<Self, BadGraph> {
        let files = Self {
            m,
            ef_construct,
            entry,
            base,
            upper_start,
            upper,
            shapes,
        };
        files.open().map(|_| ())?;
        Ok(files)
    }

    fn open(&self) -> Result<FrozenGraph<'_>, BadGraph> {
        FrozenGraph::new(
            self.m,
            self.entry,
            all(&self.base),
            all(&self.upper_start),
            all(&self.upper),
        )
    }

    /// The graph where it lies.
    #[must_use]
    pub fn graph(&self) -> FrozenGraph<'_> {
        self.open().expect("checked when the files were opened")
    }

    /// A copy in memory.
    #[must_use]
    pub fn parts(&self) -> GraphParts {
        GraphParts {
            m: self.m,
            rows: self.graph().rows_len(),
            entry: self.entry,
            base: all(&self.base).to_vec(),
            upper_start: all(&self.upper_start).to_vec(),
            upper: all(&self.upper).to_vec(),
            shapes: all(&self.shapes).to_vec(),
        }
    }

    /// The files, for verification.
    #[must_use]
    pub fn files(&self) -> [&MappedFile; 4] {
        [&self.base, &self.upper_start, &self.upper, &self.shapes].map(MappedRows::file)
    }
}

fn all(rows: &MappedRows<u32>) -> &[u32] {
    rows.slice(0, rows.len())
}

impl Graph {
    /// Rows that the graph covers.
    #[must_use]
    pub fn indexed_len(&self) -> Row {
        match self {
            Self::Growing(graph) => graph.indexed_len(),
            Self::Frozen(files) => files.graph().rows_len(),
        }
    }

    /// Links a row asks for.
    #[must_use]
    pub fn m(&self) -> usize {
        match self {
            Self::Growing(graph) => graph.params().m,
            Self::Frozen(files) => files.m,
        }
    }

    /// Width of the searches that built it, where that is known.
    #[must_use]
    pub fn ef_construct(&self) -> Option<usize> {
        match self {
            Self::Growing(graph) => Some(graph.params().ef_construct),
            Self::Frozen(files) => files.ef_construct,
        }
    }

    /// Bytes of memory that it takes; a frozen one lies in its files.
    #[must_use]
    pub fn heap_bytes(&self) -> u64 {
        match self {
            Self::Growing(graph) => graph.heap_bytes(),
            Self::Frozen(_) => 0,
        }
    }

    /// Bytes of its files that are in memory now.
    #[must_use]
    pub fn resident_bytes(&self) -> u64 {
        match self {
            Self::Growing(_) => 0,
            Self::Frozen(files) => files.files().map(MappedFile::resident_bytes).iter().sum(),
        }
    }

    /// The graph that takes rows, if it is one.
    #[must_use]
    pub fn growing(&self) -> Option<&Hnsw> {
        match self {
            Self::Growing(graph) => Some(graph),
            Self::Frozen(_) => None,
        }
    }
}
