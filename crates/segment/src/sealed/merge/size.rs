//! How many bytes a merge will write, told before it begins.

use flatwater_index::codes::record;

use crate::mapped::HEADER_BYTES;
use crate::parts::base::BASE_WORDS;
use crate::parts::spec::{SegmentSpec, VectorSpec};
use crate::points::heads::HEAD_WORDS;
use crate::view::SegmentView;

/// Bytes of a row besides vectors and payload: head, place in the order of ids, place of the payload.
const ROW_BYTES: u64 = (HEAD_WORDS * 8 + 4 + BASE_WORDS * 8) as u64;

/// Upper lists for each link that a row asks for: one row in `m` is on level 1, one in `m * m` on level 2;
/// with their places that stays below this many slots.
const UPPER_SLOTS: u64 = 4;

/// Files of a segment and of each of its vectors, for their headers and the rest of their last pages.
const FILES: u64 = 8;
const PAGE_BYTES: u64 = 4096;

/// About the bytes of the files that [`merge`](super::merge) makes of `inputs`, rather more than less.
///
/// Cost: a look at the place of each row's payload.
#[must_use]
pub fn output_bytes(inputs: &[SegmentView], spec: &SegmentSpec) -> u64 {
    let rows: u64 = inputs.iter().map(SegmentView::live_count).sum();
    let vectors: u64 = spec.vectors.iter().map(vector_bytes).sum();
    let files = FILES * (1 + spec.vectors.len() as u64) * (PAGE_BYTES + HEADER_BYTES as u64);
    let payload: u64 = inputs.iter().map(payload_bytes).sum();
    rows * (ROW_BYTES + vectors) + payload + files
}

/// Bytes that a row takes in the files of one vector.
fn vector_bytes(spec: &VectorSpec) -> u64 {
    let codes = if spec.rotation.is_some() {
        record::stride8(spec.dim) + record::stride1(spec.dim)
    } else {
        0
    };
    let links = spec.hnsw.map_or(0, |params| {
        let m = params.clamped().m as u64;
        4 * (2 * m + UPPER_SLOTS)
    });
    (spec.dim * 4 + codes) as u64 + links
}

fn payload_bytes(view: &SegmentView) -> u64 {
    let payload = view.segment().payload();
    let live = (0..view.rows_len()).filter(|&row| view.is_live(row));
    live.map(|row| payload.json_bytes(row, view.watermark()))
        .sum()
}
