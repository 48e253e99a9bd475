//! From bytes to JSON, with a limit on nesting.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::error::{ApiError, Result};
use crate::validate::NESTING_MAX;

/// Deepest JSON that is read at all: 64 filters inside each other take two levels each, and a body
/// wraps them in a few more (nested conditions take four, so 36 of them fit). It bounds the stack that
/// the recursive reader needs.
const JSON_DEPTH_MAX: usize = 2 * NESTING_MAX + 16;

/// Depth of arrays and objects in `bytes`, without reading them.
///
/// # Errors
/// More than [`JSON_DEPTH_MAX`] levels.
pub(crate) fn depth(bytes: &[u8]) -> Result<usize> {
    let (mut depth, mut deepest) = (0_usize, 0_usize);
    let (mut in_string, mut escaped) = (false, false);
    for byte in bytes {
        if in_string {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => in_string = false,
                _ => {}
            }
            continue;
        }
        match byte {
            b'"' => in_string = true,
            b'[' | b'{' => {
                depth += 1;
                deepest = deepest.max(depth);
                if depth > JSON_DEPTH_MAX {
                    return Err(ApiError::Format(format!(
                        "nested deeper than {JSON_DEPTH_MAX} levels \
                         (limit of filters and payloads: {NESTING_MAX})"
                    )));
                }
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    Ok(deepest)
}

/// Reads `bytes` as one JSON value of type `T`; call [`depth`] first.
pub(crate) fn read<T: DeserializeOwned>(bytes: &[u8]) -> std::result::Result<T, serde_json::Error> {
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    reader.disable_recursion_limit();
    let value = T::deserialize(&mut reader)?;
    reader.end()?;
    Ok(value)
}

/// Reads `bytes` as a JSON object.
///
/// # Errors
/// Not JSON, not an object, nested too deep.
pub(crate) fn object(bytes: &[u8]) -> Result<Map<String, Value>> {
    depth(bytes)?;
    read(bytes).map_err(|error| ApiError::Format(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depth_counts_brackets_outside_strings() {
        assert_eq!(depth(br#"{"a":[1,{"b":"[[[\"[["}]}"#).unwrap(), 3);
        assert_eq!(depth(b"]]]]").unwrap(), 0);
    }

    #[test]
    fn nesting_past_the_limit_is_a_format_error_that_names_it() {
        let deep = "[".repeat(100_000);
        let error = object(deep.as_bytes()).unwrap_err().to_string();
        assert!(
            error.starts_with("Format error in JSON body: nested deeper than"),
            "{error}"
        );
        assert!(error.contains("64"), "{error}");
    }

    #[test]
    fn nesting_at_the_limit_is_read() {
        let n = JSON_DEPTH_MAX - 1;
        let text = format!("{{\"a\":{}{}}}", "[".repeat(n), "]".repeat(n));
        assert!(object(text.as_bytes()).is_ok());
    }

    #[test]
    fn bad_json_is_a_format_error_with_its_place() {
        let error = object(b"{\"a\": ]").unwrap_err().to_string();
        assert_eq!(
            error,
            "Format error in JSON body: expected value at line 1 column 7"
        );
        let error = object(b"[1]").unwrap_err().to_string();
        assert!(
            error.starts_with("Format error in JSON body: invalid type: sequence"),
            "{error}"
        );
        assert!(object(b"").is_err());
        assert!(object(b"{} trailing").is_err());
    }
}
