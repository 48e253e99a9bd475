//! Payload values. JSON has one kind of number, the proto two: what was an integer comes back as one
//! if it fits 64 bits with a sign, else as a double, as in Qdrant.

use std::collections::HashMap;

use flatwater_segment::payload::Payload;
use qdrant_client::qdrant;
use qdrant_client::qdrant::value::Kind;
use serde_json::{Value, json};

use super::shape::number;
use crate::error::Result;

/// Reads an object; `path` names it in the errors.
///
/// # Errors
/// A number that JSON cannot write: NaN or an infinity.
pub(super) fn decode_map(map: HashMap<String, qdrant::Value>, path: &str) -> Result<Payload> {
    map.into_iter()
        .map(|(key, value)| {
            let value = decode(value, path)?;
            Ok((key, value))
        })
        .collect()
}

/// The reader of messages stops at 100 levels, which bounds the recursion here.
fn decode(value: qdrant::Value, path: &str) -> Result<Value> {
    Ok(match value.kind {
        None | Some(Kind::NullValue(_)) => Value::Null,
        Some(Kind::DoubleValue(double)) => number(path, double)?,
        Some(Kind::IntegerValue(integer)) => json!(integer),
        Some(Kind::StringValue(text)) => Value::String(text),
        Some(Kind::BoolValue(flag)) => Value::Bool(flag),
        Some(Kind::StructValue(inner)) => Value::Object(decode_map(inner.fields, path)?),
        Some(Kind::ListValue(list)) => list
            .values
            .into_iter()
            .map(|value| decode(value, path))
            .collect::<Result<_>>()?,
    })
}

/// An object on its way out.
#[must_use]
pub fn encode_map(map: Payload) -> HashMap<String, qdrant::Value> {
    map.into_iter()
        .map(|(key, value)| (key, encode(value)))
        .collect()
}

fn encode(value: Value) -> qdrant::Value {
    let kind = match value {
        Value::Null => Kind::NullValue(0),
        Value::Bool(flag) => Kind::BoolValue(flag),
        Value::Number(number) => match number.as_i64() {
            Some(integer) => Kind::IntegerValue(integer),
            None => Kind::DoubleValue(number.as_f64().unwrap_or_default()),
        },
        Value::String(text) => Kind::StringValue(text),
        Value::Array(values) => Kind::ListValue(qdrant::ListValue {
            values: values.into_iter().map(encode).collect(),
        }),
        Value::Object(map) => Kind::StructValue(qdrant::Struct {
            fields: encode_map(map),
        }),
    };
    qdrant::Value { kind: Some(kind) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(value: Value) -> Payload {
        match value {
            Value::Object(map) => map,
            other => panic!("not an object: {other}"),
        }
    }

    #[test]
    fn every_kind_of_value_comes_back_as_it_was() {
        let payload = object(json!({
            "null": null, "bool": [true, false], "text": "x", "empty": {}, "list": [],
            "integers": [0, -1, i64::MIN, i64::MAX], "doubles": [0.5, -1e300, 1.0],
            "deep": {"a": [{"b": [[1, "2", null]]}]},
        }));
        let back = decode_map(encode_map(payload.clone()), "payload").unwrap();
        assert_eq!(back, payload);
        assert!(back["doubles"][2].is_f64(), "1.0 is not the integer 1");
    }

    #[test]
    fn an_integer_past_64_bits_with_a_sign_becomes_a_double() {
        let sent = encode_map(object(json!({ "n": u64::MAX })));
        assert_eq!(
            sent["n"].kind,
            Some(Kind::DoubleValue(18_446_744_073_709_551_615.0))
        );
    }

    #[test]
    fn what_json_cannot_write_is_refused() {
        for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            let value = qdrant::Value {
                kind: Some(Kind::DoubleValue(bad)),
            };
            let list = qdrant::Value {
                kind: Some(Kind::ListValue(qdrant::ListValue {
                    values: vec![value],
                })),
            };
            let text = decode_map(HashMap::from([("x".to_owned(), list)]), "payload")
                .unwrap_err()
                .to_string();
            assert!(
                text.contains("payload") && text.contains("not a finite number"),
                "{text}"
            );
        }
    }
}
