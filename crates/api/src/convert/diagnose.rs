//! Which point and which vector made an upsert body unreadable.
//!
//! The fast reader knows only a byte offset. This one runs after it failed: it reads the body again
//! as raw pieces of text, so that a number like `1e400` or a bare `NaN` (which is no JSON, but
//! which Python writes) can be named together with the id of its point.

use std::borrow::Cow;
use std::collections::BTreeMap;

use flatwater_segment::PointId;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::query::not_finite;
use crate::error::ApiError;
use crate::fields::short;

#[derive(Deserialize)]
struct RawBody<'a> {
    #[serde(borrow)]
    points: Option<Vec<RawPoint<'a>>>,
    #[serde(borrow)]
    batch: Option<RawBatch<'a>>,
}

#[derive(Deserialize)]
struct RawPoint<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    vector: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct RawBatch<'a> {
    #[serde(borrow)]
    ids: Vec<&'a RawValue>,
    #[serde(borrow)]
    vectors: &'a RawValue,
}

/// The error that names the first faulty vector; `None` if the fault is elsewhere.
pub(crate) fn upsert(bytes: &[u8]) -> Option<ApiError> {
    let quoted = quote_bare_tokens(bytes);
    let body: RawBody<'_> = serde_json::from_slice(&quoted).ok()?;
    if let Some(points) = body.points {
        return points.iter().find_map(|point| {
            let id = point.id.map_or("without id", RawValue::get);
            vectors(id, point.vector?)
        });
    }
    let batch = body.batch?;
    let id = |row: usize| batch.ids.get(row).map_or("without id", |raw| raw.get());
    let column = |name: &str, raw: &RawValue| {
        let rows: Vec<&RawValue> = serde_json::from_str(raw.get()).ok()?;
        rows.iter()
            .enumerate()
            .find_map(|(row, vector)| dense(id(row), name, vector))
    };
    if is(batch.vectors, '[') {
        return column("", batch.vectors);
    }
    let named: BTreeMap<String, &RawValue> = serde_json::from_str(batch.vectors.get()).ok()?;
    named.iter().find_map(|(name, raw)| column(name, raw))
}

/// The error of a number past `f32` whose text is not known any more.
pub(crate) fn not_finite_somewhere(id: PointId) -> ApiError {
    ApiError::Wrong(format!(
        "point {id}: a vector holds a number that is not a finite 32-bit float"
    ))
}

/// All vectors of one point.
fn vectors(id: &str, raw: &RawValue) -> Option<ApiError> {
    if is(raw, '[') {
        return dense(id, "", raw);
    }
    if !is(raw, '{') {
        return Some(ApiError::Wrong(format!(
            "point {}: vector {} is neither an array of numbers nor an object of named vectors",
            short(id),
            short(raw.get())
        )));
    }
    let named: BTreeMap<String, &RawValue> = serde_json::from_str(raw.get()).ok()?;
    let is_inference = ["text", "image", "object"].into_iter().find(|key| {
        named.get(*key).is_some_and(|value| !is(value, '[')) && named.contains_key("model")
    });
    if let Some(kind) = is_inference {
        return Some(ApiError::NotServed(format!(
            "vector.{kind} (inference) of point {}",
            short(id)
        )));
    }
    named
        .iter()
        .find_map(|(name, vector)| dense(id, name, vector))
}

/// One dense vector.
fn dense(id: &str, name: &str, raw: &RawValue) -> Option<ApiError> {
    let (id, name) = (short(id), short(name));
    if is(raw, '{') {
        return Some(ApiError::NotServed(format!(
            "vector `{name}` of point {id} as an object (sparse vectors, inference)"
        )));
    }
    let Ok(elements) = serde_json::from_str::<Vec<&RawValue>>(raw.get()) else {
        return Some(ApiError::Wrong(format!(
            "point {id}, vector `{name}`: {} is not an array of numbers",
            short(raw.get())
        )));
    };
    elements.iter().enumerate().find_map(|(at, element)| {
        if is(element, '[') {
            return Some(ApiError::NotServed(format!(
                "vector `{name}` of point {id} as a list of vectors (multivectors)"
            )));
        }
        let text = bare_token(element.get());
        // Wider than f32 first: the range is what is asked here, not the rounding.
        let is_number = text
            .parse::<f64>()
            .is_ok_and(|number| (number as f32).is_finite());
        (!is_number).then(|| not_finite(&format!("point {id}, vector `{name}`"), at, text))
    })
}

fn is(raw: &RawValue, first: char) -> bool {
    raw.get().starts_with(first)
}

/// Tokens that are no JSON but that some writers put where a number belongs, and a JSON text of the
/// same length for each.
const BARE_TOKENS: [(&[u8], &[u8], &str); 3] = [
    (b"-Infinity", b"\"-Infini\"", "-Infinity"),
    (b"Infinity", b"\"Infini\"", "Infinity"),
    (b"NaN", b"\"N\"", "NaN"),
];

/// Puts [`BARE_TOKENS`] outside strings into quotes, so that the rest can be read.
fn quote_bare_tokens(bytes: &[u8]) -> Cow<'_, [u8]> {
    let mut out = Cow::Borrowed(bytes);
    let (mut in_string, mut escaped) = (false, false);
    let mut at = 0;
    while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
        let mut step = 1;
        match rest.first() {
            _ if escaped => escaped = false,
            Some(b'\\') if in_string => escaped = true,
            Some(b'"') => in_string = !in_string,
            _ if in_string => {}
            _ => {
                let found = BARE_TOKENS
                    .iter()
                    .find(|(token, ..)| rest.starts_with(token));
                if let Some((token, replacement, _)) = found {
                    step = token.len();
                    if let Some(place) = out.to_mut().get_mut(at..at + step) {
                        place.copy_from_slice(replacement);
                    }
                }
            }
        }
        at += step;
    }
    out
}

/// The token that [`quote_bare_tokens`] replaced by `text`, or `text` itself.
fn bare_token(text: &str) -> &str {
    let found = BARE_TOKENS
        .iter()
        .find(|(_, replacement, _)| *replacement == text.as_bytes());
    found.map_or(text, |(.., token)| token)
}
