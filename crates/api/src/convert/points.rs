//! Bodies about points: which ones, and what to do with them.

use flatwater_engine::collection::update::{Selection, Update, UpdateResult, UpdateStatus};
use flatwater_engine::query::request::{PayloadSelector, ScrollRequest, VectorSelector};
use flatwater_segment::PointId;
use flatwater_segment::payload::filter::Filter;
use serde_json::{Map, Value, json};

use super::filter::decode_filter_field;
use super::ids::{decode_id, decode_ids};
use super::order::decode_order_by;
use super::payload::{decode_payload_selector, decode_vector_selector};
use super::text;
use crate::body;
use crate::error::{ApiError, Result};
use crate::fields::{Fields, Rules, wrong_type};
use crate::validate;

/// Points of a page of `scroll` when `limit` is not given, as in Qdrant.
const SCROLL_LIMIT_DEFAULT: usize = 10;

/// Points by id, with the parts to return.
#[derive(Clone, Debug, PartialEq)]
pub struct Retrieve {
    /// Which points.
    pub ids: Vec<PointId>,
    /// Payload to return.
    pub with_payload: PayloadSelector,
    /// Vectors to return.
    pub with_vector: VectorSelector,
}

/// Reads the body of `POST /collections/{c}/points`.
///
/// # Errors
/// Undecodable JSON or an invalid id (400).
pub fn decode_retrieve(bytes: &[u8]) -> Result<Retrieve> {
    retrieve_of(&body::object(bytes)?)
}

/// As [`decode_retrieve`], from the fields of the body.
pub(crate) fn retrieve_of(map: &Map<String, Value>) -> Result<Retrieve> {
    let fields = Fields::root(map);
    fields.refuse(&["shard_key"])?;
    fields.required("ids")?;
    let ids = fields.array("ids")?.map_or(&[][..], Vec::as_slice);
    Ok(Retrieve {
        ids: decode_ids(ids, "ids")?,
        with_payload: decode_payload_selector(&fields, PayloadSelector::All)?,
        with_vector: decode_vector_selector(&fields, VectorSelector::None)?,
    })
}

/// Reads the body of `POST /collections/{c}/points/delete`: `points` or `filter`.
///
/// # Errors
/// Undecodable JSON, an invalid id, both or none of the two (400).
pub fn decode_delete(bytes: &[u8]) -> Result<Update> {
    delete_of(&body::object(bytes)?)
}

/// As [`decode_delete`], from the fields of the body.
pub(crate) fn delete_of(map: &Map<String, Value>) -> Result<Update> {
    let fields = Fields::root(map);
    fields.refuse(&["shard_key"])?;
    Ok(Update::Delete(selection(&fields)?))
}

/// Reads the body of `POST /collections/{c}/points/payload`.
///
/// # Errors
/// Undecodable JSON, an invalid id or path, nesting over the limit, both or none of `points` and
/// `filter` (400).
pub fn decode_set_payload(bytes: &[u8]) -> Result<Update> {
    set_payload_of(&body::object(bytes)?)
}

/// As [`decode_set_payload`], from the fields of the body.
pub(crate) fn set_payload_of(map: &Map<String, Value>) -> Result<Update> {
    let fields = Fields::root(map);
    fields.refuse(&["shard_key"])?;
    let payload = match fields.required("payload")? {
        Value::Object(payload) => payload.clone(),
        other => return Err(wrong_type("payload", other, "an object")),
    };
    validate::payload_depth("payload", &payload)?;
    let key = fields.string("key")?.map(str::to_owned);
    if let Some(key) = &key {
        validate::json_path(key)?;
    }
    Ok(Update::SetPayload {
        selection: selection(&fields)?,
        payload,
        key,
    })
}

/// `points` or `filter`, exactly one: to guess which of two was meant could delete too much.
pub(crate) fn selection(fields: &Fields<'_>) -> Result<Selection> {
    let points = fields.array("points")?;
    match (points, decode_filter_field(fields, "filter")?) {
        (Some(ids), None) => Ok(Selection::Ids(decode_ids(ids, "points")?)),
        (None, Some(filter)) => Ok(Selection::Filter(filter)),
        (Some(_), Some(_)) => Err(ApiError::Wrong(
            "`points` and `filter` are both given; expected exactly one of them".to_owned(),
        )),
        (None, None) => Err(ApiError::Format(
            "expected one of `points` and `filter`".to_owned(),
        )),
    }
}

/// Reads the body of `POST /collections/{c}/points/scroll`.
///
/// # Errors
/// Undecodable JSON or an invalid id (400), `limit` 0 (422).
pub fn decode_scroll(bytes: &[u8]) -> Result<ScrollRequest> {
    scroll_of(&body::object(bytes)?)
}

/// As [`decode_scroll`], from the fields of the body.
pub(crate) fn scroll_of(map: &Map<String, Value>) -> Result<ScrollRequest> {
    let fields = Fields::root(map);
    fields.refuse(&["shard_key"])?;
    Ok(ScrollRequest {
        filter: decode_filter_field(&fields, "filter")?,
        limit: decode_limit(&fields, SCROLL_LIMIT_DEFAULT)?,
        offset: fields
            .value("offset")
            .map(|value| decode_id(value, "offset"))
            .transpose()?,
        order_by: decode_order_by(&fields)?,
        with_payload: decode_payload_selector(&fields, PayloadSelector::All)?,
        with_vector: decode_vector_selector(&fields, VectorSelector::None)?,
    })
}

/// Reads `limit`, at least 1 and as large as it likes: the engine allocates for what it finds.
pub(crate) fn decode_limit(fields: &Fields<'_>, default: usize) -> Result<usize> {
    let limit = fields.count("limit")?.unwrap_or(default);
    let mut rules = Rules::default();
    rules.at_least(&fields.at("limit"), limit, 1);
    rules.finish()?;
    Ok(limit)
}

/// Reads the body of `POST /collections/{c}/points/count`. Counts are always exact, which serves
/// `exact: false` too.
///
/// # Errors
/// Undecodable JSON (400).
pub fn decode_count(bytes: &[u8]) -> Result<Option<Filter>> {
    count_of(&body::object(bytes)?)
}

/// As [`decode_count`], from the fields of the body.
pub(crate) fn count_of(map: &Map<String, Value>) -> Result<Option<Filter>> {
    let fields = Fields::root(map);
    fields.refuse(&["shard_key"])?;
    fields.bool("exact")?;
    decode_filter_field(&fields, "filter")
}

/// JSON of a count.
#[must_use]
pub fn encode_count(count: u64) -> Vec<u8> {
    text(&json!({ "count": count }))
}

/// JSON of an acknowledgement; `None` = it did not arrive within the `timeout` of the request. The
/// update is accepted then, and its place in the order not known yet.
#[must_use]
pub fn encode_update(result: Option<UpdateResult>) -> Vec<u8> {
    text(&update_value(result))
}

/// As [`encode_update`], not written out yet.
pub(crate) fn update_value(result: Option<UpdateResult>) -> Value {
    let status = match result.map(|result| result.status) {
        None => "wait_timeout",
        Some(UpdateStatus::Acknowledged) => "acknowledged",
        Some(UpdateStatus::Completed) => "completed",
    };
    json!({ "operation_id": result.map(|result| result.seq), "status": status })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(value: Value) -> Vec<u8> {
        value.to_string().into_bytes()
    }

    fn refusal<T: std::fmt::Debug>(result: Result<T>) -> (u16, String) {
        let refusal = crate::status::refusal(&result.unwrap_err());
        (refusal.code, refusal.text)
    }

    #[test]
    fn retrieve_returns_payload_by_default_and_no_vectors() {
        let request = decode_retrieve(&bytes(json!({"ids": [2, 1]}))).unwrap();
        assert_eq!(request.ids, vec![PointId::Num(2), PointId::Num(1)]);
        assert_eq!(request.with_payload, PayloadSelector::All);
        assert_eq!(request.with_vector, VectorSelector::None);
        assert_eq!(refusal(decode_retrieve(b"{}")).0, 400);
        assert_eq!(
            refusal(decode_retrieve(&bytes(
                json!({"ids": [1], "shard_key": "a"})
            )))
            .0,
            400
        );
    }

    #[test]
    fn delete_takes_ids_or_a_filter() {
        let ids = decode_delete(&bytes(json!({"points": [1]}))).unwrap();
        assert_eq!(ids, Update::Delete(Selection::Ids(vec![PointId::Num(1)])));
        let all = decode_delete(&bytes(json!({"filter": {}}))).unwrap();
        assert_eq!(all, Update::Delete(Selection::Filter(Filter::default())));
        for bad in [
            json!({}),
            json!({"points": [1], "filter": {}}),
            json!({"points": ["x"]}),
        ] {
            assert_eq!(refusal(decode_delete(&bytes(bad))).0, 400);
        }
    }

    #[test]
    fn set_payload_takes_a_key_and_needs_a_payload() {
        let update = decode_set_payload(&bytes(json!({
            "payload": {"x": 1}, "points": [3], "key": "a.b"
        })))
        .unwrap();
        let Update::SetPayload {
            selection,
            payload,
            key,
        } = update
        else {
            panic!("another update: {update:?}")
        };
        assert_eq!(selection, Selection::Ids(vec![PointId::Num(3)]));
        assert_eq!(Value::Object(payload), json!({"x": 1}));
        assert_eq!(key.as_deref(), Some("a.b"));
        for bad in [
            json!({"points": [1]}),
            json!({"payload": {}}),
            json!({"payload": [], "points": [1]}),
            json!({"payload": {}, "points": [1], "key": "a b"}),
        ] {
            assert_eq!(refusal(decode_set_payload(&bytes(bad))).0, 400);
        }
    }

    #[test]
    fn scroll_has_qdrants_defaults_and_any_limit() {
        let request = decode_scroll(b"{}").unwrap();
        assert_eq!((request.limit, request.offset), (10, None));
        assert_eq!(request.with_payload, PayloadSelector::All);
        let request = decode_scroll(&bytes(json!({"limit": u64::MAX, "offset": 7}))).unwrap();
        assert_eq!(
            (request.limit, request.offset),
            (usize::MAX, Some(PointId::Num(7)))
        );
        assert_eq!(
            refusal(decode_scroll(&bytes(json!({"limit": 0})))),
            (
                422,
                "Validation error in JSON body: [limit: value 0 invalid, must be 1 or larger]"
                    .to_owned()
            )
        );
        assert_eq!(refusal(decode_scroll(&bytes(json!({"limit": -1})))).0, 400);
    }

    #[test]
    fn acknowledgements_have_qdrants_words() {
        let shown = |status| encode_update(Some(UpdateResult { seq: 9, status }));
        assert_eq!(
            shown(UpdateStatus::Acknowledged),
            br#"{"operation_id":9,"status":"acknowledged"}"#
        );
        assert_eq!(
            shown(UpdateStatus::Completed),
            br#"{"operation_id":9,"status":"completed"}"#
        );
        assert_eq!(
            encode_update(None),
            br#"{"operation_id":null,"status":"wait_timeout"}"#
        );
        assert_eq!(encode_count(3), br#"{"count":3}"#);
    }
}
