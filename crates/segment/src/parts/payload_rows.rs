//! Payloads of a segment: every version ever stored, and for each row the newest. Those that a sealed
//! segment began with lie in files of their own; versions are the changes since.
//!
//! A version is (`seq`, row, previous version of that row, address of its JSON). Versions are
//! appended in the order of `seq`; a reader goes back along the chain to the first one that its
//! view holds, so a change copies no vector and disturbs no reader.

use std::sync::Arc;

use flatwater_index::Row;

use super::base::BasePayload;
use crate::chunk::{BlobAddr, BlobLog, BlobPos, BlobWriter, ChunkArray, ChunkWriter, HeadPages};
use crate::dir::Directory;
use crate::error::SegmentError;
use crate::ids::SeqNo;
use crate::mapped::MappedFile;
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
    base: Option<BasePayload>,
    versions: Arc<ChunkArray<u64>>,
    heads: HeadPages,
    blobs: Arc<BlobLog>,
}

impl PayloadRows {
    /// The payloads that a sealed segment began with.
    #[must_use]
    pub fn base(&self) -> Option<&BasePayload> {
        self.base.as_ref()
    }

    /// Bytes of the payloads, and of what finds them, that are in memory now.
    #[must_use]
    pub fn resident_bytes(&self) -> u64 {
        let base = self.base.iter().flat_map(BasePayload::files);
        let base: u64 = base.map(MappedFile::resident_bytes).sum();
        base + self.versions.resident_bytes() + self.blobs.resident_bytes()
    }

    /// Bytes of memory that the rows of changed payloads take.
    #[must_use]
    pub fn heap_bytes(&self) -> u64 {
        self.heads.heap_bytes()
    }

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
            NO_VERSION => self.base_seq(row),
            head => self.versions.row(head)[0],
        }
    }

    /// `seq` of the payload that a view up to `watermark` sees, 0 if none.
    #[must_use]
    pub fn seq_at(&self, row: Row, watermark: SeqNo) -> SeqNo {
        self.version_at(row, watermark)
            .map_or_else(|| self.base_seq(row), |version| version.seq)
    }

    fn base_seq(&self, row: Row) -> SeqNo {
        self.base.as_ref().map_or(0, |base| base.seq(row))
    }

    /// The payload of a row as a view up to `watermark` sees it; empty if it has none.
    ///
    /// # Errors
    /// [`SegmentError::Corrupt`] if the stored bytes do not check.
    pub fn payload_at(&self, row: Row, watermark: SeqNo) -> Result<Payload, SegmentError> {
        let Some((_, json)) = self.json_at(row, watermark)? else {
            return Ok(Payload::new());
        };
        serde_json::from_slice(json).map_err(|error| SegmentError::Corrupt {
            file: "payload".to_owned(),
            offset: 0,
            detail: format!("payload of row {row} is not a JSON object: {error}"),
        })
    }

    /// The payload of a row as JSON text, with the `seq` of its change; none if it has none.
    ///
    /// # Errors
    /// As [`Self::payload_at`].
    pub fn json_at(
        &self,
        row: Row,
        watermark: SeqNo,
    ) -> Result<Option<(SeqNo, &[u8])>, SegmentError> {
        match self.version_at(row, watermark) {
            Some(version) => self.json_of(&version).map(|json| Some((version.seq, json))),
            None => match &self.base {
                Some(base) => Ok(base.json(row)?.map(|json| (base.seq(row), json))),
                None => Ok(None),
            },
        }
    }

    /// Bytes of the JSON that a view up to `watermark` sees of a row. Reads no payload.
    #[must_use]
    pub fn json_bytes(&self, row: Row, watermark: SeqNo) -> u64 {
        match self.version_at(row, watermark) {
            Some(version) => version.addr.len.into(),
            None => self.base.as_ref().map_or(0, |base| base.json_bytes(row)),
        }
    }

    /// Row, `seq` and JSON of a version.
    ///
    /// # Errors
    /// As [`Self::payload_at`].
    pub fn version(&self, index: u32) -> Result<(Row, SeqNo, &[u8]), SegmentError> {
        let version = Version::decode(self.versions.row(index));
        Ok((version.row, version.seq, self.json_of(&version)?))
    }

    fn json_of(&self, version: &Version) -> Result<&[u8], SegmentError> {
        self.blobs
            .get(version.addr)
            .map_err(|damage| SegmentError::Corrupt {
                file: "payload".to_owned(),
                offset: u64::from(version.addr.offset),
                detail: format!("payload of row {}: {damage}", version.row),
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
    /// Opens the first `versions` versions; what was stored behind them is written anew. `base` are
    /// the payloads below them.
    ///
    /// # Errors
    /// [`SegmentError::Dir`] for missing files, [`SegmentError::Corrupt`] for impossible versions.
    pub fn open(
        dir: &Arc<dyn Directory>,
        versions: u32,
        blobs_end: BlobPos,
        base: Option<BasePayload>,
    ) -> Result<Self, SegmentError> {
        let versions = ChunkWriter::open(Arc::clone(dir), "versions", VERSION_WORDS, versions)?;
        let blobs = BlobWriter::open(Arc::clone(dir), "payload", blobs_end)?;
        let rows = Arc::new(PayloadRows {
            base,
            versions: versions.array(),
            heads: HeadPages::new(),
            blobs: blobs.log(),
        });
        for index in 0..rows.versions.len() {
            let version = Version::decode(rows.versions.row(index));
            rows.heads.set(version.row, index);
        }
        Ok(Self {
            rows,
            versions,
            blobs,
        })
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
