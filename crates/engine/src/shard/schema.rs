//! Field indexes that users asked for.

use std::collections::BTreeMap;

use crate::config::collection::FieldSchema;
use crate::shard::op::FieldIndexRecord;

/// Field indexes by payload path.
pub type FieldSchemas = BTreeMap<String, FieldSchema>;

/// The stored form of one field index.
#[must_use]
pub fn to_record(field: &str, schema: &FieldSchema) -> FieldIndexRecord {
    let params_json = schema.params.as_ref().map(|params| {
        serde_json::Value::Object(params.clone())
            .to_string()
            .into_bytes()
    });
    FieldIndexRecord {
        field: field.to_owned(),
        field_type: schema.field_type,
        params_json,
    }
}

/// The schema behind a stored field index; parameters that are no JSON object are dropped.
#[must_use]
pub fn from_record(record: &FieldIndexRecord) -> FieldSchema {
    let params = record
        .params_json
        .as_deref()
        .and_then(|json| serde_json::from_slice(json).ok());
    FieldSchema {
        field_type: record.field_type,
        params,
    }
}
