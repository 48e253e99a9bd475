//! Framing of small files: a fixed header that says what the file is, and a checksum of everything.
//!
//! A framed file is `magic (8) | kind (4) | version (4) | body length (8) | zero (4) | crc32c (4) |
//! body`, little-endian. The checksum covers the header before it and the body, so no single byte
//! can change unnoticed. [`encode`] makes such bytes for
//! [`Directory::write_atomic`](crate::dir::Directory::write_atomic); [`decode`] checks all of it before
//! it hands out the body, which [`codec::Decoder`] then reads with bounds.
//!
//! Not here: mapped chunks (no header, see [`crate::chunk`]) and the log (the engine's).

pub mod codec;

use std::fmt;
use std::ops::RangeInclusive;

/// First eight bytes of every framed file.
pub const MAGIC: [u8; 8] = *b"FLATWATR";

/// Bytes before the body.
pub const HEADER_BYTES: usize = 32;

/// Offset of the checksum: it covers `[0, CRC_AT)` and the body.
const CRC_AT: usize = 28;

/// What a framed file holds: four ASCII letters, chosen by the module that writes it.
pub type Kind = [u8; 4];

/// Bytes that do not check: where, and what stood there. Never a panic, never a guess.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Damage {
    /// Which check failed.
    pub check: &'static str,
    /// Byte offset of the checked value.
    pub offset: u64,
    /// The value that would have been right (a bound for lengths).
    pub expected: u64,
    /// The value that stood there.
    pub found: u64,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            check,
            offset,
            expected,
            found,
        } = self;
        write!(
            f,
            "{check} at byte {offset}: expected {expected:#x}, found {found:#x}"
        )
    }
}

impl std::error::Error for Damage {}

/// Frames `body` as a file of `kind`.
#[must_use]
pub fn encode(kind: Kind, version: u32, body: &[u8]) -> Vec<u8> {
    let mut out = codec::Encoder::with_capacity(HEADER_BYTES + body.len());
    out.raw(&MAGIC);
    out.raw(&kind);
    out.u32(version);
    out.u64(body.len() as u64);
    out.u32(0);
    let crc = crc32c::crc32c_append(crc32c::crc32c(out.as_bytes()), body);
    out.u32(crc);
    out.raw(body);
    out.into_bytes()
}

/// Version and body of a framed file of `kind`.
///
/// # Errors
/// The first check that fails: magic, kind, length (too short or too long), checksum.
pub fn decode(kind: Kind, bytes: &[u8]) -> Result<(u32, &[u8]), Damage> {
    let mut header = codec::Decoder::new(bytes);
    check("magic", 0, u64::from_le_bytes(MAGIC), header.u64()?)?;
    check(
        "file kind",
        8,
        u32::from_le_bytes(kind).into(),
        header.u32()?.into(),
    )?;
    let version = header.u32()?;
    let length = header.u64()?;
    let reserved = header.u32()?;
    let stored = header.u32()?;
    let body = header.rest();
    check("body length", 16, length, body.len() as u64)?;
    check("reserved field", 24, 0, reserved.into())?;
    // The decoder above has read 32 bytes, so the slice is there.
    let covered = bytes.get(..CRC_AT).unwrap_or_default();
    let computed = crc32c::crc32c_append(crc32c::crc32c(covered), body);
    check("checksum", CRC_AT as u64, stored.into(), computed.into())?;
    Ok((version, body))
}

/// A reader of the body of a framed file of `kind` and `version`.
///
/// # Errors
/// As [`decode`]; a version that is not this one.
pub fn open(kind: Kind, version: u32, bytes: &[u8]) -> Result<codec::Decoder<'_>, Damage> {
    open_since(kind, version..=version, bytes).map(|(_, input)| input)
}

/// Version, and a reader of the body, of a framed file of `kind` of any of `versions`.
///
/// # Errors
/// As [`decode`]; a version that is none of these.
pub fn open_since(
    kind: Kind,
    versions: RangeInclusive<u32>,
    bytes: &[u8],
) -> Result<(u32, codec::Decoder<'_>), Damage> {
    let (found, body) = decode(kind, bytes)?;
    let input = codec::Decoder::new(body);
    if versions.contains(&found) {
        Ok((found, input))
    } else {
        Err(input.damage("version", (*versions.end()).into(), found.into()))
    }
}

/// A [`Damage`] unless both values are the same.
pub(crate) fn check(
    check: &'static str,
    offset: u64,
    expected: u64,
    found: u64,
) -> Result<(), Damage> {
    if expected == found {
        Ok(())
    } else {
        Err(Damage {
            check,
            offset,
            expected,
            found,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const KIND: Kind = *b"TEST";

    #[test]
    fn a_framed_body_comes_back_with_its_version() {
        for body in [&b""[..], b"x", b"some body of several bytes"] {
            let bytes = encode(KIND, 7, body);
            assert_eq!(bytes.len(), HEADER_BYTES + body.len());
            assert_eq!(decode(KIND, &bytes), Ok((7, body)));
        }
    }

    #[test]
    fn every_single_bit_flip_is_found() {
        let bytes = encode(KIND, 1, b"the body");
        for at in 0..bytes.len() {
            for bit in 0..8 {
                let mut damaged = bytes.clone();
                damaged[at] ^= 1 << bit;
                assert!(decode(KIND, &damaged).is_err(), "byte {at} bit {bit}");
            }
        }
    }

    #[test]
    fn every_truncation_and_extension_is_found() {
        let bytes = encode(KIND, 1, b"the body");
        for len in 0..bytes.len() {
            assert!(decode(KIND, &bytes[..len]).is_err(), "cut to {len}");
        }
        let mut longer = bytes;
        longer.push(0);
        assert_eq!(decode(KIND, &longer).unwrap_err().check, "body length");
    }

    #[test]
    fn a_file_of_another_kind_is_refused() {
        assert_eq!(
            decode(*b"ELSE", &encode(KIND, 1, b"")).unwrap_err().check,
            "file kind"
        );
    }

    proptest! {
        #[test]
        fn random_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            prop_assert!(decode(KIND, &bytes).is_err());
        }
    }
}
