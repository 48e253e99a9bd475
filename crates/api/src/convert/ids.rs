//! Point ids: an unsigned integer or a UUID in any of its spellings.

use std::fmt;

use flatwater_segment::PointId;
use serde::de::{Deserialize, Deserializer, Error, Visitor};
use serde::ser::{Serialize, Serializer};
use serde_json::Value;
use uuid::Uuid;

use crate::error::{ApiError, Result};
use crate::fields::short;

/// An id as it stands in JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WireId(pub PointId);

fn fault(value: impl fmt::Display) -> String {
    format!(
        "value {} is not a valid point ID, \
         valid values are either an unsigned integer or a UUID",
        short(&value.to_string())
    )
}

fn parse_uuid(text: &str) -> Option<PointId> {
    Uuid::try_parse(text)
        .ok()
        .map(|uuid| PointId::Uuid(uuid.as_u128()))
}

/// Reads an id from the path of a URL, where an integer has no quotes to tell it from a UUID.
///
/// # Errors
/// Neither an unsigned integer nor a UUID.
pub fn decode_path_id(text: &str) -> Result<PointId> {
    // `parse` alone would take a leading `+`.
    let number = text
        .bytes()
        .all(|b| b.is_ascii_digit())
        .then(|| text.parse().ok())
        .flatten();
    number
        .map(PointId::Num)
        .or_else(|| parse_uuid(text))
        .ok_or_else(|| ApiError::Wrong(fault(text)))
}

/// Reads an id from a JSON value; `path` names the field in the error.
pub(crate) fn decode_id(value: &Value, path: &str) -> Result<PointId> {
    let id = match value {
        Value::Number(number) => number.as_u64().map(PointId::Num),
        Value::String(text) => parse_uuid(text),
        _ => None,
    };
    id.ok_or_else(|| ApiError::Format(format!("{path}: {}", fault(value))))
}

/// Reads a UUID that stands at `path`.
pub(crate) fn decode_uuid(text: &str, path: &str) -> Result<PointId> {
    parse_uuid(text).ok_or_else(|| ApiError::Format(format!("{path}: {}", fault(text))))
}

/// Reads a list of ids.
pub(crate) fn decode_ids(values: &[Value], path: &str) -> Result<Vec<PointId>> {
    values
        .iter()
        .enumerate()
        .map(|(i, value)| decode_id(value, &format!("{path}[{i}]")))
        .collect()
}

impl Serialize for WireId {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        match self.0 {
            PointId::Num(number) => serializer.serialize_u64(number),
            PointId::Uuid(uuid) => serializer.collect_str(&Uuid::from_u128(uuid)),
        }
    }
}

impl<'de> Deserialize<'de> for WireId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        deserializer.deserialize_any(IdVisitor)
    }
}

struct IdVisitor;

impl Visitor<'_> for IdVisitor {
    type Value = WireId;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a point ID: an unsigned integer or a UUID")
    }

    fn visit_u64<E: Error>(self, number: u64) -> std::result::Result<WireId, E> {
        Ok(WireId(PointId::Num(number)))
    }

    fn visit_str<E: Error>(self, text: &str) -> std::result::Result<WireId, E> {
        parse_uuid(text)
            .map(WireId)
            .ok_or_else(|| E::custom(fault(text)))
    }

    fn visit_i64<E: Error>(self, number: i64) -> std::result::Result<WireId, E> {
        Err(E::custom(fault(number)))
    }

    fn visit_f64<E: Error>(self, number: f64) -> std::result::Result<WireId, E> {
        Err(E::custom(fault(number)))
    }

    fn visit_bool<E: Error>(self, value: bool) -> std::result::Result<WireId, E> {
        Err(E::custom(fault(value)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const UUID: u128 = 0x550e_8400_e29b_41d4_a716_4466_5544_0000;

    #[test]
    fn every_spelling_of_a_uuid_is_the_same_id_and_goes_out_hyphenated() {
        for text in [
            "550e8400-e29b-41d4-a716-446655440000",
            "550e8400e29b41d4a716446655440000",
            "urn:uuid:550e8400-e29b-41d4-a716-446655440000",
            "550E8400-E29B-41D4-A716-446655440000",
        ] {
            let id: WireId = serde_json::from_value(json!(text)).unwrap();
            assert_eq!(id.0, PointId::Uuid(UUID));
            assert_eq!(decode_id(&json!(text), "id").unwrap(), PointId::Uuid(UUID));
            assert_eq!(decode_path_id(text).unwrap(), PointId::Uuid(UUID));
        }
        assert_eq!(
            serde_json::to_value(WireId(PointId::Uuid(UUID))).unwrap(),
            json!("550e8400-e29b-41d4-a716-446655440000")
        );
    }

    #[test]
    fn integers_go_both_ways_up_to_the_largest() {
        let id: WireId = serde_json::from_str("18446744073709551615").unwrap();
        assert_eq!(id.0, PointId::Num(u64::MAX));
        assert_eq!(serde_json::to_string(&id).unwrap(), "18446744073709551615");
        assert_eq!(
            decode_path_id("18446744073709551615").unwrap(),
            PointId::Num(u64::MAX)
        );
    }

    #[test]
    fn anything_else_is_refused_with_the_value_in_the_text() {
        for (value, shown) in [
            (json!(-1), "-1"),
            (json!(1.5), "1.5"),
            (json!("abc"), "abc"),
            (json!("7"), "7"),
            (json!(true), "true"),
        ] {
            let text = decode_id(&value, "points[0]").unwrap_err().to_string();
            assert!(text.contains("points[0]") && text.contains(shown), "{text}");
            assert!(text.contains("is not a valid point ID"), "{text}");
            let typed = serde_json::from_value::<WireId>(value)
                .unwrap_err()
                .to_string();
            assert!(
                typed.contains(&format!("value {shown} is not a valid")),
                "{typed}"
            );
        }
        for text in ["", "abc", "-1", "1.5", "18446744073709551616"] {
            assert!(decode_path_id(text).is_err(), "{text}");
        }
    }
}
