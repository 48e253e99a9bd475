//! Limits that need no engine: names, paths, nesting.

use crate::error::{ApiError, Place, Result};
use crate::fields::short;

/// Filters inside filters, and JSON levels of a payload. Qdrant has no such limit of its own; its
/// JSON reader stops at 128 levels, which is 63 filters.
pub const NESTING_MAX: usize = 64;

/// Bytes of a collection's name, as in Qdrant.
pub const COLLECTION_NAME_BYTES_MAX: usize = 255;

/// Bytes of a vector's name, as in Qdrant.
pub const VECTOR_NAME_BYTES_MAX: usize = 200;

/// Dimensions of a vector, as in Qdrant.
pub const VECTOR_SIZE_MAX: usize = 65_536;

/// Characters that no name may hold: they have a meaning in paths of some file system.
const NAME_FORBIDDEN: [char; 11] = ['<', '>', ':', '"', '/', '\\', '|', '?', '*', '\0', '\u{1F}'];

/// What is wrong with a name, or `None`.
fn name_fault(what: &str, name: &str, bytes_max: usize) -> Option<String> {
    let value = short(&format!("{name:?}"));
    if name.is_empty() || name.len() > bytes_max {
        let length = name.len();
        return Some(format!(
            "value {value} invalid, {what} must be from 1 to {bytes_max} bytes long, not {length}"
        ));
    }
    if name == "." || name == ".." {
        return Some(format!(
            "value {value} invalid, {what} cannot be `.` or `..`"
        ));
    }
    let found = name.chars().find(|c| NAME_FORBIDDEN.contains(c))?;
    Some(format!(
        "value {value} invalid, {what} cannot contain {found:?}"
    ))
}

/// Checks the name of a collection that came in the path of the URL.
///
/// # Errors
/// Empty, over 255 bytes, `.`, `..`, or a character that has a meaning in file paths.
pub fn collection_name(name: &str) -> Result<()> {
    match name_fault("collection name", name, COLLECTION_NAME_BYTES_MAX) {
        None => Ok(()),
        Some(fault) => Err(ApiError::Validation {
            place: Place::Path,
            rules: format!("name: {fault}"),
        }),
    }
}

/// What is wrong with the name of a vector; the empty name is the unnamed vector.
pub(crate) fn vector_name_fault(name: &str) -> Option<String> {
    if name.is_empty() {
        return None;
    }
    name_fault("vector name", name, VECTOR_NAME_BYTES_MAX)
}

/// Checks the syntax of a payload path: keys joined by `.`, each followed by any number of `[]` or
/// `[7]`; a key of other characters than letters, digits, `_` and `-` stands in double quotes.
///
/// # Errors
/// Anything else, with the path in the text.
pub(crate) fn json_path(path: &str) -> Result<()> {
    let fault = || {
        ApiError::Wrong(format!(
            "Invalid json path: '{}' (quote keys that hold other characters than letters, digits, \
             `_` and `-`)",
            short(path)
        ))
    };
    let mut rest = path;
    loop {
        rest = after_key(rest).ok_or_else(fault)?;
        while let Some(inside) = rest.strip_prefix('[') {
            let (index, tail) = inside.split_once(']').ok_or_else(fault)?;
            if !index.bytes().all(|b| b.is_ascii_digit()) {
                return Err(fault());
            }
            rest = tail;
        }
        if rest.is_empty() {
            return Ok(());
        }
        rest = rest.strip_prefix('.').ok_or_else(fault)?;
    }
}

/// What follows the key at the start of `text`; `None` if there is no key.
fn after_key(text: &str) -> Option<&str> {
    if let Some(quoted) = text.strip_prefix('"') {
        return quoted.split_once('"').map(|(_, tail)| tail);
    }
    let end = text
        .char_indices()
        .find(|(_, c)| !(c.is_alphanumeric() || *c == '_' || *c == '-'))
        .map_or(text.len(), |(at, _)| at);
    if end == 0 { None } else { text.get(end..) }
}

/// Whether `value` nests deeper than [`NESTING_MAX`] levels below an object at level `level`.
pub(crate) fn nests_too_deep(value: &serde_json::Value, level: usize) -> bool {
    use serde_json::Value;
    match value {
        Value::Array(list) => {
            level >= NESTING_MAX || list.iter().any(|item| nests_too_deep(item, level + 1))
        }
        Value::Object(map) => {
            level >= NESTING_MAX || map.values().any(|item| nests_too_deep(item, level + 1))
        }
        _ => false,
    }
}

/// Checks the depth of a payload; the payload itself is level 1.
///
/// # Errors
/// More than [`NESTING_MAX`] levels.
pub(crate) fn payload_depth(
    path: &str,
    payload: &serde_json::Map<String, serde_json::Value>,
) -> Result<()> {
    if payload.values().any(|value| nests_too_deep(value, 1)) {
        return Err(ApiError::Wrong(format!(
            "{path}: payload is nested deeper than {NESTING_MAX} levels"
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_path_characters_are_refused_and_named() {
        let bad = [
            "", ".", "..", "a/b", "a\\b", "a:b", "a*b", "a?b", "a\"b", "a<b", "a>b", "a|b", "a\0b",
            "a\u{1F}b", "../x",
        ];
        for name in bad {
            let text = collection_name(name).unwrap_err().to_string();
            assert!(
                text.starts_with("Validation error in path parameters: [name: value"),
                "{text}"
            );
        }
        let long = "x".repeat(256);
        let text = collection_name(&long).unwrap_err().to_string();
        assert!(
            text.contains("must be from 1 to 255 bytes long, not 256"),
            "{text}"
        );
        for name in ["a", "...", "a.b", "with space", &"x".repeat(255)] {
            assert!(collection_name(name).is_ok(), "{name}");
        }
    }

    #[test]
    fn vector_names_have_their_own_limit_and_may_be_empty() {
        assert_eq!(vector_name_fault(""), None);
        assert_eq!(vector_name_fault(&"v".repeat(200)), None);
        assert!(
            vector_name_fault(&"v".repeat(201))
                .unwrap()
                .contains("from 1 to 200 bytes")
        );
        assert!(
            vector_name_fault("a/b")
                .unwrap()
                .contains("cannot contain '/'")
        );
    }

    #[test]
    fn payload_paths_follow_qdrants_grammar() {
        for good in [
            "a",
            "a.b",
            "a[].b",
            "a[3][]",
            "\"tb_9.6.11\"",
            "a.\"x/y\".b",
            "\"\"",
            "a-b_c",
        ] {
            assert!(json_path(good).is_ok(), "{good}");
        }
        for bad in [
            "",
            ".",
            "a.",
            ".a",
            "a..b",
            "a[",
            "a[x]",
            "a]b",
            "rdfs:label",
            "@id",
            "a b",
            "\"a",
        ] {
            let text = json_path(bad).unwrap_err().to_string();
            assert!(
                text.starts_with("Wrong input: Invalid json path: '"),
                "{text}"
            );
        }
    }

    #[test]
    fn payload_may_nest_64_levels_and_no_more() {
        let nested = |levels: usize| {
            let mut value = serde_json::json!(1);
            for _ in 0..levels {
                value = serde_json::json!({ "a": value });
            }
            match value {
                serde_json::Value::Object(map) => map,
                other => panic!("not an object: {other}"),
            }
        };
        assert!(payload_depth("payload", &nested(64)).is_ok());
        assert!(
            payload_depth("payload", &nested(65))
                .unwrap_err()
                .to_string()
                .contains("64")
        );
    }
}
