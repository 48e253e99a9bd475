//! The values of a field in their order: what points may be ordered by, and how an index walks them.

use std::cmp::Ordering;
use std::ops::ControlFlow;

use flatwater_index::Row;
use serde_json::Value;

use super::FieldType;
use crate::payload::Payload;
use crate::payload::datetime::Datetime;
use crate::payload::path::JsonPath;
use crate::payload::scalar::{any_element, compare_integer};

/// A value that a point is ordered by; a moment is its microseconds since 1970.
#[derive(Clone, Copy, Debug)]
pub enum OrderValue {
    /// An integer, or a moment.
    Integer(i64),
    /// A number, never NaN.
    Float(f64),
}

impl OrderValue {
    /// A float as a value; NaN is none. Both zeros are one.
    #[must_use]
    pub fn float(number: f64) -> Option<Self> {
        (!number.is_nan()).then_some(Self::Float(number + 0.0))
    }
}

impl Ord for OrderValue {
    fn cmp(&self, other: &Self) -> Ordering {
        // No NaN stands in a value, so the comparisons always have an answer.
        let mixed = |integer: i64, float| {
            compare_integer(i128::from(integer), float).unwrap_or(Ordering::Less)
        };
        match (*self, *other) {
            (Self::Integer(a), Self::Integer(b)) => a.cmp(&b),
            (Self::Float(a), Self::Float(b)) => a.total_cmp(&b),
            (Self::Integer(a), Self::Float(b)) => mixed(a, b),
            (Self::Float(a), Self::Integer(b)) => mixed(b, a).reverse(),
        }
    }
}

impl PartialOrd for OrderValue {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for OrderValue {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for OrderValue {}

/// Which way values go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Direction {
    /// The smallest first.
    #[default]
    Ascending,
    /// The largest first.
    Descending,
}

/// A direction, and where to start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Order {
    /// Which way.
    pub direction: Direction,
    /// The first value that may come; all without.
    pub start_from: Option<OrderValue>,
}

impl Order {
    /// Whether a value comes before the first that is wanted.
    fn is_too_early(&self, value: OrderValue) -> bool {
        self.start_from.is_some_and(|start| match self.direction {
            Direction::Ascending => value < start,
            Direction::Descending => value > start,
        })
    }

    /// Visits the items of a list, ascending by their values, the way of this order and from its start
    /// on, until told to break; the list's item is given by its place.
    pub(super) fn walk<T>(
        &self,
        sorted: &[T],
        value_of: impl Fn(&T) -> Option<OrderValue>,
        mut visit: impl FnMut(usize, OrderValue) -> ControlFlow<()>,
    ) {
        let is_early = |item: &T| value_of(item).is_some_and(|value| self.is_too_early(value));
        let mut visit_at = |at: usize| match value_of(&sorted[at]) {
            Some(value) => visit(at, value),
            None => ControlFlow::Continue(()),
        };
        // The items that are too early are all at one end.
        let _until_told = match self.direction {
            Direction::Ascending => {
                let from = sorted.partition_point(is_early);
                (from..sorted.len()).try_for_each(&mut visit_at)
            }
            Direction::Descending => {
                let to = sorted.partition_point(|item| !is_early(item));
                (0..to).rev().try_for_each(&mut visit_at)
            }
        };
    }

    /// The values of a payload that this order visits, in no order and with repeats.
    pub fn values_in(
        &self,
        field_type: FieldType,
        path: &JsonPath,
        payload: &Payload,
        mut visit: impl FnMut(OrderValue),
    ) {
        path.values(payload, |value| {
            any_element(value, |scalar| {
                let value = field_type.order_value(scalar);
                if let Some(value) = value.filter(|value| !self.is_too_early(*value)) {
                    visit(value);
                }
                false
            });
        });
    }
}

impl FieldType {
    /// Whether points can be ordered by values of this kind.
    #[must_use]
    pub fn is_ordered(self) -> bool {
        matches!(self, Self::Integer | Self::Float | Self::Datetime)
    }

    /// What a payload value is ordered by, if it is of this kind.
    fn order_value(self, value: &Value) -> Option<OrderValue> {
        match (self, value) {
            (Self::Integer, Value::Number(number)) => number.as_i64().map(OrderValue::Integer),
            (Self::Float, Value::Number(number)) => number.as_f64().and_then(OrderValue::float),
            (Self::Datetime, Value::String(text)) => {
                Datetime::parse(text).map(|moment| OrderValue::Integer(moment.micros()))
            }
            _ => None,
        }
    }
}

/// What is told each value of an index and a row that has it. Break ends the list that is walked.
pub type Visit<'v> = &'v mut dyn FnMut(OrderValue, Row) -> ControlFlow<()>;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn value() -> impl Strategy<Value = OrderValue> {
        let big = prop_oneof![Just(i64::MIN), Just(i64::MAX), Just((1 << 53) + 1)];
        prop_oneof![
            prop_oneof![-3..3_i64, big].prop_map(OrderValue::Integer),
            prop_oneof![
                -3.0..3.0_f64,
                Just(-0.0),
                Just(9_007_199_254_740_992.0),
                Just(1e300)
            ]
            .prop_map(|number| OrderValue::float(number).unwrap()),
        ]
    }

    #[test]
    fn both_zeros_are_one_and_large_integers_are_not_rounded() {
        assert_eq!(OrderValue::float(-0.0), OrderValue::float(0.0));
        assert_eq!(OrderValue::float(0.0), Some(OrderValue::Integer(0)));
        assert_eq!(OrderValue::float(f64::NAN), None);
        let big = OrderValue::Integer((1 << 53) + 1);
        assert!(big > OrderValue::Float(9_007_199_254_740_992.0));
    }

    proptest! {
        #[test]
        fn values_have_one_order(a in value(), b in value(), c in value()) {
            prop_assert_eq!(a.cmp(&b), b.cmp(&a).reverse());
            if a <= b && b <= c {
                prop_assert!(a <= c);
            }
        }
    }
}
