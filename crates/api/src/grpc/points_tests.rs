use std::collections::HashMap;

use flatwater_engine::collection::update::Selection;
use flatwater_engine::query::request::{Direction, OrderValue, PayloadSelector, VectorSelector};
use flatwater_segment::PointId;
use qdrant_client::qdrant::points_selector::PointsSelectorOneOf;
use qdrant_client::qdrant::vectors::VectorsOptions;
use qdrant_client::qdrant::{
    DenseVector, NamedVectors, OrderBy, PointStruct, PointsIdsList, PointsSelector,
    ShardKeySelector, SparseVector, Vector, Vectors, WithPayloadSelector, vector,
    with_payload_selector,
};

use super::*;
use crate::grpc::ids::encode;
use crate::status::grpc_refusal;

fn text<T: std::fmt::Debug>(result: Result<T>) -> String {
    grpc_refusal(&result.unwrap_err()).text
}

fn dense(data: &[f32]) -> Vector {
    Vector {
        vector: Some(vector::Vector::Dense(DenseVector {
            data: data.to_vec(),
        })),
        ..Default::default()
    }
}

#[allow(deprecated, reason = "clients before 1.16 send this field")]
fn old(data: &[f32]) -> Vector {
    Vector {
        data: data.to_vec(),
        ..Default::default()
    }
}

fn point(n: u64, options: VectorsOptions) -> PointStruct {
    PointStruct {
        id: Some(encode(PointId::Num(n))),
        payload: HashMap::new(),
        vectors: Some(Vectors {
            vectors_options: Some(options),
        }),
    }
}

fn upsert(points: Vec<PointStruct>) -> Result<Vec<PointInput>> {
    let request = qdrant::UpsertPoints {
        points,
        ..Default::default()
    };
    decode_upsert(request).map(|update| match update {
        Update::Upsert(points) => points,
        other => panic!("another update: {other:?}"),
    })
}

#[test]
fn both_encodings_of_a_vector_are_the_same_vector() {
    let points = upsert(vec![
        point(1, VectorsOptions::Vector(dense(&[1.0, -0.5]))),
        point(2, VectorsOptions::Vector(old(&[1.0, -0.5]))),
    ])
    .unwrap();
    for point in &points {
        assert_eq!(point.vectors, vec![(String::new(), vec![1.0, -0.5])]);
        assert_eq!(point.payload, None);
    }
}

#[test]
fn named_vectors_come_in_the_order_of_their_names() {
    let vectors = HashMap::from([
        ("b".to_owned(), dense(&[2.0])),
        ("a".to_owned(), old(&[1.0])),
    ]);
    let points = upsert(vec![point(
        1,
        VectorsOptions::Vectors(NamedVectors { vectors }),
    )]);
    let expected = vec![("a".to_owned(), vec![1.0]), ("b".to_owned(), vec![2.0])];
    assert_eq!(points.unwrap()[0].vectors, expected);
    let empty = VectorsOptions::Vectors(NamedVectors::default());
    assert_eq!(upsert(vec![point(1, empty)]).unwrap()[0].vectors, vec![]);
}

#[test]
fn a_number_that_is_not_finite_is_named_with_its_point_and_vector() {
    for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let text = text(upsert(vec![
            point(1, VectorsOptions::Vector(dense(&[1.0]))),
            point(7, VectorsOptions::Vector(dense(&[0.0, bad]))),
        ]));
        assert_eq!(
            text,
            format!(
                "Wrong input: point 7, vector ``: element 1 is {bad}, \
                 which is not a finite 32-bit float"
            )
        );
    }
}

#[test]
fn what_is_missing_or_not_served_in_an_upsert_is_named() {
    let bare = PointStruct::default();
    assert_eq!(
        text(upsert(vec![bare])),
        "Format error in body: missing field `points[0].id`"
    );
    let mut no_vectors = point(1, VectorsOptions::Vector(dense(&[1.0])));
    no_vectors.vectors = None;
    assert_eq!(
        text(upsert(vec![no_vectors])),
        "Format error in body: missing field `points[0].vectors`"
    );
    let sparse = Vector {
        vector: Some(vector::Vector::Sparse(SparseVector::default())),
        ..Default::default()
    };
    let sparse = text(upsert(vec![point(4, VectorsOptions::Vector(sparse))]));
    assert!(
        sparse.contains("`point 4, vector `` as a sparse vector` is not served"),
        "{sparse}"
    );
    type Change = fn(&mut qdrant::UpsertPoints);
    let changes: [(Change, &str); 4] = [
        (
            |r| r.update_filter = Some(qdrant::Filter::default()),
            "`update_filter`",
        ),
        (|r| r.update_mode = Some(1), "`update_mode: InsertOnly`"),
        (|r| r.update_mode = Some(9), "update_mode: invalid value: 9"),
        (
            |r| {
                r.shard_key_selector = Some(ShardKeySelector {
                    shard_keys: vec![qdrant::ShardKey::default()],
                    fallback: None,
                });
            },
            "`shard_key_selector`",
        ),
    ];
    for (change, name) in changes {
        let mut request = qdrant::UpsertPoints::default();
        change(&mut request);
        let text = text(decode_upsert(request));
        assert!(text.contains(name), "{text}");
    }
}

#[test]
fn a_selector_is_ids_or_a_filter_and_must_be_there() {
    let delete = |selector| {
        decode_delete(qdrant::DeletePoints {
            points: selector,
            ..Default::default()
        })
    };
    let of = |one| {
        Some(PointsSelector {
            points_selector_one_of: Some(one),
        })
    };
    let ids = PointsIdsList {
        ids: vec![encode(PointId::Num(3)), encode(PointId::Uuid(9))],
    };
    assert_eq!(
        delete(of(PointsSelectorOneOf::Points(ids))).unwrap(),
        Update::Delete(Selection::Ids(vec![PointId::Num(3), PointId::Uuid(9)]))
    );
    assert_eq!(
        delete(of(PointsSelectorOneOf::Filter(qdrant::Filter::default()))).unwrap(),
        Update::Delete(Selection::Filter(Filter::default()))
    );
    assert_eq!(
        text(delete(None)),
        "Format error in body: expected one of `points` and `filter`"
    );
}

#[test]
fn reads_have_the_defaults_of_rest() {
    let get = decode_get(qdrant::GetPoints {
        ids: vec![encode(PointId::Num(1))],
        ..Default::default()
    })
    .unwrap();
    assert_eq!(get.ids, vec![PointId::Num(1)]);
    assert_eq!(
        (get.with_payload, get.with_vector),
        (PayloadSelector::All, VectorSelector::None)
    );
    let scroll = decode_scroll(qdrant::ScrollPoints {
        offset: Some(encode(PointId::Uuid(5))),
        with_payload: Some(WithPayloadSelector {
            selector_options: Some(with_payload_selector::SelectorOptions::Enable(false)),
        }),
        ..Default::default()
    })
    .unwrap();
    assert_eq!((scroll.limit, scroll.offset), (10, Some(PointId::Uuid(5))));
    assert_eq!(scroll.with_payload, PayloadSelector::None);
    let zero = qdrant::ScrollPoints {
        limit: Some(0),
        ..Default::default()
    };
    assert_eq!(
        text(decode_scroll(zero)),
        "Validation error in body: [limit: value 0 invalid, must be 1 or larger]"
    );
    let ordered = qdrant::ScrollPoints {
        order_by: Some(OrderBy::default()),
        ..Default::default()
    };
    assert!(text(decode_scroll(ordered)).contains("Invalid json path"));
    use qdrant::start_from::Value as Start;
    let ordered = |start| {
        let order_by = OrderBy {
            key: "a.b".into(),
            direction: Some(qdrant::Direction::Desc.into()),
            start_from: Some(qdrant::StartFrom { value: Some(start) }),
        };
        decode_scroll(qdrant::ScrollPoints {
            order_by: Some(order_by),
            ..Default::default()
        })
    };
    let timestamp = qdrant::Timestamp {
        seconds: 7,
        nanos: 5_999,
    };
    for (start, expected) in [
        (Start::Integer(-2), OrderValue::Integer(-2)),
        (Start::Float(2.0), OrderValue::Float(2.0)),
        (Start::Timestamp(timestamp), OrderValue::Integer(7_000_005)),
        (
            Start::Datetime("1970-01-02".into()),
            OrderValue::Integer(86_400_000_000),
        ),
    ] {
        let order_by = ordered(start).unwrap().order_by.unwrap();
        assert_eq!(order_by.key, "a.b");
        assert_eq!(order_by.order.direction, Direction::Descending);
        assert_eq!(order_by.order.start_from, Some(expected));
    }
    assert!(text(ordered(Start::Float(f64::NAN))).contains("order_by.start_from: NaN"));
    assert!(text(ordered(Start::Datetime("soon".into()))).contains("order_by.start_from: 'soon'"));
}

#[test]
fn acknowledgements_have_the_numbers_of_the_wire() {
    let shown = |status| encode_update(Some(UpdateResult { seq: 9, status }));
    let acknowledged = shown(UpdateStatus::Acknowledged);
    assert_eq!(
        (acknowledged.operation_id, acknowledged.status),
        (Some(9), 1)
    );
    assert_eq!(shown(UpdateStatus::Completed).status, 2);
    let late = encode_update(None);
    assert_eq!((late.operation_id, late.status), (None, 4));
}
