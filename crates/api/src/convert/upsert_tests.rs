use flatwater_segment::PointId;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn decode(body: &Value) -> Result<Vec<PointInput>> {
    decode_upsert(body.to_string().as_bytes())
}

fn refusal(body: &str) -> (u16, String) {
    let refusal = crate::status::refusal(&decode_upsert(body.as_bytes()).unwrap_err());
    (refusal.code, refusal.text)
}

fn payload(value: Value) -> Option<Payload> {
    match value {
        Value::Object(map) => Some(map),
        _ => None,
    }
}

#[test]
fn list_and_batch_form_give_the_same_points() {
    let list = json!({"points": [
        {"id": 1, "vector": [1, 2.5], "payload": {"a": 1}},
        {"id": "00000000-0000-0000-0000-000000000002", "vector": [3, -4], "payload": null},
    ]});
    let batch = json!({"batch": {
        "ids": [1, "00000000-0000-0000-0000-000000000002"],
        "vectors": [[1, 2.5], [3, -4]],
        "payloads": [{"a": 1}, null],
    }});
    let expected = vec![
        PointInput {
            id: PointId::Num(1),
            vectors: vec![(String::new(), vec![1.0, 2.5])],
            payload: payload(json!({"a": 1})),
        },
        PointInput {
            id: PointId::Uuid(2),
            vectors: vec![(String::new(), vec![3.0, -4.0])],
            payload: None,
        },
    ];
    assert_eq!(decode(&list).unwrap(), expected);
    assert_eq!(decode(&batch).unwrap(), expected);
}

#[test]
fn named_vectors_are_read_in_both_forms() {
    let list = json!({"points": [{"id": 1, "vector": {"a": [1], "b": [2, 3]}}]});
    let batch = json!({"batch": {"ids": [1], "vectors": {"a": [[1]], "b": [[2, 3]]}}});
    let expected = vec![
        ("a".to_owned(), vec![1.0]),
        ("b".to_owned(), vec![2.0, 3.0]),
    ];
    for body in [list, batch] {
        let points = decode(&body).unwrap();
        assert_eq!(points.len(), 1);
        assert_eq!(points[0].vectors, expected);
    }
    let none = decode(&json!({"points": [{"id": 1, "vector": {}}]})).unwrap();
    assert!(none[0].vectors.is_empty());
}

#[test]
fn numbers_that_are_no_finite_f32_are_named_with_point_and_vector() {
    for (element, shown) in [
        ("1e400", "1e400"),
        ("-1e400", "-1e400"),
        ("1e39", "1e39"),
        ("null", "null"),
        ("NaN", "NaN"),
        ("Infinity", "Infinity"),
        ("-Infinity", "-Infinity"),
        ("\"x\"", "\"x\""),
        ("true", "true"),
    ] {
        let expected = |name: &str| {
            format!(
                "Wrong input: point 77, vector `{name}`: element 1 is {shown}, \
                 which is not a finite 32-bit float"
            )
        };
        let good = r#"{"id":5,"vector":[0,0],"payload":{"note":"NaN \" Infinity"}}"#;
        // The id may stand behind the vector.
        let list = format!(r#"{{"points":[{good},{{"vector":[1,{element}],"id":77}}]}}"#);
        assert_eq!(refusal(&list), (400, expected("")));
        let named = format!(r#"{{"points":[{{"id":77,"vector":{{"img":[1,{element}]}}}}]}}"#);
        assert_eq!(refusal(&named), (400, expected("img")));
        let batch = format!(r#"{{"batch":{{"ids":[5,77],"vectors":[[0,0],[1,{element}]]}}}}"#);
        assert_eq!(refusal(&batch), (400, expected("")));
        let column = format!(r#"{{"batch":{{"ids":[77],"vectors":{{"img":[[1,{element}]]}}}}}}"#);
        assert_eq!(refusal(&column), (400, expected("img")));
    }
}

#[test]
fn the_largest_f32_is_accepted() {
    let points = decode_upsert(br#"{"points":[{"id":1,"vector":[3.4028234e38,-3.4028234e38]}]}"#);
    assert_eq!(points.unwrap()[0].vectors[0].1, vec![f32::MAX, f32::MIN]);
}

#[test]
fn kinds_of_vectors_not_served_yet_are_named() {
    for (vector, what) in [
        (json!({"t": {"indices": [1], "values": [0.5]}}), "sparse"),
        (json!([[1, 2], [3, 4]]), "multivectors"),
        (json!({"m": [[1, 2]]}), "multivectors"),
        (json!({"text": "hello", "model": "bm25"}), "inference"),
    ] {
        let (code, text) = refusal(&json!({"points": [{"id": 1, "vector": vector}]}).to_string());
        assert_eq!(code, 400);
        assert!(
            text.contains(what) && text.contains("is not served yet"),
            "{text}"
        );
    }
}

#[test]
fn fields_not_served_yet_are_named_and_null_ones_pass() {
    for (field, value) in [
        ("shard_key", json!("a")),
        ("update_filter", json!({"must": []})),
        ("update_mode", json!("insert_only")),
        ("update_mode", json!("update_only")),
    ] {
        let (code, text) = refusal(&json!({"points": [], field: value}).to_string());
        assert_eq!(code, 400);
        assert!(
            text.contains(field) && text.contains("is not served yet"),
            "{text}"
        );
        assert!(decode(&json!({"points": [], field: null})).is_ok());
    }
    assert!(decode(&json!({"points": [], "update_mode": "upsert", "unknown": 1})).is_ok());
    assert!(
        refusal(r#"{"points":[],"update_mode":"merge"}"#)
            .1
            .contains("unknown variant `merge`")
    );
}

#[test]
fn malformed_bodies_are_format_errors() {
    for body in [
        "",
        "{",
        "[]",
        "{}",
        r#"{"points":[],"batch":{"ids":[],"vectors":[]}}"#,
        r#"{"points":[{"id":1}]}"#,
        r#"{"points":[{"vector":[1]}]}"#,
        r#"{"points":[{"id":1,"vector":[1],"payload":3}]}"#,
        r#"{"points":[{"id":1,"vector":{"a":[1],"a":[2]}}]}"#,
        r#"{"points":{}}"#,
    ] {
        let (code, text) = refusal(body);
        assert_eq!(code, 400, "{body}");
        assert!(
            text.starts_with("Format error in JSON body: "),
            "{body} -> {text}"
        );
    }
}

#[test]
fn invalid_ids_are_named() {
    for (id, shown) in [
        ("-1", "-1"),
        ("1.5", "1.5"),
        ("\"abc\"", "abc"),
        ("18446744073709551616", "1844674407370955"),
    ] {
        let (code, text) = refusal(&format!(r#"{{"points":[{{"id":{id},"vector":[1]}}]}}"#));
        assert_eq!(code, 400);
        assert!(text.contains(&format!("value {shown}")), "{text}");
        assert!(text.contains("is not a valid point ID"), "{text}");
    }
}

#[test]
fn columns_of_different_lengths_are_refused() {
    let (code, text) = refusal(r#"{"batch":{"ids":[1,2],"vectors":[[1]]}}"#);
    assert_eq!((code, text.contains("(2 != 1)")), (400, true), "{text}");
    let (_, text) = refusal(r#"{"batch":{"ids":[1],"vectors":[[1]],"payloads":[]}}"#);
    assert!(
        text.contains("number of ids and payloads must be equal (1 != 0)"),
        "{text}"
    );
}

#[test]
fn payload_deeper_than_64_is_refused() {
    let nested = |levels: usize| {
        let mut value = json!(1);
        for _ in 0..levels {
            value = json!({ "a": value });
        }
        json!({"points": [{"id": 9, "vector": [1], "payload": value}]})
    };
    assert!(decode(&nested(64)).is_ok());
    let (code, text) = refusal(&nested(65).to_string());
    assert_eq!(code, 400);
    assert!(text.contains("point 9") && text.contains("64"), "{text}");
}

/// Any JSON at all, biased towards the words of an upsert body.
pub(crate) fn any_json() -> impl Strategy<Value = Value> {
    let word = prop_oneof![
        Just("points"),
        Just("batch"),
        Just("ids"),
        Just("vectors"),
        Just("payloads"),
        Just("id"),
        Just("vector"),
        Just("payload"),
        Just("filter"),
        Just("must"),
        Just("key"),
        Just("match"),
        Just("value"),
        Just("query"),
        Just("limit"),
        Just("params"),
        Just("size"),
        Just("distance"),
        Just("min_should"),
        Just("conditions"),
        Just("min_count"),
        Just("range"),
        Just("has_id"),
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "\\PC{0,8}".prop_map(Value::from),
        word.clone().prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 48, 6, move |inner| {
        let key = prop_oneof![4 => word.clone().prop_map(str::to_owned), 1 => "\\PC{0,4}"];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::btree_map(key, inner, 0..6)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn any_json_is_answered_and_never_panics(value in any_json()) {
        let bytes = value.to_string().into_bytes();
        let template = flatwater_engine::config::collection::CollectionConfig::default();
        // What matters is that each returns; most answers are refusals.
        let _ = decode_upsert(&bytes);
        let _ = super::super::points::decode_delete(&bytes);
        let _ = super::super::points::decode_set_payload(&bytes);
        let _ = super::super::points::decode_retrieve(&bytes);
        let _ = super::super::points::decode_scroll(&bytes);
        let _ = super::super::points::decode_count(&bytes);
        let _ = super::super::query::decode_query(&bytes);
        let _ = super::super::payload::decode_field_index(&bytes);
        let _ = super::super::collections::decode_create(&bytes, &template);
    }

    #[test]
    fn any_bytes_are_answered_and_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = decode_upsert(&bytes);
        let _ = super::super::query::decode_query(&bytes);
    }

    #[test]
    fn cut_or_changed_bodies_never_panic(cut in 0_usize..200, at in 0_usize..200, byte in any::<u8>()) {
        let body = json!({"points": [
            {"id": 1, "vector": {"a": [1.5, -2e10]}, "payload": {"k": ["\"", {"x": null}]}},
            {"id": "00000000-0000-0000-0000-000000000002", "vector": [0.25]},
        ]});
        let mut bytes = body.to_string().into_bytes();
        let at = at % bytes.len();
        bytes[at] = byte;
        bytes.truncate(cut);
        let _ = decode_upsert(&bytes);
    }

    #[test]
    fn vectors_come_through_bit_by_bit(vector in prop::collection::vec(any::<f32>(), 1..40)) {
        prop_assume!(vector.iter().all(|x| x.is_finite()));
        let body = json!({"points": [{"id": 3, "vector": vector}]});
        let points = decode(&body).unwrap();
        prop_assert_eq!(&points[0].vectors[0].1, &vector);
    }
}
