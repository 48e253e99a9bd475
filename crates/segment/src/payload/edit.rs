//! Changes of a payload: merging new keys in and taking keys out.
//!
//! Every change here applies to any payload; what could be wrong with one ([`check_set`]) depends on
//! the request alone, so it is refused before it is logged.

use serde_json::Value;
use thiserror::Error;

use super::Payload;
use super::path::{JsonPath, Step};

/// Deepest nesting of a stored payload, the payload itself being level 1. JSON parsers, ours among
/// them, stop at 128 levels; the rest is for what payloads are wrapped in on disk and on the wire.
pub const PAYLOAD_DEPTH_MAX: usize = 120;

/// Why a payload change is refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum EditError {
    /// The payload would be nested too deep.
    #[error("Payload is nested {depth} levels deep, the limit is {limit}")]
    TooDeep {
        /// Its depth.
        depth: usize,
        /// The limit.
        limit: usize,
    },
}

/// Checks that a whole payload may be stored.
///
/// # Errors
/// [`EditError::TooDeep`] past [`PAYLOAD_DEPTH_MAX`].
pub fn check_payload(payload: &Payload) -> Result<(), EditError> {
    check_depth(object_depth(payload))
}

/// Checks that [`set`] with these arguments keeps any payload storable.
///
/// # Errors
/// [`EditError::TooDeep`] past [`PAYLOAD_DEPTH_MAX`].
pub fn check_set(patch: &Payload, key: Option<&JsonPath>) -> Result<(), EditError> {
    check_depth(object_depth(patch) + key.map_or(0, |path| path.steps().len()))
}

/// Merges the top-level keys of `patch` into `payload`, or into the object at `key`; a key whose new
/// value is null is taken out, as Qdrant does.
///
/// What is missing on the way to `key` is created, and what is of another kind is replaced: by an
/// object for a key, by an empty array for `[]` and `[n]`. Arrays are not extended.
pub fn set(payload: &mut Payload, patch: Payload, key: Option<&JsonPath>) {
    match key.map(|path| path.steps()) {
        None => merge(payload, patch),
        Some(steps) => set_in_object(payload, steps, patch),
    }
}

/// Takes out what the paths name, elements of arrays included. `a[]` empties the array `a`.
pub fn remove_keys(payload: &mut Payload, keys: &[JsonPath]) {
    for key in keys {
        match key.steps() {
            [Step::Key(key)] => {
                payload.remove(key);
            }
            [Step::Key(key), rest @ ..] => {
                if let Some(value) = payload.get_mut(key) {
                    remove_under(value, rest);
                }
            }
            _ => {}
        }
    }
}

fn check_depth(depth: usize) -> Result<(), EditError> {
    if depth > PAYLOAD_DEPTH_MAX {
        return Err(EditError::TooDeep {
            depth,
            limit: PAYLOAD_DEPTH_MAX,
        });
    }
    Ok(())
}

fn object_depth(object: &Payload) -> usize {
    1 + object.values().map(depth).max().unwrap_or(0)
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(object) => object_depth(object),
        _ => 0,
    }
}

fn merge(object: &mut Payload, patch: Payload) {
    for (key, value) in patch {
        if value.is_null() {
            object.remove(&key);
        } else {
            object.insert(key, value);
        }
    }
}

fn set_in_object(object: &mut Payload, steps: &[Step], patch: Payload) {
    match steps {
        [Step::Key(key), rest @ ..] => {
            set_in_value(
                object.entry(key.as_str()).or_insert(Value::Null),
                rest,
                patch,
            );
        }
        _ => merge(object, patch),
    }
}

fn set_in_value(value: &mut Value, steps: &[Step], patch: Payload) {
    match steps {
        [] | [Step::Key(_), ..] => {
            if !value.is_object() {
                *value = Value::Object(Payload::new());
            }
            if let Value::Object(object) = value {
                set_in_object(object, steps, patch);
            }
        }
        [Step::Index(index), rest @ ..] => {
            if let Some(item) = as_array(value).get_mut(*index) {
                set_in_value(item, rest, patch);
            }
        }
        [Step::All, rest @ ..] => {
            for item in as_array(value) {
                set_in_value(item, rest, patch.clone());
            }
        }
    }
}

/// The elements of the value, which becomes an empty array if it is none.
fn as_array(value: &mut Value) -> &mut [Value] {
    if !value.is_array() {
        *value = Value::Array(Vec::new());
    }
    match value {
        Value::Array(items) => items,
        _ => &mut [],
    }
}

fn remove_under(value: &mut Value, steps: &[Step]) {
    match (steps, value) {
        ([Step::Key(key)], Value::Object(object)) => {
            object.remove(key);
        }
        ([Step::Index(index)], Value::Array(items)) if *index < items.len() => {
            items.remove(*index);
        }
        ([Step::All], Value::Array(items)) => items.clear(),
        ([Step::Key(key), rest @ ..], Value::Object(object)) => {
            if let Some(value) = object.get_mut(key) {
                remove_under(value, rest);
            }
        }
        ([Step::Index(index), rest @ ..], Value::Array(items)) => {
            if let Some(value) = items.get_mut(*index) {
                remove_under(value, rest);
            }
        }
        ([Step::All, rest @ ..], Value::Array(items)) => {
            for value in items {
                remove_under(value, rest);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn after_set(payload: Value, patch: Value, key: Option<&str>) -> Value {
        let (mut payload, patch) = (payload.as_object().unwrap().clone(), patch);
        let key = key.map(|key| JsonPath::parse(key).unwrap());
        set(
            &mut payload,
            patch.as_object().unwrap().clone(),
            key.as_ref(),
        );
        Value::Object(payload)
    }

    fn after_removal(payload: Value, keys: &[&str]) -> Value {
        let mut payload = payload.as_object().unwrap().clone();
        let keys: Vec<_> = keys
            .iter()
            .map(|key| JsonPath::parse(key).unwrap())
            .collect();
        remove_keys(&mut payload, &keys);
        Value::Object(payload)
    }

    #[test]
    fn set_merges_top_level_keys_and_null_takes_a_key_out() {
        let payload = json!({"a": {"x": 1}, "b": 2, "c": 3});
        let patch = json!({"a": {"y": 1}, "c": null, "d": 4});
        assert_eq!(
            after_set(payload, patch, None),
            json!({"a": {"y": 1}, "b": 2, "d": 4})
        );
    }

    #[test]
    fn set_with_a_key_merges_into_the_object_there_and_creates_it() {
        let patch = || json!({"x": 1});
        assert_eq!(
            after_set(json!({}), patch(), Some("a.b")),
            json!({"a": {"b": {"x": 1}}})
        );
        assert_eq!(
            after_set(json!({"a": {"b": {"y": 2}, "c": 3}}), patch(), Some("a.b")),
            json!({"a": {"b": {"x": 1, "y": 2}, "c": 3}})
        );
        assert_eq!(
            after_set(json!({"a": 10}), patch(), Some("a.b")),
            json!({"a": {"b": {"x": 1}}})
        );
        assert_eq!(
            after_set(json!({"tb_9.6.11": {}}), patch(), Some("\"tb_9.6.11\"")),
            json!({"tb_9.6.11": {"x": 1}})
        );
    }

    #[test]
    fn set_through_an_array_reaches_its_elements_and_never_extends_it() {
        let payload = || json!({"a": [{"c": 1}, 2]});
        let patch = || json!({"x": 1});
        assert_eq!(
            after_set(payload(), patch(), Some("a[]")),
            json!({"a": [{"c": 1, "x": 1}, {"x": 1}]})
        );
        assert_eq!(
            after_set(payload(), patch(), Some("a[0].d")),
            json!({"a": [{"c": 1, "d": {"x": 1}}, 2]})
        );
        assert_eq!(
            after_set(payload(), patch(), Some("a[4000000000]")),
            payload()
        );
        assert_eq!(
            after_set(json!({}), patch(), Some("a[].b")),
            json!({"a": []})
        );
    }

    #[test]
    fn removal_takes_out_exactly_what_the_paths_name() {
        let payload = || json!({"a": 1, "b": {"c": [1, 2, 3], "d": [{"e": 1, "f": 2}, {"e": 3}]}});
        assert_eq!(after_removal(payload(), &["b"]), json!({"a": 1}));
        assert_eq!(
            after_removal(payload(), &["a", "b.c[1]", "b.d[].e", "b.missing", "a.b.c"]),
            json!({"b": {"c": [1, 3], "d": [{"f": 2}, {}]}})
        );
        assert_eq!(
            after_removal(payload(), &["b.c[]", "b.d[0].f", "b.c[9]"]),
            json!({"a": 1, "b": {"c": [], "d": [{"e": 1}, {"e": 3}]}})
        );
        assert_eq!(
            after_removal(json!({"x/y": 1, "z": 2}), &["\"x/y\""]),
            json!({"z": 2})
        );
    }

    #[test]
    fn a_change_that_would_nest_too_deep_is_refused_with_the_limit() {
        let nested = |levels: usize| {
            let leaf = Payload::new();
            (1..levels).fold(leaf, |inner, _| {
                Payload::from_iter([("k".to_owned(), Value::Object(inner))])
            })
        };
        assert_eq!(check_payload(&nested(PAYLOAD_DEPTH_MAX)), Ok(()));
        let refused = Err(EditError::TooDeep {
            depth: PAYLOAD_DEPTH_MAX + 1,
            limit: PAYLOAD_DEPTH_MAX,
        });
        assert_eq!(check_payload(&nested(PAYLOAD_DEPTH_MAX + 1)), refused);
        let key = JsonPath::parse("a.b[].c").unwrap();
        assert_eq!(
            check_set(&nested(PAYLOAD_DEPTH_MAX - 4), Some(&key)),
            Ok(())
        );
        assert_eq!(
            check_set(&nested(PAYLOAD_DEPTH_MAX - 3), Some(&key)),
            refused
        );
        let text = serde_json::to_string(&nested(PAYLOAD_DEPTH_MAX)).unwrap();
        assert!(
            serde_json::from_str::<Payload>(&text).is_ok(),
            "what is accepted can be read back"
        );
    }
}
