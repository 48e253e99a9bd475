//! The payloads that a sealed segment began with: one for each row, in two immutable files.
//!
//! A row of the first file is (`seq`, byte where the JSON begins, its length and checksum); the
//! second holds the JSON. Later changes are versions of their own ([`super::payload_rows`]).

use flatwater_index::Row;

use crate::error::SegmentError;
use crate::ids::SeqNo;
use crate::mapped::{MappedFile, MappedRows};

/// `u64` words of a row.
pub const BASE_WORDS: usize = 3;

/// Payloads by row.
#[derive(Debug)]
pub struct BasePayload {
    rows: MappedRows<u64>,
    json: MappedRows<u8>,
}

/// The stored row of a payload: where its JSON lies.
#[must_use]
pub fn encode_row(seq: SeqNo, start: u64, json: &[u8]) -> [u64; BASE_WORDS] {
    // A payload came in one request and is far below 4 GiB.
    let len_and_crc = (json.len() as u64) << 32 | u64::from(crc32c::crc32c(json));
    [seq, start, len_and_crc]
}

/// The stored row of a row without payload.
pub const NO_PAYLOAD: [u64; BASE_WORDS] = [0; BASE_WORDS];

impl BasePayload {
    /// Payloads in opened files.
    #[must_use]
    pub fn new(rows: MappedRows<u64>, json: MappedRows<u8>) -> Self {
        Self { rows, json }
    }

    /// The files, for verification.
    #[must_use]
    pub fn files(&self) -> [&MappedFile; 2] {
        [self.rows.file(), self.json.file()]
    }

    /// `seq` of the change that gave the row its payload; 0 if it has none.
    #[must_use]
    pub fn seq(&self, row: Row) -> SeqNo {
        let at = u64::from(row);
        self.rows.slice(at, at + 1).first().copied().unwrap_or(0)
    }

    /// Bytes of a row's JSON.
    #[must_use]
    pub fn json_bytes(&self, row: Row) -> u64 {
        let at = u64::from(row);
        let words = self.rows.slice(at, at + 1);
        words.get(2).map_or(0, |len_and_crc| len_and_crc >> 32)
    }

    /// JSON of a row; none if it has no payload.
    ///
    /// # Errors
    /// [`SegmentError::Corrupt`] if the bytes do not check.
    pub fn json(&self, row: Row) -> Result<Option<&[u8]>, SegmentError> {
        let at = u64::from(row);
        let [seq, start, len_and_crc] = *self.rows.slice(at, at + 1) else {
            return Ok(None);
        };
        if seq == 0 {
            return Ok(None);
        }
        let len = len_and_crc >> 32;
        let bytes = self.json.slice(start, start.saturating_add(len));
        let computed = u64::from(crc32c::crc32c(bytes));
        if bytes.len() as u64 == len && computed == len_and_crc & u64::from(u32::MAX) {
            return Ok(Some(bytes));
        }
        Err(SegmentError::Corrupt {
            file: self.json.file().path().display().to_string(),
            offset: crate::mapped::HEADER_BYTES as u64 + start,
            detail: format!("payload of row {row}: its checksum is not the recorded one"),
        })
    }
}
