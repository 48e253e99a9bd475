//! One named vector of a segment: originals, codes and graph, row by row. In a growing segment:
//!
//! 1. The writer appends the original of every row (zeros where the row has no such vector).
//! 2. Once [`CENTER_ROWS`] rows are there, their mean becomes the centre of the codes and the rows
//!    get their codes; from then on each row gets them as it arrives.
//! 3. Background threads insert coded rows into the graph; `indexed_len` says how far they are.

use std::sync::{Arc, OnceLock};

use flatwater_index::Row;
use flatwater_index::codes::{Encoder, record};
use flatwater_index::hnsw::Hnsw;
use parking_lot::Mutex;

use super::graph::{FrozenFiles, Graph};
use super::spec::VectorSpec;
use crate::chunk::{ChunkWriter, StampPages};
use crate::dir::Directory;
use crate::error::SegmentError;
use crate::mapped::MappedRows;
use crate::rows::Rows;

/// Rows whose mean is the centre of the codes (design, section 3).
pub const CENTER_ROWS: Row = 1024;

/// Stamp of a row that never had a vector of this name.
pub(crate) const ABSENT: u64 = 0;

/// Readers' side of one vector.
#[derive(Debug)]
pub struct VectorColumn {
    spec: VectorSpec,
    originals: Rows<f32>,
    stamps: StampPages,
    codes: Option<ColumnCodes>,
    graph: Option<Graph>,
    /// Rows whose links are saved in a file.
    links_saved: Mutex<Row>,
}

/// Codes of one vector.
#[derive(Debug)]
pub struct ColumnCodes {
    encoder: OnceLock<Centred>,
    codes8: Rows<u8>,
    codes1: Rows<u8>,
}

/// An encoder and the centre that it was made with.
#[derive(Debug)]
struct Centred {
    encoder: Encoder,
    center: Vec<f32>,
}

impl Centred {
    /// None where the vector has no codes.
    fn new(spec: &VectorSpec, center: &[f32]) -> Option<Self> {
        Some(Self {
            encoder: spec.encoder(center)?,
            center: center.to_vec(),
        })
    }
}

impl ColumnCodes {
    /// Codes in finished files, made with `center`; none where the vector has none.
    pub(crate) fn sealed(
        spec: &VectorSpec,
        center: &[f32],
        codes8: MappedRows<u8>,
        codes1: MappedRows<u8>,
    ) -> Option<Self> {
        Some(Self {
            encoder: OnceLock::from(Centred::new(spec, center)?),
            codes8: Rows::Sealed(codes8),
            codes1: Rows::Sealed(codes1),
        })
    }

    /// The centre of the codes, once fixed.
    #[must_use]
    pub fn center(&self) -> Option<&[f32]> {
        self.encoder.get().map(|centred| centred.center.as_slice())
    }

    /// The encoder and the number of rows that have codes, once the centre is fixed.
    #[must_use]
    pub fn ready(&self) -> Option<(&Encoder, Row)> {
        let rows = self.codes8.len().min(self.codes1.len());
        self.encoder.get().map(|centred| (&centred.encoder, rows))
    }

    /// 8-bit records.
    #[must_use]
    pub fn codes8(&self) -> &Rows<u8> {
        &self.codes8
    }

    /// 1-bit records.
    #[must_use]
    pub fn codes1(&self) -> &Rows<u8> {
        &self.codes1
    }
}

impl VectorColumn {
    /// A column in finished files.
    pub(crate) fn sealed(
        spec: VectorSpec,
        originals: MappedRows<f32>,
        codes: Option<ColumnCodes>,
        graph: Option<FrozenFiles>,
        stamps: &[(Row, u64)],
    ) -> Self {
        let column = Self {
            spec,
            originals: Rows::Sealed(originals),
            stamps: StampPages::new(),
            codes,
            graph: graph.map(Graph::Frozen),
            links_saved: Mutex::new(0),
        };
        for &(row, stamp) in stamps {
            column.stamps.set(row, stamp);
        }
        column
    }

    /// Marks a row as without this vector from `seq` on, unless it is already.
    pub(crate) fn stamp(&self, row: Row, seq: u64) {
        if self.stamps.get(row) == u64::MAX {
            self.stamps.set(row, seq);
        }
    }

    /// Rows whose links are saved; its lock lets in one save at a time.
    pub(crate) fn links_saved(&self) -> &Mutex<Row> {
        &self.links_saved
    }

    /// Name, metric and settings.
    #[must_use]
    pub fn spec(&self) -> &VectorSpec {
        &self.spec
    }

    /// Original vectors.
    #[must_use]
    pub fn originals(&self) -> &Rows<f32> {
        &self.originals
    }

    /// Codes, where the metric and the dimensions have them.
    #[must_use]
    pub fn codes(&self) -> Option<&ColumnCodes> {
        self.codes.as_ref()
    }

    /// The graph, unless `m` is 0.
    #[must_use]
    pub fn graph(&self) -> Option<&Graph> {
        self.graph.as_ref()
    }

    /// Whether a row has this vector for a view up to `watermark`.
    #[must_use]
    pub fn has(&self, row: Row, watermark: u64) -> bool {
        self.stamps.get(row) > watermark
    }

    /// Whether every row has this vector, as far as the stamps know.
    #[must_use]
    pub fn is_dense(&self) -> bool {
        self.stamps.iter().next().is_none()
    }

    /// Rows without this vector, with the `seq` from which on they are without it.
    pub fn stamped_rows(&self) -> impl Iterator<Item = (Row, u64)> + '_ {
        self.stamps.iter()
    }

    /// Bytes of memory that the rows without this vector take.
    #[must_use]
    pub fn stamps_bytes(&self) -> u64 {
        self.stamps.heap_bytes()
    }

    /// Rows that the graph could take now: those with codes, or all where there are no codes.
    #[must_use]
    pub fn graph_available(&self) -> Row {
        match &self.codes {
            Some(codes) => codes.ready().map_or(0, |(_, rows)| rows),
            None => self.originals.len(),
        }
    }

    /// Rows that the graph covers.
    #[must_use]
    pub fn indexed_len(&self) -> Row {
        self.graph.as_ref().map_or(0, Graph::indexed_len)
    }
}

/// The writer's side of one vector.
#[derive(Debug)]
pub(crate) struct ColumnWriter {
    column: Arc<VectorColumn>,
    originals: ChunkWriter<f32>,
    codes: Option<CodeWriters>,
    zeros: Vec<f32>,
}

#[derive(Debug)]
struct CodeWriters {
    codes8: ChunkWriter<u8>,
    codes1: ChunkWriter<u8>,
    record8: Vec<u8>,
    record1: Vec<u8>,
}

/// What a checkpoint records of a column.
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnState {
    /// Rows of originals.
    pub rows: Row,
    /// Rows with codes.
    pub code_rows: Row,
    /// Centre of the codes, once fixed.
    pub center: Option<Vec<f32>>,
    /// Rows without the vector.
    pub stamps: Vec<(Row, u64)>,
}

impl ColumnState {
    pub(crate) fn empty() -> Self {
        Self {
            rows: 0,
            code_rows: 0,
            center: None,
            stamps: Vec::new(),
        }
    }
}

impl ColumnWriter {
    /// Opens the files of column `index` at `state`, or creates them if `state` has no rows. `graph` is
    /// what was saved of its graph.
    pub(crate) fn open(
        dir: &Arc<dyn Directory>,
        index: usize,
        spec: VectorSpec,
        rows_max: Row,
        state: &ColumnState,
        graph: Option<Hnsw>,
    ) -> Result<Self, SegmentError> {
        let originals = ChunkWriter::open(
            Arc::clone(dir),
            &format!("vector{index}"),
            spec.dim,
            state.rows,
        )?;
        let codes = spec
            .rotation
            .is_some()
            .then(|| CodeWriters::open(dir, index, spec.dim, state.code_rows))
            .transpose()?;
        let shared_codes = codes.as_ref().map(|writers| ColumnCodes {
            encoder: OnceLock::new(),
            codes8: Rows::Growing(writers.codes8.array()),
            codes1: Rows::Growing(writers.codes1.array()),
        });
        let saved = graph.as_ref().map_or(0, Hnsw::indexed_len);
        let graph = match graph {
            Some(restored) => Some(restored),
            None => spec.hnsw.map(|params| Hnsw::new(params, rows_max)),
        };
        let zeros = vec![0.0; spec.dim];
        let column = Arc::new(VectorColumn {
            spec,
            originals: Rows::Growing(originals.array()),
            stamps: StampPages::new(),
            codes: shared_codes,
            links_saved: Mutex::new(saved),
            graph: graph.map(Graph::Growing),
        });
        for &(row, stamp) in &state.stamps {
            column.stamps.set(row, stamp);
        }
        let writer = Self {
            column,
            originals,
            codes,
            zeros,
        };
        if let Some(center) = &state.center {
            writer.fix_center(center);
        }
        Ok(writer)
    }

    pub(crate) fn column(&self) -> Arc<VectorColumn> {
        Arc::clone(&self.column)
    }

    pub(crate) fn reserve(&mut self, rows: Row) -> Result<(), SegmentError> {
        self.originals.reserve(rows)?;
        if let Some(codes) = &mut self.codes {
            // The rows that wait for the centre need room too.
            let waiting = self.column.originals.len() - codes.codes8.array().len();
            codes.codes8.reserve(rows + waiting)?;
            codes.codes1.reserve(rows + waiting)?;
        }
        Ok(())
    }

    /// Appends the vector of the next row. `rotated` is the rotated original, where the caller has
    /// made it already.
    pub(crate) fn push(&mut self, row: Row, vector: Option<&[f32]>, rotated: Option<&[f32]>) {
        if vector.is_none() {
            self.column.stamps.set(row, ABSENT);
        }
        let original = vector.unwrap_or(&self.zeros);
        self.originals.push(original);
        let (Some(writers), Some(codes)) = (&mut self.codes, &self.column.codes) else {
            return;
        };
        if let Some(Centred { encoder, .. }) = codes.encoder.get() {
            match rotated {
                Some(rotated) => writers.push(encoder, rotated),
                None => writers.push(encoder, &encoder.rotate(original)),
            }
        }
    }

    /// Makes the pushed rows visible to readers whose view holds them.
    pub(crate) fn publish(&mut self) {
        self.originals.publish();
        if let Some(writers) = &mut self.codes {
            writers.codes8.publish();
            writers.codes1.publish();
        }
        if self.column.originals.len() >= CENTER_ROWS {
            self.encode_waiting_rows();
        }
    }

    /// Fixes the centre, if that is not done, and encodes the rows that waited for it.
    fn encode_waiting_rows(&mut self) {
        let Some(codes) = &self.column.codes else {
            return;
        };
        if codes.encoder.get().is_none() {
            self.fix_center(&self.mean_of_first_rows());
        }
        let (Some(Centred { encoder, .. }), Some(rotation), Some(writers)) = (
            codes.encoder.get(),
            &self.column.spec.rotation,
            &mut self.codes,
        ) else {
            return;
        };
        let mut rotated = vec![0.0; self.column.spec.dim];
        for row in writers.codes8.array().len()..self.column.originals.len() {
            rotated.copy_from_slice(self.column.originals.row(row));
            rotation.rotate(&mut rotated);
            writers.push(encoder, &rotated);
        }
        writers.codes8.publish();
        writers.codes1.publish();
    }

    fn fix_center(&self, center: &[f32]) {
        if let Some(codes) = &self.column.codes
            && let Some(centred) = Centred::new(&self.column.spec, center)
        {
            codes.encoder.get_or_init(|| centred);
        }
    }

    /// Mean of those of the first [`CENTER_ROWS`] rows that have this vector; zero if none has.
    fn mean_of_first_rows(&self) -> Vec<f32> {
        let rows = (0..CENTER_ROWS).filter(|&row| self.column.has(row, ABSENT));
        let originals = rows.map(|row| self.column.originals.row(row));
        mean_of(self.column.spec.dim, originals)
    }
}

/// Mean of `rows`, each of `dim` values; zero if there are none.
pub(crate) fn mean_of<'a>(dim: usize, rows: impl Iterator<Item = &'a [f32]>) -> Vec<f32> {
    let mut sums = vec![0.0f64; dim];
    let mut count = 0u32;
    for row in rows {
        count += 1;
        for (sum, x) in sums.iter_mut().zip(row) {
            *sum += f64::from(*x);
        }
    }
    let count = f64::from(count.max(1));
    sums.iter().map(|sum| (sum / count) as f32).collect()
}

impl CodeWriters {
    fn open(
        dir: &Arc<dyn Directory>,
        index: usize,
        dim: usize,
        rows: Row,
    ) -> Result<Self, SegmentError> {
        let (width8, width1) = (record::stride8(dim), record::stride1(dim));
        Ok(Self {
            codes8: ChunkWriter::open(Arc::clone(dir), &format!("codes8-{index}"), width8, rows)?,
            codes1: ChunkWriter::open(Arc::clone(dir), &format!("codes1-{index}"), width1, rows)?,
            record8: vec![0; width8],
            record1: vec![0; width1],
        })
    }

    fn push(&mut self, encoder: &Encoder, rotated: &[f32]) {
        encoder.encode8(rotated, &mut self.record8);
        encoder.encode1(rotated, &mut self.record1);
        self.codes8.push(&self.record8);
        self.codes1.push(&self.record1);
    }
}
