//! The saved links of a growing segment's graphs, so that a restart need not insert all rows again.
//!
//! 1. Whenever the graph of a vector has grown by half since the last time, and at a graceful stop,
//!    its links are written to one checksummed file, replaced atomically.
//! 2. At open the rows that the checkpoint records come back with their links; links to later rows are
//!    dropped. So a crash loses at most a third of the graph; the scan serves until it is rebuilt.
//! 3. A file that does not check, or that is about other rows, is removed: the graph is built anew.
//!    One that reaches past the recorded rows is replaced by what was kept of it before anything is
//!    written, since rows of the same numbers will be others from now on.

use std::sync::Arc;

use flatwater_index::Row;
use flatwater_index::hnsw::{GraphParts, Hnsw, Params};

use crate::chunk::ChunkArray;
use crate::dir::Directory;
use crate::error::SegmentError;
use crate::file::codec::Encoder;
use crate::file::{self, Damage, Kind};
use crate::parts::Segment;
use crate::parts::graph::Graph;
use crate::parts::spec::{SegmentSpec, VectorSpec};
use crate::points::Points;

const KIND: Kind = *b"LINK";
const VERSION: u32 = 1;

fn file_name(column: usize) -> String {
    format!("links{column}")
}

/// What a links file says.
#[derive(Debug, PartialEq)]
struct SavedLinks {
    seed: u64,
    /// Checksum of the heads of the covered rows: links of other rows are noticed by it.
    heads_crc: u32,
    parts: GraphParts,
}

impl SavedLinks {
    fn of(graph: &Hnsw, heads: &ChunkArray<u64>) -> Self {
        let parts = graph.freeze();
        Self {
            seed: graph.params().seed,
            heads_crc: heads.checksum(parts.rows),
            parts,
        }
    }

    fn encode(&self) -> Vec<u8> {
        let parts = &self.parts;
        let mut out = Encoder::with_capacity(parts.base.len() * 5);
        out.u32(parts.rows);
        out.u64(parts.m as u64);
        out.u64(self.seed);
        out.u32(self.heads_crc);
        out.bool(parts.entry.is_some());
        if let Some((row, level)) = parts.entry {
            out.u32(row);
            out.u64(level as u64);
        }
        out.slice(&parts.base);
        out.slice(&parts.upper_start);
        out.slice(&parts.upper);
        out.slice(&parts.shapes);
        file::encode(KIND, VERSION, out.as_bytes())
    }

    fn decode(bytes: &[u8]) -> Result<Self, Damage> {
        let mut input = file::open(KIND, VERSION, bytes)?;
        let rows = input.u32()?;
        let m = input.u64()? as usize;
        let seed = input.u64()?;
        let heads_crc = input.u32()?;
        let entry = if input.bool()? {
            Some((input.u32()?, input.u64()? as usize))
        } else {
            None
        };
        let parts = GraphParts {
            m,
            rows,
            entry,
            base: input.vec()?,
            upper_start: input.vec()?,
            upper: input.vec()?,
            shapes: input.vec()?,
        };
        input.finish()?;
        Ok(Self {
            seed,
            heads_crc,
            parts,
        })
    }
}

impl Segment {
    /// Whether the graph of vector `column` has grown by half since its links were saved.
    #[must_use]
    pub fn wants_links_saved(&self, column: usize) -> bool {
        self.columns.get(column).is_some_and(|column| {
            let (indexed, saved) = (column.indexed_len(), *column.links_saved().lock());
            !self.is_sealed() && u64::from(indexed) * 2 >= u64::from(saved) * 3 && indexed > saved
        })
    }

    /// Saves the links of vector `column` as they are now, unless that was done before. Waits for the
    /// batch that is being inserted; searches go on.
    ///
    /// # Errors
    /// [`SegmentError::Dir`]; the links saved before stand then.
    pub fn save_links(&self, column: usize) -> Result<(), SegmentError> {
        let (Some(shared), Points::Growing { heads, .. }) =
            (self.columns.get(column), &self.points)
        else {
            return Ok(());
        };
        let Some(graph) = shared.graph().and_then(Graph::growing) else {
            return Ok(());
        };
        let mut saved = shared.links_saved().lock();
        if graph.indexed_len() == *saved {
            return Ok(());
        }
        let links = SavedLinks::of(graph, heads);
        self.dir.write_atomic(&file_name(column), &links.encode())?;
        *saved = links.parts.rows;
        Ok(())
    }
}

/// Calls `visit` with the damage of each links file; changes nothing.
pub(crate) fn verify(
    dir: &Arc<dyn Directory>,
    spec: &SegmentSpec,
    visit: &mut dyn FnMut(SegmentError),
) {
    for column in 0..spec.vectors.len() {
        let name = file_name(column);
        let check = || -> Result<(), SegmentError> {
            if dir.exists(&name)? {
                SavedLinks::decode(&dir.read(&name)?).map_err(|damage| SegmentError::Corrupt {
                    file: dir.path().join(&name).display().to_string(),
                    offset: damage.offset,
                    detail: damage.to_string(),
                })?;
            }
            Ok(())
        };
        if let Err(error) = check() {
            visit(error);
        }
    }
}

/// The saved graphs of a segment of which `rows` rows were recorded, for each vector.
///
/// # Errors
/// [`SegmentError::Dir`] where a file can be neither read nor removed.
pub(super) fn restore(
    dir: &Arc<dyn Directory>,
    spec: &SegmentSpec,
    heads: &ChunkArray<u64>,
    rows_max: Row,
) -> Result<Vec<Option<Hnsw>>, SegmentError> {
    let vectors = spec.vectors.iter().enumerate();
    vectors
        .map(|(column, vector)| restore_one(dir, column, vector, heads, rows_max))
        .collect()
}

fn restore_one(
    dir: &Arc<dyn Directory>,
    column: usize,
    vector: &VectorSpec,
    heads: &ChunkArray<u64>,
    rows_max: Row,
) -> Result<Option<Hnsw>, SegmentError> {
    let name = file_name(column);
    if !dir.exists(&name)? {
        return Ok(None);
    }
    let bytes = dir.read(&name)?;
    let usable = vector
        .hnsw
        .and_then(|params| usable(&bytes, params, heads, rows_max));
    match usable {
        None => {
            dir.remove(&name)?;
            dir.sync()?;
            Ok(None)
        }
        Some((graph, rows)) => {
            if graph.indexed_len() < rows {
                dir.write_atomic(&name, &SavedLinks::of(&graph, heads).encode())?;
            }
            Ok(Some(graph))
        }
    }
}

/// The graph in a links file and the rows that it covered there; none where the file is of no use.
fn usable(
    bytes: &[u8],
    params: Params,
    heads: &ChunkArray<u64>,
    rows_max: Row,
) -> Option<(Hnsw, Row)> {
    let saved = SavedLinks::decode(bytes).ok()?;
    let rows = saved.parts.rows;
    // The params of a graph are clamped, those of the spec need not be.
    let is_ours = saved.seed == params.seed
        && (rows > heads.len() || heads.checksum(rows) == saved.heads_crc);
    if !is_ours {
        return None;
    }
    let graph = Hnsw::restore(params, rows_max, &saved.parts, heads.len()).ok()?;
    Some((graph, rows))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn saved_links_read_back_and_any_changed_byte_is_noticed() {
        let saved = SavedLinks {
            seed: 7,
            heads_crc: 9,
            parts: GraphParts {
                m: 2,
                rows: 2,
                entry: Some((1, 1)),
                base: vec![1, Row::MAX, Row::MAX, Row::MAX, 0, 5, 6, 7],
                upper_start: vec![0, 0, 1],
                upper: vec![Row::MAX, Row::MAX],
                shapes: vec![1, 1],
            },
        };
        let bytes = saved.encode();
        assert_eq!(SavedLinks::decode(&bytes).unwrap(), saved);
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 4;
            assert!(SavedLinks::decode(&damaged).is_err(), "byte {at}");
        }
    }
}
