//! What the segments of a collection are made of under its settings.

use std::time::Duration;

use flatwater_index::Row;
use flatwater_index::hnsw::Params;
use flatwater_segment::parts::spec::{SegmentSpec, VectorSpec};

use crate::config::collection::CollectionConfig;

/// KB of vectors in a segment for each indexing thread when `max_segment_size` is not set: Qdrant's
/// own rule (1.19, section 1.2 of its settings), at most 8 threads.
const SEGMENT_KB_PER_THREAD: u64 = 256_000;

/// Graph seed: levels follow from it and the row, so a rebuilt graph has the same levels.
const LEVEL_SEED: u64 = 0x666c_6174_7761_7465;

/// Rows that a segment may hold at most, whatever `max_segment_size` says: row numbers are 32 bits,
/// and one operation may overshoot.
const ROWS_MAX: u64 = 1 << 31;

/// What the segments of a collection are made of.
pub(crate) fn segment_spec(config: &CollectionConfig, seed: u64) -> SegmentSpec {
    let vectors: Vec<VectorSpec> = config
        .vectors
        .iter()
        .map(|(name, vector)| {
            let hnsw = config.hnsw.with(vector.hnsw);
            let params = (hnsw.m > 0).then_some(Params {
                m: hnsw.m,
                ef_construct: hnsw.ef_construct,
                seed: LEVEL_SEED,
            });
            VectorSpec::new(name, vector.size, vector.distance, params, seed)
        })
        .collect();
    let row_bytes = config
        .vectors
        .values()
        .map(|v| v.size as u64 * 4)
        .max()
        .unwrap_or(4);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let auto_kb = SEGMENT_KB_PER_THREAD * cores.min(8) as u64;
    let segment_kb = config
        .optimizers
        .max_segment_size
        .map_or(auto_kb, |kb| kb as u64);
    let rows_max = (segment_kb.saturating_mul(1024) / row_bytes).clamp(1, ROWS_MAX);
    SegmentSpec {
        vectors,
        rows_max: rows_max as Row,
    }
}

/// Longest time between syncs of the log.
pub(crate) fn flush_interval(config: &CollectionConfig) -> Duration {
    match config.optimizers.flush_interval_sec {
        // 0 would sync all the time; a hundredth of a second is as good and leaves the thread idle.
        0 => Duration::from_millis(10),
        seconds => Duration::from_secs(seconds),
    }
}
