//! From a rotated vector to its 8-bit and its 1-bit record.

use std::sync::Arc;

use super::Rotation;
use super::record::{self, HEADER_BYTES, Header1, Header8};
use crate::distance::kernels;
use crate::types::Metric;

/// What two stored rows are compared by under `Dot` while a graph is built.
///
/// Under the dot product a long vector is a good answer to many queries and no vector need be its
/// own best match, so a graph built by the product itself links almost everything to the longest
/// rows; built by distance it is navigable like any other, but walks it by another measure than the
/// queries do. Which one pays is a matter of data; both are served.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DotPairs {
    /// By the dot product of the two.
    #[default]
    Product,
    /// By their negated squared distance.
    Distance,
}

/// How an estimated dot product `y . p` becomes a score.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// `x . q = y . p + y . Rc + p . Rc + |c|^2`.
    Product,
    /// `-|x - q|^2 = 2 y . p - |y|^2 - |p|^2`.
    Distance,
}

/// Encodes the rows of one segment and compares their 8-bit records.
///
/// Immutable: a segment's centre is fixed once, and with it every code.
#[derive(Clone, Debug)]
pub struct Encoder {
    metric: Metric,
    rotation: Arc<Rotation>,
    rotated_center: Vec<f32>,
    center_norm2: f32,
    dot_pairs: DotPairs,
}

impl Encoder {
    /// Below this many dimensions the originals are used instead of codes.
    pub const DIM_MIN: usize = 64;

    /// Whether vectors of this metric and dimension have codes.
    ///
    /// A sum of absolute differences is no function of the dot product, so `Manhattan` has none.
    #[must_use]
    pub fn supports(metric: Metric, dim: usize) -> bool {
        metric != Metric::Manhattan && (Self::DIM_MIN..=Rotation::DIM_MAX).contains(&dim)
    }

    /// The encoder of a segment whose rows lie around `center` (not rotated).
    ///
    /// # Panics
    ///
    /// If `center` is not of the rotation's dimension, or the metric is `Manhattan`.
    #[must_use]
    pub fn new(metric: Metric, rotation: Arc<Rotation>, center: &[f32]) -> Self {
        assert!(
            metric != Metric::Manhattan,
            "Manhattan has no codes; see Encoder::supports"
        );
        let mut rotated_center = center.to_vec();
        rotation.rotate(&mut rotated_center);
        let center_norm2 = dot_f64(center, center) as f32;
        Self {
            metric,
            rotation,
            rotated_center,
            center_norm2,
            dot_pairs: DotPairs::default(),
        }
    }

    /// The same encoder, comparing stored rows under `Dot` by what is given. Other metrics compare
    /// rows by their own score, whatever this says.
    #[must_use]
    pub fn with_dot_pairs(mut self, dot_pairs: DotPairs) -> Self {
        self.dot_pairs = dot_pairs;
        self
    }

    /// The metric that scores are estimated for.
    #[must_use]
    pub fn metric(&self) -> Metric {
        self.metric
    }

    /// Coordinates of a vector.
    #[must_use]
    pub fn dim(&self) -> usize {
        self.rotation.dim()
    }

    /// Bytes of one 8-bit record.
    #[must_use]
    pub fn stride8(&self) -> usize {
        record::stride8(self.dim())
    }

    /// Bytes of one 1-bit record.
    #[must_use]
    pub fn stride1(&self) -> usize {
        record::stride1(self.dim())
    }

    /// `Rx`, the input of the encodings: independent of the segment, so made once for a write.
    #[must_use]
    pub fn rotate(&self, x: &[f32]) -> Vec<f32> {
        let mut rotated = x.to_vec();
        self.rotation.rotate(&mut rotated);
        rotated
    }

    /// Writes the 8-bit record of `Rx` to `out`, which is one stride long.
    ///
    /// A vector whose rotated coordinates overflow f32 gets a code of zeros.
    pub fn encode8(&self, rotated: &[f32], out: &mut [u8]) {
        assert_eq!(out.len(), self.stride8(), "a record is one stride long");
        let Centered {
            mut unit,
            scale,
            norm2,
            center_dot,
        } = self.centered(rotated);
        let norm2_unit = (kernels().dot)(&unit, &unit);
        for (x, byte) in unit.iter_mut().zip(&mut out[HEADER_BYTES..]) {
            let code = (*x * CODE_MAX).round_ties_even() as i8;
            *byte = code.cast_unsigned();
            *x *= f32::from(code);
        }
        let with_code: f32 = unit.iter().sum();
        let factor = if with_code > 0.0 {
            scale * (norm2_unit / with_code)
        } else {
            0.0
        };
        Header8 {
            scale: factor,
            norm2,
            center_dot,
        }
        .write(out);
        out[HEADER_BYTES + unit.len()..].fill(0);
    }

    /// Writes the 1-bit record of `Rx` to `out`, which is one stride long.
    pub fn encode1(&self, rotated: &[f32], out: &mut [u8]) {
        assert_eq!(out.len(), self.stride1(), "a record is one stride long");
        let Centered {
            unit,
            scale,
            norm2,
            center_dot,
        } = self.centered(rotated);
        let norm2_unit = (kernels().dot)(&unit, &unit);
        out[HEADER_BYTES..].fill(0);
        let mut ones = 0;
        for (chunk, bytes) in unit
            .chunks(64)
            .zip(out[HEADER_BYTES..].as_chunks_mut::<8>().0)
        {
            let word = chunk
                .iter()
                .enumerate()
                .fold(0u64, |word, (i, &x)| word | u64::from(x >= 0.0) << i);
            ones += word.count_ones();
            *bytes = word.to_le_bytes();
        }
        let magnitude: f32 = unit.iter().map(|x| x.abs()).sum();
        let factor = if magnitude > 0.0 {
            scale * (norm2_unit / magnitude)
        } else {
            0.0
        };
        Header1 {
            factor,
            ones,
            norm2,
            center_dot,
        }
        .write(out);
    }

    /// The similarity of two stored rows by their 8-bit records, larger is better: the metric's
    /// own score, except under `Dot` as [`Self::with_dot_pairs`] says. Symmetric to the last bit.
    #[inline]
    #[must_use]
    pub fn pair8(&self, a: &[u8], b: &[u8]) -> f32 {
        let dim = self.dim();
        let product = (kernels().dot_i8)(record::codes8(a, dim), record::codes8(b, dim));
        let (a, b) = (Header8::read(a), Header8::read(b));
        let estimate = a.scale * b.scale * product as f32;
        match self.pair_form() {
            Form::Product => estimate + (a.center_dot + b.center_dot) + self.center_norm2,
            Form::Distance => 2.0 * estimate - (a.norm2 + b.norm2),
        }
    }

    pub(super) fn query_form(&self) -> Form {
        match self.metric {
            Metric::Cosine | Metric::Dot => Form::Product,
            Metric::Euclid | Metric::Manhattan => Form::Distance,
        }
    }

    pub(super) fn pair_form(&self) -> Form {
        match (self.metric, self.dot_pairs) {
            (Metric::Dot, DotPairs::Distance) => Form::Distance,
            _ => self.query_form(),
        }
    }

    pub(super) fn center_norm2(&self) -> f32 {
        self.center_norm2
    }

    /// `y = Rx - Rc` scaled to a largest coordinate of 1, so that no later square overflows.
    pub(super) fn centered(&self, rotated: &[f32]) -> Centered {
        assert_eq!(
            rotated.len(),
            self.dim(),
            "rotated vectors have the encoder's dimension"
        );
        let mut unit: Vec<f32> = rotated
            .iter()
            .zip(&self.rotated_center)
            .map(|(x, c)| x - c)
            .collect();
        let norm2 = dot_f64(&unit, &unit);
        let center_dot = dot_f64(&unit, &self.rotated_center);
        let largest = unit.iter().fold(0.0f32, |largest, x| largest.max(x.abs()));
        let inverse = 1.0 / largest;
        if !norm2.is_finite() {
            // Coordinates beyond f32: a row far from everything, and no NaN in any score.
            return Centered {
                unit: vec![0.0; unit.len()],
                scale: 0.0,
                norm2: f32::MAX,
                center_dot: 0.0,
            };
        }
        // Of the zero vector, or one whose coordinates are denormal, only the norms are kept.
        let inverse = if inverse.is_finite() { inverse } else { 0.0 };
        unit.iter_mut().for_each(|x| *x *= inverse);
        Centered {
            unit,
            scale: largest,
            norm2: saturate(norm2),
            center_dot: saturate(center_dot),
        }
    }
}

/// Codes go from -127 to 127; -128 would make the grid lopsided.
const CODE_MAX: f32 = 127.0;

/// A centred vector `y = scale * unit`.
pub(super) struct Centered {
    pub(super) unit: Vec<f32>,
    pub(super) scale: f32,
    pub(super) norm2: f32,
    pub(super) center_dot: f32,
}

/// Eight partial sums in f64, which the compiler turns into vectors.
fn dot_f64(a: &[f32], b: &[f32]) -> f64 {
    let mut sums = [0.0f64; 8];
    let ((wide_a, tail_a), (wide_b, tail_b)) = (a.as_chunks::<8>(), b.as_chunks::<8>());
    for (x, y) in wide_a.iter().zip(wide_b) {
        for lane in 0..8 {
            sums[lane] += f64::from(x[lane]) * f64::from(y[lane]);
        }
    }
    let tail: f64 = tail_a
        .iter()
        .zip(tail_b)
        .map(|(&x, &y)| f64::from(x) * f64::from(y))
        .sum();
    sums.iter().sum::<f64>() + tail
}

/// The nearest finite f32.
fn saturate(x: f64) -> f32 {
    x.clamp(f64::from(f32::MIN), f64::from(f32::MAX)) as f32
}
