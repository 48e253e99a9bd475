use flatwater_engine::query::request::{PayloadSelector, SearchRequest, VectorSelector};
use flatwater_segment::PointId;
use qdrant_client::qdrant::{
    AcornSearchParams, DenseVector, Mmr, NearestInputWithMmr, PrefetchQuery, QueryPoints,
    RecommendInput, SearchParams, VectorInput, vector_input,
};

use super::*;
use crate::grpc::ids::encode;
use crate::status::grpc_refusal;

fn near(variant: vector_input::Variant) -> VectorInput {
    VectorInput {
        variant: Some(variant),
    }
}

fn to_vector(data: &[f32]) -> VectorInput {
    near(vector_input::Variant::Dense(DenseVector {
        data: data.to_vec(),
    }))
}

fn query(variant: Variant) -> QueryPoints {
    QueryPoints {
        query: Some(qdrant::Query {
            variant: Some(variant),
        }),
        ..Default::default()
    }
}

fn search(request: QueryPoints) -> SearchRequest {
    match decode_query(request).unwrap() {
        Query::Nearest(search) => search,
        Query::ById { .. } => panic!("no query was read"),
    }
}

fn text(request: QueryPoints) -> String {
    grpc_refusal(&decode_query(request).unwrap_err()).text
}

#[test]
fn a_vector_alone_gets_the_defaults_of_rest() {
    let read = search(query(Variant::Nearest(to_vector(&[1.0, 0.5]))));
    assert_eq!(read.target, QueryTarget::Vector(vec![1.0, 0.5]));
    assert_eq!((read.limit, read.offset, read.using.as_str()), (10, 0, ""));
    assert_eq!(
        (read.hnsw_ef, read.exact, read.score_threshold),
        (None, false, None)
    );
    assert_eq!(
        (read.with_payload, read.with_vector),
        (PayloadSelector::None, VectorSelector::None)
    );
}

#[test]
fn every_field_is_read() {
    let id = near(vector_input::Variant::Id(encode(PointId::Num(5))));
    let read = search(QueryPoints {
        using: Some("img".into()),
        limit: Some(u64::MAX),
        offset: Some(2),
        score_threshold: Some(-0.5),
        params: Some(SearchParams {
            hnsw_ef: Some(128),
            exact: Some(true),
            indexed_only: Some(false),
            quantization: Some(qdrant::QuantizationSearchParams::default()),
            acorn: Some(AcornSearchParams::default()),
            idf: None,
        }),
        filter: Some(qdrant::Filter::default()),
        ..query(Variant::NearestWithMmr(NearestInputWithMmr {
            nearest: Some(id),
            mmr: None,
        }))
    });
    assert_eq!(read.target, QueryTarget::Point(PointId::Num(5)));
    assert_eq!(
        (read.limit, read.offset, read.using.as_str()),
        (usize::MAX, 2, "img")
    );
    assert_eq!((read.hnsw_ef, read.exact), (Some(128), true));
    assert_eq!(read.score_threshold, Some(-0.5));
    assert!(read.filter.is_some());
}

#[test]
fn without_a_query_points_come_by_id() {
    let request = QueryPoints {
        limit: Some(3),
        offset: Some(2),
        ..Default::default()
    };
    match decode_query(request).unwrap() {
        Query::ById { walk, skip } => assert_eq!((walk.limit, skip), (5, 2)),
        Query::Nearest(_) => panic!("a query was read"),
    }
}

#[test]
fn what_is_not_served_yet_is_named() {
    let nearest = || query(Variant::Nearest(to_vector(&[1.0])));
    let params = |params| QueryPoints {
        params: Some(params),
        ..nearest()
    };
    let mmr = NearestInputWithMmr {
        nearest: Some(to_vector(&[1.0])),
        mmr: Some(Mmr::default()),
    };
    for (request, name) in [
        (
            query(Variant::Recommend(RecommendInput::default())),
            "query.recommend",
        ),
        (query(Variant::Fusion(0)), "query.fusion"),
        (query(Variant::Sample(0)), "query.sample"),
        (query(Variant::NearestWithMmr(mmr)), "query.mmr"),
        (
            QueryPoints {
                prefetch: vec![PrefetchQuery::default()],
                ..nearest()
            },
            "prefetch",
        ),
        (
            QueryPoints {
                lookup_from: Some(qdrant::LookupLocation::default()),
                ..nearest()
            },
            "lookup_from",
        ),
        (
            params(SearchParams {
                indexed_only: Some(true),
                ..Default::default()
            }),
            "params.indexed_only",
        ),
        (
            params(SearchParams {
                idf: Some(qdrant::IdfParams::default()),
                ..Default::default()
            }),
            "params.idf",
        ),
    ] {
        let text = text(request);
        assert!(
            text.contains(&format!("`{name}` is not served yet")),
            "{text}"
        );
    }
}

#[test]
fn bad_values_are_refused_with_the_texts_of_rest() {
    assert_eq!(
        text(query(Variant::Nearest(to_vector(&[1.0, f32::NAN])))),
        "Wrong input: query: element 1 is NaN, which is not a finite 32-bit float"
    );
    assert_eq!(
        text(query(Variant::Nearest(VectorInput::default()))),
        "Format error in body: missing field `query`"
    );
    assert_eq!(
        text(QueryPoints {
            limit: Some(0),
            ..query(Variant::Nearest(to_vector(&[1.0])))
        }),
        "Validation error in body: [limit: value 0 invalid, must be 1 or larger]"
    );
    assert_eq!(
        text(QueryPoints {
            score_threshold: Some(f32::INFINITY),
            ..query(Variant::Nearest(to_vector(&[1.0])))
        }),
        "Wrong input: score_threshold: inf is not a finite number"
    );
}
