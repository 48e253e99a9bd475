//! Every kernel against the reference, at every length and alignment; normalisation.

use proptest::prelude::*;

use super::{Kernels, Level, QUERY_PLANES, available, kernels, normalize, scalar, score, select};
use crate::types::Metric;

/// Past the longest loop body of any kernel many times over, and every tail of each.
const LENGTH_MAX: usize = 2100;

/// Stated bound on the difference to the reference, relative to the sum of the absolute terms.
///
/// Each lane of either kernel adds at most 2,100 / 8 terms, each with a rounding of 2^-24 of the
/// partial sum; in practice the difference stays ten times below.
const RELATIVE_BOUND: f64 = 2.0 * 263.0 / (1 << 24) as f64;

/// A small generator, so that a failing length is the same in each run.
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        self.0 ^ (self.0 >> 29)
    }

    fn float(&mut self) -> f32 {
        (self.next() >> 40) as f32 / (1 << 23) as f32 - 1.0
    }

    /// Bytes with many of the extremes.
    fn byte(&mut self) -> i8 {
        match self.next() >> 60 {
            0..4 => -128,
            4..8 => 127,
            _ => (self.next() >> 50) as i8,
        }
    }
}

fn vector_kernels() -> impl Iterator<Item = &'static Kernels> {
    available()
        .into_iter()
        .filter(|k| k.name != scalar::KERNELS.name)
}

fn assert_close(kernel: &str, length: usize, found: f32, expected: f32, magnitude: f64) {
    let difference = (f64::from(found) - f64::from(expected)).abs();
    assert!(
        difference <= RELATIVE_BOUND * magnitude,
        "{kernel} at length {length}: {found} instead of {expected}"
    );
}

#[test]
fn float_kernels_equal_the_reference_at_every_length_and_alignment() {
    let mut noise = Noise(1);
    let a: Vec<f32> = (0..LENGTH_MAX + 8).map(|_| noise.float()).collect();
    let b: Vec<f32> = (0..LENGTH_MAX + 8)
        .map(|_| 3.0 * noise.float() + 0.5)
        .collect();
    for n in 0..=LENGTH_MAX {
        let (x, y) = (&a[n % 5..n % 5 + n], &b[n % 7..n % 7 + n]);
        let pairs = || x.iter().zip(y).map(|(&x, &y)| (f64::from(x), f64::from(y)));
        let products: f64 = pairs().map(|(x, y)| (x * y).abs()).sum();
        let squares: f64 = pairs().map(|(x, y)| (x - y) * (x - y)).sum();
        let differences: f64 = pairs().map(|(x, y)| (x - y).abs()).sum();
        let exact: f64 = pairs().map(|(x, y)| x * y).sum();
        assert_close(
            "scalar dot",
            n,
            (scalar::KERNELS.dot)(x, y),
            exact as f32,
            products,
        );
        for k in vector_kernels() {
            assert_close(
                k.name,
                n,
                (k.dot)(x, y),
                (scalar::KERNELS.dot)(x, y),
                products,
            );
            assert_close(k.name, n, (k.l2)(x, y), (scalar::KERNELS.l2)(x, y), squares);
            assert_close(
                k.name,
                n,
                (k.l1)(x, y),
                (scalar::KERNELS.l1)(x, y),
                differences,
            );
        }
    }
}

#[test]
fn byte_kernels_equal_the_reference_at_every_length_and_alignment() {
    let mut noise = Noise(2);
    let a: Vec<i8> = (0..LENGTH_MAX + 64).map(|_| noise.byte()).collect();
    let b: Vec<i8> = (0..LENGTH_MAX + 64).map(|_| noise.byte()).collect();
    for n in 0..=LENGTH_MAX {
        for (from_a, from_b) in [(0, 0), (n % 63, n % 61)] {
            let (x, y) = (&a[from_a..from_a + n], &b[from_b..from_b + n]);
            let exact: i64 = x
                .iter()
                .zip(y)
                .map(|(&x, &y)| i64::from(x) * i64::from(y))
                .sum();
            for k in available() {
                assert_eq!(
                    i64::from((k.dot_i8)(x, y)),
                    exact,
                    "{} at length {n}",
                    k.name
                );
            }
        }
    }
}

#[test]
fn byte_kernels_do_not_saturate_on_extremes() {
    for n in [1, 15, 16, 64, 384, 1024, 65_536, 131_071] {
        for (x, y) in [(-128i8, -128i8), (-128, 127), (127, -128), (127, 127)] {
            let expected = n as i64 * i64::from(x) * i64::from(y);
            for k in available() {
                let found = (k.dot_i8)(&vec![x; n], &vec![y; n]);
                assert_eq!(i64::from(found), expected, "{}: {n} of {x} and {y}", k.name);
            }
        }
    }
}

#[test]
fn bit_kernels_equal_the_reference_at_every_length_and_alignment() {
    let mut noise = Noise(3);
    let codes: Vec<u64> = (0..LENGTH_MAX + 3).map(|_| noise.next()).collect();
    let planes: Vec<u64> = (0..QUERY_PLANES * LENGTH_MAX + 3)
        .map(|_| noise.next())
        .collect();
    for n in 0..=LENGTH_MAX {
        let code = &codes[n % 3..n % 3 + n];
        let query = &planes[n % 2..n % 2 + QUERY_PLANES * n];
        for k in vector_kernels() {
            assert_eq!(
                (k.bits)(code, query),
                (scalar::KERNELS.bits)(code, query),
                "{}: {n}",
                k.name
            );
        }
    }
    let ones = [u64::MAX; 1024];
    for k in available() {
        assert_eq!(
            (k.bits)(&ones, &[u64::MAX; 4096]),
            1024 * 64 * 15,
            "{}",
            k.name
        );
    }
}

#[test]
fn runs_of_codes_equal_single_codes_for_every_width_stride_and_count() {
    let mut noise = Noise(4);
    for words in 1..=70usize {
        let planes: Vec<u64> = match words % 3 {
            0 => vec![u64::MAX; QUERY_PLANES * words],
            _ => (0..QUERY_PLANES * words).map(|_| noise.next()).collect(),
        };
        for (gap, count) in [(0, 9), (1, 1), (2, 4), (3, 6), (2, 0)] {
            let stride = words + gap;
            let codes: Vec<u64> = match words % 3 {
                0 => vec![u64::MAX; stride * count],
                _ => (0..stride * count).map(|_| noise.next()).collect(),
            };
            let expected: Vec<u32> = codes
                .chunks_exact(stride)
                .map(|code| (scalar::KERNELS.bits)(&code[..words], &planes))
                .collect();
            for k in available() {
                let mut sums = vec![0; count];
                // The gap behind the last code need not exist.
                let end = codes.len() - gap.min(codes.len());
                (k.bits_run)(&codes[..end], stride, &planes, &mut sums);
                assert_eq!(sums, expected, "{}: {words} words, gap {gap}", k.name);
            }
        }
    }
}

#[test]
fn kernels_refuse_slices_of_unequal_length() {
    for k in available() {
        let calls: [Box<dyn Fn() + std::panic::UnwindSafe>; 6] = [
            Box::new(|| _ = (k.dot)(&[1.0; 9], &[1.0; 8])),
            Box::new(|| _ = (k.l2)(&[1.0; 9], &[1.0; 8])),
            Box::new(|| _ = (k.l1)(&[1.0; 8], &[1.0; 9])),
            Box::new(|| _ = (k.dot_i8)(&[1; 9], &[1; 8])),
            Box::new(|| _ = (k.bits)(&[1; 2], &[1; 7])),
            Box::new(|| (k.bits_run)(&[1; 7], 4, &[1; 16], &mut [0; 2])),
        ];
        for call in calls {
            assert!(std::panic::catch_unwind(call).is_err(), "{}", k.name);
        }
    }
}

#[test]
fn the_chosen_kernels_stay_chosen() {
    let chosen = kernels();
    assert_eq!(
        chosen.name,
        available()
            .last()
            .expect("the reference is always there")
            .name
    );
    assert!(select(Level::Auto).is_ok_and(|again| again.name == chosen.name));
    let scalar = select(Level::Scalar);
    assert_eq!(scalar.is_ok(), chosen.name == "scalar");
    assert_eq!(kernels().name, chosen.name);
}

#[test]
fn scores_are_larger_for_nearer_vectors() {
    let (a, near, far) = ([1.0, 2.0], [1.0, 3.0], [-4.0, 0.0]);
    for metric in [
        Metric::Cosine,
        Metric::Dot,
        Metric::Euclid,
        Metric::Manhattan,
    ] {
        assert!(
            score(metric, &a, &near) > score(metric, &a, &far),
            "{metric:?}"
        );
    }
    assert_eq!(score(Metric::Dot, &a, &near), 7.0);
    assert_eq!(score(Metric::Euclid, &a, &far), -29.0);
    assert_eq!(score(Metric::Manhattan, &a, &far), -7.0);
}

#[test]
fn only_the_true_zero_vector_stays_zero() {
    // Qdrant issue 10692: lengths below f32's epsilon were taken for zero.
    for x in [1.0, 1e-6, 1e-20, f32::MIN_POSITIVE, 1e-45, 3e38] {
        let mut v = [x, 0.0];
        normalize(&mut v);
        assert_eq!(v, [1.0, 0.0], "{x}");
    }
    let mut v = [3e38, -3e38];
    normalize(&mut v);
    assert!((score(Metric::Dot, &v, &v) - 1.0).abs() < 1e-6 && v[0] == -v[1]);
    let mut zero = [0.0f32, -0.0];
    normalize(&mut zero);
    assert_eq!(zero, [0.0, 0.0]);
}

proptest! {
    #[test]
    fn normalising_gives_unit_length_and_twice_changes_nothing(
        mut v in prop::collection::vec(-1e3f32..1e3, 1..200),
        exponent in -40i32..34,
    ) {
        v.iter_mut().for_each(|x| *x *= 10f32.powi(exponent));
        prop_assume!(v.iter().any(|&x| x != 0.0));
        normalize(&mut v);
        let norm2: f64 = v.iter().map(|&x| f64::from(x).powi(2)).sum();
        prop_assert!((norm2 - 1.0).abs() < 5e-7, "{norm2}");
        let once = v.clone();
        normalize(&mut v);
        prop_assert_eq!(once, v);
    }
}
