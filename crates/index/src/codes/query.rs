//! A vector prepared to be compared with the records of one segment.

use std::sync::OnceLock;

use super::Encoder;
use super::centered::{Centered, pack, round_to_byte};
use super::encoder::Form;
use super::record::{self, Header1, Header8};
use crate::distance::{QUERY_PLANES, kernels};

/// A query against the codes of one [`Encoder`]: `p = R(q - c)` as an 8-bit code of its own scale,
/// and as [`QUERY_PLANES`] bit planes on a uniform grid for the 1-bit scan.
///
/// Both scores estimate the metric's own score of the row, larger is better.
#[derive(Clone, Debug)]
pub struct Query {
    form: Form,
    dim: usize,
    norm2: f32,
    center_dot: f32,
    center_norm2: f32,
    eight: Code8,
    /// `p = unit_scale * unit`, of which the planes are made at the first 1-bit score: most queries
    /// walk a graph that holds every row.
    unit: Vec<f32>,
    unit_scale: f32,
    planes: OnceLock<Planes>,
}

/// The query's 8-bit code; `p` is about `scale * codes`.
#[derive(Clone, Debug)]
struct Code8 {
    scale: f32,
    codes: Vec<i8>,
}

/// The query on a grid of 16 steps, `p_i` about `low + step * u_i`, and its bits by significance.
///
/// With the signs `2 b_i - 1` of a row, its code times `p` is
/// `2 step * sum(b_i u_i) + 2 low * sum(b_i) - sum(low + step * u_i)`.
#[derive(Clone, Debug)]
struct Planes {
    bits: Vec<u64>,
    per_sum: f32,
    per_one: f32,
    offset: f32,
}

impl Query {
    /// Prepares the vector `q` of a request (for `Cosine`, normalised).
    ///
    /// Cost: one rotation and a few passes over the coordinates.
    #[must_use]
    pub fn new(encoder: &Encoder, q: &[f32]) -> Self {
        Self::from_rotated(encoder, &encoder.rotate(q))
    }

    /// The same from `Rq`, which a search over several segments computes once.
    #[must_use]
    pub fn from_rotated(encoder: &Encoder, rotated: &[f32]) -> Self {
        let mut record = vec![0; encoder.stride8()];
        let centered: Centered = encoder.centered(rotated);
        centered.write8(&mut record);
        let Centered { unit, scale, .. } = centered;
        Self::assemble(encoder, encoder.query_form(), &record, unit, scale)
    }

    /// A stored row as the query, for the insertion of that row: `score8` of it equals
    /// [`Encoder::pair8`] to the last bit, and needs no original.
    #[must_use]
    pub fn from_record8(encoder: &Encoder, record: &[u8]) -> Self {
        let scale = Header8::read(record).scale;
        let unit: Vec<f32> = record::codes8(record, encoder.dim())
            .iter()
            .map(|&code| f32::from(code))
            .collect();
        Self::assemble(encoder, encoder.pair_form(), record, unit, scale)
    }

    fn assemble(
        encoder: &Encoder,
        form: Form,
        record: &[u8],
        unit: Vec<f32>,
        unit_scale: f32,
    ) -> Self {
        let dim = encoder.dim();
        let Header8 {
            scale,
            norm2,
            center_dot,
        } = Header8::read(record);
        let eight = Code8 {
            scale,
            codes: record::codes8(record, dim).to_vec(),
        };
        Self {
            form,
            dim,
            norm2,
            center_dot,
            center_norm2: encoder.center_norm2(),
            eight,
            unit,
            unit_scale,
            planes: OnceLock::new(),
        }
    }

    #[inline]
    fn planes(&self) -> &Planes {
        self.planes
            .get_or_init(|| Planes::new(&self.unit, self.unit_scale))
    }

    /// The estimated score of a row by its 8-bit record.
    #[inline]
    #[must_use]
    pub fn score8(&self, record: &[u8]) -> f32 {
        let product = (kernels().dot_i8)(&self.eight.codes, record::codes8(record, self.dim));
        let header = Header8::read(record);
        let estimate = self.eight.scale * header.scale * product as f32;
        self.combine(estimate, header.norm2, header.center_dot)
    }

    /// The estimated score of a row by its 1-bit record.
    ///
    /// # Panics
    ///
    /// If the record is not aligned to [`record::ALIGN`].
    #[inline]
    #[must_use]
    pub fn score1(&self, record: &[u8]) -> f32 {
        let code = &record::words(record)[..record::words1(self.dim)];
        self.score1_of_sum(record, (kernels().bits)(code, &self.planes().bits))
    }

    /// Bytes of one 1-bit record that this query reads.
    #[inline]
    #[must_use]
    pub fn stride1(&self) -> usize {
        record::stride1(self.dim)
    }

    /// The weighted bit counts of consecutive 1-bit records, one for each of `sums`.
    #[inline]
    pub(crate) fn sums1(&self, records: &[u8], sums: &mut [u32]) {
        let stride_words = self.stride1() / size_of::<u64>();
        (kernels().bits_run)(
            record::words(records),
            stride_words,
            &self.planes().bits,
            sums,
        );
    }

    /// [`Self::score1`] of a record whose weighted bit count is known.
    #[inline]
    pub(crate) fn score1_of_sum(&self, record: &[u8], sum: u32) -> f32 {
        let header = Header1::read(record);
        let planes = self.planes();
        let signs_dot = planes.per_sum * sum as f32 + planes.per_one * header.ones as f32;
        let estimate = header.factor * (signs_dot + planes.offset);
        self.combine(estimate, header.norm2, header.center_dot)
    }

    /// From an estimate of `y . p` to the score. The additions pair what belongs to the query with
    /// what belongs to the row, so that the score of two rows is symmetric.
    #[inline]
    fn combine(&self, estimate: f32, norm2: f32, center_dot: f32) -> f32 {
        match self.form {
            Form::Product => estimate + (self.center_dot + center_dot) + self.center_norm2,
            Form::Distance => 2.0 * estimate - (self.norm2 + norm2),
        }
    }
}

impl Planes {
    /// The largest step of the grid.
    const STEPS: f32 = ((1 << QUERY_PLANES) - 1) as f32;

    /// The planes of `scale * unit`.
    fn new(unit: &[f32], scale: f32) -> Self {
        let words = record::words1(unit.len());
        let (low, high) = range(unit);
        let step = (high - low) / Self::STEPS;
        let inverse = if step > 0.0 { 1.0 / step } else { 0.0 };
        let mut bits = vec![0u64; QUERY_PLANES * words];
        let mut total = 0;
        for (i, chunk) in unit.chunks(64).enumerate() {
            let mut grid = [0u8; 64];
            for (u, x) in grid.iter_mut().zip(chunk) {
                *u = round_to_byte((x - low) * inverse);
            }
            total += grid.iter().map(|&u| u32::from(u)).sum::<u32>();
            for (at, group) in grid.as_chunks::<8>().0.iter().enumerate() {
                let group = u64::from_le_bytes(*group);
                for plane in 0..QUERY_PLANES {
                    bits[plane * words + i] |= u64::from(pack(group >> plane)) << (8 * at);
                }
            }
        }
        Self {
            bits,
            per_sum: scale * 2.0 * step,
            per_one: scale * 2.0 * low,
            offset: -scale * (unit.len() as f32 * low + step * total as f32),
        }
    }
}

/// The smallest and the largest coordinate.
fn range(v: &[f32]) -> (f32, f32) {
    const LANES: usize = 8;
    let (mut low, mut high) = ([f32::INFINITY; LANES], [f32::NEG_INFINITY; LANES]);
    let (wide, tail) = v.as_chunks::<LANES>();
    for x in wide {
        for lane in 0..LANES {
            low[lane] = if x[lane] < low[lane] {
                x[lane]
            } else {
                low[lane]
            };
            high[lane] = if x[lane] > high[lane] {
                x[lane]
            } else {
                high[lane]
            };
        }
    }
    let all = || tail.iter().copied();
    (
        low.into_iter().chain(all()).fold(f32::INFINITY, f32::min),
        high.into_iter()
            .chain(all())
            .fold(f32::NEG_INFINITY, f32::max),
    )
}
