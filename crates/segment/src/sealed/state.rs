//! What happens to the rows of a sealed segment: one small file, replaced atomically.
//!
//! It records stamps of deleted rows and vectors, and how far the payload changes count that lie in
//! chunks beside the sealed files. What came later is in the log.

use std::sync::Arc;

use flatwater_index::Row;

use super::layout::corrupt;
use crate::chunk::BlobPos;
use crate::dir::Directory;
use crate::error::SegmentError;
use crate::file::codec::Encoder;
use crate::file::{self, Damage, Kind};
use crate::growing::checkpoint::{
    decode_stamps, deleted_in, encode_stamps, is_recorded, stamps_in,
};
use crate::ids::SeqNo;
use crate::parts::Recorded;
use crate::view::SegmentView;

/// File name in the segment's directory.
const FILE: &str = "state";
const KIND: Kind = *b"SLST";
const VERSION: u32 = 1;

/// What the file says.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SealedState {
    /// Watermark of the view that was recorded.
    pub(crate) seq: SeqNo,
    /// Payload changes that count.
    pub(crate) versions: u32,
    /// End of their bytes.
    pub(crate) blobs_end: BlobPos,
    /// Checksum of the versions.
    pub(crate) versions_crc: u32,
    /// Deleted rows.
    pub(crate) deleted: Vec<(Row, SeqNo)>,
    /// Rows without each vector.
    pub(crate) stamps: Vec<Vec<(Row, SeqNo)>>,
}

impl SealedState {
    /// A segment as it was written from views up to `seq`.
    pub(super) fn untouched(seq: SeqNo) -> Self {
        Self {
            seq,
            versions: 0,
            blobs_end: BlobPos::default(),
            versions_crc: 0,
            deleted: Vec::new(),
            stamps: Vec::new(),
        }
    }

    fn encode(&self) -> Vec<u8> {
        let mut out = Encoder::new();
        out.u64(self.seq);
        out.u32(self.versions);
        out.u32(self.blobs_end.chunk);
        out.u32(self.blobs_end.offset);
        out.u32(self.versions_crc);
        encode_stamps(&mut out, &self.deleted);
        out.u64(self.stamps.len() as u64);
        for stamps in &self.stamps {
            encode_stamps(&mut out, stamps);
        }
        file::encode(KIND, VERSION, out.as_bytes())
    }

    fn decode(bytes: &[u8]) -> Result<Self, Damage> {
        let mut input = file::open(KIND, VERSION, bytes)?;
        let state = Self {
            seq: input.u64()?,
            versions: input.u32()?,
            blobs_end: BlobPos {
                chunk: input.u32()?,
                offset: input.u32()?,
            },
            versions_crc: input.u32()?,
            deleted: decode_stamps(&mut input)?,
            stamps: (0..input.count(8)?)
                .map(|_| decode_stamps(&mut input))
                .collect::<Result<_, _>>()?,
        };
        input.finish()?;
        Ok(state)
    }

    /// Reads the file.
    ///
    /// # Errors
    /// [`SegmentError::Corrupt`] with the offset; [`SegmentError::Dir`].
    pub(super) fn read(dir: &dyn Directory) -> Result<Self, SegmentError> {
        let bytes = dir.read(FILE)?;
        Self::decode(&bytes).map_err(|damage| corrupt(dir, FILE, damage))
    }

    /// Replaces the file, durably.
    ///
    /// # Errors
    /// [`SegmentError::Dir`].
    pub(super) fn write(&self, dir: &dyn Directory) -> Result<(), SegmentError> {
        Ok(dir.write_atomic(FILE, &self.encode())?)
    }

    pub(super) fn recorded(&self, rows: Row) -> Recorded {
        Recorded {
            seq: self.seq,
            rows,
            versions: self.versions,
            blobs_end: self.blobs_end,
            deleted: self.deleted.len() as u64,
            stamps: self.stamps.iter().map(|stamps| stamps.len() as u64).sum(),
            columns: Vec::new(),
        }
    }
}

/// Makes a view of a sealed segment durable. Called by one thread at a time. Nothing is written if
/// nothing has changed since the last call.
///
/// # Errors
/// [`SegmentError::Dir`]; the previous record stays valid then.
pub(crate) fn record(view: &SegmentView) -> Result<(), SegmentError> {
    let segment = view.segment();
    let mut recorded = segment.recorded.lock();
    if is_recorded(view, &recorded) {
        return Ok(());
    }
    let state = SealedState {
        seq: view.watermark(),
        versions: view.versions_len(),
        blobs_end: view.blobs_end,
        versions_crc: segment.payload.checksum(view.versions_len()),
        deleted: deleted_in(view),
        stamps: (segment.columns.iter())
            .map(|column| stamps_in(view, column))
            .collect(),
    };
    segment.payload.sync(
        recorded.versions,
        state.versions,
        recorded.blobs_end,
        state.blobs_end,
    )?;
    segment.dir.sync()?;
    state.write(Arc::as_ref(&segment.dir))?;
    *recorded = state.recorded(view.rows_len());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_reads_back_and_any_changed_byte_is_noticed() {
        let state = SealedState {
            seq: 9,
            versions: 2,
            blobs_end: BlobPos {
                chunk: 1,
                offset: 77,
            },
            versions_crc: 5,
            deleted: vec![(0, 5), (2, 9)],
            stamps: vec![vec![], vec![(1, 0)]],
        };
        let bytes = state.encode();
        assert_eq!(SealedState::decode(&bytes).unwrap(), state);
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 8;
            assert!(SealedState::decode(&damaged).is_err(), "byte {at}");
        }
    }
}
