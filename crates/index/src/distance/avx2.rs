//! Kernels for AVX2 and FMA (Haswell, 2013, and every x86-64 server since).
//!
//! Tails are copied to a zeroed register-wide array: a zero pair adds nothing to any of the sums.

use std::arch::x86_64::{
    __m128i, __m256, __m256i, _mm_add_epi32, _mm_add_ps, _mm_add_ss, _mm_cvtsi128_si32,
    _mm_cvtss_f32, _mm_loadu_si128, _mm_movehdup_ps, _mm_movehl_ps, _mm_shuffle_epi32,
    _mm256_add_epi8, _mm256_add_epi32, _mm256_add_epi64, _mm256_add_ps, _mm256_and_si256,
    _mm256_andnot_ps, _mm256_castps256_ps128, _mm256_castsi256_si128, _mm256_cvtepi8_epi16,
    _mm256_extractf128_ps, _mm256_extracti128_si256, _mm256_fmadd_ps, _mm256_loadu_ps,
    _mm256_loadu_si256, _mm256_madd_epi16, _mm256_sad_epu8, _mm256_set1_epi8, _mm256_set1_ps,
    _mm256_setr_epi8, _mm256_setzero_ps, _mm256_setzero_si256, _mm256_shuffle_epi8,
    _mm256_slli_epi16, _mm256_srli_epi16, _mm256_storeu_si256, _mm256_sub_ps,
};

use super::{Kernels, QUERY_PLANES, assert_run};

/// The table of these kernels, or `None` where the CPU lacks a feature they use.
pub(super) fn detect() -> Option<&'static Kernels> {
    let found = is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("fma")
        && is_x86_feature_detected!("popcnt");
    found.then_some(&KERNELS)
}

/// Private, and given out by [`detect`] alone: the wrappers below rest on that.
static KERNELS: Kernels = Kernels {
    name: "avx2",
    dot,
    l2,
    l1,
    dot_i8,
    bits,
    bits_run,
};

fn dot(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(
        a.len(),
        b.len(),
        "vectors of one kernel call have equal length"
    );
    // SAFETY: this function is reached only through `detect`, which saw AVX2 and FMA.
    unsafe { dot_avx2(a, b) }
}

fn l2(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(
        a.len(),
        b.len(),
        "vectors of one kernel call have equal length"
    );
    // SAFETY: this function is reached only through `detect`, which saw AVX2 and FMA.
    unsafe { l2_avx2(a, b) }
}

fn l1(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(
        a.len(),
        b.len(),
        "vectors of one kernel call have equal length"
    );
    // SAFETY: this function is reached only through `detect`, which saw AVX2 and FMA.
    unsafe { l1_avx2(a, b) }
}

fn dot_i8(a: &[i8], b: &[i8]) -> i32 {
    assert_eq!(
        a.len(),
        b.len(),
        "codes of one kernel call have equal length"
    );
    // SAFETY: this function is reached only through `detect`, which saw AVX2.
    unsafe { dot_i8_avx2(a, b) }
}

fn bits(code: &[u64], planes: &[u64]) -> u32 {
    assert_eq!(
        planes.len(),
        QUERY_PLANES * code.len(),
        "a query has four planes of a code's size"
    );
    // SAFETY: this function is reached only through `detect`, which saw AVX2 and POPCNT.
    unsafe { bits_avx2(code, planes) }
}

fn bits_run(codes: &[u64], stride: usize, planes: &[u64], sums: &mut [u32]) {
    let words = planes.len() / QUERY_PLANES;
    assert_run(codes.len(), stride, words, sums.len());
    for (i, sum) in sums.iter_mut().enumerate() {
        *sum = bits(&codes[i * stride..i * stride + words], planes);
    }
}

#[target_feature(enable = "avx2,fma")]
fn dot_avx2(a: &[f32], b: &[f32]) -> f32 {
    fold(a, b, |sum, x, y| _mm256_fmadd_ps(x, y, sum))
}

#[target_feature(enable = "avx2,fma")]
fn l2_avx2(a: &[f32], b: &[f32]) -> f32 {
    fold(a, b, |sum, x, y| {
        let difference = _mm256_sub_ps(x, y);
        _mm256_fmadd_ps(difference, difference, sum)
    })
}

#[target_feature(enable = "avx2,fma")]
fn l1_avx2(a: &[f32], b: &[f32]) -> f32 {
    let sign = _mm256_set1_ps(-0.0);
    fold(a, b, |sum, x, y| {
        _mm256_add_ps(sum, _mm256_andnot_ps(sign, _mm256_sub_ps(x, y)))
    })
}

/// Adds `step` over all pairs of registers; four sums hide the latency of the addition.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn fold(a: &[f32], b: &[f32], step: impl Fn(__m256, __m256, __m256) -> __m256) -> f32 {
    let mut sums = [_mm256_setzero_ps(); 4];
    let (wide_a, rest_a) = a.as_chunks::<32>();
    let (wide_b, rest_b) = b.as_chunks::<32>();
    for (x, y) in wide_a.iter().zip(wide_b) {
        for (lane, sum) in sums.iter_mut().enumerate() {
            // SAFETY: `lane` is below 4, so the eight floats at 8 * lane lie in the 32 of the chunk.
            let (x, y) = unsafe {
                (
                    _mm256_loadu_ps(x.as_ptr().add(8 * lane)),
                    _mm256_loadu_ps(y.as_ptr().add(8 * lane)),
                )
            };
            *sum = step(*sum, x, y);
        }
    }
    let (narrow_a, tail_a) = rest_a.as_chunks::<8>();
    let (narrow_b, tail_b) = rest_b.as_chunks::<8>();
    for (x, y) in narrow_a.iter().zip(narrow_b) {
        sums[0] = step(sums[0], load8(x), load8(y));
    }
    if !tail_a.is_empty() {
        let (mut x, mut y) = ([0.0; 8], [0.0; 8]);
        x[..tail_a.len()].copy_from_slice(tail_a);
        y[..tail_b.len()].copy_from_slice(tail_b);
        sums[1] = step(sums[1], load8(&x), load8(&y));
    }
    let sum = _mm256_add_ps(
        _mm256_add_ps(sums[0], sums[1]),
        _mm256_add_ps(sums[2], sums[3]),
    );
    let half = _mm_add_ps(_mm256_castps256_ps128(sum), _mm256_extractf128_ps::<1>(sum));
    let pair = _mm_add_ps(half, _mm_movehl_ps(half, half));
    _mm_cvtss_f32(_mm_add_ss(pair, _mm_movehdup_ps(pair)))
}

#[inline]
#[target_feature(enable = "avx2")]
fn load8(v: &[f32; 8]) -> __m256 {
    // SAFETY: the reference covers the eight floats; the load needs no alignment.
    unsafe { _mm256_loadu_ps(v.as_ptr()) }
}

/// Widened to 16 bits before multiplying, so that no pair saturates: -128 * -128 twice is 32,768,
/// which the 32-bit sums of `madd` hold.
#[target_feature(enable = "avx2")]
fn dot_i8_avx2(a: &[i8], b: &[i8]) -> i32 {
    let mut sums = [_mm256_setzero_si256(); 2];
    let (wide_a, rest_a) = a.as_chunks::<32>();
    let (wide_b, rest_b) = b.as_chunks::<32>();
    for (x, y) in wide_a.iter().zip(wide_b) {
        for (lane, sum) in sums.iter_mut().enumerate() {
            // SAFETY: `lane` is below 2, so the 16 bytes at 16 * lane lie in the 32 of the chunk.
            let (x, y) = unsafe {
                (
                    _mm_loadu_si128(x.as_ptr().add(16 * lane).cast::<__m128i>()),
                    _mm_loadu_si128(y.as_ptr().add(16 * lane).cast::<__m128i>()),
                )
            };
            *sum = _mm256_add_epi32(*sum, multiply16(x, y));
        }
    }
    let (narrow_a, tail_a) = rest_a.as_chunks::<16>();
    let (narrow_b, tail_b) = rest_b.as_chunks::<16>();
    for (x, y) in narrow_a.iter().zip(narrow_b) {
        sums[0] = _mm256_add_epi32(sums[0], multiply16(load16(x), load16(y)));
    }
    if !tail_a.is_empty() {
        let (mut x, mut y) = ([0; 16], [0; 16]);
        x[..tail_a.len()].copy_from_slice(tail_a);
        y[..tail_b.len()].copy_from_slice(tail_b);
        sums[1] = _mm256_add_epi32(sums[1], multiply16(load16(&x), load16(&y)));
    }
    let sum = _mm256_add_epi32(sums[0], sums[1]);
    let half = _mm_add_epi32(
        _mm256_castsi256_si128(sum),
        _mm256_extracti128_si256::<1>(sum),
    );
    let pair = _mm_add_epi32(half, _mm_shuffle_epi32::<0b00_00_11_10>(half));
    _mm_cvtsi128_si32(_mm_add_epi32(
        pair,
        _mm_shuffle_epi32::<0b00_00_00_01>(pair),
    ))
}

#[inline]
#[target_feature(enable = "avx2")]
fn multiply16(x: __m128i, y: __m128i) -> __m256i {
    _mm256_madd_epi16(_mm256_cvtepi8_epi16(x), _mm256_cvtepi8_epi16(y))
}

#[inline]
#[target_feature(enable = "avx2")]
fn load16(v: &[i8; 16]) -> __m128i {
    // SAFETY: the reference covers the 16 bytes; the load needs no alignment.
    unsafe { _mm_loadu_si128(v.as_ptr().cast::<__m128i>()) }
}

/// Popcount by a table of nibbles (Mula, Kurz, Lemire 2016, arXiv 1611.07612).
///
/// The weight of a plane is a shift of the table's answers: a byte of all four planes together
/// counts at most 8 * (1 + 2 + 4 + 8) = 120, so the weighted sum of two registers still fits.
#[target_feature(enable = "avx2,popcnt")]
fn bits_avx2(code: &[u64], planes: &[u64]) -> u32 {
    let words = code.len();
    let (wide, tail) = code.as_chunks::<4>();
    let mut sum = _mm256_setzero_si256();
    for (i, chunk) in wide.iter().enumerate() {
        // SAFETY: the reference covers the four words.
        let c = unsafe { _mm256_loadu_si256(chunk.as_ptr().cast::<__m256i>()) };
        let mut counts = _mm256_setzero_si256();
        for plane in (0..QUERY_PLANES).rev() {
            let at = plane * words + 4 * i;
            // SAFETY: 4 * i + 4 <= words and the caller checked that there are four planes of
            // `words` words, so the four words at `at` lie in `planes`.
            let p = unsafe { _mm256_loadu_si256(planes.as_ptr().add(at).cast::<__m256i>()) };
            // Doubling what the higher planes gave: bytes stay below 128, so no bit is carried
            // over to the neighbour by a 16-bit shift.
            counts = _mm256_slli_epi16::<1>(counts);
            counts = _mm256_add_epi8(counts, count_bytes(_mm256_and_si256(c, p)));
        }
        sum = _mm256_add_epi64(sum, _mm256_sad_epu8(counts, _mm256_setzero_si256()));
    }
    let mut lanes = [0u64; 4];
    // SAFETY: the array holds exactly the 32 bytes that are written.
    unsafe { _mm256_storeu_si256(lanes.as_mut_ptr().cast::<__m256i>(), sum) };
    let mut total = lanes.iter().sum::<u64>() as u32;
    for (i, c) in tail.iter().enumerate() {
        for plane in 0..QUERY_PLANES {
            total += (c & planes[plane * words + 4 * wide.len() + i]).count_ones() << plane;
        }
    }
    total
}

/// The count of set bits of each byte.
#[inline]
#[target_feature(enable = "avx2")]
fn count_bytes(v: __m256i) -> __m256i {
    let table = _mm256_setr_epi8(
        0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4, 0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3,
        3, 4,
    );
    let nibble = _mm256_set1_epi8(0x0f);
    let low = _mm256_and_si256(v, nibble);
    let high = _mm256_and_si256(_mm256_srli_epi16::<4>(v), nibble);
    _mm256_add_epi8(
        _mm256_shuffle_epi8(table, low),
        _mm256_shuffle_epi8(table, high),
    )
}
