//! Kernels for AVX-512 with VNNI and VPOPCNTDQ (Ice Lake 2019, Zen 4 2022 and later).
//!
//! Tails are masked loads: lanes past the end read nothing and count as zero.

use std::arch::x86_64::{
    __m512, __m512i, __mmask8, __mmask16, __mmask64, _mm512_abs_ps, _mm512_add_epi32,
    _mm512_add_epi64, _mm512_add_ps, _mm512_and_si512, _mm512_dpbusd_epi32, _mm512_fmadd_ps,
    _mm512_loadu_ps, _mm512_loadu_si512, _mm512_maskz_loadu_epi8, _mm512_maskz_loadu_epi64,
    _mm512_maskz_loadu_ps, _mm512_popcnt_epi64, _mm512_reduce_add_epi32, _mm512_reduce_add_epi64,
    _mm512_reduce_add_ps, _mm512_set1_epi8, _mm512_setzero_ps, _mm512_setzero_si512,
    _mm512_slli_epi64, _mm512_sub_epi32, _mm512_sub_ps, _mm512_xor_si512,
};

use super::{Kernels, QUERY_PLANES, assert_run};

/// The table of these kernels, or `None` where the CPU lacks a feature they use.
pub(super) fn detect() -> Option<&'static Kernels> {
    let found = is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512vnni")
        && is_x86_feature_detected!("avx512vpopcntdq");
    found.then_some(&KERNELS)
}

/// Private, and given out by [`detect`] alone: the wrappers below rest on that.
static KERNELS: Kernels = Kernels {
    name: "avx512",
    dot,
    l2,
    l1,
    dot_i8,
    bits,
    bits_run,
};

/// Words of one register.
const WORDS: usize = 8;

fn dot(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(
        a.len(),
        b.len(),
        "vectors of one kernel call have equal length"
    );
    // SAFETY: this function is reached only through `detect`, which saw AVX-512F.
    unsafe { dot_avx512(a, b) }
}

fn l2(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(
        a.len(),
        b.len(),
        "vectors of one kernel call have equal length"
    );
    // SAFETY: this function is reached only through `detect`, which saw AVX-512F.
    unsafe { l2_avx512(a, b) }
}

fn l1(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(
        a.len(),
        b.len(),
        "vectors of one kernel call have equal length"
    );
    // SAFETY: this function is reached only through `detect`, which saw AVX-512F.
    unsafe { l1_avx512(a, b) }
}

fn dot_i8(a: &[i8], b: &[i8]) -> i32 {
    assert_eq!(
        a.len(),
        b.len(),
        "codes of one kernel call have equal length"
    );
    // SAFETY: this function is reached only through `detect`, which saw AVX-512F, BW and VNNI.
    unsafe { dot_i8_avx512(a, b) }
}

fn bits(code: &[u64], planes: &[u64]) -> u32 {
    assert_eq!(
        planes.len(),
        QUERY_PLANES * code.len(),
        "a query has four planes of a code's size"
    );
    // SAFETY: this function is reached only through `detect`, which saw AVX-512F and VPOPCNTDQ.
    unsafe { bits_avx512(code, planes) }
}

fn bits_run(codes: &[u64], stride: usize, planes: &[u64], sums: &mut [u32]) {
    let words = planes.len() / QUERY_PLANES;
    assert_eq!(
        planes.len(),
        QUERY_PLANES * words,
        "a query has four planes of equal size"
    );
    assert_run(codes.len(), stride, words, sums.len());
    // SAFETY: this function is reached only through `detect`, which saw AVX-512F and VPOPCNTDQ.
    // The kernels read `words` words at each multiple of `stride` below `sums.len()`, which
    // `assert_run` has checked; the planes are four of `words` words.
    unsafe {
        match words.div_ceil(WORDS) {
            1 => bits_run_avx512::<1>(codes, stride, planes, sums),
            2 => bits_run_avx512::<2>(codes, stride, planes, sums),
            3 => bits_run_avx512::<3>(codes, stride, planes, sums),
            4 => bits_run_avx512::<4>(codes, stride, planes, sums),
            _ => {
                for (i, sum) in sums.iter_mut().enumerate() {
                    *sum = bits_avx512(&codes[i * stride..i * stride + words], planes);
                }
            }
        }
    }
}

#[target_feature(enable = "avx512f")]
fn dot_avx512(a: &[f32], b: &[f32]) -> f32 {
    fold(a, b, |sum, x, y| _mm512_fmadd_ps(x, y, sum))
}

#[target_feature(enable = "avx512f")]
fn l2_avx512(a: &[f32], b: &[f32]) -> f32 {
    fold(a, b, |sum, x, y| {
        let difference = _mm512_sub_ps(x, y);
        _mm512_fmadd_ps(difference, difference, sum)
    })
}

#[target_feature(enable = "avx512f")]
fn l1_avx512(a: &[f32], b: &[f32]) -> f32 {
    fold(a, b, |sum, x, y| {
        _mm512_add_ps(sum, _mm512_abs_ps(_mm512_sub_ps(x, y)))
    })
}

/// Adds `step` over all pairs of registers; four sums hide the latency of the addition.
#[inline]
#[target_feature(enable = "avx512f")]
fn fold(a: &[f32], b: &[f32], step: impl Fn(__m512, __m512, __m512) -> __m512) -> f32 {
    let mut sums = [_mm512_setzero_ps(); 4];
    let (wide_a, rest_a) = a.as_chunks::<64>();
    let (wide_b, rest_b) = b.as_chunks::<64>();
    for (x, y) in wide_a.iter().zip(wide_b) {
        for (lane, sum) in sums.iter_mut().enumerate() {
            // SAFETY: `lane` is below 4, so the 16 floats at 16 * lane lie in the 64 of the chunk.
            let (x, y) = unsafe {
                (
                    _mm512_loadu_ps(x.as_ptr().add(16 * lane)),
                    _mm512_loadu_ps(y.as_ptr().add(16 * lane)),
                )
            };
            *sum = step(*sum, x, y);
        }
    }
    for (lane, (x, y)) in rest_a.chunks(16).zip(rest_b.chunks(16)).enumerate() {
        let mask = (u32::MAX >> (32 - x.len())) as __mmask16;
        // SAFETY: the mask names only the `x.len()` floats that both chunks hold.
        let (x, y) = unsafe {
            (
                _mm512_maskz_loadu_ps(mask, x.as_ptr()),
                _mm512_maskz_loadu_ps(mask, y.as_ptr()),
            )
        };
        sums[lane] = step(sums[lane], x, y);
    }
    let sum = _mm512_add_ps(
        _mm512_add_ps(sums[0], sums[1]),
        _mm512_add_ps(sums[2], sums[3]),
    );
    _mm512_reduce_add_ps(sum)
}

/// VNNI multiplies unsigned by signed bytes: with `a xor 0x80 = a + 128` the sum is too large by
/// `128 * sum(b)`, which a second accumulation of the constant 128 against `b` takes off.
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
fn dot_i8_avx512(a: &[i8], b: &[i8]) -> i32 {
    let flip = _mm512_set1_epi8(-128);
    let mut sums = [_mm512_setzero_si512(); 2];
    let mut excess = [_mm512_setzero_si512(); 2];
    let mut add = |lane: usize, x: __m512i, y: __m512i| {
        sums[lane] = _mm512_dpbusd_epi32(sums[lane], _mm512_xor_si512(x, flip), y);
        excess[lane] = _mm512_dpbusd_epi32(excess[lane], flip, y);
    };
    let (wide_a, rest_a) = a.as_chunks::<128>();
    let (wide_b, rest_b) = b.as_chunks::<128>();
    for (x, y) in wide_a.iter().zip(wide_b) {
        for lane in 0..2 {
            // SAFETY: `lane` is below 2, so the 64 bytes at 64 * lane lie in the 128 of the chunk.
            let (x, y) = unsafe {
                (
                    _mm512_loadu_si512(x.as_ptr().add(64 * lane).cast::<__m512i>()),
                    _mm512_loadu_si512(y.as_ptr().add(64 * lane).cast::<__m512i>()),
                )
            };
            add(lane, x, y);
        }
    }
    for (lane, (x, y)) in rest_a.chunks(64).zip(rest_b.chunks(64)).enumerate() {
        let mask: __mmask64 = u64::MAX >> (64 - x.len());
        // SAFETY: the mask names only the `x.len()` bytes that both chunks hold.
        let (x, y) = unsafe {
            (
                _mm512_maskz_loadu_epi8(mask, x.as_ptr()),
                _mm512_maskz_loadu_epi8(mask, y.as_ptr()),
            )
        };
        add(lane, x, y);
    }
    // One reduction: on a short code it costs as much as the products.
    let product = _mm512_add_epi32(sums[0], sums[1]);
    let excess = _mm512_add_epi32(excess[0], excess[1]);
    _mm512_reduce_add_epi32(_mm512_sub_epi32(product, excess))
}

#[target_feature(enable = "avx512f,avx512vpopcntdq")]
fn bits_avx512(code: &[u64], planes: &[u64]) -> u32 {
    let words = code.len();
    let mut sum = _mm512_setzero_si512();
    for (i, chunk) in code.chunks(WORDS).enumerate() {
        let mask = word_mask(chunk.len());
        // SAFETY: the mask names only the words of the chunk.
        let c = unsafe { load_words(chunk.as_ptr(), mask) };
        let mut plane = [_mm512_setzero_si512(); QUERY_PLANES];
        for (j, p) in plane.iter_mut().enumerate() {
            // SAFETY: the caller checked that there are four planes of `words` words, and the
            // masked words start at 8 * i and end with the code's own.
            *p = unsafe { load_words(planes.as_ptr().add(j * words + WORDS * i), mask) };
        }
        sum = _mm512_add_epi64(sum, weighted_counts(c, &plane));
    }
    _mm512_reduce_add_epi64(sum) as u32
}

/// [`bits_avx512`] for a run of codes of `REGISTERS` registers, with the query kept in registers.
///
/// Four codes share one reduction: a lane counts at most 64 * 15 a register, eight lanes of four
/// registers 30,720, so four sums of 16 bits fit side by side in one 64-bit lane.
///
/// # Safety
///
/// `codes` must hold `words` words at every multiple of `stride` below `sums.len()`, and `planes`
/// four planes of `words` words, where `words` needs `REGISTERS` registers, at most four.
#[target_feature(enable = "avx512f,avx512vpopcntdq")]
unsafe fn bits_run_avx512<const REGISTERS: usize>(
    codes: &[u64],
    stride: usize,
    planes: &[u64],
    sums: &mut [u32],
) {
    const { assert!(REGISTERS >= 1 && REGISTERS * WORDS * 64 * 15 < 1 << 16) };
    let words = planes.len() / QUERY_PLANES;
    let last = word_mask(words - (REGISTERS - 1) * WORDS);
    let mask = |register: usize| {
        if register + 1 == REGISTERS {
            last
        } else {
            __mmask8::MAX
        }
    };
    let mut query = [[_mm512_setzero_si512(); QUERY_PLANES]; REGISTERS];
    for (r, plane) in query.iter_mut().enumerate() {
        for (j, p) in plane.iter_mut().enumerate() {
            // SAFETY: plane `j` holds `words` words, of which the mask leaves those of register `r`.
            *p = unsafe { load_words(planes.as_ptr().add(j * words + WORDS * r), mask(r)) };
        }
    }
    let count = |code: usize| {
        let mut sum = _mm512_setzero_si512();
        for (r, plane) in query.iter().enumerate() {
            // SAFETY: `code` is below `sums.len()`, so the contract covers these masked words.
            let c = unsafe { load_words(codes.as_ptr().add(code * stride + WORDS * r), mask(r)) };
            sum = _mm512_add_epi64(sum, weighted_counts(c, plane));
        }
        sum
    };
    let (quads, tail) = sums.as_chunks_mut::<4>();
    let done = quads.len() * 4;
    for (i, quad) in quads.iter_mut().enumerate() {
        let low = _mm512_add_epi64(count(4 * i), _mm512_slli_epi64::<16>(count(4 * i + 1)));
        let high = _mm512_add_epi64(count(4 * i + 2), _mm512_slli_epi64::<16>(count(4 * i + 3)));
        let packed = _mm512_reduce_add_epi64(_mm512_add_epi64(low, _mm512_slli_epi64::<32>(high)));
        *quad = [0, 16, 32, 48].map(|shift| (packed >> shift) as u32 & 0xffff);
    }
    for (i, sum) in tail.iter_mut().enumerate() {
        *sum = _mm512_reduce_add_epi64(count(done + i)) as u32;
    }
}

/// The weighted counts of one register of a code, one sum for each 64-bit lane.
#[inline]
#[target_feature(enable = "avx512f,avx512vpopcntdq")]
fn weighted_counts(code: __m512i, planes: &[__m512i; QUERY_PLANES]) -> __m512i {
    let [c0, c1, c2, c3] = planes.map(|p| _mm512_popcnt_epi64(_mm512_and_si512(code, p)));
    let high = _mm512_add_epi64(c2, _mm512_slli_epi64::<1>(c3));
    let low = _mm512_add_epi64(c0, _mm512_slli_epi64::<1>(c1));
    _mm512_add_epi64(low, _mm512_slli_epi64::<2>(high))
}

/// The mask of the first `words` words of a register, for 1 to 8 of them.
#[inline]
fn word_mask(words: usize) -> __mmask8 {
    __mmask8::MAX >> (WORDS - words)
}

/// # Safety
///
/// The words that `mask` names must be readable from `from` on.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn load_words(from: *const u64, mask: __mmask8) -> __m512i {
    // SAFETY: a masked load touches only the words the mask names; the caller vouches for them.
    unsafe { _mm512_maskz_loadu_epi64(mask, from.cast::<i64>()) }
}
