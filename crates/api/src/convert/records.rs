//! Points on their way out.

use flatwater_engine::config::collection::UNNAMED;
use flatwater_engine::query::request::{OrderValue, Record, ScoredPoint, ScrollPage};
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

use super::ids::WireId;
use crate::error::{ApiError, Result};

struct WireRecord<'a>(&'a Record);
struct WireScored<'a>(&'a ScoredPoint);
struct WireVectors<'a>(&'a [(String, Vec<f32>)]);

/// The unnamed vector alone is an array, anything else an object by name.
impl Serialize for WireVectors<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        match self.0 {
            [(name, vector)] if name == UNNAMED => vector.serialize(serializer),
            named => serializer.collect_map(named.iter().map(|(name, vector)| (name, vector))),
        }
    }
}

fn parts<M: SerializeMap>(record: &Record, map: &mut M) -> std::result::Result<(), M::Error> {
    if let Some(payload) = &record.payload {
        map.serialize_entry("payload", payload)?;
    }
    if let Some(vectors) = &record.vectors {
        map.serialize_entry("vector", &WireVectors(vectors))?;
    }
    Ok(())
}

impl Serialize for WireRecord<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("id", &WireId(self.0.id))?;
        parts(self.0, &mut map)?;
        match self.0.order_value {
            None => {}
            Some(OrderValue::Integer(value)) => map.serialize_entry("order_value", &value)?,
            Some(OrderValue::Float(value)) => map.serialize_entry("order_value", &value)?,
        }
        map.end()
    }
}

impl Serialize for WireScored<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("id", &WireId(self.0.point.id))?;
        map.serialize_entry("version", &self.0.version)?;
        map.serialize_entry("score", &finite(self.0.score))?;
        parts(&self.0.point, &mut map)?;
        map.end()
    }
}

/// Clients read a score as a number; JSON would turn anything not finite into null.
pub(crate) fn finite(score: f32) -> f32 {
    if score.is_nan() {
        0.0
    } else {
        score.clamp(f32::MIN, f32::MAX)
    }
}

fn json<T: Serialize>(value: &T) -> Result<Vec<u8>> {
    serde_json::to_vec(value).map_err(|_| ApiError::Internal("the answer could not be written"))
}

/// JSON of one point.
///
/// # Errors
/// Never for what the engine returns: a payload's keys are texts.
pub fn encode_record(record: &Record) -> Result<Vec<u8>> {
    json(&WireRecord(record))
}

/// JSON of a list of points.
///
/// # Errors
/// As [`encode_record`].
pub fn encode_records(records: &[Record]) -> Result<Vec<u8>> {
    json(&records.iter().map(WireRecord).collect::<Vec<_>>())
}

/// JSON of a page of `scroll`.
///
/// # Errors
/// As [`encode_record`].
pub fn encode_page(page: &ScrollPage) -> Result<Vec<u8>> {
    #[derive(Serialize)]
    struct Page<'a> {
        points: Vec<WireRecord<'a>>,
        next_page_offset: Option<WireId>,
    }
    json(&Page {
        points: page.points.iter().map(WireRecord).collect(),
        next_page_offset: page.next_offset.map(WireId),
    })
}

/// JSON of the answer of `search`.
///
/// # Errors
/// As [`encode_record`].
pub fn encode_scored_list(points: &[ScoredPoint]) -> Result<Vec<u8>> {
    json(&points.iter().map(WireScored).collect::<Vec<_>>())
}

/// JSON of the answer of `query`.
///
/// # Errors
/// As [`encode_record`].
pub fn encode_scored(points: &[ScoredPoint]) -> Result<Vec<u8>> {
    #[derive(Serialize)]
    struct Points<'a> {
        points: Vec<WireScored<'a>>,
    }
    json(&Points {
        points: points.iter().map(WireScored).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use flatwater_segment::PointId;
    use serde_json::{Value, json};

    fn record(vectors: Option<Vec<(String, Vec<f32>)>>) -> Record {
        let Value::Object(payload) = json!({"a": [1, "x"]}) else {
            panic!("not an object")
        };
        Record {
            id: PointId::Num(7),
            payload: Some(payload),
            vectors,
            order_value: None,
        }
    }

    fn value(bytes: Result<Vec<u8>>) -> Value {
        serde_json::from_slice(&bytes.unwrap()).unwrap()
    }

    #[test]
    fn parts_that_were_not_asked_for_are_absent() {
        let bare = Record {
            id: PointId::Uuid(1),
            payload: None,
            vectors: None,
            order_value: None,
        };
        assert_eq!(
            value(encode_record(&bare)),
            json!({"id": "00000000-0000-0000-0000-000000000001"})
        );
    }

    #[test]
    fn the_unnamed_vector_is_an_array_and_named_ones_an_object() {
        let unnamed = record(Some(vec![(String::new(), vec![0.5, -1.0])]));
        assert_eq!(
            value(encode_record(&unnamed)),
            json!({"id": 7, "payload": {"a": [1, "x"]}, "vector": [0.5, -1.0]})
        );
        let named = record(Some(vec![("t".to_owned(), vec![0.5])]));
        assert_eq!(
            value(encode_records(&[named]))[0]["vector"],
            json!({"t": [0.5]})
        );
    }

    #[test]
    fn f32_goes_out_in_its_shortest_form() {
        let point = record(Some(vec![(String::new(), vec![0.1, 16_777_216.0])]));
        let text = String::from_utf8(encode_record(&point).unwrap()).unwrap();
        assert!(text.contains("[0.1,16777216.0]"), "{text}");
    }

    #[test]
    fn a_score_is_always_a_number() {
        let scored = |score| ScoredPoint {
            point: record(None),
            version: 3,
            score,
        };
        let points = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 0.25].map(scored);
        let answer = value(encode_scored(&points));
        for point in answer["points"].as_array().unwrap() {
            assert!(point["score"].is_number(), "{point}");
            assert_eq!(point["version"], json!(3));
        }
        assert_eq!(answer["points"][3]["score"], json!(0.25));
    }

    #[test]
    fn an_ordered_point_shows_the_value_that_put_it_in_its_place() {
        let shown = |order_value| {
            value(encode_record(&Record {
                payload: None,
                order_value,
                ..record(None)
            }))
        };
        assert_eq!(shown(None), json!({"id": 7}));
        let order_value = Some(OrderValue::Integer(i64::MAX));
        assert_eq!(
            shown(order_value),
            json!({"id": 7, "order_value": i64::MAX})
        );
        let order_value = OrderValue::float(5.0);
        assert_eq!(shown(order_value), json!({"id": 7, "order_value": 5.0}));
    }

    #[test]
    fn the_last_page_ends_with_null() {
        let page = ScrollPage {
            points: vec![record(None)],
            next_offset: None,
        };
        assert_eq!(value(encode_page(&page))["next_page_offset"], Value::Null);
        let page = ScrollPage {
            points: Vec::new(),
            next_offset: Some(PointId::Num(9)),
        };
        assert_eq!(
            value(encode_page(&page)),
            json!({"points": [], "next_page_offset": 9})
        );
    }
}
