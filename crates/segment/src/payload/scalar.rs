//! Comparing one JSON value with what a filter asks for.
//!
//! A value that is an array stands for its elements, one level deep: a test on it holds if it holds
//! for an element. Numbers are compared by their mathematical value: floats as f64, integers exactly
//! even where an f64 cannot hold them (an i64 rounded to f64 would pass bounds that it is beyond).

use std::cmp::Ordering;
use std::collections::HashSet;

use serde_json::{Number, Value};

use super::filter::{Bounds, MatchValue, Range};

/// Whether `test` holds for `value`, or for an element of it if it is an array.
pub(crate) fn any_element(value: &Value, mut test: impl FnMut(&Value) -> bool) -> bool {
    match value {
        Value::Array(items) => items.iter().any(test),
        _ => test(value),
    }
}

/// Null or an empty array: what `is_empty` takes for nothing.
pub(crate) fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        _ => false,
    }
}

/// How many values `values_count` sees in this one.
pub(crate) fn values_in(value: &Value) -> usize {
    match value {
        Value::Null => 0,
        Value::Array(items) => items.len(),
        _ => 1,
    }
}

/// Scalars to match against, split by kind so that a look-up compares and allocates nothing more.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ValueSet {
    keywords: HashSet<String>,
    integers: HashSet<i64>,
    bools: [bool; 2],
}

impl ValueSet {
    /// The set of these values.
    #[must_use]
    pub fn new(values: &[MatchValue]) -> Self {
        let mut set = Self::default();
        for value in values {
            match value {
                MatchValue::Bool(b) => set.bools[usize::from(*b)] = true,
                MatchValue::Integer(i) => {
                    set.integers.insert(*i);
                }
                MatchValue::Keyword(k) => {
                    set.keywords.insert(k.clone());
                }
            }
        }
        set
    }

    /// Whether the scalar is in the set. An integer equals JSON integers only: 1.0 is not 1 here.
    #[must_use]
    pub fn contains(&self, scalar: &Value) -> bool {
        match scalar {
            Value::Bool(b) => self.bools[usize::from(*b)],
            Value::Number(n) => n.as_i64().is_some_and(|i| self.integers.contains(&i)),
            Value::String(s) => self.keywords.contains(s),
            Value::Null | Value::Array(_) | Value::Object(_) => false,
        }
    }
}

impl Range {
    /// Whether an integer lies inside, compared exactly. A NaN bound lets nothing in.
    #[must_use]
    pub fn holds_integer(&self, value: i128) -> bool {
        self.allows(|bound| compare_integer(value, bound))
    }

    /// Whether a float lies inside.
    #[must_use]
    pub fn holds_float(&self, value: f64) -> bool {
        self.allows(|bound| value.partial_cmp(&bound))
    }

    /// Whether a JSON number lies inside.
    #[must_use]
    pub fn holds(&self, number: &Number) -> bool {
        match exact_integer(number) {
            Some(integer) => self.holds_integer(integer),
            None => number.as_f64().is_some_and(|float| self.holds_float(float)),
        }
    }
}

impl<T: Copy> Bounds<T> {
    /// The lower bounds alone.
    pub(crate) fn lower_bounds(&self) -> Self {
        Self {
            gt: self.gt,
            gte: self.gte,
            ..Self::default()
        }
    }

    /// The upper bounds alone.
    pub(crate) fn upper_bounds(&self) -> Self {
        Self {
            lt: self.lt,
            lte: self.lte,
            ..Self::default()
        }
    }

    /// Whether a value that `compare` compares with a bound lies inside.
    fn allows(&self, compare: impl Fn(T) -> Option<Ordering>) -> bool {
        let holds = |bound: Option<T>, good: fn(Ordering) -> bool| {
            bound.is_none_or(|bound| compare(bound).is_some_and(good))
        };
        holds(self.lt, Ordering::is_lt)
            && holds(self.lte, Ordering::is_le)
            && holds(self.gt, Ordering::is_gt)
            && holds(self.gte, Ordering::is_ge)
    }
}

impl<T: Copy + Ord> Bounds<T> {
    /// Whether a value lies inside.
    #[must_use]
    pub fn contains(&self, value: T) -> bool {
        self.allows(|bound| Some(value.cmp(&bound)))
    }
}

/// The number as an integer, if it was written as one.
fn exact_integer(number: &Number) -> Option<i128> {
    number
        .as_i64()
        .map(i128::from)
        .or_else(|| number.as_u64().map(i128::from))
}

/// Exact order of an integer that fits in 65 bits and a float; None for NaN.
pub(crate) fn compare_integer(value: i128, bound: f64) -> Option<Ordering> {
    // 2^65: every integer here is smaller in size, and below it `as i128` is exact.
    const BEYOND: f64 = 36_893_488_147_419_103_232.0;
    if bound.is_nan() {
        return None;
    }
    if bound >= BEYOND {
        return Some(Ordering::Less);
    }
    if bound <= -BEYOND {
        return Some(Ordering::Greater);
    }
    let whole = bound.trunc();
    Some(
        value
            .cmp(&(whole as i128))
            .then_with(|| whole.total_cmp(&bound)),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn range(text: &str, bound: f64) -> Range {
        let mut range = Range::default();
        match text {
            "gt" => range.gt = Some(bound),
            "gte" => range.gte = Some(bound),
            "lt" => range.lt = Some(bound),
            _ => range.lte = Some(bound),
        }
        range
    }

    #[test]
    fn integers_are_compared_exactly_beyond_what_a_float_holds() {
        let big = (1_i128 << 53) + 1; // the first integer that f64 rounds
        assert!(range("gt", 9_007_199_254_740_992.0).holds_integer(big));
        assert!(!range("lte", 9_007_199_254_740_992.0).holds_integer(big));
        assert!(range("lt", 9_223_372_036_854_775_808.0).holds_integer(i128::from(i64::MAX)));
        assert!(!range("gte", 9_223_372_036_854_775_808.0).holds_integer(i128::from(i64::MAX)));
        assert!(range("lt", 18_446_744_073_709_551_616.0).holds_integer(i128::from(u64::MAX)));
        assert!(range("gte", -9_223_372_036_854_775_808.0).holds_integer(i128::from(i64::MIN)));
        for name in ["gt", "gte", "lt", "lte"] {
            assert!(
                !range(name, f64::NAN).holds_integer(0),
                "{name} NaN lets nothing in"
            );
        }
    }

    #[test]
    fn negative_fractions_order_integers_rightly() {
        assert!(range("gt", -1.5).holds_integer(-1));
        assert!(!range("gt", -1.5).holds_integer(-2));
        assert!(range("lt", -1.5).holds_integer(-2));
        assert!(range("gte", -0.0).holds_integer(0));
        assert!(range("lte", -0.0).holds_integer(0));
        assert!(!range("gt", -0.0).holds_integer(0));
    }

    #[test]
    fn an_integer_matches_integers_only() {
        let set = ValueSet::new(&[MatchValue::Integer(1)]);
        assert!(set.contains(&json!(1)));
        assert!(!set.contains(&json!(1.0)));
        assert!(!set.contains(&json!("1")));
        assert!(!set.contains(&json!(true)));
        assert!(!set.contains(&json!(u64::MAX)));
    }

    proptest! {
        #[test]
        fn small_integers_compare_as_their_floats_do(value in -1000_i32..1000, bound in -1000.0..1000.0_f64) {
            prop_assert_eq!(
                compare_integer(i128::from(value), bound),
                f64::from(value).partial_cmp(&bound)
            );
        }
    }
}
