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

use super::column::{ColumnState, VectorColumn};
use super::spec::SegmentSpec;
use super::view::SegmentView;
use super::write::SegmentWriter;
use crate::chunk::BlobPos;
use crate::dir::Directory;
use crate::error::SegmentError;
use crate::file::codec::{Decoder, Encoder};
use crate::file::{self, Damage, Kind};
use crate::ids::SeqNo;

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
        let (version, body) = file::decode(KIND, bytes)?;
        let mut input = Decoder::new(body);
        if version != VERSION {
            return Err(input.damage("version", u64::from(VERSION), u64::from(version)));
        }
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

fn encode_stamps(out: &mut Encoder, stamps: &[(Row, u64)]) {
    out.u64(stamps.len() as u64);
    for (row, stamp) in stamps {
        out.u32(*row);
        out.u64(*stamp);
    }
}

fn decode_stamps(input: &mut Decoder<'_>) -> Result<Vec<(Row, u64)>, Damage> {
    (0..input.count(12)?)
        .map(|_| Ok((input.u32()?, input.u64()?)))
        .collect()
}

impl SegmentView {
    /// Makes the view durable. Called by one thread at a time. Nothing is written if nothing has
    /// changed since the last call.
    ///
    /// # Errors
    /// [`SegmentError::Dir`]; the previous checkpoint stays valid then.
    ///
    /// Blocks: syncs what was appended since the last checkpoint.
    pub fn checkpoint(&self) -> Result<(), SegmentError> {
        let mut recorded = self.segment.recorded.lock();
        let is_same = recorded.rows == self.len
            && recorded.versions == self.versions_len
            && u64::from(recorded.rows) - recorded.deleted.len() as u64 == self.live;
        if is_same && recorded.seq > 0 {
            return Ok(());
        }
        let state = self.state();
        let segment = &self.segment;
        segment.heads.sync(recorded.rows, state.rows)?;
        segment.payload.sync(
            recorded.versions,
            state.versions,
            recorded.blobs_end,
            state.blobs_end,
        )?;
        for ((column, now), before) in segment
            .columns
            .iter()
            .zip(&state.columns)
            .zip(&recorded.columns)
        {
            column.originals().sync(before.rows, now.rows)?;
            if let Some(codes) = column.codes() {
                codes.codes8().sync(before.code_rows, now.code_rows)?;
                codes.codes1().sync(before.code_rows, now.code_rows)?;
            }
        }
        segment.dir.sync()?;
        segment.dir.write_atomic(FILE, &state.encode())?;
        *recorded = state;
        Ok(())
    }

    /// What a checkpoint of this view records.
    fn state(&self) -> SegmentState {
        let deleted = self.segment.deleted.iter();
        let columns: Vec<ColumnState> = self
            .segment
            .columns
            .iter()
            .map(|column| self.column_state(column))
            .collect();
        let mut state = SegmentState {
            seq: self.watermark,
            rows: self.len,
            versions: self.versions_len,
            blobs_end: self.blobs_end,
            deleted: deleted
                .filter(|&(row, stamp)| row < self.len && stamp <= self.watermark)
                .collect(),
            columns,
            checksums: Vec::new(),
        };
        state.checksums = checksums(&self.segment, &state);
        state
    }

    fn column_state(&self, column: &VectorColumn) -> ColumnState {
        let ready = column.codes().and_then(|codes| codes.ready());
        let code_rows = ready.map_or(0, |(_, rows)| rows.min(self.len));
        // A centre without coded rows would be fixed anew, from the same rows, after a restart.
        let center = column
            .codes()
            .and_then(|codes| codes.center())
            .filter(|_| code_rows > 0);
        let center = center.map(<[f32]>::to_vec);
        let stamps = column
            .stamped_rows()
            .filter(|&(row, stamp)| row < self.len && stamp <= self.watermark)
            .collect();
        ColumnState {
            rows: self.len,
            code_rows,
            center,
            stamps,
        }
    }
}

/// Checksums of the heads, the versions and each vector's arrays up to what `state` counts.
fn checksums(segment: &super::GrowingSegment, state: &SegmentState) -> Vec<u32> {
    let mut sums = vec![
        segment.heads.checksum(state.rows),
        segment.payload.checksum(state.versions),
    ];
    for (column, counted) in segment.columns.iter().zip(&state.columns) {
        sums.push(column.originals().checksum(counted.rows));
        if let Some(codes) = column.codes() {
            sums.push(codes.codes8().checksum(counted.code_rows));
            sums.push(codes.codes1().checksum(counted.code_rows));
        }
    }
    sums
}

impl SegmentWriter {
    /// Opens a segment at its checkpoint. Every byte that counts is read once, to verify it.
    ///
    /// # Errors
    /// [`SegmentError::Corrupt`] with the file, [`SegmentError::Dir`] for missing files.
    pub fn recover(
        dir: Arc<dyn Directory>,
        id: Uuid,
        spec: Arc<SegmentSpec>,
    ) -> Result<Self, SegmentError> {
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
            return Err(corrupt(
                0,
                format!("{found} vectors, the collection has {expected}"),
            ));
        }
        // A killed process may have left the name of this checkpoint unsynced, and the log may be cut on the
        // strength of it.
        dir.sync()?;
        let writer = Self::open(dir, id, spec, &state)?;
        if checksums(writer.segment(), &state) != state.checksums {
            return Err(corrupt(
                0,
                "the bytes of the segment's chunks are not those that were recorded".to_owned(),
            ));
        }
        *writer.segment().recorded.lock() = state;
        Ok(writer)
    }
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
