//! The durable state of a growing segment: what a restart begins from.
//!
//! 1. The chunks are synced up to the rows and versions of one view.
//! 2. One small checksummed file, replaced atomically, records how far they count, the stamps, the
//!    centres of the codes, and a checksum of every array up to there.
//!
//! At open, rows and versions behind the record are discarded; they come from the log. The caller
//! has synced the log up to the view's watermark before.

use std::sync::Arc;

use flatwater_index::Row;
use uuid::Uuid;

use super::links;
use super::write::{ROWS_SLACK, SegmentWriter};
use crate::chunk::{BlobPos, ChunkWriter};
use crate::dir::Directory;
use crate::error::SegmentError;
use crate::file::codec::{Decoder, Encoder};
use crate::file::{self, Damage, Kind};
use crate::ids::SeqNo;
use crate::parts::column::{ColumnState, VectorColumn};
use crate::parts::spec::SegmentSpec;
use crate::parts::{Recorded, Segment};
use crate::points::Points;
use crate::points::heads::HEAD_WORDS;
use crate::view::SegmentView;

/// File name in the segment's directory.
const FILE: &str = "checkpoint";
const KIND: Kind = *b"GROW";
const VERSION: u32 = 1;

/// What the checkpoint file says.
#[derive(Clone, Debug, PartialEq)]
pub struct SegmentState {
    /// Watermark of the view that was recorded.
    pub seq: SeqNo,
    /// Rows that count.
    pub rows: Row,
    /// Payload versions that count.
    pub versions: u32,
    /// End of the payload bytes that count.
    pub blobs_end: BlobPos,
    /// Rows that were deleted, and when.
    pub deleted: Vec<(Row, SeqNo)>,
    /// Vectors, in the order of the spec.
    pub columns: Vec<ColumnState>,
    /// Checksum of the heads, of the versions, and of each vector's arrays.
    pub checksums: Vec<u32>,
}

impl SegmentState {
    /// A segment without rows.
    pub(super) fn empty(columns: usize) -> Self {
        Self {
            seq: 0,
            rows: 0,
            versions: 0,
            blobs_end: BlobPos::default(),
            deleted: Vec::new(),
            columns: vec![ColumnState::empty(); columns],
            checksums: Vec::new(),
        }
    }

    fn recorded(&self) -> Recorded {
        Recorded {
            seq: self.seq,
            rows: self.rows,
            versions: self.versions,
            blobs_end: self.blobs_end,
            deleted: self.deleted.len() as u64,
            stamps: self.columns.iter().map(|c| c.stamps.len() as u64).sum(),
            columns: self.columns.iter().map(|c| (c.rows, c.code_rows)).collect(),
        }
    }

    fn encode(&self) -> Vec<u8> {
        let mut out = Encoder::new();
        out.u64(self.seq);
        out.u32(self.rows);
        out.u32(self.versions);
        out.u32(self.blobs_end.chunk);
        out.u32(self.blobs_end.offset);
        encode_stamps(&mut out, &self.deleted);
        out.u64(self.columns.len() as u64);
        for column in &self.columns {
            out.u32(column.rows);
            out.u32(column.code_rows);
            out.bool(column.center.is_some());
            if let Some(center) = &column.center {
                out.slice(center);
            }
            encode_stamps(&mut out, &column.stamps);
        }
        out.slice(&self.checksums);
        file::encode(KIND, VERSION, out.as_bytes())
    }

    fn decode(bytes: &[u8]) -> Result<Self, Damage> {
        let mut input = file::open(KIND, VERSION, bytes)?;
        let seq = input.u64()?;
        let rows = input.u32()?;
        let versions = input.u32()?;
        let blobs_end = BlobPos {
            chunk: input.u32()?,
            offset: input.u32()?,
        };
        let deleted = decode_stamps(&mut input)?;
        let columns = (0..input.count(13)?)
            .map(|_| {
                Ok(ColumnState {
                    rows: input.u32()?,
                    code_rows: input.u32()?,
                    center: if input.bool()? {
                        Some(input.vec()?)
                    } else {
                        None
                    },
                    stamps: decode_stamps(&mut input)?,
                })
            })
            .collect::<Result<_, Damage>>()?;
        let checksums = input.vec()?;
        input.finish()?;
        Ok(Self {
            seq,
            rows,
            versions,
            blobs_end,
            deleted,
            columns,
            checksums,
        })
    }
}

pub(crate) fn encode_stamps(out: &mut Encoder, stamps: &[(Row, u64)]) {
    out.u64(stamps.len() as u64);
    for (row, stamp) in stamps {
        out.u32(*row);
        out.u64(*stamp);
    }
}

pub(crate) fn decode_stamps(input: &mut Decoder<'_>) -> Result<Vec<(Row, u64)>, Damage> {
    (0..input.count(12)?)
        .map(|_| Ok((input.u32()?, input.u64()?)))
        .collect()
}

/// Makes a view of a growing segment durable. Called by one thread at a time. Nothing is written if
/// nothing has changed since the last call.
///
/// # Errors
/// [`SegmentError::Dir`]; the previous checkpoint stays valid then.
///
/// Blocks: syncs what was appended since the last checkpoint.
pub(crate) fn record(view: &SegmentView) -> Result<(), SegmentError> {
    let segment = view.segment();
    let Points::Growing { heads, .. } = &segment.points else {
        return Ok(());
    };
    let mut recorded = segment.recorded.lock();
    if is_recorded(view, &recorded) {
        return Ok(());
    }
    let state = state_of(view);
    heads.sync(recorded.rows, state.rows)?;
    segment.payload.sync(
        recorded.versions,
        state.versions,
        recorded.blobs_end,
        state.blobs_end,
    )?;
    for (index, (column, now)) in segment.columns.iter().zip(&state.columns).enumerate() {
        let (rows, code_rows) = recorded.columns.get(index).copied().unwrap_or_default();
        if let Some(originals) = column.originals().growing() {
            originals.sync(rows, now.rows)?;
        }
        let codes = column.codes();
        for codes in codes
            .iter()
            .flat_map(|codes| [codes.codes8(), codes.codes1()])
        {
            if let Some(codes) = codes.growing() {
                codes.sync(code_rows, now.code_rows)?;
            }
        }
    }
    segment.dir.sync()?;
    segment.dir.write_atomic(FILE, &state.encode())?;
    *recorded = state.recorded();
    Ok(())
}

/// Whether the last checkpoint holds all of a view.
pub(crate) fn is_recorded(view: &SegmentView, recorded: &Recorded) -> bool {
    recorded.seq > 0
        && recorded.rows == view.len
        && recorded.versions == view.versions_len
        && u64::from(recorded.rows) - recorded.deleted == view.live
        && recorded.stamps == stamps_count(view)
}

/// What a checkpoint of a view records.
fn state_of(view: &SegmentView) -> SegmentState {
    let segment = view.segment();
    let columns = segment
        .columns
        .iter()
        .map(|column| column_state(view, column));
    let mut state = SegmentState {
        seq: view.watermark,
        rows: view.len,
        versions: view.versions_len,
        blobs_end: view.blobs_end,
        deleted: deleted_in(view),
        columns: columns.collect(),
        checksums: Vec::new(),
    };
    state.checksums = checksums(segment, &state);
    state
}

/// Rows that a view shows as deleted, and when they were.
pub(crate) fn deleted_in(view: &SegmentView) -> Vec<(Row, SeqNo)> {
    let deleted = view.segment().deleted.iter();
    deleted
        .filter(|&(row, stamp)| row < view.len && stamp <= view.watermark)
        .collect()
}

/// Rows without a vector in a view, and since when.
pub(crate) fn stamps_in(view: &SegmentView, column: &VectorColumn) -> Vec<(Row, SeqNo)> {
    let stamped = column.stamped_rows();
    stamped
        .filter(|&(row, stamp)| row < view.len && stamp <= view.watermark)
        .collect()
}

/// How many rows a view shows without one vector or another.
fn stamps_count(view: &SegmentView) -> u64 {
    let columns = view.segment().columns.iter();
    columns
        .map(|column| stamps_in(view, column).len() as u64)
        .sum()
}

fn column_state(view: &SegmentView, column: &VectorColumn) -> ColumnState {
    let ready = column.codes().and_then(|codes| codes.ready());
    let code_rows = ready.map_or(0, |(_, rows)| rows.min(view.len));
    // A centre without coded rows would be fixed anew, from the same rows, after a restart.
    let center = column
        .codes()
        .and_then(|codes| codes.center())
        .filter(|_| code_rows > 0);
    ColumnState {
        rows: view.len,
        code_rows,
        center: center.map(<[f32]>::to_vec),
        stamps: stamps_in(view, column),
    }
}

/// Checksums of the heads, the versions and each vector's arrays up to what `state` counts.
fn checksums(segment: &Segment, state: &SegmentState) -> Vec<u32> {
    let mut sums = Vec::new();
    if let Points::Growing { heads, .. } = &segment.points {
        sums.push(heads.checksum(state.rows));
    }
    sums.push(segment.payload.checksum(state.versions));
    for (column, counted) in segment.columns.iter().zip(&state.columns) {
        if let Some(originals) = column.originals().growing() {
            sums.push(originals.checksum(counted.rows));
        }
        for codes in column
            .codes()
            .iter()
            .flat_map(|codes| [codes.codes8(), codes.codes1()])
        {
            sums.extend(
                codes
                    .growing()
                    .map(|codes| codes.checksum(counted.code_rows)),
            );
        }
    }
    sums
}

/// What to do with saved links at open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Links {
    /// Use what checks, remove what does not.
    Restore,
    /// Leave the files alone.
    Leave,
}

/// Opens a growing segment at its checkpoint. Every byte that counts is read once, to verify it;
/// saved graphs that do not check are left out and built anew.
///
/// # Errors
/// [`SegmentError::Corrupt`] with the file, [`SegmentError::Dir`] for missing files.
pub(crate) fn recover(
    dir: Arc<dyn Directory>,
    id: Uuid,
    spec: Arc<SegmentSpec>,
    links: Links,
) -> Result<SegmentWriter, SegmentError> {
    let file = dir.path().join(FILE).display().to_string();
    let corrupt = |offset: u64, detail: String| SegmentError::Corrupt {
        file: file.clone(),
        offset,
        detail,
    };
    let state = SegmentState::decode(&dir.read(FILE)?)
        .map_err(|damage| corrupt(damage.offset, damage.to_string()))?;
    if state.columns.len() != spec.vectors.len() {
        let (found, expected) = (state.columns.len(), spec.vectors.len());
        let detail = format!("{found} vectors, the collection has {expected}");
        return Err(corrupt(0, detail));
    }
    // A killed process may have left the name of this checkpoint unsynced, and the log may be cut on the
    // strength of it.
    dir.sync()?;
    let heads = ChunkWriter::open(Arc::clone(&dir), "heads", HEAD_WORDS, state.rows)?;
    let rows_max = spec.rows_max.saturating_add(ROWS_SLACK);
    let graphs = match links {
        Links::Restore => links::restore(&dir, &spec, &heads.array(), rows_max)?,
        Links::Leave => spec.vectors.iter().map(|_| None).collect(),
    };
    let writer = SegmentWriter::open(dir, id, spec, &state, heads, graphs)?;
    if checksums(writer.segment(), &state) != state.checksums {
        let detail = "the bytes of the segment's chunks are not those that were recorded";
        return Err(corrupt(0, detail.to_owned()));
    }
    *writer.segment().recorded.lock() = state.recorded();
    Ok(writer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_reads_back_and_any_changed_byte_is_noticed() {
        let state = SegmentState {
            seq: 9,
            rows: 3,
            versions: 2,
            blobs_end: BlobPos {
                chunk: 1,
                offset: 77,
            },
            deleted: vec![(0, 5), (2, 9)],
            columns: vec![
                ColumnState {
                    rows: 3,
                    code_rows: 0,
                    center: None,
                    stamps: vec![(1, 0)],
                },
                ColumnState {
                    rows: 3,
                    code_rows: 3,
                    center: Some(vec![0.5, -1.0]),
                    stamps: vec![],
                },
            ],
            checksums: vec![1, 2, 3],
        };
        let bytes = state.encode();
        assert_eq!(SegmentState::decode(&bytes).unwrap(), state);
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            assert!(SegmentState::decode(&damaged).is_err(), "byte {at}");
        }
    }
}
