//! What filters mean, on the cases that users reported.

use serde_json::json;

use super::*;
use crate::payload::filter::{FieldCondition, MinShould, Range};

fn field(key: &str, test: FieldTest) -> Condition {
    Condition::Field(FieldCondition {
        key: key.to_owned(),
        test,
    })
}

fn must(condition: Condition) -> Filter {
    Filter {
        must: vec![condition],
        ..Filter::default()
    }
}

fn holds_filter(filter: &Filter, payload: &Value) -> bool {
    let filter = CompiledFilter::new(filter).unwrap();
    filter.matches(PointId::Num(1), payload.as_object().unwrap())
}

fn holds(condition: Condition, payload: &Value) -> bool {
    holds_filter(&must(condition), payload)
}

fn keywords(values: &[&str]) -> Vec<MatchValue> {
    values
        .iter()
        .map(|value| MatchValue::Keyword((*value).to_owned()))
        .collect()
}

fn range(name: &str, bound: f64) -> FieldTest {
    let mut range = Range::default();
    match name {
        "gt" => range.gt = Some(bound),
        "gte" => range.gte = Some(bound),
        "lt" => range.lt = Some(bound),
        _ => range.lte = Some(bound),
    }
    FieldTest::Range(range)
}

#[test]
fn a_fractional_bound_splits_integers_exactly() {
    let passing = |name, bound| -> Vec<i64> {
        let holds_for =
            |price: &i64| holds(field("price", range(name, bound)), &json!({"price": price}));
        [-2, -1, 1, 2].into_iter().filter(holds_for).collect()
    };
    assert_eq!(passing("gte", 1.5), [2]);
    assert_eq!(passing("gt", 1.5), [2]);
    assert_eq!(passing("lt", 1.5), [-2, -1, 1]);
    assert_eq!(passing("lte", 1.5), [-2, -1, 1]);
    assert_eq!(passing("gte", -1.5), [-1, 1, 2]);
    assert_eq!(passing("lt", -1.5), [-2]);
    assert_eq!(passing("lt", 1e300), [-2, -1, 1, 2]);
    assert_eq!(passing("gte", 1e300), Vec::<i64>::new());
    assert_eq!(passing("gt", -1e300), [-2, -1, 1, 2]);
    assert_eq!(passing("lte", -1e300), Vec::<i64>::new());
}

#[test]
fn a_strict_bound_refuses_its_own_value_in_f64() {
    let bound = -3.402_823_466_385_288_6e38;
    let payload = json!({ "n": bound });
    assert!(!holds(field("n", range("gt", bound)), &payload));
    assert!(!holds(field("n", range("lt", bound)), &payload));
    assert!(holds(field("n", range("gte", bound)), &payload));
    assert!(holds(field("n", range("lte", bound)), &payload));
}

#[test]
fn except_nothing_means_has_a_value_and_any_of_nothing_matches_nothing() {
    for (payload, has_value) in [
        (json!({"k": "a"}), true),
        (json!({"k": 5}), true),
        (json!({"k": false}), true),
        (json!({"k": {}}), true),
        (json!({"k": [null, "a"]}), true),
        (json!({"k": null}), false),
        (json!({"k": []}), false),
        (json!({"k": [null]}), false),
        (json!({}), false),
    ] {
        assert_eq!(
            holds(field("k", FieldTest::Except(vec![])), &payload),
            has_value,
            "{payload}"
        );
        assert!(
            !holds(field("k", FieldTest::Any(vec![])), &payload),
            "{payload}"
        );
    }
}

#[test]
fn except_holds_if_some_element_is_not_listed() {
    let except = || FieldTest::Except(keywords(&["a", "b"]));
    assert!(!holds(field("k", except()), &json!({"k": "a"})));
    assert!(!holds(
        field("k", except()),
        &json!({"k": ["a", "b", null]})
    ));
    assert!(holds(field("k", except()), &json!({"k": ["a", "c"]})));
    assert!(holds(field("k", except()), &json!({"k": 1})));
    assert!(!holds(field("k", except()), &json!({})));
}

#[test]
fn min_should_without_conditions_matches_nothing() {
    for min_count in [0, 1, usize::MAX] {
        let filter = Filter {
            min_should: Some(MinShould {
                conditions: vec![],
                min_count,
            }),
            ..Filter::default()
        };
        assert!(!holds_filter(&filter, &json!({"k": "a"})));
    }
}

#[test]
fn min_should_counts_and_never_overflows() {
    let conditions: Vec<_> = (0..4)
        .map(|at| field(&format!("f{at}"), FieldTest::Value(MatchValue::Bool(true))))
        .collect();
    let payload = json!({"f0": true, "f1": false, "f2": true});
    for (min_count, expected) in [
        (0, true),
        (1, true),
        (2, true),
        (3, false),
        (usize::MAX, false),
    ] {
        let min_should = Some(MinShould {
            conditions: conditions.clone(),
            min_count,
        });
        let filter = Filter {
            min_should,
            ..Filter::default()
        };
        assert_eq!(holds_filter(&filter, &payload), expected, "{min_count}");
    }
}

#[test]
fn both_spellings_of_is_null_and_is_empty_agree() {
    for (payload, path, null, empty) in [
        (json!({"s": null}), "s", true, true),
        (json!({"s": [null, "a"]}), "s", true, false),
        (json!({"s": [null]}), "s", true, false),
        (json!({"s": []}), "s", false, true),
        (json!({}), "s", false, true),
        (json!({"s": "a"}), "s", false, false),
        (json!({"s": ""}), "s", false, false),
        (json!({"a": [{"b": 1}, {"b": []}]}), "a[].b", false, false),
        (json!({"a": [{"b": null}, {"b": []}]}), "a[].b", true, true),
        (json!({"a": []}), "a[].b", false, true),
    ] {
        assert_eq!(
            holds(Condition::IsNull(path.into()), &payload),
            null,
            "{payload}"
        );
        assert_eq!(
            holds(field(path, FieldTest::IsNull(true)), &payload),
            null,
            "{payload}"
        );
        assert_eq!(
            holds(field(path, FieldTest::IsNull(false)), &payload),
            !null,
            "{payload}"
        );
        assert_eq!(
            holds(Condition::IsEmpty(path.into()), &payload),
            empty,
            "{payload}"
        );
        assert_eq!(
            holds(field(path, FieldTest::IsEmpty(true)), &payload),
            empty,
            "{payload}"
        );
        assert_eq!(
            holds(field(path, FieldTest::IsEmpty(false)), &payload),
            !empty,
            "{payload}"
        );
    }
}

#[test]
fn a_dotted_key_is_filterable_when_quoted() {
    let payload = json!({"tb_9.6.11": "yes", "tb_9": {"6": {"11": "no"}}});
    let is = |value: &str| FieldTest::Value(MatchValue::Keyword(value.to_owned()));
    assert!(holds(field("\"tb_9.6.11\"", is("yes")), &payload));
    assert!(holds(field("tb_9.6.11", is("no")), &payload));
    let broken = must(field("rdfs:subClassOf", is("yes")));
    let error = CompiledFilter::new(&broken).unwrap_err().to_string();
    assert!(
        error.starts_with("Invalid json path: `rdfs:subClassOf`"),
        "{error}"
    );
}

#[test]
fn clauses_combine_as_all_of_must_one_of_should_none_of_must_not() {
    let is = |key: &str| field(key, FieldTest::Value(MatchValue::Integer(1)));
    let filter = Filter {
        must: vec![is("m")],
        should: vec![is("s1"), is("s2")],
        must_not: vec![is("n")],
        min_should: None,
    };
    assert!(holds_filter(&filter, &json!({"m": 1, "s2": [0, 1]})));
    assert!(!holds_filter(&filter, &json!({"m": 1})));
    assert!(!holds_filter(&filter, &json!({"s1": 1})));
    assert!(!holds_filter(&filter, &json!({"m": 1, "s1": 1, "n": 1})));
    assert!(holds_filter(&Filter::default(), &json!({})));
}

#[test]
fn has_id_looks_at_the_id_alone() {
    let filter = must(Condition::HasId(vec![PointId::Num(7), PointId::Uuid(9)]));
    let filter = CompiledFilter::new(&filter).unwrap();
    assert!(filter.matches(PointId::Num(7), &Payload::new()));
    assert!(filter.matches(PointId::Uuid(9), &Payload::new()));
    assert!(!filter.matches(PointId::Num(9), &Payload::new()));
}

#[test]
fn a_filter_past_its_limits_is_refused_with_the_limit() {
    let nested = |levels: usize| {
        (1..levels).fold(Filter::default(), |inner, _| must(Condition::Filter(inner)))
    };
    assert!(CompiledFilter::new(&nested(FILTER_DEPTH_MAX)).is_ok());
    let error = CompiledFilter::new(&nested(FILTER_DEPTH_MAX + 1)).unwrap_err();
    assert_eq!(
        error,
        FilterError::TooDeep {
            limit: FILTER_DEPTH_MAX
        }
    );
    let many = |count| Filter {
        must: vec![Condition::HasId(vec![]); count],
        ..Filter::default()
    };
    assert!(CompiledFilter::new(&many(FILTER_CONDITIONS_MAX)).is_ok());
    let error = CompiledFilter::new(&many(FILTER_CONDITIONS_MAX + 1)).unwrap_err();
    assert_eq!(
        error,
        FilterError::TooManyConditions {
            limit: FILTER_CONDITIONS_MAX
        }
    );
}
