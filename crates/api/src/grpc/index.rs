//! Field indexes.

use flatwater_engine::collection::update::Update;
use flatwater_engine::config::collection::{FieldSchema, FieldType};
use qdrant_client::qdrant;
use qdrant_client::qdrant::payload_index_params::IndexParams;
use serde_json::{Map, Value};

use super::settings::memory_word;
use super::shape::{Shape, known};
use crate::convert::payload::{decode_field_name, field_index_of};
use crate::error::{ApiError, Result};

/// Name of a type in REST, and in the two enums of gRPC.
const TYPES: [(&str, qdrant::FieldType, qdrant::PayloadSchemaType); 8] = {
    use qdrant::{FieldType as F, PayloadSchemaType as S};
    [
        ("keyword", F::Keyword, S::Keyword),
        ("integer", F::Integer, S::Integer),
        ("float", F::Float, S::Float),
        ("geo", F::Geo, S::Geo),
        ("text", F::Text, S::Text),
        ("bool", F::Bool, S::Bool),
        ("datetime", F::Datetime, S::Datetime),
        ("uuid", F::Uuid, S::Uuid),
    ]
};

/// Reads the field to index and how.
///
/// # Errors
/// A bad path, no type, a type that is not served yet, parameters of another type.
pub fn decode_create(request: qdrant::CreateFieldIndexCollection) -> Result<Update> {
    let word = match request.field_type {
        None => None,
        Some(number) => {
            let wanted: qdrant::FieldType = known("field_type", number)?;
            TYPES
                .into_iter()
                .find_map(|(word, known, _)| (known == wanted).then_some(word))
        }
    };
    let given = request
        .field_index_params
        .and_then(|params| params.index_params);
    let schema = match (word, given) {
        (None, None) => None,
        (Some(word), None) => Some(Value::from(word)),
        (word, Some(given)) => {
            let (of_params, shape) = params(given)?;
            if word.is_some_and(|word| word != of_params) {
                return Err(ApiError::Wrong(format!(
                    "field_index_params: parameters of `{of_params}` for a field of another type"
                )));
            }
            Some(shape.with("type", Some(of_params)).into())
        }
    };
    let shape = Shape::default()
        .with("field_name", Some(request.field_name))
        .with("field_schema", schema);
    let (field, schema) = field_index_of(&shape.into_map())?;
    Ok(Update::CreateFieldIndex { field, schema })
}

/// Reads which index to drop.
///
/// # Errors
/// A bad path.
pub fn decode_delete(request: qdrant::DeleteFieldIndexCollection) -> Result<Update> {
    let field = decode_field_name(&request.field_name)?;
    Ok(Update::DeleteFieldIndex { field })
}

/// Type and parameters in the shape of REST.
#[allow(deprecated, reason = "`on_disk` is shown as it was given")]
fn params(params: IndexParams) -> Result<(&'static str, Shape)> {
    let only_type = |word| Ok((word, Shape::default()));
    match params {
        IndexParams::KeywordIndexParams(given) => {
            let shape = shared(given.nested, given.on_disk, given.enable_hnsw, given.memory)?
                .with("is_tenant", given.is_tenant)
                .with("prefix", given.prefix.map(|_| true));
            Ok(("keyword", shape))
        }
        IndexParams::IntegerIndexParams(given) => {
            let shape = shared(given.nested, given.on_disk, given.enable_hnsw, given.memory)?
                .with("lookup", given.lookup)
                .with("range", given.range)
                .with("is_principal", given.is_principal);
            Ok(("integer", shape))
        }
        IndexParams::FloatIndexParams(given) => {
            let shape = shared(given.nested, given.on_disk, given.enable_hnsw, given.memory)?
                .with("is_principal", given.is_principal);
            Ok(("float", shape))
        }
        IndexParams::BoolIndexParams(given) => {
            let shape = shared(given.nested, given.on_disk, given.enable_hnsw, given.memory)?;
            Ok(("bool", shape))
        }
        IndexParams::DatetimeIndexParams(given) => {
            let shape = shared(given.nested, given.on_disk, given.enable_hnsw, given.memory)?
                .with("is_principal", given.is_principal);
            Ok(("datetime", shape))
        }
        IndexParams::UuidIndexParams(given) => {
            let shape = shared(given.nested, given.on_disk, given.enable_hnsw, given.memory)?
                .with("is_tenant", given.is_tenant);
            Ok(("uuid", shape))
        }
        IndexParams::GeoIndexParams(_) => only_type("geo"),
        IndexParams::TextIndexParams(_) => only_type("text"),
    }
}

/// The parameters that all types have.
fn shared(
    nested: Option<String>,
    on_disk: Option<bool>,
    enable_hnsw: Option<bool>,
    memory: Option<i32>,
) -> Result<Shape> {
    if nested.is_some() {
        return Err(ApiError::NotServed("field_index_params.nested".to_owned()));
    }
    Ok(Shape::default()
        .with("on_disk", on_disk)
        .with("enable_hnsw", enable_hnsw)
        .with("memory", memory_word("field_index_params", memory)?))
}

/// An index as the info of a collection shows it.
pub(super) fn encode_schema(schema: &FieldSchema, points: u64) -> qdrant::PayloadSchemaInfo {
    let data_type = match schema.field_type {
        FieldType::Keyword => qdrant::PayloadSchemaType::Keyword,
        FieldType::Integer => qdrant::PayloadSchemaType::Integer,
        FieldType::Float => qdrant::PayloadSchemaType::Float,
        FieldType::Bool => qdrant::PayloadSchemaType::Bool,
        FieldType::Datetime => qdrant::PayloadSchemaType::Datetime,
        FieldType::Uuid => qdrant::PayloadSchemaType::Uuid,
    };
    let params = schema.params.as_ref().map(|params| {
        let index_params = match schema.field_type {
            FieldType::Keyword => IndexParams::KeywordIndexParams(keyword_params(params)),
            FieldType::Integer => IndexParams::IntegerIndexParams(integer_params(params)),
            FieldType::Float => IndexParams::FloatIndexParams(float_params(params)),
            FieldType::Bool => IndexParams::BoolIndexParams(bool_params(params)),
            FieldType::Datetime => IndexParams::DatetimeIndexParams(datetime_params(params)),
            FieldType::Uuid => IndexParams::UuidIndexParams(uuid_params(params)),
        };
        qdrant::PayloadIndexParams {
            index_params: Some(index_params),
        }
    });
    qdrant::PayloadSchemaInfo {
        data_type: data_type.into(),
        params,
        points: Some(points),
    }
}

fn flag(params: &Map<String, Value>, name: &str) -> Option<bool> {
    params.get(name).and_then(Value::as_bool)
}

fn memory_of(params: &Map<String, Value>) -> Option<i32> {
    match params.get("memory").and_then(Value::as_str)? {
        "cold" => Some(qdrant::Memory::Cold.into()),
        "cached" => Some(qdrant::Memory::Cached.into()),
        "pinned" => Some(qdrant::Memory::Pinned.into()),
        _ => None,
    }
}

#[allow(deprecated, reason = "`on_disk` is shown as it was given")]
fn keyword_params(params: &Map<String, Value>) -> qdrant::KeywordIndexParams {
    qdrant::KeywordIndexParams {
        is_tenant: flag(params, "is_tenant"),
        on_disk: flag(params, "on_disk"),
        enable_hnsw: flag(params, "enable_hnsw"),
        prefix: (flag(params, "prefix") == Some(true)).then(qdrant::KeywordPrefixParams::default),
        memory: memory_of(params),
        nested: None,
    }
}

#[allow(deprecated, reason = "`on_disk` is shown as it was given")]
fn integer_params(params: &Map<String, Value>) -> qdrant::IntegerIndexParams {
    qdrant::IntegerIndexParams {
        lookup: flag(params, "lookup"),
        range: flag(params, "range"),
        is_principal: flag(params, "is_principal"),
        on_disk: flag(params, "on_disk"),
        enable_hnsw: flag(params, "enable_hnsw"),
        memory: memory_of(params),
        nested: None,
    }
}

#[allow(deprecated, reason = "`on_disk` is shown as it was given")]
fn float_params(params: &Map<String, Value>) -> qdrant::FloatIndexParams {
    qdrant::FloatIndexParams {
        on_disk: flag(params, "on_disk"),
        is_principal: flag(params, "is_principal"),
        enable_hnsw: flag(params, "enable_hnsw"),
        memory: memory_of(params),
        nested: None,
    }
}

#[allow(deprecated, reason = "`on_disk` is shown as it was given")]
fn bool_params(params: &Map<String, Value>) -> qdrant::BoolIndexParams {
    qdrant::BoolIndexParams {
        on_disk: flag(params, "on_disk"),
        enable_hnsw: flag(params, "enable_hnsw"),
        memory: memory_of(params),
        nested: None,
    }
}

#[allow(deprecated, reason = "`on_disk` is shown as it was given")]
fn datetime_params(params: &Map<String, Value>) -> qdrant::DatetimeIndexParams {
    qdrant::DatetimeIndexParams {
        on_disk: flag(params, "on_disk"),
        is_principal: flag(params, "is_principal"),
        enable_hnsw: flag(params, "enable_hnsw"),
        memory: memory_of(params),
        nested: None,
    }
}

#[allow(deprecated, reason = "`on_disk` is shown as it was given")]
fn uuid_params(params: &Map<String, Value>) -> qdrant::UuidIndexParams {
    qdrant::UuidIndexParams {
        is_tenant: flag(params, "is_tenant"),
        on_disk: flag(params, "on_disk"),
        enable_hnsw: flag(params, "enable_hnsw"),
        memory: memory_of(params),
        nested: None,
    }
}

#[cfg(test)]
#[path = "index_tests.rs"]
mod tests;
