//! From a rotated vector to its 8-bit and its 1-bit record.

use std::sync::Arc;

use super::Rotation;
use super::centered::{Centered, dot_f64};
use super::record::{self, Header8};
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

/// How many of the best rows by 1-bit score to rescore, so that recall@10 stays above 0.98.
///
/// The error of one bit is a share of `1 / sqrt(dim)` of the lengths. Measured on 116,659 text
/// vectors, cut to their first rotated coordinates, the worse of Dot and Euclid: 300 candidates
/// give 0.994 at 128 dims, 0.970 at 96, 0.927 at 64; 1,000 give 0.995 at 96 and 0.985 at 64. With
/// all 384 coordinates (Cosine) 100 give 0.996.
#[must_use]
pub fn candidates1(dim: usize) -> usize {
    const ENOUGH: usize = 300;
    const ENOUGH_FROM_DIM: usize = 128;
    if dim >= ENOUGH_FROM_DIM {
        return ENOUGH;
    }
    ENOUGH * ENOUGH_FROM_DIM * ENOUGH_FROM_DIM / (dim * dim).max(1)
}

/// How many of the best rows by 8-bit score to rescore for an answer of `k`.
///
/// On 116,659 text vectors of 384 dims and 80,000 of 1,024 the best 20 by 8-bit score hold all of
/// the true 10.
#[must_use]
pub fn candidates8(k: usize) -> usize {
    k.saturating_add(k.max(10))
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
    ///
    /// Not for want of recall of the 8-bit code: on the first coordinates of 116,659 rotated text
    /// vectors its best 20 held all of the true 10 from 8 dims on. But its record fills a cache line
    /// like the original of 16 dims, and one bit holds ever less (see [`candidates1`]).
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
    #[inline]
    #[must_use]
    pub fn metric(&self) -> Metric {
        self.metric
    }

    /// Coordinates of a vector.
    #[inline]
    #[must_use]
    pub fn dim(&self) -> usize {
        self.rotation.dim()
    }

    /// Bytes of one 8-bit record.
    #[inline]
    #[must_use]
    pub fn stride8(&self) -> usize {
        record::stride8(self.dim())
    }

    /// Bytes of one 1-bit record.
    #[inline]
    #[must_use]
    pub fn stride1(&self) -> usize {
        record::stride1(self.dim())
    }

    /// The rotation, for turning vectors in a buffer of the caller's.
    #[inline]
    #[must_use]
    pub fn rotation(&self) -> &Arc<Rotation> {
        &self.rotation
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
    /// A vector whose rotated coordinates overflow f32 gets a code of zeros and the largest norm.
    /// The same bits on every machine, whatever its kernels.
    pub fn encode8(&self, rotated: &[f32], out: &mut [u8]) {
        self.centered(rotated).write8(out);
    }

    /// Writes the 1-bit record of `Rx` to `out`, which is one stride long; else as [`Self::encode8`].
    pub fn encode1(&self, rotated: &[f32], out: &mut [u8]) {
        self.centered(rotated).write1(out);
    }

    /// Writes both records, for less than the two calls cost.
    pub fn encode(&self, rotated: &[f32], out8: &mut [u8], out1: &mut [u8]) {
        let centered = self.centered(rotated);
        centered.write8(out8);
        centered.write1(out1);
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

    #[inline]
    pub(super) fn query_form(&self) -> Form {
        match self.metric {
            Metric::Cosine | Metric::Dot => Form::Product,
            Metric::Euclid | Metric::Manhattan => Form::Distance,
        }
    }

    #[inline]
    pub(super) fn pair_form(&self) -> Form {
        match (self.metric, self.dot_pairs) {
            (Metric::Dot, DotPairs::Distance) => Form::Distance,
            _ => self.query_form(),
        }
    }

    #[inline]
    pub(super) fn center_norm2(&self) -> f32 {
        self.center_norm2
    }

    /// `y = Rx - Rc`, ready to be encoded.
    pub(super) fn centered(&self, rotated: &[f32]) -> Centered {
        assert_eq!(
            rotated.len(),
            self.dim(),
            "rotated vectors have the encoder's dimension"
        );
        let y = rotated
            .iter()
            .zip(&self.rotated_center)
            .map(|(x, c)| x - c)
            .collect();
        Centered::new(y, &self.rotated_center)
    }
}
