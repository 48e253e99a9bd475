//! A set of vectors as a segment holds it: some of the rows of a file, encoded around their own centre.

use std::sync::Arc;
use std::thread;

use flatwater_index::codes::{Encoder, Query, Rotation, candidates8, center_of};
use flatwater_index::distance::prefetch;
use flatwater_index::hnsw::{Hnsw, Scratch, Walk};
use flatwater_index::{Metric, Row};
use flatwater_segment::parts::space::{CodeScorer, CodeSpace};
use flatwater_segment::rows::RowRead;

use crate::data::Data;

/// Bytes of a cache line: a record begins at one.
const LINE: usize = 64;
/// Rows whose mean is the centre, as in a segment.
const CENTER_ROWS: usize = 1024;
pub(super) const K: usize = 10;

/// 8-bit records of rows, in memory.
#[derive(Debug)]
pub(super) struct Records {
    bytes: Vec<u8>,
    start: usize,
    stride: usize,
}

impl RowRead<u8> for Records {
    #[inline]
    fn row(&self, row: Row) -> &[u8] {
        let start = self.start + row as usize * self.stride;
        &self.bytes[start..start + self.stride]
    }

    #[inline]
    fn prefetch(&self, row: Row) {
        prefetch(self.row(row));
    }
}

/// Rows of the data by their numbers there, with their codes.
#[derive(Debug)]
pub(super) struct Rows {
    pub(super) ids: Vec<u32>,
    encoder: Encoder,
    records: Records,
}

impl Rows {
    /// Encodes the rows `ids` of `data` around their own mean, each thread a part of them. The 1-bit
    /// records of a segment are made and dropped.
    pub(super) fn encode(
        data: &Data,
        rotation: &Arc<Rotation>,
        ids: &[u32],
        threads: usize,
    ) -> Self {
        let step = ids.len().div_ceil(CENTER_ROWS).max(1);
        let sample = ids.iter().step_by(step);
        let center = center_of(
            data.dim,
            sample.map(|&id| data.rows[id as usize].as_slice()),
        );
        let encoder = Encoder::new(Metric::Cosine, Arc::clone(rotation), &center);
        let stride = encoder.stride8();
        let mut bytes = vec![0; ids.len() * stride + LINE];
        let start = bytes.as_ptr().align_offset(LINE) % LINE;
        let part = ids.len().div_ceil(threads.max(1)).max(1);
        let codes = bytes[start..].chunks_mut(part * stride);
        thread::scope(|scope| {
            for (codes, ids) in codes.zip(ids.chunks(part)) {
                let encoder = &encoder;
                scope.spawn(move || {
                    let mut record1 = vec![0; encoder.stride1()];
                    for (record8, &id) in codes.chunks_exact_mut(stride).zip(ids) {
                        let rotated = encoder.rotate(&data.rows[id as usize]);
                        encoder.encode(&rotated, record8, &mut record1);
                    }
                });
            }
        });
        Self {
            ids: ids.to_vec(),
            encoder,
            records: Records {
                bytes,
                start,
                stride,
            },
        }
    }

    pub(super) fn len(&self) -> Row {
        self.ids.len() as Row
    }

    pub(super) fn space(&self) -> CodeSpace<'_, Records> {
        CodeSpace {
            encoder: &self.encoder,
            codes8: &self.records,
        }
    }

    /// Share of `truth` that searches of this breadth find, the best few scored again.
    pub(super) fn recall(&self, data: &Data, graph: &Hnsw, truth: &[Vec<u32>], ef: usize) -> f64 {
        let mut scratch = Scratch::new();
        let mut hits = 0;
        for (query, truth) in data.queries.iter().zip(truth) {
            let prepared = Query::new(&self.encoder, query);
            let scorer = CodeScorer::new(&prepared, &self.records);
            let found = graph.search(&scorer, ef, &|_| true, &mut scratch);
            let candidates = found.iter().take(candidates8(K));
            let best = best_of(data, query, candidates.map(|s| self.ids[s.row as usize]));
            hits += best.iter().filter(|id| truth.contains(id)).count();
        }
        hits as f64 / (K * truth.len()).max(1) as f64
    }

    /// The true best of these rows for each query.
    pub(super) fn truth(&self, data: &Data, threads: usize) -> Vec<Vec<u32>> {
        let part = data.queries.len().div_ceil(threads.max(1)).max(1);
        let answer = |queries: &[Vec<f32>]| -> Vec<Vec<u32>> {
            let exact = |query: &Vec<f32>| best_of(data, query, self.ids.iter().copied());
            queries.iter().map(exact).collect()
        };
        let parts = data.queries.chunks(part);
        thread::scope(|scope| {
            let answers: Vec<_> = parts
                .map(|part| scope.spawn(move || answer(part)))
                .collect();
            let answers = answers.into_iter().map(|answer| match answer.join() {
                Ok(answer) => answer,
                Err(panic) => std::panic::resume_unwind(panic),
            });
            answers.flatten().collect()
        })
    }
}

/// The best [`K`] of `ids` by dot product, ties by number.
fn best_of(data: &Data, query: &[f32], ids: impl Iterator<Item = u32>) -> Vec<u32> {
    let dot = flatwater_index::distance::kernels();
    let mut scored: Vec<(f32, u32)> = ids
        .map(|id| (dot.score(Metric::Dot, query, &data.rows[id as usize]), id))
        .collect();
    let order = |a: &(f32, u32), b: &(f32, u32)| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1));
    if scored.len() > K {
        scored.select_nth_unstable_by(K - 1, order);
        scored.truncate(K);
    }
    scored.into_iter().map(|(_, id)| id).collect()
}
