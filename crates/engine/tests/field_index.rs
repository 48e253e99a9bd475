//! Indexes of fields over points that are there already: built while reads and writes go on.

#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use flatwater_engine::collection::update::{PointInput, Selection, Update};
use flatwater_engine::config::EngineConfig;
use flatwater_engine::config::collection::{
    CollectionConfig, FieldSchema, FieldType, HnswDiff, VectorParams,
};
use flatwater_engine::engine::{Collection, Engine};
use flatwater_engine::query::request::{
    Direction, Order, OrderBy, OrderValue, PayloadSelector, ScrollRequest, VectorSelector,
};
use flatwater_index::Metric;
use flatwater_segment::PointId;
use flatwater_segment::payload::Payload;
use flatwater_segment::payload::filter::{
    Condition, FieldCondition, FieldTest, Filter, MatchValue, Range,
};
use serde_json::{Value, json};

/// Longest that a background build of a few thousand rows may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

fn open(path: &Path) -> Arc<Engine> {
    Engine::open(EngineConfig {
        storage_path: path.to_owned(),
        search_threads: 1,
        search_queue_max: 0,
        background_threads: 1,
    })
    .unwrap()
}

fn create(engine: &Engine) -> Arc<Collection> {
    let vector = VectorParams {
        size: 2,
        distance: Metric::Dot,
        on_disk: None,
        hnsw: HnswDiff::default(),
    };
    let config = CollectionConfig {
        vectors: BTreeMap::from([(String::new(), vector)]),
        ..CollectionConfig::default()
    };
    engine.create_collection("c", config).unwrap();
    engine.collection("c").unwrap()
}

fn object(value: Value) -> Payload {
    value.as_object().unwrap().clone()
}

fn upsert(collection: &Collection, points: impl Iterator<Item = (u64, i64)>) {
    let points = points.map(|(id, n)| PointInput {
        id: PointId::Num(id),
        vectors: vec![(String::new(), vec![1.0, 0.0])],
        payload: Some(object(json!({ "n": n }))),
    });
    let update = Update::Upsert(points.collect());
    collection.update_blocking(update, false).unwrap();
}

fn index(collection: &Collection, field_type: FieldType, wait: bool) {
    let update = Update::CreateFieldIndex {
        field: "n".to_owned(),
        schema: FieldSchema {
            field_type,
            params: None,
        },
    };
    collection.update_blocking(update, wait).unwrap();
}

fn count(collection: &Collection, test: FieldTest) -> u64 {
    let filter = Filter {
        must: vec![Condition::Field(FieldCondition {
            key: "n".to_owned(),
            test,
        })],
        ..Filter::default()
    };
    collection.count(Some(&filter)).unwrap()
}

fn is(n: i64) -> FieldTest {
    FieldTest::Value(MatchValue::Integer(n))
}

fn indexed_points(collection: &Collection) -> u64 {
    collection.info().payload_schema["n"].1
}

#[test]
fn what_is_written_while_an_index_is_built_is_in_it() {
    let folder = tempfile::tempdir().unwrap();
    let engine = open(folder.path());
    let collection = create(&engine);
    let mut held: BTreeMap<u64, i64> = (0..6000).map(|id| (id, id as i64 % 7)).collect();
    for first in (0..6000).step_by(1000) {
        upsert(&collection, (first..first + 1000).map(|id| (id, held[&id])));
    }
    index(&collection, FieldType::Integer, false);
    let begun = Instant::now();
    let mut at = 0;
    // At least 200 changes, and on until the index counts every point.
    while at < 200 || indexed_points(&collection) < held.len() as u64 {
        assert!(begun.elapsed() < PATIENCE, "the index was never complete");
        at += 1;
        let (old, new) = (at * 37 % 6000, 6000 + at);
        match at % 4 {
            0 => {
                let selection = Selection::Ids(vec![PointId::Num(old)]);
                collection
                    .update_blocking(Update::Delete(selection), false)
                    .unwrap();
                held.remove(&old);
            }
            1 => {
                let update = Update::SetPayload {
                    selection: Selection::Ids(vec![PointId::Num(old)]),
                    payload: object(json!({"n": 100})),
                    key: None,
                };
                collection.update_blocking(update, false).unwrap();
                held.entry(old).and_modify(|n| *n = 100);
            }
            2 => {
                upsert(&collection, [(old, 200)].into_iter());
                held.insert(old, 200);
            }
            _ => {
                upsert(&collection, [(new, 3)].into_iter());
                held.insert(new, 3);
            }
        }
        let n = [3, 100, 200][at as usize % 3];
        let expected = held.values().filter(|held| **held == n).count() as u64;
        assert_eq!(count(&collection, is(n)), expected, "after {at} changes");
    }
    engine.shutdown().unwrap();
}

#[test]
fn an_index_asked_for_with_wait_is_complete_when_it_is_acknowledged() {
    let folder = tempfile::tempdir().unwrap();
    let engine = open(folder.path());
    let collection = create(&engine);
    upsert(&collection, (0..3000).map(|id| (id, 1)));
    for field_type in [FieldType::Integer, FieldType::Float, FieldType::Integer] {
        index(&collection, field_type, true);
        assert_eq!(indexed_points(&collection), 3000);
        // The same again changes nothing.
        index(&collection, field_type, true);
        assert_eq!(indexed_points(&collection), 3000);
    }
    engine.shutdown().unwrap();
    drop(collection);
    drop(engine);
    let engine = open(folder.path());
    let collection = engine.collection("c").unwrap();
    assert_eq!(indexed_points(&collection), 3000);
    engine.shutdown().unwrap();
}

#[test]
fn an_index_that_is_dropped_while_it_is_built_does_not_come_back() {
    let folder = tempfile::tempdir().unwrap();
    let engine = open(folder.path());
    let collection = create(&engine);
    upsert(&collection, (0..3000).map(|id| (id, id as i64)));
    for _ in 0..5 {
        index(&collection, FieldType::Integer, false);
        let update = Update::DeleteFieldIndex {
            field: "n".to_owned(),
        };
        collection.update_blocking(update, true).unwrap();
        assert!(collection.info().payload_schema.is_empty());
        assert_eq!(count(&collection, is(5)), 1);
    }
    index(&collection, FieldType::Float, true);
    assert_eq!(indexed_points(&collection), 3000);
    let range = Range {
        gte: Some(2990.0),
        ..Range::default()
    };
    assert_eq!(count(&collection, FieldTest::Range(range)), 10);
    engine.shutdown().unwrap();
}

fn ordered(collection: &Collection, order: Order, limit: usize) -> Vec<(u64, OrderValue)> {
    let request = ScrollRequest {
        filter: None,
        limit,
        offset: None,
        order_by: Some(OrderBy {
            key: "n".to_owned(),
            order,
        }),
        with_payload: PayloadSelector::None,
        with_vector: VectorSelector::None,
    };
    let page = collection.scroll(&request).unwrap();
    assert_eq!(page.next_offset, None);
    let place = |record: flatwater_engine::query::request::Record| match record.id {
        PointId::Num(id) => (id, record.order_value.unwrap()),
        PointId::Uuid(_) => panic!("no point has a UUID"),
    };
    page.points.into_iter().map(place).collect()
}

#[test]
fn points_come_in_the_order_of_their_values_once_for_each() {
    let folder = tempfile::tempdir().unwrap();
    let engine = open(folder.path());
    let collection = create(&engine);
    let payloads = [
        json!({"n": [3, 1, 3]}),
        json!({"n": 2.5}),
        json!({"n": 3}),
        json!({"n": "3"}),
        json!({}),
        json!({"n": [-1, null, 2]}),
    ];
    let points = (0..).zip(payloads).map(|(id, payload)| PointInput {
        id: PointId::Num(id),
        vectors: vec![],
        payload: Some(object(payload)),
    });
    collection
        .update_blocking(Update::Upsert(points.collect()), false)
        .unwrap();
    let order = |direction, start_from| Order {
        direction,
        start_from,
    };
    let request = ScrollRequest {
        filter: None,
        limit: 10,
        offset: None,
        order_by: Some(OrderBy {
            key: "n".to_owned(),
            order: Order::default(),
        }),
        with_payload: PayloadSelector::None,
        with_vector: VectorSelector::None,
    };
    for unordered in [None, Some(FieldType::Keyword)] {
        if let Some(field_type) = unordered {
            index(&collection, field_type, true);
        }
        let refused = collection.scroll(&request).unwrap_err().to_string();
        assert!(
            refused.starts_with("No range index for `order_by` key: `n`."),
            "{refused}"
        );
    }
    let integer = OrderValue::Integer;
    let all = [(5, -1), (0, 1), (5, 2), (0, 3), (2, 3)].map(|(id, n)| (id, integer(n)));
    index(&collection, FieldType::Integer, true);
    let ascending = order(Direction::Ascending, None);
    assert_eq!(ordered(&collection, ascending, 10), all);
    assert_eq!(ordered(&collection, ascending, 4), all[..4]);
    let from = order(Direction::Ascending, Some(OrderValue::Float(1.5)));
    assert_eq!(ordered(&collection, from, 10), all[2..]);
    let mut backwards = all;
    backwards.reverse();
    let descending = order(Direction::Descending, None);
    assert_eq!(ordered(&collection, descending, 10), backwards);
    let from = order(Direction::Descending, Some(integer(1)));
    assert_eq!(ordered(&collection, from, 10), backwards[3..]);
    let request = ScrollRequest {
        offset: Some(PointId::Num(1)),
        ..request
    };
    let refused = collection.scroll(&request).unwrap_err().to_string();
    assert!(
        refused.starts_with("Cannot use an `offset` when using `order_by`"),
        "{refused}"
    );
    // Of floats, every number counts.
    index(&collection, FieldType::Float, true);
    let shown: Vec<_> = ordered(&collection, ascending, 10)
        .into_iter()
        .map(|(id, value)| (id, value == OrderValue::Float(2.5)))
        .collect();
    assert_eq!(
        shown,
        [
            (5, false),
            (0, false),
            (5, false),
            (1, true),
            (0, false),
            (2, false)
        ]
    );
    engine.shutdown().unwrap();
}
