//! `flatwater_index` as a participant: rows in memory to codes and graph, searches with rescoring.
//!
//! 1. The mean of the first rows is the centre; every row is rotated and gets its 8-bit and its
//!    1-bit code, on all threads.
//! 2. The rows go into the graph in the batches that the graph asks for.
//! 3. A search walks the graph by the 8-bit codes and scores its best candidates again with the
//!    rows themselves.
//!
//! Below [`Encoder::DIM_MIN`] dims there are no codes and both sides use the rows, as a segment does.

use std::error::Error;
use std::sync::Arc;

use flatwater_engine::pool::background::BackgroundWorkers;
use flatwater_index::codes::{DotPairs, Encoder, Query, Rotation, candidates8};
use flatwater_index::hnsw::{Hnsw, Params, Scratch, Space, Walk};
use flatwater_index::topk::TopK;
use flatwater_index::{Metric, Row, flat};

use super::case::Case;
use super::participant::{Participant, Searched, Settings, passes};
use super::rows::{CodeSpace, Codes, FloatSpace};
use super::timing::Seconds;

/// Rows whose mean is the centre, as in a segment.
const CENTER_ROWS: usize = 1024;
const ROTATION_SEED: u64 = 1;

/// How much wider the beam of a dot query is, as in a segment.
const DOT_BEAM: usize = 3;

/// A graph with its codes, built and searched in this process.
pub(super) struct Flatwater<'a> {
    case: &'a Case,
    settings: &'a Settings,
    built: Option<Index>,
    scratch: Scratch,
}

struct Index {
    codes: Option<Codes>,
    graph: Hnsw,
}

impl<'a> Flatwater<'a> {
    pub(super) fn new(case: &'a Case, settings: &'a Settings) -> Self {
        Self {
            case,
            settings,
            built: None,
            scratch: Scratch::new(),
        }
    }

    fn build_index(&self) -> Result<Index, Box<dyn Error>> {
        let case = self.case;
        let params = Params {
            m: self.settings.m,
            ef_construct: self.settings.ef_construct,
            seed: 0,
        };
        let graph = Hnsw::new(params, case.row_count() as Row);
        if !Encoder::supports(case.metric, case.dim) {
            self.insert_all(&graph, &FloatSpace { case })?;
            return Ok(Index { codes: None, graph });
        }
        let rotation = Arc::new(Rotation::new(case.dim, ROTATION_SEED));
        let encoder =
            Encoder::new(case.metric, rotation, &self.center()).with_dot_pairs(DotPairs::Distance);
        let codes = Codes::of(case, encoder, self.settings.threads);
        self.insert_all(&graph, &CodeSpace { codes: &codes })?;
        Ok(Index {
            codes: Some(codes),
            graph,
        })
    }

    fn center(&self) -> Vec<f32> {
        let mut sums = vec![0.0f64; self.case.dim];
        let rows = self.case.row_count().min(CENTER_ROWS);
        for row in self.case.rows.chunks_exact(self.case.dim).take(rows) {
            for (sum, &x) in sums.iter_mut().zip(row) {
                *sum += f64::from(x);
            }
        }
        sums.iter().map(|sum| (sum / rows as f64) as f32).collect()
    }

    fn insert_all(&self, graph: &Hnsw, space: &impl Space) -> Result<(), Box<dyn Error>> {
        let workers = BackgroundWorkers::new(self.settings.threads);
        let rows = self.case.row_count() as Row;
        while graph.indexed_len() < rows {
            let end = graph.indexed_len() + graph.next_batch_len(rows - graph.indexed_len());
            graph.insert_batch(space, end, &|_| false, &workers, &|| false)?;
        }
        Ok(())
    }

    fn search_one(&mut self, query: &[f32], ef: usize, answer: &mut [Row]) {
        let Some(Index { codes, graph }) = &self.built else {
            return;
        };
        let beam = match self.case.metric {
            Metric::Dot => ef * DOT_BEAM,
            _ => ef,
        };
        let all = |_: Row| true;
        let k = answer.len();
        let found = match codes {
            Some(codes) => {
                let query = Query::new(codes.encoder(), query);
                graph.search(&codes.scorer(&query), beam, &all, &mut self.scratch)
            }
            None => {
                let scorer = FloatSpace { case: self.case }.scorer(query);
                graph.search(&scorer, beam, &all, &mut self.scratch)
            }
        };
        let rows = found.iter().take(candidates8(k)).map(|scored| scored.row);
        let mut best = TopK::new(k);
        flat::rescore(
            self.case.metric,
            query,
            rows,
            |row| self.case.row(row),
            &mut best,
        );
        answer.fill(Row::MAX);
        for (slot, (_, row)) in answer.iter_mut().zip(best.into_sorted_vec()) {
            *slot = row;
        }
    }
}

impl Participant for Flatwater<'_> {
    fn name(&self) -> &'static str {
        "flatwater"
    }

    fn version(&self) -> &str {
        env!("CARGO_PKG_VERSION")
    }

    fn build(&mut self) -> Result<Seconds, Box<dyn Error>> {
        // The last one is gone before the next begins, as with the peers.
        self.built = None;
        let (seconds, index) = Seconds::of(|| self.build_index());
        self.built = Some(index?);
        Ok(seconds)
    }

    fn search(&mut self, ef: usize) -> Result<Searched, Box<dyn Error>> {
        let (queries, k) = (self.case.query_count(), self.settings.k);
        let mut found = vec![Row::MAX; queries * k];
        let case = self.case;
        let times = passes(self.settings, || {
            for (at, answer) in found.chunks_mut(k).enumerate() {
                self.search_one(case.query(at), ef, answer);
            }
        });
        Ok(Searched {
            seconds: Seconds::fastest(&times),
            found,
        })
    }
}
