//! Settings of HNSW, optimizers, log and vectors: in, in the shape of REST, and out.

use std::collections::BTreeMap;

use flatwater_engine::config::collection::{
    HnswConfig, HnswDiff, OptimizerConfig, UNNAMED, VectorParams, WalConfig,
};
use flatwater_index::Metric;
use qdrant_client::qdrant;
use qdrant_client::qdrant::max_optimization_threads::{Setting, Variant};
use qdrant_client::qdrant::vectors_config::Config;
use serde_json::Value;

use super::shape::{Shape, known, number_if};
use crate::error::Result;

/// `memory` as REST writes it; the unknown one counts as absent.
pub(super) fn memory_word(path: &str, number: Option<i32>) -> Result<Option<&'static str>> {
    let Some(number) = number else {
        return Ok(None);
    };
    Ok(match known(&format!("{path}.memory"), number)? {
        qdrant::Memory::Unknown => None,
        qdrant::Memory::Cold => Some("cold"),
        qdrant::Memory::Cached => Some("cached"),
        qdrant::Memory::Pinned => Some("pinned"),
    })
}

/// `hnsw_config`.
#[allow(deprecated, reason = "`on_disk` is stored and shown as it was given")]
pub(super) fn hnsw(diff: qdrant::HnswConfigDiff, path: &str) -> Result<Shape> {
    Ok(Shape::default()
        .with("m", diff.m)
        .with("ef_construct", diff.ef_construct)
        .with("full_scan_threshold", diff.full_scan_threshold)
        .with("max_indexing_threads", diff.max_indexing_threads)
        .with("on_disk", diff.on_disk)
        .with("payload_m", diff.payload_m)
        .with("inline_storage", diff.inline_storage)
        .with("memory", memory_word(path, diff.memory)?))
}

/// `optimizers_config`.
pub(super) fn optimizers(diff: qdrant::OptimizersConfigDiff) -> Result<Shape> {
    let threads = match diff.max_optimization_threads.and_then(|max| max.variant) {
        Some(Variant::Value(count)) => Some(Value::from(count)),
        Some(Variant::Setting(_)) => Some(Value::from("auto")),
        None => diff.deprecated_max_optimization_threads.map(Value::from),
    };
    let threshold = number_if(
        "optimizers_config.deleted_threshold",
        diff.deleted_threshold,
    )?;
    Ok(Shape::default()
        .with("deleted_threshold", threshold)
        .with("vacuum_min_vector_number", diff.vacuum_min_vector_number)
        .with("default_segment_number", diff.default_segment_number)
        .with("max_segment_size", diff.max_segment_size)
        .with("memmap_threshold", diff.memmap_threshold)
        .with("indexing_threshold", diff.indexing_threshold)
        .with("flush_interval_sec", diff.flush_interval_sec)
        .with("max_optimization_threads", threads)
        .with("prevent_unoptimized", diff.prevent_unoptimized))
}

/// `wal_config`.
pub(super) fn wal(diff: qdrant::WalConfigDiff) -> Shape {
    Shape::default()
        .with("wal_capacity_mb", diff.wal_capacity_mb)
        .with("wal_segments_ahead", diff.wal_segments_ahead)
        .with("wal_retain_closed", diff.wal_retain_closed)
}

/// `vectors`.
pub(super) fn vectors(config: qdrant::VectorsConfig) -> Result<Option<Value>> {
    match config.config {
        None => Ok(None),
        Some(Config::Params(params)) => Ok(Some(vector(params, "vectors")?)),
        Some(Config::ParamsMap(map)) => {
            let named = map.map.into_iter().map(|(name, params)| {
                let shape = vector(params, &format!("vectors.{name}"))?;
                Ok((name, shape))
            });
            Ok(Some(Value::Object(named.collect::<Result<_>>()?)))
        }
    }
}

#[allow(deprecated, reason = "`on_disk` is stored and shown as it was given")]
fn vector(params: qdrant::VectorParams, path: &str) -> Result<Value> {
    let hnsw_config = params
        .hnsw_config
        .map(|diff| hnsw(diff, &format!("{path}.hnsw_config")))
        .transpose()?;
    let distance: qdrant::Distance = known(&format!("{path}.distance"), params.distance)?;
    let datatype = match params.datatype {
        None => None,
        Some(number) => datatype_word(known(&format!("{path}.datatype"), number)?),
    };
    Ok(Shape::default()
        .with("size", Some(params.size))
        .with("distance", Some(distance.as_str_name()))
        .with("hnsw_config", hnsw_config)
        .with_unread("quantization_config", params.quantization_config.is_some())
        .with_unread("multivector_config", params.multivector_config.is_some())
        .with("on_disk", params.on_disk)
        .with("datatype", datatype)
        .with("memory", memory_word(path, params.memory)?)
        .into())
}

/// `vectors` of an update: the settings of vectors that are given, by name.
#[allow(deprecated, reason = "`on_disk` is stored and shown as it was given")]
pub(super) fn vectors_diff(diff: qdrant::VectorsConfigDiff) -> Result<Value> {
    use qdrant::vectors_config_diff::Config;
    let named = match diff.config {
        None => Vec::new(),
        Some(Config::Params(params)) => vec![(UNNAMED.to_owned(), params)],
        Some(Config::ParamsMap(map)) => map.map.into_iter().collect(),
    };
    let shapes = named.into_iter().map(|(name, params)| {
        let path = format!("vectors.{name}");
        let hnsw_config = params
            .hnsw_config
            .map(|diff| hnsw(diff, &format!("{path}.hnsw_config")))
            .transpose()?;
        let shape = Shape::default()
            .with("hnsw_config", hnsw_config)
            .with_unread("quantization_config", params.quantization_config.is_some())
            .with("on_disk", params.on_disk)
            .with("memory", memory_word(&path, params.memory)?);
        Ok((name, shape.into()))
    });
    Ok(Value::Object(shapes.collect::<Result<_>>()?))
}

fn datatype_word(datatype: qdrant::Datatype) -> Option<&'static str> {
    match datatype {
        qdrant::Datatype::Default => None,
        qdrant::Datatype::Float32 => Some("float32"),
        qdrant::Datatype::Uint8 => Some("uint8"),
        qdrant::Datatype::Float16 => Some("float16"),
        qdrant::Datatype::Turbo4 => Some("turbo4"),
        qdrant::Datatype::Turbo8 => Some("turbo8"),
        qdrant::Datatype::Turbo16 => Some("turbo16"),
    }
}

fn wide(count: usize) -> u64 {
    count as u64
}

/// HNSW settings on their way out.
#[allow(deprecated, reason = "`on_disk` is shown as it was given")]
pub(super) fn encode_hnsw(config: &HnswConfig) -> qdrant::HnswConfigDiff {
    qdrant::HnswConfigDiff {
        m: Some(wide(config.m)),
        ef_construct: Some(wide(config.ef_construct)),
        full_scan_threshold: Some(wide(config.full_scan_threshold)),
        max_indexing_threads: Some(wide(config.max_indexing_threads)),
        on_disk: config.on_disk,
        payload_m: config.payload_m.map(wide),
        ..Default::default()
    }
}

#[allow(deprecated, reason = "`on_disk` is shown as it was given")]
fn encode_hnsw_diff(diff: &HnswDiff) -> Option<qdrant::HnswConfigDiff> {
    (*diff != HnswDiff::default()).then(|| qdrant::HnswConfigDiff {
        m: diff.m.map(wide),
        ef_construct: diff.ef_construct.map(wide),
        full_scan_threshold: diff.full_scan_threshold.map(wide),
        max_indexing_threads: diff.max_indexing_threads.map(wide),
        on_disk: diff.on_disk,
        payload_m: diff.payload_m.map(wide),
        ..Default::default()
    })
}

/// Optimizer settings on their way out.
pub(super) fn encode_optimizers(config: &OptimizerConfig) -> qdrant::OptimizersConfigDiff {
    let threads = match config.max_optimization_threads {
        Some(count) => Variant::Value(wide(count)),
        None => Variant::Setting(Setting::Auto.into()),
    };
    qdrant::OptimizersConfigDiff {
        deleted_threshold: Some(config.deleted_threshold),
        vacuum_min_vector_number: Some(wide(config.vacuum_min_vector_number)),
        default_segment_number: Some(wide(config.default_segment_number)),
        max_segment_size: config.max_segment_size.map(wide),
        memmap_threshold: config.memmap_threshold.map(wide),
        indexing_threshold: Some(wide(config.indexing_threshold)),
        flush_interval_sec: Some(config.flush_interval_sec),
        max_optimization_threads: Some(qdrant::MaxOptimizationThreads {
            variant: Some(threads),
        }),
        ..Default::default()
    }
}

/// Log settings on their way out.
pub(super) fn encode_wal(config: &WalConfig) -> qdrant::WalConfigDiff {
    qdrant::WalConfigDiff {
        wal_capacity_mb: Some(wide(config.wal_capacity_mb)),
        wal_segments_ahead: Some(wide(config.wal_segments_ahead)),
        wal_retain_closed: Some(wide(config.wal_retain_closed)),
    }
}

/// Parameters of vectors on their way out.
pub(super) fn encode_vectors(vectors: &BTreeMap<String, VectorParams>) -> qdrant::VectorsConfig {
    let config = match (vectors.len(), vectors.get(UNNAMED)) {
        (1, Some(params)) => Config::Params(encode_vector(params)),
        _ => Config::ParamsMap(qdrant::VectorParamsMap {
            map: vectors
                .iter()
                .map(|(name, params)| (name.clone(), encode_vector(params)))
                .collect(),
        }),
    };
    qdrant::VectorsConfig {
        config: Some(config),
    }
}

#[allow(deprecated, reason = "`on_disk` is shown as it was given")]
fn encode_vector(params: &VectorParams) -> qdrant::VectorParams {
    let distance = match params.distance {
        Metric::Cosine => qdrant::Distance::Cosine,
        Metric::Euclid => qdrant::Distance::Euclid,
        Metric::Dot => qdrant::Distance::Dot,
        Metric::Manhattan => qdrant::Distance::Manhattan,
    };
    qdrant::VectorParams {
        size: wide(params.size),
        distance: distance.into(),
        hnsw_config: encode_hnsw_diff(&params.hnsw),
        on_disk: params.on_disk,
        ..Default::default()
    }
}
