//! Queries.

use flatwater_engine::query::request::QueryTarget;
use qdrant_client::qdrant;
use qdrant_client::qdrant::query::Variant;
use qdrant_client::qdrant::vector_input;
use serde_json::Value;

use super::points::refuse_shard_key;
use super::shape::{Shape, number_if, required};
use super::vectors::check_finite;
use super::{filter, ids, select};
use crate::convert::query::{Query, query_of};
use crate::convert::search::search_of;
use crate::error::{ApiError, Result};

/// Reads a query.
///
/// # Errors
/// As [`crate::convert::query::decode_query`].
pub fn decode_query(request: qdrant::QueryPoints) -> Result<Query> {
    refuse_shard_key(request.shard_key_selector.as_ref())?;
    let threshold = request.score_threshold.map(f64::from);
    let shape = Shape::default()
        .with_unread("prefetch", !request.prefetch.is_empty())
        .with_unread("lookup_from", request.lookup_from.is_some())
        .with("using", request.using)
        .with("filter", filter::shape_if(request.filter, "filter")?)
        .with("params", request.params.map(params))
        .with("score_threshold", number_if("score_threshold", threshold)?)
        .with("limit", request.limit)
        .with("offset", request.offset)
        .with("with_payload", select::payload(request.with_payload))
        .with("with_vector", select::vectors(request.with_vectors));
    let query = request.query;
    query_of(&shape.into_map(), || query.map(target).transpose())
}

/// Reads a search, the older form of a query.
///
/// # Errors
/// As [`decode_query`]; `limit` 0.
pub fn decode_search(request: qdrant::SearchPoints) -> Result<Query> {
    refuse_shard_key(request.shard_key_selector.as_ref())?;
    if request.sparse_indices.is_some() {
        return Err(ApiError::NotServed("sparse_indices".to_owned()));
    }
    let threshold = request.score_threshold.map(f64::from);
    let shape = Shape::default()
        .with("filter", filter::shape_if(request.filter, "filter")?)
        .with("params", request.params.map(params))
        .with("score_threshold", number_if("score_threshold", threshold)?)
        .with("limit", Some(request.limit))
        .with("offset", request.offset)
        .with("with_payload", select::payload(request.with_payload))
        .with("with_vector", select::vectors(request.with_vectors));
    check_finite(&request.vector, "vector")?;
    search_of(&mut shape.into_map(), request.vector_name, request.vector)
}

fn params(params: qdrant::SearchParams) -> Value {
    let acorn = params
        .acorn
        .map(|acorn| Shape::default().with("enable", acorn.enable));
    Shape::default()
        .with("hnsw_ef", params.hnsw_ef)
        .with("exact", params.exact)
        .with("indexed_only", params.indexed_only)
        .with("acorn", acorn)
        .with_unread("quantization", params.quantization.is_some())
        .with_unread("idf", params.idf.is_some())
        .into()
}

/// What the query is near to.
fn target(query: qdrant::Query) -> Result<QueryTarget> {
    let kind = match required("query.variant", query.variant)? {
        Variant::Nearest(input) => return nearest(input, "query"),
        Variant::NearestWithMmr(inner) if inner.mmr.is_none() => {
            let input = required("query.nearest", inner.nearest)?;
            return nearest(input, "query.nearest");
        }
        Variant::NearestWithMmr(_) => "mmr",
        Variant::Recommend(_) => "recommend",
        Variant::Discover(_) => "discover",
        Variant::Context(_) => "context",
        Variant::OrderBy(_) => "order_by",
        Variant::Fusion(_) => "fusion",
        Variant::Sample(_) => "sample",
        Variant::Formula(_) => "formula",
        Variant::Rrf(_) => "rrf",
        Variant::RelevanceFeedback(_) => "relevance_feedback",
        Variant::Text(_) => "text",
    };
    Err(ApiError::NotServed(format!("query.{kind}")))
}

fn nearest(input: qdrant::VectorInput, path: &str) -> Result<QueryTarget> {
    use vector_input::Variant;
    let not_served = |kind: &str| Err(ApiError::NotServed(format!("{path} as {kind}")));
    match required(path, input.variant)? {
        Variant::Id(id) => ids::decode(Some(id), path).map(QueryTarget::Point),
        Variant::Dense(dense) => {
            check_finite(&dense.data, path)?;
            Ok(QueryTarget::Vector(dense.data))
        }
        Variant::Sparse(_) => not_served("a sparse vector"),
        Variant::MultiDense(_) => not_served("a list of vectors (multivectors)"),
        Variant::Document(_) => not_served("a document (inference)"),
        Variant::Image(_) => not_served("an image (inference)"),
        Variant::Object(_) => not_served("an object (inference)"),
    }
}

#[cfg(test)]
#[path = "query_tests.rs"]
mod tests;
