//! A centred and rotated vector `y`, and how its coordinates become codes.
//!
//! The loops keep partial sums side by side, so that the compiler can turn them into vectors.

use super::record::{self, HEADER_BYTES, Header1, Header8};

/// Codes go from -127 to 127; -128 would make the grid lopsided.
const CODE_MAX: f32 = 127.0;

/// A vector `y = scale * unit` whose largest coordinate is `scale`, so that no square of the
/// coordinates of `unit` overflows, with the exact numbers of its records.
pub(super) struct Centered {
    pub(super) unit: Vec<f32>,
    pub(super) scale: f32,
    /// `|y|^2`, at most the largest f32.
    pub(super) norm2: f32,
    center_dot: f32,
}

impl Centered {
    pub(super) fn new(y: Vec<f32>, rotated_center: &[f32]) -> Self {
        let mut unit = y;
        let norm2 = dot_f64(&unit, &unit);
        if !norm2.is_finite() {
            // Coordinates beyond f32: a row far from everything, and no NaN in any score.
            unit.fill(0.0);
            return Self {
                unit,
                scale: 0.0,
                norm2: f32::MAX,
                center_dot: 0.0,
            };
        }
        let center_dot = dot_f64(&unit, rotated_center);
        // The bits of positive floats are ordered as the floats are.
        let scale = f32::from_bits(unit.iter().fold(0, |most, x| x.abs().to_bits().max(most)));
        let inverse = 1.0 / scale;
        // Of the zero vector, or one whose coordinates are denormal, only the norms are kept.
        let inverse = if inverse.is_finite() { inverse } else { 0.0 };
        unit.iter_mut().for_each(|x| *x *= inverse);
        Self {
            unit,
            scale,
            norm2: saturate(norm2),
            center_dot: saturate(center_dot),
        }
    }

    /// Writes the 8-bit record.
    pub(super) fn write8(&self, out: &mut [u8]) {
        let dim = self.unit.len();
        assert_eq!(
            out.len(),
            record::stride8(dim),
            "a record is one stride long"
        );
        for (byte, x) in out[HEADER_BYTES..].iter_mut().zip(&self.unit) {
            *byte = round_to_byte(x * CODE_MAX);
        }
        out[HEADER_BYTES + dim..].fill(0);
        let codes = record::codes8(out, dim);
        let with_code = sum_f64(&self.unit, codes, |x, code| f64::from(x) * f64::from(code));
        Header8 {
            scale: self.factor(with_code),
            norm2: self.norm2,
            center_dot: self.center_dot,
        }
        .write(out);
    }

    /// Writes the 1-bit record.
    pub(super) fn write1(&self, out: &mut [u8]) {
        assert_eq!(
            out.len(),
            record::stride1(self.unit.len()),
            "a record is one stride long"
        );
        out[HEADER_BYTES..].fill(0);
        let mut ones = 0;
        for (group, byte) in self.unit.chunks(8).zip(&mut out[HEADER_BYTES..]) {
            let mut signs = [0; 8];
            for (sign, &x) in signs.iter_mut().zip(group) {
                *sign = u8::from(x >= 0.0);
            }
            *byte = pack(u64::from_le_bytes(signs));
            ones += byte.count_ones();
        }
        let magnitude = sum_f64(&self.unit, &self.unit, |x, _| f64::from(x.abs()));
        let factor = self.factor(magnitude);
        Header1 {
            factor,
            ones,
            norm2: self.norm2,
            center_dot: self.center_dot,
        }
        .write(out);
    }

    /// `|y|^2 / (y . g)` for the code `g` with `unit . g = with_code`.
    fn factor(&self, with_code: f64) -> f32 {
        if with_code > 0.0 {
            (f64::from(self.scale) * dot_f64(&self.unit, &self.unit) / with_code) as f32
        } else {
            0.0
        }
    }
}

/// The nearest integer of `x`, ties to even, as a byte in two's complement; `|x|` up to 2^21.
///
/// Adding 1.5 * 2^23 leaves no bit of the mantissa for a fraction, so the addition itself rounds
/// and the integer stands in the lowest bits: no library call, and the compiler can vectorise it.
#[inline]
pub(super) fn round_to_byte(x: f32) -> u8 {
    (x + 12_582_912.0).to_bits() as u8
}

/// The lowest bit of each byte, gathered into one byte: byte `k` gives bit `k`.
///
/// The product moves bit `8 k` to bit `56 + k`; no two of its terms meet, so nothing carries.
#[inline]
pub(super) fn pack(bytes: u64) -> u8 {
    ((bytes & 0x0101_0101_0101_0101).wrapping_mul(0x0102_0408_1020_4080) >> 56) as u8
}

/// Dot product in f64.
pub(super) fn dot_f64(a: &[f32], b: &[f32]) -> f64 {
    sum_f64(a, b, |x, y| f64::from(x) * f64::from(y))
}

fn sum_f64<T: Copy>(a: &[f32], b: &[T], term: impl Fn(f32, T) -> f64) -> f64 {
    debug_assert_eq!(
        a.len(),
        b.len(),
        "both have one coordinate for each dimension"
    );
    let mut sums = [0.0f64; 8];
    let ((wide_a, tail_a), (wide_b, tail_b)) = (a.as_chunks::<8>(), b.as_chunks::<8>());
    for (x, y) in wide_a.iter().zip(wide_b) {
        for lane in 0..8 {
            sums[lane] += term(x[lane], y[lane]);
        }
    }
    let tail: f64 = tail_a.iter().zip(tail_b).map(|(&x, &y)| term(x, y)).sum();
    sums.iter().sum::<f64>() + tail
}

/// The nearest finite f32.
fn saturate(x: f64) -> f32 {
    x.clamp(f64::from(f32::MIN), f64::from(f32::MAX)) as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_gives_every_byte_and_ties_to_even() {
        for code in -127i8..=127 {
            for off in [-0.49, 0.0, 0.49] {
                assert_eq!(round_to_byte(f32::from(code) + off).cast_signed(), code);
            }
        }
        assert_eq!([0.5, 1.5, 2.5, -0.5].map(round_to_byte), [0, 2, 2, 0]);
    }

    #[test]
    fn packing_keeps_the_place_of_each_bit() {
        for byte in 0..=u8::MAX {
            let spread: [u8; 8] = std::array::from_fn(|k| (byte >> k & 1) | 0xf0);
            assert_eq!(pack(u64::from_le_bytes(spread)), byte);
        }
    }

    #[test]
    fn records_hold_signs_and_codes_in_place() {
        let y: Vec<f32> = (0..70)
            .map(|i| if i % 3 == 0 { -2.0 } else { 1.0 })
            .collect();
        let centered = Centered::new(y.clone(), &[1.0; 70]);
        let (mut eight, mut one) = (vec![9; record::stride8(70)], vec![9; record::stride1(70)]);
        centered.write8(&mut eight);
        centered.write1(&mut one);
        for (i, &x) in y.iter().enumerate() {
            let code = record::codes8(&eight, 70)[i];
            assert_eq!(code, if x < 0.0 { -127 } else { 64 }, "coordinate {i}");
            assert_eq!(
                one[HEADER_BYTES + i / 8] >> (i % 8) & 1 == 1,
                x > 0.0,
                "coordinate {i}"
            );
        }
        assert!(eight[HEADER_BYTES + 70..].iter().all(|&b| b == 0));
        let header = Header1::read(&one);
        assert_eq!(
            (header.ones, header.norm2, header.center_dot),
            (46, 142.0, -2.0)
        );
        assert_eq!(header.factor, 142.0 / 94.0);
        assert_eq!(one[HEADER_BYTES + 8] >> 6, 0);
    }
}
