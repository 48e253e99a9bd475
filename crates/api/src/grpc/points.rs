//! Requests about points: which ones, and what to do with them.

use flatwater_engine::collection::update::{PointInput, Update, UpdateResult, UpdateStatus};
use flatwater_engine::query::request::ScrollRequest;
use flatwater_segment::payload::filter::Filter;
use qdrant_client::qdrant;
use serde_json::Value;

use super::moments::datetime_text;
use super::shape::{Shape, known, number};
use super::values::decode_map;
use super::{filter, ids, select, vectors};
use crate::convert::points::{
    Retrieve, count_of, delete_of, retrieve_of, scroll_of, set_payload_of,
};
use crate::error::{ApiError, Result};
use crate::validate;

/// Reads the points to store.
///
/// # Errors
/// An id, vector or payload value that is missing or none, a field that is not served yet.
pub fn decode_upsert(request: qdrant::UpsertPoints) -> Result<Update> {
    refuse_shard_key(request.shard_key_selector.as_ref())?;
    if request.update_filter.is_some() {
        return Err(ApiError::NotServed("update_filter".to_owned()));
    }
    match known("update_mode", request.update_mode.unwrap_or_default())? {
        qdrant::UpdateMode::Upsert => {}
        mode => {
            let word = mode.as_str_name();
            return Err(ApiError::NotServed(format!("update_mode: {word}")));
        }
    }
    let points = request.points.into_iter().enumerate();
    let points = points.map(|(at, point)| point_input(point, &format!("points[{at}]")));
    Ok(Update::Upsert(points.collect::<Result<_>>()?))
}

fn point_input(point: qdrant::PointStruct, path: &str) -> Result<PointInput> {
    let id = ids::decode(point.id, &format!("{path}.id"))?;
    let name = id.to_string();
    let payload = decode_map(point.payload, &format!("point {name}: payload"))?;
    validate::payload_depth(&format!("point {name}"), &payload)?;
    Ok(PointInput {
        id,
        vectors: vectors::decode(point.vectors, path, &name)?,
        payload: (!payload.is_empty()).then_some(payload),
    })
}

/// One shard, one key: none.
pub(super) fn refuse_shard_key(selector: Option<&qdrant::ShardKeySelector>) -> Result<()> {
    match selector {
        Some(selector) if !selector.shard_keys.is_empty() || selector.fallback.is_some() => {
            Err(ApiError::NotServed("shard_key_selector".to_owned()))
        }
        _ => Ok(()),
    }
}

/// Reads which points to delete.
///
/// # Errors
/// An invalid id or filter, no selector.
pub fn decode_delete(request: qdrant::DeletePoints) -> Result<Update> {
    refuse_shard_key(request.shard_key_selector.as_ref())?;
    delete_of(&select::points(Shape::default(), request.points)?.into_map())
}

/// Reads payload to merge into points.
///
/// # Errors
/// An invalid id, filter, path or payload value, no selector.
pub fn decode_set_payload(request: qdrant::SetPayloadPoints) -> Result<Update> {
    refuse_shard_key(request.shard_key_selector.as_ref())?;
    let payload = decode_map(request.payload, "payload")?;
    let shape = Shape::default()
        .with("payload", Some(Value::Object(payload)))
        .with("key", request.key);
    set_payload_of(&select::points(shape, request.points_selector)?.into_map())
}

/// Reads which points to fetch.
///
/// # Errors
/// An invalid id or path.
pub fn decode_get(request: qdrant::GetPoints) -> Result<Retrieve> {
    refuse_shard_key(request.shard_key_selector.as_ref())?;
    let shape = Shape::default()
        .with("ids", Some(Vec::<Value>::new()))
        .with("with_payload", select::payload(request.with_payload))
        .with("with_vector", select::vectors(request.with_vectors));
    let mut retrieve = retrieve_of(&shape.into_map())?;
    retrieve.ids = ids::decode_list(request.ids, "ids")?;
    Ok(retrieve)
}

/// Reads a page of a walk over points.
///
/// # Errors
/// An invalid id, filter or path, `limit` 0.
pub fn decode_scroll(request: qdrant::ScrollPoints) -> Result<ScrollRequest> {
    refuse_shard_key(request.shard_key_selector.as_ref())?;
    let offset = request
        .offset
        .map(|id| ids::shape(id, "offset"))
        .transpose()?;
    let shape = Shape::default()
        .with("filter", filter::shape_if(request.filter, "filter")?)
        .with("offset", offset)
        .with("limit", request.limit)
        .with("with_payload", select::payload(request.with_payload))
        .with("with_vector", select::vectors(request.with_vectors))
        .with("order_by", request.order_by.map(order_by).transpose()?);
    scroll_of(&shape.into_map())
}

fn order_by(order: qdrant::OrderBy) -> Result<Shape> {
    let direction = match known("order_by.direction", order.direction.unwrap_or_default())? {
        qdrant::Direction::Asc => "asc",
        qdrant::Direction::Desc => "desc",
    };
    let start = order.start_from.and_then(|start| start.value);
    Ok(Shape::default()
        .with("key", Some(order.key))
        .with("direction", Some(direction))
        .with("start_from", start.map(start_from).transpose()?))
}

fn start_from(start: qdrant::start_from::Value) -> Result<Value> {
    use qdrant::start_from::Value as Start;
    const PATH: &str = "order_by.start_from";
    Ok(match start {
        Start::Float(float) => number(PATH, float)?,
        Start::Integer(integer) => integer.into(),
        Start::Timestamp(moment) => datetime_text(moment, PATH)?.into(),
        Start::Datetime(text) => text.into(),
    })
}

/// Reads which points to count.
///
/// # Errors
/// An invalid filter.
pub fn decode_count(request: qdrant::CountPoints) -> Result<Option<Filter>> {
    refuse_shard_key(request.shard_key_selector.as_ref())?;
    let filter = filter::shape_if(request.filter, "filter")?;
    count_of(&Shape::default().with("filter", filter).into_map())
}

/// An acknowledgement; `None` = it did not arrive within the `timeout` of the request.
#[must_use]
pub fn encode_update(result: Option<UpdateResult>) -> qdrant::UpdateResult {
    let status = match result.map(|result| result.status) {
        None => qdrant::UpdateStatus::WaitTimeout,
        Some(UpdateStatus::Acknowledged) => qdrant::UpdateStatus::Acknowledged,
        Some(UpdateStatus::Completed) => qdrant::UpdateStatus::Completed,
    };
    qdrant::UpdateResult {
        operation_id: result.map(|result| result.seq),
        status: status.into(),
    }
}

#[cfg(test)]
#[path = "points_tests.rs"]
mod tests;
