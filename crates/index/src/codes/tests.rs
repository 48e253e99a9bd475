//! What the codes promise: estimates without bias, and candidates that hold the true neighbours.

use std::sync::Arc;

use super::{DotPairs, Encoder, Query, Rotation, candidates1};
use crate::distance::{normalize, score};
use crate::flat;
use crate::topk::TopK;
use crate::types::{Metric, Row};

/// Normal noise from a seed (sum of uniform bits: 12 bytes of two words).
struct Noise(u64);

impl Noise {
    fn word(&mut self) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z ^ (z >> 31)
    }

    /// The sum of eight uniform bytes has deviation 209 and is near enough to normal.
    fn normal(&mut self) -> f32 {
        let sum: u32 = self
            .word()
            .to_le_bytes()
            .iter()
            .map(|&b| u32::from(b))
            .sum();
        (sum as f32 - 1020.0) / 209.0
    }
}

/// Rows in clusters of uneven scale per coordinate, off the origin, and queries among them.
struct Set {
    metric: Metric,
    rows: Vec<Vec<f32>>,
    queries: Vec<Vec<f32>>,
}

impl Set {
    fn clustered(metric: Metric, dim: usize, count: usize, seed: u64) -> Self {
        let mut noise = Noise(seed);
        // Scales from 1 down to 0.1 by coordinate, so that the rotation has something to do.
        let scales: Vec<f32> = (0..dim)
            .map(|i| 0.1f32.powf(i as f32 / dim as f32))
            .collect();
        let offset: Vec<f32> = match metric {
            Metric::Cosine => (0..dim).map(|_| 0.7 * noise.normal()).collect(),
            _ => (0..dim).map(|_| 8.0 * noise.normal()).collect(),
        };
        let centers: Vec<Vec<f32>> = (0..50)
            .map(|_| scales.iter().map(|s| s * noise.normal()).collect())
            .collect();
        let mut row = || {
            let center = &centers[noise.word() as usize % centers.len()];
            let length = 0.6 + (noise.word() % 1000) as f32 / 1000.0;
            let mut v: Vec<f32> = (0..dim)
                .map(|i| offset[i] + length * (center[i] + 0.8 * scales[i] * noise.normal()))
                .collect();
            if metric == Metric::Cosine {
                normalize(&mut v);
            }
            v
        };
        let rows = (0..count).map(|_| row()).collect();
        let queries = (0..40).map(|_| row()).collect();
        Self {
            metric,
            rows,
            queries,
        }
    }

    fn encoder(&self, seed: u64) -> Encoder {
        let dim = self.rows[0].len();
        let sample = &self.rows[..1000.min(self.rows.len())];
        let mut center = vec![0.0; dim];
        for row in sample {
            center
                .iter_mut()
                .zip(row)
                .for_each(|(c, x)| *c += x / sample.len() as f32);
        }
        Encoder::new(self.metric, Arc::new(Rotation::new(dim, seed)), &center)
    }
}

/// Both kinds of records of all rows, in memory aligned as mapped files are.
struct Records {
    eight: Vec<u8>,
    one: Vec<u128>,
}

impl Records {
    fn of(encoder: &Encoder, rows: &[Vec<f32>]) -> Self {
        let mut eight = vec![0xff; rows.len() * encoder.stride8()];
        let mut one = vec![u128::MAX; rows.len() * encoder.stride1() / 16];
        let (records8, records1) = (
            eight.chunks_mut(encoder.stride8()),
            one.chunks_mut(encoder.stride1() / 16),
        );
        for ((row, record8), record1) in rows.iter().zip(records8).zip(records1) {
            let rotated = encoder.rotate(row);
            encoder.encode8(&rotated, record8);
            let mut bytes = vec![0xff; encoder.stride1()];
            encoder.encode1(&rotated, &mut bytes);
            for (word, bytes) in record1.iter_mut().zip(bytes.as_chunks::<16>().0) {
                *word = u128::from_le_bytes(*bytes);
            }
        }
        Self { eight, one }
    }

    fn one(&self) -> &[u8] {
        // SAFETY: the bytes of initialised u128s, borrowed as long as they are.
        unsafe { std::slice::from_raw_parts(self.one.as_ptr().cast::<u8>(), self.one.len() * 16) }
    }
}

fn rows_of(best: TopK<Row>) -> Vec<Row> {
    best.into_sorted_vec()
        .into_iter()
        .map(|(_, row)| row)
        .collect()
}

/// How many candidates by 1 bit and by 8 bits are rescored, and the recall@10 to reach with them.
///
/// The first pair is what a search takes. The second is tight, so that a code that lost precision
/// shows: measured 0.8975 to 1 and 0.9825 to 1.
const DEPTHS: [[(usize, f64); 2]; 2] = [[(300, 0.98), (40, 0.99)], [(50, 0.88), (10, 0.975)]];

/// Recall@10 by 1 bit and by 8 bits at each of the depths, rescored by originals.
fn recall(set: &Set) -> [[f64; 2]; 2] {
    let encoder = set.encoder(7);
    let records = Records::of(&encoder, &set.rows);
    let vector = |row: Row| set.rows[row as usize].as_slice();
    let all = 0..set.rows.len() as Row;
    let mut found = [[0.0; 2]; 2];
    for q in &set.queries {
        let query = Query::new(&encoder, q);
        let ten_of = |rows: &mut dyn Iterator<Item = Row>| {
            let mut best = TopK::new(10);
            flat::exact(set.metric, q, rows, vector, |_| true, &mut best);
            rows_of(best)
        };
        let truth = ten_of(&mut all.clone());
        let (mut best1, mut best8) = (TopK::new(DEPTHS[0][0].0), TopK::new(DEPTHS[0][1].0));
        flat::scan1(&query, records.one(), 0, |_| true, &mut best1);
        for (record, row) in records.eight.chunks(encoder.stride8()).zip(all.clone()) {
            best8.push(query.score8(record), row);
        }
        let candidates = [rows_of(best1), rows_of(best8)];
        for (found, depth) in found.iter_mut().zip(DEPTHS) {
            for code in 0..2 {
                let rescored = ten_of(&mut candidates[code].iter().copied().take(depth[code].0));
                let hits = rescored.iter().filter(|row| truth.contains(row)).count();
                found[code] += hits as f64 / (10 * set.queries.len()) as f64;
            }
        }
    }
    found
}

#[test]
fn candidates_by_code_hold_the_true_neighbours() {
    for metric in [Metric::Cosine, Metric::Dot, Metric::Euclid] {
        for (dim, count) in [(64, 8_000), (96, 8_000), (384, 6_000), (1024, 3_000)] {
            let found = recall(&Set::clustered(metric, dim, count, 11));
            for (depth, found) in DEPTHS.iter().zip(found) {
                for ((count, least), found) in depth.iter().zip(found) {
                    assert!(
                        found >= *least,
                        "{metric:?}, {dim} dims: recall {found} of the best {count} by code"
                    );
                }
            }
        }
    }
}

#[test]
fn fewer_dimensions_need_more_candidates() {
    assert_eq!(
        [64, 96, 128, 384, 65_536].map(candidates1),
        [1200, 533, 300, 300, 300]
    );
}

#[test]
fn estimates_have_no_bias_over_rotations() {
    for metric in [Metric::Cosine, Metric::Dot, Metric::Euclid] {
        let set = Set::clustered(metric, 96, 40, 3);
        let (mut sum1, mut sum8, mut square1, mut square8, mut n) = (0.0, 0.0, 0.0, 0.0, 0.0);
        for seed in 0..60 {
            let encoder = set.encoder(seed);
            let records = Records::of(&encoder, &set.rows);
            for q in &set.queries[..8] {
                let query = Query::new(&encoder, q);
                for (i, row) in set.rows.iter().enumerate() {
                    let expected = f64::from(score(metric, row, q));
                    let scale = spread(&encoder, row, q);
                    let record1 = &records.one()[i * encoder.stride1()..][..encoder.stride1()];
                    let record8 = &records.eight[i * encoder.stride8()..][..encoder.stride8()];
                    let error1 = (f64::from(query.score1(record1)) - expected) / scale;
                    let error8 = (f64::from(query.score8(record8)) - expected) / scale;
                    (sum1, square1) = (sum1 + error1, square1 + error1 * error1);
                    (sum8, square8) = (sum8 + error8, square8 + error8 * error8);
                    n += 1.0;
                }
            }
        }
        let (mean1, mean8) = (sum1 / n, sum8 / n);
        let (deviation1, deviation8) = ((square1 / n).sqrt(), (square8 / n).sqrt());
        // RaBitQ: the error of one bit is below sqrt(pi / 2 - 1) / sqrt(d - 1) = 0.077 of |y||p|.
        assert!(
            deviation1 < 0.085,
            "{metric:?}: deviation {deviation1} by 1 bit"
        );
        assert!(
            deviation8 < 0.0025,
            "{metric:?}: deviation {deviation8} by 8 bits"
        );
        assert!(mean1.abs() < 0.003, "{metric:?}: bias {mean1} by 1 bit");
        assert!(mean8.abs() < 0.0002, "{metric:?}: bias {mean8} by 8 bits");
    }
}

/// `|x - c| |q - c|`, twice that for Euclid: what errors of a score are relative to.
fn spread(encoder: &Encoder, x: &[f32], q: &[f32]) -> f64 {
    let norm = |v: &[f32]| f64::from(encoder.centered(&encoder.rotate(v)).norm2).sqrt();
    let double = if encoder.metric() == Metric::Euclid {
        2.0
    } else {
        1.0
    };
    double * norm(x) * norm(q)
}

#[test]
fn pairs_of_rows_score_as_a_row_made_query_to_the_last_bit() {
    for metric in [Metric::Cosine, Metric::Dot, Metric::Euclid] {
        for dot_pairs in [DotPairs::Product, DotPairs::Distance] {
            let set = Set::clustered(metric, 100, 60, 5);
            let encoder = set.encoder(1).with_dot_pairs(dot_pairs);
            let records = Records::of(&encoder, &set.rows);
            let record = |i: usize| &records.eight[i * encoder.stride8()..][..encoder.stride8()];
            for i in 0..60 {
                let query = Query::from_record8(&encoder, record(i));
                for j in 0..60 {
                    let pair = encoder.pair8(record(i), record(j));
                    assert_eq!(pair, encoder.pair8(record(j), record(i)));
                    assert_eq!(pair, query.score8(record(j)));
                    let form = match (metric, dot_pairs) {
                        (Metric::Dot, DotPairs::Distance) => Metric::Euclid,
                        _ => metric,
                    };
                    let (x, y) = (&set.rows[i], &set.rows[j]);
                    let error = f64::from(pair) - f64::from(score(form, x, y));
                    assert!(
                        error.abs() < 0.02 * spread(&encoder, x, y),
                        "{metric:?}: {error}"
                    );
                }
            }
        }
    }
}

#[test]
fn nearly_equal_rows_are_told_apart_by_eight_bits() {
    // A tight pair inside wide data: the error of an estimate shrinks with the distance.
    let mut noise = Noise(9);
    let mut set = Set::clustered(Metric::Euclid, 384, 1000, 6);
    let base = set.rows[0].clone();
    for distance in [0.4f32, 0.2, 0.1, 0.05] {
        set.rows
            .push(base.iter().map(|x| x + distance * noise.normal()).collect());
    }
    let encoder = set.encoder(2);
    let records = Records::of(&encoder, &set.rows);
    let query = Query::new(&encoder, &base);
    let mut best = TopK::new(5);
    for (row, record) in records.eight.chunks(encoder.stride8()).enumerate() {
        best.push(query.score8(record), row as Row);
    }
    assert_eq!(rows_of(best), [0, 1003, 1002, 1001, 1000]);
}

#[test]
fn scans_agree_with_single_scores_and_ask_only_for_rows_that_would_enter() {
    let set = Set::clustered(Metric::Euclid, 130, 777, 8);
    let encoder = set.encoder(4);
    let records = Records::of(&encoder, &set.rows);
    let query = Query::new(&encoder, &set.queries[0]);
    let stride = encoder.stride1();
    let accepted = |row: Row| row.is_multiple_of(3);
    let mut expected = TopK::new(20);
    for (row, record) in (100..).zip(records.one().chunks(stride)) {
        if accepted(row) {
            expected.push(query.score1(record), row);
        }
    }
    let (mut scanned, mut masked, mut asked) = (TopK::new(20), TopK::new(20), 0);
    // In two runs, as chunks of a growing segment are.
    for (from, to) in [(0, 300), (300, 777)] {
        let run = &records.one()[from * stride..to * stride];
        let accept = |row| {
            asked += 1;
            accepted(row)
        };
        flat::scan1(&query, run, 100 + from as Row, accept, &mut scanned);
    }
    let rows = (100..877).filter(|&row| accepted(row));
    flat::scan1_rows(&query, records.one(), 100, rows, &mut masked);
    assert!(asked < 600, "asked for {asked} of 777 rows");
    let expected = expected.into_sorted_vec();
    assert_eq!(scanned.into_sorted_vec(), expected);
    assert_eq!(masked.into_sorted_vec(), expected);
}

#[test]
fn extreme_vectors_give_no_nan() {
    let extremes = [0.0, 1e-45, 1e-38, 1e-20, 1.0, 1e18, 1e30, 3e38];
    for metric in [Metric::Cosine, Metric::Dot, Metric::Euclid] {
        let encoder = Encoder::new(metric, Arc::new(Rotation::new(70, 1)), &[0.25; 70]);
        let rows: Vec<Vec<f32>> = extremes
            .iter()
            .map(|&x| (0..70).map(|i| if i % 2 == 0 { x } else { -x }).collect())
            .collect();
        let records = Records::of(&encoder, &rows);
        let query = Query::new(&encoder, &[0.5; 70]);
        for (record8, record1) in records
            .eight
            .chunks(encoder.stride8())
            .zip(records.one().chunks(encoder.stride1()))
        {
            let scores = [query.score8(record8), query.score1(record1)];
            assert!(scores.iter().all(|s| !s.is_nan()), "{metric:?}: {scores:?}");
        }
    }
}

#[test]
fn the_center_itself_has_an_exact_score() {
    let center: Vec<f32> = (0..64).map(|i| i as f32 / 8.0).collect();
    let encoder = Encoder::new(Metric::Dot, Arc::new(Rotation::new(64, 3)), &center);
    // The rotated centre differs from itself by no rounding: y is the zero vector.
    let records = Records::of(&encoder, std::slice::from_ref(&center));
    let query = Query::new(&encoder, &[1.0; 64]);
    let expected = score(Metric::Dot, &center, &[1.0; 64]);
    assert!((query.score8(&records.eight) - expected).abs() < 1e-3);
    assert!((query.score1(records.one()) - expected).abs() < 1e-3);
}

#[test]
fn codes_exist_only_where_they_pay() {
    assert!(Encoder::supports(Metric::Cosine, 384) && Encoder::supports(Metric::Dot, 65_536));
    assert!(!Encoder::supports(Metric::Manhattan, 384));
    assert!(!Encoder::supports(Metric::Euclid, 2) && !Encoder::supports(Metric::Euclid, 65_537));
}
