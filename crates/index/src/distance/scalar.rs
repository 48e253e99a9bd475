//! Reference kernels in plain Rust, for every architecture.
//!
//! They keep 16 partial sums, which the compiler turns into whatever vectors the target has
//! by default, and which also bounds the rounding error: each lane adds `n / LANES` terms.

use super::{Kernels, QUERY_PLANES, assert_run};

/// The table of the reference kernels.
pub static KERNELS: Kernels = Kernels {
    name: "scalar",
    dot,
    l2,
    l1,
    dot_i8,
    bits,
    bits_run,
};

/// Partial sums of one f32 kernel: as many as one AVX-512 register holds.
const LANES: usize = 16;

fn dot(a: &[f32], b: &[f32]) -> f32 {
    fold(a, b, |x, y| x * y)
}

fn l2(a: &[f32], b: &[f32]) -> f32 {
    fold(a, b, |x, y| (x - y) * (x - y))
}

fn l1(a: &[f32], b: &[f32]) -> f32 {
    fold(a, b, |x, y| (x - y).abs())
}

#[inline(always)]
fn fold(a: &[f32], b: &[f32], term: impl Fn(f32, f32) -> f32) -> f32 {
    assert_eq!(
        a.len(),
        b.len(),
        "vectors of one kernel call have equal length"
    );
    let (blocks_a, tail_a) = a.as_chunks::<LANES>();
    let (blocks_b, tail_b) = b.as_chunks::<LANES>();
    let mut sums = [0.0f32; LANES];
    for (x, y) in blocks_a.iter().zip(blocks_b) {
        for lane in 0..LANES {
            sums[lane] += term(x[lane], y[lane]);
        }
    }
    let tail: f32 = tail_a.iter().zip(tail_b).map(|(&x, &y)| term(x, y)).sum();
    // Halving keeps the tree of additions short, as the vector kernels do.
    let mut width = LANES / 2;
    while width > 0 {
        for lane in 0..width {
            sums[lane] += sums[lane + width];
        }
        width /= 2;
    }
    sums[0] + tail
}

fn dot_i8(a: &[i8], b: &[i8]) -> i32 {
    assert_eq!(
        a.len(),
        b.len(),
        "codes of one kernel call have equal length"
    );
    a.iter().zip(b).fold(0i32, |sum, (&x, &y)| {
        sum.wrapping_add(i32::from(x) * i32::from(y))
    })
}

fn bits(code: &[u64], planes: &[u64]) -> u32 {
    assert_eq!(
        planes.len(),
        QUERY_PLANES * code.len(),
        "a query has four planes of a code's size"
    );
    if code.is_empty() {
        return 0;
    }
    let weighted = planes
        .chunks_exact(code.len())
        .enumerate()
        .map(|(j, plane)| {
            let count: u32 = code
                .iter()
                .zip(plane)
                .map(|(c, p)| (c & p).count_ones())
                .sum();
            count << j
        });
    weighted.sum()
}

fn bits_run(codes: &[u64], stride: usize, planes: &[u64], sums: &mut [u32]) {
    let words = planes.len() / QUERY_PLANES;
    assert_run(codes.len(), stride, words, sums.len());
    for (i, sum) in sums.iter_mut().enumerate() {
        *sum = bits(&codes[i * stride..i * stride + words], planes);
    }
}
