//! Settings of HNSW, optimizers, log and vectors, in and out.

use std::collections::BTreeMap;

use flatwater_engine::config::collection::{
    HnswConfig, HnswDiff, OptimizerConfig, UNNAMED, VectorParams, WalConfig,
};
use flatwater_index::Metric;
use serde_json::{Map, Value, json};

use crate::error::{ApiError, Result};
use crate::fields::{Fields, Rules, wrong_type};
use crate::validate::{VECTOR_SIZE_MAX, vector_name_fault};

/// Name of the distance on the wire, and the metric.
const DISTANCES: [(&str, Metric); 4] = [
    ("Cosine", Metric::Cosine),
    ("Euclid", Metric::Euclid),
    ("Dot", Metric::Dot),
    ("Manhattan", Metric::Manhattan),
];

/// A count under its name or the name with its unit, which Qdrant takes too.
fn count_kb(fields: &Fields<'_>, name: &str, name_kb: &str) -> Result<Option<usize>> {
    match fields.count(name)? {
        Some(value) => Ok(Some(value)),
        None => fields.count(name_kb),
    }
}

/// Reads `hnsw_config`.
pub(crate) fn decode_hnsw(fields: &Fields<'_>, rules: &mut Rules) -> Result<HnswDiff> {
    fields.refuse(&["memory", "inline_storage"])?;
    let diff = HnswDiff {
        m: fields.count("m")?,
        ef_construct: fields.count("ef_construct")?,
        full_scan_threshold: count_kb(fields, "full_scan_threshold", "full_scan_threshold_kb")?,
        max_indexing_threads: fields.count("max_indexing_threads")?,
        on_disk: fields.bool("on_disk")?,
        payload_m: fields.count("payload_m")?,
    };
    if let Some(value) = diff.ef_construct {
        rules.at_least(&fields.at("ef_construct"), value, 4);
    }
    if let Some(value) = diff.full_scan_threshold {
        rules.at_least(&fields.at("full_scan_threshold"), value, 10);
    }
    Ok(diff)
}

/// Reads `optimizers_config` over `base`.
pub(crate) fn decode_optimizers(
    fields: &Fields<'_>,
    base: OptimizerConfig,
    rules: &mut Rules,
) -> Result<OptimizerConfig> {
    fields.refuse(&["prevent_unoptimized"])?;
    let max_optimization_threads = match fields.value("max_optimization_threads") {
        Some(Value::String(word)) if word == "auto" => None,
        None => base.max_optimization_threads,
        Some(_) => fields.count("max_optimization_threads")?,
    };
    let config = OptimizerConfig {
        deleted_threshold: fields
            .number("deleted_threshold")?
            .unwrap_or(base.deleted_threshold),
        vacuum_min_vector_number: fields
            .count("vacuum_min_vector_number")?
            .unwrap_or(base.vacuum_min_vector_number),
        default_segment_number: fields
            .count("default_segment_number")?
            .unwrap_or(base.default_segment_number),
        max_segment_size: count_kb(fields, "max_segment_size", "max_segment_size_kb")?
            .or(base.max_segment_size),
        memmap_threshold: count_kb(fields, "memmap_threshold", "memmap_threshold_kb")?
            .or(base.memmap_threshold),
        indexing_threshold: count_kb(fields, "indexing_threshold", "indexing_threshold_kb")?
            .unwrap_or(base.indexing_threshold),
        flush_interval_sec: fields
            .unsigned("flush_interval_sec")?
            .unwrap_or(base.flush_interval_sec),
        max_optimization_threads,
    };
    rules.within(
        &fields.at("deleted_threshold"),
        config.deleted_threshold,
        0.0,
        1.0,
    );
    rules.at_least(
        &fields.at("vacuum_min_vector_number"),
        config.vacuum_min_vector_number,
        100,
    );
    if let Some(value) = config.max_segment_size {
        rules.at_least(&fields.at("max_segment_size"), value, 1);
    }
    Ok(config)
}

/// Reads `wal_config` over `base`.
pub(crate) fn decode_wal(
    fields: &Fields<'_>,
    base: WalConfig,
    rules: &mut Rules,
) -> Result<WalConfig> {
    let config = WalConfig {
        wal_capacity_mb: fields
            .count("wal_capacity_mb")?
            .unwrap_or(base.wal_capacity_mb),
        wal_segments_ahead: fields
            .count("wal_segments_ahead")?
            .unwrap_or(base.wal_segments_ahead),
        wal_retain_closed: fields
            .count("wal_retain_closed")?
            .unwrap_or(base.wal_retain_closed),
    };
    rules.at_least(&fields.at("wal_capacity_mb"), config.wal_capacity_mb, 1);
    rules.at_least(&fields.at("wal_retain_closed"), config.wal_retain_closed, 1);
    Ok(config)
}

/// Reads `vectors`: the parameters of the unnamed vector, or an object of parameters by name.
pub(crate) fn decode_vectors(
    fields: &Fields<'_>,
    rules: &mut Rules,
) -> Result<BTreeMap<String, VectorParams>> {
    // A vector may be called `size`; then what stands there is an object.
    let is_single = ["size", "distance"]
        .iter()
        .any(|name| fields.value(name).is_some_and(|v| !v.is_object()));
    if is_single {
        return Ok(BTreeMap::from([(
            UNNAMED.to_owned(),
            decode_params(fields, rules)?,
        )]));
    }
    let mut vectors = BTreeMap::new();
    for (name, value) in fields.map() {
        let inner = Fields::of(value, fields.at(name))?;
        if let Some(fault) = vector_name_fault(name) {
            rules.broken(fields.path(), &fault);
        }
        vectors.insert(name.clone(), decode_params(&inner, rules)?);
    }
    Ok(vectors)
}

fn decode_params(fields: &Fields<'_>, rules: &mut Rules) -> Result<VectorParams> {
    fields.refuse(&[
        "quantization_config",
        "quantization",
        "multivector_config",
        "memory",
    ])?;
    match fields.string("datatype")? {
        None | Some("float32") => {}
        Some(known @ ("float16" | "uint8" | "turbo4")) => {
            return Err(ApiError::NotServed(format!(
                "{}: {known}",
                fields.at("datatype")
            )));
        }
        Some(other) => {
            return Err(wrong_type(
                &fields.at("datatype"),
                &json!(other),
                "a known datatype",
            ));
        }
    }
    fields.required("size")?;
    let size = fields.count("size")?.unwrap_or_default();
    rules.within(&fields.at("size"), size, 1, VECTOR_SIZE_MAX);
    let word = fields.required("distance")?;
    let distance = DISTANCES
        .into_iter()
        .find_map(|(name, metric)| (word.as_str() == Some(name)).then_some(metric))
        .ok_or_else(|| {
            let expected = "one of `Cosine`, `Euclid`, `Dot`, `Manhattan`";
            wrong_type(&fields.at("distance"), word, expected)
        })?;
    let hnsw = match fields.object("hnsw_config")? {
        Some(inner) => decode_hnsw(&inner, rules)?,
        None => HnswDiff::default(),
    };
    Ok(VectorParams {
        size,
        distance,
        on_disk: fields.bool("on_disk")?,
        hnsw,
    })
}

/// An object without the keys whose value is null.
fn present<const N: usize>(entries: [(&str, Value); N]) -> Map<String, Value> {
    entries
        .into_iter()
        .filter(|(_, value)| !value.is_null())
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}

pub(crate) fn encode_hnsw(config: &HnswConfig) -> Value {
    Value::Object(present([
        ("m", json!(config.m)),
        ("ef_construct", json!(config.ef_construct)),
        ("full_scan_threshold", json!(config.full_scan_threshold)),
        ("max_indexing_threads", json!(config.max_indexing_threads)),
        ("on_disk", json!(config.on_disk)),
        ("payload_m", json!(config.payload_m)),
    ]))
}

fn encode_hnsw_diff(diff: &HnswDiff) -> Value {
    let map = present([
        ("m", json!(diff.m)),
        ("ef_construct", json!(diff.ef_construct)),
        ("full_scan_threshold", json!(diff.full_scan_threshold)),
        ("max_indexing_threads", json!(diff.max_indexing_threads)),
        ("on_disk", json!(diff.on_disk)),
        ("payload_m", json!(diff.payload_m)),
    ]);
    if map.is_empty() {
        Value::Null
    } else {
        Value::Object(map)
    }
}

/// All nine keys of Qdrant's, nulls included.
pub(crate) fn encode_optimizers(config: &OptimizerConfig) -> Value {
    json!({
        "deleted_threshold": config.deleted_threshold,
        "vacuum_min_vector_number": config.vacuum_min_vector_number,
        "default_segment_number": config.default_segment_number,
        "max_segment_size": config.max_segment_size,
        "memmap_threshold": config.memmap_threshold,
        "indexing_threshold": config.indexing_threshold,
        "flush_interval_sec": config.flush_interval_sec,
        "max_optimization_threads": config.max_optimization_threads,
        "prevent_unoptimized": null,
    })
}

pub(crate) fn encode_wal(config: &WalConfig) -> Value {
    json!({
        "wal_capacity_mb": config.wal_capacity_mb,
        "wal_segments_ahead": config.wal_segments_ahead,
        "wal_retain_closed": config.wal_retain_closed,
    })
}

pub(crate) fn encode_vectors(vectors: &BTreeMap<String, VectorParams>) -> Value {
    match (vectors.len(), vectors.get(UNNAMED)) {
        (1, Some(params)) => encode_params(params),
        _ => vectors
            .iter()
            .map(|(name, params)| (name.clone(), encode_params(params)))
            .collect(),
    }
}

fn encode_params(params: &VectorParams) -> Value {
    let distance = DISTANCES
        .into_iter()
        .find_map(|(name, m)| (m == params.distance).then_some(name));
    Value::Object(present([
        ("size", json!(params.size)),
        ("distance", json!(distance)),
        ("hnsw_config", encode_hnsw_diff(&params.hnsw)),
        ("on_disk", json!(params.on_disk)),
    ]))
}
