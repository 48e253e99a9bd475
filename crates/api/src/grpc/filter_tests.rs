use qdrant_client::qdrant::{
    Condition, DatetimeRange, FieldCondition, Filter, GeoRadius, HasIdCondition,
    HasVectorCondition, IsEmptyCondition, IsNullCondition, Match, MinShould, NestedCondition,
    Range, RepeatedIntegers, RepeatedStrings, SliceCondition, Timestamp, ValuesCount,
};
use serde_json::json;

use super::*;
use crate::convert::points::count_of;
use crate::grpc::ids::encode;
use crate::status::grpc_refusal;

fn one(condition: ConditionOneOf) -> Condition {
    Condition {
        condition_one_of: Some(condition),
    }
}

fn field(condition: FieldCondition) -> Condition {
    one(ConditionOneOf::Field(condition))
}

fn matching(value: MatchValue) -> Condition {
    field(FieldCondition {
        key: "k".into(),
        r#match: Some(Match {
            match_value: Some(value),
        }),
        ..Default::default()
    })
}

fn must(condition: Condition) -> Filter {
    Filter {
        must: vec![condition],
        ..Default::default()
    }
}

fn strings(list: &[&str]) -> RepeatedStrings {
    RepeatedStrings {
        strings: list.iter().map(|text| (*text).to_owned()).collect(),
    }
}

/// What a filter means, or the text of its refusal.
fn read(filter: Filter) -> std::result::Result<flatwater_segment::payload::filter::Filter, String> {
    let shaped = shape(filter, "filter")
        .and_then(|shaped| count_of(&Shape::default().with("filter", Some(shaped)).into_map()));
    match shaped {
        Ok(filter) => Ok(filter.expect("there is a filter")),
        Err(error) => Err(grpc_refusal(&error).text),
    }
}

#[test]
fn every_condition_means_what_it_means_in_rest() {
    let id = |n| encode(flatwater_segment::PointId::Num(n));
    let cases = [
        (
            matching(MatchValue::Keyword("a".into())),
            json!({"key": "k", "match": {"value": "a"}}),
        ),
        (
            matching(MatchValue::Integer(-3)),
            json!({"key": "k", "match": {"value": -3}}),
        ),
        (
            matching(MatchValue::Boolean(true)),
            json!({"key": "k", "match": {"value": true}}),
        ),
        (
            matching(MatchValue::Keywords(strings(&["a", "b"]))),
            json!({"key": "k", "match": {"any": ["a", "b"]}}),
        ),
        (
            matching(MatchValue::ExceptKeywords(strings(&[]))),
            json!({"key": "k", "match": {"except": []}}),
        ),
        (
            matching(MatchValue::Integers(RepeatedIntegers {
                integers: vec![1, 2],
            })),
            json!({"key": "k", "match": {"any": [1, 2]}}),
        ),
        (
            matching(MatchValue::ExceptIntegers(RepeatedIntegers {
                integers: vec![7],
            })),
            json!({"key": "k", "match": {"except": [7]}}),
        ),
        (
            field(FieldCondition {
                key: "k".into(),
                range: Some(Range {
                    lt: Some(2.5),
                    gte: Some(-1.0),
                    ..Default::default()
                }),
                ..Default::default()
            }),
            json!({"key": "k", "range": {"lt": 2.5, "gte": -1.0}}),
        ),
        (
            field(FieldCondition {
                key: "k".into(),
                datetime_range: Some(DatetimeRange {
                    gt: Some(Timestamp {
                        seconds: 1_709_209_805,
                        nanos: 250_000_999,
                    }),
                    lte: Some(Timestamp {
                        seconds: -1,
                        nanos: 0,
                    }),
                    ..Default::default()
                }),
                ..Default::default()
            }),
            json!({"key": "k", "range": {
                "gt": "2024-02-29T12:30:05.250Z", "lte": "1969-12-31 23:59:59",
            }}),
        ),
        (
            field(FieldCondition {
                key: "k".into(),
                is_empty: Some(false),
                ..Default::default()
            }),
            json!({"key": "k", "is_empty": false}),
        ),
        (
            field(FieldCondition {
                key: "k".into(),
                is_null: Some(true),
                ..Default::default()
            }),
            json!({"key": "k", "is_null": true}),
        ),
        (
            field(FieldCondition {
                key: "k".into(),
                values_count: Some(ValuesCount {
                    gt: Some(0),
                    lte: Some(u64::MAX),
                    ..Default::default()
                }),
                ..Default::default()
            }),
            json!({"key": "k", "values_count": {"gt": 0, "lte": u64::MAX}}),
        ),
        (
            one(ConditionOneOf::HasVector(HasVectorCondition {
                has_vector: "image".into(),
            })),
            json!({"has_vector": "image"}),
        ),
        (
            one(ConditionOneOf::Nested(NestedCondition {
                key: "a".into(),
                filter: Some(Filter {
                    must_not: vec![matching(MatchValue::Integer(2))],
                    ..Default::default()
                }),
            })),
            json!({"nested": {
                "key": "a", "filter": {"must_not": [{"key": "k", "match": {"value": 2}}]},
            }}),
        ),
        (
            one(ConditionOneOf::IsEmpty(IsEmptyCondition {
                key: "a.b".into(),
            })),
            json!({"is_empty": {"key": "a.b"}}),
        ),
        (
            one(ConditionOneOf::IsNull(IsNullCondition {
                key: "a[].b".into(),
            })),
            json!({"is_null": {"key": "a[].b"}}),
        ),
        (
            one(ConditionOneOf::HasId(HasIdCondition {
                has_id: vec![id(1), id(2)],
            })),
            json!({"has_id": [1, 2]}),
        ),
        (
            one(ConditionOneOf::Filter(Filter {
                should: vec![matching(MatchValue::Integer(1))],
                must_not: vec![matching(MatchValue::Integer(2))],
                min_should: Some(MinShould {
                    conditions: vec![matching(MatchValue::Integer(3))],
                    min_count: 1,
                }),
                ..Default::default()
            })),
            json!({
                "should": [{"key": "k", "match": {"value": 1}}],
                "must_not": [{"key": "k", "match": {"value": 2}}],
                "min_should": {"conditions": [{"key": "k", "match": {"value": 3}}], "min_count": 1},
            }),
        ),
    ];
    for (condition, rest) in cases {
        let body = json!({ "filter": { "must": [rest] } }).to_string();
        let rest = crate::convert::points::decode_count(body.as_bytes()).unwrap();
        assert_eq!(Some(read(must(condition)).unwrap()), rest, "{body}");
    }
}

#[test]
fn what_is_not_served_yet_is_named_by_its_place() {
    let with = |change: fn(&mut FieldCondition)| {
        let mut condition = FieldCondition {
            key: "k".into(),
            ..Default::default()
        };
        change(&mut condition);
        field(condition)
    };
    for (condition, name) in [
        (
            one(ConditionOneOf::Slice(SliceCondition::default())),
            "slice",
        ),
        (
            with(|c| c.geo_radius = Some(GeoRadius::default())),
            "geo_radius",
        ),
        (matching(MatchValue::Text("x".into())), "match.text"),
        (matching(MatchValue::Phrase("x".into())), "match.phrase"),
        (matching(MatchValue::TextAny("x".into())), "match.text_any"),
        (matching(MatchValue::Prefix("x".into())), "match.prefix"),
    ] {
        assert_eq!(
            read(must(condition)).unwrap_err(),
            format!(
                "Wrong input: `filter.must[0].{name}` is not served yet by this version of Flatwater"
            )
        );
    }
}

#[test]
fn faults_have_the_texts_of_rest() {
    let nan = field(FieldCondition {
        key: "k".into(),
        range: Some(Range {
            gte: Some(f64::NAN),
            ..Default::default()
        }),
        ..Default::default()
    });
    let min_should = Filter {
        min_should: Some(MinShould::default()),
        ..Default::default()
    };
    let bare = field(FieldCondition {
        key: "k".into(),
        ..Default::default()
    });
    for (filter, part) in [
        (
            must(Condition::default()),
            "Format error in body: missing field `filter.must[0]`",
        ),
        (
            must(nan),
            "Wrong input: filter.must[0].range.gte: NaN is not a finite number",
        ),
        (
            min_should,
            "Validation error in body: [filter.min_should.min_count: value 0 invalid, must be 1",
        ),
        (
            must(one(ConditionOneOf::Nested(NestedCondition {
                key: "a".into(),
                filter: None,
            }))),
            "missing field `filter.must[0].nested.filter`",
        ),
        (
            must(field(FieldCondition {
                key: "k".into(),
                range: Some(Range::default()),
                datetime_range: Some(DatetimeRange::default()),
                ..Default::default()
            })),
            "filter.must[0]: `range` and `datetime_range` are both given",
        ),
        (
            must(bare),
            "Validation error in body: [filter.must[0]: At least one field condition",
        ),
        (
            must(matching(MatchValue::Substring("x".into()))),
            "filter.must[0].match: expected one of",
        ),
        (
            must(one(ConditionOneOf::IsNull(IsNullCondition {
                key: "a b".into(),
            }))),
            "Wrong input: Invalid json path: 'a b'",
        ),
    ] {
        let text = read(filter).unwrap_err();
        assert!(text.contains(part), "{text}");
    }
}
