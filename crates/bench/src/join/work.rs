//! Building, joining and healing, timed.

use std::time::Instant;

use flatwater_engine::pool::background::BackgroundWorkers;
use flatwater_index::Row;
use flatwater_index::hnsw::{FrozenGraph, GraphParts, Hnsw, Join, JoinInput, Params, Source};
use rustix::time::{ClockId, clock_gettime};

use super::Failure;
use super::records::Rows;

/// Seconds on the wall, and on processors by all threads of this process.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cost {
    pub(super) wall: f64,
    pub(super) processor: f64,
}

impl Cost {
    pub(super) fn of<T>(work: impl FnOnce() -> T) -> (Self, T) {
        let (wall, processor) = (Instant::now(), processor_seconds());
        let result = work();
        let cost = Self {
            wall: wall.elapsed().as_secs_f64(),
            processor: processor_seconds() - processor,
        };
        (cost, result)
    }

    /// The median of several, each clock for itself.
    pub(super) fn median(costs: &[Self]) -> Self {
        let middle = |of: fn(&Self) -> f64| {
            let mut sorted: Vec<f64> = costs.iter().map(of).collect();
            sorted.sort_by(f64::total_cmp);
            sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
        };
        Self {
            wall: middle(|cost| cost.wall),
            processor: middle(|cost| cost.processor),
        }
    }
}

fn processor_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

/// A graph of `rows` from nothing.
pub(super) fn build(rows: &Rows, seed: u64, threads: usize) -> Result<Hnsw, Failure> {
    let params = Params {
        seed,
        ..Params::default()
    };
    let graph = Hnsw::new(params, rows.len());
    let (space, workers) = (rows.space(), BackgroundWorkers::new(threads));
    while graph.indexed_len() < rows.len() {
        let end = graph.indexed_len() + graph.next_batch_len(rows.len() - graph.indexed_len());
        graph.insert_batch(&space, end, &|_| false, &workers, &|| false)?;
    }
    Ok(graph)
}

/// One graph of several; `places` say where the rows of each go.
pub(super) fn join(
    inputs: &[(&GraphParts, &[Row])],
    output: &Rows,
    threads: usize,
) -> Result<Hnsw, Failure> {
    let inputs = inputs
        .iter()
        .map(|&(parts, places)| {
            let graph = FrozenGraph::new(
                parts.m,
                parts.entry,
                &parts.base,
                &parts.upper_start,
                &parts.upper,
            )?;
            let shapes = &parts.shapes;
            let source = Source::Frozen { graph, shapes };
            Ok(JoinInput { source, places })
        })
        .collect::<Result<Vec<_>, Failure>>()?;
    let mut join = Join::new(Params::default(), output.len(), &inputs)?;
    let (space, workers) = (output.space(), BackgroundWorkers::new(threads));
    while !join.is_done() {
        join.step(&space, &workers, &|| false)?;
    }
    join.finish().ok_or_else(|| "the join did not end".into())
}

/// Rows that links do not lead to from the entry point, of the graph's first `rows`.
pub(super) fn unreachable(graph: &Hnsw, rows: Row) -> usize {
    let mut reached = vec![false; rows as usize];
    let mut queue: Vec<Row> = graph.entry().iter().map(|&(row, _)| row).collect();
    let mut count = 0;
    while let Some(row) = queue.pop() {
        if !std::mem::replace(&mut reached[row as usize], true) {
            count += 1;
            queue.extend(graph.links(0, row));
        }
    }
    reached.len() - count
}

/// Mean number of links on level 0.
pub(super) fn degree(graph: &Hnsw, rows: Row) -> f64 {
    let links: usize = (0..rows).map(|row| graph.links(0, row).count()).sum();
    links as f64 / f64::from(rows.max(1))
}
