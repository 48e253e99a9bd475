//! A collection of small segments, its points by version, and what must hold of them.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use flatwater_engine::collection::info::Status;
use flatwater_engine::collection::update::{PointInput, Update};
use flatwater_engine::config::EngineConfig;
use flatwater_engine::config::collection::{
    CollectionConfig, HnswDiff, OptimizerConfig, VectorParams,
};
use flatwater_engine::engine::{Collection, Engine};
use flatwater_engine::query::request::{
    PayloadSelector, QueryTarget, ScrollRequest, SearchRequest, VectorSelector,
};
use flatwater_index::Metric;
use flatwater_segment::PointId;
use flatwater_segment::payload::Payload;
use flatwater_segment::payload::filter::{
    Condition, FieldCondition, FieldTest, Filter, MatchValue,
};
use serde_json::json;

pub(crate) const DIM: usize = 64;

/// Rows after which a segment is full: more than its codes need, so that there is a graph.
pub(crate) const SEGMENT_ROWS: u64 = 1100;

pub(crate) fn open(path: &Path, background_threads: usize) -> Arc<Engine> {
    Engine::open(EngineConfig {
        storage_path: path.to_owned(),
        search_threads: 1,
        search_queue_max: 0,
        background_threads,
    })
    .unwrap()
}

pub(crate) fn config() -> CollectionConfig {
    let vector = VectorParams {
        size: DIM,
        distance: Metric::Euclid,
        on_disk: None,
        hnsw: HnswDiff::default(),
    };
    CollectionConfig {
        vectors: BTreeMap::from([(String::new(), vector)]),
        optimizers: OptimizerConfig {
            indexing_threshold: 100,
            max_segment_size: Some(SEGMENT_ROWS as usize * DIM * 4 / 1024),
            ..OptimizerConfig::default()
        },
        ..CollectionConfig::default()
    }
}

/// The vector of version `version` of a point.
pub(crate) fn vector(id: u64, version: u64) -> Vec<f32> {
    let mut state =
        id.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ version.wrapping_mul(0xD1B5_4A32_D192_ED03);
    (0..DIM)
        .map(|_| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(77);
            (state >> 40) as f32 / (1 << 24) as f32
        })
        .collect()
}

pub(crate) fn payload(id: u64, version: u64) -> Payload {
    let value = json!({ "v": version, "kind": format!("k{}", id % 9) });
    serde_json::from_value(value).unwrap()
}

pub(crate) fn upsert(
    collection: &Collection,
    ids: impl Iterator<Item = u64>,
    version: u64,
    wait: bool,
) {
    let points = ids
        .map(|id| PointInput {
            id: PointId::Num(id),
            vectors: vec![(String::new(), vector(id, version))],
            payload: Some(payload(id, version)),
        })
        .collect();
    collection
        .update_blocking(Update::Upsert(points), wait)
        .unwrap();
}

pub(crate) fn search(
    collection: &Collection,
    query: Vec<f32>,
    kind: Option<&str>,
    exact: bool,
) -> Vec<u64> {
    let filter = kind.map(|kind| Filter {
        must: vec![Condition::Field(FieldCondition {
            key: "kind".to_owned(),
            test: FieldTest::Value(MatchValue::Keyword(kind.to_owned())),
        })],
        ..Filter::default()
    });
    let request = SearchRequest {
        target: QueryTarget::Vector(query),
        using: String::new(),
        filter,
        hnsw_ef: Some(128),
        exact,
        score_threshold: None,
        limit: 10,
        offset: 0,
        with_payload: PayloadSelector::None,
        with_vector: VectorSelector::None,
    };
    let found = collection.search(&request).unwrap();
    found
        .into_iter()
        .map(|scored| number(scored.point.id))
        .collect()
}

fn number(id: PointId) -> u64 {
    match id {
        PointId::Num(number) => number,
        PointId::Uuid(uuid) => panic!("{uuid} was never stored"),
    }
}

/// Every point with the version that its payload tells.
fn stored(collection: &Collection) -> BTreeMap<u64, u64> {
    let request = ScrollRequest {
        filter: None,
        limit: usize::MAX,
        offset: None,
        order_by: None,
        with_payload: PayloadSelector::All,
        with_vector: VectorSelector::All,
    };
    let page = collection.scroll(&request).unwrap();
    let mut points = BTreeMap::new();
    for record in page.points {
        let payload = record.payload.unwrap();
        let (id, version) = (number(record.id), payload["v"].as_u64().unwrap());
        assert_eq!(
            record.vectors.unwrap()[0].1,
            vector(id, version),
            "vector of {id}"
        );
        assert!(points.insert(id, version).is_none(), "{id} comes twice");
    }
    points
}

pub(crate) fn assert_as(collection: &Collection, model: &BTreeMap<u64, u64>) {
    assert_eq!(&stored(collection), model);
    assert_eq!(collection.count(None).unwrap(), model.len() as u64);
    let (mut hits, mut wanted) = (0, 0);
    for (&id, &version) in model.iter().step_by(41) {
        let found = search(collection, vector(id, version), None, false);
        assert_eq!(found[0], id, "a point is nearest to itself");
        let kind = format!("k{}", id % 9);
        assert_eq!(
            search(collection, vector(id, version), Some(&kind), false)[0],
            id
        );
        let truth = search(collection, vector(id, version), None, true);
        wanted += truth.len();
        hits += truth.iter().filter(|id| found.contains(id)).count();
    }
    let recall = hits as f64 / wanted as f64;
    assert!(recall >= 0.95, "recall {recall}");
}

pub(crate) fn wait_until_green(collection: &Collection) {
    let start = Instant::now();
    while collection.info().status != Status::Green {
        let report = collection.optimizations();
        assert!(start.elapsed() < Duration::from_secs(180), "{report:?}");
        std::thread::sleep(Duration::from_millis(10));
    }
}
