//! Aliases of collections.

use flatwater_engine::aliases::AliasAction;
use serde_json::{Value, json};

use super::text;
use crate::body;
use crate::error::{ApiError, Result};
use crate::fields::{Fields, wrong_type};
use crate::validate;

/// Reads the body of `POST /collections/aliases`.
///
/// # Errors
/// Undecodable JSON, an unknown action (400), a name that no collection can have (422).
pub fn decode_actions(bytes: &[u8]) -> Result<Vec<AliasAction>> {
    let map = body::object(bytes)?;
    let fields = Fields::root(&map);
    fields.required("actions")?;
    let actions = fields.array("actions")?.map_or(&[][..], Vec::as_slice);
    let actions = actions.iter().enumerate();
    actions
        .map(|(at, action)| decode_action(action, &format!("actions[{at}]")))
        .collect()
}

fn decode_action(action: &Value, path: &str) -> Result<AliasAction> {
    let fields = Fields::of(action, path.to_owned())?;
    let (Some((kind, value)), 1) = (fields.map().iter().next(), fields.map().len()) else {
        return Err(ApiError::Format(format!(
            "{path}: expected one of `create_alias`, `delete_alias`, `rename_alias`"
        )));
    };
    let inner = Fields::of(value, fields.at(kind))?;
    let name = |field: &str| -> Result<String> {
        let value = inner.required(field)?;
        let name = value.as_str();
        let name = name.ok_or_else(|| wrong_type(&inner.at(field), value, "a string"))?;
        Ok(name.to_owned())
    };
    let new_name = |field: &str| -> Result<String> {
        let name = name(field)?;
        validate::collection_name(&name)?;
        Ok(name)
    };
    match kind.as_str() {
        "create_alias" => Ok(AliasAction::Create {
            collection: name("collection_name")?,
            alias: new_name("alias_name")?,
        }),
        "delete_alias" => Ok(AliasAction::Delete {
            alias: name("alias_name")?,
        }),
        "rename_alias" => Ok(AliasAction::Rename {
            old: name("old_alias_name")?,
            new: new_name("new_alias_name")?,
        }),
        other => Err(ApiError::Format(format!(
            "{path}: unknown action `{}`, expected one of `create_alias`, `delete_alias`, `rename_alias`",
            crate::fields::short(other)
        ))),
    }
}

/// JSON of aliases: (alias, collection).
#[must_use]
pub fn encode_aliases(aliases: &[(String, String)]) -> Vec<u8> {
    let list: Vec<Value> = aliases
        .iter()
        .map(|(alias, collection)| json!({ "alias_name": alias, "collection_name": collection }))
        .collect();
    text(&json!({ "aliases": list }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_actions_are_read_and_others_refused() {
        let body = json!({"actions": [
            {"create_alias": {"collection_name": "c", "alias_name": "a"}},
            {"rename_alias": {"old_alias_name": "a", "new_alias_name": "b"}},
            {"delete_alias": {"alias_name": "b"}},
        ]});
        let actions = decode_actions(body.to_string().as_bytes()).unwrap();
        assert_eq!(actions.len(), 3);
        assert_eq!(
            actions[0],
            AliasAction::Create {
                collection: "c".to_owned(),
                alias: "a".to_owned()
            }
        );
        for bad in [
            json!({}),
            json!({"actions": [{}]}),
            json!({"actions": [{"swap": {}}]}),
            json!({"actions": [{"delete_alias": {}}]}),
            json!({"actions": [{"create_alias": {"collection_name": "c", "alias_name": "a/b"}}]}),
        ] {
            let error = decode_actions(bad.to_string().as_bytes()).unwrap_err();
            assert!(
                [400, 422].contains(&crate::status::refusal(&error).code),
                "{bad}"
            );
        }
        assert_eq!(
            encode_aliases(&[("a".to_owned(), "c".to_owned())]),
            br#"{"aliases":[{"alias_name":"a","collection_name":"c"}]}"#
        );
    }
}
