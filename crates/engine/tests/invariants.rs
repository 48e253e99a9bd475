//! The promises of ARCHITECTURE.md that the engine keeps alone.

#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crossbeam_channel::{RecvTimeoutError, bounded};
use flatwater_engine::error::EngineError;
use flatwater_engine::pool::bell::Bell;
use flatwater_engine::shard::op::{FieldIndexRecord, PayloadEdit, encode_rows};
use flatwater_engine::shard::view::ShardView;
use flatwater_engine::shard::{Shard, ShardOptions, Target};
use flatwater_engine::update::OnAck;
use flatwater_index::Metric;
use flatwater_index::hnsw::{Inline, Params};
use flatwater_segment::PointId;
use flatwater_segment::dir::{Directory, FsDirectory};
use flatwater_segment::field::FieldType;
use flatwater_segment::growing::write::{NewRow, NewVector};
use flatwater_segment::mask::Mask;
use flatwater_segment::parts::spec::{SegmentSpec, VectorSpec};
use flatwater_segment::payload::Payload;
use flatwater_segment::payload::eval::CompiledFilter;
use flatwater_segment::payload::filter::{
    Condition, FieldCondition, FieldTest, Filter, MatchValue,
};
use flatwater_segment::search::{SegmentSearch, search_segment};
use serde_json::json;

const DIM: usize = 64;

fn shard(path: &Path) -> Shard {
    let dir: Arc<dyn Directory> = Arc::new(FsDirectory::open(path).unwrap());
    let params = Params {
        m: 8,
        ef_construct: 40,
        seed: 1,
    };
    let vectors = vec![VectorSpec::new("", DIM, Metric::Euclid, Some(params), 1)];
    let options = ShardOptions {
        spec: Arc::new(SegmentSpec {
            vectors,
            rows_max: 100_000,
        }),
        log_file_bytes: 1 << 20,
        flush_interval: Duration::from_millis(50),
        background: Bell::default(),
    };
    Shard::open(&dir, &options).unwrap()
}

/// Runs an update and waits for its acknowledgement.
fn acknowledged(update: impl FnOnce(OnAck) -> flatwater_engine::error::Result<()>) {
    let (sender, receiver) = bounded(1);
    update(Box::new(move |result| sender.send(result).unwrap())).unwrap();
    receiver.recv().unwrap().unwrap();
}

fn vector(id: u64, salt: u64) -> Vec<f32> {
    (0..DIM as u64)
        .map(|i| ((id * 31 + i * 17 + salt * 7) % 101) as f32)
        .collect()
}

fn upsert(shard: &Shard, ids: std::ops::Range<u64>, salt: u64) {
    let rows: Vec<NewRow> = ids
        .map(|id| NewRow {
            id: PointId::Num(id),
            vectors: vec![Some(NewVector {
                original: vector(id, salt),
                rotated: None,
            })],
            payload_json: Some(json!({ "salt": salt }).to_string().into_bytes()),
        })
        .collect();
    let body = encode_rows(&[String::new()], &rows);
    acknowledged(|on_ack| shard.upsert(rows, body, false, on_ack));
}

fn set_salt(shard: &Shard, ids: Vec<u64>, salt: u64) {
    let mut patch = Payload::new();
    patch.insert("salt".into(), json!(salt));
    let target = Target::Ids(ids.into_iter().map(PointId::Num).collect());
    let edit = PayloadEdit::Set {
        payload_json: serde_json::to_vec(&patch).unwrap(),
        key: None,
    };
    acknowledged(|on_ack| shard.edit_payload(target, edit, false, on_ack));
}

/// Everything that a view shows.
fn contents(view: &ShardView) -> Vec<(PointId, Vec<f32>, Payload)> {
    let mut points = Vec::new();
    for segment in &view.segments {
        segment.walk_points(None, |id, row| {
            let vector = segment.vector_of(row, 0).unwrap().to_vec();
            points.push((id, vector, segment.payload_of(row).unwrap()));
            true
        });
    }
    points
}

#[test]
fn a_view_never_changes() {
    let folder = tempfile::tempdir().unwrap();
    let shard = shard(folder.path());
    upsert(&shard, 0..300, 1);
    let view = shard.view();
    let before = contents(&view);
    assert_eq!(before.len(), 300);

    upsert(&shard, 100..1500, 2);
    set_salt(&shard, (0..50).collect(), 3);
    acknowledged(|on_ack| {
        shard.delete(
            Target::Ids((50..100).map(PointId::Num).collect()),
            false,
            on_ack,
        )
    });
    let segment = Arc::clone(shard.view().segments[0].segment());
    while segment.index_step(0, &Inline, &|| false) {}

    assert_eq!(contents(&view), before);
    assert_eq!(view.live_count(), 300);
    assert_eq!(contents(&shard.view()).len(), 1450);
}

#[test]
fn only_the_writer_thread_publishes_a_view() {
    fn sources(folder: &Path, found: &mut Vec<std::path::PathBuf>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                sources(&path, found);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path);
            }
        }
    }
    let mut found = Vec::new();
    sources(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("src"),
        &mut found,
    );
    let publishers: Vec<_> = found
        .iter()
        .filter(|path| {
            std::fs::read_to_string(path)
                .unwrap()
                .contains("view.store(")
        })
        .map(|path| path.file_name().unwrap().to_owned())
        .collect();
    assert_eq!(publishers, ["writer.rs"]);
}

#[test]
fn a_stopped_builder_delays_no_search_and_no_write() {
    let folder = tempfile::tempdir().unwrap();
    let shard = shard(folder.path());
    upsert(&shard, 0..3000, 1);
    let segment = Arc::clone(shard.view().segments[0].segment());
    for _ in 0..20 {
        assert!(segment.index_step(0, &Inline, &|| false));
    }
    let (stopped, is_stopped) = bounded(1);
    let released = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let builder = scope.spawn(|| {
            // In the middle of a batch the builder stops dead, as if its core were taken away.
            let stop = || {
                let _already_told = stopped.try_send(());
                while !released.load(Ordering::Acquire) {
                    std::thread::yield_now();
                }
                false
            };
            segment.index_step(0, &Inline, &stop)
        });
        is_stopped.recv().unwrap();
        for id in 0..20 {
            upsert(&shard, 5000 + id..5001 + id, 2);
            let query = vector(5000 + id, 2);
            let search = SegmentSearch {
                column: 0,
                vector: &query,
                k: 1,
                ef: 50,
                exact: false,
                mask: None,
            };
            let hits = search_segment(&shard.view().segments[0], &search).unwrap();
            assert_eq!(hits[0].score, 0.0);
        }
        assert!(!builder.is_finished());
        released.store(true, Ordering::Release);
        assert!(builder.join().unwrap());
    });
}

#[test]
fn a_payload_change_copies_no_vector() {
    let folder = tempfile::tempdir().unwrap();
    let shard = shard(folder.path());
    upsert(&shard, 0..2000, 1);
    let before = shard.view();
    set_salt(&shard, (0..2000).collect(), 9);
    let after = shard.view();
    let (old, new) = (&before.segments[0], &after.segments[0]);
    assert_eq!(new.rows_len(), old.rows_len());
    assert_eq!(new.segment().columns()[0].originals().len(), 2000);
    let address = |view: &ShardView| view.segments[0].vector_of(7, 0).unwrap().as_ptr();
    assert_eq!(address(&before), address(&after));
    assert!(
        contents(&after)
            .iter()
            .all(|(_, _, payload)| payload["salt"] == json!(9))
    );
    assert!(
        contents(&before)
            .iter()
            .all(|(_, _, payload)| payload["salt"] == json!(1))
    );
}

#[test]
fn a_writer_builds_no_index_and_who_waits_for_one_is_answered_at_the_stop() {
    let folder = tempfile::tempdir().unwrap();
    // No engine, so no background: an index would never be built.
    let shard = shard(folder.path());
    let names = vec![String::new()];
    let upsert = |first: u64| {
        let rows: Vec<NewRow> = (first..first + 400)
            .map(|id| NewRow {
                id: PointId::Num(id),
                vectors: vec![Some(NewVector {
                    original: vector(id, 0),
                    rotated: None,
                })],
                payload_json: Some(json!({ "n": id % 5 }).to_string().into_bytes()),
            })
            .collect();
        let body = encode_rows(&names, &rows);
        acknowledged(|on_ack| shard.upsert(rows, body, false, on_ack));
    };
    let record = || FieldIndexRecord {
        field: "n".to_owned(),
        field_type: FieldType::Integer,
        params_json: None,
    };
    upsert(0);
    acknowledged(|on_ack| shard.create_field_index(record(), false, on_ack));
    let (sender, receiver) = bounded(1);
    let on_ack: OnAck = Box::new(move |result| sender.send(result).unwrap());
    shard.create_field_index(record(), true, on_ack).unwrap();
    upsert(400);
    let view = shard.view();
    assert!(view.schemas.contains_key("n"));
    assert!(view.segments[0].fields().is_empty());
    let filter = Filter {
        must: vec![Condition::Field(FieldCondition {
            key: "n".to_owned(),
            test: FieldTest::Value(MatchValue::Integer(3)),
        })],
        ..Filter::default()
    };
    let filter = CompiledFilter::new(&filter).unwrap();
    let segment = &view.segments[0];
    let mask = Mask::build(&filter, segment.fields(), segment);
    assert_eq!(mask.count(), 160);
    assert!(receiver.try_recv().is_err(), "nobody built an index");
    shard.stop();
    let refused = receiver.recv().unwrap().unwrap_err();
    assert!(matches!(refused, EngineError::Stopping), "{refused}");
    drop(shard);
    let shard = self::shard(folder.path());
    let view = shard.view();
    assert!(
        view.segments[0].fields().contains_key("n"),
        "opening builds it"
    );
}

#[test]
fn who_writes_while_the_shard_stops_gets_an_answer() {
    for _ in 0..30 {
        let folder = tempfile::tempdir().unwrap();
        let shard = shard(folder.path());
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    loop {
                        let (sender, receiver) = bounded(1);
                        let on_ack: OnAck = Box::new(move |result| drop(sender.send(result)));
                        let target = Target::Ids(vec![PointId::Num(1)]);
                        if shard.delete(target, false, on_ack).is_err() {
                            return;
                        }
                        match receiver.recv_timeout(std::time::Duration::from_secs(20)) {
                            Ok(Ok(_)) => {}
                            Ok(Err(_)) | Err(RecvTimeoutError::Disconnected) => return,
                            Err(RecvTimeoutError::Timeout) => panic!("no answer"),
                        }
                    }
                });
            }
            std::thread::sleep(std::time::Duration::from_millis(2));
            shard.stop();
        });
    }
}
