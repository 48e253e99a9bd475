//! Files that a seal and a merge write alike: the payloads that a segment begins with, and graphs.

use std::sync::Arc;

use flatwater_index::Row;
use flatwater_index::hnsw::GraphParts;

use super::layout;
use super::seal::SealError;
use crate::dir::Directory;
use crate::mapped::MappedWriter;
use crate::parts::base::{self, BASE_WORDS};
use crate::view::SegmentView;

/// Links written between two looks at whether to stop: a few hundred microseconds.
const LINKS_PER_LOOK: usize = 1 << 16;

/// Writes the payload of each of `rows`, in their order, as their views see it. `look` is asked before
/// each and ends it with an error.
pub(super) fn write_payload<'a>(
    dir: &Arc<dyn Directory>,
    rows: impl Iterator<Item = (&'a SegmentView, Row)> + Clone,
    look: impl Fn(Row) -> Result<(), SealError>,
) -> Result<(), SealError> {
    let mut places: Vec<u64> = Vec::new();
    let mut bytes = 0u64;
    for (at, (view, row)) in (0..).zip(rows.clone()) {
        look(at)?;
        match view.segment().payload().json_at(row, view.watermark())? {
            Some((seq, json)) => {
                places.extend(base::encode_row(seq, bytes, json));
                bytes += json.len() as u64;
            }
            None => places.extend(base::NO_PAYLOAD),
        }
    }
    let count = (places.len() / BASE_WORDS) as u64;
    let (name, kind) = layout::PAYLOAD_ROWS;
    let mut file = MappedWriter::create(dir, name, kind, BASE_WORDS, count)?;
    file.push(&places);
    file.finish()?;
    let (name, kind) = layout::PAYLOAD_JSON;
    let mut file = MappedWriter::create(dir, name, kind, 1, bytes)?;
    for (at, (view, row)) in (0..).zip(rows) {
        look(at)?;
        if let Some((_, json)) = view.segment().payload().json_at(row, view.watermark())? {
            file.push(json);
        }
    }
    Ok(file.finish()?)
}

/// Writes the arrays of the graph of vector `index`.
pub(super) fn write_graph(
    dir: &Arc<dyn Directory>,
    index: usize,
    parts: &GraphParts,
    cancel: &dyn Fn() -> bool,
) -> Result<(), SealError> {
    let (names, kinds) = (layout::graph_names(index), layout::GRAPH_KINDS);
    let arrays = [&parts.base, &parts.upper_start, &parts.upper, &parts.shapes];
    for ((name, kind), array) in names.iter().zip(kinds).zip(arrays) {
        let mut file = MappedWriter::create(dir, name, kind, 1, array.len() as u64)?;
        for values in array.chunks(LINKS_PER_LOOK) {
            if cancel() {
                return Err(SealError::Cancelled);
            }
            file.push(values);
        }
        file.finish()?;
    }
    Ok(())
}
