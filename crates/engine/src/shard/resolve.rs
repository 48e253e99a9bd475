//! From a filter to ids: matched in a view by the submitting thread, rechecked by the writer.
//!
//! The writer looks again only at what changed between the two views: candidates that were
//! overwritten, deleted or got another payload, rows that are new, and rows whose payload changed.

use std::collections::HashSet;
use std::sync::Arc;

use flatwater_index::Row;
use flatwater_segment::PointId;
use flatwater_segment::mask::{Mask, RowSource};
use flatwater_segment::payload::eval::CompiledFilter;
use flatwater_segment::view::SegmentView;

use super::view::ShardView;
use crate::error::Result;

/// Points that matched a filter in a view.
#[derive(Debug)]
pub(super) struct Candidates {
    filter: CompiledFilter,
    view: Arc<ShardView>,
    ids: Vec<PointId>,
}

impl Candidates {
    /// Matches `filter` against every point of `view`.
    pub(super) fn find(filter: CompiledFilter, view: Arc<ShardView>) -> Self {
        let ids = matching(&filter, &view);
        Self { filter, view, ids }
    }

    /// How many matched.
    pub(super) fn len(&self) -> usize {
        self.ids.len()
    }

    /// The ids that match in `now`, a later view of the same shard, each once.
    pub(super) fn recheck(self, now: &ShardView) -> Result<Vec<PointId>> {
        let before = self.view.watermark;
        if now.watermark == before {
            return Ok(self.ids);
        }
        if self.filter.reads_vectors() {
            // A vector that is taken away leaves no trace in the versions of rows.
            return Ok(matching(&self.filter, now));
        }
        let mut ids = Vec::with_capacity(self.ids.len());
        let mut seen = HashSet::new();
        for &id in &self.ids {
            let Some((segment, row)) = now.find(id) else {
                continue;
            };
            let is_same = segment.version_of(row) <= before;
            if is_same || self.matches(segment, row)? {
                seen.insert(id);
                ids.push(id);
            }
        }
        for segment in &now.segments {
            for row in self.changed_rows(segment) {
                let id = segment.segment().head(row).id;
                if segment.is_live(row) && !seen.contains(&id) && self.matches(segment, row)? {
                    seen.insert(id);
                    ids.push(id);
                }
            }
        }
        Ok(ids)
    }

    fn matches(&self, segment: &SegmentView, row: Row) -> Result<bool> {
        let payload = segment.payload_of(row)?;
        let id = segment.segment().head(row).id;
        let has_vector = |name: &str| segment.has_vector(row, name);
        Ok(self.filter.matches(id, &payload, &has_vector))
    }

    /// Rows of `segment` that are new, or whose payload is, since the first view.
    fn changed_rows<'a>(&self, segment: &'a SegmentView) -> impl Iterator<Item = Row> + 'a {
        let old = self
            .view
            .segments
            .iter()
            .find(|old| old.segment().id() == segment.segment().id());
        let (rows, versions) = old.map_or((0, 0), |old| (old.rows_len(), old.versions_len()));
        let payload = segment.segment().payload();
        (rows..segment.rows_len()).chain(payload.rows_of_versions(versions, segment.versions_len()))
    }
}

/// Ids of the points of a view that match.
fn matching(filter: &CompiledFilter, view: &ShardView) -> Vec<PointId> {
    let mut ids = Vec::new();
    for segment in &view.segments {
        let mask = Mask::build(filter, segment.fields(), segment);
        let rows = mask
            .candidates()
            .filter(|&row| segment.is_live(row) && mask.accepts(row));
        ids.extend(rows.map(|row| segment.segment().head(row).id));
    }
    ids
}
