//! Builds a graph over a folder of test data and reports what it costs and what it finds.
//!
//! The folder holds `base.i8.npy` (rows as integers, to which a fixed dither is added before they
//! are normalised), `query.f16.npy` and `gt100.npy` (exact neighbours by cosine):
//!
//!     cargo run --release -p flatwater-index --example graph -- FOLDER [M] [EF_CONSTRUCT] [ROWS]
//!
//! The graph is built and walked on codes of one byte a dimension, 127 times the normalised row;
//! the best of a walk are scored again by the original floats.
#![allow(clippy::print_stdout, reason = "a report is what this program is for")]

use std::error::Error;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use flatwater_index::Row;
use flatwater_index::hnsw::{Hnsw, Inline, Params, Scorer, Scratch, Space, Workers};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments
        .next()
        .ok_or("usage: graph FOLDER [M] [EF_CONSTRUCT] [ROWS]")?;
    let m = arguments.next().map_or(Ok(16), |text| text.parse())?;
    let ef_construct = arguments.next().map_or(Ok(100), |text| text.parse())?;
    let rows_max = arguments
        .next()
        .map_or(Ok(usize::MAX), |text| text.parse())?;
    let data = Data::load(Path::new(&folder), rows_max)?;
    let params = Params {
        m,
        ef_construct,
        seed: 1,
    };
    println!("{} rows of {} dims, {params:?}", data.len(), data.dim);
    let graph = build(&data, params, &Threads(2));
    if std::env::var_os("GRAPH_ONE_THREAD").is_some() {
        build(&data, params, &Inline);
    }
    report_shape(&graph, data.len());
    for ef in [16, 32, 64, 128] {
        report_search(&graph, &data, ef);
    }
    for percent in [2, 5, 10, 20, 40, 60] {
        report_filtered(&graph, &data, percent);
    }
    Ok(())
}

/// Rows as normalised floats and as codes; queries; the exact answers.
struct Data {
    dim: usize,
    originals: Vec<f32>,
    codes: Vec<i8>,
    queries: Vec<f32>,
    truth: Vec<u32>,
    truth_k: usize,
}

impl Data {
    fn load(folder: &Path, rows_max: usize) -> Result<Self, Box<dyn Error>> {
        let (shape, base) = npy(&folder.join("base.i8.npy"))?;
        let (rows_in_file, dim) = (shape[0], shape[1]);
        let base = &base[..base.len().min(rows_max.saturating_mul(dim))];
        let mut originals: Vec<f32> = base.iter().map(|&b| f32::from(b as i8)).collect();
        for (i, value) in originals.iter_mut().enumerate() {
            *value += (mix(i as u64) >> 40) as f32 / (1 << 24) as f32 - 0.5;
        }
        originals.chunks_exact_mut(dim).for_each(normalise);
        let (_, halves) = npy(&folder.join("query.f16.npy"))?;
        let halves = halves
            .chunks_exact(2)
            .map(|b| half(u16::from_le_bytes([b[0], b[1]])));
        let mut queries: Vec<f32> = halves.collect();
        queries.chunks_exact_mut(dim).for_each(normalise);
        let (shape, truth) = npy(&folder.join("gt100.npy"))?;
        let truth = truth
            .chunks_exact(4)
            .map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]));
        let codes = encode(&originals);
        let truth_k = shape[1];
        let mut data = Self {
            dim,
            originals,
            codes,
            queries,
            truth: truth.collect(),
            truth_k,
        };
        if data.len() < rows_in_file {
            data.truth_k = 10;
            data.truth = data
                .queries
                .chunks_exact(dim)
                .flat_map(|q| data.exact(q, 100))
                .collect();
        }
        Ok(data)
    }

    fn len(&self) -> usize {
        self.codes.len() / self.dim
    }

    fn code(&self, row: Row) -> &[i8] {
        &self.codes[row as usize * self.dim..][..self.dim]
    }

    fn original(&self, row: Row) -> &[f32] {
        &self.originals[row as usize * self.dim..][..self.dim]
    }

    /// The ten best rows of those that are 0 in `percent` of 100 hashes.
    fn exact(&self, query: &[f32], percent: u64) -> Vec<u32> {
        let kept = (0..self.len() as Row).filter(|&row| matches(row, percent));
        self.best(query, kept)
    }

    /// The ten best of `rows` by the originals.
    fn best(&self, query: &[f32], rows: impl Iterator<Item = Row>) -> Vec<u32> {
        let mut scored: Vec<(f32, Row)> = rows
            .map(|row| (dot(query, self.original(row)), row))
            .collect();
        let by_score = |a: &(f32, Row), b: &(f32, Row)| b.0.total_cmp(&a.0);
        if scored.len() > 10 {
            scored.select_nth_unstable_by(9, by_score);
            scored.truncate(10);
        }
        scored.iter().map(|&(_, row)| row).collect()
    }
}

/// A code as the query.
struct CodeScorer<'a> {
    data: &'a Data,
    code: &'a [i8],
}

impl Scorer for CodeScorer<'_> {
    #[inline]
    fn score(&self, row: Row) -> f32 {
        dot_i8(self.code, self.data.code(row)) as f32
    }

    #[inline]
    fn prefetch(&self, row: Row) {
        prefetch(self.data.code(row));
    }
}

impl Space for Data {
    type RowScorer<'a> = CodeScorer<'a>;

    fn scorer_of(&self, row: Row) -> CodeScorer<'_> {
        CodeScorer {
            data: self,
            code: self.code(row),
        }
    }

    #[inline]
    fn pair(&self, a: Row, b: Row) -> f32 {
        dot_i8(self.code(a), self.code(b)) as f32
    }

    #[inline]
    fn prefetch(&self, row: Row) {
        prefetch(self.code(row));
    }
}

/// As many threads as told, started for each `run`.
struct Threads(usize);

impl Workers for Threads {
    fn threads(&self) -> usize {
        self.0
    }

    fn run(&self, n: usize, f: &(dyn Fn(usize, usize) + Sync)) {
        let next = AtomicUsize::new(0);
        let work = |worker| {
            loop {
                let i = next.fetch_add(1, Ordering::Relaxed);
                if i >= n {
                    break;
                }
                f(i, worker);
            }
        };
        std::thread::scope(|scope| {
            for worker in 1..self.0 {
                let work = &work;
                scope.spawn(move || work(worker));
            }
            work(0);
        });
    }
}

fn build(data: &Data, params: Params, workers: &dyn Workers) -> Hnsw {
    let rows = data.len() as Row;
    let graph = Hnsw::new(params, rows);
    let (start, mut distances) = (Instant::now(), 0);
    while graph.indexed_len() < rows {
        let end = graph.indexed_len() + graph.next_batch_len(rows - graph.indexed_len());
        match graph.insert_batch(data, end, &|_| false, workers, &|| false) {
            Ok(report) => distances += report.distances,
            Err(cancelled) => println!("{cancelled}"),
        }
    }
    let seconds = start.elapsed().as_secs_f64();
    println!(
        "built with {} threads: {seconds:.2} s, {:.0} rows/s, {:.0} distances a row in searches",
        workers.threads(),
        f64::from(rows) / seconds,
        distances as f64 / f64::from(rows),
    );
    graph
}

fn report_shape(graph: &Hnsw, rows: usize) {
    let degrees: Vec<usize> = (0..rows as Row)
        .map(|row| graph.links(0, row).count())
        .collect();
    let full = degrees
        .iter()
        .filter(|&&degree| degree == 2 * graph.params().m)
        .count();
    println!(
        "level 0: {:.1} links a row, {:.1} % full, entry {:?}",
        degrees.iter().sum::<usize>() as f64 / rows as f64,
        100.0 * full as f64 / rows as f64,
        graph.entry(),
    );
}

fn report_search(graph: &Hnsw, data: &Data, ef: usize) {
    let (mut hits, mut distances, mut hops, mut scratch) = (0, 0, 0, Scratch::new());
    let start = Instant::now();
    for (q, query) in data.queries.chunks_exact(data.dim).enumerate() {
        let code = encode(query);
        let scorer = CodeScorer { data, code: &code };
        let found = graph.search(&scorer, ef, &|_| true, &mut scratch);
        distances += scratch.stats().distances;
        hops += scratch.stats().hops;
        let best = data.best(query, found.iter().take(40).map(|s| s.row));
        let truth = &data.truth[q * data.truth_k..][..10];
        hits += truth.iter().filter(|row| best.contains(row)).count();
    }
    report(&format!("ef {ef}"), data, hits, distances, hops, start);
}

fn report_filtered(graph: &Hnsw, data: &Data, percent: u64) {
    let queries = data.queries.chunks_exact(data.dim);
    let truth: Vec<Vec<u32>> = queries.clone().map(|q| data.exact(q, percent)).collect();
    // A filter is a bitmap by the time a walk asks it.
    let bits: Vec<bool> = (0..data.len() as Row)
        .map(|row| matches(row, percent))
        .collect();
    for two_hop in [true, false] {
        let (mut hits, mut distances, mut hops, mut scratch) = (0, 0, 0, Scratch::new());
        let start = Instant::now();
        for (query, truth) in queries.clone().zip(&truth) {
            let code = encode(query);
            let scorer = CodeScorer { data, code: &code };
            let keep = |row: Row| bits[row as usize];
            let found = if two_hop {
                graph.search_filtered(&scorer, 64, &keep, &|_| true, &mut scratch)
            } else {
                graph.search(&scorer, 64, &keep, &mut scratch)
            };
            distances += scratch.stats().distances;
            hops += scratch.stats().hops;
            let best = data.best(query, found.iter().take(40).map(|s| s.row));
            hits += truth.iter().filter(|row| best.contains(row)).count();
        }
        let name = if two_hop { "filtered" } else { "plain" };
        report(
            &format!("{percent} % {name}, ef 64"),
            data,
            hits,
            distances,
            hops,
            start,
        );
    }
}

fn report(name: &str, data: &Data, hits: usize, distances: u64, hops: u64, start: Instant) {
    let queries = (data.queries.len() / data.dim) as f64;
    println!(
        "{name}: recall@10 {:.4}, {:.0} searches/s, {:.0} distances, {:.0} hops",
        hits as f64 / queries / 10.0,
        queries / start.elapsed().as_secs_f64(),
        distances as f64 / queries,
        hops as f64 / queries,
    );
}

/// Whether a made-up filter that passes `percent` of the rows passes this one.
fn matches(row: Row, percent: u64) -> bool {
    mix(u64::from(row)) % 100 < percent
}

/// Shape and bytes of a two-dimensional array file in C order.
fn npy(path: &Path) -> Result<(Vec<usize>, Vec<u8>), Box<dyn Error>> {
    let bytes = std::fs::read(path)?;
    let header_len = usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    let header = std::str::from_utf8(&bytes[10..10 + header_len])?;
    let shape = header
        .split("'shape': (")
        .nth(1)
        .and_then(|rest| rest.split(')').next());
    let shape: Result<Vec<usize>, _> = shape
        .ok_or("no shape")?
        .split(',')
        .map(|number| number.trim().parse())
        .collect();
    Ok((shape?, bytes[10 + header_len..].to_vec()))
}

fn encode(values: &[f32]) -> Vec<i8> {
    values
        .iter()
        .map(|v| (v * SCALE).round().clamp(-127.0, 127.0) as i8)
        .collect()
}

/// No coordinate of a unit vector exceeds 1. Most are far below, so this is a coarse stand-in for
/// the engine's codes.
const SCALE: f32 = 127.0;

fn normalise(row: &mut [f32]) {
    let norm = dot(row, row).sqrt().max(1e-12);
    row.iter_mut().for_each(|value| *value /= norm);
}

fn dot(a: &[f32], b: &[f32]) -> f32 {
    let mut lanes = [0.0_f32; 16];
    for (a, b) in a.chunks_exact(16).zip(b.chunks_exact(16)) {
        for ((lane, a), b) in lanes.iter_mut().zip(a).zip(b) {
            *lane += a * b;
        }
    }
    lanes.iter().sum()
}

#[inline]
fn dot_i8(a: &[i8], b: &[i8]) -> i32 {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has the feature.
        return unsafe { dot_i8_avx2(a, b) };
    }
    dot_i8_any(a, b)
}

/// The same loop, compiled for wider registers.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn dot_i8_avx2(a: &[i8], b: &[i8]) -> i32 {
    dot_i8_any(a, b)
}

#[inline(always)]
fn dot_i8_any(a: &[i8], b: &[i8]) -> i32 {
    a.iter()
        .zip(b)
        .map(|(&a, &b)| i32::from(a) * i32::from(b))
        .sum()
}

#[inline]
fn prefetch(code: &[i8]) {
    #[cfg(target_arch = "x86_64")]
    for line in code.chunks(64) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch of any address is allowed, and this one is inside a slice.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(line.as_ptr()) };
    }
}

/// IEEE half to float; the data holds no subnormals that matter.
fn half(bits: u16) -> f32 {
    let (sign, exponent, fraction) = (bits >> 15, (bits >> 10) & 31, bits & 1023);
    let value = match exponent {
        0 => f32::from(fraction) * 2.0_f32.powi(-24),
        _ => f32::from(1024 + fraction) * 2.0_f32.powi(i32::from(exponent) - 25),
    };
    if sign == 1 { -value } else { value }
}

/// Finalizer of SplitMix64.
fn mix(x: u64) -> u64 {
    let mut z = x.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}
