//! The engine as an embedder uses it: fill, search while it is indexed, stop, open again.

#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use flatwater_engine::aliases::AliasAction;
use flatwater_engine::collection::info::Status;
use flatwater_engine::collection::update::{PointInput, Selection, Update};
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

fn open(path: &Path) -> Arc<Engine> {
    Engine::open(EngineConfig {
        storage_path: path.to_owned(),
        search_threads: 1,
        search_queue_max: 0,
        background_threads: 2,
    })
    .unwrap()
}

fn config(dim: usize, metric: Metric, indexing_threshold: usize) -> CollectionConfig {
    let vector = VectorParams {
        size: dim,
        distance: metric,
        on_disk: None,
        hnsw: HnswDiff::default(),
    };
    CollectionConfig {
        vectors: BTreeMap::from([(String::new(), vector)]),
        optimizers: OptimizerConfig {
            indexing_threshold,
            ..OptimizerConfig::default()
        },
        ..CollectionConfig::default()
    }
}

/// Deterministic numbers in [-1, 1).
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> f32 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 40) as f32) / (1u64 << 23) as f32 - 1.0
    }

    /// A vector near one of `clusters` centres, far from the origin.
    fn vector(&mut self, dim: usize, clusters: u64) -> Vec<f32> {
        let cluster = (self.next().abs() * clusters as f32) as u64;
        let mut center = Numbers(cluster * 7919 + 13);
        (0..dim)
            .map(|_| 3.0 + center.next() + 0.35 * self.next())
            .collect()
    }
}

fn point(id: u64, vector: Vec<f32>) -> PointInput {
    PointInput {
        id: PointId::Num(id),
        vectors: vec![(String::new(), vector)],
        payload: None,
    }
}

fn request(vector: Vec<f32>, exact: bool) -> SearchRequest {
    SearchRequest {
        target: QueryTarget::Vector(vector),
        using: String::new(),
        filter: None,
        hnsw_ef: None,
        exact,
        score_threshold: None,
        limit: 10,
        offset: 0,
        with_payload: PayloadSelector::None,
        with_vector: VectorSelector::None,
    }
}

fn ids(collection: &Collection, vector: &[f32], exact: bool) -> Vec<PointId> {
    let found = collection.search(&request(vector.to_vec(), exact)).unwrap();
    found.into_iter().map(|scored| scored.point.id).collect()
}

fn recall(collection: &Collection, queries: &[Vec<f32>]) -> f64 {
    let mut hits = 0;
    let mut wanted = 0;
    for query in queries {
        let truth = ids(collection, query, true);
        let found = ids(collection, query, false);
        wanted += truth.len();
        hits += truth.iter().filter(|id| found.contains(id)).count();
    }
    hits as f64 / wanted as f64
}

fn wait_until_green(collection: &Collection) {
    let start = Instant::now();
    while collection.info().status != Status::Green {
        assert!(
            start.elapsed() < Duration::from_secs(120),
            "{:?}",
            collection.optimizations()
        );
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn points_are_found_while_they_are_indexed_and_after_a_restart() {
    const ROWS: u64 = 4000;
    const DIM: usize = 64;
    for metric in [
        Metric::Cosine,
        Metric::Dot,
        Metric::Euclid,
        Metric::Manhattan,
    ] {
        let folder = tempfile::tempdir().unwrap();
        let mut numbers = Numbers(5);
        let queries: Vec<Vec<f32>> = (0..30).map(|_| numbers.vector(DIM, 40)).collect();
        {
            let engine = open(folder.path());
            engine
                .create_collection("c", config(DIM, metric, 100))
                .unwrap();
            let collection = engine.collection("c").unwrap();
            for first in (0..ROWS).step_by(500) {
                let points = (first..first + 500)
                    .map(|id| point(id, numbers.vector(DIM, 40)))
                    .collect();
                collection
                    .update_blocking(Update::Upsert(points), first % 1000 == 0)
                    .unwrap();
                // What was acknowledged is found at once, whatever the graph covers.
                let last = collection
                    .retrieve(
                        &[PointId::Num(first + 499)],
                        &PayloadSelector::None,
                        &VectorSelector::All,
                    )
                    .unwrap();
                let vector = last[0].vectors.as_ref().unwrap()[0].1.clone();
                if metric != Metric::Dot {
                    assert!(ids(&collection, &vector, false).contains(&PointId::Num(first + 499)));
                }
                let during = recall(&collection, &queries);
                assert!(
                    during >= 0.97,
                    "{metric:?}: recall {during} at {first} rows"
                );
            }
            wait_until_green(&collection);
            let info = collection.info();
            assert_eq!(
                (info.points_count, info.indexed_vectors_count),
                (ROWS, ROWS)
            );
            let after = recall(&collection, &queries);
            assert!(after >= 0.97, "{metric:?}: recall {after} when settled");
            engine.shutdown().unwrap();
        }
        let engine = open(folder.path());
        let collection = engine.collection("c").unwrap();
        assert_eq!(collection.count(None).unwrap(), ROWS);
        let reopened = recall(&collection, &queries);
        assert!(
            reopened >= 0.97,
            "{metric:?}: recall {reopened} after a restart"
        );
    }
}

#[test]
fn a_segment_that_is_full_stops_and_the_next_one_starts() {
    const DIM: usize = 16;
    let folder = tempfile::tempdir().unwrap();
    let mut numbers = Numbers(9);
    let mut settings = config(DIM, Metric::Euclid, 10);
    settings.optimizers.max_segment_size = Some(64);
    {
        let engine = open(folder.path());
        engine.create_collection("c", settings).unwrap();
        let collection = engine.collection("c").unwrap();
        for first in (0..4000u64).step_by(250) {
            let points = (first..first + 250)
                .map(|id| point(id, numbers.vector(DIM, 10)))
                .collect();
            collection
                .update_blocking(Update::Upsert(points), false)
                .unwrap();
        }
        // Overwrites and deletes reach into segments that take no rows any more.
        let points = (0..100)
            .map(|id| point(id, numbers.vector(DIM, 10)))
            .collect();
        collection
            .update_blocking(Update::Upsert(points), false)
            .unwrap();
        let doomed = Selection::Ids((100..200).map(PointId::Num).collect());
        collection
            .update_blocking(Update::Delete(doomed), true)
            .unwrap();
        let info = collection.info();
        assert_eq!(info.points_count, 3900);
        assert!(info.segments_count >= 4, "{}", info.segments_count);
        engine.shutdown().unwrap();
    }
    let engine = open(folder.path());
    let collection = engine.collection("c").unwrap();
    let page = collection
        .scroll(&ScrollRequest {
            filter: None,
            limit: usize::MAX,
            offset: None,
            order_by: None,
            with_payload: PayloadSelector::None,
            with_vector: VectorSelector::None,
        })
        .unwrap();
    let found: Vec<PointId> = page.points.iter().map(|record| record.id).collect();
    let expected: Vec<PointId> = (0..100).chain(200..4000).map(PointId::Num).collect();
    assert_eq!(found, expected);
    let query = numbers.vector(DIM, 10);
    assert_eq!(ids(&collection, &query, false).len(), 10);
}

#[test]
fn a_deleted_collection_is_gone_and_its_name_is_free() {
    let folder = tempfile::tempdir().unwrap();
    {
        let engine = open(folder.path());
        engine
            .create_collection("c", config(4, Metric::Dot, 100))
            .unwrap();
        let collection = engine.collection("c").unwrap();
        collection
            .update_blocking(Update::Upsert(vec![point(1, vec![1.0; 4])]), true)
            .unwrap();
        assert!(engine.delete_collection("c").unwrap());
        assert!(!engine.delete_collection("c").unwrap());
        engine
            .create_collection("c", config(8, Metric::Dot, 100))
            .unwrap();
        assert_eq!(engine.collection("c").unwrap().count(None).unwrap(), 0);
    }
    let engine = open(folder.path());
    assert_eq!(engine.collections(), ["c"]);
    assert_eq!(engine.collection("c").unwrap().config().vectors[""].size, 8);
}

#[test]
fn aliases_of_a_deletion_that_was_killed_never_lead_to_another_collection() {
    let folder = tempfile::tempdir().unwrap();
    let alias = AliasAction::Create {
        collection: "c".to_owned(),
        alias: "now".to_owned(),
    };
    let engine = open(folder.path());
    engine
        .create_collection("c", config(4, Metric::Dot, 0))
        .unwrap();
    engine.change_aliases(&[alias]).unwrap();
    engine.shutdown().unwrap();
    drop(engine);
    // What a process killed between the two leaves: the collection is gone, its alias is not.
    std::fs::remove_file(folder.path().join("collections/c/config.json")).unwrap();
    let engine = open(folder.path());
    assert!(engine.aliases().is_empty());
    engine
        .create_collection("c", config(4, Metric::Dot, 0))
        .unwrap();
    assert!(engine.collection("now").is_err());
    engine.shutdown().unwrap();
    drop(engine);
    let engine = open(folder.path());
    assert!(engine.collection("c").is_ok() && engine.collection("now").is_err());
}
