//! `POST /collections/{c}/points/query`: nearest neighbours of a vector or a point, or, without a
//! query, points in the order of their ids.

use flatwater_engine::query::request::{
    PayloadSelector, QueryTarget, Record, ScoredPoint, ScrollRequest, SearchRequest, VectorSelector,
};
use serde_json::{Map, Value};

use super::filter::decode_filter_field;
use super::ids::decode_id;
use super::payload::{decode_payload_selector, decode_vector_selector};
use super::points::decode_limit;
use crate::body;
use crate::error::{ApiError, Result};
use crate::fields::{Fields, short, wrong_type};

/// Points returned when `limit` is not given, as in Qdrant.
const QUERY_LIMIT_DEFAULT: usize = 10;

/// Score of a point that was found without a query, as in Qdrant.
const UNSCORED: f32 = 1.0;

/// Kinds of queries that Qdrant has and we do not serve yet, by the key that tells them.
const QUERIES_NOT_SERVED: [&str; 14] = [
    "recommend",
    "discover",
    "context",
    "order_by",
    "fusion",
    "rrf",
    "formula",
    "sample",
    "relevance_feedback",
    "indices",
    "values",
    "text",
    "image",
    "object",
];

/// What a query comes down to.
#[derive(Clone, Debug)]
pub enum Query {
    /// A nearest-neighbour search.
    Nearest(SearchRequest),
    /// No query: points by id, the first `skip` of them left out.
    ById {
        /// The walk, with room for the points that are skipped.
        walk: ScrollRequest,
        /// Points to leave out.
        skip: usize,
    },
}

/// Reads the body of a query.
///
/// # Errors
/// Undecodable JSON, a number that is no finite `f32`, a field not served yet (400); `limit` 0 (422).
pub fn decode_query(bytes: &[u8]) -> Result<Query> {
    let map = body::object(bytes)?;
    query_of(&map, || {
        let query = Fields::root(&map).value("query");
        query.map(|query| decode_target(query, "query")).transpose()
    })
}

/// As [`decode_query`], from the fields of the body without `query`, and what that comes down to.
pub(crate) fn query_of(
    map: &Map<String, Value>,
    target: impl FnOnce() -> Result<Option<QueryTarget>>,
) -> Result<Query> {
    let fields = Fields::root(map);
    fields.refuse(&[
        "prefetch",
        "lookup_from",
        "shard_key",
        "with_lookup",
        "group_by",
    ])?;
    let filter = decode_filter_field(&fields, "filter")?;
    let (hnsw_ef, exact) = decode_params(&fields)?;
    let using = fields.string("using")?.unwrap_or_default().to_owned();
    let score_threshold = decode_threshold(&fields)?;
    let limit = decode_limit(&fields, QUERY_LIMIT_DEFAULT)?;
    let offset = fields.count("offset")?.unwrap_or_default();
    let with_payload = decode_payload_selector(&fields, PayloadSelector::None)?;
    let with_vector = decode_vector_selector(&fields, VectorSelector::None)?;
    let Some(target) = target()? else {
        let limit = limit.saturating_add(offset);
        let walk = ScrollRequest {
            filter,
            limit,
            offset: None,
            order_by: None,
            with_payload,
            with_vector,
        };
        return Ok(Query::ById { walk, skip: offset });
    };
    Ok(Query::Nearest(SearchRequest {
        target,
        using,
        filter,
        hnsw_ef,
        exact,
        score_threshold,
        limit,
        offset,
        with_payload,
        with_vector,
    }))
}

/// `params`: what changes results and is served (`hnsw_ef`, `exact`). `quantization` is accepted:
/// it says how to use a quantization that no collection here is configured with.
fn decode_params(fields: &Fields<'_>) -> Result<(Option<usize>, bool)> {
    let Some(params) = fields.object("params")? else {
        return Ok((None, false));
    };
    params.refuse(&["indexed_only", "idf"])?;
    if let Some(acorn) = params.object("acorn")? {
        acorn.refuse(&["enable"])?;
    }
    params.object("quantization")?;
    Ok((
        params.count("hnsw_ef")?,
        params.bool("exact")?.unwrap_or(false),
    ))
}

fn decode_threshold(fields: &Fields<'_>) -> Result<Option<f32>> {
    const NAME: &str = "score_threshold";
    let Some(threshold) = fields.number(NAME)? else {
        return Ok(None);
    };
    let narrow = threshold as f32;
    if narrow.is_finite() {
        return Ok(Some(narrow));
    }
    Err(ApiError::Wrong(format!(
        "{NAME}: {threshold} is not a finite 32-bit float"
    )))
}

fn decode_target(query: &Value, path: &str) -> Result<QueryTarget> {
    match query {
        Value::Array(elements) => decode_vector(elements, path).map(QueryTarget::Vector),
        Value::Number(_) | Value::String(_) => decode_id(query, path).map(QueryTarget::Point),
        Value::Object(map) => {
            let fields = Fields::of(query, path.to_owned())?;
            if let Some(kind) = QUERIES_NOT_SERVED
                .into_iter()
                .find(|kind| map.contains_key(*kind))
            {
                return Err(ApiError::NotServed(fields.at(kind)));
            }
            fields.refuse(&["mmr"])?;
            match fields.required("nearest")? {
                // One level only, as in Qdrant: what is nearest is a vector or an id.
                Value::Object(inner) => {
                    let kind = inner.keys().next().map_or("", String::as_str);
                    Err(ApiError::NotServed(format!(
                        "{path}.nearest.{}",
                        short(kind)
                    )))
                }
                target => decode_target(target, &fields.at("nearest")),
            }
        }
        other => Err(wrong_type(path, other, "a vector, a point ID or an object")),
    }
}

pub(crate) fn decode_vector(elements: &[Value], path: &str) -> Result<Vec<f32>> {
    let number = |(at, element): (usize, &Value)| match element {
        Value::Array(_) => Err(ApiError::NotServed(format!(
            "{path} as a list of vectors (multivectors)"
        ))),
        Value::Number(number) => {
            let narrow = number.as_f64().map_or(f32::NAN, |wide| wide as f32);
            if narrow.is_finite() {
                return Ok(narrow);
            }
            Err(not_finite(path, at, &number.to_string()))
        }
        other => Err(not_finite(path, at, &other.to_string())),
    };
    elements.iter().enumerate().map(number).collect()
}

/// The error of an element of a vector that is no number or none of 32 bits.
pub(crate) fn not_finite(path: &str, at: usize, found: &str) -> ApiError {
    ApiError::Wrong(format!(
        "{path}: element {at} is {}, which is not a finite 32-bit float",
        short(found)
    ))
}

/// Points found without a query, with the score and version that Qdrant gives them.
#[must_use]
pub fn unscored(records: Vec<Record>, skip: usize) -> Vec<ScoredPoint> {
    records
        .into_iter()
        .skip(skip)
        .map(|point| ScoredPoint {
            point,
            version: 0,
            score: UNSCORED,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use flatwater_segment::PointId;
    use serde_json::json;

    fn decode(body: Value) -> Result<Query> {
        decode_query(body.to_string().as_bytes())
    }

    fn search(body: Value) -> SearchRequest {
        match decode(body).unwrap() {
            Query::Nearest(request) => request,
            Query::ById { .. } => panic!("no query was read"),
        }
    }

    fn refusal(body: Value) -> (u16, String) {
        let refusal = crate::status::refusal(&decode(body).unwrap_err());
        (refusal.code, refusal.text)
    }

    #[test]
    fn a_vector_alone_gets_qdrants_defaults() {
        let request = search(json!({"query": [1, 0.5]}));
        assert_eq!(request.target, QueryTarget::Vector(vec![1.0, 0.5]));
        assert_eq!(
            (request.limit, request.offset, request.using.as_str()),
            (10, 0, "")
        );
        assert_eq!(
            (request.hnsw_ef, request.exact, request.score_threshold),
            (None, false, None)
        );
        assert_eq!(request.with_payload, PayloadSelector::None);
        assert_eq!(request.with_vector, VectorSelector::None);
        assert!(request.filter.is_none());
    }

    #[test]
    fn every_field_is_read() {
        let request = search(json!({
            "query": {"nearest": 5}, "using": "img", "limit": 3, "offset": 2,
            "score_threshold": -0.5, "params": {"hnsw_ef": 128, "exact": true,
            "quantization": {"rescore": true}, "indexed_only": false, "acorn": {"enable": false}},
            "filter": {"must": [{"has_id": [1]}]}, "with_payload": true, "with_vector": true,
            "prefetch": [], "shard_key": null,
        }));
        assert_eq!(request.target, QueryTarget::Point(PointId::Num(5)));
        assert_eq!(
            (request.limit, request.offset, request.using.as_str()),
            (3, 2, "img")
        );
        assert_eq!((request.hnsw_ef, request.exact), (Some(128), true));
        assert_eq!(request.score_threshold, Some(-0.5));
        assert_eq!(request.filter.map(|filter| filter.must.len()), Some(1));
    }

    #[test]
    fn huge_numbers_are_taken() {
        let huge = u64::MAX;
        let request = search(json!({
            "query": [1], "limit": huge, "offset": huge, "params": {"hnsw_ef": huge}
        }));
        assert_eq!(
            (request.limit, request.offset, request.hnsw_ef),
            (usize::MAX, usize::MAX, Some(usize::MAX))
        );
        match decode(json!({"limit": huge, "offset": huge})).unwrap() {
            Query::ById { walk, skip } => assert_eq!((walk.limit, skip), (usize::MAX, usize::MAX)),
            Query::Nearest(_) => panic!("a query was read"),
        }
    }

    #[test]
    fn points_without_a_query_have_version_0_and_score_1() {
        let record = |n| Record {
            id: PointId::Num(n),
            payload: None,
            vectors: None,
            order_value: None,
        };
        let points = unscored(vec![record(1), record(2)], 1);
        assert_eq!(
            points,
            vec![ScoredPoint {
                point: record(2),
                version: 0,
                score: 1.0
            }]
        );
    }

    #[test]
    fn what_is_not_served_yet_is_named() {
        for kind in QUERIES_NOT_SERVED {
            let (code, text) = refusal(json!({"query": {kind: [1]}}));
            assert_eq!(code, 400);
            assert!(
                text.contains(&format!("`query.{kind}` is not served yet")),
                "{text}"
            );
        }
        for (body, field) in [
            (
                json!({"query": [1], "prefetch": {"query": [1]}}),
                "prefetch",
            ),
            (
                json!({"query": [1], "lookup_from": {"collection": "x"}}),
                "lookup_from",
            ),
            (json!({"query": [1], "shard_key": "x"}), "shard_key"),
            (
                json!({"query": [1], "params": {"indexed_only": true}}),
                "params.indexed_only",
            ),
            (
                json!({"query": [1], "params": {"acorn": {"enable": true}}}),
                "params.acorn.enable",
            ),
            (
                json!({"query": {"nearest": [1], "mmr": {"diversity": 0.5}}}),
                "query.mmr",
            ),
            (
                json!({"query": [[1, 2]]}),
                "query as a list of vectors (multivectors)",
            ),
            (
                json!({"query": {"nearest": {"text": "x", "model": "m"}}}),
                "query.nearest.model",
            ),
        ] {
            let (code, text) = refusal(body);
            assert_eq!(code, 400);
            assert!(
                text.contains(&format!("`{field}` is not served yet")),
                "{text}"
            );
        }
    }

    #[test]
    fn bad_values_are_refused() {
        assert_eq!(refusal(json!({"query": [1], "limit": 0})).0, 422);
        for bad in [
            json!({"query": true}),
            json!({"query": {}}),
            json!({"query": "abc"}),
            json!({"query": -5}),
            json!({"query": [1], "limit": -1}),
            json!({"query": [1], "offset": 1.5}),
            json!({"query": [1], "params": {"exact": 1}}),
            json!({"query": [1], "score_threshold": 1e39}),
        ] {
            assert_eq!(refusal(bad).0, 400);
        }
        let (code, text) = refusal(json!({"query": [1, 1e39]}));
        assert_eq!(code, 400);
        assert!(
            text.contains("query: element 1 is 1e39") || text.contains("query: element 1 is 1e+39"),
            "{text}"
        );
        let (_, text) = refusal(json!({"query": [null]}));
        assert!(text.contains("query: element 0 is null"), "{text}");
    }
}
