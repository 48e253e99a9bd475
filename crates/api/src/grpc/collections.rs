//! Collections: how they are created and what they tell about themselves.

use flatwater_engine::collection::info::{CollectionInfo, Status};
use flatwater_engine::config::collection::CollectionConfig;
use qdrant_client::qdrant;
use serde_json::Value;

use super::index::encode_schema;
use super::settings;
use super::shape::{Shape, known};
use super::values::{decode_map, encode_map};
use crate::convert::collections::create_of;
use crate::error::{ApiError, Result};

/// Reads the settings of a new collection; what it does not say is taken from `defaults`.
///
/// # Errors
/// As [`crate::convert::collections::decode_create`].
#[allow(
    deprecated,
    reason = "`on_disk_payload` is stored and shown as it was given"
)]
pub fn decode_create(
    request: qdrant::CreateCollection,
    defaults: &CollectionConfig,
) -> Result<CollectionConfig> {
    if let Some(tracker) = request.id_tracker
        && settings::memory_word("id_tracker", tracker.memory)?.is_some()
    {
        return Err(ApiError::NotServed("id_tracker".to_owned()));
    }
    let vectors = match request.vectors_config {
        None => None,
        Some(config) => settings::vectors(config)?,
    };
    let hnsw = request
        .hnsw_config
        .map(|diff| settings::hnsw(diff, "hnsw_config"))
        .transpose()?;
    let optimizers = request
        .optimizers_config
        .map(settings::optimizers)
        .transpose()?;
    let payload = match request.payload {
        None => None,
        Some(params) => settings::memory_word("payload", params.memory)?
            .map(|word| Shape::default().with("memory", Some(word))),
    };
    let metadata = match request.metadata.is_empty() {
        true => None,
        false => Some(Value::Object(decode_map(request.metadata, "metadata")?)),
    };
    let has_sparse = request
        .sparse_vectors_config
        .is_some_and(|sparse| !sparse.map.is_empty());
    let strict = request
        .strict_mode_config
        .map(|strict| Shape::default().with("enabled", strict.enabled));
    let shape = Shape::default()
        .with("vectors", vectors)
        .with("hnsw_config", hnsw)
        .with("optimizers_config", optimizers)
        .with("wal_config", request.wal_config.map(settings::wal))
        .with("on_disk_payload", request.on_disk_payload)
        .with("metadata", metadata)
        .with("shard_number", request.shard_number)
        .with("replication_factor", request.replication_factor)
        .with("write_consistency_factor", request.write_consistency_factor)
        .with("sharding_method", sharding_word(request.sharding_method)?)
        .with("strict_mode_config", strict)
        .with("payload", payload)
        .with_unread("quantization_config", request.quantization_config.is_some())
        .with_unread("sparse_vectors", has_sparse);
    create_of(&shape.into_map(), defaults)
}

fn sharding_word(number: Option<i32>) -> Result<Option<&'static str>> {
    let Some(number) = number else {
        return Ok(None);
    };
    Ok(Some(match known("sharding_method", number)? {
        qdrant::ShardingMethod::Auto => "auto",
        qdrant::ShardingMethod::Custom => "custom",
    }))
}

/// What a collection tells about itself.
#[must_use]
pub fn encode_info(info: &CollectionInfo) -> qdrant::CollectionInfo {
    let status = match info.status {
        Status::Green => qdrant::CollectionStatus::Green,
        Status::Yellow => qdrant::CollectionStatus::Yellow,
        Status::Grey => qdrant::CollectionStatus::Grey,
        Status::Red => qdrant::CollectionStatus::Red,
    };
    let payload_schema = info.payload_schema.iter();
    let payload_schema = payload_schema
        .map(|(field, (schema, points))| (field.clone(), encode_schema(schema, *points)))
        .collect();
    let warnings = info.grey_reason.iter();
    let warnings = warnings
        .map(|message| qdrant::CollectionWarning {
            message: message.clone(),
        })
        .collect();
    qdrant::CollectionInfo {
        status: status.into(),
        optimizer_status: Some(qdrant::OptimizerStatus {
            ok: info.optimizer_error.is_none(),
            error: info.optimizer_error.clone().unwrap_or_default(),
        }),
        segments_count: info.segments_count as u64,
        config: Some(encode_config(&info.config)),
        payload_schema,
        points_count: Some(info.points_count),
        indexed_vectors_count: Some(info.indexed_vectors_count),
        warnings,
        update_queue: Some(qdrant::UpdateQueueInfo {
            length: info.update_queue_length as u64,
            deferred_points: None,
        }),
        ..Default::default()
    }
}

#[allow(deprecated, reason = "`on_disk_payload` is shown as it was given")]
fn encode_config(config: &CollectionConfig) -> qdrant::CollectionConfig {
    let params = qdrant::CollectionParams {
        shard_number: 1,
        on_disk_payload: config.on_disk_payload,
        vectors_config: Some(settings::encode_vectors(&config.vectors)),
        replication_factor: Some(1),
        write_consistency_factor: Some(1),
        ..Default::default()
    };
    qdrant::CollectionConfig {
        params: Some(params),
        hnsw_config: Some(settings::encode_hnsw(&config.hnsw)),
        optimizer_config: Some(settings::encode_optimizers(&config.optimizers)),
        wal_config: Some(settings::encode_wal(&config.wal)),
        metadata: config.metadata.clone().map(encode_map).unwrap_or_default(),
        ..Default::default()
    }
}

/// The list of collections.
#[must_use]
pub fn encode_names(names: Vec<String>) -> Vec<qdrant::CollectionDescription> {
    let describe = |name| qdrant::CollectionDescription { name };
    names.into_iter().map(describe).collect()
}

#[cfg(test)]
#[path = "collections_tests.rs"]
mod tests;
