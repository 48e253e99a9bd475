//! One sealed segment of the live rows of one or several: what merge, vacuum and a change of graph
//! settings write.
//!
//! 1. `order`: which rows are taken, in which order, and where each of them went.
//! 2. `rows`: heads, ids and payload.
//! 3. `vectors`: originals and codes of each vector; `graph`: its graph, joined of those of the inputs and
//!    checked by `quality`.
//! 4. `size` tells beforehand how many bytes that will be.
//! 5. State and description are written last; what happens to the inputs meanwhile is taken over
//!    by [`SegmentWriter::catch_up`](crate::growing::write::SegmentWriter::catch_up).

mod graph;
pub mod order;
mod quality;
mod rows;
pub mod size;
mod vectors;

use std::sync::Arc;

use flatwater_index::Row;
use flatwater_index::hnsw::Workers;

use super::layout::{self, SegmentFacts};
use super::seal::SealError;
use super::state::SealedState;
use crate::dir::Directory;
use crate::parts::column::ABSENT;
use crate::parts::spec::SegmentSpec;
use crate::view::SegmentView;
use order::RowOrder;

/// Rows worked on between two looks at whether to stop: some milliseconds of copying.
const ROWS_PER_LOOK: Row = 1024;

/// What a merge is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step<'a> {
    /// Heads, payload and originals are copied.
    CopyData,
    /// A vector gets its codes.
    Codes(&'a str),
    /// A vector's graph is built.
    Graph(&'a str),
}

/// Who watches a merge. Both calls come every few milliseconds, from any of its threads.
pub trait Watch: Sync {
    /// `done` of `total` rows of `step` are done.
    fn progress(&self, step: Step<'_>, done: u64, total: u64);

    /// Whether to stop. May wait, to let searches pass.
    fn is_cancelled(&self) -> bool;
}

/// Writes the live rows of `inputs`, views of one moment of one shard, as a sealed segment of `spec`
/// to `dir`, which is empty. Everything in it is durable when this returns; the entry of `dir` itself is
/// the caller's. Answers where the rows went.
///
/// Vectors and their sizes are those of the inputs; graph settings are those of `spec`. A graph that
/// `spec` asks for is built where `builds_graphs` says so or an input has one.
///
/// # Errors
/// [`SealError`]; what was written is left for the caller to remove.
///
/// Blocks: for a copy of the rows and the build of the graphs. Memory: 12 bytes a row, a payload row's 24,
/// and one graph at a time.
pub fn merge(
    inputs: &[SegmentView],
    spec: &SegmentSpec,
    builds_graphs: bool,
    dir: &Arc<dyn Directory>,
    workers: &dyn Workers,
    watch: &dyn Watch,
) -> Result<RowOrder, SealError> {
    let merger = Merger {
        inputs,
        spec,
        builds_graphs,
        order: RowOrder::of(inputs),
        dir,
        workers,
        watch,
    };
    merger.heads()?;
    merger.ids()?;
    merger.payload()?;
    let vectors = (0..spec.vectors.len())
        .map(|index| merger.vector(index))
        .collect::<Result<_, _>>()?;
    let seq = inputs.iter().map(SegmentView::watermark).max();
    let seq = seq.unwrap_or_default();
    let state = SealedState {
        stamps: (0..spec.vectors.len())
            .map(|index| merger.stamps(index))
            .collect(),
        ..SealedState::untouched(seq)
    };
    state.write(dir.as_ref())?;
    let facts = SegmentFacts {
        rows: merger.order.len(),
        seq,
        vectors,
    };
    dir.sync()?;
    dir.write_atomic(layout::SEGMENT_FILE, &facts.encode())?;
    Ok(merger.order)
}

struct Merger<'a> {
    inputs: &'a [SegmentView],
    spec: &'a SegmentSpec,
    builds_graphs: bool,
    order: RowOrder,
    dir: &'a Arc<dyn Directory>,
    workers: &'a dyn Workers,
    watch: &'a dyn Watch,
}

impl Merger<'_> {
    fn look(&self, step: Step<'_>, at: Row) -> Result<(), SealError> {
        if !at.is_multiple_of(ROWS_PER_LOOK) {
            return Ok(());
        }
        self.watch
            .progress(step, at.into(), self.order.len().into());
        if self.watch.is_cancelled() {
            return Err(SealError::Cancelled);
        }
        Ok(())
    }

    /// Rows of the output without vector `index`. They never had it there: every view of the output is
    /// younger than the deletion of the vector, and counting it as deleted again would call for a
    /// vacuum without end.
    fn stamps(&self, index: usize) -> Vec<(Row, u64)> {
        let mut stamps = Vec::new();
        for (input, view) in self.inputs.iter().enumerate() {
            let Some(column) = view.segment().columns().get(index) else {
                continue;
            };
            let stamped = column
                .stamped_rows()
                .filter(|&(_, stamp)| stamp <= view.watermark());
            stamps.extend(
                stamped.filter_map(|(row, _)| Some((self.order.place(input, row)?, ABSENT))),
            );
        }
        stamps.sort_unstable();
        stamps
    }
}
