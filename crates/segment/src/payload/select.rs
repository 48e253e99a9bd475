//! Cutting a payload down to what a request wants to see.
//!
//! As in Qdrant: a selector names a part of the payload; parts of arrays are reached through `[]`
//! (`a[].b`, not `a.b`). Including keeps the frame around what was selected, so `a.b` of an `a`
//! without `b` is `{"a": {}}`, and a scalar that stands where a selector goes deeper is kept.
//! `[n]`, which Qdrant never finds here, selects the n-th element.

use serde_json::Value;

use super::Payload;
use super::path::{JsonPath, Step};

/// Only what the selectors name.
#[must_use]
pub fn include(payload: &Payload, selectors: &[JsonPath]) -> Payload {
    include_object(payload, &all_steps(selectors))
}

/// All but what the selectors name.
#[must_use]
pub fn exclude(payload: &Payload, selectors: &[JsonPath]) -> Payload {
    exclude_object(payload, &all_steps(selectors))
}

/// What is left of a selector at the value that is looked at.
type Rest<'s> = &'s [Step];

fn all_steps(selectors: &[JsonPath]) -> Vec<Rest<'_>> {
    selectors.iter().map(JsonPath::steps).collect()
}

/// The selectors that go on under `key`.
fn under_key<'s>(selectors: &[Rest<'s>], key: &str) -> Vec<Rest<'s>> {
    let next = |steps: &Rest<'s>| match steps {
        [Step::Key(name), rest @ ..] if name == key => Some(rest),
        _ => None,
    };
    selectors.iter().filter_map(next).collect()
}

/// The selectors that go on under the array element at `index`.
fn under_index<'s>(selectors: &[Rest<'s>], index: usize) -> Vec<Rest<'s>> {
    let next = |steps: &Rest<'s>| match steps {
        [Step::All, rest @ ..] => Some(rest),
        [Step::Index(at), rest @ ..] if *at == index => Some(rest),
        _ => None,
    };
    selectors.iter().filter_map(next).collect()
}

/// Whether a selector ends here, naming this value as a whole.
fn any_ends(selectors: &[Rest<'_>]) -> bool {
    selectors.iter().any(|steps| steps.is_empty())
}

fn include_object(object: &Payload, selectors: &[Rest<'_>]) -> Payload {
    let keep = |(key, value): (&String, &Value)| {
        Some((
            key.clone(),
            include_value(value, &under_key(selectors, key))?,
        ))
    };
    object.iter().filter_map(keep).collect()
}

fn include_value(value: &Value, selectors: &[Rest<'_>]) -> Option<Value> {
    if selectors.is_empty() {
        return None;
    }
    if any_ends(selectors) {
        return Some(value.clone());
    }
    Some(match value {
        Value::Object(object) => Value::Object(include_object(object, selectors)),
        Value::Array(items) => items
            .iter()
            .enumerate()
            .filter_map(|(at, item)| include_value(item, &under_index(selectors, at)))
            .collect(),
        scalar => scalar.clone(),
    })
}

fn exclude_object(object: &Payload, selectors: &[Rest<'_>]) -> Payload {
    let keep = |(key, value): (&String, &Value)| {
        Some((
            key.clone(),
            exclude_value(value, &under_key(selectors, key))?,
        ))
    };
    object.iter().filter_map(keep).collect()
}

fn exclude_value(value: &Value, selectors: &[Rest<'_>]) -> Option<Value> {
    if selectors.is_empty() {
        return Some(value.clone());
    }
    if any_ends(selectors) {
        return None;
    }
    Some(match value {
        Value::Object(object) => Value::Object(exclude_object(object, selectors)),
        Value::Array(items) => items
            .iter()
            .enumerate()
            .filter_map(|(at, item)| exclude_value(item, &under_index(selectors, at)))
            .collect(),
        scalar => scalar.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn payload() -> Payload {
        let value = json!({
            "a": {"b": [{"c": 1}, {"c": 2, "x": 0}, {"d": {"e": 3}}], "z": 9},
            "f": 3,
            "g": ["g0", "g1"],
            "tb_9.6.11": true,
        });
        value.as_object().unwrap().clone()
    }

    fn paths(texts: &[&str]) -> Vec<JsonPath> {
        texts
            .iter()
            .map(|text| JsonPath::parse(text).unwrap())
            .collect()
    }

    fn included(texts: &[&str]) -> Value {
        Value::Object(include(&payload(), &paths(texts)))
    }

    fn excluded(texts: &[&str]) -> Value {
        Value::Object(exclude(&payload(), &paths(texts)))
    }

    #[test]
    fn include_keeps_the_named_parts_and_the_frame_around_them() {
        assert_eq!(
            included(&["f", "\"tb_9.6.11\""]),
            json!({"f": 3, "tb_9.6.11": true})
        );
        assert_eq!(included(&["a.z"]), json!({"a": {"z": 9}}));
        assert_eq!(
            included(&["a.b[].c"]),
            json!({"a": {"b": [{"c": 1}, {"c": 2}, {}]}})
        );
        assert_eq!(included(&["a.missing"]), json!({"a": {}}));
        assert_eq!(
            included(&["a.b[1].x", "g[0]"]),
            json!({"a": {"b": [{"x": 0}]}, "g": ["g0"]})
        );
        assert_eq!(included(&["a.b.c"]), json!({"a": {"b": []}}));
        assert_eq!(included(&["f.deeper"]), json!({"f": 3}));
        assert_eq!(included(&[]), json!({}));
    }

    #[test]
    fn exclude_leaves_out_the_named_parts_alone() {
        assert_eq!(excluded(&["a", "g"]), json!({"f": 3, "tb_9.6.11": true}));
        assert_eq!(
            excluded(&["a.b[].c", "a.z", "g[1]", "f.deeper", "\"tb_9.6.11\""]),
            json!({"a": {"b": [{}, {"x": 0}, {"d": {"e": 3}}]}, "f": 3, "g": ["g0"]})
        );
        assert_eq!(Value::Object(payload()), excluded(&[]));
    }
}
