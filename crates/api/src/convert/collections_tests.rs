use std::collections::BTreeMap;

use flatwater_engine::config::collection::{FieldSchema, FieldType, HnswDiff};
use flatwater_index::Metric;

use super::*;

fn decode(body: Value) -> Result<CollectionConfig> {
    let defaults = CollectionConfig {
        on_disk_payload: true,
        ..CollectionConfig::default()
    };
    decode_create(body.to_string().as_bytes(), &defaults)
}

fn refusal(body: Value) -> (u16, String) {
    let refusal = crate::status::refusal(&decode(body).unwrap_err());
    (refusal.code, refusal.text)
}

fn vectors() -> Value {
    json!({"size": 4, "distance": "Dot"})
}

#[test]
fn a_single_vector_gets_the_defaults() {
    let config = decode(json!({"vectors": vectors()})).unwrap();
    let params = &config.vectors[""];
    assert_eq!(
        (params.size, params.distance, params.on_disk),
        (4, Metric::Dot, None)
    );
    assert_eq!(config.hnsw, CollectionConfig::default().hnsw);
    assert!(config.on_disk_payload);
}

#[test]
fn named_vectors_may_have_any_name_even_size() {
    let config = decode(json!({"vectors": {
        "size": {"size": 2, "distance": "Cosine"},
        "b": {"size": 3, "distance": "Manhattan", "on_disk": true, "datatype": "float32",
              "hnsw_config": {"m": 8}},
    }}))
    .unwrap();
    assert_eq!(config.vectors.keys().collect::<Vec<_>>(), ["b", "size"]);
    assert_eq!(
        config.vectors["b"].hnsw,
        HnswDiff {
            m: Some(8),
            ..HnswDiff::default()
        }
    );
    assert!(decode(json!({})).unwrap().vectors.is_empty());
}

#[test]
fn settings_are_laid_over_the_defaults() {
    let config = decode(json!({
        "vectors": vectors(),
        "hnsw_config": {"m": 32, "ef_construct": 4, "full_scan_threshold_kb": 10, "on_disk": true},
        "optimizers_config": {"indexing_threshold": 0, "max_optimization_threads": "auto",
            "deleted_threshold": 1, "max_segment_size_kb": 1, "prevent_unoptimized": false},
        "wal_config": {"wal_capacity_mb": 1},
        "shard_number": 1, "replication_factor": 1, "sharding_method": "auto",
        "on_disk_payload": false, "metadata": {"a": 1}, "strict_mode_config": {"enabled": false},
        "sparse_vectors": {}, "quantization_config": null, "unknown": 1,
    }))
    .unwrap();
    assert_eq!((config.hnsw.m, config.hnsw.ef_construct), (32, 4));
    assert_eq!(
        (config.hnsw.full_scan_threshold, config.hnsw.on_disk),
        (10, Some(true))
    );
    assert_eq!(config.optimizers.indexing_threshold, 0);
    assert_eq!(config.optimizers.max_segment_size, Some(1));
    assert_eq!(config.optimizers.flush_interval_sec, 5);
    assert_eq!(config.wal.wal_capacity_mb, 1);
    assert!(!config.on_disk_payload);
    assert_eq!(config.metadata.map(Value::Object), Some(json!({"a": 1})));
}

#[test]
fn values_outside_their_range_are_a_422_with_all_rules() {
    let prefix = "Validation error in JSON body: [";
    for (body, rule) in [
        (
            json!({"vectors": {"size": 0, "distance": "Dot"}}),
            "vectors.size: value 0 invalid, must be from 1 to 65536",
        ),
        (
            json!({"vectors": {"a": {"size": 65537, "distance": "Dot"}}}),
            "vectors.a.size: value 65537 invalid, must be from 1 to 65536",
        ),
        (
            json!({"hnsw_config": {"ef_construct": 0}}),
            "hnsw_config.ef_construct: value 0 invalid, must be 4 or larger",
        ),
        (
            json!({"vectors": {"size": 4, "distance": "Dot", "hnsw_config": {"ef_construct": 3}}}),
            "vectors.hnsw_config.ef_construct: value 3 invalid, must be 4 or larger",
        ),
        (
            json!({"hnsw_config": {"full_scan_threshold": 9}}),
            "hnsw_config.full_scan_threshold: value 9 invalid, must be 10 or larger",
        ),
        (
            json!({"optimizers_config": {"deleted_threshold": 1.5}}),
            "optimizers_config.deleted_threshold: value 1.5 invalid, must be from 0 to 1",
        ),
        (
            json!({"optimizers_config": {"vacuum_min_vector_number": 99}}),
            "optimizers_config.vacuum_min_vector_number: value 99 invalid, must be 100 or larger",
        ),
        (
            json!({"optimizers_config": {"max_segment_size": 0}}),
            "optimizers_config.max_segment_size: value 0 invalid, must be 1 or larger",
        ),
        (
            json!({"wal_config": {"wal_capacity_mb": 0}}),
            "wal_config.wal_capacity_mb: value 0 invalid, must be 1 or larger",
        ),
        (
            json!({"wal_config": {"wal_retain_closed": 0}}),
            "wal_config.wal_retain_closed: value 0 invalid, must be 1 or larger",
        ),
        (
            json!({"shard_number": 0}),
            "shard_number: value 0 invalid, must be 1 or larger",
        ),
    ] {
        assert_eq!(refusal(body), (422, format!("{prefix}{rule}]")));
    }
    let (_, text) = refusal(json!({
        "hnsw_config": {"ef_construct": 0}, "wal_config": {"wal_capacity_mb": 0}
    }));
    assert!(text.contains("must be 4 or larger; wal_config"), "{text}");
    let (code, text) = refusal(json!({"vectors": {"a/b": vectors()}}));
    assert_eq!(code, 422);
    assert!(text.contains("vector name cannot contain '/'"), "{text}");
    let (code, _) = refusal(json!({"vectors": {"n".repeat(201): vectors()}}));
    assert_eq!(code, 422);
}

#[test]
fn wrong_types_are_a_400() {
    for body in [
        json!({"vectors": 3}),
        json!({"vectors": {"size": "4", "distance": "Dot"}}),
        json!({"vectors": {"size": -4, "distance": "Dot"}}),
        json!({"vectors": {"size": 4}}),
        json!({"vectors": {"distance": "Dot"}}),
        json!({"vectors": {"size": 4, "distance": "dot"}}),
        json!({"vectors": {"size": 4, "distance": "Dot", "datatype": "int3"}}),
        json!({"hnsw_config": {"m": -1}}),
        json!({"hnsw_config": {"m": 1.5}}),
        json!({"optimizers_config": {"max_optimization_threads": "many"}}),
        json!({"metadata": 1}),
    ] {
        let (code, text) = refusal(body.clone());
        assert_eq!(code, 400, "{body}");
        assert!(text.starts_with("Format error in JSON body: "), "{text}");
    }
}

#[test]
fn what_is_not_served_yet_is_named() {
    for (body, field) in [
        (
            json!({"quantization_config": {"scalar": {"type": "int8"}}}),
            "quantization_config",
        ),
        (json!({"sparse_vectors": {"s": {}}}), "sparse_vectors"),
        (json!({"init_from": {"collection": "x"}}), "init_from"),
        (json!({"payload": {"memory": "cold"}}), "payload"),
        (
            json!({"sharding_method": "custom"}),
            "sharding_method: custom",
        ),
        (json!({"shard_number": 2}), "shard_number: 2 (limit 1)"),
        (
            json!({"replication_factor": 3}),
            "replication_factor: 3 (limit 1)",
        ),
        (
            json!({"strict_mode_config": {"enabled": true}}),
            "strict_mode_config.enabled",
        ),
        (
            json!({"optimizers_config": {"prevent_unoptimized": true}}),
            "optimizers_config.prevent_unoptimized",
        ),
        (
            json!({"hnsw_config": {"inline_storage": true}}),
            "hnsw_config.inline_storage",
        ),
        (
            json!({"vectors": {"size": 4, "distance": "Dot", "datatype": "uint8"}}),
            "vectors.datatype: uint8",
        ),
        (
            json!({"vectors": {"a": {"size": 4, "distance": "Dot",
                "multivector_config": {"comparator": "max_sim"}}}}),
            "vectors.a.multivector_config",
        ),
        (
            json!({"vectors": {"size": 4, "distance": "Dot", "quantization_config": {"binary": {}}}}),
            "vectors.quantization_config",
        ),
    ] {
        let (code, text) = refusal(body);
        assert_eq!(code, 400);
        assert!(
            text.contains(&format!("`{field}` is not served yet")),
            "{text}"
        );
    }
}

#[test]
fn info_has_qdrants_shape() {
    let schema = FieldSchema {
        field_type: FieldType::Keyword,
        params: None,
    };
    let info = CollectionInfo {
        status: Status::Green,
        optimizer_error: None,
        grey_reason: None,
        indexed_vectors_count: 0,
        points_count: 12,
        segments_count: 2,
        config: decode(json!({"vectors": vectors()})).unwrap(),
        payload_schema: BTreeMap::from([("city".to_owned(), (schema, 5))]),
        update_queue_length: 0,
    };
    let shown: Value = serde_json::from_slice(&encode_info(&info)).unwrap();
    let expected = json!({
        "status": "green", "optimizer_status": "ok",
        "indexed_vectors_count": 0, "points_count": 12, "segments_count": 2,
        "config": {
            "params": {"vectors": {"size": 4, "distance": "Dot"}, "shard_number": 1,
                       "replication_factor": 1, "write_consistency_factor": 1,
                       "on_disk_payload": true},
            "hnsw_config": {"m": 16, "ef_construct": 100, "full_scan_threshold": 10000,
                            "max_indexing_threads": 0},
            "optimizer_config": {"deleted_threshold": 0.2, "vacuum_min_vector_number": 1000,
                "default_segment_number": 0, "max_segment_size": null, "memmap_threshold": null,
                "indexing_threshold": 10000, "flush_interval_sec": 5,
                "max_optimization_threads": null, "prevent_unoptimized": null},
            "wal_config": {"wal_capacity_mb": 32, "wal_segments_ahead": 0, "wal_retain_closed": 1},
            "quantization_config": null,
        },
        "payload_schema": {"city": {"data_type": "keyword", "points": 5}},
        "update_queue": {"length": 0},
    });
    assert_eq!(shown, expected);

    let trouble = CollectionInfo {
        status: Status::Red,
        optimizer_error: Some("no space".to_owned()),
        grey_reason: Some("max_optimization_threads is 0".to_owned()),
        config: CollectionConfig {
            metadata: Some(serde_json::Map::new()),
            ..info.config.clone()
        },
        ..info
    };
    let shown: Value = serde_json::from_slice(&encode_info(&trouble)).unwrap();
    assert_eq!(shown["status"], json!("red"));
    assert_eq!(shown["optimizer_status"], json!({"error": "no space"}));
    assert_eq!(
        shown["warnings"],
        json!([{"message": "max_optimization_threads is 0"}])
    );
    assert_eq!(shown["config"]["metadata"], json!({}));
}

#[test]
fn vectors_are_shown_as_they_were_given() {
    for given in [
        json!({"size": 4, "distance": "Euclid", "on_disk": true, "hnsw_config": {"m": 8}}),
        json!({"a": {"size": 2, "distance": "Cosine"}, "b": {"size": 3, "distance": "Manhattan"}}),
        json!({"a": {"size": 2, "distance": "Cosine"}}),
    ] {
        let config = decode(json!({ "vectors": given })).unwrap();
        assert_eq!(settings::encode_vectors(&config.vectors), given);
    }
}

#[test]
fn small_answers_have_qdrants_shape() {
    assert_eq!(
        encode_names(&["a".to_owned()]),
        br#"{"collections":[{"name":"a"}]}"#
    );
    assert_eq!(encode_exists(false), br#"{"exists":false}"#);
    assert_eq!(encode_done(true), b"true");
}
