//! Bodies that change parts of points: their payload, their vectors.

use flatwater_engine::collection::update::{PointVectors, Update};
use serde_json::{Map, Value};

use super::points::selection;
use super::upsert::decode_points;
use crate::body;
use crate::error::{ApiError, Result};
use crate::fields::{Fields, Rules, wrong_type};
use crate::validate;

/// Reads the body of `PUT /collections/{c}/points/payload`.
///
/// # Errors
/// Undecodable JSON, an invalid id, nesting over the limit, both or none of `points` and `filter`, a
/// `key` (the whole payload is replaced): 400.
pub fn decode_overwrite_payload(bytes: &[u8]) -> Result<Update> {
    overwrite_payload_of(&body::object(bytes)?)
}

/// As [`decode_overwrite_payload`], from the fields of the body.
pub(crate) fn overwrite_payload_of(map: &Map<String, Value>) -> Result<Update> {
    let fields = Fields::root(map);
    fields.refuse(&["shard_key"])?;
    if fields.value("key").is_some() {
        return Err(ApiError::Wrong(
            "`key` does not go with replacing the whole payload; set the payload (POST) merges at a key"
                .to_owned(),
        ));
    }
    let payload = match fields.required("payload")? {
        Value::Object(payload) => payload.clone(),
        other => return Err(wrong_type("payload", other, "an object")),
    };
    validate::payload_depth("payload", &payload)?;
    Ok(Update::OverwritePayload {
        selection: selection(&fields)?,
        payload,
    })
}

/// Reads the body of `POST /collections/{c}/points/payload/delete`.
///
/// # Errors
/// Undecodable JSON, an invalid id or path, both or none of `points` and `filter` (400).
pub fn decode_delete_payload(bytes: &[u8]) -> Result<Update> {
    delete_payload_of(&body::object(bytes)?)
}

/// As [`decode_delete_payload`], from the fields of the body.
pub(crate) fn delete_payload_of(map: &Map<String, Value>) -> Result<Update> {
    let fields = Fields::root(map);
    fields.refuse(&["shard_key"])?;
    fields.required("keys")?;
    let keys = texts(&fields, "keys")?;
    for key in &keys {
        validate::json_path(key)?;
    }
    Ok(Update::DeletePayload {
        selection: selection(&fields)?,
        keys,
    })
}

/// Reads the body of `POST /collections/{c}/points/payload/clear`.
///
/// # Errors
/// Undecodable JSON, an invalid id, both or none of `points` and `filter` (400).
pub fn decode_clear_payload(bytes: &[u8]) -> Result<Update> {
    clear_payload_of(&body::object(bytes)?)
}

/// As [`decode_clear_payload`], from the fields of the body.
pub(crate) fn clear_payload_of(map: &Map<String, Value>) -> Result<Update> {
    let fields = Fields::root(map);
    fields.refuse(&["shard_key"])?;
    Ok(Update::ClearPayload(selection(&fields)?))
}

/// Reads the body of `POST /collections/{c}/points/vectors/delete`.
///
/// # Errors
/// Undecodable JSON, an invalid id, both or none of `points` and `filter` (400), no name (422).
pub fn decode_delete_vectors(bytes: &[u8]) -> Result<Update> {
    delete_vectors_of(&body::object(bytes)?)
}

/// As [`decode_delete_vectors`], from the fields of the body.
pub(crate) fn delete_vectors_of(map: &Map<String, Value>) -> Result<Update> {
    let fields = Fields::root(map);
    fields.refuse(&["shard_key"])?;
    fields.required("vector")?;
    let names = texts(&fields, "vector")?;
    let mut rules = Rules::default();
    if names.is_empty() {
        rules.broken("vector", "length 0 invalid, must be 1 or larger");
    }
    rules.finish()?;
    Ok(Update::DeleteVectors {
        selection: selection(&fields)?,
        names,
    })
}

/// Reads the body of `PUT /collections/{c}/points/vectors`.
///
/// # Errors
/// As [`super::upsert::decode_upsert`]; a payload, which is not changed here.
pub fn decode_update_vectors(bytes: &[u8]) -> Result<Update> {
    let points = decode_points(bytes, false)?;
    let vectors = points.into_iter().map(|point| {
        if point.payload.is_some() {
            return Err(ApiError::Wrong(format!(
                "point {}: `payload` cannot be changed together with vectors alone",
                point.id
            )));
        }
        Ok(PointVectors {
            id: point.id,
            vectors: point.vectors,
        })
    });
    Ok(Update::UpdateVectors(vectors.collect::<Result<_>>()?))
}

fn texts(fields: &Fields<'_>, name: &str) -> Result<Vec<String>> {
    let list = fields.array(name)?.map_or(&[][..], Vec::as_slice);
    let path = fields.at(name);
    list.iter()
        .map(|value| {
            let text = value.as_str();
            let text = text.ok_or_else(|| wrong_type(&path, value, "a string"))?;
            Ok(text.to_owned())
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use flatwater_engine::collection::update::Selection;
    use flatwater_segment::PointId;
    use serde_json::json;

    fn bytes(value: &Value) -> Vec<u8> {
        value.to_string().into_bytes()
    }

    fn code(result: Result<Update>) -> u16 {
        crate::status::refusal(&result.unwrap_err()).code
    }

    #[test]
    fn each_change_is_read_as_it_is_meant() {
        let ids = || Selection::Ids(vec![PointId::Num(1)]);
        let body = json!({"payload": {"a": 1}, "points": [1]});
        let Update::OverwritePayload { selection, payload } =
            decode_overwrite_payload(&bytes(&body)).unwrap()
        else {
            panic!("another update");
        };
        assert_eq!(
            (selection, Value::Object(payload)),
            (ids(), json!({"a": 1}))
        );
        let body = json!({"keys": ["a", "b[].c"], "points": [1]});
        assert_eq!(
            decode_delete_payload(&bytes(&body)).unwrap(),
            Update::DeletePayload {
                selection: ids(),
                keys: vec!["a".to_owned(), "b[].c".to_owned()]
            }
        );
        assert_eq!(
            decode_clear_payload(&bytes(&json!({"points": [1]}))).unwrap(),
            Update::ClearPayload(ids())
        );
        let body = json!({"vector": ["", "image"], "points": [1]});
        assert_eq!(
            decode_delete_vectors(&bytes(&body)).unwrap(),
            Update::DeleteVectors {
                selection: ids(),
                names: vec![String::new(), "image".to_owned()]
            }
        );
        let body = json!({"points": [{"id": 1, "vector": {"image": [1, 2]}}]});
        assert_eq!(
            decode_update_vectors(&bytes(&body)).unwrap(),
            Update::UpdateVectors(vec![PointVectors {
                id: PointId::Num(1),
                vectors: vec![("image".to_owned(), vec![1.0, 2.0])]
            }])
        );
    }

    #[test]
    fn what_is_missing_or_too_much_is_refused() {
        let refused = [
            code(decode_overwrite_payload(&bytes(&json!({"points": [1]})))),
            code(decode_overwrite_payload(&bytes(
                &json!({"payload": {}, "points": [1], "key": "a"}),
            ))),
            code(decode_delete_payload(&bytes(&json!({"points": [1]})))),
            code(decode_delete_payload(&bytes(
                &json!({"keys": ["a b"], "points": [1]}),
            ))),
            code(decode_clear_payload(b"{}")),
            code(decode_update_vectors(&bytes(
                &json!({"points": [{"id": 1, "vector": [1], "payload": {}}]}),
            ))),
            code(decode_update_vectors(&bytes(
                &json!({"batch": {"ids": [1], "vectors": [[1]]}}),
            ))),
        ];
        assert_eq!(refused, [400; 7]);
        let none = json!({"vector": [], "points": [1]});
        assert_eq!(code(decode_delete_vectors(&bytes(&none))), 422);
    }
}
