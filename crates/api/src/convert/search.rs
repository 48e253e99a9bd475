//! The older form of a query: `POST /collections/{c}/points/search`.

use flatwater_engine::query::request::QueryTarget;
use serde_json::{Map, Value};

use super::query::{Query, decode_vector, query_of};
use crate::body;
use crate::error::{ApiError, Result};
use crate::fields::{Fields, wrong_type};

/// Reads the body of a search: `vector` is a list of numbers or `{"name": .., "vector": [..]}`, `limit`
/// must be given, the rest is as in a query.
///
/// # Errors
/// As [`super::query::decode_query`].
pub fn decode_search(bytes: &[u8]) -> Result<Query> {
    let mut map = body::object(bytes)?;
    let fields = Fields::root(&map);
    fields.required("limit")?;
    let (using, vector) = match fields.required("vector")? {
        Value::Array(elements) => (None, decode_vector(elements, "vector")?),
        named @ Value::Object(_) => {
            let named = Fields::of(named, "vector".to_owned())?;
            let name = named.required("name")?;
            let name = name
                .as_str()
                .ok_or_else(|| wrong_type("vector.name", name, "a string"))?;
            match named.required("vector")? {
                Value::Array(elements) => (
                    Some(name.to_owned()),
                    decode_vector(elements, "vector.vector")?,
                ),
                Value::Object(_) => {
                    return Err(ApiError::NotServed(
                        "vector.vector as a sparse vector".to_owned(),
                    ));
                }
                other => return Err(wrong_type("vector.vector", other, "an array of numbers")),
            }
        }
        other => {
            return Err(wrong_type(
                "vector",
                other,
                "an array of numbers or a named vector",
            ));
        }
    };
    search_of(&mut map, using, vector)
}

/// As [`decode_search`], from the fields of the body and its vector.
pub(crate) fn search_of(
    map: &mut Map<String, Value>,
    using: Option<String>,
    vector: Vec<f32>,
) -> Result<Query> {
    // What a query has and a search has not is no field of the body.
    for name in ["query", "using", "prefetch", "lookup_from"] {
        map.remove(name);
    }
    if let Some(using) = using {
        map.insert("using".to_owned(), Value::String(using));
    }
    query_of(map, || Ok(Some(QueryTarget::Vector(vector))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn decode(body: &Value) -> Result<Query> {
        decode_search(body.to_string().as_bytes())
    }

    #[test]
    fn a_vector_may_be_named() {
        for (vector, using) in [
            (json!([1, 2]), ""),
            (json!({"name": "img", "vector": [1, 2]}), "img"),
        ] {
            let body = json!({"vector": vector, "limit": 3, "offset": 1, "params": {"hnsw_ef": 9}});
            let Query::Nearest(request) = decode(&body).unwrap() else {
                panic!("no search was read");
            };
            assert_eq!(request.target, QueryTarget::Vector(vec![1.0, 2.0]));
            assert_eq!(
                (request.using.as_str(), request.limit, request.offset),
                (using, 3, 1)
            );
            assert_eq!(request.hnsw_ef, Some(9));
        }
    }

    #[test]
    fn vector_and_limit_must_be_there() {
        for (body, code) in [
            (json!({"vector": [1]}), 400),
            (json!({"limit": 3}), 400),
            (json!({"vector": "x", "limit": 3}), 400),
            (json!({"vector": [1], "limit": 0}), 422),
            (
                json!({"vector": {"name": "a", "vector": {"indices": [1], "values": [1]}}, "limit": 1}),
                400,
            ),
        ] {
            let refusal = crate::status::refusal(&decode(&body).unwrap_err());
            assert_eq!(refusal.code, code, "{body}");
        }
    }
}
