//! Distances between vectors: the kernels, the one rule "larger is better", normalisation.
//!
//! 1. [`scalar`] holds the reference kernels; they run on every architecture.
//! 2. `avx2` and `avx512` hold the x86-64 ones; each is tested against the reference for every
//!    length and alignment.
//! 3. [`dispatch`] chooses one table of kernels for the whole process at its first use.
//!
//! Kernels panic when the two slices differ in length: that is a fault of the caller, never of a
//! user, whose vectors are checked long before.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
pub mod dispatch;
mod prefetch;
pub mod scalar;
#[cfg(test)]
mod tests;

pub use dispatch::{Level, SelectError, available, kernels, select};
pub use prefetch::prefetch;

use crate::types::Metric;

/// How many bit planes a query of the 1-bit scan has: four, so a 16-step grid.
///
/// RaBitQ (arXiv 2405.12497, section 3.3.1) shows four to be enough: the error of the grid is then
/// small against the error of the 1-bit code.
pub const QUERY_PLANES: usize = 4;

/// One set of kernels for one instruction set.
///
/// Shapes: both slices of one call have equal length; no alignment is needed.
#[derive(Debug)]
pub struct Kernels {
    /// The instruction set, for logs and tests: `scalar`, `avx2` or `avx512`.
    pub name: &'static str,
    /// Dot product.
    pub dot: fn(&[f32], &[f32]) -> f32,
    /// Squared Euclidean distance.
    pub l2: fn(&[f32], &[f32]) -> f32,
    /// Sum of absolute differences.
    pub l1: fn(&[f32], &[f32]) -> f32,
    /// Dot product of signed bytes, exact up to 131,071 of them (past that it wraps).
    pub dot_i8: fn(&[i8], &[i8]) -> i32,
    /// `bits(code, planes)`: the sum over `j` of `2^j * popcount(code & plane_j)`, where `planes`
    /// holds [`QUERY_PLANES`] planes of `code.len()` words one after another.
    pub bits: fn(&[u64], &[u64]) -> u32,
    /// `bits_run(codes, stride, planes, sums)`: `bits` for `sums.len()` codes that stand
    /// `stride` words apart. One call for a block of records, since the call, the loads of the
    /// query and the last reduction cost more than the counting itself.
    pub bits_run: fn(&[u64], usize, &[u64], &mut [u32]),
}

impl Kernels {
    /// The score of `a` against `b`, larger is better; see [`score`].
    #[inline]
    #[must_use]
    pub fn score(&self, metric: Metric, a: &[f32], b: &[f32]) -> f32 {
        match metric {
            Metric::Cosine | Metric::Dot => (self.dot)(a, b),
            Metric::Euclid => -(self.l2)(a, b),
            Metric::Manhattan => -(self.l1)(a, b),
        }
    }
}

/// The score of two vectors, larger is better: the dot product, or the negated distance (squared
/// for Euclid). `Cosine` expects vectors that [`normalize`] has seen.
#[must_use]
pub fn score(metric: Metric, a: &[f32], b: &[f32]) -> f32 {
    kernels().score(metric, a, b)
}

/// Scales `v` to unit length, in place.
///
/// Only the true zero vector stays zero: the length is taken in f64, where no f32 square
/// underflows, so `[1e-6, 0]` and even denormals get their direction. A vector whose length is
/// already one within rounding is not touched, so that normalising twice changes no bit. Values
/// that are not finite are refused before this; such a vector is left as it is.
pub fn normalize(v: &mut [f32]) {
    // Rounding each coordinate to f32 moves the squared length by at most 2 * 2^-24 in first order.
    const UNIT_SLACK: f64 = 2.0 * f32::EPSILON as f64;
    let norm2: f64 = v.iter().map(|&x| f64::from(x) * f64::from(x)).sum();
    if norm2 == 0.0 || !norm2.is_finite() || (norm2 - 1.0).abs() <= UNIT_SLACK {
        return;
    }
    let length = norm2.sqrt();
    for x in v {
        *x = (f64::from(*x) / length) as f32;
    }
}

/// Panics unless a run of `count` codes of `words` words each, `stride` words apart, lies in
/// `available` words. The unsafe loads of the run kernels rest on it.
fn assert_run(available: usize, stride: usize, words: usize, count: usize) {
    assert!(stride >= words, "codes of a run must not overlap");
    let needed = match count {
        0 => Some(0),
        n => (n - 1)
            .checked_mul(stride)
            .and_then(|start| start.checked_add(words)),
    };
    assert!(
        needed.is_some_and(|n| n <= available),
        "the run of codes ends past its slice"
    );
}
