//! Payloads of a growing segment: every version ever stored, and for each row the newest.
//!
//! A version is (`seq`, row, previous version of that row, address of its JSON). Versions are
//! appended in the order of `seq`; a reader goes back along the chain to the first one that its
//! view holds, so a change copies no vector and disturbs no reader.

use std::sync::Arc;

use flatwater_index::Row;

use crate::chunk::{BlobAddr, BlobLog, BlobPos, BlobWriter, ChunkArray, ChunkWriter, HeadPages};
use crate::dir::Directory;
use crate::error::SegmentError;
use crate::ids::SeqNo;
use crate::payload::Payload;

/// `u64` words of a stored version.
const VERSION_WORDS: usize = 4;
/// Marks "no previous version".
const NO_VERSION: u32 = u32::MAX;

/// One stored payload of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Version {
    seq: SeqNo,
    row: Row,
    previous: u32,
    addr: BlobAddr,
}

impl Version {
    fn encode(&self) -> [u64; VERSION_WORDS] {
        [
            self.seq,
            u64::from(self.previous) << 32 | u64::from(self.row),
            u64::from(self.addr.offset) << 32 | u64::from(self.addr.chunk),
            u64::from(self.addr.len),
        ]
    }

    fn decode(words: &[u64]) -> Self {
        Self {
            seq: words[0],
            row: words[1] as u32,
            previous: (words[1] >> 32) as u32,
            addr: BlobAddr {
                chunk: words[2] as u32,
                offset: (words[2] >> 32) as u32,
                len: words[3] as u32,
            },
        }
    }
}

/// Readers' side.
#[derive(Debug)]
pub struct PayloadRows {
    versions: Arc<ChunkArray<u64>>,
    heads: HeadPages,
    blobs: Arc<BlobLog>,
}

impl PayloadRows {
    /// Number of versions stored so far.
    #[must_use]
    pub fn versions_len(&self) -> u32 {
        self.versions.len()
    }

    /// End of the payload bytes stored so far.
    #[must_use]
    pub fn blobs_end(&self) -> BlobPos {
        self.blobs.end()
    }

    /// Syncs versions and payload bytes that were stored since an earlier state.
    ///
    /// # Errors
    /// [`SegmentError::Dir`].
    pub fn sync(
        &self,
        from: u32,
        to: u32,
        blobs_from: BlobPos,
        blobs_to: BlobPos,
    ) -> Result<(), SegmentError> {
        self.blobs.sync(blobs_from, blobs_to)?;
        Ok(self.versions.sync(from, to)?)
    }

    /// Checksum of the first `versions` versions. Payload bytes carry their own.
    #[must_use]
    pub fn checksum(&self, versions: u32) -> u32 {
        self.versions.checksum(versions)
    }

    /// `seq` of the newest payload change of a row, 0 if it never had a payload.
    #[must_use]
    pub fn newest_seq(&self, row: Row) -> SeqNo {
        match self.heads.get(row) {
            NO_VERSION => 0,
            head => self.versions.row(head)[0],
        }
    }

    /// `seq` of the payload that a view up to `watermark` sees, 0 if none.
    #[must_use]
    pub fn seq_at(&self, row: Row, watermark: SeqNo) -> SeqNo {
        self.version_at(row, watermark)
            .map_or(0, |version| version.seq)
    }

    /// The payload of a row as a view up to `watermark` sees it; empty if it has none.
    ///
    /// # Errors
    /// [`SegmentError::Corrupt`] if the stored bytes do not check.
    pub fn payload_at(&self, row: Row, watermark: SeqNo) -> Result<Payload, SegmentError> {
        let Some(version) = self.version_at(row, watermark) else {
            return Ok(Payload::new());
        };
        let bytes = self
            .blobs
            .get(version.addr)
            .map_err(|damage| SegmentError::Corrupt {
                file: "payload".to_owned(),
                offset: u64::from(version.addr.offset),
                detail: format!("payload of row {row}: {damage}"),
            })?;
        serde_json::from_slice(bytes).map_err(|error| SegmentError::Corrupt {
            file: "payload".to_owned(),
            offset: u64::from(version.addr.offset),
            detail: format!("payload of row {row} is not a JSON object: {error}"),
        })
    }

    /// Rows whose payload was stored by versions `from..to`.
    pub fn rows_of_versions(&self, from: u32, to: u32) -> impl Iterator<Item = Row> + '_ {
        (from..to).map(|index| Version::decode(self.versions.row(index)).row)
    }

    fn version_at(&self, row: Row, watermark: SeqNo) -> Option<Version> {
        let mut index = self.heads.get(row);
        while index != NO_VERSION {
            let version = Version::decode(self.versions.row(index));
            if version.seq <= watermark {
                return Some(version);
            }
            index = version.previous;
        }
        None
    }
}

/// The writer's side.
#[derive(Debug)]
pub struct PayloadRowsWriter {
    rows: Arc<PayloadRows>,
    versions: ChunkWriter<u64>,
    blobs: BlobWriter,
}

impl PayloadRowsWriter {
    /// Opens the first `versions` versions; what was stored behind them is written anew.
    ///
    /// # Errors
    /// [`SegmentError::Dir`] for missing files, [`SegmentError::Corrupt`] for impossible versions.
    pub fn open(
        dir: &Arc<dyn Directory>,
        versions: u32,
        blobs_end: BlobPos,
    ) -> Result<Self, SegmentError> {
        let versions = ChunkWriter::open(Arc::clone(dir), "versions", VERSION_WORDS, versions)?;
        let blobs = BlobWriter::open(Arc::clone(dir), "payload", blobs_end)?;
        let writer = Self::join(versions, blobs);
        for index in 0..writer.rows.versions.len() {
            let version = Version::decode(writer.rows.versions.row(index));
            writer.rows.heads.set(version.row, index);
        }
        Ok(writer)
    }

    fn join(versions: ChunkWriter<u64>, blobs: BlobWriter) -> Self {
        let rows = Arc::new(PayloadRows {
            versions: versions.array(),
            heads: HeadPages::new(),
            blobs: blobs.log(),
        });
        Self {
            rows,
            versions,
            blobs,
        }
    }

    /// The readers' side.
    #[must_use]
    pub fn rows(&self) -> Arc<PayloadRows> {
        Arc::clone(&self.rows)
    }

    /// Makes room for `versions` more with `bytes` of JSON in all.
    ///
    /// # Errors
    /// [`SegmentError::Dir`] (a full disk among them); nothing changed then.
    pub fn reserve(&mut self, versions: u32, bytes: &[usize]) -> Result<(), SegmentError> {
        self.versions.reserve(versions)?;
        self.blobs.reserve(bytes.iter().copied())?;
        Ok(())
    }

    /// Stores a payload of `row`; room was reserved before.
    ///
    /// # Panics
    /// If room had not been reserved.
    pub fn push(&mut self, row: Row, seq: SeqNo, json: &[u8]) {
        let addr = self.blobs.push(json);
        self.blobs.publish();
        let index = self.versions.pushed();
        let version = Version {
            seq,
            row,
            previous: self.rows.heads.get(row),
            addr,
        };
        self.versions.push(&version.encode());
        self.versions.publish();
        self.rows.heads.set(row, index);
    }
}
