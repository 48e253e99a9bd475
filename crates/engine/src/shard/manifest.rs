//! The manifest of a shard: which segments count, and what the log need not hold any more.

use flatwater_segment::SeqNo;
use flatwater_segment::dir::Directory;
use flatwater_segment::file::codec::Encoder;
use flatwater_segment::file::{self, Damage, Kind};
use uuid::Uuid;

use super::op::FieldIndexRecord;
use crate::error::{EngineError, Result};

/// File name in the shard's directory.
const FILE: &str = "manifest";
const KIND: Kind = *b"MANI";
const VERSION: u32 = 1;

/// What the manifest says. A segment's directory counts only if it is listed; whatever else lies
/// beside it is a leftover, and its rows are in the log.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Manifest {
    /// Every operation up to here is durable in the listed segments.
    pub(crate) seq: SeqNo,
    /// Segments, oldest first.
    pub(crate) segments: Vec<Uuid>,
    /// Field indexes at `seq`.
    pub(crate) fields: Vec<FieldIndexRecord>,
}

impl Manifest {
    /// Reads the manifest; `None` if the shard has none yet.
    pub(crate) fn read(dir: &dyn Directory) -> Result<Option<Self>> {
        if !dir.exists(FILE)? {
            return Ok(None);
        }
        let bytes = dir.read(FILE)?;
        Self::decode(&bytes)
            .map(Some)
            .map_err(|damage| EngineError::Corrupt {
                file: dir.path().join(FILE).display().to_string(),
                offset: damage.offset,
                detail: damage.to_string(),
            })
    }

    /// Replaces the manifest, atomically and durably.
    pub(crate) fn write(&self, dir: &dyn Directory) -> Result<()> {
        Ok(dir.write_atomic(FILE, &self.encode())?)
    }

    fn encode(&self) -> Vec<u8> {
        let mut out = Encoder::new();
        out.u64(self.seq);
        out.u64(self.segments.len() as u64);
        for id in &self.segments {
            out.u128(id.as_u128());
        }
        out.u64(self.fields.len() as u64);
        for field in &self.fields {
            field.encode(&mut out);
        }
        file::encode(KIND, VERSION, out.as_bytes())
    }

    fn decode(bytes: &[u8]) -> std::result::Result<Self, Damage> {
        let mut input = file::open(KIND, VERSION, bytes)?;
        let seq = input.u64()?;
        let segments = (0..input.count(16)?)
            .map(|_| input.u128().map(Uuid::from_u128))
            .collect::<std::result::Result<_, _>>()?;
        let fields = (0..input.count(6)?)
            .map(|_| FieldIndexRecord::decode(&mut input))
            .collect::<std::result::Result<_, _>>()?;
        input.finish()?;
        Ok(Self {
            seq,
            segments,
            fields,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flatwater_segment::field::FieldType;

    #[test]
    fn a_manifest_reads_back_and_any_changed_byte_is_noticed() {
        let manifest = Manifest {
            seq: 42,
            segments: vec![Uuid::from_u128(1), Uuid::from_u128(u128::MAX)],
            fields: vec![FieldIndexRecord {
                field: "a.b".to_owned(),
                field_type: FieldType::Integer,
                params_json: None,
            }],
        };
        let bytes = manifest.encode();
        assert_eq!(Manifest::decode(&bytes).unwrap(), manifest);
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x10;
            assert!(Manifest::decode(&damaged).is_err(), "byte {at}");
        }
    }
}
