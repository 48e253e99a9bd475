//! What a segment takes of the disk and of memory, part by part.
//!
//! 1. Bytes on the disk: the lengths of its files, by what their names say they hold.
//! 2. Bytes of memory of its own: what is kept nowhere else (graphs that take rows, ids, stamps, field
//!    indexes).
//! 3. Cached bytes: pages of its files that are in memory now. The kernel is asked about the mappings; no lock is
//!    held meanwhile.

use std::collections::BTreeMap;
use std::ops::AddAssign;

use crate::error::SegmentError;
use crate::parts::Segment;
use crate::view::SegmentView;

/// What a part takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Bytes of its files, the room that growing files keep included.
    pub disk_bytes: u64,
    /// Bytes of memory of its own.
    pub heap_bytes: u64,
    /// Bytes of its files that are in memory now.
    pub cached_bytes: u64,
}

impl AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.disk_bytes += other.disk_bytes;
        self.heap_bytes += other.heap_bytes;
        self.cached_bytes += other.cached_bytes;
    }
}

/// What one vector takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VectorUsage {
    /// Originals.
    pub storage: Usage,
    /// Graph.
    pub index: Usage,
    /// Codes.
    pub codes: Usage,
}

/// What a segment takes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SegmentUsage {
    /// Its vectors, in the order of its spec.
    pub vectors: Vec<VectorUsage>,
    /// Payloads, and what finds them.
    pub payload: Usage,
    /// Indexes of fields, which are kept in memory alone.
    pub fields: BTreeMap<String, Usage>,
    /// Ids, heads of rows, deletions, and the small files that describe the segment.
    pub ids: Usage,
}

/// What a file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Content {
    Originals(usize),
    Codes(usize),
    Graph(usize),
    Payload,
    Ids,
}

impl Content {
    /// By the name of the file, growing or sealed.
    fn of(name: &str) -> Self {
        let name = name.strip_prefix("sealed-").unwrap_or(name);
        let vector = |prefix: &str| -> Option<usize> {
            let rest = name.strip_prefix(prefix)?;
            let end = rest.find(|c: char| !c.is_ascii_digit());
            rest.get(..end.unwrap_or(rest.len()))?.parse().ok()
        };
        let graph = || vector("graph").or_else(|| vector("links"));
        let codes = || vector("codes8-").or_else(|| vector("codes1-"));
        if let Some(place) = vector("vector") {
            Self::Originals(place)
        } else if let Some(place) = codes() {
            Self::Codes(place)
        } else if let Some(place) = graph() {
            Self::Graph(place)
        } else if name.starts_with("payload") || name.starts_with("versions") {
            Self::Payload
        } else {
            Self::Ids
        }
    }
}

impl Segment {
    /// Bytes of its files; 0 once it was replaced and they are gone.
    ///
    /// # Errors
    /// [`SegmentError::Dir`].
    pub fn disk_bytes(&self) -> Result<u64, SegmentError> {
        Ok(self.files()?.iter().map(|(_, bytes)| bytes).sum())
    }

    fn files(&self) -> Result<Vec<(String, u64)>, SegmentError> {
        match self.dir.sizes() {
            Err(error) if error.is_not_found() => Ok(Vec::new()),
            sizes => Ok(sizes?),
        }
    }
}

impl SegmentView {
    /// What the segment takes now.
    ///
    /// # Errors
    /// [`SegmentError::Dir`].
    ///
    /// Cost: a listing of its files, and a byte for each page of them.
    pub fn usage(&self) -> Result<SegmentUsage, SegmentError> {
        let segment = self.segment();
        let mut usage = SegmentUsage {
            vectors: vec![VectorUsage::default(); segment.columns.len()],
            ..SegmentUsage::default()
        };
        for (name, bytes) in segment.files()? {
            if let Some(part) = usage.part(Content::of(&name)) {
                part.disk_bytes += bytes;
            }
        }
        for (vector, column) in usage.vectors.iter_mut().zip(&segment.columns) {
            vector.storage.cached_bytes = column.originals().resident_bytes();
            vector.storage.heap_bytes = column.stamps_bytes();
            if let Some(codes) = column.codes() {
                let [codes8, codes1] = [codes.codes8(), codes.codes1()];
                vector.codes.cached_bytes = codes8.resident_bytes() + codes1.resident_bytes();
            }
            if let Some(graph) = column.graph() {
                vector.index.heap_bytes = graph.heap_bytes();
                vector.index.cached_bytes = graph.resident_bytes();
            }
        }
        usage.payload.cached_bytes = segment.payload.resident_bytes();
        usage.payload.heap_bytes = segment.payload.heap_bytes();
        usage.ids.cached_bytes = segment.points.resident_bytes();
        usage.ids.heap_bytes = segment.points.heap_bytes() + segment.deleted.heap_bytes();
        for (field, index) in self.fields() {
            usage.fields.entry(field.clone()).or_default().heap_bytes = index.heap_bytes();
        }
        Ok(usage)
    }
}

impl SegmentUsage {
    fn part(&mut self, content: Content) -> Option<&mut Usage> {
        match content {
            Content::Originals(place) => self.vectors.get_mut(place).map(|v| &mut v.storage),
            Content::Codes(place) => self.vectors.get_mut(place).map(|v| &mut v.codes),
            Content::Graph(place) => self.vectors.get_mut(place).map(|v| &mut v.index),
            Content::Payload => Some(&mut self.payload),
            Content::Ids => Some(&mut self.ids),
        }
    }

    /// All parts together.
    #[must_use]
    pub fn total(&self) -> Usage {
        let vectors = self.vectors.iter();
        let parts = vectors.flat_map(|vector| [vector.storage, vector.index, vector.codes]);
        let rest = self
            .fields
            .values()
            .copied()
            .chain([self.payload, self.ids]);
        let mut total = Usage::default();
        parts.chain(rest).for_each(|part| total += part);
        total
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_known_by_its_name() {
        for (name, content) in [
            ("vector0-00000.chunk", Content::Originals(0)),
            ("vector12-00003.chunk", Content::Originals(12)),
            ("sealed-vector1", Content::Originals(1)),
            ("codes8-0-00000.chunk", Content::Codes(0)),
            ("codes1-3-00000.chunk", Content::Codes(3)),
            ("sealed-codes8-10", Content::Codes(10)),
            ("sealed-graph2-base", Content::Graph(2)),
            ("links7", Content::Graph(7)),
            ("payload-00000.chunk", Content::Payload),
            ("versions-00000.chunk", Content::Payload),
            ("sealed-payload-rows", Content::Payload),
            ("sealed-payload-json", Content::Payload),
            ("heads-00000.chunk", Content::Ids),
            ("sealed-heads", Content::Ids),
            ("sealed-ids", Content::Ids),
            ("checkpoint", Content::Ids),
            ("state", Content::Ids),
            ("segment", Content::Ids),
        ] {
            assert_eq!(Content::of(name), content, "{name}");
        }
    }
}
