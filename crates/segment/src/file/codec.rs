//! Little-endian writer and reader of the bodies of small files.
//!
//! [`Encoder`] appends to a buffer and cannot fail. [`Decoder`] walks bytes from outside: each read
//! is bounded by what is left and answers [`Damage`] instead of panicking, and a count read from
//! the bytes is checked against them before anything is allocated for it.

use bytemuck::Pod;

use super::Damage;

// Rows and arrays of plain values are written as they lie in memory.
const _: () = assert!(
    cfg!(target_endian = "little"),
    "the file format is little-endian"
);

/// Appends little-endian values to a buffer of its own.
#[derive(Debug, Default)]
pub struct Encoder {
    bytes: Vec<u8>,
}

impl Encoder {
    /// An empty encoder.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty encoder with room for `bytes` bytes.
    #[must_use]
    pub fn with_capacity(bytes: usize) -> Self {
        Self {
            bytes: Vec::with_capacity(bytes),
        }
    }

    /// What was written so far.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// What was written.
    #[must_use]
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// One byte.
    pub fn u8(&mut self, value: u8) {
        self.bytes.push(value);
    }

    /// A truth value as one byte, 0 or 1.
    pub fn bool(&mut self, value: bool) {
        self.bytes.push(value.into());
    }

    /// Two bytes.
    pub fn u16(&mut self, value: u16) {
        self.raw(&value.to_le_bytes());
    }

    /// Four bytes.
    pub fn u32(&mut self, value: u32) {
        self.raw(&value.to_le_bytes());
    }

    /// Eight bytes.
    pub fn u64(&mut self, value: u64) {
        self.raw(&value.to_le_bytes());
    }

    /// Eight bytes, two's complement.
    pub fn i64(&mut self, value: i64) {
        self.raw(&value.to_le_bytes());
    }

    /// Sixteen bytes.
    pub fn u128(&mut self, value: u128) {
        self.raw(&value.to_le_bytes());
    }

    /// Four bytes, the bits of the number.
    pub fn f32(&mut self, value: f32) {
        self.raw(&value.to_le_bytes());
    }

    /// Eight bytes, the bits of the number.
    pub fn f64(&mut self, value: f64) {
        self.raw(&value.to_le_bytes());
    }

    /// Bytes as they are, without a length.
    pub fn raw(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// A length (8 bytes), then the bytes.
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.u64(bytes.len() as u64);
        self.raw(bytes);
    }

    /// A length in bytes (8 bytes), then the UTF-8 of the text.
    pub fn str(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }

    /// A count (8 bytes), then the values as they lie in memory.
    pub fn slice<T: Pod>(&mut self, values: &[T]) {
        self.u64(values.len() as u64);
        self.raw(bytemuck::cast_slice(values));
    }
}

/// Reads little-endian values from bytes that may be damaged.
#[derive(Clone, Debug)]
pub struct Decoder<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Decoder<'a> {
    /// A reader at the start of `bytes`.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// Offset of the next byte.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.at as u64
    }

    /// How many bytes are left.
    #[must_use]
    pub fn left(&self) -> usize {
        self.bytes.len() - self.at
    }

    /// The damage that the next value makes, for a caller that finds it out of its range.
    #[must_use]
    pub fn damage(&self, check: &'static str, expected: u64, found: u64) -> Damage {
        Damage {
            check,
            offset: self.offset(),
            expected,
            found,
        }
    }

    /// The next `len` bytes.
    ///
    /// # Errors
    /// `Damage` when fewer are left; nothing is consumed then.
    pub fn raw(&mut self, len: usize) -> Result<&'a [u8], Damage> {
        let taken = self
            .at
            .checked_add(len)
            .and_then(|end| self.bytes.get(self.at..end));
        let Some(taken) = taken else {
            return Err(self.damage("bytes left", len as u64, self.left() as u64));
        };
        self.at += len;
        Ok(taken)
    }

    /// Everything that is left.
    pub fn rest(&mut self) -> &'a [u8] {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        self.at = self.bytes.len();
        rest
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Damage> {
        let mut out = [0; N];
        out.copy_from_slice(self.raw(N)?);
        Ok(out)
    }

    /// One byte.
    ///
    /// # Errors
    /// `Damage` at the end of the bytes; so do all the readers below.
    pub fn u8(&mut self) -> Result<u8, Damage> {
        Ok(u8::from_le_bytes(self.array()?))
    }

    /// A truth value.
    ///
    /// # Errors
    /// `Damage` also when the byte is neither 0 nor 1.
    pub fn bool(&mut self) -> Result<bool, Damage> {
        let before = self.clone();
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(before.damage("truth value", 1, other.into())),
        }
    }

    /// Two bytes.
    ///
    /// # Errors
    /// `Damage` at the end.
    pub fn u16(&mut self) -> Result<u16, Damage> {
        Ok(u16::from_le_bytes(self.array()?))
    }

    /// Four bytes.
    ///
    /// # Errors
    /// `Damage` at the end.
    pub fn u32(&mut self) -> Result<u32, Damage> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    /// Eight bytes.
    ///
    /// # Errors
    /// `Damage` at the end.
    pub fn u64(&mut self) -> Result<u64, Damage> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    /// Eight bytes, two's complement.
    ///
    /// # Errors
    /// `Damage` at the end.
    pub fn i64(&mut self) -> Result<i64, Damage> {
        Ok(i64::from_le_bytes(self.array()?))
    }

    /// Sixteen bytes.
    ///
    /// # Errors
    /// `Damage` at the end.
    pub fn u128(&mut self) -> Result<u128, Damage> {
        Ok(u128::from_le_bytes(self.array()?))
    }

    /// Four bytes, the bits of the number.
    ///
    /// # Errors
    /// `Damage` at the end.
    pub fn f32(&mut self) -> Result<f32, Damage> {
        Ok(f32::from_le_bytes(self.array()?))
    }

    /// Eight bytes, the bits of the number.
    ///
    /// # Errors
    /// `Damage` at the end.
    pub fn f64(&mut self) -> Result<f64, Damage> {
        Ok(f64::from_le_bytes(self.array()?))
    }

    /// A count of items that take at least `item_bytes_min` bytes each (at least 1): never more than
    /// can stand in what is left, so it is safe to allocate for.
    ///
    /// # Errors
    /// `Damage` at the end, or when the count cannot be true.
    pub fn count(&mut self, item_bytes_min: usize) -> Result<usize, Damage> {
        let before = self.clone();
        let found = self.u64()?;
        let bound = self.left() / item_bytes_min.max(1);
        match usize::try_from(found) {
            Ok(count) if count <= bound => Ok(count),
            _ => Err(before.damage("count", bound as u64, found)),
        }
    }

    /// Bytes with their length before them.
    ///
    /// # Errors
    /// `Damage` when fewer are left.
    pub fn bytes(&mut self) -> Result<&'a [u8], Damage> {
        let len = self.count(1)?;
        self.raw(len)
    }

    /// Text with its length in bytes before it.
    ///
    /// # Errors
    /// `Damage` when fewer bytes are left or they are not UTF-8.
    pub fn str(&mut self) -> Result<&'a str, Damage> {
        let bytes = self.bytes()?;
        let start = self.at - bytes.len();
        std::str::from_utf8(bytes).map_err(|e| Damage {
            check: "UTF-8 text",
            offset: (start + e.valid_up_to()) as u64,
            expected: bytes.len() as u64,
            found: e.valid_up_to() as u64,
        })
    }

    /// Values as they lay in memory, with their count before them.
    ///
    /// # Errors
    /// `Damage` when fewer are left.
    pub fn vec<T: Pod>(&mut self) -> Result<Vec<T>, Damage> {
        let count = self.count(size_of::<T>())?;
        let raw = self.raw(count * size_of::<T>())?;
        // Copied, since the bytes may not be aligned for T.
        let mut values = vec![T::zeroed(); count];
        bytemuck::cast_slice_mut(&mut values).copy_from_slice(raw);
        Ok(values)
    }

    /// Ends the reading.
    ///
    /// # Errors
    /// `Damage` when bytes are left over.
    pub fn finish(self) -> Result<(), Damage> {
        if self.left() == 0 {
            Ok(())
        } else {
            Err(self.damage("end", 0, self.left() as u64))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn values_come_back_in_order() {
        let mut out = Encoder::new();
        out.u8(1);
        out.bool(true);
        out.u16(2);
        out.u32(3);
        out.u64(4);
        out.i64(-5);
        out.u128(6);
        out.f32(7.5);
        out.f64(-8.25);
        out.str("nine");
        out.slice(&[10_u32, 11]);
        let bytes = out.into_bytes();
        let mut read = Decoder::new(&bytes);
        assert_eq!(read.u8(), Ok(1));
        assert_eq!(read.bool(), Ok(true));
        assert_eq!(read.u16(), Ok(2));
        assert_eq!(read.u32(), Ok(3));
        assert_eq!(read.u64(), Ok(4));
        assert_eq!(read.i64(), Ok(-5));
        assert_eq!(read.u128(), Ok(6));
        assert_eq!(read.f32(), Ok(7.5));
        assert_eq!(read.f64(), Ok(-8.25));
        assert_eq!(read.str(), Ok("nine"));
        assert_eq!(read.vec::<u32>(), Ok(vec![10, 11]));
        assert_eq!(read.finish(), Ok(()));
    }

    #[test]
    fn a_count_that_cannot_be_true_is_refused_before_it_allocates() {
        let mut out = Encoder::new();
        out.u64(u64::MAX);
        out.raw(&[0; 16]);
        let bytes = out.into_bytes();
        assert_eq!(Decoder::new(&bytes).vec::<u64>().unwrap_err().expected, 2);
        assert_eq!(Decoder::new(&bytes).bytes().unwrap_err().check, "count");
    }

    #[test]
    fn wrong_text_and_truth_values_say_where() {
        let mut out = Encoder::new();
        out.bytes(&[b'a', 0xff]);
        out.u8(2);
        let bytes = out.into_bytes();
        let mut read = Decoder::new(&bytes);
        assert_eq!(read.str().unwrap_err().offset, 9);
        assert_eq!(
            read.bool().unwrap_err(),
            Damage {
                check: "truth value",
                offset: 10,
                expected: 1,
                found: 2
            }
        );
    }

    proptest! {
        #[test]
        fn reading_random_bytes_never_panics_and_never_goes_back(
            bytes in proptest::collection::vec(any::<u8>(), 0..100),
            steps in proptest::collection::vec(0_u8..12, 0..20),
        ) {
            let mut read = Decoder::new(&bytes);
            for step in steps {
                let before = read.offset();
                let done = match step {
                    0 => read.u8().map(drop),
                    1 => read.bool().map(drop),
                    2 => read.u16().map(drop),
                    3 => read.u32().map(drop),
                    4 => read.u64().map(drop),
                    5 => read.u128().map(drop),
                    6 => read.f32().map(drop),
                    7 => read.str().map(drop),
                    8 => read.bytes().map(drop),
                    9 => read.vec::<u16>().map(drop),
                    10 => read.count(3).map(drop),
                    _ => read.raw(7).map(drop),
                };
                prop_assert!(read.offset() >= before);
                prop_assert!(read.offset() <= bytes.len() as u64);
                if done.is_err() {
                    break;
                }
            }
        }
    }
}
