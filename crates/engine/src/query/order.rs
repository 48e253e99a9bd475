//! Points in the order of a field's values.
//!
//! 1. The field must have an index that keeps an order.
//! 2. Each segment visits its values in order; the best so far of all segments are kept, as many as are
//!    wanted, and each list ends where its values are past all of those.
//! 3. A point stands once for each of its distinct values. Equal values are in the order of ids.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use flatwater_index::Row;
use flatwater_segment::PointId;
use flatwater_segment::field::FieldType;
use flatwater_segment::field::order::{Direction, OrderValue};
use flatwater_segment::mask::Mask;
use flatwater_segment::search::order::{OrderedField, walk_values};
use flatwater_segment::view::SegmentView;

use super::record::Selectors;
use super::request::{OrderBy, ScrollPage, ScrollRequest};
use crate::config::collection::FieldSchema;
use crate::error::{EngineError, Result};
use crate::shard::view::ShardView;
use crate::shard::{compile, parse_path};

/// The first points by their values; there is no next page.
pub(super) fn scroll(
    view: &ShardView,
    request: &ScrollRequest,
    order_by: &OrderBy,
) -> Result<ScrollPage> {
    let selectors = Selectors::new(&request.with_payload, &request.with_vector)?;
    let filter = request.filter.as_ref().map(compile).transpose()?;
    let field = ordered_field(view, order_by)?;
    if request.offset.is_some() {
        return Err(EngineError::Invalid(
            "Cannot use an `offset` when using `order_by`. The alternative for paging is to use \
             `order_by.start_from` and a filter to exclude the IDs that you've already seen for the \
             `order_by.start_from` value"
                .to_owned(),
        ));
    }
    let mut first = First {
        wanted: request.limit,
        direction: order_by.order.direction,
        kept: BTreeMap::new(),
    };
    for segment in &view.segments {
        let mask = filter
            .as_ref()
            .map(|filter| Mask::build(filter, segment.fields(), segment));
        walk_values(segment, &field, &mut |value, row| {
            if first.is_past(value) {
                return ControlFlow::Break(());
            }
            let passes = || mask.as_ref().is_none_or(|mask| mask.accepts(row));
            if segment.is_live(row) && passes() {
                first.keep(value, segment, row);
            }
            ControlFlow::Continue(())
        })?;
    }
    let points = first.into_sorted().map(|((value, id), (segment, row))| {
        let mut record = selectors.record(segment, row, id)?;
        record.order_value = Some(value);
        Ok(record)
    });
    Ok(ScrollPage {
        points: points.collect::<Result<_>>()?,
        next_offset: None,
    })
}

/// The field of the request, if its index keeps an order.
fn ordered_field(view: &ShardView, order_by: &OrderBy) -> Result<OrderedField> {
    let path = parse_path(&order_by.key)?;
    let mut schemas = view.schemas.iter();
    let is_ordered = |schema: &FieldSchema| {
        let has_range = schema
            .params
            .as_ref()
            .and_then(|params| params.get("range"));
        schema.field_type.is_ordered()
            && (schema.field_type != FieldType::Integer || has_range != Some(&false.into()))
    };
    // A schema's key was parsed before it was stored.
    let found = schemas.find_map(|(key, schema)| {
        let is_it = is_ordered(schema) && parse_path(key).is_ok_and(|known| known == path);
        is_it.then_some(schema.field_type)
    });
    match found {
        Some(field_type) => Ok(OrderedField {
            path,
            field_type,
            order: order_by.order,
        }),
        // The words and the address are Qdrant's, which clients look for.
        None => Err(EngineError::Invalid(format!(
            "No range index for `order_by` key: `{}`. Please create one to use `order_by`. Check \
             https://qdrant.tech/documentation/concepts/indexing/#payload-index to see which payload \
             schemas support Range conditions",
            order_by.key
        ))),
    }
}

/// The first so many pairs of value and point.
struct First<'v> {
    wanted: usize,
    direction: Direction,
    /// Ascending; the pairs that come last are at the end, or at the front where values descend.
    kept: BTreeMap<(OrderValue, PointId), (&'v SegmentView, Row)>,
}

impl<'v> First<'v> {
    /// Whether enough pairs come before any of this value.
    fn is_past(&self, value: OrderValue) -> bool {
        if self.kept.len() < self.wanted {
            return false;
        }
        match self.direction {
            Direction::Ascending => {
                (self.kept.last_key_value()).is_some_and(|((last, _), _)| value > *last)
            }
            Direction::Descending => {
                (self.kept.first_key_value()).is_some_and(|((last, _), _)| value < *last)
            }
        }
    }

    fn keep(&mut self, value: OrderValue, segment: &'v SegmentView, row: Row) {
        let id = segment.segment().head(row).id;
        self.kept.insert((value, id), (segment, row));
        if self.kept.len() > self.wanted {
            let _one_too_many = match self.direction {
                Direction::Ascending => self.kept.pop_last(),
                Direction::Descending => self.kept.pop_first(),
            };
        }
    }

    fn into_sorted(self) -> impl Iterator<Item = ((OrderValue, PointId), (&'v SegmentView, Row))> {
        let mut pairs: Vec<_> = self.kept.into_iter().collect();
        if self.direction == Direction::Descending {
            pairs.reverse();
        }
        pairs.into_iter()
    }
}
