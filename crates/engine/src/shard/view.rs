//! What one read sees of a shard.

use std::sync::Arc;

use flatwater_index::Row;
use flatwater_segment::view::SegmentView;
use flatwater_segment::{PointId, SeqNo};
use uuid::Uuid;

use super::schema::FieldSchemas;

/// One moment of a shard: every write up to the watermark, none after it. It never changes.
#[derive(Clone, Debug)]
pub struct ShardView {
    /// Every write with a `seq` up to this one is in the view.
    pub watermark: SeqNo,
    /// Segments, oldest first.
    pub segments: Vec<SegmentView>,
    /// Field indexes that users asked for.
    pub schemas: Arc<FieldSchemas>,
}

impl ShardView {
    /// Live points, exact.
    #[must_use]
    pub fn live_count(&self) -> u64 {
        self.segments.iter().map(SegmentView::live_count).sum()
    }

    /// The view of segment `id`, if it is in this one.
    #[must_use]
    pub fn segment(&self, id: Uuid) -> Option<&SegmentView> {
        let mut segments = self.segments.iter();
        segments.find(|view| view.segment().id() == id)
    }

    /// The segment and row of a point; newest segment first, since that is where it is likely.
    #[must_use]
    pub fn find(&self, id: PointId) -> Option<(&SegmentView, Row)> {
        self.segments
            .iter()
            .rev()
            .find_map(|segment| segment.row_of_point(id).map(|row| (segment, row)))
    }
}
