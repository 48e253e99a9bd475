//! Collections: how they are created and what they tell about themselves.

use flatwater_engine::collection::info::{CollectionInfo, Status};
use flatwater_engine::config::collection::CollectionConfig;
use serde_json::{Map, Value, json};

use super::payload::encode_schema;
use super::settings;
use super::text;
use crate::body;
use crate::error::{ApiError, Result};
use crate::fields::{Fields, Rules, wrong_type};

/// Reads the body of `PUT /collections/{c}`; what it does not say is taken from `defaults`.
///
/// # Errors
/// Undecodable JSON or a field that is not served yet (400), values outside their ranges (422, all
/// of them in one text).
pub fn decode_create(bytes: &[u8], defaults: &CollectionConfig) -> Result<CollectionConfig> {
    create_of(&body::object(bytes)?, defaults)
}

/// As [`decode_create`], from the fields of the body.
pub(crate) fn create_of(
    map: &Map<String, Value>,
    defaults: &CollectionConfig,
) -> Result<CollectionConfig> {
    let fields = Fields::root(map);
    refuse_not_served(&fields)?;
    let mut rules = Rules::default();
    let mut config = defaults.clone();
    if let Some(vectors) = fields.object("vectors")? {
        config.vectors = settings::decode_vectors(&vectors, &mut rules)?;
    }
    if let Some(hnsw) = fields.object("hnsw_config")? {
        config.hnsw = config.hnsw.with(settings::decode_hnsw(&hnsw, &mut rules)?);
    }
    for name in ["optimizers_config", "optimizer_config"] {
        if let Some(diff) = fields.object(name)? {
            config.optimizers = settings::decode_optimizers(&diff, config.optimizers, &mut rules)?;
        }
    }
    if let Some(wal) = fields.object("wal_config")? {
        config.wal = settings::decode_wal(&wal, config.wal, &mut rules)?;
    }
    if let Some(on_disk) = fields.bool("on_disk_payload")? {
        config.on_disk_payload = on_disk;
    }
    config.metadata = match fields.value("metadata") {
        None => config.metadata,
        Some(Value::Object(metadata)) => Some(metadata.clone()),
        Some(other) => return Err(wrong_type("metadata", other, "an object")),
    };
    for name in COUNTS_OF_ONE {
        rules.at_least(name, fields.unsigned(name)?.unwrap_or(1), 1);
    }
    rules.finish()?;
    Ok(config)
}

/// Counts of Qdrant's cluster mode; one shard and one copy is what there is.
const COUNTS_OF_ONE: [&str; 3] = [
    "shard_number",
    "replication_factor",
    "write_consistency_factor",
];

fn refuse_not_served(fields: &Fields<'_>) -> Result<()> {
    fields.refuse(&[
        "quantization_config",
        "quantization",
        "sparse_vectors",
        "init_from",
        "payload",
    ])?;
    match fields.string("sharding_method")? {
        None | Some("auto") => {}
        Some(other) => return Err(ApiError::NotServed(format!("sharding_method: {other}"))),
    }
    for name in COUNTS_OF_ONE {
        if let Some(count) = fields.unsigned(name)?.filter(|count| *count > 1) {
            return Err(ApiError::NotServed(format!("{name}: {count} (limit 1)")));
        }
    }
    match fields.object("strict_mode_config")? {
        Some(strict) if strict.bool("enabled")? == Some(true) => {
            Err(ApiError::NotServed("strict_mode_config.enabled".to_owned()))
        }
        _ => Ok(()),
    }
}

fn status_word(status: Status) -> &'static str {
    match status {
        Status::Green => "green",
        Status::Yellow => "yellow",
        Status::Grey => "grey",
        Status::Red => "red",
    }
}

/// JSON of `GET /collections/{c}`.
#[must_use]
pub fn encode_info(info: &CollectionInfo) -> Vec<u8> {
    let config = &info.config;
    let optimizer_status = match &info.optimizer_error {
        None => json!("ok"),
        Some(error) => json!({ "error": error }),
    };
    let payload_schema: Value = info
        .payload_schema
        .iter()
        .map(|(field, (schema, points))| (field.clone(), encode_schema(schema, *points)))
        .collect();
    let mut shown = json!({
        "status": status_word(info.status),
        "optimizer_status": optimizer_status,
        "indexed_vectors_count": info.indexed_vectors_count,
        "points_count": info.points_count,
        "segments_count": info.segments_count,
        "config": {
            "params": {
                "vectors": settings::encode_vectors(&config.vectors),
                "shard_number": 1,
                "replication_factor": 1,
                "write_consistency_factor": 1,
                "on_disk_payload": config.on_disk_payload,
            },
            "hnsw_config": settings::encode_hnsw(&config.hnsw),
            "optimizer_config": settings::encode_optimizers(&config.optimizers),
            "wal_config": settings::encode_wal(&config.wal),
            "quantization_config": null,
        },
        "payload_schema": payload_schema,
        "update_queue": { "length": info.update_queue_length },
    });
    if let Some(metadata) = &config.metadata
        && let Some(config) = shown.get_mut("config").and_then(Value::as_object_mut)
    {
        config.insert("metadata".to_owned(), Value::Object(metadata.clone()));
    }
    if let (Some(reason), Some(shown)) = (&info.grey_reason, shown.as_object_mut()) {
        shown.insert("warnings".to_owned(), json!([{ "message": reason }]));
    }
    text(&shown)
}

/// JSON of `GET /collections`.
#[must_use]
pub fn encode_names(names: &[String]) -> Vec<u8> {
    let list: Vec<Value> = names.iter().map(|name| json!({ "name": name })).collect();
    text(&json!({ "collections": list }))
}

/// JSON of `GET /collections/{c}/exists`.
#[must_use]
pub fn encode_exists(exists: bool) -> Vec<u8> {
    text(&json!({ "exists": exists }))
}

/// JSON of an operation that did (or, for a deletion of what was not there, did not do) something.
#[must_use]
pub fn encode_done(done: bool) -> Vec<u8> {
    text(&json!(done))
}

#[cfg(test)]
#[path = "collections_tests.rs"]
mod tests;
