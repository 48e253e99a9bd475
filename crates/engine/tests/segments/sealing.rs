//! Full segments become sealed ones under writes and reads, and nothing blinks.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use flatwater_engine::collection::update::{Selection, Update};
use flatwater_engine::config::collection::FieldSchema;
use flatwater_engine::query::request::{PayloadSelector, VectorSelector};
use flatwater_engine::verify::verify;
use flatwater_segment::PointId;
use flatwater_segment::field::FieldType;

use crate::fixture::{
    SEGMENT_ROWS, assert_as, config, open, payload, search, upsert, vector, wait_until_green,
};

/// Folders of segments: (sealed, growing).
fn folders(storage: &Path) -> (usize, usize) {
    let segments: PathBuf = storage.join("collections/c/shard0/segments");
    let entries = std::fs::read_dir(segments).unwrap();
    let is_sealed = entries.map(|entry| entry.unwrap().path().join("segment").exists());
    let is_sealed: Vec<bool> = is_sealed.collect();
    let sealed = is_sealed.iter().filter(|&&sealed| sealed).count();
    (sealed, is_sealed.len() - sealed)
}

#[test]
fn full_segments_are_sealed_under_writes_and_nothing_is_lost_doubled_or_brought_back() {
    let folder = tempfile::tempdir().unwrap();
    let mut model = BTreeMap::new();
    {
        let engine = open(folder.path(), 1);
        engine.create_collection("c", config()).unwrap();
        let collection = engine.collection("c").unwrap();
        let schema = FieldSchema {
            field_type: FieldType::Keyword,
            params: None,
        };
        let field = "kind".to_owned();
        collection
            .update_blocking(Update::CreateFieldIndex { field, schema }, true)
            .unwrap();
        for round in 0..14u64 {
            let first = round * 200;
            upsert(&collection, first..first + 200, 0, round % 5 == 0);
            model.extend((first..first + 200).map(|id| (id, 0)));
            // Points of segments that are being sealed just now are changed too.
            let changed: Vec<u64> = (0..first).filter(|id| id % 17 == round).collect();
            upsert(&collection, changed.iter().copied(), round + 1, false);
            model.extend(changed.iter().map(|&id| (id, round + 1)));
            let deleted: Vec<u64> = (0..first).filter(|id| id % 23 == round).collect();
            for id in &deleted {
                model.remove(id);
            }
            let ids = deleted.into_iter().map(PointId::Num).collect();
            collection
                .update_blocking(Update::Delete(Selection::Ids(ids)), false)
                .unwrap();
            assert_eq!(collection.count(None).unwrap(), model.len() as u64);
        }
        wait_until_green(&collection);
        assert_as(&collection, &model);
        assert!(collection.info().segments_count >= 3);
        // Changes of payloads of sealed rows: no vector is stored again.
        for id in model.keys().copied().step_by(50).collect::<Vec<_>>() {
            let update = Update::SetPayload {
                selection: Selection::Ids(vec![PointId::Num(id)]),
                payload: payload(id, model[&id]),
                key: None,
            };
            collection.update_blocking(update, false).unwrap();
        }
        assert_as(&collection, &model);
        engine.shutdown().unwrap();
    }
    let (sealed, growing) = folders(folder.path());
    assert!(
        sealed >= 2 && growing == 1,
        "{sealed} sealed, {growing} growing"
    );
    let verified = verify(folder.path(), &mut |damage| panic!("{damage}")).unwrap();
    assert_eq!((verified.segments, verified.damages), (sealed + growing, 0));
    for _ in 0..2 {
        let engine = open(folder.path(), 1);
        let collection = engine.collection("c").unwrap();
        assert_as(&collection, &model);
        let victim = *model.keys().next().unwrap();
        let ids = vec![PointId::Num(victim)];
        collection
            .update_blocking(Update::Delete(Selection::Ids(ids)), true)
            .unwrap();
        model.remove(&victim);
        upsert(&collection, std::iter::once(10), 99, true);
        model.insert(10, 99);
        assert_as(&collection, &model);
    }
}

#[test]
fn known_points_never_blink_while_segments_are_sealed() {
    let folder = tempfile::tempdir().unwrap();
    let engine = open(folder.path(), 1);
    engine.create_collection("c", config()).unwrap();
    let collection = engine.collection("c").unwrap();
    upsert(&collection, 0..500, 0, false);
    let (stop, looks) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for reader in 0..2u64 {
            let (collection, stop, looks) = (&collection, &stop, &looks);
            scope.spawn(move || {
                let mut id = reader * 100;
                while !stop.load(Ordering::Relaxed) {
                    id = (id + 7) % 500;
                    let found = search(collection, vector(id, 0), None, id % 2 == 0);
                    assert_eq!(found[0], id, "the nearest point is gone");
                    assert_eq!(found.iter().filter(|&&f| f == id).count(), 1);
                    let record = collection
                        .retrieve(
                            &[PointId::Num(id)],
                            &PayloadSelector::All,
                            &VectorSelector::None,
                        )
                        .unwrap();
                    assert_eq!(record.len(), 1);
                    assert!(collection.count(None).unwrap() >= 500);
                    looks.fetch_add(1, Ordering::Relaxed);
                    // Readers that never rest would leave the idle priority of the builders no core.
                    std::thread::sleep(Duration::from_millis(4));
                }
            });
        }
        for first in (500..4000).step_by(250) {
            upsert(&collection, first..first + 250, 0, false);
            std::thread::sleep(Duration::from_millis(20));
        }
        wait_until_green(&collection);
        stop.store(true, Ordering::Relaxed);
    });
    assert!(looks.load(Ordering::Relaxed) > 50);
    assert!(collection.info().segments_count >= 4);
    assert_eq!(collection.count(None).unwrap(), 4000);
}

#[test]
fn verify_names_a_damaged_file_and_refuses_a_folder_in_use() {
    let folder = tempfile::tempdir().unwrap();
    let engine = open(folder.path(), 1);
    engine.create_collection("c", config()).unwrap();
    let collection = engine.collection("c").unwrap();
    upsert(&collection, 0..SEGMENT_ROWS + 50, 0, true);
    wait_until_green(&collection);
    let in_use = verify(folder.path(), &mut |_| {}).unwrap_err().to_string();
    assert!(in_use.contains("in use"), "{in_use}");
    engine.shutdown().unwrap();
    drop((collection, engine));
    let segments = folder.path().join("collections/c/shard0/segments");
    let sealed = std::fs::read_dir(segments)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| path.join("segment").exists())
        .unwrap();
    let file = sealed.join("sealed-vector0");
    let mut bytes = std::fs::read(&file).unwrap();
    bytes[5000] ^= 1;
    std::fs::write(&file, bytes).unwrap();
    let mut damages = Vec::new();
    let verified = verify(folder.path(), &mut |damage| {
        damages.push(damage.to_string());
    })
    .unwrap();
    assert_eq!((verified.damages, damages.len()), (1, 1), "{damages:?}");
    assert!(damages[0].contains("sealed-vector0"), "{damages:?}");
    assert!(verify(&folder.path().join("nothing"), &mut |_| {}).is_err());
}
