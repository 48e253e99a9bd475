//! What a collection tells of its segments agrees with what was stored.

use flatwater_engine::clock;
use flatwater_engine::collection::memory::Usage;
use flatwater_engine::collection::segments::SegmentState;
use flatwater_engine::collection::update::{Selection, Update};
use flatwater_engine::config::collection::{CollectionConfig, FieldSchema, FieldType};
use flatwater_segment::PointId;

use crate::fixture::{DIM, SEGMENT_ROWS, config, open, upsert, wait_until_green};

#[test]
fn segments_tell_their_state_age_size_and_points() {
    let folder = tempfile::tempdir().unwrap();
    let before_ms = clock::unix_ms();
    {
        let engine = open(folder.path(), 2);
        engine.create_collection("c", config()).unwrap();
        let collection = engine.collection("c").unwrap();
        assert!(collection.segments().unwrap().is_empty());
        upsert(&collection, 0..SEGMENT_ROWS, 0, false);
        upsert(&collection, SEGMENT_ROWS..SEGMENT_ROWS + 50, 0, false);
        wait_until_green(&collection);
        let gone = (0..10).map(PointId::Num).collect();
        let update = Update::Delete(Selection::Ids(gone));
        collection.update_blocking(update, false).unwrap();

        let segments = collection.segments().unwrap();
        let states: Vec<_> = segments.iter().map(|segment| segment.state).collect();
        assert_eq!(states, [SegmentState::Sealed, SegmentState::Growing]);
        let [sealed, growing] = segments.as_slice() else {
            unreachable!("there are two");
        };
        assert_eq!((sealed.points, sealed.deleted()), (SEGMENT_ROWS - 10, 10));
        assert_eq!((growing.points, growing.deleted()), (50, 0));
        assert_eq!(sealed.job, None);
        let vector = &sealed.vectors[0];
        assert_eq!((vector.dim, vector.live), (DIM, SEGMENT_ROWS - 10));
        assert_eq!(
            vector.indexed, vector.live,
            "all of a sealed segment is in its graph"
        );
        assert_eq!(vector.graph.unwrap().m, 16);
        assert_eq!(
            (growing.vectors[0].live, growing.vectors[0].indexed),
            (50, 0)
        );
        let now_ms = clock::unix_ms();
        for segment in &segments {
            let made_ms = segment.created_at_ms.unwrap();
            assert!((before_ms..=now_ms).contains(&made_ms));
        }
        // Originals, codes and links at least.
        assert!(
            sealed.disk_bytes > SEGMENT_ROWS * (DIM as u64 * 5 + 64),
            "{sealed:?}"
        );
        engine.shutdown().unwrap();
    }
    // The age is that of the segment, not of the process.
    let opened_ms = clock::unix_ms();
    let engine = open(folder.path(), 2);
    let collection = engine.collection("c").unwrap();
    for segment in collection.segments().unwrap() {
        assert!(segment.created_at_ms.unwrap() < opened_ms);
    }
}

#[test]
fn the_memory_report_counts_each_file_once_and_what_is_kept_in_memory() {
    let folder = tempfile::tempdir().unwrap();
    let engine = open(folder.path(), 2);
    let config = CollectionConfig {
        on_disk_payload: true,
        ..config()
    };
    engine.create_collection("c", config).unwrap();
    let collection = engine.collection("c").unwrap();
    assert_eq!(collection.memory().unwrap().total, Usage::default());
    upsert(&collection, 0..SEGMENT_ROWS, 0, false);
    upsert(&collection, SEGMENT_ROWS..SEGMENT_ROWS + 50, 0, false);
    let schema = FieldSchema {
        field_type: FieldType::Keyword,
        params: None,
    };
    let field = "kind".to_owned();
    let index = Update::CreateFieldIndex { field, schema };
    collection.update_blocking(index, true).unwrap();
    wait_until_green(&collection);

    let report = collection.memory().unwrap();
    let on_disk = collection.segments().unwrap();
    let on_disk: u64 = on_disk.iter().map(|segment| segment.disk_bytes).sum();
    // A checkpoint in between may have written a small file.
    let apart = report.total.disk_bytes.abs_diff(on_disk);
    assert!(apart < 1 << 16, "{report:?} {on_disk}");
    let vector = report.vectors[""];
    let originals = (SEGMENT_ROWS + 50) * DIM as u64 * 4;
    assert!(vector.storage.disk_bytes >= originals, "{vector:?}");
    // A sealed graph lies in files, the growing one in memory.
    assert!(vector.index.disk_bytes > SEGMENT_ROWS * 64 && vector.index.ram_bytes > 0);
    assert!(vector.quantized.unwrap().disk_bytes >= (SEGMENT_ROWS + 50) * DIM as u64);
    assert!(report.payload.disk_bytes > 0 && report.fields["kind"].ram_bytes > 0);
    assert_eq!(
        report.payload.expected_cache_bytes, 0,
        "payloads stay on the disk"
    );
    assert!(report.ids.ram_bytes > 50 * 32 && report.ids.disk_bytes > 0);
    for part in [
        vector.storage,
        vector.index,
        report.payload,
        report.ids,
        report.total,
    ] {
        assert!(part.cached_bytes <= part.disk_bytes, "{part:?}");
    }
    // All of it was just written.
    assert!(report.total.cached_bytes > originals, "{report:?}");
}
