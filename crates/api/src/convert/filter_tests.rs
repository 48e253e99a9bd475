use flatwater_segment::PointId;
use serde_json::json;

use super::*;

fn decode(value: Value) -> Result<Filter> {
    filter(&value, "filter".to_owned(), 1)
}

fn one(condition: Value) -> Condition {
    let mut filter = decode(json!({ "must": condition })).unwrap();
    assert_eq!(filter.must.len(), 1);
    filter.must.remove(0)
}

fn test_of(condition: Value) -> FieldTest {
    match one(condition) {
        Condition::Field(field) => field.test,
        other => panic!("not a field condition: {other:?}"),
    }
}

fn refusal(value: Value) -> (u16, String) {
    let refusal = crate::status::refusal(&decode(value).unwrap_err());
    (refusal.code, refusal.text)
}

#[test]
fn clauses_take_one_condition_or_a_list() {
    let test = json!({"key": "a", "match": {"value": 1}});
    let single = decode(json!({"must": test, "should": test, "must_not": test})).unwrap();
    let list = decode(json!({"must": [test], "should": [test], "must_not": [test]})).unwrap();
    assert_eq!(single, list);
    assert_eq!(decode(json!({})).unwrap(), Filter::default());
    assert_eq!(decode(json!({"must": null})).unwrap(), Filter::default());
}

#[test]
fn matches_are_read() {
    let key = |test: Value| json!({"key": "a.b[]", "match": test});
    let word = |w: &str| MatchValue::Keyword(w.to_owned());
    assert_eq!(
        test_of(key(json!({"value": "x"}))),
        FieldTest::Value(word("x"))
    );
    assert_eq!(
        test_of(key(json!({"value": -3}))),
        FieldTest::Value(MatchValue::Integer(-3))
    );
    assert_eq!(
        test_of(key(json!({"value": true}))),
        FieldTest::Value(MatchValue::Bool(true))
    );
    assert_eq!(
        test_of(key(json!({"any": ["x", "y"]}))),
        FieldTest::Any(vec![word("x"), word("y")])
    );
    assert_eq!(
        test_of(key(json!({"except": [1]}))),
        FieldTest::Except(vec![MatchValue::Integer(1)])
    );
    assert_eq!(test_of(key(json!({"any": []}))), FieldTest::Any(Vec::new()));
}

#[test]
fn ranges_are_of_numbers_or_of_moments() {
    let range = test_of(json!({"key": "n", "range": {"gte": 1, "lt": 2.5, "gt": null}}));
    let expected = Range {
        lt: Some(2.5),
        gte: Some(1.0),
        ..Range::default()
    };
    assert_eq!(range, FieldTest::Range(expected));
    let range =
        test_of(json!({"key": "n", "range": {"gt": "1970-01-01T00:00:01Z", "lte": "1970-01-02"}}));
    let expected = Bounds {
        gt: Some(Datetime::from_micros(1_000_000)),
        lte: Some(Datetime::from_micros(86_400_000_000)),
        ..Bounds::default()
    };
    assert_eq!(range, FieldTest::DatetimeRange(expected));
    assert_eq!(
        test_of(json!({"key": "n", "range": {}})),
        FieldTest::Range(Range::default())
    );
    for (bounds, part) in [
        (
            json!({"gt": "soon"}),
            "range.gt: 'soon' is not in a supported date/time format, please use RFC 3339",
        ),
        (
            json!({"gt": "2024-01-01", "lt": 5}),
            "range.lt: invalid value: 5, expected a string",
        ),
        (json!({"gt": true}), "range.gt: invalid value: true"),
    ] {
        let (code, text) = refusal(json!({"must": [{"key": "n", "range": bounds}]}));
        assert_eq!(code, 400);
        assert!(text.contains(part), "{text}");
    }
}

#[test]
fn is_empty_and_is_null_have_two_spellings() {
    assert_eq!(
        one(json!({"is_empty": {"key": "a"}})),
        Condition::IsEmpty("a".to_owned())
    );
    assert_eq!(
        one(json!({"is_null": {"key": "a"}})),
        Condition::IsNull("a".to_owned())
    );
    assert_eq!(
        test_of(json!({"key": "a", "is_empty": true})),
        FieldTest::IsEmpty(true)
    );
    assert_eq!(
        test_of(json!({"key": "a", "is_null": false})),
        FieldTest::IsNull(false)
    );
}

#[test]
fn has_id_takes_integers_and_uuids() {
    let ids = one(json!({"has_id": [1, "00000000-0000-0000-0000-000000000002"]}));
    assert_eq!(
        ids,
        Condition::HasId(vec![PointId::Num(1), PointId::Uuid(2)])
    );
    let (code, text) = refusal(json!({"must": [{"has_id": [-1]}]}));
    assert_eq!(code, 400);
    assert!(text.contains("value -1 is not a valid point ID"), "{text}");
}

#[test]
fn counts_vectors_and_nested_filters_are_read() {
    let counts = test_of(json!({"key": "a", "values_count": {"gte": 1, "lt": 4, "gt": null}}));
    let expected = Bounds {
        gte: Some(1),
        lt: Some(4),
        ..Bounds::default()
    };
    assert_eq!(counts, FieldTest::ValuesCount(expected));
    for name in ["", "image"] {
        assert_eq!(
            one(json!({ "has_vector": name })),
            Condition::HasVector(name.to_owned())
        );
    }
    let inner = json!({"must": [{"key": "b", "is_null": true}], "should": {"has_id": [1]}});
    assert_eq!(
        one(json!({"nested": {"key": "a.list", "filter": inner}})),
        Condition::Nested(NestedCondition {
            key: "a.list".to_owned(),
            filter: decode(inner).unwrap(),
        })
    );
    for (bad, part) in [
        (
            json!({"key": "a", "values_count": {"gt": -1}}),
            "values_count.gt",
        ),
        (
            json!({"key": "a", "values_count": {"gt": 1.5}}),
            "values_count.gt",
        ),
        (json!({"key": "a", "values_count": 3}), "values_count"),
        (json!({"has_vector": 3}), "has_vector"),
        (
            json!({"has_vector": null}),
            "missing field `filter.must[0].has_vector`",
        ),
        (
            json!({"nested": {"key": "a"}}),
            "missing field `filter.must[0].nested.filter`",
        ),
        (
            json!({"nested": {"filter": {}}}),
            "missing field `filter.must[0].nested.key`",
        ),
        (
            json!({"nested": {"key": "a b", "filter": {}}}),
            "Invalid json path",
        ),
        (
            json!({"nested": {"key": "a", "filter": {"musst": []}}}),
            "unknown field `musst`",
        ),
    ] {
        let (code, text) = refusal(json!({ "must": [bad] }));
        assert_eq!(code, 400);
        assert!(text.contains(part), "{text}");
    }
}

#[test]
fn min_should_needs_at_least_one() {
    let test = json!({"key": "a", "match": {"value": 1}});
    let ok = decode(json!({"min_should": {"conditions": [test], "min_count": 1}})).unwrap();
    assert_eq!(
        ok.min_should.map(|m| (m.conditions.len(), m.min_count)),
        Some((1, 1))
    );
    let none = decode(json!({"min_should": {"conditions": [], "min_count": 1}})).unwrap();
    assert_eq!(
        none.min_should,
        Some(MinShould {
            conditions: Vec::new(),
            min_count: 1
        })
    );
    assert_eq!(
        refusal(json!({"min_should": {"conditions": [test], "min_count": 0}})),
        (
            422,
            "Validation error in JSON body: \
             [filter.min_should.min_count: value 0 invalid, must be 1 or larger]"
                .to_owned()
        )
    );
    let huge = decode(json!({"min_should": {"conditions": [test], "min_count": u64::MAX}}));
    assert_eq!(
        huge.unwrap().min_should.map(|m| m.min_count),
        Some(usize::MAX)
    );
}

#[test]
fn what_is_not_served_yet_is_named() {
    for name in TESTS_NOT_SERVED {
        let (code, text) = refusal(json!({"must": [{"key": "a", name: {"x": 1}}]}));
        assert_eq!(code, 400);
        assert!(
            text.contains(&format!("`filter.must[0].{name}` is not served yet")),
            "{text}"
        );
    }
    for name in CONDITIONS_NOT_SERVED {
        let (code, text) = refusal(json!({"should": {name: {"key": "a"}}}));
        assert_eq!(code, 400);
        assert!(
            text.contains(&format!("`filter.should.{name}` is not served yet")),
            "{text}"
        );
    }
    for name in MATCHES_NOT_SERVED {
        let (code, text) = refusal(json!({"must_not": [{"key": "a", "match": {name: "x"}}]}));
        assert_eq!(code, 400);
        assert!(
            text.contains(&format!("match.{name}` is not served yet")),
            "{text}"
        );
    }
}

#[test]
fn nonsense_is_refused() {
    for bad in [
        json!([]),
        json!({"musst": []}),
        json!({"must": [{"foo": 1}]}),
        json!({"must": [1]}),
        json!({"must": [{"key": 1, "match": {"value": 1}}]}),
        json!({"must": [{"key": "a", "match": {"value": 1.5}}]}),
        json!({"must": [{"key": "a", "match": {"value": 9_223_372_036_854_775_808_u64}}]}),
        json!({"must": [{"key": "a", "match": {"any": ["x", 1]}}]}),
        json!({"must": [{"key": "a", "match": {}}]}),
        json!({"must": [{"key": "a b", "match": {"value": 1}}]}),
        json!({"must": [{"key": "a", "match": {"value": 1}, "range": {"gt": 1}}]}),
        json!({"must": [{"is_empty": "a"}]}),
    ] {
        let (code, text) = refusal(bad.clone());
        assert_eq!(code, 400, "{bad} -> {text}");
    }
    assert_eq!(refusal(json!({"must": [{"key": "a"}]})).0, 422);
}

#[test]
fn sixty_four_filters_may_nest_and_sixty_five_may_not() {
    let nested = |levels: usize| {
        let mut value = json!({"must": [{"key": "a", "match": {"value": 1}}]});
        for _ in 1..levels {
            value = json!({ "must": [value] });
        }
        value
    };
    assert!(decode(nested(64)).is_ok());
    let (code, text) = refusal(nested(65));
    assert_eq!(code, 400);
    assert!(text.contains("nested deeper than 64 levels"), "{text}");
    // The whole way from bytes, where the reader's own limit would cut in first.
    let body = json!({ "filter": nested(64) }).to_string();
    assert!(super::super::points::decode_count(body.as_bytes()).is_ok());
}
