//! Point ids.

use flatwater_segment::PointId;
use qdrant_client::qdrant;
use qdrant_client::qdrant::point_id::PointIdOptions;
use serde_json::{Value, json};
use uuid::Uuid;

use super::shape::required;
use crate::convert::ids::decode_uuid;
use crate::error::Result;

/// Reads an id; `path` names its field in the error.
pub(super) fn decode(id: Option<qdrant::PointId>, path: &str) -> Result<PointId> {
    match required(path, id.and_then(|id| id.point_id_options))? {
        PointIdOptions::Num(number) => Ok(PointId::Num(number)),
        PointIdOptions::Uuid(text) => decode_uuid(&text, path),
    }
}

/// Reads a list of ids.
pub(super) fn decode_list(ids: Vec<qdrant::PointId>, path: &str) -> Result<Vec<PointId>> {
    ids.into_iter()
        .enumerate()
        .map(|(at, id)| decode(Some(id), &format!("{path}[{at}]")))
        .collect()
}

/// An id as it would stand in JSON, to be read there.
pub(super) fn shape(id: qdrant::PointId, path: &str) -> Result<Value> {
    Ok(match required(path, id.point_id_options)? {
        PointIdOptions::Num(number) => json!(number),
        PointIdOptions::Uuid(text) => json!(text),
    })
}

/// An id on its way out.
#[must_use]
pub fn encode(id: PointId) -> qdrant::PointId {
    let options = match id {
        PointId::Num(number) => PointIdOptions::Num(number),
        PointId::Uuid(uuid) => PointIdOptions::Uuid(Uuid::from_u128(uuid).to_string()),
    };
    qdrant::PointId {
        point_id_options: Some(options),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::grpc_refusal;

    fn of(options: PointIdOptions) -> Option<qdrant::PointId> {
        Some(qdrant::PointId {
            point_id_options: Some(options),
        })
    }

    #[test]
    fn numbers_and_uuids_go_both_ways() {
        for id in [
            PointId::Num(0),
            PointId::Num(u64::MAX),
            PointId::Uuid(7),
            PointId::Uuid(u128::MAX),
        ] {
            assert_eq!(decode(Some(encode(id)), "id").unwrap(), id);
        }
    }

    #[test]
    fn a_missing_id_and_a_text_that_is_no_uuid_are_refused_by_their_place() {
        let text = decode(of(PointIdOptions::Uuid("7".into())), "ids[3]").unwrap_err();
        let text = grpc_refusal(&text).text;
        assert!(text.starts_with("Format error in body: ids[3]: value 7 is not a valid point ID"));
        let empty = qdrant::PointId {
            point_id_options: None,
        };
        for missing in [None, Some(empty)] {
            let text = grpc_refusal(&decode(missing, "points[0].id").unwrap_err()).text;
            assert_eq!(text, "Format error in body: missing field `points[0].id`");
        }
    }
}
