//! `PATCH /collections/{c}`: settings that replace those of a collection, field by field.

use flatwater_engine::config::collection::{CollectionConfig, HnswDiff};
use serde_json::{Map, Value};

use super::settings::{decode_hnsw, decode_optimizers};
use crate::body;
use crate::error::{ApiError, Result};
use crate::fields::{Fields, Rules};

/// The settings `current` with those of the body in their place.
///
/// # Errors
/// Undecodable JSON, an unknown vector, a field that is not served yet (400); values outside their
/// ranges (422).
pub fn decode_patch(bytes: &[u8], current: &CollectionConfig) -> Result<CollectionConfig> {
    patch_of(&body::object(bytes)?, current)
}

/// As [`decode_patch`], from the fields of the body.
pub(crate) fn patch_of(
    map: &Map<String, Value>,
    current: &CollectionConfig,
) -> Result<CollectionConfig> {
    let fields = Fields::root(map);
    fields.refuse(&[
        "quantization_config",
        "sparse_vectors",
        "strict_mode_config",
    ])?;
    let mut rules = Rules::default();
    let mut config = current.clone();
    if let Some(optimizers) = fields.object("optimizers_config")? {
        config.optimizers = decode_optimizers(&optimizers, config.optimizers, &mut rules)?;
    }
    if let Some(hnsw) = fields.object("hnsw_config")? {
        config.hnsw = config.hnsw.with(decode_hnsw(&hnsw, &mut rules)?);
    }
    if let Some(params) = fields.object("params")? {
        params.refuse(&["read_fan_out_factor", "read_fan_out_delay_ms", "payload"])?;
        one_copy(&params)?;
        if let Some(on_disk) = params.bool("on_disk_payload")? {
            config.on_disk_payload = on_disk;
        }
    }
    if let Some(vectors) = fields.object("vectors")? {
        patch_vectors(&vectors, &mut config, &mut rules)?;
    }
    if let Some(metadata) = fields.object("metadata")? {
        let known = config.metadata.get_or_insert_default();
        for (key, value) in metadata.map() {
            // As in Qdrant: null takes a key away.
            if value.is_null() {
                known.remove(key);
            } else {
                known.insert(key.clone(), value.clone());
            }
        }
    }
    rules.finish()?;
    Ok(config)
}

/// There is one copy of a collection, which every factor of 1 asks for.
fn one_copy(params: &Fields<'_>) -> Result<()> {
    for name in ["replication_factor", "write_consistency_factor"] {
        if params.count(name)?.is_some_and(|factor| factor != 1) {
            return Err(ApiError::NotServed(format!("{} over 1", params.at(name))));
        }
    }
    Ok(())
}

fn patch_vectors(
    vectors: &Fields<'_>,
    config: &mut CollectionConfig,
    rules: &mut Rules,
) -> Result<()> {
    for (name, value) in vectors.map() {
        let fields = Fields::of(value, vectors.at(name))?;
        fields.refuse(&["quantization_config", "memory"])?;
        let Some(params) = config.vectors.get_mut(name) else {
            let name = crate::fields::short(name);
            return Err(ApiError::Wrong(format!(
                "Not existing vector name error: {name}"
            )));
        };
        if let Some(hnsw) = fields.object("hnsw_config")? {
            params.hnsw = merged(params.hnsw, decode_hnsw(&hnsw, rules)?);
        }
        if let Some(on_disk) = fields.bool("on_disk")? {
            params.on_disk = Some(on_disk);
        }
    }
    Ok(())
}

/// `before` with what `diff` gives in its place.
fn merged(before: HnswDiff, diff: HnswDiff) -> HnswDiff {
    HnswDiff {
        m: diff.m.or(before.m),
        ef_construct: diff.ef_construct.or(before.ef_construct),
        full_scan_threshold: diff.full_scan_threshold.or(before.full_scan_threshold),
        max_indexing_threads: diff.max_indexing_threads.or(before.max_indexing_threads),
        on_disk: diff.on_disk.or(before.on_disk),
        payload_m: diff.payload_m.or(before.payload_m),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flatwater_engine::config::collection::VectorParams;
    use flatwater_index::Metric;
    use serde_json::json;

    fn current() -> CollectionConfig {
        let vector = VectorParams {
            size: 4,
            distance: Metric::Dot,
            on_disk: None,
            hnsw: HnswDiff {
                m: Some(8),
                ..HnswDiff::default()
            },
        };
        CollectionConfig {
            vectors: [(String::new(), vector)].into(),
            ..CollectionConfig::default()
        }
    }

    fn patch(body: &Value) -> Result<CollectionConfig> {
        decode_patch(body.to_string().as_bytes(), &current())
    }

    #[test]
    fn what_is_given_is_replaced_and_the_rest_stays() {
        assert_eq!(patch(&json!({})).unwrap(), current());
        let config = patch(&json!({
            "optimizers_config": {"indexing_threshold": 7, "max_optimization_threads": 0},
            "hnsw_config": {"ef_construct": 50},
            "vectors": {"": {"hnsw_config": {"ef_construct": 20}, "on_disk": true}},
            "params": {"on_disk_payload": true, "replication_factor": 1},
            "metadata": {"a": 1},
        }))
        .unwrap();
        assert_eq!(config.optimizers.indexing_threshold, 7);
        assert_eq!(config.optimizers.max_optimization_threads, Some(0));
        assert_eq!(
            config.optimizers.deleted_threshold,
            current().optimizers.deleted_threshold
        );
        assert_eq!((config.hnsw.m, config.hnsw.ef_construct), (16, 50));
        let hnsw = config.vectors[""].hnsw;
        assert_eq!((hnsw.m, hnsw.ef_construct), (Some(8), Some(20)));
        assert_eq!(config.vectors[""].on_disk, Some(true));
        assert_eq!(config.metadata.unwrap()["a"], 1);
    }

    #[test]
    fn what_cannot_be_is_refused_and_named() {
        for (body, code, text) in [
            (
                json!({"vectors": {"x": {}}}),
                400,
                "Not existing vector name error: x",
            ),
            (
                json!({"hnsw_config": {"ef_construct": 1}}),
                422,
                "ef_construct",
            ),
            (
                json!({"params": {"replication_factor": 2}}),
                400,
                "params.replication_factor",
            ),
            (
                json!({"quantization_config": {"scalar": {"type": "int8"}}}),
                400,
                "quantization_config",
            ),
            (
                json!({"optimizers_config": {"deleted_threshold": 2.0}}),
                422,
                "deleted_threshold",
            ),
        ] {
            let refusal = crate::status::refusal(&patch(&body).unwrap_err());
            assert_eq!(refusal.code, code, "{body}");
            assert!(refusal.text.contains(text), "{}", refusal.text);
        }
    }
}
