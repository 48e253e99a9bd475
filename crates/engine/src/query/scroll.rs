//! Points by id, pages of points, and counts.

use flatwater_index::Row;
use flatwater_segment::PointId;
use flatwater_segment::mask::Mask;
use flatwater_segment::payload::filter::Filter;
use flatwater_segment::view::SegmentView;

use super::record::Selectors;
use super::request::{PayloadSelector, Record, ScrollPage, ScrollRequest, VectorSelector};
use crate::error::Result;
use crate::shard::compile;
use crate::shard::view::ShardView;

/// Points by id in the order asked for; those that do not exist are left out.
pub(crate) fn retrieve(
    view: &ShardView,
    ids: &[PointId],
    with_payload: &PayloadSelector,
    with_vector: &VectorSelector,
) -> Result<Vec<Record>> {
    let selectors = Selectors::new(with_payload, with_vector)?;
    ids.iter()
        .filter_map(|&id| {
            view.find(id)
                .map(|(segment, row)| selectors.record(segment, row, id))
        })
        .collect()
}

/// The points from `offset` on, ascending by id, or the first in the order that is asked for.
pub(crate) fn scroll(view: &ShardView, request: &ScrollRequest) -> Result<ScrollPage> {
    if let Some(order_by) = &request.order_by {
        return super::order::scroll(view, request, order_by);
    }
    let selectors = Selectors::new(&request.with_payload, &request.with_vector)?;
    let filter = request.filter.as_ref().map(compile).transpose()?;
    // One more than the page: its id is where the next page starts.
    let wanted = request.limit.saturating_add(1);
    let mut found: Vec<(PointId, &SegmentView, Row)> = Vec::new();
    for segment in &view.segments {
        let mask = filter
            .as_ref()
            .map(|filter| Mask::build(filter, segment.fields(), segment));
        let mut taken = 0;
        segment.walk_points(request.offset, |id, row| {
            if mask.as_ref().is_none_or(|mask| mask.accepts(row)) {
                found.push((id, segment, row));
                taken += 1;
            }
            taken < wanted
        });
    }
    found.sort_unstable_by_key(|(id, _, _)| *id);
    let next_offset = found.get(request.limit).map(|(id, _, _)| *id);
    found.truncate(request.limit);
    let points = found
        .into_iter()
        .map(|(id, segment, row)| selectors.record(segment, row, id))
        .collect::<Result<_>>()?;
    Ok(ScrollPage {
        points,
        next_offset,
    })
}

/// How many points match, exactly.
pub(crate) fn count(view: &ShardView, filter: Option<&Filter>) -> Result<u64> {
    let Some(filter) = filter else {
        return Ok(view.live_count());
    };
    let filter = compile(filter)?;
    let matching = |segment: &SegmentView| {
        let mask = Mask::build(&filter, segment.fields(), segment);
        let live = mask
            .candidates()
            .filter(|&row| segment.is_live(row) && mask.accepts(row));
        live.count() as u64
    };
    Ok(view.segments.iter().map(matching).sum())
}
