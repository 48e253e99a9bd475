//! Reading all of a segment to see whether it is as it was written.

use crate::error::SegmentError;
use crate::mapped::MappedFile;
use crate::parts::graph::Graph;
use crate::points::Points;
use crate::rows::Rows;
use crate::view::SegmentView;

/// Calls `visit` with every damage in the files and payloads of `view`. Chunks of a growing segment
/// were verified when it was opened.
///
/// Blocks: for a read of every file.
pub fn verify(view: &SegmentView, visit: &mut dyn FnMut(SegmentError)) {
    let segment = view.segment();
    let mut files: Vec<&MappedFile> = Vec::new();
    if let Points::Sealed(ids) = segment.points() {
        files.extend(ids.files());
    }
    if let Some(base) = segment.payload().base() {
        files.extend(base.files());
    }
    for column in segment.columns() {
        if let Rows::Sealed(originals) = column.originals() {
            files.push(originals.file());
        }
        let codes = column.codes();
        for codes in codes
            .iter()
            .flat_map(|codes| [codes.codes8(), codes.codes1()])
        {
            if let Rows::Sealed(codes) = codes {
                files.push(codes.file());
            }
        }
        if let Some(Graph::Frozen(graph)) = column.graph() {
            files.extend(graph.files());
            if let Err(bad) = graph.graph().check_links() {
                visit(SegmentError::Corrupt {
                    file: graph.files()[0].path().display().to_string(),
                    offset: crate::mapped::HEADER_BYTES as u64,
                    detail: bad.to_string(),
                });
            }
        }
    }
    for file in files {
        if let Err(error) = file.verify() {
            visit(error.into());
        }
    }
    for row in 0..view.rows_len() {
        if let Err(error) = view.payload_of(row) {
            visit(error);
        }
    }
}
