use qdrant_client::qdrant::{
    CreateFieldIndexCollection, IntegerIndexParams, KeywordIndexParams, PayloadIndexParams,
    TextIndexParams,
};

use super::*;
use crate::status::grpc_refusal;

fn create(
    field_type: Option<qdrant::FieldType>,
    params: Option<IndexParams>,
) -> Result<FieldSchema> {
    let request = CreateFieldIndexCollection {
        field_name: "a.b".into(),
        field_type: field_type.map(Into::into),
        field_index_params: params.map(|params| PayloadIndexParams {
            index_params: Some(params),
        }),
        ..Default::default()
    };
    decode_create(request).map(|update| match update {
        Update::CreateFieldIndex { field, schema } => {
            assert_eq!(field, "a.b");
            schema
        }
        other => panic!("another update: {other:?}"),
    })
}

fn text(field_type: Option<qdrant::FieldType>, params: Option<IndexParams>) -> String {
    grpc_refusal(&create(field_type, params).unwrap_err()).text
}

#[test]
#[allow(deprecated, reason = "`on_disk` is shown as it was given")]
fn parameters_are_shown_as_they_were_given() {
    let tenant = KeywordIndexParams {
        is_tenant: Some(true),
        on_disk: Some(false),
        prefix: Some(qdrant::KeywordPrefixParams::default()),
        memory: Some(qdrant::Memory::Cached.into()),
        ..Default::default()
    };
    let given = IndexParams::KeywordIndexParams(tenant);
    let schema = create(Some(qdrant::FieldType::Keyword), Some(given.clone())).unwrap();
    assert_eq!(schema.field_type, FieldType::Keyword);
    let shown = encode_schema(&schema, 5);
    assert_eq!((shown.data_type, shown.points), (1, Some(5)));
    assert_eq!(shown.params.unwrap().index_params, Some(given));

    let given = IndexParams::IntegerIndexParams(IntegerIndexParams {
        lookup: Some(true),
        range: Some(false),
        is_principal: Some(true),
        ..Default::default()
    });
    let shown = encode_schema(&create(None, Some(given.clone())).unwrap(), 0);
    assert_eq!(shown.data_type, 2);
    assert_eq!(shown.params.unwrap().index_params, Some(given));

    for (data_type, given) in [
        (
            3,
            IndexParams::FloatIndexParams(qdrant::FloatIndexParams {
                is_principal: Some(true),
                on_disk: Some(true),
                ..Default::default()
            }),
        ),
        (
            6,
            IndexParams::BoolIndexParams(qdrant::BoolIndexParams {
                enable_hnsw: Some(false),
                ..Default::default()
            }),
        ),
        (
            7,
            IndexParams::DatetimeIndexParams(qdrant::DatetimeIndexParams {
                is_principal: Some(false),
                memory: Some(qdrant::Memory::Pinned.into()),
                ..Default::default()
            }),
        ),
        (
            8,
            IndexParams::UuidIndexParams(qdrant::UuidIndexParams {
                is_tenant: Some(true),
                ..Default::default()
            }),
        ),
    ] {
        let shown = encode_schema(&create(None, Some(given.clone())).unwrap(), 0);
        assert_eq!(shown.data_type, data_type);
        assert_eq!(shown.params.unwrap().index_params, Some(given));
    }
}

#[test]
fn a_type_without_parameters_is_shown_without_them() {
    let schema = create(Some(qdrant::FieldType::Integer), None).unwrap();
    assert_eq!(encode_schema(&schema, 1).params, None);
}

#[test]
fn what_cannot_be_indexed_is_refused_by_its_name() {
    let text_params = IndexParams::TextIndexParams(TextIndexParams::default());
    let nested = IndexParams::KeywordIndexParams(KeywordIndexParams {
        nested: Some("x".into()),
        ..Default::default()
    });
    let useless = IndexParams::IntegerIndexParams(IntegerIndexParams {
        lookup: Some(false),
        range: Some(false),
        ..Default::default()
    });
    let keyword = || {
        Some(IndexParams::KeywordIndexParams(
            KeywordIndexParams::default(),
        ))
    };
    for (refused, part) in [
        (text(None, None), "missing field `field_schema`"),
        (
            text(Some(qdrant::FieldType::Geo), None),
            "field_schema: geo",
        ),
        (text(None, Some(text_params)), "field_schema.type: text"),
        (text(None, Some(nested)), "field_index_params.nested"),
        (
            text(None, Some(useless)),
            "Validation error in body: [field_schema: ",
        ),
        (
            text(Some(qdrant::FieldType::Integer), keyword()),
            "parameters of `keyword` for a field of another type",
        ),
    ] {
        assert!(refused.contains(part), "{refused}");
    }
}
