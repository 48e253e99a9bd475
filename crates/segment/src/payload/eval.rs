//! The plain evaluator: decides a filter on one point's payload.
//!
//! It is the meaning of filters; field indexes and masks only get to the same answer faster. Once a
//! filter is compiled its paths are parsed, its lists are hashed and it is known to be within limits.
//!
//! Decisions that users of Qdrant meet:
//! - a test on an array holds if it holds for an element; nothing found fails every test but
//!   `is_empty: true` and `is_null: false`;
//! - `except` holds if some value that is not null differs from all listed ones, so an empty list
//!   means "has a value" (Qdrant #9050); `any` with an empty list holds for nothing;
//! - `is_empty` looks at all values of the path together, and the two spellings of `is_empty` and
//!   `is_null` compile to the same test (Qdrant #10096, #10621);
//! - `min_should` without conditions holds for nothing (Qdrant #9401);
//! - inside `nested` an element of the array stands for the payload, and every clause is decided on that
//!   one element; elements that are no objects are passed over.

use std::collections::HashSet;

use serde_json::Value;
use thiserror::Error;

use super::Payload;
use super::datetime::Datetime;
use super::filter::{Bounds, Condition, FieldTest, Filter, MatchValue};
use super::path::{JsonPath, PathError};
use super::scalar::{ValueSet, any_element, is_nothing, values_in};
use crate::ids::PointId;

/// Deepest nesting of filters inside filters. Evaluation recurses once a level.
pub const FILTER_DEPTH_MAX: usize = 64;

/// Most conditions in one filter, all levels together. Each costs a pass over the rows' bits.
pub const FILTER_CONDITIONS_MAX: usize = 65_536;

/// Why a filter is refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum FilterError {
    /// A key is not a path.
    #[error(transparent)]
    Path(#[from] PathError),
    /// Filters are nested too deep.
    #[error("Filter is nested deeper than {limit} levels")]
    TooDeep {
        /// The limit.
        limit: usize,
    },
    /// There are too many conditions.
    #[error("Filter has more than {limit} conditions")]
    TooManyConditions {
        /// The limit.
        limit: usize,
    },
}

/// A filter that is ready to be evaluated.
#[derive(Clone, Debug)]
pub struct CompiledFilter {
    root: Clauses,
    reads_vectors: bool,
}

/// The clauses of one filter level.
#[derive(Clone, Debug, Default)]
pub(crate) struct Clauses {
    pub(crate) must: Vec<Check>,
    pub(crate) should: Vec<Check>,
    pub(crate) must_not: Vec<Check>,
    pub(crate) min_should: Option<AtLeast>,
}

/// "At least `count` of `checks`", never true without checks.
#[derive(Clone, Debug)]
pub(crate) struct AtLeast {
    pub(crate) count: usize,
    pub(crate) checks: Vec<Check>,
}

/// One condition.
#[derive(Clone, Debug)]
pub(crate) enum Check {
    Field(FieldCheck),
    HasId(HashSet<PointId>),
    HasVector(String),
    Elements(Elements),
    Filter(Clauses),
}

/// A filter that holds for an element of an array.
#[derive(Clone, Debug)]
pub(crate) struct Elements {
    /// Ends with `[]`.
    path: JsonPath,
    clauses: Clauses,
    /// Tests on whole payloads that hold wherever the condition does.
    pub(crate) necessary: Vec<FieldCheck>,
}

/// What is known of a point besides its payload.
#[derive(Clone, Copy)]
struct Point<'a> {
    id: PointId,
    has_vector: &'a dyn Fn(&str) -> bool,
}

/// A test on the values under a path.
#[derive(Clone, Debug)]
pub(crate) struct FieldCheck {
    pub(crate) path: JsonPath,
    /// As the filter says it, for the field indexes.
    pub(crate) test: FieldTest,
    /// The values that `test` lists, for the evaluator.
    listed: ValueSet,
}

impl CompiledFilter {
    /// Compiles a filter.
    ///
    /// # Errors
    /// [`FilterError`] for a key that is not a path, and for a filter past
    /// [`FILTER_DEPTH_MAX`] or [`FILTER_CONDITIONS_MAX`].
    pub fn new(filter: &Filter) -> Result<Self, FilterError> {
        let mut compiler = Compiler {
            conditions_left: FILTER_CONDITIONS_MAX,
            reads_vectors: false,
        };
        Ok(Self {
            root: compiler.clauses(filter, 1)?,
            reads_vectors: compiler.reads_vectors,
        })
    }

    /// Whether the filter holds for a point, `has_vector` telling which vectors it has.
    #[must_use]
    pub fn matches(
        &self,
        id: PointId,
        payload: &Payload,
        has_vector: &dyn Fn(&str) -> bool,
    ) -> bool {
        self.root.holds(payload, Some(Point { id, has_vector }))
    }

    /// Whether it asks which vectors a point has.
    #[must_use]
    pub fn reads_vectors(&self) -> bool {
        self.reads_vectors
    }

    /// The outermost clauses.
    pub(crate) fn root(&self) -> &Clauses {
        &self.root
    }
}

struct Compiler {
    conditions_left: usize,
    reads_vectors: bool,
}

impl Compiler {
    fn clauses(&mut self, filter: &Filter, depth: usize) -> Result<Clauses, FilterError> {
        if depth > FILTER_DEPTH_MAX {
            return Err(FilterError::TooDeep {
                limit: FILTER_DEPTH_MAX,
            });
        }
        let min_should = match &filter.min_should {
            Some(min_should) => Some(AtLeast {
                count: min_should.min_count,
                checks: self.checks(&min_should.conditions, depth)?,
            }),
            None => None,
        };
        Ok(Clauses {
            must: self.checks(&filter.must, depth)?,
            should: self.checks(&filter.should, depth)?,
            must_not: self.checks(&filter.must_not, depth)?,
            min_should,
        })
    }

    fn checks(
        &mut self,
        conditions: &[Condition],
        depth: usize,
    ) -> Result<Vec<Check>, FilterError> {
        self.conditions_left = self.conditions_left.checked_sub(conditions.len()).ok_or(
            FilterError::TooManyConditions {
                limit: FILTER_CONDITIONS_MAX,
            },
        )?;
        conditions
            .iter()
            .map(|condition| self.check(condition, depth))
            .collect()
    }

    fn check(&mut self, condition: &Condition, depth: usize) -> Result<Check, FilterError> {
        Ok(match condition {
            Condition::Field(field) => {
                Check::Field(FieldCheck::new(&field.key, field.test.clone())?)
            }
            Condition::IsEmpty(key) => {
                Check::Field(FieldCheck::new(key, FieldTest::IsEmpty(true))?)
            }
            Condition::IsNull(key) => Check::Field(FieldCheck::new(key, FieldTest::IsNull(true))?),
            Condition::HasId(ids) => Check::HasId(ids.iter().copied().collect()),
            Condition::HasVector(name) => {
                self.reads_vectors = true;
                Check::HasVector(name.clone())
            }
            Condition::Nested(nested) => {
                let clauses = self.clauses(&nested.filter, depth + 1)?;
                Check::Elements(Elements::new(&nested.key, clauses)?)
            }
            Condition::Filter(filter) => Check::Filter(self.clauses(filter, depth + 1)?),
        })
    }
}

impl Clauses {
    /// `point` is none where the payload is an element of an array.
    fn holds(&self, payload: &Payload, point: Option<Point<'_>>) -> bool {
        let holds = |check: &Check| check.holds(payload, point);
        self.must.iter().all(holds)
            && !self.must_not.iter().any(holds)
            && (self.should.is_empty() || self.should.iter().any(holds))
            && self
                .min_should
                .as_ref()
                .is_none_or(|at_least| at_least.holds(payload, point))
    }
}

impl AtLeast {
    fn holds(&self, payload: &Payload, point: Option<Point<'_>>) -> bool {
        // min_count beyond the number of conditions can never be reached, whatever its size.
        !self.checks.is_empty()
            && self
                .checks
                .iter()
                .filter(|c| c.holds(payload, point))
                .take(self.count)
                .count()
                == self.count
    }
}

impl Check {
    fn holds(&self, payload: &Payload, point: Option<Point<'_>>) -> bool {
        match self {
            Self::Field(field) => field.holds(payload),
            Self::HasId(ids) => point.is_some_and(|point| ids.contains(&point.id)),
            Self::HasVector(name) => point.is_some_and(|point| (point.has_vector)(name)),
            Self::Elements(elements) => elements.holds(payload),
            Self::Filter(clauses) => clauses.holds(payload, point),
        }
    }
}

impl Elements {
    fn new(key: &str, clauses: Clauses) -> Result<Self, PathError> {
        let path = JsonPath::parse(key)?.elements();
        let necessary = clauses.must.iter().filter_map(|check| match check {
            Check::Field(field) if field.is_kept_by_more_values() => Some(FieldCheck {
                path: path.join(&field.path),
                ..field.clone()
            }),
            _ => None,
        });
        Ok(Self {
            necessary: necessary.collect(),
            path,
            clauses,
        })
    }

    fn holds(&self, payload: &Payload) -> bool {
        self.path.any(payload, &mut |value| match value {
            Value::Object(element) => self.clauses.holds(element, None),
            _ => false,
        })
    }
}

impl FieldCheck {
    fn new(key: &str, test: FieldTest) -> Result<Self, PathError> {
        let listed = match &test {
            FieldTest::Any(values) | FieldTest::Except(values) => ValueSet::new(values),
            _ => ValueSet::default(),
        };
        Ok(Self {
            path: JsonPath::parse(key)?,
            test,
            listed,
        })
    }

    /// Whether the test, where it holds for some values, holds for any more of them too.
    fn is_kept_by_more_values(&self) -> bool {
        match &self.test {
            FieldTest::Value(_)
            | FieldTest::Any(_)
            | FieldTest::Except(_)
            | FieldTest::Range(_)
            | FieldTest::DatetimeRange(_) => true,
            FieldTest::ValuesCount(counts) => !counts.contains(0),
            FieldTest::IsEmpty(wanted) => !wanted,
            FieldTest::IsNull(wanted) => *wanted,
        }
    }

    fn holds(&self, payload: &Payload) -> bool {
        match &self.test {
            FieldTest::Value(wanted) => self.any(payload, |value| equals(wanted, value)),
            FieldTest::Any(_) => self.any(payload, |value| self.listed.contains(value)),
            FieldTest::Except(_) => self.any(payload, |value| {
                !value.is_null() && !self.listed.contains(value)
            }),
            FieldTest::Range(range) => self.any(
                payload,
                |value| matches!(value, Value::Number(n) if range.holds(n)),
            ),
            FieldTest::DatetimeRange(bounds) => self.any(
                payload,
                |value| matches!(value, Value::String(s) if is_inside(bounds, s)),
            ),
            FieldTest::ValuesCount(counts) => self.has_count(payload, counts),
            FieldTest::IsEmpty(wanted) => self.is_empty(payload) == *wanted,
            FieldTest::IsNull(wanted) => self.any(payload, Value::is_null) == *wanted,
        }
    }

    fn any(&self, payload: &Payload, test: impl Fn(&Value) -> bool) -> bool {
        self.path
            .any(payload, &mut |value| any_element(value, &test))
    }

    fn has_count(&self, payload: &Payload, counts: &Bounds<usize>) -> bool {
        let mut is_missing = true;
        let holds = self.path.any(payload, &mut |value| {
            is_missing = false;
            counts.contains(values_in(value))
        });
        holds || (is_missing && counts.contains(0))
    }

    fn is_empty(&self, payload: &Payload) -> bool {
        !self.path.any(payload, &mut |value| !is_nothing(value))
    }
}

fn is_inside(bounds: &Bounds<Datetime>, text: &str) -> bool {
    Datetime::parse(text).is_some_and(|moment| bounds.contains(moment))
}

fn equals(wanted: &MatchValue, value: &Value) -> bool {
    match (wanted, value) {
        (MatchValue::Bool(wanted), Value::Bool(b)) => wanted == b,
        (MatchValue::Integer(wanted), Value::Number(n)) => n.as_i64() == Some(*wanted),
        (MatchValue::Keyword(wanted), Value::String(s)) => wanted == s,
        _ => false,
    }
}

#[cfg(test)]
#[path = "eval_tests.rs"]
mod tests;
