//! Bytes of a log file: its header and its records, written and checked.

use flatwater_segment::SeqNo;
use flatwater_segment::file::codec::{Decoder, Encoder};

/// Longest body of a record, in bytes. A request is limited far below; a damaged length beyond it is found
/// out without reading further.
pub const BODY_BYTES_MAX: u32 = 256 << 20;

/// Bytes of a file's header.
pub(super) const FILE_HEADER_BYTES: usize = 40;

/// Bytes before a record's body.
pub(super) const RECORD_HEADER_BYTES: usize = 24;

/// First bytes of a log file.
const MAGIC: [u8; 8] = *b"FLATWLOG";

/// Version of the format of headers and records.
const VERSION: u32 = 1;

/// What a file says of itself: `magic | version u32 | crc32c u32 | generation u64 | first_seq u64 | synced_seq
/// u64`; the checksum covers all the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileHeader {
    /// Number of the file; the seed of its records' checksums.
    pub(super) generation: u64,
    /// Number of its first record, whether it is there already or not.
    pub(super) first_seq: SeqNo,
    /// What was synced when the file was begun.
    pub(super) synced_seq: SeqNo,
}

impl FileHeader {
    pub(super) fn encode(&self) -> Vec<u8> {
        self.encode_as(VERSION)
    }

    fn encode_as(&self, version: u32) -> Vec<u8> {
        let mut fields = Encoder::with_capacity(FILE_HEADER_BYTES);
        fields.u64(self.generation);
        fields.u64(self.first_seq);
        fields.u64(self.synced_seq);
        let mut out = Encoder::with_capacity(FILE_HEADER_BYTES);
        out.raw(&MAGIC);
        out.u32(version);
        out.u32(crc32c::crc32c_append(
            crc32c::crc32c(out.as_bytes()),
            fields.as_bytes(),
        ));
        out.raw(fields.as_bytes());
        out.into_bytes()
    }

    /// The header of the file of `generation` at the start of `bytes`; `None` when it is cut short or does not
    /// check.
    ///
    /// # Errors
    /// The version of a header that checks but is of another version: such a file is not damaged, and must not
    /// be cut.
    pub(super) fn decode(generation: u64, bytes: &[u8]) -> Result<Option<Self>, u32> {
        let Some(bytes) = bytes.get(..FILE_HEADER_BYTES) else {
            return Ok(None);
        };
        let Some((version, header)) = Self::fields(bytes) else {
            return Ok(None);
        };
        if header.generation != generation || header.encode_as(version) != bytes {
            return Ok(None);
        }
        if version == VERSION {
            Ok(Some(header))
        } else {
            Err(version)
        }
    }

    /// Version and fields, unchecked.
    fn fields(bytes: &[u8]) -> Option<(u32, Self)> {
        let mut fields = Decoder::new(bytes);
        fields.raw(MAGIC.len()).ok()?;
        let version = fields.u32().ok()?;
        fields.raw(size_of::<u32>()).ok()?;
        let generation = fields.u64().ok()?;
        let first_seq = fields.u64().ok()?;
        let synced_seq = fields.u64().ok()?;
        Some((
            version,
            Self {
                generation,
                first_seq,
                synced_seq,
            },
        ))
    }
}

/// A record's header, not yet checked: `len u32 | crc32c u32 | seq u64 | synced_seq u64`, then `len` bytes of
/// body. The checksum covers the file's generation, then all but itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RecordHeader {
    /// Bytes of the body.
    pub(super) len: u32,
    /// The checksum that stands there.
    pub(super) crc: u32,
    /// Order of the operation.
    pub(super) seq: SeqNo,
    /// What was synced when the record was written.
    pub(super) synced_seq: SeqNo,
}

impl RecordHeader {
    /// The header at the start of `bytes`; `None` when they are too few.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut fields = Decoder::new(bytes);
        Some(Self {
            len: fields.u32().ok()?,
            crc: fields.u32().ok()?,
            seq: fields.u64().ok()?,
            synced_seq: fields.u64().ok()?,
        })
    }

    /// Bytes of header and body.
    pub(super) fn record_bytes(&self) -> u64 {
        RECORD_HEADER_BYTES as u64 + u64::from(self.len)
    }

    /// The checksum of a record of the file of `generation`.
    pub(super) fn checksum(&self, generation: u64, body: &[u8]) -> u32 {
        let mut covered = Encoder::with_capacity(28);
        covered.u64(generation);
        covered.u32(self.len);
        covered.u64(self.seq);
        covered.u64(self.synced_seq);
        crc32c::crc32c_append(crc32c::crc32c(covered.as_bytes()), body)
    }
}

/// Replaces `out` by the bytes of a record.
///
/// # Panics
/// When the body is longer than [`BODY_BYTES_MAX`].
pub(super) fn encode(
    out: &mut Vec<u8>,
    generation: u64,
    seq: SeqNo,
    synced_seq: SeqNo,
    body: &[u8],
) {
    let len = u32::try_from(body.len())
        .ok()
        .filter(|&len| len <= BODY_BYTES_MAX);
    let len = len.expect("the caller refuses bodies past BODY_BYTES_MAX");
    let header = RecordHeader {
        len,
        crc: 0,
        seq,
        synced_seq,
    };
    out.clear();
    out.extend_from_slice(&len.to_le_bytes());
    out.extend_from_slice(&header.checksum(generation, body).to_le_bytes());
    out.extend_from_slice(&seq.to_le_bytes());
    out.extend_from_slice(&synced_seq.to_le_bytes());
    out.extend_from_slice(body);
}

/// Looks at every offset of `bytes` for a valid record of the file of `generation` that claims a sync at or beyond
/// `lost`; returns its offset. `seq_max` bounds what a record's number can be, so that bytes which are no record
/// are passed over without a checksum.
pub(super) fn find_claim(
    bytes: &[u8],
    generation: u64,
    lost: SeqNo,
    seq_max: SeqNo,
) -> Option<usize> {
    (0..bytes.len().saturating_sub(RECORD_HEADER_BYTES - 1)).find(|&at| {
        let Some(rest) = bytes.get(at..) else {
            return false;
        };
        let Some(header) = RecordHeader::decode(rest) else {
            return false;
        };
        let claims = header.synced_seq >= lost
            && header.synced_seq < header.seq
            && header.seq <= seq_max
            && header.len <= BODY_BYTES_MAX;
        claims
            && rest
                .get(RECORD_HEADER_BYTES..RECORD_HEADER_BYTES + header.len as usize)
                .is_some_and(|body| header.checksum(generation, body) == header.crc)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_file_header_checks_only_whole_and_under_its_own_generation() {
        let header = FileHeader {
            generation: 3,
            first_seq: 17,
            synced_seq: 9,
        };
        let bytes = header.encode();
        assert_eq!(bytes.len(), FILE_HEADER_BYTES);
        assert_eq!(FileHeader::decode(3, &bytes), Ok(Some(header)));
        assert_eq!(FileHeader::decode(4, &bytes), Ok(None));
        assert_eq!(FileHeader::decode(3, &header.encode_as(2)), Err(2));
        for at in 0..bytes.len() {
            assert_eq!(FileHeader::decode(3, &bytes[..at]), Ok(None));
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x10;
            assert_eq!(FileHeader::decode(3, &damaged), Ok(None), "byte {at}");
        }
    }

    #[test]
    fn a_record_checks_only_under_the_generation_of_its_file() {
        let mut bytes = Vec::new();
        encode(&mut bytes, 5, 8, 7, b"body");
        let header = RecordHeader::decode(&bytes).unwrap();
        assert_eq!(header.record_bytes(), bytes.len() as u64);
        let body = &bytes[RECORD_HEADER_BYTES..];
        assert_eq!(header.checksum(5, body), header.crc);
        assert_ne!(header.checksum(6, body), header.crc);
    }

    #[test]
    fn zeros_are_not_a_record() {
        let header = RecordHeader::decode(&[0; RECORD_HEADER_BYTES]).unwrap();
        assert!((0..100).all(|generation| header.checksum(generation, b"") != 0));
    }

    proptest! {
        #[test]
        fn a_claim_is_found_wherever_it_starts_and_only_there(
            before in proptest::collection::vec(any::<u8>(), 0..60),
            after in proptest::collection::vec(any::<u8>(), 0..60),
        ) {
            let mut record = Vec::new();
            encode(&mut record, 2, 10, 8, b"payload");
            let bytes = [before.clone(), record, after].concat();
            prop_assert_eq!(find_claim(&bytes, 2, 8, 100), Some(before.len()));
            prop_assert_eq!(find_claim(&bytes, 2, 9, 100), None);
            prop_assert_eq!(find_claim(&bytes, 3, 8, 100), None);
            prop_assert_eq!(find_claim(&bytes[..before.len() + 20], 2, 8, 100), None);
        }
    }
}
