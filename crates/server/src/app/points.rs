//! Reads of points in the engine's terms.

use flatwater_api::convert::points::Retrieve;
use flatwater_api::convert::query::{Query, unscored};
use flatwater_api::error::Result;
use flatwater_engine::engine::Collection;
use flatwater_engine::query::request::{Record, ScoredPoint};

/// Answers a query.
pub(crate) fn query(collection: &Collection, query: Query) -> Result<Vec<ScoredPoint>> {
    Ok(match query {
        Query::Nearest(request) => collection.search(&request)?,
        Query::ById { walk, skip } => unscored(collection.scroll(&walk)?.points, skip),
    })
}

/// Fetches points by id.
pub(crate) fn retrieve(collection: &Collection, request: &Retrieve) -> Result<Vec<Record>> {
    Ok(collection.retrieve(&request.ids, &request.with_payload, &request.with_vector)?)
}
