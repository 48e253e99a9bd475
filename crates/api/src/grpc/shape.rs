//! JSON bodies under construction.

use serde_json::{Map, Value, json};

use crate::error::{ApiError, Result};

/// An object; what is `None` stays out of it.
#[derive(Debug, Default)]
pub(super) struct Shape(Map<String, Value>);

impl Shape {
    /// Adds a field.
    pub(super) fn with(mut self, name: &str, value: Option<impl Into<Value>>) -> Self {
        if let Some(value) = value {
            self.0.insert(name.to_owned(), value.into());
        }
        self
    }

    /// Adds a field that is there and whose inside nobody reads, because it is not served: its reader
    /// refuses it by its name.
    pub(super) fn with_unread(self, name: &str, is_set: bool) -> Self {
        self.with(name, is_set.then(|| json!({ "given": true })))
    }

    /// The fields.
    pub(super) fn into_map(self) -> Map<String, Value> {
        self.0
    }
}

impl From<Shape> for Value {
    fn from(shape: Shape) -> Self {
        Self::Object(shape.0)
    }
}

/// A float as JSON, which has no way to write NaN and the infinities.
pub(super) fn number(path: &str, number: f64) -> Result<Value> {
    if number.is_finite() {
        return Ok(json!(number));
    }
    Err(ApiError::Wrong(format!(
        "{path}: {number} is not a finite number"
    )))
}

/// [`number`] of what may be absent.
pub(super) fn number_if(path: &str, value: Option<f64>) -> Result<Option<Value>> {
    value.map(|value| number(path, value)).transpose()
}

/// A required part of a message.
pub(super) fn required<T>(path: &str, part: Option<T>) -> Result<T> {
    part.ok_or_else(|| ApiError::Format(format!("missing field `{path}`")))
}

/// A value of an enum by its number; the error names the field.
pub(super) fn known<E: TryFrom<i32>>(path: &str, number: i32) -> Result<E> {
    E::try_from(number).map_err(|_| {
        ApiError::Format(format!(
            "{path}: invalid value: {number}, expected a number that the enum has"
        ))
    })
}
