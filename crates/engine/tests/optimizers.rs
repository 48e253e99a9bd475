//! Merges, vacuums and rebuilds under writes and reads: nothing is lost, doubled, brought back or hidden.

#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use flatwater_engine::collection::info::{Optimizer, Outcome, Status};
use flatwater_engine::collection::update::{PointInput, Selection, Update};
use flatwater_engine::config::EngineConfig;
use flatwater_engine::config::collection::{
    CollectionConfig, HnswDiff, OptimizerConfig, VectorParams,
};
use flatwater_engine::engine::{Collection, Engine};
use flatwater_engine::error::EngineError;
use flatwater_engine::query::request::{
    PayloadSelector, QueryTarget, ScrollRequest, SearchRequest, VectorSelector,
};
use flatwater_engine::verify::verify;
use flatwater_index::Metric;
use flatwater_segment::PointId;
use serde_json::json;

const DIM: usize = 64;

/// Rows of a segment at first; the settings of a test change it.
const SEGMENT_ROWS: u64 = 1100;

fn open(path: &Path) -> Arc<Engine> {
    Engine::open(EngineConfig {
        storage_path: path.to_owned(),
        search_threads: 1,
        search_queue_max: 0,
        background_threads: 2,
    })
    .unwrap()
}

fn kb(rows: u64) -> usize {
    rows as usize * DIM * 4 / 1024
}

/// Many small segments are left alone at first.
fn config() -> CollectionConfig {
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
            max_segment_size: Some(kb(SEGMENT_ROWS)),
            default_segment_number: 100,
            vacuum_min_vector_number: 100,
            ..OptimizerConfig::default()
        },
        ..CollectionConfig::default()
    }
}

fn vector(id: u64, version: u64) -> Vec<f32> {
    let mut state =
        id.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ version.wrapping_mul(0xD1B5_4A32_D192_ED03);
    let mut next = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(77);
        (state >> 40) as f32 / (1 << 24) as f32
    };
    (0..DIM).map(|_| next()).collect()
}

fn upsert(collection: &Collection, ids: impl Iterator<Item = u64>, version: u64) {
    let payload = serde_json::from_value(json!({ "v": version })).unwrap();
    let point = |id| PointInput {
        id: PointId::Num(id),
        vectors: vec![(String::new(), vector(id, version))],
        payload: Some(Clone::clone(&payload)),
    };
    let update = Update::Upsert(ids.map(point).collect());
    collection.update_blocking(update, false).unwrap();
}

fn delete(collection: &Collection, ids: impl Iterator<Item = u64>) {
    let selection = Selection::Ids(ids.map(PointId::Num).collect());
    let update = Update::Delete(selection);
    collection.update_blocking(update, false).unwrap();
}

fn change(collection: &Collection, change: impl Fn(&mut CollectionConfig)) {
    let changed = |config: &CollectionConfig| {
        let mut config = config.clone();
        change(&mut config);
        Ok::<_, EngineError>(config)
    };
    collection.reconfigure(changed).unwrap();
}

fn nearest(collection: &Collection, id: u64, version: u64, exact: bool) -> Vec<u64> {
    let request = SearchRequest {
        target: QueryTarget::Vector(vector(id, version)),
        using: String::new(),
        filter: None,
        hnsw_ef: Some(128),
        exact,
        score_threshold: None,
        limit: 10,
        offset: 0,
        with_payload: PayloadSelector::None,
        with_vector: VectorSelector::None,
    };
    let found = collection.search(&request).unwrap();
    found.iter().map(|scored| number(scored.point.id)).collect()
}

fn number(id: PointId) -> u64 {
    match id {
        PointId::Num(number) => number,
        PointId::Uuid(uuid) => panic!("{uuid} was never stored"),
    }
}

/// Every point is there once, with its newest vector and payload, and is found.
fn assert_as(collection: &Collection, model: &BTreeMap<u64, u64>) {
    let request = ScrollRequest {
        filter: None,
        order_by: None,
        limit: usize::MAX,
        offset: None,
        with_payload: PayloadSelector::All,
        with_vector: VectorSelector::All,
    };
    let page = collection.scroll(&request).unwrap();
    let mut stored = BTreeMap::new();
    for record in page.points {
        let id = number(record.id);
        let version = record.payload.unwrap()["v"].as_u64().unwrap();
        assert_eq!(
            record.vectors.unwrap()[0].1,
            vector(id, version),
            "vector of {id}"
        );
        assert!(stored.insert(id, version).is_none(), "{id} comes twice");
    }
    assert_eq!(&stored, model);
    assert_eq!(collection.count(None).unwrap(), model.len() as u64);
    let (mut hits, mut wanted) = (0, 0);
    for (&id, &version) in model.iter().step_by(43) {
        let found = nearest(collection, id, version, false);
        assert_eq!(found[0], id, "a point is nearest to itself");
        let truth = nearest(collection, id, version, true);
        wanted += truth.len();
        hits += truth.iter().filter(|id| found.contains(id)).count();
    }
    let recall = hits as f64 / wanted as f64;
    assert!(recall >= 0.95, "recall {recall}");
}

fn settle(collection: &Collection) {
    let start = Instant::now();
    while collection.info().status != Status::Green {
        let report = collection.optimizations();
        assert!(start.elapsed() < Duration::from_secs(180), "{report:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Optimizers whose jobs are done, by name.
fn done(collection: &Collection) -> BTreeSet<&'static str> {
    let jobs = collection.optimizations().completed.into_iter();
    let done = jobs.filter(|job| job.outcome == Some(Outcome::Done));
    done.map(|job| job.optimizer.name()).collect()
}

#[test]
fn small_segments_become_one_and_what_is_written_meanwhile_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let mut model = BTreeMap::new();
    {
        let engine = open(folder.path());
        engine.create_collection("c", config()).unwrap();
        let collection = engine.collection("c").unwrap();
        for first in (0..3300).step_by(550) {
            upsert(&collection, first..first + 550, 0);
            model.extend((first..first + 550).map(|id| (id, 0)));
        }
        settle(&collection);
        assert!(collection.info().segments_count >= 3);
        change(&collection, |config| {
            config.optimizers.default_segment_number = 1;
            config.optimizers.max_segment_size = Some(kb(20_000));
        });
        // Overwrites, deletions and payload changes while the merge runs.
        for round in 1..30u64 {
            let changed: Vec<u64> = model
                .keys()
                .copied()
                .filter(|id| id % 97 == round)
                .collect();
            upsert(&collection, changed.iter().copied(), round);
            model.extend(changed.iter().map(|&id| (id, round)));
            let gone: Vec<u64> = model
                .keys()
                .copied()
                .filter(|id| id % 89 == round)
                .collect();
            delete(&collection, gone.iter().copied());
            for id in &gone {
                model.remove(id);
            }
            std::thread::sleep(Duration::from_millis(3));
        }
        settle(&collection);
        assert!(
            done(&collection).contains("merge"),
            "{:?}",
            collection.optimizations()
        );
        let segments = collection.info().segments_count;
        assert!(segments <= 2, "{segments} segments");
        assert_as(&collection, &model);
        engine.shutdown().unwrap();
    }
    let verified = verify(folder.path(), &mut |damage| panic!("{damage}")).unwrap();
    assert_eq!(verified.damages, 0);
    let engine = open(folder.path());
    let collection = engine.collection("c").unwrap();
    assert_as(&collection, &model);
    settle(&collection);
    assert_as(&collection, &model);
}

#[test]
fn dead_rows_are_dropped_and_an_emptied_segment_goes() {
    let folder = tempfile::tempdir().unwrap();
    let engine = open(folder.path());
    engine.create_collection("c", config()).unwrap();
    let collection = engine.collection("c").unwrap();
    upsert(&collection, 0..SEGMENT_ROWS, 0);
    upsert(&collection, SEGMENT_ROWS..2 * SEGMENT_ROWS, 0);
    upsert(&collection, 2 * SEGMENT_ROWS..2 * SEGMENT_ROWS + 500, 0);
    settle(&collection);
    assert_eq!(collection.info().segments_count, 3);
    // All of the first, a third of the second, half of the growing one.
    delete(&collection, 0..SEGMENT_ROWS);
    delete(&collection, (SEGMENT_ROWS..2 * SEGMENT_ROWS).step_by(3));
    delete(
        &collection,
        (2 * SEGMENT_ROWS..2 * SEGMENT_ROWS + 500).step_by(2),
    );
    let mut model: BTreeMap<u64, u64> = (SEGMENT_ROWS..2 * SEGMENT_ROWS + 500)
        .map(|id| (id, 0))
        .collect();
    model.retain(|&id, _| match id.checked_sub(2 * SEGMENT_ROWS) {
        Some(place) => !place.is_multiple_of(2),
        None => !(id - SEGMENT_ROWS).is_multiple_of(3),
    });
    settle(&collection);
    assert!(
        done(&collection).contains("vacuum"),
        "{:?}",
        collection.optimizations()
    );
    assert_eq!(collection.info().segments_count, 2);
    assert_as(&collection, &model);
    upsert(&collection, 0..10, 7);
    model.extend((0..10).map(|id| (id, 7)));
    assert_as(&collection, &model);
}

#[test]
fn other_graph_settings_build_the_graphs_anew_and_nothing_blinks_meanwhile() {
    let folder = tempfile::tempdir().unwrap();
    let engine = open(folder.path());
    engine.create_collection("c", config()).unwrap();
    let collection = engine.collection("c").unwrap();
    upsert(&collection, 0..SEGMENT_ROWS, 0);
    upsert(&collection, SEGMENT_ROWS..2 * SEGMENT_ROWS + 900, 0);
    let points = 2 * SEGMENT_ROWS + 900;
    settle(&collection);
    let (stop, looks) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut id = 0;
            while !stop.load(Ordering::Relaxed) {
                id = (id + 7) % points;
                let found = nearest(&collection, id, 0, id % 2 == 0);
                assert_eq!(found[0], id, "the nearest point is gone");
                assert_eq!(found.iter().filter(|&&f| f == id).count(), 1);
                assert_eq!(collection.count(None).unwrap(), points);
                looks.fetch_add(1, Ordering::Relaxed);
                std::thread::sleep(Duration::from_millis(4));
            }
        });
        for m in [8, 0, 24] {
            change(&collection, |config| config.hnsw.m = m);
            settle(&collection);
            let indexed = collection.info().indexed_vectors_count;
            assert_eq!(indexed, if m == 0 { 0 } else { points }, "m = {m}");
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert!(looks.load(Ordering::Relaxed) > 20);
    assert!(done(&collection).contains("config mismatch"));
    assert_as(&collection, &(0..points).map(|id| (id, 0)).collect());
}

#[test]
fn a_cancelled_merge_leaves_nothing_behind_and_runs_again() {
    let folder = tempfile::tempdir().unwrap();
    let engine = open(folder.path());
    engine.create_collection("c", config()).unwrap();
    let collection = engine.collection("c").unwrap();
    for first in (0..4400).step_by(1100) {
        upsert(&collection, first..first + 1100, 0);
    }
    settle(&collection);
    change(&collection, |config| {
        config.optimizers.default_segment_number = 1;
        config.optimizers.max_segment_size = Some(kb(20_000));
    });
    let start = Instant::now();
    let is_merge =
        |job: &&flatwater_engine::collection::info::JobReport| job.optimizer == Optimizer::Merge;
    loop {
        let report = collection.optimizations();
        if let Some(job) = report.running.iter().find(is_merge) {
            assert!(collection.cancel_job(job.id));
            break;
        }
        // Too fast to be caught: the merge is there then.
        if report.completed.iter().any(|job| is_merge(&job)) {
            break;
        }
        assert!(start.elapsed() < Duration::from_secs(60), "{report:?}");
    }
    settle(&collection);
    assert_as(&collection, &(0..4400).map(|id| (id, 0)).collect());
    assert_eq!(collection.info().segments_count, 1);
    let segments = folder.path().join("collections/c/shard0/segments");
    engine.shutdown().unwrap();
    let left = std::fs::read_dir(segments).unwrap().count();
    assert_eq!(left, 1, "folders of segments");
}
