//! Collections: how they are created and what they tell about themselves.

use flatwater_engine::aliases::AliasAction;
use flatwater_engine::collection::info::{CollectionInfo, Status};
use flatwater_engine::config::collection::CollectionConfig;
use qdrant_client::qdrant;
use serde_json::Value;

use super::index::encode_schema;
use super::settings;
use super::shape::{Shape, known, required};
use super::values::{decode_map, encode_map};
use crate::convert::collections::create_of;
use crate::convert::patch::patch_of;
use crate::error::{ApiError, Result};
use crate::validate;

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

/// The settings `current` with those of the request in their place.
///
/// # Errors
/// As [`crate::convert::patch::decode_patch`].
#[allow(
    deprecated,
    reason = "`on_disk_payload` is stored and shown as it was given"
)]
pub fn decode_update(
    request: qdrant::UpdateCollection,
    current: &CollectionConfig,
) -> Result<CollectionConfig> {
    let hnsw = request
        .hnsw_config
        .map(|diff| settings::hnsw(diff, "hnsw_config"))
        .transpose()?;
    let optimizers = request
        .optimizers_config
        .map(settings::optimizers)
        .transpose()?;
    let params = request.params.map(|params| {
        Shape::default()
            .with("replication_factor", params.replication_factor)
            .with("write_consistency_factor", params.write_consistency_factor)
            .with("on_disk_payload", params.on_disk_payload)
            .with("read_fan_out_factor", params.read_fan_out_factor)
    });
    let vectors = request
        .vectors_config
        .map(settings::vectors_diff)
        .transpose()?;
    let metadata = match request.metadata.is_empty() {
        true => None,
        false => Some(Value::Object(decode_map(request.metadata, "metadata")?)),
    };
    let has_sparse = request
        .sparse_vectors_config
        .is_some_and(|sparse| !sparse.map.is_empty());
    let shape = Shape::default()
        .with("optimizers_config", optimizers)
        .with("hnsw_config", hnsw)
        .with("params", params)
        .with("vectors", vectors)
        .with("metadata", metadata)
        .with_unread("quantization_config", request.quantization_config.is_some())
        .with_unread("strict_mode_config", request.strict_mode_config.is_some())
        .with_unread("sparse_vectors", has_sparse);
    patch_of(&shape.into_map(), current)
}

/// Reads changes of aliases.
///
/// # Errors
/// An action that is missing, a name that no collection can have.
pub fn decode_alias_actions(request: qdrant::ChangeAliases) -> Result<Vec<AliasAction>> {
    use qdrant::alias_operations::Action;
    let actions = request.actions.into_iter().enumerate();
    let actions = actions.map(|(at, operation)| {
        Ok(
            match required(&format!("actions[{at}]"), operation.action)? {
                Action::CreateAlias(create) => {
                    validate::collection_name(&create.alias_name)?;
                    AliasAction::Create {
                        collection: create.collection_name,
                        alias: create.alias_name,
                    }
                }
                Action::RenameAlias(rename) => {
                    validate::collection_name(&rename.new_alias_name)?;
                    AliasAction::Rename {
                        old: rename.old_alias_name,
                        new: rename.new_alias_name,
                    }
                }
                Action::DeleteAlias(delete) => AliasAction::Delete {
                    alias: delete.alias_name,
                },
            },
        )
    });
    actions.collect()
}

/// Aliases: (alias, collection).
#[must_use]
pub fn encode_aliases(aliases: Vec<(String, String)>, time: f64) -> qdrant::ListAliasesResponse {
    let aliases = aliases.into_iter();
    let aliases = aliases.map(|(alias_name, collection_name)| qdrant::AliasDescription {
        alias_name,
        collection_name,
    });
    qdrant::ListAliasesResponse {
        aliases: aliases.collect(),
        time,
    }
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
