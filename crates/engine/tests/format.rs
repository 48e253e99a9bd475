//! A storage folder written by an earlier build opens, answers and verifies; damaged copies of it are
//! refused with the file's name.
//!
//! `FLATWATER_WRITE_FIXTURE=1 cargo test -p flatwater-engine --test format` writes the fixture anew. Do
//! that only with a new version of a format, and keep the old fixture beside it.

#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use flatwater_engine::collection::info::Status;
use flatwater_engine::collection::update::{PointInput, Selection, Update};
use flatwater_engine::config::EngineConfig;
use flatwater_engine::config::collection::{
    CollectionConfig, FieldSchema, HnswDiff, OptimizerConfig, VectorParams,
};
use flatwater_engine::engine::{Collection, Engine};
use flatwater_engine::query::request::{
    PayloadSelector, QueryTarget, ScrollRequest, SearchRequest, VectorSelector,
};
use flatwater_engine::verify::verify;
use flatwater_index::Metric;
use flatwater_segment::PointId;
use flatwater_segment::field::FieldType;
use serde_json::json;

/// Codes exist from here on.
const DIM: usize = 64;
/// Rows of the sealed segment: enough for codes and a graph, no more.
const SEALED_ROWS: u64 = 1040;
const GROWING_ROWS: u64 = 50;

fn fixture_path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/storage-v1.bin")
}

/// Files of a folder with their bytes, by path.
fn read_folder(root: &Path, folder: &Path, files: &mut BTreeMap<String, Vec<u8>>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            read_folder(root, &path, files);
        } else {
            let name = path.strip_prefix(root).unwrap().to_str().unwrap();
            files.insert(name.to_owned(), std::fs::read(&path).unwrap());
        }
    }
}

/// One file: for each, lengths and bytes of the name and of the content without its trailing zeros.
fn pack(files: &BTreeMap<String, Vec<u8>>) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, bytes) in files {
        let stored = bytes.iter().rposition(|&b| b != 0).map_or(0, |at| at + 1);
        for number in [name.len(), bytes.len(), stored] {
            out.extend((number as u64).to_le_bytes());
        }
        out.extend(name.as_bytes());
        out.extend(&bytes[..stored]);
    }
    out
}

fn unpack(mut packed: &[u8]) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    let number = |packed: &mut &[u8]| {
        let (head, rest) = packed.split_at(8);
        *packed = rest;
        u64::from_le_bytes(head.try_into().unwrap()) as usize
    };
    while !packed.is_empty() {
        let [name_len, len, stored] = std::array::from_fn(|_| number(&mut packed));
        let (name, rest) = packed.split_at(name_len);
        let (bytes, rest) = rest.split_at(stored);
        let mut content = bytes.to_vec();
        content.resize(len, 0);
        files.insert(String::from_utf8(name.to_vec()).unwrap(), content);
        packed = rest;
    }
    files
}

fn write_folder(root: &Path, files: &BTreeMap<String, Vec<u8>>) {
    for (name, bytes) in files {
        let path = root.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }
}

fn open(path: &Path) -> Arc<Engine> {
    Engine::open(EngineConfig {
        storage_path: path.to_owned(),
        search_threads: 1,
        search_queue_max: 0,
        background_threads: 1,
    })
    .unwrap()
}

fn vector(id: u64) -> Vec<f32> {
    let mut state = id.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (0..DIM)
        .map(|_| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 40) as f32 / (1 << 24) as f32
        })
        .collect()
}

fn point_id(id: u64) -> PointId {
    if id.is_multiple_of(4) {
        PointId::Uuid(u128::from(id) + 1)
    } else {
        PointId::Num(id)
    }
}

/// What the fixture holds: payload by id; deleted ones are missing.
fn expected() -> BTreeMap<u64, Option<serde_json::Value>> {
    (0..SEALED_ROWS + GROWING_ROWS)
        .filter(|id| id % 100 != 7)
        .map(|id| {
            let payload = match id % 10 {
                0 => Some(json!({ "kind": "changed", "n": id })),
                1..5 => Some(json!({ "kind": format!("k{}", id % 3) })),
                _ => None,
            };
            (id, payload)
        })
        .collect()
}

fn write_fixture() {
    let folder = tempfile::tempdir().unwrap();
    let engine = open(folder.path());
    let vector_params = VectorParams {
        size: DIM,
        distance: Metric::Cosine,
        on_disk: None,
        hnsw: HnswDiff {
            m: Some(6),
            ef_construct: Some(40),
            ..HnswDiff::default()
        },
    };
    let config = CollectionConfig {
        vectors: BTreeMap::from([("text".to_owned(), vector_params)]),
        optimizers: OptimizerConfig {
            indexing_threshold: 10,
            max_segment_size: Some(SEALED_ROWS as usize * DIM * 4 / 1024),
            ..OptimizerConfig::default()
        },
        ..CollectionConfig::default()
    };
    engine.create_collection("c", config).unwrap();
    let collection = engine.collection("c").unwrap();
    let schema = FieldSchema {
        field_type: FieldType::Keyword,
        params: None,
    };
    let field = "kind".to_owned();
    update(&collection, Update::CreateFieldIndex { field, schema });
    let points = |ids: std::ops::Range<u64>| {
        let payload = |id: u64| match id % 10 {
            1..5 => serde_json::from_value(json!({ "kind": format!("k{}", id % 3) })).ok(),
            _ => None,
        };
        let point = |id| PointInput {
            id: point_id(id),
            vectors: vec![("text".to_owned(), vector(id))],
            payload: payload(id),
        };
        Update::Upsert(ids.map(point).collect())
    };
    update(&collection, points(0..SEALED_ROWS));
    let start = Instant::now();
    while collection.info().status != Status::Green {
        assert!(start.elapsed() < Duration::from_secs(60));
        std::thread::sleep(Duration::from_millis(20));
    }
    // The manifest lists the sealed segment once the folder of the growing one is gone.
    let segments = folder.path().join("collections/c/shard0/segments");
    while std::fs::read_dir(&segments).unwrap().count() > 1 {
        assert!(start.elapsed() < Duration::from_secs(60));
        std::thread::sleep(Duration::from_millis(20));
    }
    update(&collection, points(SEALED_ROWS..SEALED_ROWS + GROWING_ROWS));
    let all = 0..SEALED_ROWS + GROWING_ROWS;
    let deleted = all
        .clone()
        .filter(|id| id % 100 == 7)
        .map(point_id)
        .collect();
    update(&collection, Update::Delete(Selection::Ids(deleted)));
    engine.shutdown().unwrap();
    drop((collection, engine));
    let engine = open(folder.path());
    let collection = engine.collection("c").unwrap();
    // What follows is in the log alone: the copy is taken before the stop.
    for id in all.filter(|id| id % 10 == 0) {
        let payload = serde_json::from_value(json!({ "kind": "changed", "n": id })).unwrap();
        let selection = Selection::Ids(vec![point_id(id)]);
        let key = None;
        update(
            &collection,
            Update::SetPayload {
                selection,
                payload,
                key,
            },
        );
    }
    let mut files = BTreeMap::new();
    read_folder(folder.path(), folder.path(), &mut files);
    files.retain(|name, _| !name.ends_with("LOCK") && !name.ends_with(".lock"));
    std::fs::write(fixture_path(), pack(&files)).unwrap();
}

fn update(collection: &Collection, update: Update) {
    collection.update_blocking(update, true).unwrap();
}

#[test]
fn a_storage_folder_of_an_earlier_build_opens_answers_and_verifies() {
    if std::env::var_os("FLATWATER_WRITE_FIXTURE").is_some() {
        write_fixture();
    }
    let folder = tempfile::tempdir().unwrap();
    write_folder(
        folder.path(),
        &unpack(&std::fs::read(fixture_path()).unwrap()),
    );
    let verified = verify(folder.path(), &mut |damage| panic!("{damage}")).unwrap();
    assert_eq!((verified.collections, verified.damages), (1, 0));
    assert!(
        verified.segments >= 1 && verified.log_records > 0,
        "{verified:?}"
    );
    // The second opening is of what the first one wrote.
    for _ in 0..2 {
        let engine = open(folder.path());
        let collection = engine.collection("c").unwrap();
        let expected = expected();
        let request = ScrollRequest {
            filter: None,
            limit: usize::MAX,
            offset: None,
            order_by: None,
            with_payload: PayloadSelector::All,
            with_vector: VectorSelector::None,
        };
        let page = collection.scroll(&request).unwrap();
        let found: BTreeMap<PointId, Option<serde_json::Value>> = page
            .points
            .into_iter()
            .map(|record| {
                let payload = record.payload.filter(|payload| !payload.is_empty());
                (record.id, payload.map(serde_json::Value::Object))
            })
            .collect();
        let wanted = expected
            .iter()
            .map(|(&id, payload)| (point_id(id), payload.clone()));
        assert_eq!(found, wanted.collect());
        for &id in expected.keys().step_by(37) {
            let request = SearchRequest {
                target: QueryTarget::Vector(vector(id)),
                using: "text".to_owned(),
                filter: None,
                hnsw_ef: Some(400),
                exact: false,
                score_threshold: None,
                limit: 3,
                offset: 0,
                with_payload: PayloadSelector::None,
                with_vector: VectorSelector::None,
            };
            assert_eq!(
                collection.search(&request).unwrap()[0].point.id,
                point_id(id)
            );
        }
    }
}

#[test]
fn damaged_copies_of_the_folder_are_named_and_those_that_matter_are_refused() {
    let good = unpack(&std::fs::read(fixture_path()).unwrap());
    assert!(good.len() > 15, "{:?}", good.keys());
    for (name, bytes) in &good {
        // Chunks end in zeros that do not count; their first bytes do, where they have any.
        let is_empty = bytes.iter().all(|&byte| byte == 0);
        if is_empty {
            continue;
        }
        let folder = tempfile::tempdir().unwrap();
        let mut damaged = good.clone();
        damaged.get_mut(name).unwrap()[20] ^= 0x11;
        write_folder(folder.path(), &damaged);
        let mut damages = Vec::new();
        let verified = verify(folder.path(), &mut |damage| {
            damages.push(damage.to_string());
        });
        let Ok(verified) = verified else {
            panic!("{name}: {verified:?}");
        };
        // A chunk of a growing segment is covered by the checkpoint's checksums, rows behind it by the
        // log; a chunk that no checkpoint counts is garbage by definition.
        // The first log file is one whose records are all in the checkpoint.
        let counts = !name.ends_with(".chunk") && !name.ends_with("wal-0000000000000001.log");
        assert!(
            verified.damages > 0 || !counts,
            "{name} was damaged at byte 20 and nothing was said"
        );
    }
}
