//! Names and kinds of the files, and the small file that describes them.

use flatwater_index::Row;

use crate::dir::Directory;
use crate::error::SegmentError;
use crate::file::codec::{Decoder, Encoder};
use crate::file::{self, Damage, Kind};
use crate::ids::SeqNo;

/// Describes the segment; a directory with this file is a sealed segment.
pub(super) const SEGMENT_FILE: &str = "segment";
const SEGMENT_KIND: Kind = *b"SEAL";
/// Version 1 did not say with which `ef_construct` a graph was built.
const VERSION: u32 = 2;

pub(super) const HEADS: (&str, Kind) = ("sealed-heads", *b"HEAD");
pub(super) const IDS: (&str, Kind) = ("sealed-ids", *b"IDNO");
pub(super) const PAYLOAD_ROWS: (&str, Kind) = ("sealed-payload-rows", *b"PAYR");
pub(super) const PAYLOAD_JSON: (&str, Kind) = ("sealed-payload-json", *b"PAYJ");

pub(super) const ORIGINALS_KIND: Kind = *b"VECF";
pub(super) const CODES8_KIND: Kind = *b"COD8";
pub(super) const CODES1_KIND: Kind = *b"COD1";
/// Kinds of the four arrays of a graph, in the order of [`graph_names`].
pub(super) const GRAPH_KINDS: [Kind; 4] = [*b"GRF0", *b"GRFS", *b"GRFU", *b"GRFB"];

pub(super) fn originals_name(vector: usize) -> String {
    format!("sealed-vector{vector}")
}

pub(super) fn codes8_name(vector: usize) -> String {
    format!("sealed-codes8-{vector}")
}

pub(super) fn codes1_name(vector: usize) -> String {
    format!("sealed-codes1-{vector}")
}

/// Level-0 lists, places of the upper lists, upper lists, and the builder's lengths of the parts.
pub(super) fn graph_names(vector: usize) -> [String; 4] {
    ["base", "start", "upper", "parts"].map(|array| format!("sealed-graph{vector}-{array}"))
}

/// What the small file says.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct SegmentFacts {
    /// Rows, dead ones too.
    pub(super) rows: Row,
    /// Watermark of the view that was sealed.
    pub(super) seq: SeqNo,
    /// Vectors, in the order of the spec.
    pub(super) vectors: Vec<VectorFacts>,
}

/// What it says of one vector.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct VectorFacts {
    /// Dimensions.
    pub(super) dim: usize,
    /// Centre of the codes, where there are codes.
    pub(super) center: Option<Vec<f32>>,
    /// The graph, where there is one.
    pub(super) graph: Option<GraphFacts>,
}

/// What it says of a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct GraphFacts {
    /// Links a row asks for.
    pub(super) m: usize,
    /// Width of the searches that built it, where that is known.
    pub(super) ef_construct: Option<usize>,
    /// Entry point and its level.
    pub(super) entry: Option<(Row, usize)>,
}

impl SegmentFacts {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = Encoder::new();
        out.u32(self.rows);
        out.u64(self.seq);
        out.u64(self.vectors.len() as u64);
        for vector in &self.vectors {
            out.u64(vector.dim as u64);
            out.bool(vector.center.is_some());
            if let Some(center) = &vector.center {
                out.slice(center);
            }
            out.bool(vector.graph.is_some());
            if let Some(graph) = &vector.graph {
                out.u64(graph.m as u64);
                out.u64(graph.ef_construct.unwrap_or_default() as u64);
                out.bool(graph.entry.is_some());
                if let Some((row, level)) = graph.entry {
                    out.u32(row);
                    out.u64(level as u64);
                }
            }
        }
        file::encode(SEGMENT_KIND, VERSION, out.as_bytes())
    }

    fn decode(bytes: &[u8]) -> Result<Self, Damage> {
        let (version, mut input) = file::open_since(SEGMENT_KIND, 1..=VERSION, bytes)?;
        let rows = input.u32()?;
        let seq = input.u64()?;
        let vectors = (0..input.count(10)?)
            .map(|_| {
                Ok(VectorFacts {
                    dim: input.u64()? as usize,
                    center: if input.bool()? {
                        Some(input.vec()?)
                    } else {
                        None
                    },
                    graph: if input.bool()? {
                        Some(decode_graph(&mut input, version)?)
                    } else {
                        None
                    },
                })
            })
            .collect::<Result<_, Damage>>()?;
        input.finish()?;
        Ok(Self { rows, seq, vectors })
    }

    /// Reads the small file of a sealed segment.
    ///
    /// # Errors
    /// [`SegmentError::Corrupt`] with the offset; [`SegmentError::Dir`].
    pub(super) fn read(dir: &dyn Directory) -> Result<Self, SegmentError> {
        let bytes = dir.read(SEGMENT_FILE)?;
        Self::decode(&bytes).map_err(|damage| corrupt(dir, SEGMENT_FILE, damage))
    }
}

fn decode_graph(input: &mut Decoder<'_>, version: u32) -> Result<GraphFacts, Damage> {
    let m = input.u64()? as usize;
    let ef_construct = if version == 1 {
        0
    } else {
        input.u64()? as usize
    };
    Ok(GraphFacts {
        m,
        ef_construct: (ef_construct > 0).then_some(ef_construct),
        entry: if input.bool()? {
            Some((input.u32()?, input.u64()? as usize))
        } else {
            None
        },
    })
}

/// A damage of a file of the segment.
pub(super) fn corrupt(dir: &dyn Directory, file: &str, damage: Damage) -> SegmentError {
    SegmentError::Corrupt {
        file: dir.path().join(file).display().to_string(),
        offset: damage.offset,
        detail: damage.to_string(),
    }
}

/// Whether a directory holds a sealed segment.
///
/// # Errors
/// [`SegmentError::Dir`] when that cannot be found out.
pub(crate) fn is_sealed_dir(dir: &dyn Directory) -> Result<bool, SegmentError> {
    Ok(dir.exists(SEGMENT_FILE)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_read_back_and_any_changed_byte_is_noticed() {
        let facts = SegmentFacts {
            rows: 5,
            seq: 9,
            vectors: vec![
                VectorFacts {
                    dim: 2,
                    center: Some(vec![0.5, -1.0]),
                    graph: Some(GraphFacts {
                        m: 16,
                        ef_construct: Some(100),
                        entry: Some((3, 2)),
                    }),
                },
                VectorFacts {
                    dim: 3,
                    center: None,
                    graph: None,
                },
            ],
        };
        let bytes = facts.encode();
        assert_eq!(SegmentFacts::decode(&bytes).unwrap(), facts);
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 2;
            assert!(SegmentFacts::decode(&damaged).is_err(), "byte {at}");
        }
    }
}
