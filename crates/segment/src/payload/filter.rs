//! Syntax tree of a filter, as Qdrant defines its meaning.

use super::datetime::Datetime;
use crate::ids::PointId;

/// A boolean combination of conditions. An absent clause does not constrain.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Filter {
    /// All of these must hold.
    pub must: Vec<Condition>,
    /// At least one of these must hold, if there are any.
    pub should: Vec<Condition>,
    /// None of these may hold.
    pub must_not: Vec<Condition>,
    /// At least `min_count` of these must hold.
    pub min_should: Option<MinShould>,
}

/// "At least `min_count` of `conditions`". With no conditions it matches nothing (Qdrant #9401).
#[derive(Clone, Debug, PartialEq)]
pub struct MinShould {
    /// The conditions that are counted.
    pub conditions: Vec<Condition>,
    /// How many must hold, at least 1.
    pub min_count: usize,
}

/// One condition on a point.
#[derive(Clone, Debug, PartialEq)]
pub enum Condition {
    /// A test on the values found under a payload path.
    Field(FieldCondition),
    /// The id is one of these.
    HasId(Vec<PointId>),
    /// The path is missing, or every value under it is null or an empty array.
    IsEmpty(String),
    /// A value under the path is null, or an array that contains null.
    IsNull(String),
    /// The point has a vector of this name, `""` for the unnamed one.
    HasVector(String),
    /// A filter that holds for an element of an array.
    Nested(NestedCondition),
    /// A filter inside the filter.
    Filter(Filter),
}

/// A filter on the objects in an array, each looked at as a payload of its own; it holds if it holds
/// for one of them. An element is no point: `has_id` and `has_vector` hold for none.
#[derive(Clone, Debug, PartialEq)]
pub struct NestedCondition {
    /// Payload path of the array, with `[]` at its end or without.
    pub key: String,
    /// The filter, with paths inside the element.
    pub filter: Filter,
}

/// A test on the values found under a payload path; it holds if any value passes.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldCondition {
    /// Payload path: `a.b`, `a[].b`, `"quoted.key"`.
    pub key: String,
    /// The test.
    pub test: FieldTest,
}

/// What a value is tested for.
#[derive(Clone, Debug, PartialEq)]
pub enum FieldTest {
    /// Equal to this value.
    Value(MatchValue),
    /// Equal to one of these; an empty list matches nothing.
    Any(Vec<MatchValue>),
    /// Different from all of these; an empty list matches every value.
    Except(Vec<MatchValue>),
    /// A number inside these bounds (compared as f64; integers compared exactly where they fit).
    Range(Range),
    /// A text that spells a moment inside these bounds.
    DatetimeRange(Bounds<Datetime>),
    /// The number of values is inside these bounds: an array has that of its elements, null has none,
    /// anything else is one, and where nothing is found there is none.
    ValuesCount(Bounds<usize>),
    /// `is_empty: true` (or its opposite) written inside a field condition.
    IsEmpty(bool),
    /// `is_null: true` (or its opposite) written inside a field condition.
    IsNull(bool),
}

/// A scalar that `match` compares with.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum MatchValue {
    /// Boolean.
    Bool(bool),
    /// Integer.
    Integer(i64),
    /// Text, compared as a whole.
    Keyword(String),
}

/// Bounds of a range; all that are given must hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds<T> {
    /// Value < this.
    pub lt: Option<T>,
    /// Value <= this.
    pub lte: Option<T>,
    /// Value > this.
    pub gt: Option<T>,
    /// Value >= this.
    pub gte: Option<T>,
}

/// Bounds of numbers.
pub type Range = Bounds<f64>;

impl<T> Default for Bounds<T> {
    fn default() -> Self {
        Self {
            lt: None,
            lte: None,
            gt: None,
            gte: None,
        }
    }
}
