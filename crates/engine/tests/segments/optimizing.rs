//! Merges, vacuums and rebuilds under writes and reads: nothing is lost, doubled, brought back or hidden.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use flatwater_engine::collection::info::{JobReport, Optimizer, Outcome};
use flatwater_engine::collection::update::{Selection, Update};
use flatwater_engine::config::collection::CollectionConfig;
use flatwater_engine::engine::Collection;
use flatwater_engine::error::EngineError;
use flatwater_engine::verify::verify;
use flatwater_segment::PointId;

use crate::fixture::{
    DIM, SEGMENT_ROWS, assert_as, config, open, search, upsert, vector, wait_until_green,
};

fn kb(rows: u64) -> usize {
    rows as usize * DIM * 4 / 1024
}

/// Many small segments are left alone at first.
fn unmerged() -> CollectionConfig {
    let mut config = config();
    config.optimizers.default_segment_number = 100;
    config.optimizers.vacuum_min_vector_number = 100;
    config
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
        let engine = open(folder.path(), 2);
        engine.create_collection("c", unmerged()).unwrap();
        let collection = engine.collection("c").unwrap();
        for first in (0..3300).step_by(550) {
            upsert(&collection, first..first + 550, 0, false);
            model.extend((first..first + 550).map(|id| (id, 0)));
        }
        wait_until_green(&collection);
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
            upsert(&collection, changed.iter().copied(), round, false);
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
        wait_until_green(&collection);
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
    let engine = open(folder.path(), 2);
    let collection = engine.collection("c").unwrap();
    assert_as(&collection, &model);
    wait_until_green(&collection);
    assert_as(&collection, &model);
}

#[test]
fn dead_rows_are_dropped_and_an_emptied_segment_goes() {
    let folder = tempfile::tempdir().unwrap();
    let engine = open(folder.path(), 2);
    engine.create_collection("c", unmerged()).unwrap();
    let collection = engine.collection("c").unwrap();
    upsert(&collection, 0..SEGMENT_ROWS, 0, false);
    upsert(&collection, SEGMENT_ROWS..2 * SEGMENT_ROWS, 0, false);
    upsert(
        &collection,
        2 * SEGMENT_ROWS..2 * SEGMENT_ROWS + 500,
        0,
        false,
    );
    wait_until_green(&collection);
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
    wait_until_green(&collection);
    assert!(
        done(&collection).contains("vacuum"),
        "{:?}",
        collection.optimizations()
    );
    assert_eq!(collection.info().segments_count, 2);
    assert_as(&collection, &model);
    upsert(&collection, 0..10, 7, false);
    model.extend((0..10).map(|id| (id, 7)));
    assert_as(&collection, &model);
}

#[test]
fn other_graph_settings_build_the_graphs_anew_and_nothing_blinks_meanwhile() {
    let folder = tempfile::tempdir().unwrap();
    let engine = open(folder.path(), 2);
    engine.create_collection("c", unmerged()).unwrap();
    let collection = engine.collection("c").unwrap();
    upsert(&collection, 0..SEGMENT_ROWS, 0, false);
    upsert(&collection, SEGMENT_ROWS..2 * SEGMENT_ROWS + 900, 0, false);
    let points = 2 * SEGMENT_ROWS + 900;
    wait_until_green(&collection);
    let (stop, looks) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut id = 0;
            while !stop.load(Ordering::Relaxed) {
                id = (id + 7) % points;
                let found = search(&collection, vector(id, 0), None, id % 2 == 0);
                assert_eq!(found[0], id, "the nearest point is gone");
                assert_eq!(found.iter().filter(|&&f| f == id).count(), 1);
                assert_eq!(collection.count(None).unwrap(), points);
                looks.fetch_add(1, Ordering::Relaxed);
                std::thread::sleep(Duration::from_millis(4));
            }
        });
        for m in [8, 0, 24] {
            change(&collection, |config| config.hnsw.m = m);
            wait_until_green(&collection);
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
    let engine = open(folder.path(), 2);
    engine.create_collection("c", unmerged()).unwrap();
    let collection = engine.collection("c").unwrap();
    for first in (0..4400).step_by(1100) {
        upsert(&collection, first..first + 1100, 0, false);
    }
    wait_until_green(&collection);
    change(&collection, |config| {
        config.optimizers.default_segment_number = 1;
        config.optimizers.max_segment_size = Some(kb(20_000));
    });
    let start = Instant::now();
    let is_merge = |job: &&JobReport| job.optimizer == Optimizer::Merge;
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
    wait_until_green(&collection);
    assert_as(&collection, &(0..4400).map(|id| (id, 0)).collect());
    assert_eq!(collection.info().segments_count, 1);
    let segments = folder.path().join("collections/c/shard0/segments");
    engine.shutdown().unwrap();
    let left = std::fs::read_dir(segments).unwrap().count();
    assert_eq!(left, 1, "folders of segments");
}
