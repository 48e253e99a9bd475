//! The graph of one vector of the output.
//!
//! 1. Where inputs have graphs of the wanted settings these are joined: a fifth to a third of the cost
//!    of building anew (decision 0010). With one input that heals what dead rows leave behind.
//! 2. Sampled rows are looked for in the joined graph and in the largest input's ([`super::quality`]); a
//!    graph that finds clearly less is thrown away.
//! 3. Elsewhere the graph is built from the rows.

use flatwater_index::Row;
use flatwater_index::codes::record;
use flatwater_index::hnsw::{
    FrozenGraph, GraphParts, Hnsw, Join, JoinInput, NO_PLACE, Params, Source, Space,
};

use super::quality::{self, RECALL_LOSS_MAX};
use super::{Merger, SealError, Step};
use crate::error::SegmentError;
use crate::mapped::MappedRows;
use crate::parts::graph::Graph;
use crate::parts::space::{CodeSpace, OriginalSpace};
use crate::parts::spec::VectorSpec;
use crate::sealed::files;
use crate::sealed::layout::{self, GraphFacts};

/// An input's graph, and where its rows go.
struct JoinedInput {
    input: usize,
    parts: GraphParts,
    places: Vec<Row>,
}

impl Merger<'_> {
    /// Makes and writes the graph of vector `index`, whose codes were made around `center`.
    pub(super) fn graph(
        &self,
        index: usize,
        spec: &VectorSpec,
        center: Option<&[f32]>,
    ) -> Result<Option<GraphFacts>, SealError> {
        let mut inputs = 0..self.inputs.len();
        let has_graph = |input| {
            self.column(input, index)
                .is_some_and(|column| column.graph().is_some())
        };
        let is_made = !self.order.is_empty() && (self.builds_graphs || inputs.any(has_graph));
        let Some(params) = spec.hnsw.filter(|_| is_made) else {
            return Ok(None);
        };
        let params = params.clamped();
        let parts = match center.and_then(|center| spec.encoder(center)) {
            Some(encoder) => {
                let (name, width) = (layout::codes8_name(index), record::stride8(spec.dim));
                let codes8 =
                    MappedRows::<u8>::open(self.dir.as_ref(), &name, layout::CODES8_KIND, width)?;
                let space = CodeSpace {
                    encoder: &encoder,
                    codes8: &codes8,
                };
                self.make(index, spec, params, &space)?
            }
            None => {
                let name = layout::originals_name(index);
                let originals = MappedRows::<f32>::open(
                    self.dir.as_ref(),
                    &name,
                    layout::ORIGINALS_KIND,
                    spec.dim,
                )?;
                self.make(
                    index,
                    spec,
                    params,
                    &OriginalSpace::new(spec.metric, &originals),
                )?
            }
        };
        files::write_graph(self.dir, index, &parts, &|| self.watch.is_cancelled())?;
        Ok(Some(GraphFacts {
            m: parts.m,
            ef_construct: Some(params.ef_construct),
            entry: parts.entry,
        }))
    }

    /// The graph over the rows of `space`, joined if that does, else built.
    fn make<S: Space>(
        &self,
        index: usize,
        spec: &VectorSpec,
        params: Params,
        space: &S,
    ) -> Result<GraphParts, SealError> {
        let joined = self.joined_inputs(index, params);
        if let Some(largest) = joined.first()
            && let Some(graph) = self.join(spec, params, space, &joined)?
        {
            let before = self.recall_of_input(index, space, largest);
            let after = quality::recall(&graph, space, &self.present(index), self.order.len());
            if after + RECALL_LOSS_MAX >= before {
                return Ok(graph.freeze());
            }
        }
        Ok(self.build(index, spec, params, space)?.freeze())
    }

    /// The inputs to join, the largest first; none where a join would not pay: most rows are in no graph of
    /// these settings.
    fn joined_inputs(&self, index: usize, params: Params) -> Vec<JoinedInput> {
        let mut joined = Vec::new();
        let mut held = 0u64;
        for &input in self.order.by_size() {
            let parts = match self.column(input, index).and_then(|column| column.graph()) {
                Some(graph) if serves(graph, params) => match graph {
                    Graph::Growing(graph) => graph.freeze(),
                    Graph::Frozen(files) => files.parts(),
                },
                _ => Hnsw::new(params, 0).freeze(),
            };
            held += u64::from(parts.rows.min(self.inputs[input].rows_len()));
            joined.push(JoinedInput {
                places: self.places(input, index),
                input,
                parts,
            });
        }
        if held * 2 < u64::from(self.order.len()) {
            joined.clear();
        }
        joined
    }

    /// Where the rows of an input go that have the vector.
    fn places(&self, input: usize, index: usize) -> Vec<Row> {
        let view = &self.inputs[input];
        let column = self.column(input, index);
        let has = |row: Row| column.is_some_and(|column| column.has(row, view.watermark()));
        (0..view.rows_len())
            .map(|row| self.order.place(input, row).filter(|_| has(row)))
            .map(|place| place.unwrap_or(NO_PLACE))
            .collect()
    }

    /// Output rows that have the vector.
    fn present(&self, index: usize) -> Vec<Row> {
        let stamps = self.stamps(index);
        let is_absent = |row: Row| stamps.binary_search_by_key(&row, |(row, _)| *row).is_ok();
        (0..self.order.len())
            .filter(|&row| !is_absent(row))
            .collect()
    }

    fn join<S: Space>(
        &self,
        spec: &VectorSpec,
        params: Params,
        space: &S,
        joined: &[JoinedInput],
    ) -> Result<Option<Hnsw>, SealError> {
        let inputs = joined
            .iter()
            .map(|input| {
                Ok(JoinInput {
                    source: Source::Frozen {
                        graph: frozen(&input.parts)?,
                        shapes: &input.parts.shapes,
                    },
                    places: &input.places,
                })
            })
            .collect::<Result<Vec<_>, SealError>>()?;
        let rows = self.order.len();
        let Ok(mut join) = Join::new(params, rows, &inputs) else {
            // Places are ours and each row has one; were they not, building anew needs none.
            return Ok(None);
        };
        while !join.is_done() {
            let progress = join
                .step(space, self.workers, &|| self.watch.is_cancelled())
                .map_err(|_| SealError::Cancelled)?;
            let (done, total) = (progress.done.into(), progress.total.into());
            self.watch.progress(Step::Graph(&spec.name), done, total);
        }
        Ok(join.finish())
    }

    fn build<S: Space>(
        &self,
        index: usize,
        spec: &VectorSpec,
        params: Params,
        space: &S,
    ) -> Result<Hnsw, SealError> {
        let rows = self.order.len();
        let graph = Hnsw::new(params, rows);
        let mut absent = vec![false; rows as usize];
        for (row, _) in self.stamps(index) {
            absent[row as usize] = true;
        }
        let skip = |row: Row| absent.get(row as usize).copied().unwrap_or(true);
        let cancel = || self.watch.is_cancelled();
        while graph.indexed_len() < rows {
            let done = graph.indexed_len();
            self.watch
                .progress(Step::Graph(&spec.name), done.into(), rows.into());
            let end = done + graph.next_batch_len(rows - done);
            graph
                .insert_batch(space, end, &skip, self.workers, &cancel)
                .map_err(|_| SealError::Cancelled)?;
        }
        self.watch
            .progress(Step::Graph(&spec.name), rows.into(), rows.into());
        Ok(graph)
    }

    /// Recall of an input's graph over its rows that live on, compared by the codes of the output.
    fn recall_of_input<S: Space>(&self, index: usize, space: &S, input: &JoinedInput) -> f64 {
        let Ok(graph) = frozen(&input.parts) else {
            return 0.0;
        };
        let space = quality::Placed {
            space,
            places: &input.places,
        };
        let covered = input.parts.rows;
        let column = self.column(input.input, index);
        let rows: Vec<Row> = (0..covered)
            .filter(|&row| column.is_some() && input.places[row as usize] != NO_PLACE)
            .collect();
        quality::recall(&graph, &space, &rows, covered)
    }
}

fn frozen(parts: &GraphParts) -> Result<FrozenGraph<'_>, SealError> {
    FrozenGraph::new(
        parts.m,
        parts.entry,
        &parts.base,
        &parts.upper_start,
        &parts.upper,
    )
    .map_err(|bad| {
        SealError::Segment(SegmentError::Corrupt {
            file: "graph of an input".to_owned(),
            offset: 0,
            detail: bad.to_string(),
        })
    })
}

/// Whether the graph was built with these settings, as far as that is known.
fn serves(graph: &Graph, params: Params) -> bool {
    let width = graph.ef_construct().unwrap_or(params.ef_construct);
    graph.m() == params.m && width == params.ef_construct
}
