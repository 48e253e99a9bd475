//! `order_by`: a payload path, or an object with a direction and a value to start from.

use flatwater_engine::query::request::{Direction, Order, OrderBy, OrderValue};
use serde_json::{Value, json};

use super::filter::decode_datetime;
use crate::error::Result;
use crate::fields::{Fields, wrong_type};
use crate::validate;

const NAME: &str = "order_by";

/// Reads `order_by`, if it is there.
pub(crate) fn decode_order_by(fields: &Fields<'_>) -> Result<Option<OrderBy>> {
    match fields.value(NAME) {
        None => Ok(None),
        Some(Value::String(key)) => {
            validate::json_path(key)?;
            Ok(Some(OrderBy {
                key: key.clone(),
                order: Order::default(),
            }))
        }
        Some(value) => order_by(&Fields::of(value, fields.at(NAME))?).map(Some),
    }
}

fn order_by(fields: &Fields<'_>) -> Result<OrderBy> {
    fields.required("key")?;
    let key = fields.string("key")?.unwrap_or_default();
    validate::json_path(key)?;
    let direction = match fields.string("direction")? {
        None | Some("asc") => Direction::Ascending,
        Some("desc") => Direction::Descending,
        Some(other) => {
            let path = fields.at("direction");
            return Err(wrong_type(&path, &json!(other), "one of `asc`, `desc`"));
        }
    };
    Ok(OrderBy {
        key: key.to_owned(),
        order: Order {
            direction,
            start_from: start_from(fields)?,
        },
    })
}

/// A number, or a moment, which an order knows by its microseconds.
fn start_from(fields: &Fields<'_>) -> Result<Option<OrderValue>> {
    let path = fields.at("start_from");
    match fields.value("start_from") {
        None => Ok(None),
        Some(Value::String(text)) => {
            let moment = decode_datetime(text, &path)?;
            Ok(Some(OrderValue::Integer(moment.micros())))
        }
        Some(value) => {
            let integer = value.as_i64().map(OrderValue::Integer);
            let number = integer.or_else(|| value.as_f64().and_then(OrderValue::float));
            let number = number.ok_or_else(|| wrong_type(&path, value, "a number or a datetime"));
            number.map(Some)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(value: Value) -> Result<Option<OrderBy>> {
        let Value::Object(map) = json!({ "order_by": value }) else {
            panic!("not an object")
        };
        decode_order_by(&Fields::root(&map))
    }

    fn order(value: Value) -> Order {
        let order_by = decode(value).unwrap().unwrap();
        assert_eq!(order_by.key, "a.b");
        order_by.order
    }

    #[test]
    fn a_key_alone_is_the_short_form() {
        assert_eq!(decode(json!(null)).unwrap(), None);
        assert_eq!(order(json!("a.b")), Order::default());
        assert_eq!(order(json!({"key": "a.b"})), Order::default());
        let descending = order(json!({"key": "a.b", "direction": "desc", "start_from": null}));
        assert_eq!(descending.direction, Direction::Descending);
        assert_eq!(descending.start_from, None);
    }

    #[test]
    fn an_order_starts_from_a_number_or_a_moment() {
        for (start, expected) in [
            (json!(-3), OrderValue::Integer(-3)),
            (json!(i64::MAX), OrderValue::Integer(i64::MAX)),
            (json!(2.5), OrderValue::Float(2.5)),
            (
                json!(u64::MAX),
                OrderValue::Float(18_446_744_073_709_551_616.0),
            ),
            (
                json!("1970-01-01T00:00:02Z"),
                OrderValue::Integer(2_000_000),
            ),
        ] {
            let order = order(json!({"key": "a.b", "start_from": start}));
            assert_eq!(order.start_from, Some(expected));
        }
    }

    #[test]
    fn nonsense_is_refused_by_its_place() {
        for (bad, part) in [
            (json!(3), "order_by: invalid value: 3"),
            (json!("a b"), "Invalid json path"),
            (json!({}), "missing field `order_by.key`"),
            (
                json!({"key": "a", "direction": "up"}),
                "order_by.direction: invalid value",
            ),
            (
                json!({"key": "a", "start_from": "soon"}),
                "order_by.start_from: 'soon'",
            ),
            (
                json!({"key": "a", "start_from": [1]}),
                "order_by.start_from: invalid value",
            ),
        ] {
            let text = decode(bad).unwrap_err().to_string();
            assert!(text.contains(part), "{text}");
        }
    }
}
