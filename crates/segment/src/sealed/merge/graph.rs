//! The graph of one vector of the output.

use flatwater_index::Row;
use flatwater_index::codes::record;
use flatwater_index::hnsw::{Hnsw, Space};

use super::{Merger, SealError, Step};
use crate::mapped::MappedRows;
use crate::parts::space::{CodeSpace, OriginalSpace};
use crate::parts::spec::VectorSpec;
use crate::sealed::files;
use crate::sealed::layout::{self, GraphFacts};

impl Merger<'_> {
    /// Builds and writes the graph of vector `index`, whose codes were made around `center`.
    pub(super) fn graph(
        &self,
        index: usize,
        spec: &VectorSpec,
        center: Option<&[f32]>,
    ) -> Result<Option<GraphFacts>, SealError> {
        let mut inputs = 0..self.inputs.len();
        let has_graph = |input| {
            self.column(input, index)
                .is_some_and(|c| c.graph().is_some())
        };
        let is_built = !self.order.is_empty() && (self.builds_graphs || inputs.any(has_graph));
        let Some(params) = spec.hnsw.filter(|_| is_built) else {
            return Ok(None);
        };
        let graph = Hnsw::new(params, self.order.len());
        match center.and_then(|center| spec.encoder(center)) {
            Some(encoder) => {
                let (name, width) = (layout::codes8_name(index), record::stride8(spec.dim));
                let codes8 =
                    MappedRows::<u8>::open(self.dir.as_ref(), &name, layout::CODES8_KIND, width)?;
                let space = CodeSpace {
                    encoder: &encoder,
                    codes8: &codes8,
                };
                self.insert_all(index, spec, &graph, &space)?;
            }
            None => {
                let name = layout::originals_name(index);
                let originals = MappedRows::<f32>::open(
                    self.dir.as_ref(),
                    &name,
                    layout::ORIGINALS_KIND,
                    spec.dim,
                )?;
                let space = OriginalSpace::new(spec.metric, &originals);
                self.insert_all(index, spec, &graph, &space)?;
            }
        }
        let parts = graph.freeze();
        drop(graph);
        files::write_graph(self.dir, index, &parts, &|| self.watch.is_cancelled())?;
        Ok(Some(GraphFacts {
            m: parts.m,
            ef_construct: Some(params.clamped().ef_construct),
            entry: parts.entry,
        }))
    }

    fn insert_all<S: Space>(
        &self,
        index: usize,
        spec: &VectorSpec,
        graph: &Hnsw,
        space: &S,
    ) -> Result<(), SealError> {
        let rows = self.order.len();
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
        Ok(())
    }
}
