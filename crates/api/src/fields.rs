//! Reading the fields of a JSON object, with errors that name the path of the field.

use serde_json::{Map, Value};

use crate::error::{ApiError, Place, Result};

/// An object and where it stands in the body. A field that is null counts as absent.
#[derive(Clone, Debug)]
pub(crate) struct Fields<'a> {
    path: String,
    map: &'a Map<String, Value>,
}

impl<'a> Fields<'a> {
    /// The whole body.
    pub(crate) fn root(map: &'a Map<String, Value>) -> Self {
        Self {
            path: String::new(),
            map,
        }
    }

    /// An object at `path`.
    pub(crate) fn of(value: &'a Value, path: String) -> Result<Self> {
        match value {
            Value::Object(map) => Ok(Self { path, map }),
            other => Err(wrong_type(&path, other, "an object")),
        }
    }

    /// Path of the field `name`.
    pub(crate) fn at(&self, name: &str) -> String {
        if self.path.is_empty() {
            name.to_owned()
        } else {
            format!("{}.{name}", self.path)
        }
    }

    /// Path of this object; empty for the body.
    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// The object itself.
    pub(crate) fn map(&self) -> &'a Map<String, Value> {
        self.map
    }

    /// The field, unless absent or null.
    pub(crate) fn value(&self, name: &str) -> Option<&'a Value> {
        self.map.get(name).filter(|value| !value.is_null())
    }

    /// The field that must be there.
    pub(crate) fn required(&self, name: &str) -> Result<&'a Value> {
        self.value(name)
            .ok_or_else(|| ApiError::Format(format!("missing field `{}`", self.at(name))))
    }

    /// An object.
    pub(crate) fn object(&self, name: &str) -> Result<Option<Fields<'a>>> {
        self.value(name)
            .map(|value| Self::of(value, self.at(name)))
            .transpose()
    }

    /// An array.
    pub(crate) fn array(&self, name: &str) -> Result<Option<&'a Vec<Value>>> {
        self.typed(name, Value::as_array, "an array")
    }

    /// A string.
    pub(crate) fn string(&self, name: &str) -> Result<Option<&'a str>> {
        self.typed(name, Value::as_str, "a string")
    }

    /// A boolean.
    pub(crate) fn bool(&self, name: &str) -> Result<Option<bool>> {
        self.typed(name, Value::as_bool, "a boolean")
    }

    /// An unsigned integer.
    pub(crate) fn unsigned(&self, name: &str) -> Result<Option<u64>> {
        self.typed(name, Value::as_u64, "an unsigned integer")
    }

    /// An unsigned integer that counts things in memory.
    pub(crate) fn count(&self, name: &str) -> Result<Option<usize>> {
        // The number of things is never past what memory holds: the cap loses nothing.
        Ok(self
            .unsigned(name)?
            .map(|n| usize::try_from(n).unwrap_or(usize::MAX)))
    }

    /// A number.
    pub(crate) fn number(&self, name: &str) -> Result<Option<f64>> {
        self.typed(name, Value::as_f64, "a number")
    }

    /// Refuses fields that Qdrant serves and we do not; absent, null, `false` and empty ones pass.
    pub(crate) fn refuse(&self, names: &[&str]) -> Result<()> {
        for name in names {
            let is_set = match self.value(name) {
                None | Some(Value::Bool(false)) => false,
                Some(Value::Array(list)) => !list.is_empty(),
                Some(Value::Object(map)) => !map.is_empty(),
                Some(_) => true,
            };
            if is_set {
                return Err(ApiError::NotServed(self.at(name)));
            }
        }
        Ok(())
    }

    fn typed<T>(
        &self,
        name: &str,
        read: impl FnOnce(&'a Value) -> Option<T>,
        expected: &str,
    ) -> Result<Option<T>> {
        let Some(value) = self.value(name) else {
            return Ok(None);
        };
        read(value)
            .map(Some)
            .ok_or_else(|| wrong_type(&self.at(name), value, expected))
    }
}

/// "This value is of the wrong type".
pub(crate) fn wrong_type(path: &str, found: &Value, expected: &str) -> ApiError {
    let found = short(&found.to_string());
    ApiError::Format(format!(
        "{path}: invalid value: {found}, expected {expected}"
    ))
}

/// At most 60 characters of a text that came from outside.
pub(crate) fn short(text: &str) -> String {
    const SHOWN_MAX: usize = 60;
    match text.char_indices().nth(SHOWN_MAX) {
        Some((end, _)) => format!("{}...", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// Ranges that did not hold; a request is refused with all of them at once.
#[derive(Debug, Default)]
pub(crate) struct Rules {
    broken: Vec<String>,
}

impl Rules {
    /// `value` must be at least `least`.
    pub(crate) fn at_least<N: PartialOrd + std::fmt::Display>(
        &mut self,
        path: &str,
        value: N,
        least: N,
    ) {
        if value < least {
            self.broken.push(format!(
                "{path}: value {value} invalid, must be {least} or larger"
            ));
        }
    }

    /// `value` must be inside `from..=to`.
    pub(crate) fn within<N: PartialOrd + std::fmt::Display>(
        &mut self,
        path: &str,
        value: N,
        from: N,
        to: N,
    ) {
        if !(value >= from && value <= to) {
            self.broken.push(format!(
                "{path}: value {value} invalid, must be from {from} to {to}"
            ));
        }
    }

    /// A rule in words.
    pub(crate) fn broken(&mut self, path: &str, rule: &str) {
        self.broken.push(format!("{path}: {rule}"));
    }

    /// Refuses if any rule was broken.
    pub(crate) fn finish(self) -> Result<()> {
        if self.broken.is_empty() {
            return Ok(());
        }
        Err(ApiError::Validation {
            place: Place::Body,
            rules: self.broken.join("; "),
        })
    }
}
