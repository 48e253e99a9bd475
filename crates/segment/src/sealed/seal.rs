//! Writing the files of a sealed segment from a view of a growing one.
//!
//! Rows keep their numbers, dead ones included, so that stamps, graph and chains of versions carry
//! over as they are; dropping dead rows is vacuum's work.

use std::sync::Arc;

use bytemuck::Pod;
use flatwater_index::Row;

use super::files;
use super::layout::{self, GraphFacts, SegmentFacts, VectorFacts};
use super::state::SealedState;
use crate::dir::Directory;
use crate::error::SegmentError;
use crate::file::Kind;
use crate::growing::checkpoint::{deleted_in, stamps_in};
use crate::mapped::MappedWriter;
use crate::parts::column::VectorColumn;
use crate::parts::graph::Graph;
use crate::points::heads::HEAD_WORDS;
use crate::rows::Rows;
use crate::view::SegmentView;

/// Rows copied between two looks at the cancel flag: some milliseconds of work.
const ROWS_PER_LOOK: Row = 4096;

/// Why no segment came of it.
#[derive(Debug, thiserror::Error)]
pub enum SealError {
    /// The caller asked to stop.
    #[error("cancelled")]
    Cancelled,
    /// Files could not be written, or stored bytes do not check.
    #[error(transparent)]
    Segment(#[from] SegmentError),
}

impl From<crate::dir::DirError> for SealError {
    fn from(error: crate::dir::DirError) -> Self {
        Self::Segment(error.into())
    }
}

/// Writes the sealed form of `view` to `dir`, which is empty. Everything in it is durable when this
/// returns; the entry of `dir` itself is the caller's.
///
/// The graphs are taken as far as they cover the view's rows; the caller seals when they cover all. A
/// vector whose codes were never made (fewer rows than their centre needs) is sealed without codes and
/// graph.
///
/// # Errors
/// [`SealError`]; what was written is left for the caller to remove.
///
/// Blocks: for a copy of the whole segment and its sync; asks `cancel` every few milliseconds.
pub fn seal(
    view: &SegmentView,
    dir: &Arc<dyn Directory>,
    cancel: &dyn Fn() -> bool,
) -> Result<(), SealError> {
    let sealer = Sealer { view, dir, cancel };
    sealer.heads()?;
    sealer.ids()?;
    sealer.payload()?;
    let columns = view.segment().columns().iter().enumerate();
    let vectors = columns
        .map(|(index, column)| sealer.vector(index, column))
        .collect::<Result<_, _>>()?;
    let state = SealedState {
        deleted: deleted_in(view),
        stamps: (view.segment().columns().iter())
            .map(|column| stamps_in(view, column))
            .collect(),
        ..SealedState::untouched(view.watermark())
    };
    state.write(dir.as_ref())?;
    let facts = SegmentFacts {
        rows: view.rows_len(),
        seq: view.watermark(),
        vectors,
    };
    dir.sync()?;
    dir.write_atomic(layout::SEGMENT_FILE, &facts.encode())?;
    Ok(())
}

struct Sealer<'a> {
    view: &'a SegmentView,
    dir: &'a Arc<dyn Directory>,
    cancel: &'a dyn Fn() -> bool,
}

impl Sealer<'_> {
    fn look(&self, row: Row) -> Result<(), SealError> {
        if row.is_multiple_of(ROWS_PER_LOOK) && (self.cancel)() {
            return Err(SealError::Cancelled);
        }
        Ok(())
    }

    fn heads(&self) -> Result<(), SealError> {
        let rows = self.view.rows_len();
        let (name, kind) = layout::HEADS;
        let mut file = MappedWriter::create(self.dir, name, kind, HEAD_WORDS, rows.into())?;
        for row in 0..rows {
            self.look(row)?;
            file.push(&self.view.segment().head(row).encode());
        }
        Ok(file.finish()?)
    }

    /// The newest row of each id that the view holds, live or not: a replayed operation must find the
    /// `seq` of a deleted one too.
    fn ids(&self) -> Result<(), SealError> {
        let segment = self.view.segment();
        let mut newest: Vec<Row> = Vec::new();
        segment.points().walk(None, |_, row| {
            let mut row = Some(row);
            while row.is_some_and(|row| row >= self.view.rows_len()) {
                row = row.and_then(|row| segment.head(row).previous);
            }
            newest.extend(row);
            true
        });
        let (name, kind) = layout::IDS;
        let mut file = MappedWriter::create(self.dir, name, kind, 1, newest.len() as u64)?;
        file.push(&newest);
        Ok(file.finish()?)
    }

    fn payload(&self) -> Result<(), SealError> {
        let rows = (0..self.view.rows_len()).map(|row| (self.view, row));
        files::write_payload(self.dir, rows, |row| self.look(row))
    }

    fn vector(&self, index: usize, column: &VectorColumn) -> Result<VectorFacts, SealError> {
        let rows = self.view.rows_len();
        let name = layout::originals_name(index);
        self.copy(&name, layout::ORIGINALS_KIND, column.originals())?;
        let codes = column.codes().filter(|codes| {
            let coded = codes.ready().map_or(0, |(_, coded)| coded);
            coded >= rows && rows > 0
        });
        if let Some(codes) = codes {
            self.copy(
                &layout::codes8_name(index),
                layout::CODES8_KIND,
                codes.codes8(),
            )?;
            self.copy(
                &layout::codes1_name(index),
                layout::CODES1_KIND,
                codes.codes1(),
            )?;
        }
        let is_walked = codes.is_some() || column.codes().is_none();
        let graph = column.graph().filter(|_| is_walked);
        Ok(VectorFacts {
            dim: column.spec().dim,
            center: codes.and_then(|codes| codes.center()).map(<[f32]>::to_vec),
            graph: graph.map(|graph| self.graph(index, graph)).transpose()?,
        })
    }

    fn graph(&self, index: usize, graph: &Graph) -> Result<GraphFacts, SealError> {
        let parts = match graph {
            Graph::Growing(graph) => graph.freeze(),
            Graph::Frozen(files) => files.parts(),
        };
        files::write_graph(self.dir, index, &parts, self.cancel)?;
        Ok(GraphFacts {
            m: parts.m,
            ef_construct: graph.ef_construct(),
            entry: parts.entry,
        })
    }

    /// Copies the rows of the view.
    fn copy<T: Pod>(&self, name: &str, kind: Kind, rows: &Rows<T>) -> Result<(), SealError> {
        let (len, width) = (self.view.rows_len(), rows.width());
        let mut file = MappedWriter::create(self.dir, name, kind, width, len.into())?;
        let mut row = 0;
        while row < len {
            self.look(0)?;
            let (values, run) = rows.run(row);
            let run = run.min(len - row).min(ROWS_PER_LOOK);
            if run == 0 {
                // The view's rows are published: a run is never empty before its end.
                return Err(SegmentError::Full { rows: row }.into());
            }
            file.push(&values[..run as usize * width]);
            row += run;
        }
        Ok(file.finish()?)
    }
}
