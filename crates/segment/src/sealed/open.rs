//! Opening a sealed segment.
//!
//! Heads and ids are verified, since everything else relies on them; of the other files only the
//! header is read, so opening takes no longer for long vectors. `verify` reads the rest.

use std::sync::Arc;

use flatwater_index::Row;
use flatwater_index::codes::record;
use uuid::Uuid;

use super::layout::{self, GraphFacts, SegmentFacts, VectorFacts};
use super::state::SealedState;
use crate::dir::{Directory, Result as DirResult};
use crate::error::SegmentError;
use crate::growing::write::SegmentWriter;
use crate::mapped::MappedRows;
use crate::parts::base::{BASE_WORDS, BasePayload};
use crate::parts::column::{ColumnCodes, VectorColumn};
use crate::parts::graph::FrozenFiles;
use crate::parts::payload_rows::PayloadRowsWriter;
use crate::parts::spec::{SegmentSpec, VectorSpec};
use crate::points::Points;
use crate::points::heads::HEAD_WORDS;
use crate::points::sorted::SortedIds;

/// Opens the segment in `dir` at its recorded state.
///
/// # Errors
/// [`SegmentError::Corrupt`] with file and offset where bytes do not check or the files do not fit one
/// another or the collection; [`SegmentError::Dir`] for missing files.
pub fn open(
    dir: Arc<dyn Directory>,
    id: Uuid,
    spec: Arc<SegmentSpec>,
) -> Result<SegmentWriter, SegmentError> {
    let facts = SegmentFacts::read(dir.as_ref())?;
    let state = SealedState::read(dir.as_ref())?;
    check(&dir, "vectors", spec.vectors.len(), facts.vectors.len())?;
    check(
        &dir,
        "stamped vectors",
        spec.vectors.len(),
        state.stamps.len(),
    )?;
    let points = open_points(&dir, facts.rows)?;
    let columns = (spec.vectors.iter().zip(&facts.vectors).enumerate())
        .map(|(index, (vector, vector_facts))| {
            let opener = ColumnOpener {
                dir: &dir,
                index,
                rows: facts.rows,
            };
            let column = opener.open(vector, vector_facts, &state.stamps[index])?;
            Ok(Arc::new(column))
        })
        .collect::<Result<Vec<_>, SegmentError>>()?;
    let payload = open_payload(&dir, &state, facts.rows)?;
    let mut writer = SegmentWriter::assemble(
        dir,
        id,
        spec,
        Points::Sealed(points),
        columns,
        payload,
        state.seq,
    );
    writer.restore_deleted(&state.deleted);
    *writer.segment().recorded.lock() = state.recorded(facts.rows);
    Ok(writer)
}

fn open_points(dir: &Arc<dyn Directory>, rows: Row) -> Result<SortedIds, SegmentError> {
    let heads = rows_of::<u64>(dir, layout::HEADS.0, layout::HEADS.1, HEAD_WORDS, rows)?;
    let (name, kind) = layout::IDS;
    let ids = MappedRows::<u32>::open(dir.as_ref(), name, kind, 1)?;
    heads.file().verify()?;
    ids.file().verify()?;
    let points = SortedIds::new(heads, ids);
    for row in 0..rows {
        if points.head(row).is_none() {
            return Err(SegmentError::Corrupt {
                file: dir.path().join(layout::HEADS.0).display().to_string(),
                offset: (crate::mapped::HEADER_BYTES + row as usize * HEAD_WORDS * 8) as u64,
                detail: format!("not the head of row {row}"),
            });
        }
    }
    Ok(points)
}

fn open_payload(
    dir: &Arc<dyn Directory>,
    state: &SealedState,
    rows: Row,
) -> Result<PayloadRowsWriter, SegmentError> {
    let (name, kind) = layout::PAYLOAD_ROWS;
    let places = rows_of::<u64>(dir, name, kind, BASE_WORDS, rows)?;
    let (name, kind) = layout::PAYLOAD_JSON;
    let json = MappedRows::<u8>::open(dir.as_ref(), name, kind, 1)?;
    let base = BasePayload::new(places, json);
    let payload = PayloadRowsWriter::open(dir, state.versions, state.blobs_end, Some(base))?;
    let computed = payload.rows().checksum(state.versions);
    check(
        dir,
        "checksum of the payload changes",
        state.versions_crc as usize,
        computed as usize,
    )?;
    Ok(payload)
}

/// The rows of a file, which must be as many as the segment has.
fn rows_of<T: bytemuck::Pod>(
    dir: &Arc<dyn Directory>,
    name: &str,
    kind: crate::file::Kind,
    width: usize,
    rows: Row,
) -> Result<MappedRows<T>, SegmentError> {
    let opened = MappedRows::open(dir.as_ref(), name, kind, width)?;
    check(dir, name, rows as usize, opened.len() as usize)?;
    Ok(opened)
}

/// A [`SegmentError::Corrupt`] unless both numbers are the same.
fn check(
    dir: &Arc<dyn Directory>,
    what: &str,
    expected: usize,
    found: usize,
) -> Result<(), SegmentError> {
    if expected == found {
        return Ok(());
    }
    Err(SegmentError::Corrupt {
        file: dir.path().join(layout::SEGMENT_FILE).display().to_string(),
        offset: 0,
        detail: format!("{what}: expected {expected}, found {found}"),
    })
}

struct ColumnOpener<'a> {
    dir: &'a Arc<dyn Directory>,
    index: usize,
    rows: Row,
}

impl ColumnOpener<'_> {
    fn open(
        &self,
        spec: &VectorSpec,
        facts: &VectorFacts,
        stamps: &[(Row, u64)],
    ) -> Result<VectorColumn, SegmentError> {
        check(self.dir, "dimensions", spec.dim, facts.dim)?;
        let name = layout::originals_name(self.index);
        let originals = rows_of(self.dir, &name, layout::ORIGINALS_KIND, spec.dim, self.rows)?;
        let codes = match &facts.center {
            Some(center) => {
                check(self.dir, "dimensions of the centre", spec.dim, center.len())?;
                self.codes(spec, center)?
            }
            None => None,
        };
        let graph = facts.graph.map(|graph| self.graph(graph)).transpose()?;
        let covered = graph.as_ref().map_or(self.rows, |g| g.graph().rows_len());
        check(
            self.dir,
            "rows of the graph",
            self.rows as usize,
            covered as usize,
        )?;
        Ok(VectorColumn::sealed(
            spec.clone(),
            originals,
            codes,
            graph,
            stamps,
        ))
    }

    fn codes(
        &self,
        spec: &VectorSpec,
        center: &[f32],
    ) -> Result<Option<ColumnCodes>, SegmentError> {
        let (width8, width1) = (record::stride8(spec.dim), record::stride1(spec.dim));
        let (name8, name1) = (
            layout::codes8_name(self.index),
            layout::codes1_name(self.index),
        );
        let codes8 = rows_of(self.dir, &name8, layout::CODES8_KIND, width8, self.rows)?;
        let codes1 = rows_of(self.dir, &name1, layout::CODES1_KIND, width1, self.rows)?;
        Ok(ColumnCodes::sealed(spec, center, codes8, codes1))
    }

    fn graph(&self, facts: GraphFacts) -> Result<FrozenFiles, SegmentError> {
        let files = self.graph_files()?;
        let GraphFacts {
            m,
            ef_construct,
            entry,
        } = facts;
        FrozenFiles::new(m, ef_construct, entry, files.clone()).map_err(|bad| {
            // Which file it is, its checksum tells.
            let damaged = files.iter().find_map(|rows| rows.file().verify().err());
            damaged.map_or_else(
                || SegmentError::Corrupt {
                    file: self
                        .dir
                        .path()
                        .join(layout::SEGMENT_FILE)
                        .display()
                        .to_string(),
                    offset: 0,
                    detail: bad.to_string(),
                },
                SegmentError::from,
            )
        })
    }

    fn graph_files(&self) -> DirResult<[MappedRows<u32>; 4]> {
        let [base, start, upper, parts] = layout::graph_names(self.index);
        let kinds = layout::GRAPH_KINDS;
        let open = |name: &str, kind| MappedRows::<u32>::open(self.dir.as_ref(), name, kind, 1);
        Ok([
            open(&base, kinds[0])?,
            open(&start, kinds[1])?,
            open(&upper, kinds[2])?,
            open(&parts, kinds[3])?,
        ])
    }
}
