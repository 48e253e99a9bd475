//! Bodies that hold several requests: each part is the body of the single request, and is read as such.

use flatwater_engine::collection::update::{Update, UpdateResult};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::edits::{
    decode_clear_payload, decode_delete_payload, decode_delete_vectors, decode_overwrite_payload,
    decode_update_vectors,
};
use super::points::{decode_delete, decode_set_payload, update_value};
use super::query::{Query, decode_query};
use super::search::decode_search;
use super::text;
use super::upsert::decode_upsert;
use crate::body;
use crate::error::{ApiError, Result};

/// Operations that a batch may hold.
const OPERATIONS: &str = "`upsert`, `delete`, `set_payload`, `overwrite_payload`, `delete_payload`, \
                          `clear_payload`, `update_vectors`, `delete_vectors`";

#[derive(Deserialize)]
struct Operations<'a> {
    #[serde(borrow)]
    operations: Vec<std::collections::BTreeMap<String, &'a RawValue>>,
}

#[derive(Deserialize)]
struct Searches<'a> {
    #[serde(borrow)]
    searches: Vec<&'a RawValue>,
}

fn read<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T> {
    body::depth(bytes)?;
    serde_json::from_slice(bytes).map_err(|error| ApiError::Format(error.to_string()))
}

/// Reads the body of `POST /collections/{c}/points/batch`: the updates, in order. Nothing is applied
/// if one of them cannot be read.
///
/// # Errors
/// Those of the single requests, with the place of the operation; an unknown operation.
pub fn decode_updates(bytes: &[u8]) -> Result<Vec<Update>> {
    let operations = read::<Operations<'_>>(bytes)?.operations;
    let updates = operations.iter().enumerate().map(|(at, operation)| {
        let mut parts = operation.iter();
        let (Some((name, part)), None) = (parts.next(), parts.next()) else {
            return Err(ApiError::Format(format!(
                "operations[{at}]: expected an object with one of {OPERATIONS}"
            )));
        };
        let part = part.get().as_bytes();
        let update = match name.as_str() {
            "upsert" => decode_upsert(part).map(Update::Upsert),
            "delete" => decode_delete(part),
            "set_payload" => decode_set_payload(part),
            "overwrite_payload" => decode_overwrite_payload(part),
            "delete_payload" => decode_delete_payload(part),
            "clear_payload" => decode_clear_payload(part),
            "update_vectors" => decode_update_vectors(part),
            "delete_vectors" => decode_delete_vectors(part),
            other => {
                let other = crate::fields::short(other);
                return Err(ApiError::Format(format!(
                    "operations[{at}]: unknown operation `{other}`, expected one of {OPERATIONS}"
                )));
            }
        };
        update.map_err(|error| error.within(&format!("operations[{at}].{name}")))
    });
    updates.collect()
}

/// Reads the body of `POST /collections/{c}/points/query/batch`.
///
/// # Errors
/// Those of the single query, with its place.
pub fn decode_queries(bytes: &[u8]) -> Result<Vec<Query>> {
    decode_each(bytes, decode_query)
}

/// Reads the body of `POST /collections/{c}/points/search/batch`.
///
/// # Errors
/// Those of the single search, with its place.
pub fn decode_searches(bytes: &[u8]) -> Result<Vec<Query>> {
    decode_each(bytes, decode_search)
}

fn decode_each(bytes: &[u8], decode: fn(&[u8]) -> Result<Query>) -> Result<Vec<Query>> {
    let searches = read::<Searches<'_>>(bytes)?.searches;
    let queries = searches.iter().enumerate().map(|(at, search)| {
        let query = decode(search.get().as_bytes());
        query.map_err(|error| error.within(&format!("searches[{at}]")))
    });
    queries.collect()
}

/// JSON of the acknowledgements of a batch, in its order.
#[must_use]
pub fn encode_updates(results: &[Option<UpdateResult>]) -> Vec<u8> {
    text(&results.iter().copied().map(update_value).collect())
}

/// JSON of the answers of a batch of queries or searches, each already JSON.
#[must_use]
pub fn encode_answers(answers: &[Vec<u8>]) -> Vec<u8> {
    let mut joined = vec![b'['];
    joined.extend(answers.join(&b','));
    joined.push(b']');
    joined
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn bytes(value: &Value) -> Vec<u8> {
        value.to_string().into_bytes()
    }

    #[test]
    fn every_operation_is_known_and_order_is_kept() {
        let body = json!({"operations": [
            {"upsert": {"points": [{"id": 1, "vector": [0.1]}]}},
            {"delete": {"points": [1]}},
            {"set_payload": {"payload": {"a": 1}, "points": [1]}},
            {"overwrite_payload": {"payload": {"a": 1}, "points": [1]}},
            {"delete_payload": {"keys": ["a"], "points": [1]}},
            {"clear_payload": {"points": [1]}},
            {"update_vectors": {"points": [{"id": 1, "vector": [0.1]}]}},
            {"delete_vectors": {"vector": [""], "points": [1]}},
        ]});
        let updates = decode_updates(&bytes(&body)).unwrap();
        assert_eq!(updates.len(), 8);
        assert!(matches!(updates[0], Update::Upsert(_)));
        assert!(matches!(updates[7], Update::DeleteVectors { .. }));
        assert!(decode_updates(b"{\"operations\": []}").unwrap().is_empty());
    }

    #[test]
    fn a_fault_names_its_place() {
        for (body, place) in [
            (
                json!({"operations": [{"delete": {"points": [1]}}, {"delete": {}}]}),
                "operations[1].delete",
            ),
            (json!({"operations": [{"truncate": {}}]}), "operations[0]"),
            (json!({"operations": [{}]}), "operations[0]"),
        ] {
            let error = decode_updates(&bytes(&body)).unwrap_err();
            let refusal = crate::status::refusal(&error);
            assert_eq!(refusal.code, 400);
            assert!(refusal.text.contains(place), "{}", refusal.text);
        }
        let body = json!({"searches": [{"query": [1.0]}, {"query": [1.0], "limit": 0}]});
        let refusal = crate::status::refusal(&decode_queries(&bytes(&body)).unwrap_err());
        assert_eq!(refusal.code, 422);
        assert!(refusal.text.contains("searches[1]"), "{}", refusal.text);
    }

    #[test]
    fn answers_are_joined_in_order() {
        assert_eq!(encode_answers(&[]), b"[]");
        assert_eq!(
            encode_answers(&[b"1".to_vec(), b"[2]".to_vec()]),
            b"[1,[2]]"
        );
        let shown = encode_updates(&[None]);
        assert_eq!(shown, br#"[{"operation_id":null,"status":"wait_timeout"}]"#);
    }
}
