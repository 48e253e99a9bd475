//! Prints what each kernel costs on this machine: `cargo run --release --example kernels`.
//!
//! Best of several repeats, one thread, data in the first-level cache; the scan runs over more
//! records than the caches hold, so that it shows the bandwidth of memory too.
#![allow(clippy::print_stdout, reason = "an example reports on standard output")]

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use flatwater_index::codes::{Encoder, Query, Rotation};
use flatwater_index::distance::{Kernels, available, kernels};
use flatwater_index::topk::TopK;
use flatwater_index::{Metric, flat};

/// Many short ones, so that some are not disturbed by what else the machine does.
const REPEATS: usize = 60;

fn main() {
    for dim in [384, 1024] {
        for table in available() {
            kernel_costs(table, dim);
        }
        code_costs(dim);
        scan_costs(dim, 20_000);
        scan_costs(dim, 1_000_000);
    }
}

/// Nanoseconds of one of `calls` calls, the best of all repeats.
fn best_ns(calls: usize, mut work: impl FnMut()) -> f64 {
    let run = |work: &mut dyn FnMut()| {
        let start = Instant::now();
        work();
        start.elapsed().as_nanos() as f64 / calls as f64
    };
    (0..REPEATS)
        .map(|_| run(&mut work))
        .fold(f64::INFINITY, f64::min)
}

fn kernel_costs(table: &Kernels, dim: usize) {
    const CALLS: usize = 2_000;
    let (a, b) = (floats(dim, 1), floats(dim, 2));
    let (x, y): (Vec<i8>, Vec<i8>) = (
        a.iter().map(|v| (v * 100.0) as i8).collect(),
        b.iter().map(|v| (v * 100.0) as i8).collect(),
    );
    let words = dim / 64;
    let code: Vec<u64> = (0..words as u64)
        .map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15))
        .collect();
    let planes: Vec<u64> = (0..4 * words as u64)
        .map(|i| i.wrapping_mul(0xbf58_476d_1ce4_e5b9))
        .collect();
    let run: Vec<u64> = code
        .iter()
        .copied()
        .cycle()
        .take((words + 2) * 64)
        .collect();
    let mut sums = [0; 64];
    let each = |work: &mut dyn FnMut()| best_ns(CALLS, || (0..CALLS).for_each(|_| work()));
    let dot = each(&mut || _ = black_box((table.dot)(black_box(&a), black_box(&b))));
    let l2 = each(&mut || _ = black_box((table.l2)(black_box(&a), black_box(&b))));
    let l1 = each(&mut || _ = black_box((table.l1)(black_box(&a), black_box(&b))));
    let bytes = each(&mut || _ = black_box((table.dot_i8)(black_box(&x), black_box(&y))));
    let bits = each(&mut || _ = black_box((table.bits)(black_box(&code), black_box(&planes))));
    let block =
        each(&mut || (table.bits_run)(black_box(&run), words + 2, &planes, black_box(&mut sums)));
    println!(
        "{dim:5} {:7} ns: dot {dot:.1}, l2 {l2:.1}, l1 {l1:.1}, dot_i8 {bytes:.1}, bits {bits:.1}, \
         bits_run {:.2} a code",
        table.name,
        block / 64.0
    );
}

fn code_costs(dim: usize) {
    const VECTORS: usize = 50;
    let encoder = encoder(dim);
    let rotated: Vec<Vec<f32>> = (0..VECTORS as u32)
        .map(|i| encoder.rotate(&floats(dim, i)))
        .collect();
    let (mut record8, mut record1) = (vec![0; encoder.stride8()], vec![0; encoder.stride1()]);
    let mut vector = floats(dim, 3);
    let each = |work: &mut dyn FnMut(&[f32])| {
        best_ns(VECTORS, || {
            for r in &rotated {
                work(black_box(r));
            }
        })
    };
    let rotate = each(&mut |_| encoder.rotation().rotate(black_box(&mut vector)));
    let encode = each(&mut |r| encoder.encode(r, &mut record8, &mut record1));
    let prepare = each(&mut |r| _ = black_box(Query::from_rotated(&encoder, r)));
    let from_record = each(&mut |_| _ = black_box(Query::from_record8(&encoder, &record8)));
    println!(
        "{dim:5} {:7} ns: rotate {rotate:.0}, encode both {encode:.0}, query from rotated \
         {prepare:.0}, query from a record {from_record:.0}",
        kernels().name
    );
}

/// Scans of 20,000 rows stay in the second- or third-level cache, those of a million do not.
fn scan_costs(dim: usize, rows: usize) {
    const DISTINCT: u32 = 2_000;
    let encoder = encoder(dim);
    let stride = encoder.stride1();
    let mut records = AlignedBytes::new(rows * stride);
    let bytes = records.bytes();
    let (distinct, copies) = bytes.split_at_mut(DISTINCT as usize * stride);
    for (record, i) in distinct.chunks_exact_mut(stride).zip(0..) {
        encoder.encode1(&encoder.rotate(&floats(dim, i)), record);
    }
    copies
        .chunks_mut(distinct.len())
        .for_each(|copy| copy.copy_from_slice(&distinct[..copy.len()]));
    let query = Query::new(&encoder, &floats(dim, DISTINCT));
    let scan = |accept: fn(u32) -> bool| {
        best_ns(rows, || {
            let mut best = TopK::new(300);
            flat::scan1(&query, bytes, 0, accept, &mut best);
            black_box(best.len());
        })
    };
    println!(
        "{dim:5} {:7} ns a row of {rows}: scan1 {:.2}, half of the rows accepted {:.2}",
        kernels().name,
        scan(|_| true),
        scan(|row| row.is_multiple_of(2))
    );
}

fn encoder(dim: usize) -> Encoder {
    Encoder::new(
        Metric::Cosine,
        Arc::new(Rotation::new(dim, 1)),
        &vec![0.0; dim],
    )
}

/// Bytes at a multiple of 64, as mapped files have them.
struct AlignedBytes {
    store: Vec<u8>,
    start: usize,
    len: usize,
}

impl AlignedBytes {
    fn new(len: usize) -> Self {
        let store = vec![0; len + 64];
        let start = store.as_ptr().align_offset(64);
        Self { store, start, len }
    }

    fn bytes(&mut self) -> &mut [u8] {
        &mut self.store[self.start..self.start + self.len]
    }
}

/// Numbers in -1 to 1 from a seed.
fn floats(dim: usize, seed: u32) -> Vec<f32> {
    let mut state = u64::from(seed).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let next = |_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as f32 / (1 << 23) as f32 - 1.0
    };
    (0..dim).map(next).collect()
}
