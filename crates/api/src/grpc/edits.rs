//! Changes of parts of points: their payload, their vectors.

use flatwater_engine::collection::update::{PointVectors, Update};
use qdrant_client::qdrant;
use serde_json::Value;

use super::points::refuse_shard_key;
use super::shape::Shape;
use super::values::decode_map;
use super::{ids, select, vectors};
use crate::convert::edits::{
    clear_payload_of, delete_payload_of, delete_vectors_of, overwrite_payload_of,
};
use crate::error::{ApiError, Result};

/// Reads a payload that replaces those of points.
///
/// # Errors
/// An invalid id, filter or payload value, no selector, a `key`.
pub fn decode_overwrite_payload(request: qdrant::SetPayloadPoints) -> Result<Update> {
    refuse_shard_key(request.shard_key_selector.as_ref())?;
    let payload = decode_map(request.payload, "payload")?;
    let shape = Shape::default()
        .with("payload", Some(Value::Object(payload)))
        .with("key", request.key);
    overwrite_payload_of(&select::points(shape, request.points_selector)?.into_map())
}

/// Reads paths to take out of payloads.
///
/// # Errors
/// An invalid id, filter or path, no selector.
pub fn decode_delete_payload(request: qdrant::DeletePayloadPoints) -> Result<Update> {
    refuse_shard_key(request.shard_key_selector.as_ref())?;
    let shape = Shape::default().with("keys", Some(request.keys));
    delete_payload_of(&select::points(shape, request.points_selector)?.into_map())
}

/// Reads the points whose payload is emptied.
///
/// # Errors
/// An invalid id or filter, no selector.
pub fn decode_clear_payload(request: qdrant::ClearPayloadPoints) -> Result<Update> {
    refuse_shard_key(request.shard_key_selector.as_ref())?;
    clear_payload_of(&select::points(Shape::default(), request.points)?.into_map())
}

/// Reads new vectors of points.
///
/// # Errors
/// An id or vector that is missing or none.
pub fn decode_update_vectors(request: qdrant::UpdatePointVectors) -> Result<Update> {
    refuse_shard_key(request.shard_key_selector.as_ref())?;
    if request.update_filter.is_some() {
        return Err(ApiError::NotServed("update_filter".to_owned()));
    }
    let points = request.points.into_iter().enumerate();
    let points = points.map(|(at, point)| {
        let path = format!("points[{at}]");
        let id = ids::decode(point.id, &format!("{path}.id"))?;
        Ok(PointVectors {
            id,
            vectors: vectors::decode(point.vectors, &path, &id.to_string())?,
        })
    });
    Ok(Update::UpdateVectors(points.collect::<Result<_>>()?))
}

/// Reads names of vectors to take away from points.
///
/// # Errors
/// An invalid id or filter, no selector, no name.
pub fn decode_delete_vectors(request: qdrant::DeletePointVectors) -> Result<Update> {
    refuse_shard_key(request.shard_key_selector.as_ref())?;
    let names = request.vectors.map(|selector| selector.names);
    let shape = Shape::default().with("vector", names);
    delete_vectors_of(&select::points(shape, request.points_selector)?.into_map())
}
