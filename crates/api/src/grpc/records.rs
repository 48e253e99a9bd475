//! Points on their way out.

use flatwater_engine::query::request::{OrderValue, Record, ScoredPoint};
use qdrant_client::qdrant;

use super::values::encode_map;
use super::{ids, vectors};
use crate::convert::records::finite;

/// A point. What was not asked for and what is empty look the same, as in Qdrant.
#[must_use]
pub fn encode_record(record: Record) -> qdrant::RetrievedPoint {
    qdrant::RetrievedPoint {
        id: Some(ids::encode(record.id)),
        payload: record.payload.map(encode_map).unwrap_or_default(),
        vectors: record.vectors.map(vectors::encode),
        shard_key: None,
        order_value: record.order_value.map(encode_order_value),
    }
}

fn encode_order_value(value: OrderValue) -> qdrant::OrderValue {
    use qdrant::order_value::Variant;
    let variant = match value {
        OrderValue::Integer(value) => Variant::Int(value),
        OrderValue::Float(value) => Variant::Float(value),
    };
    qdrant::OrderValue {
        variant: Some(variant),
    }
}

/// A list of points.
#[must_use]
pub fn encode_records(records: Vec<Record>) -> Vec<qdrant::RetrievedPoint> {
    records.into_iter().map(encode_record).collect()
}

/// Points with their scores.
#[must_use]
pub fn encode_scored(points: Vec<ScoredPoint>) -> Vec<qdrant::ScoredPoint> {
    let encode = |scored: ScoredPoint| qdrant::ScoredPoint {
        id: Some(ids::encode(scored.point.id)),
        payload: scored.point.payload.map(encode_map).unwrap_or_default(),
        score: finite(scored.score),
        version: scored.version,
        vectors: scored.point.vectors.map(vectors::encode),
        shard_key: None,
        order_value: None,
    };
    points.into_iter().map(encode).collect()
}
