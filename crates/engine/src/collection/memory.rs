//! What a collection takes of the disk and of memory, part by part.

use std::collections::BTreeMap;

use flatwater_segment::usage::Usage as Taken;

use super::Collection;
use crate::config::collection::CollectionConfig;
use crate::error::Result;

/// What a part takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Bytes of its files.
    pub disk_bytes: u64,
    /// Bytes of memory of its own.
    pub ram_bytes: u64,
    /// Bytes of its files that are in memory now.
    pub cached_bytes: u64,
    /// Bytes of its files that should be, so that no search waits for the disk.
    pub expected_cache_bytes: u64,
}

impl Usage {
    /// `is_hot` says whether searches read all over it.
    fn of(taken: Taken, is_hot: bool) -> Self {
        Self {
            disk_bytes: taken.disk_bytes,
            ram_bytes: taken.heap_bytes,
            cached_bytes: taken.cached_bytes,
            expected_cache_bytes: if is_hot { taken.disk_bytes } else { 0 },
        }
    }

    fn add(&mut self, other: Self) {
        self.disk_bytes += other.disk_bytes;
        self.ram_bytes += other.ram_bytes;
        self.cached_bytes += other.cached_bytes;
        self.expected_cache_bytes += other.expected_cache_bytes;
    }
}

/// What one vector takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VectorUsage {
    /// Originals.
    pub storage: Usage,
    /// Graphs.
    pub index: Usage,
    /// Codes; none where the vector has none.
    pub quantized: Option<Usage>,
}

/// What a collection takes; the log is not in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemoryReport {
    /// All parts together.
    pub total: Usage,
    /// Vectors by name.
    pub vectors: BTreeMap<String, VectorUsage>,
    /// Payloads.
    pub payload: Usage,
    /// Field indexes.
    pub fields: BTreeMap<String, Usage>,
    /// Ids, heads of rows, deletions.
    pub ids: Usage,
}

/// What the collection takes now. Growing parts count with the room that their files keep.
///
/// # Errors
/// `Io` where the files of a segment cannot be listed.
pub(super) fn collect(collection: &Collection) -> Result<MemoryReport> {
    let view = collection.shard.view();
    let config: &CollectionConfig = &collection.config();
    let mut report = MemoryReport::default();
    for segment in &view.segments {
        let usage = segment.usage()?;
        let columns = segment.segment().columns();
        for (column, taken) in columns.iter().zip(&usage.vectors) {
            let name = &column.spec().name;
            let on_disk = config.vectors.get(name).and_then(|vector| vector.on_disk);
            let vector = report.vectors.entry(name.clone()).or_default();
            // Every hit is scored again with its original, unless the user wants them on the disk.
            let is_hot = on_disk != Some(true);
            vector.storage.add(Usage::of(taken.storage, is_hot));
            vector.index.add(Usage::of(taken.index, true));
            if column.codes().is_some() {
                let codes = vector.quantized.get_or_insert_default();
                codes.add(Usage::of(taken.codes, true));
            }
        }
        let payload = Usage::of(usage.payload, !config.on_disk_payload);
        report.payload.add(payload);
        for (field, taken) in usage.fields {
            let field = report.fields.entry(field).or_default();
            field.add(Usage::of(taken, true));
        }
        report.ids.add(Usage::of(usage.ids, true));
    }
    let vectors = report.vectors.values();
    let vectors = vectors.flat_map(|vector| {
        let codes = vector.quantized.unwrap_or_default();
        [vector.storage, vector.index, codes]
    });
    let fields = report.fields.values().copied();
    let parts = vectors.chain(fields).chain([report.payload, report.ids]);
    let mut total = Usage::default();
    parts.for_each(|part| total.add(part));
    report.total = total;
    Ok(report)
}
