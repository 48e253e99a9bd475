//! Which parts of a point come back, and the schema of field indexes.

use flatwater_engine::config::collection::{FieldSchema, FieldType};
use flatwater_engine::query::request::{PayloadSelector, VectorSelector};
use serde_json::{Map, Value, json};

use crate::body;
use crate::error::{ApiError, Result};
use crate::fields::{Fields, Rules, wrong_type};
use crate::validate;

/// Types of field indexes that Qdrant has and we do not serve yet.
const TYPES_NOT_SERVED: [&str; 2] = ["geo", "text"];

/// Reads `with_payload`: a boolean, a list of paths, `{"include": []}` or `{"exclude": []}`.
pub(crate) fn decode_payload_selector(
    fields: &Fields<'_>,
    default: PayloadSelector,
) -> Result<PayloadSelector> {
    const NAME: &str = "with_payload";
    let path = fields.at(NAME);
    match fields.value(NAME) {
        None => Ok(default),
        Some(Value::Bool(true)) => Ok(PayloadSelector::All),
        Some(Value::Bool(false)) => Ok(PayloadSelector::None),
        Some(Value::Array(list)) => Ok(PayloadSelector::Include(paths(list, &path)?)),
        Some(value @ Value::Object(_)) => {
            let inner = Fields::of(value, path.clone())?;
            match (inner.array("include")?, inner.array("exclude")?) {
                (Some(list), None) => {
                    Ok(PayloadSelector::Include(paths(list, &inner.at("include"))?))
                }
                (None, Some(list)) => {
                    Ok(PayloadSelector::Exclude(paths(list, &inner.at("exclude"))?))
                }
                _ => Err(ApiError::Format(format!(
                    "{path}: expected exactly one of `include` and `exclude`"
                ))),
            }
        }
        Some(other) => Err(wrong_type(
            &path,
            other,
            "a boolean, a list of paths or an object",
        )),
    }
}

fn paths(list: &[Value], at: &str) -> Result<Vec<String>> {
    list.iter()
        .map(|value| {
            let path = value
                .as_str()
                .ok_or_else(|| wrong_type(at, value, "a payload path"))?;
            validate::json_path(path)?;
            Ok(path.to_owned())
        })
        .collect()
}

/// Reads `with_vector` (or its other spelling `with_vectors`): a boolean or a list of names.
pub(crate) fn decode_vector_selector(
    fields: &Fields<'_>,
    default: VectorSelector,
) -> Result<VectorSelector> {
    let name = if fields.value("with_vector").is_some() {
        "with_vector"
    } else {
        "with_vectors"
    };
    let path = fields.at(name);
    match fields.value(name) {
        None => Ok(default),
        Some(Value::Bool(true)) => Ok(VectorSelector::All),
        Some(Value::Bool(false)) => Ok(VectorSelector::None),
        Some(Value::String(one)) => Ok(VectorSelector::Names(vec![one.clone()])),
        Some(Value::Array(list)) => list
            .iter()
            .map(|value| {
                let name = value
                    .as_str()
                    .ok_or_else(|| wrong_type(&path, value, "a vector name"));
                name.map(str::to_owned)
            })
            .collect::<Result<Vec<_>>>()
            .map(VectorSelector::Names),
        Some(other) => Err(wrong_type(
            &path,
            other,
            "a boolean or a list of vector names",
        )),
    }
}

/// Reads the body of `PUT /collections/{c}/index`: path of the field and its schema.
///
/// # Errors
/// Undecodable JSON, a bad path, an unknown type (400); a type that is not served yet (400).
pub fn decode_field_index(bytes: &[u8]) -> Result<(String, FieldSchema)> {
    field_index_of(&body::object(bytes)?)
}

/// As [`decode_field_index`], from the fields of the body.
pub(crate) fn field_index_of(map: &Map<String, Value>) -> Result<(String, FieldSchema)> {
    let fields = Fields::root(map);
    fields.required("field_name")?;
    let field = fields.string("field_name")?.unwrap_or_default().to_owned();
    validate::json_path(&field)?;
    // `field_type` is the older name of the same thing.
    let name = if fields.value("field_schema").is_some() {
        "field_schema"
    } else {
        "field_type"
    };
    let Some(schema) = fields.value(name) else {
        return Err(ApiError::Format("missing field `field_schema`".to_owned()));
    };
    Ok((field, decode_schema(schema, name)?))
}

/// Reads the path of a field from a URL.
///
/// # Errors
/// A bad path (400).
pub fn decode_field_name(text: &str) -> Result<String> {
    validate::json_path(text)?;
    Ok(text.to_owned())
}

fn decode_schema(schema: &Value, path: &str) -> Result<FieldSchema> {
    if let Value::String(word) = schema {
        return Ok(FieldSchema {
            field_type: field_type(word, path)?,
            params: None,
        });
    }
    let fields = Fields::of(schema, path.to_owned())?;
    fields.required("type")?;
    let word = fields.string("type")?.unwrap_or_default();
    let field_type = field_type(word, &fields.at("type"))?;
    for name in [
        "is_tenant",
        "is_principal",
        "on_disk",
        "lookup",
        "range",
        "enable_hnsw",
        "prefix",
    ] {
        fields.bool(name)?;
    }
    let both_off = fields.bool("lookup")? == Some(false) && fields.bool("range")? == Some(false);
    if field_type == FieldType::Integer && both_off {
        let mut rules = Rules::default();
        rules.broken(
            path,
            "the `lookup` and `range` capabilities can't be both false",
        );
        rules.finish()?;
    }
    let mut params = fields.map().clone();
    params.remove("type");
    params.retain(|_, value| !value.is_null());
    Ok(FieldSchema {
        field_type,
        params: Some(params),
    })
}

fn field_type(word: &str, path: &str) -> Result<FieldType> {
    if TYPES_NOT_SERVED.contains(&word) {
        return Err(ApiError::NotServed(format!("{path}: {word}")));
    }
    let mut types = FieldType::ALL.into_iter();
    let known = types.find(|field_type| type_name(*field_type) == word);
    known.ok_or_else(|| wrong_type(path, &json!(word), "a type of field index, e.g. `keyword`"))
}

/// Name of a type on the wire.
fn type_name(field_type: FieldType) -> &'static str {
    match field_type {
        FieldType::Keyword => "keyword",
        FieldType::Integer => "integer",
        FieldType::Float => "float",
        FieldType::Bool => "bool",
        FieldType::Datetime => "datetime",
        FieldType::Uuid => "uuid",
    }
}

/// An index as `payload_schema` shows it.
pub(crate) fn encode_schema(schema: &FieldSchema, points: u64) -> Value {
    let word = type_name(schema.field_type);
    let mut shown = json!({ "data_type": word, "points": points });
    if let (Some(params), Value::Object(map)) = (&schema.params, &mut shown) {
        let mut with_type: Map<String, Value> = params.clone();
        with_type.insert("type".to_owned(), json!(word));
        map.insert("params".to_owned(), Value::Object(with_type));
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    fn payload_of(body: Value) -> Result<PayloadSelector> {
        let Value::Object(map) = body else {
            panic!("not an object")
        };
        decode_payload_selector(&Fields::root(&map), PayloadSelector::None)
    }

    fn vector_of(body: Value) -> Result<VectorSelector> {
        let Value::Object(map) = body else {
            panic!("not an object")
        };
        decode_vector_selector(&Fields::root(&map), VectorSelector::None)
    }

    #[test]
    fn payload_selector_has_four_spellings() {
        let list = || vec!["a".to_owned(), "b.c".to_owned()];
        let cases = [
            (json!({}), PayloadSelector::None),
            (json!({"with_payload": null}), PayloadSelector::None),
            (json!({"with_payload": true}), PayloadSelector::All),
            (json!({"with_payload": false}), PayloadSelector::None),
            (
                json!({"with_payload": ["a", "b.c"]}),
                PayloadSelector::Include(list()),
            ),
            (
                json!({"with_payload": {"include": ["a", "b.c"]}}),
                PayloadSelector::Include(list()),
            ),
            (
                json!({"with_payload": {"exclude": ["a", "b.c"]}}),
                PayloadSelector::Exclude(list()),
            ),
        ];
        for (body, expected) in cases {
            assert_eq!(payload_of(body).unwrap(), expected);
        }
        for bad in [
            json!({"with_payload": 1}),
            json!({"with_payload": {}}),
            json!({"with_payload": [1]}),
        ] {
            assert!(payload_of(bad).is_err());
        }
    }

    #[test]
    fn vector_selector_takes_both_names_of_the_field() {
        let names = VectorSelector::Names(vec!["a".to_owned()]);
        assert_eq!(
            vector_of(json!({"with_vector": true})).unwrap(),
            VectorSelector::All
        );
        assert_eq!(
            vector_of(json!({"with_vectors": true})).unwrap(),
            VectorSelector::All
        );
        assert_eq!(vector_of(json!({"with_vector": ["a"]})).unwrap(), names);
        assert_eq!(
            vector_of(json!({"with_vector": false})).unwrap(),
            VectorSelector::None
        );
        assert!(vector_of(json!({"with_vector": 3})).is_err());
    }

    #[test]
    fn field_schema_goes_both_ways() {
        let body = br#"{"field_name":"city","field_schema":"keyword"}"#;
        let (field, schema) = decode_field_index(body).unwrap();
        assert_eq!(
            (field.as_str(), schema.field_type),
            ("city", FieldType::Keyword)
        );
        assert_eq!(
            encode_schema(&schema, 5),
            json!({"data_type": "keyword", "points": 5})
        );

        for field_type in FieldType::ALL {
            let word = type_name(field_type);
            let params = json!({"type": word, "on_disk": false, "is_tenant": true});
            for schema in [json!(word), params.clone()] {
                let body = json!({"field_name": "f", "field_schema": schema}).to_string();
                let (_, schema) = decode_field_index(body.as_bytes()).unwrap();
                assert_eq!(schema.field_type, field_type);
                let shown = encode_schema(&schema, 1);
                assert_eq!(shown["data_type"], word);
                assert!(shown["params"].is_null() || shown["params"] == params);
            }
        }

        let body =
            br#"{"field_name":"n","field_schema":{"type":"integer","lookup":true,"range":false}}"#;
        let (_, schema) = decode_field_index(body).unwrap();
        assert_eq!(
            encode_schema(&schema, 2),
            json!({"data_type": "integer", "points": 2,
                   "params": {"type": "integer", "lookup": true, "range": false}})
        );
    }

    #[test]
    fn types_not_served_yet_are_named() {
        for word in TYPES_NOT_SERVED {
            for schema in [json!(word), json!({ "type": word })] {
                let body = json!({"field_name": "x", "field_schema": schema}).to_string();
                let text = decode_field_index(body.as_bytes()).unwrap_err().to_string();
                assert!(
                    text.contains(word) && text.contains("not served yet"),
                    "{text}"
                );
            }
        }
        assert!(decode_field_index(br#"{"field_name":"x","field_schema":"color"}"#).is_err());
        assert!(decode_field_index(br#"{"field_schema":"keyword"}"#).is_err());
        assert!(decode_field_index(br#"{"field_name":"a b","field_schema":"keyword"}"#).is_err());
    }

    #[test]
    fn an_integer_index_that_can_do_nothing_is_a_422() {
        let body =
            br#"{"field_name":"n","field_schema":{"type":"integer","lookup":false,"range":false}}"#;
        let text = decode_field_index(body).unwrap_err().to_string();
        assert!(
            text.starts_with("Validation error in JSON body: [field_schema: "),
            "{text}"
        );
    }
}
