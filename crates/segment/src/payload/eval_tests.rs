//! What filters mean, on the cases that users reported.

use serde_json::json;

use super::*;
use crate::payload::filter::{FieldCondition, MinShould, NestedCondition, Range};

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
    filter.matches(PointId::Num(1), payload.as_object().unwrap(), &|name| {
        name == "v"
    })
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
    let matches = |id| filter.matches(id, &Payload::new(), &|_| true);
    assert!(matches(PointId::Num(7)));
    assert!(matches(PointId::Uuid(9)));
    assert!(!matches(PointId::Num(9)));
}

#[test]
fn has_vector_looks_at_the_names_of_vectors_alone() {
    let payload = json!({"w": 1});
    assert!(holds(Condition::HasVector("v".into()), &payload));
    assert!(!holds(Condition::HasVector("w".into()), &payload));
    assert!(!holds(Condition::HasVector(String::new()), &payload));
    let reads = |condition| {
        CompiledFilter::new(&must(condition))
            .unwrap()
            .reads_vectors()
    };
    let inner = must(Condition::HasVector("v".into()));
    assert!(reads(Condition::Filter(inner.clone())));
    assert!(reads(nested("a", inner)));
    assert!(!reads(Condition::IsNull("v".into())));
}

#[test]
fn the_count_of_values_is_that_of_an_array_or_one_or_none() {
    let holds_from = |key: &str, from, to, payload: &Value| {
        let counts = Bounds {
            gte: Some(from),
            lt: Some(to),
            ..Bounds::default()
        };
        holds(field(key, FieldTest::ValuesCount(counts)), payload)
    };
    for (payload, count) in [
        (json!({}), 0),
        (json!({"a": null}), 0),
        (json!({"a": []}), 0),
        (json!({"a": {}}), 1),
        (json!({"a": "text"}), 1),
        (json!({"a": [null]}), 1),
        (json!({"a": [1, [2, 3], null]}), 3),
    ] {
        for wanted in 0..5 {
            let holds = holds_from("a", wanted, wanted + 1, &payload);
            assert_eq!(holds, wanted == count, "{payload} {wanted}");
        }
    }
    let payload = json!({"a": [{"b": 1}, {"b": [1, 2]}, {"c": 1}]});
    assert!(holds_from("a[].b", 2, 3, &payload) && holds_from("a[].b", 1, 2, &payload));
    assert!(!holds_from("a[].b", 0, 1, &payload) && !holds_from("a[].b", 3, 9, &payload));
    assert!(!holds_from("a[].b", 4, 2, &payload));
}

#[test]
fn a_moment_is_compared_by_time_and_not_by_its_spelling() {
    let range = FieldTest::DatetimeRange(Bounds {
        gte: Datetime::parse("2024-01-01T00:00:00Z"),
        lt: Datetime::parse("2024-01-01T01:00:00Z"),
        ..Bounds::default()
    });
    for (value, inside) in [
        (json!("2024-01-01"), true),
        (json!("2024-01-01T02:30:00+02:00"), true),
        (json!("2023-12-31 20:30:00 -04:00"), true),
        (json!(["never", "2024-01-01 00:59:59.999999"]), true),
        (json!("2024-01-01T01:00:00Z"), false),
        (json!("2024-01-01T00:30:00+02:00"), false),
        (json!(1_704_067_200_000_000_i64), false),
        (json!(null), false),
    ] {
        let payload = json!({ "t": value });
        assert_eq!(
            holds(field("t", range.clone()), &payload),
            inside,
            "{payload}"
        );
    }
}

fn nested(key: &str, filter: Filter) -> Condition {
    let key = key.to_owned();
    Condition::Nested(NestedCondition { key, filter })
}

fn is(key: &str, keyword: &str) -> Condition {
    field(
        key,
        FieldTest::Value(MatchValue::Keyword(keyword.to_owned())),
    )
}

/// Qdrant's example of nested filters.
#[test]
fn nested_clauses_are_decided_on_one_element_at_a_time() {
    let first = json!({"diet": [
        {"food": "leaves", "likes": false}, {"food": "meat", "likes": true},
    ]});
    let second = json!({"diet": [
        {"food": "leaves", "likes": true}, {"food": "meat", "likes": false},
    ]});
    let likes = |flag| field("likes", FieldTest::Value(MatchValue::Bool(flag)));
    let meat_liked = Filter {
        must: vec![is("food", "meat"), likes(true)],
        ..Filter::default()
    };
    let flat = Filter {
        must: vec![
            is("diet[].food", "meat"),
            field("diet[].likes", FieldTest::Value(MatchValue::Bool(true))),
        ],
        ..Filter::default()
    };
    assert!(holds_filter(&flat, &first) && holds_filter(&flat, &second));
    for key in ["diet", "diet[]"] {
        assert!(holds(nested(key, meat_liked.clone()), &first));
        assert!(!holds(nested(key, meat_liked.clone()), &second));
    }
    // "none of" inside: an element for which it holds; outside: no element for which it holds.
    let not_meat = Filter {
        must_not: vec![is("food", "meat")],
        ..Filter::default()
    };
    let has_other = nested("diet", not_meat.clone());
    assert!(holds(has_other.clone(), &first));
    assert!(!holds(
        has_other.clone(),
        &json!({"diet": [{"food": "meat"}]})
    ));
    let no_meat_at_all = Filter {
        must_not: vec![nested("diet", must(is("food", "meat")))],
        ..Filter::default()
    };
    assert!(!holds_filter(&no_meat_at_all, &first));
    assert!(holds_filter(
        &no_meat_at_all,
        &json!({"diet": [{"food": "leaves"}]})
    ));
    assert!(holds_filter(&no_meat_at_all, &json!({})));
    for nothing in [
        json!({}),
        json!({"diet": []}),
        json!({"diet": {"food": "fish"}}),
        json!({"diet": ["fish", null, [{"food": "fish"}]]}),
    ] {
        assert!(!holds(has_other.clone(), &nothing), "{nothing}");
    }
}

#[test]
fn an_element_is_no_point_and_has_arrays_of_its_own() {
    let payload = json!({"a": [{"b": [{"c": 1}, {"c": 2}]}, {"b": [{"c": 3}]}]});
    let c = |n| field("c", FieldTest::Value(MatchValue::Integer(n)));
    let b = |n| nested("b", must(c(n)));
    let both = |x, y| {
        nested(
            "a",
            Filter {
                must: vec![b(x), b(y)],
                ..Filter::default()
            },
        )
    };
    assert!(holds(both(1, 2), &payload) && !holds(both(1, 3), &payload));
    assert!(holds(nested("a[].b", must(c(3))), &payload));
    for of_points in [
        Condition::HasId(vec![PointId::Num(1)]),
        Condition::HasVector("v".into()),
    ] {
        assert!(holds(of_points.clone(), &payload));
        assert!(!holds(nested("a", must(of_points.clone())), &payload));
        let not = Filter {
            must_not: vec![of_points],
            ..Filter::default()
        };
        assert!(holds(nested("a", not), &payload));
    }
}

#[test]
fn a_filter_past_its_limits_is_refused_with_the_limit() {
    let nested = |levels: usize| {
        (1..levels).fold(Filter::default(), |inner, _| must(Condition::Filter(inner)))
    };
    assert!(CompiledFilter::new(&nested(FILTER_DEPTH_MAX)).is_ok());
    let deepest = self::nested("a", nested(FILTER_DEPTH_MAX - 1));
    assert!(CompiledFilter::new(&must(deepest.clone())).is_ok());
    assert!(CompiledFilter::new(&must(Condition::Filter(must(deepest)))).is_err());
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
