//! How a row's codes lie in memory and in files: fixed strides, little-endian, 16-byte header.
//!
//! | 8-bit record | bytes | | 1-bit record | bytes |
//! |---|---|---|---|---|
//! | `scale` f32 | 0..4 | | `factor` f32 | 0..4 |
//! | `norm2` f32 | 4..8 | | `ones` u32 | 4..8 |
//! | `center_dot` f32 | 8..12 | | `norm2` f32 | 8..12 |
//! | zero | 12..16 | | `center_dot` f32 | 12..16 |
//! | `dim` i8 codes | 16.. | | `ceil(dim / 64)` u64 words | 16.. |
//! | zeros up to a multiple of 64 | | | zeros up to a multiple of 16 | |
//!
//! `norm2` is `|y|^2` and `center_dot` is `y . Rc`, of `y` itself and not of its code. Bit `i` of
//! word `i / 64` is set where `y_i >= 0`; bits past `dim` are zero.

#[cfg(target_endian = "big")]
compile_error!("records are little-endian and their words are read in place");

/// Bytes of the header of either record.
pub const HEADER_BYTES: usize = 16;

/// Alignment of a 1-bit record, whose words are read in place.
pub const ALIGN: usize = 16;

/// Bytes of one 8-bit record: whole cache lines, so that fetching one row never touches a line
/// more than its size needs.
#[inline]
#[must_use]
pub const fn stride8(dim: usize) -> usize {
    (HEADER_BYTES + dim).next_multiple_of(64)
}

/// Bytes of one 1-bit record.
#[inline]
#[must_use]
pub const fn stride1(dim: usize) -> usize {
    (HEADER_BYTES + words1(dim) * 8).next_multiple_of(ALIGN)
}

/// Words of one 1-bit code.
#[inline]
#[must_use]
pub const fn words1(dim: usize) -> usize {
    dim.div_ceil(64)
}

/// The numbers beside an 8-bit code.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Header8 {
    pub(super) scale: f32,
    pub(super) norm2: f32,
    pub(super) center_dot: f32,
}

impl Header8 {
    #[inline]
    pub(super) fn read(record: &[u8]) -> Self {
        let [scale, norm2, center_dot, _] = header(record);
        Self {
            scale: f32::from_le_bytes(scale),
            norm2: f32::from_le_bytes(norm2),
            center_dot: f32::from_le_bytes(center_dot),
        }
    }

    pub(super) fn write(self, record: &mut [u8]) {
        let fields = [self.scale, self.norm2, self.center_dot, 0.0].map(f32::to_le_bytes);
        record[..HEADER_BYTES].copy_from_slice(fields.as_flattened());
    }
}

/// The numbers beside a 1-bit code.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Header1 {
    pub(super) factor: f32,
    pub(super) ones: u32,
    pub(super) norm2: f32,
    pub(super) center_dot: f32,
}

impl Header1 {
    #[inline]
    pub(super) fn read(record: &[u8]) -> Self {
        let [factor, ones, norm2, center_dot] = header(record);
        Self {
            factor: f32::from_le_bytes(factor),
            ones: u32::from_le_bytes(ones),
            norm2: f32::from_le_bytes(norm2),
            center_dot: f32::from_le_bytes(center_dot),
        }
    }

    pub(super) fn write(self, record: &mut [u8]) {
        let fields = [
            self.factor.to_le_bytes(),
            self.ones.to_le_bytes(),
            self.norm2.to_le_bytes(),
            self.center_dot.to_le_bytes(),
        ];
        record[..HEADER_BYTES].copy_from_slice(fields.as_flattened());
    }
}

/// The four 4-byte fields at the start of a record.
#[inline]
fn header(record: &[u8]) -> [[u8; 4]; 4] {
    let (fields, _) = record[..HEADER_BYTES].as_chunks::<4>();
    [fields[0], fields[1], fields[2], fields[3]]
}

/// The codes of an 8-bit record of `dim` coordinates.
#[inline]
pub(super) fn codes8(record: &[u8], dim: usize) -> &[i8] {
    let bytes = &record[HEADER_BYTES..HEADER_BYTES + dim];
    // SAFETY: i8 and u8 have the same size, alignment and set of valid bytes, and the result
    // borrows what `bytes` borrows.
    unsafe { std::slice::from_raw_parts(bytes.as_ptr().cast::<i8>(), bytes.len()) }
}

/// The bytes from the first code of a 1-bit record on, as words.
///
/// # Panics
///
/// If the record does not start at a multiple of [`ALIGN`] bytes: mapped files and chunks do.
#[inline]
pub(super) fn words(records: &[u8]) -> &[u64] {
    assert!(
        records.as_ptr().addr().is_multiple_of(ALIGN),
        "1-bit records are 16-byte aligned"
    );
    let bytes = &records[HEADER_BYTES..];
    // SAFETY: the pointer is 16 bytes past a multiple of 16, so aligned for u64; `len / 8` words
    // lie inside `bytes`; every bit pattern is a u64; the result borrows what `bytes` borrows.
    unsafe { std::slice::from_raw_parts(bytes.as_ptr().cast::<u64>(), bytes.len() / 8) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strides_hold_header_and_codes() {
        assert_eq!([64, 384, 1024].map(stride8), [128, 448, 1088]);
        assert_eq!([1, 64, 65, 384, 1024].map(stride1), [32, 32, 32, 64, 144]);
        for dim in 1..3000 {
            assert!(stride8(dim) >= HEADER_BYTES + dim && stride8(dim).is_multiple_of(64));
            assert!(
                stride1(dim) >= HEADER_BYTES + dim.div_ceil(8)
                    && stride1(dim).is_multiple_of(ALIGN)
            );
        }
    }

    #[test]
    fn headers_keep_every_field() {
        let mut record = [0xff; 16];
        let eight = Header8 {
            scale: 0.5,
            norm2: 2.0,
            center_dot: -3.0,
        };
        eight.write(&mut record);
        assert_eq!(Header8::read(&record), eight);
        assert_eq!(record[12..], [0; 4]);
        let one = Header1 {
            factor: 0.5,
            ones: 70_000,
            norm2: 2.0,
            center_dot: -3.0,
        };
        one.write(&mut record);
        assert_eq!(Header1::read(&record), one);
    }

    #[test]
    fn unaligned_words_are_refused() {
        let store = [0u128; 4];
        // SAFETY: 64 initialised bytes of the array, read as bytes while it lives.
        let bytes = unsafe { std::slice::from_raw_parts(store.as_ptr().cast::<u8>(), 64) };
        assert_eq!(words(bytes).len(), 6);
        assert!(std::panic::catch_unwind(|| words(&bytes[8..]).len()).is_err());
    }
}
