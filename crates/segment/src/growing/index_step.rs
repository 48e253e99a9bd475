//! One step of indexing: a batch of rows goes into a vector's graph.

use flatwater_index::Row;
use flatwater_index::hnsw::{Cancelled, Workers};

use crate::parts::Segment;
use crate::parts::graph::Graph;
use crate::parts::space::{CodeSpace, OriginalSpace};

impl Segment {
    /// Inserts the next batch of rows into the graph of vector `column`. Returns whether there was
    /// something to do and it was not cancelled. One caller at a time for each vector; searches go
    /// on meanwhile.
    ///
    /// Rows without the vector are passed over, and so are rows that were dead before this process
    /// made its first view; rows that died since go in, since an older view may still hold them.
    pub fn index_step(
        &self,
        column: usize,
        workers: &dyn Workers,
        cancel: &(dyn Fn() -> bool + Sync),
    ) -> bool {
        let Some(column) = self.columns.get(column) else {
            return false;
        };
        let Some(graph) = column.graph().and_then(Graph::growing) else {
            return false;
        };
        let indexed = graph.indexed_len();
        let available = column.graph_available().saturating_sub(indexed);
        if available == 0 {
            return false;
        }
        let end = indexed + graph.next_batch_len(available);
        let skip = |row: Row| !column.has(row, 0) || self.deleted.get(row) <= self.dead_before;
        let ready = column
            .codes()
            .and_then(|codes| Some((codes.codes8().growing()?, codes.ready()?.0)));
        let outcome = match (ready, column.originals().growing()) {
            (Some((codes8, encoder)), _) => {
                let space = CodeSpace { encoder, codes8 };
                graph.insert_batch(&space, end, &skip, workers, cancel)
            }
            (None, Some(originals)) => {
                let space = OriginalSpace::new(column.spec().metric, originals);
                graph.insert_batch(&space, end, &skip, workers, cancel)
            }
            (None, None) => return false,
        };
        !matches!(outcome, Err(Cancelled))
    }
}
