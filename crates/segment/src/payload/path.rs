//! Paths into a payload, in Qdrant's syntax.
//!
//! ```text
//! path  = key { "." key | "[" digits "]" | "[]" }
//! key   = plain | quoted
//! plain = one or more letters, digits (of any script), "_" or "-"
//! quoted = '"' { any character but '"' and "\" } '"'
//! ```
//!
//! `[]` stands for every element of an array. A path that ends at an array names the array itself;
//! who tests values looks at its elements (see [`super::scalar`]).

use std::fmt;

use serde_json::Value;
use thiserror::Error;

use super::Payload;

/// Most steps in one path. Payloads are at most [`super::edit::PAYLOAD_DEPTH_MAX`] deep, so a longer
/// path finds nothing; the bound keeps recursion over a path short.
pub const PATH_STEPS_MAX: usize = 128;

/// Why a string is not a path.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PathError {
    /// The syntax is broken.
    #[error(
        "Invalid json path: `{path}` (at character {position}; keys other than letters, digits, `_` and `-` need double quotes)"
    )]
    Syntax {
        /// The string as given.
        path: String,
        /// How many characters were understood before the one that was not.
        position: usize,
    },
    /// The path has more steps than [`PATH_STEPS_MAX`].
    #[error("Invalid json path: `{path}` (more than {limit} steps)")]
    TooLong {
        /// The string as given.
        path: String,
        /// The limit.
        limit: usize,
    },
}

/// One step of a path.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Step {
    /// A key of an object.
    Key(String),
    /// One element of an array, counted from 0.
    Index(usize),
    /// Every element of an array.
    All,
}

/// A parsed path; its first step is always a key.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct JsonPath {
    steps: Vec<Step>,
}

impl JsonPath {
    /// The path that `text` spells.
    ///
    /// # Errors
    /// [`PathError`] with the text and the place where it stopped making sense.
    pub fn parse(text: &str) -> Result<Self, PathError> {
        let mut cursor = Cursor { text, at: 0 };
        let mut steps = Vec::new();
        let mut understood = cursor.key(&mut steps);
        while understood.is_some() && cursor.at < text.len() {
            if steps.len() == PATH_STEPS_MAX {
                return Err(PathError::TooLong {
                    path: text.to_owned(),
                    limit: PATH_STEPS_MAX,
                });
            }
            understood = cursor.step(&mut steps);
        }
        match understood {
            Some(()) => Ok(Self { steps }),
            None => {
                let position = text[..cursor.at].chars().count();
                Err(PathError::Syntax {
                    path: text.to_owned(),
                    position,
                })
            }
        }
    }

    /// The steps, at least one.
    #[must_use]
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// The path of the elements of the array at this path, `a[]` for `a` and for `a[]`.
    #[must_use]
    pub(crate) fn elements(mut self) -> Self {
        if self.steps.last() != Some(&Step::All) {
            self.steps.push(Step::All);
        }
        self
    }

    /// The path of `inside`, which begins at the values of this path.
    #[must_use]
    pub(crate) fn join(&self, inside: &Self) -> Self {
        let steps = self.steps.iter().chain(&inside.steps);
        Self {
            steps: steps.cloned().collect(),
        }
    }

    /// Calls `visit` with every value found under the path, in document order.
    pub fn values<'p>(&self, payload: &'p Payload, mut visit: impl FnMut(&'p Value)) {
        self.any(payload, &mut |value| {
            visit(value);
            false
        });
    }

    /// Whether `test` holds for a value found under the path; stops at the first.
    pub fn any<'p>(&self, payload: &'p Payload, test: &mut dyn FnMut(&'p Value) -> bool) -> bool {
        match self.steps.split_first() {
            Some((Step::Key(key), rest)) => payload
                .get(key)
                .is_some_and(|value| any_under(rest, value, test)),
            _ => false,
        }
    }
}

fn any_under<'p>(
    steps: &[Step],
    value: &'p Value,
    test: &mut dyn FnMut(&'p Value) -> bool,
) -> bool {
    let Some((step, rest)) = steps.split_first() else {
        return test(value);
    };
    match (step, value) {
        (Step::Key(key), Value::Object(map)) => map
            .get(key)
            .is_some_and(|value| any_under(rest, value, test)),
        (Step::Index(index), Value::Array(items)) => items
            .get(*index)
            .is_some_and(|value| any_under(rest, value, test)),
        (Step::All, Value::Array(items)) => items.iter().any(|value| any_under(rest, value, test)),
        _ => false,
    }
}

/// What is left to parse. `at` is a byte offset on a character boundary and moves only past what was
/// understood.
struct Cursor<'t> {
    text: &'t str,
    at: usize,
}

impl Cursor<'_> {
    fn key(&mut self, steps: &mut Vec<Step>) -> Option<()> {
        let rest = &self.text[self.at..];
        let key = if let Some(quoted) = rest.strip_prefix('"') {
            let end = quoted.find(['"', '\\'])?;
            if !quoted[end..].starts_with('"') {
                return None;
            }
            self.at += end + 2;
            &quoted[..end]
        } else {
            let end = rest.find(|c: char| !is_plain(c)).unwrap_or(rest.len());
            if end == 0 {
                return None;
            }
            self.at += end;
            &rest[..end]
        };
        steps.push(Step::Key(key.to_owned()));
        Some(())
    }

    fn step(&mut self, steps: &mut Vec<Step>) -> Option<()> {
        let rest = &self.text[self.at..];
        if rest.starts_with('.') {
            self.at += 1;
            return self.key(steps);
        }
        let inside = rest.strip_prefix('[')?;
        let end = inside.find(']')?;
        let digits = &inside[..end];
        let step = if digits.is_empty() {
            Step::All
        } else if digits.bytes().all(|b| b.is_ascii_digit()) {
            Step::Index(digits.parse().ok()?)
        } else {
            return None;
        };
        self.at += end + 2;
        steps.push(step);
        Some(())
    }
}

fn is_plain(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '-'
}

/// The shortest spelling: keys are quoted only where they must be.
impl fmt::Display for JsonPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, step) in self.steps.iter().enumerate() {
            match step {
                Step::Key(key) => {
                    let dot = if at == 0 { "" } else { "." };
                    if !key.is_empty() && key.chars().all(is_plain) {
                        write!(f, "{dot}{key}")?;
                    } else {
                        write!(f, "{dot}\"{key}\"")?;
                    }
                }
                Step::Index(index) => write!(f, "[{index}]")?,
                Step::All => f.write_str("[]")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn found(path: &str, payload: &Value) -> Vec<Value> {
        let mut out = Vec::new();
        JsonPath::parse(path)
            .unwrap()
            .values(payload.as_object().unwrap(), |value| {
                out.push(value.clone());
            });
        out
    }

    #[test]
    fn a_bracket_pair_flattens_an_array_and_a_plain_key_names_the_array() {
        let payload = json!({"a": {"b": [{"c": [1, 2]}, {"c": 3}, {"d": 4}]}});
        assert_eq!(found("a.b[].c", &payload), [json!([1, 2]), json!(3)]);
        assert_eq!(found("a.b[].c[]", &payload), [json!(1), json!(2)]);
        assert_eq!(found("a.b[1].c", &payload), [json!(3)]);
        assert_eq!(found("a.b[7].c", &payload), Vec::<Value>::new());
        assert_eq!(found("a.b.c", &payload), Vec::<Value>::new());
    }

    #[test]
    fn quoted_keys_reach_dots_slashes_colons_spaces_emoji_and_the_empty_key() {
        for key in [
            "tb_9.6.11",
            "a/b",
            "rdfs:subClassOf",
            "@id",
            "two words",
            "\u{1f600}",
            "",
            "a[0]",
        ] {
            let payload = json!({ key: 7, "outer": { key: 8 } });
            assert_eq!(found(&format!("\"{key}\""), &payload), [json!(7)], "{key}");
            assert_eq!(
                found(&format!("outer.\"{key}\""), &payload),
                [json!(8)],
                "{key}"
            );
        }
        let long = "k".repeat(10_000);
        assert_eq!(found(&long, &json!({ long.as_str(): 1 })), [json!(1)]);
    }

    #[test]
    fn a_plain_key_may_hold_letters_of_any_script() {
        let name = "\u{43f}\u{43e}\u{43b}\u{435}-\u{7530}_1";
        assert_eq!(found(name, &json!({ name: 1 })), [json!(1)]);
    }

    #[test]
    fn an_invalid_path_is_refused_with_its_text_and_position() {
        for (text, position) in [
            ("", 0),
            ("a b", 1),
            ("a..b", 2),
            ("a.", 2),
            (".a", 0),
            ("[0]", 0),
            ("a[", 1),
            ("a[x]", 1),
            ("a[-1]", 1),
            ("a[]b", 3),
            ("a/b", 1),
            ("\"a", 0),
            ("\"a\\\"", 0),
            ("a[99999999999999999999999]", 1),
            ("\u{e9}t\u{e9}:x", 3),
        ] {
            let error = JsonPath::parse(text).unwrap_err();
            assert_eq!(
                error,
                PathError::Syntax {
                    path: text.to_owned(),
                    position
                }
            );
            assert!(
                error
                    .to_string()
                    .starts_with(&format!("Invalid json path: `{text}`"))
            );
        }
    }

    #[test]
    fn a_path_of_too_many_steps_is_refused() {
        assert!(JsonPath::parse(&vec!["a"; PATH_STEPS_MAX].join(".")).is_ok());
        assert!(matches!(
            JsonPath::parse(&vec!["a"; PATH_STEPS_MAX + 1].join(".")),
            Err(PathError::TooLong {
                limit: PATH_STEPS_MAX,
                ..
            })
        ));
    }

    proptest! {
        #[test]
        fn a_path_reads_back_what_it_prints(text in r#"[a-z0-9_\-"\.\[\] :]{0,12}"#) {
            if let Ok(path) = JsonPath::parse(&text) {
                prop_assert_eq!(JsonPath::parse(&path.to_string()), Ok(path));
            }
        }
    }
}
