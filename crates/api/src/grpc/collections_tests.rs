use std::collections::{BTreeMap, HashMap};

use flatwater_engine::config::collection::{FieldSchema, FieldType};
use qdrant_client::qdrant::vectors_config::Config;
use qdrant_client::qdrant::{
    CreateCollection, Distance, HnswConfigDiff, MaxOptimizationThreads, MultiVectorConfig,
    OptimizersConfigDiff, QuantizationConfig, ScalarQuantization, SparseVectorConfig,
    SparseVectorParams, StrictModeConfig, VectorParams, VectorParamsMap, VectorsConfig,
    WalConfigDiff, max_optimization_threads, quantization_config,
};
use serde_json::json;

use super::*;
use crate::status::grpc_refusal;

fn vectors(config: Config) -> Option<VectorsConfig> {
    Some(VectorsConfig {
        config: Some(config),
    })
}

fn params(size: u64, distance: Distance) -> VectorParams {
    VectorParams {
        size,
        distance: distance.into(),
        ..Default::default()
    }
}

fn small() -> CreateCollection {
    CreateCollection {
        vectors_config: vectors(Config::Params(params(4, Distance::Dot))),
        ..Default::default()
    }
}

fn text(request: CreateCollection) -> String {
    let error = decode_create(request, &CollectionConfig::default()).unwrap_err();
    grpc_refusal(&error).text
}

fn rest(body: Value) -> CollectionConfig {
    let defaults = CollectionConfig::default();
    let bytes = body.to_string().into_bytes();
    crate::convert::collections::decode_create(&bytes, &defaults).unwrap()
}

#[test]
#[allow(deprecated, reason = "clients send these fields")]
fn every_setting_means_what_it_means_in_rest() {
    let named = HashMap::from([
        (
            "a".to_owned(),
            VectorParams {
                hnsw_config: Some(HnswConfigDiff {
                    m: Some(0),
                    payload_m: Some(16),
                    ..Default::default()
                }),
                on_disk: Some(true),
                datatype: Some(qdrant::Datatype::Float32.into()),
                ..params(3, Distance::Cosine)
            },
        ),
        ("b".to_owned(), params(65_536, Distance::Manhattan)),
    ]);
    let request = CreateCollection {
        vectors_config: vectors(Config::ParamsMap(VectorParamsMap { map: named })),
        hnsw_config: Some(HnswConfigDiff {
            m: Some(0),
            ef_construct: Some(64),
            full_scan_threshold: Some(10),
            payload_m: Some(24),
            on_disk: Some(false),
            ..Default::default()
        }),
        optimizers_config: Some(OptimizersConfigDiff {
            deleted_threshold: Some(0.5),
            indexing_threshold: Some(0),
            max_optimization_threads: Some(MaxOptimizationThreads {
                variant: Some(max_optimization_threads::Variant::Value(2)),
            }),
            ..Default::default()
        }),
        wal_config: Some(WalConfigDiff {
            wal_capacity_mb: Some(8),
            ..Default::default()
        }),
        on_disk_payload: Some(false),
        shard_number: Some(1),
        sharding_method: Some(0),
        strict_mode_config: Some(StrictModeConfig {
            enabled: Some(false),
            ..Default::default()
        }),
        metadata: encode_map(serde_json::Map::from_iter([(
            "owner".to_owned(),
            json!({"id": 7}),
        )])),
        ..Default::default()
    };
    let read = decode_create(request, &CollectionConfig::default()).unwrap();
    let expected = rest(json!({
        "vectors": {
            "a": {"size": 3, "distance": "Cosine", "on_disk": true, "datatype": "float32",
                  "hnsw_config": {"m": 0, "payload_m": 16}},
            "b": {"size": 65_536, "distance": "Manhattan"},
        },
        "hnsw_config": {"m": 0, "ef_construct": 64, "full_scan_threshold": 10, "payload_m": 24,
                        "on_disk": false},
        "optimizers_config": {"deleted_threshold": 0.5, "indexing_threshold": 0,
                              "max_optimization_threads": 2},
        "wal_config": {"wal_capacity_mb": 8},
        "on_disk_payload": false,
        "metadata": {"owner": {"id": 7}},
    }));
    assert_eq!(read, expected);
}

#[test]
fn the_older_field_of_optimization_threads_is_read() {
    let mut request = small();
    request.optimizers_config = Some(OptimizersConfigDiff {
        deprecated_max_optimization_threads: Some(3),
        ..Default::default()
    });
    let read = decode_create(request, &CollectionConfig::default()).unwrap();
    assert_eq!(read.optimizers.max_optimization_threads, Some(3));
}

#[test]
fn what_is_not_served_or_out_of_range_has_the_texts_of_rest() {
    let vector = |change: fn(&mut VectorParams)| {
        let mut params = params(4, Distance::Dot);
        change(&mut params);
        CreateCollection {
            vectors_config: vectors(Config::Params(params)),
            ..Default::default()
        }
    };
    let with = |change: fn(&mut CreateCollection)| {
        let mut request = small();
        change(&mut request);
        request
    };
    let scalar = || {
        let inner = quantization_config::Quantization::Scalar(ScalarQuantization::default());
        Some(QuantizationConfig {
            quantization: Some(inner),
        })
    };
    let mut quantized = small();
    quantized.quantization_config = scalar();
    for (request, part) in [
        (quantized, "`quantization_config` is not served yet"),
        (
            with(|r| {
                let map = HashMap::from([("s".to_owned(), SparseVectorParams::default())]);
                r.sparse_vectors_config = Some(SparseVectorConfig { map });
            }),
            "`sparse_vectors` is not served yet",
        ),
        (
            with(|r| r.shard_number = Some(2)),
            "shard_number: 2 (limit 1)",
        ),
        (
            with(|r| r.replication_factor = Some(0)),
            "replication_factor: value 0 invalid",
        ),
        (
            with(|r| r.sharding_method = Some(1)),
            "sharding_method: custom",
        ),
        (
            with(|r| {
                r.strict_mode_config = Some(StrictModeConfig {
                    enabled: Some(true),
                    ..Default::default()
                });
            }),
            "strict_mode_config.enabled",
        ),
        (
            with(|r| {
                r.id_tracker = Some(qdrant::IdTrackerParams { memory: Some(1) });
            }),
            "`id_tracker` is not served yet",
        ),
        (
            vector(|p| p.multivector_config = Some(MultiVectorConfig::default())),
            "`vectors.multivector_config` is not served yet",
        ),
        (vector(|p| p.datatype = Some(2)), "vectors.datatype: uint8"),
        (
            vector(|p| p.datatype = Some(77)),
            "vectors.datatype: invalid value: 77",
        ),
        (
            vector(|p| p.memory = Some(3)),
            "`vectors.memory` is not served yet",
        ),
        (
            vector(|p| p.distance = 0),
            "vectors.distance: invalid value: \"UnknownDistance\"",
        ),
        (
            vector(|p| p.size = 0),
            "Validation error in body: [vectors.size: value 0 invalid",
        ),
    ] {
        let text = text(request);
        assert!(text.contains(part), "{text}");
    }
}

#[test]
fn the_info_says_what_the_engine_says() {
    let config = rest(json!({
        "vectors": {"size": 4, "distance": "Euclid", "hnsw_config": {"m": 0}},
        "hnsw_config": {"payload_m": 8},
        "metadata": {"a": 1},
    }));
    let schema = FieldSchema {
        field_type: FieldType::Keyword,
        params: None,
    };
    let info = CollectionInfo {
        status: Status::Grey,
        optimizer_error: Some("broken".into()),
        grey_reason: Some("held".into()),
        indexed_vectors_count: 3,
        points_count: 5,
        segments_count: 2,
        config,
        payload_schema: BTreeMap::from([("k".to_owned(), (schema, 4))]),
        update_queue_length: 6,
    };
    let shown = encode_info(&info);
    assert_eq!(shown.status, 4);
    let optimizer = shown.optimizer_status.unwrap();
    assert_eq!((optimizer.ok, optimizer.error.as_str()), (false, "broken"));
    assert_eq!(shown.warnings[0].message, "held");
    assert_eq!(
        (
            shown.indexed_vectors_count,
            shown.points_count,
            shown.segments_count
        ),
        (Some(3), Some(5), 2)
    );
    assert_eq!(shown.update_queue.unwrap().length, 6);
    assert_eq!(shown.payload_schema["k"].points, Some(4));
    let config = shown.config.unwrap();
    assert_eq!(config.hnsw_config.unwrap().payload_m, Some(8));
    assert_eq!(
        config.metadata,
        encode_map(serde_json::Map::from_iter([("a".to_owned(), json!(1))]))
    );
    let optimizers = config.optimizer_config.unwrap();
    assert_eq!(
        optimizers.max_optimization_threads.unwrap().variant,
        Some(max_optimization_threads::Variant::Setting(0))
    );
    let Some(Config::Params(params)) = config.params.unwrap().vectors_config.unwrap().config else {
        panic!("the unnamed vector is not alone")
    };
    assert_eq!((params.size, params.distance()), (4, Distance::Euclid));
    assert_eq!(params.hnsw_config.unwrap().m, Some(0));
}
