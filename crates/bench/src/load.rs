//! Load, search while the backlog drains, search at rest: the embedded engine on real vectors.
//!
//! Recall is measured against the exact answer over the points acknowledged at that moment.

use std::collections::{BTreeMap, HashSet};
use std::error::Error;
use std::path::Path;
use std::time::{Duration, Instant};

use flatwater_engine::collection::info::Status;
use flatwater_engine::collection::update::{PointInput, Update};
use flatwater_engine::config::EngineConfig;
use flatwater_engine::config::collection::{CollectionConfig, HnswDiff, VectorParams};
use flatwater_engine::engine::{Collection, Engine};
use flatwater_engine::query::request::{
    PayloadSelector, QueryTarget, SearchRequest, VectorSelector,
};
use flatwater_index::Metric;
use flatwater_segment::PointId;

use crate::data::Data;

/// Points of one update, as client libraries send them.
const BATCH: usize = 500;
/// Queries of one measurement.
const QUERIES: usize = 200;
const K: usize = 10;

/// Runs the measurement in a temporary folder that is removed afterwards.
#[allow(clippy::print_stdout, reason = "a report is what this program is for")]
pub(crate) fn run(folder: &str, rows_max: Option<usize>) -> Result<(), Box<dyn Error>> {
    let data = Data::load(Path::new(folder), rows_max.unwrap_or(usize::MAX))?;
    let storage = std::env::temp_dir().join(format!("flatwater-bench-{}", std::process::id()));
    let resident_before = resident_bytes();
    let engine = Engine::open(EngineConfig {
        storage_path: storage.clone(),
        search_threads: 0,
        search_queue_max: 0,
        background_threads: 0,
    })?;
    engine.create_collection("bench", settings(data.dim))?;
    let collection = engine.collection("bench")?;
    println!(
        "{} rows of {} dims; recall@{K} over {QUERIES} queries",
        data.rows.len(),
        data.dim
    );

    let begin = Instant::now();
    for (first, rows) in (0u64..).step_by(BATCH).zip(data.rows.chunks(BATCH)) {
        let points = (first..).zip(rows).map(|(id, row)| PointInput {
            id: PointId::Num(id),
            vectors: vec![(String::new(), row.clone())],
            payload: None,
        });
        collection.update_blocking(Update::Upsert(points.collect()), false)?;
    }
    let loaded = begin.elapsed();
    let per_second = |points: u64, time: Duration| points as f64 / time.as_secs_f64();
    let rows = data.rows.len() as u64;
    println!(
        "load: {:.1} s, {:.0} points/s acknowledged",
        loaded.as_secs_f64(),
        per_second(rows, loaded)
    );
    let at_start = collection.info().indexed_vectors_count;
    report(
        &collection,
        &data,
        100,
        &format!("draining, {at_start} indexed"),
    )?;

    let (idle_begin, idle_start) = (Instant::now(), collection.info().indexed_vectors_count);
    while collection.info().status != Status::Green {
        std::thread::sleep(Duration::from_millis(20));
    }
    let inserted = collection.info().indexed_vectors_count - idle_start;
    println!(
        "build: {inserted} rows in {:.1} s, {:.0} points/s with nobody searching; green {:.1} s after the first point",
        idle_begin.elapsed().as_secs_f64(),
        per_second(inserted, idle_begin.elapsed()),
        begin.elapsed().as_secs_f64()
    );
    for ef in [32, 48, 64, 100, 128] {
        report(&collection, &data, ef, "settled")?;
    }
    let resident = resident_bytes().saturating_sub(resident_before);
    println!(
        "resident: {} bytes a point, mapped files included",
        resident / rows.max(1)
    );
    drop(collection);
    engine.shutdown()?;
    drop(engine);
    Ok(std::fs::remove_dir_all(&storage)?)
}

fn settings(dim: usize) -> CollectionConfig {
    let vector = VectorParams {
        size: dim,
        distance: Metric::Cosine,
        on_disk: None,
        hnsw: HnswDiff::default(),
    };
    CollectionConfig {
        vectors: BTreeMap::from([(String::new(), vector)]),
        ..CollectionConfig::default()
    }
}

/// Median and 95th percentile of single searches from one thread, their rate, and their recall.
#[allow(clippy::print_stdout, reason = "a report is what this program is for")]
fn report(
    collection: &Collection,
    data: &Data,
    ef: usize,
    phase: &str,
) -> Result<(), Box<dyn Error>> {
    let queries = &data.queries[..QUERIES.min(data.queries.len())];
    let mut times = Vec::new();
    let mut found = Vec::new();
    for query in queries {
        let begin = Instant::now();
        found.push(search(collection, query, ef, false)?);
        times.push(begin.elapsed());
    }
    let mut hits = 0;
    for (query, found) in queries.iter().zip(&found) {
        hits += search(collection, query, ef, true)?
            .intersection(found)
            .count();
    }
    let total: Duration = times.iter().sum();
    times.sort_unstable();
    let at =
        |share: usize| times[(times.len() * share / 100).min(times.len() - 1)].as_secs_f64() * 1e3;
    println!(
        "search, {phase}, ef {ef}: recall {:.4}, p50 {:.3} ms, p95 {:.3} ms, {:.0}/s on one thread",
        hits as f64 / (queries.len() * K) as f64,
        at(50),
        at(95),
        queries.len() as f64 / total.as_secs_f64()
    );
    Ok(())
}

fn search(
    collection: &Collection,
    query: &[f32],
    ef: usize,
    exact: bool,
) -> Result<HashSet<PointId>, Box<dyn Error>> {
    let request = SearchRequest {
        target: QueryTarget::Vector(query.to_vec()),
        using: String::new(),
        filter: None,
        hnsw_ef: Some(ef),
        exact,
        score_threshold: None,
        limit: K,
        offset: 0,
        with_payload: PayloadSelector::None,
        with_vector: VectorSelector::None,
    };
    let found = collection.search(&request)?;
    Ok(found.into_iter().map(|scored| scored.point.id).collect())
}

/// Resident memory of this process; 0 where the system does not tell.
fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let kb = line
        .and_then(|line| line.split_whitespace().nth(1))
        .and_then(|kb| kb.parse().ok());
    kb.unwrap_or(0u64) * 1024
}
