//! Several requests in one message, each read as the single one is.

use flatwater_engine::collection::update::Update;
use qdrant_client::qdrant;
use qdrant_client::qdrant::points_update_operation::Operation;

use super::query::{decode_query, decode_search};
use super::shape::required;
use super::{edits, points};
use crate::convert::query::Query;
use crate::error::Result;

/// Reads the updates of a batch, in order. Nothing is applied if one of them cannot be read.
///
/// # Errors
/// Those of the single requests, with the place of the operation.
pub fn decode_updates(request: qdrant::UpdateBatchPoints) -> Result<Vec<Update>> {
    let operations = request.operations.into_iter().enumerate();
    let updates = operations.map(|(at, operation)| {
        let path = format!("operations[{at}]");
        let operation = required(&path, operation.operation)?;
        decode_update(operation).map_err(|error| error.within(&path))
    });
    updates.collect()
}

#[allow(deprecated, reason = "clients before 1.2 send the points alone")]
fn decode_update(operation: Operation) -> Result<Update> {
    match operation {
        Operation::Upsert(list) => points::decode_upsert(qdrant::UpsertPoints {
            points: list.points,
            shard_key_selector: list.shard_key_selector,
            update_filter: list.update_filter,
            update_mode: list.update_mode,
            ..Default::default()
        }),
        Operation::DeleteDeprecated(selector) => points::decode_delete(qdrant::DeletePoints {
            points: Some(selector),
            ..Default::default()
        }),
        Operation::DeletePoints(delete) => points::decode_delete(qdrant::DeletePoints {
            points: delete.points,
            shard_key_selector: delete.shard_key_selector,
            ..Default::default()
        }),
        Operation::SetPayload(set) => points::decode_set_payload(qdrant::SetPayloadPoints {
            payload: set.payload,
            points_selector: set.points_selector,
            shard_key_selector: set.shard_key_selector,
            key: set.key,
            ..Default::default()
        }),
        Operation::OverwritePayload(set) => {
            edits::decode_overwrite_payload(qdrant::SetPayloadPoints {
                payload: set.payload,
                points_selector: set.points_selector,
                shard_key_selector: set.shard_key_selector,
                key: set.key,
                ..Default::default()
            })
        }
        Operation::DeletePayload(delete) => {
            edits::decode_delete_payload(qdrant::DeletePayloadPoints {
                keys: delete.keys,
                points_selector: delete.points_selector,
                shard_key_selector: delete.shard_key_selector,
                ..Default::default()
            })
        }
        Operation::ClearPayloadDeprecated(selector) => {
            edits::decode_clear_payload(qdrant::ClearPayloadPoints {
                points: Some(selector),
                ..Default::default()
            })
        }
        Operation::ClearPayload(clear) => edits::decode_clear_payload(qdrant::ClearPayloadPoints {
            points: clear.points,
            shard_key_selector: clear.shard_key_selector,
            ..Default::default()
        }),
        Operation::UpdateVectors(update) => {
            edits::decode_update_vectors(qdrant::UpdatePointVectors {
                points: update.points,
                shard_key_selector: update.shard_key_selector,
                update_filter: update.update_filter,
                ..Default::default()
            })
        }
        Operation::DeleteVectors(delete) => {
            edits::decode_delete_vectors(qdrant::DeletePointVectors {
                points_selector: delete.points_selector,
                vectors: delete.vectors,
                shard_key_selector: delete.shard_key_selector,
                ..Default::default()
            })
        }
    }
}

/// Reads the queries of a batch.
///
/// # Errors
/// Those of the single query, with its place.
pub fn decode_queries(request: qdrant::QueryBatchPoints) -> Result<Vec<Query>> {
    each(request.query_points, "query_points", decode_query)
}

/// Reads the searches of a batch.
///
/// # Errors
/// Those of the single search, with its place.
pub fn decode_searches(request: qdrant::SearchBatchPoints) -> Result<Vec<Query>> {
    each(request.search_points, "search_points", decode_search)
}

fn each<M>(list: Vec<M>, name: &str, decode: fn(M) -> Result<Query>) -> Result<Vec<Query>> {
    let queries = list.into_iter().enumerate().map(|(at, message)| {
        decode(message).map_err(|error| error.within(&format!("{name}[{at}]")))
    });
    queries.collect()
}
