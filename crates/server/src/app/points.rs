//! Reads of points in the engine's terms.

use flatwater_api::convert::points::Retrieve;
use flatwater_api::convert::query::{Query, unscored};
use flatwater_api::error::{ApiError, Result};
use flatwater_engine::engine::{Collection, Engine};
use flatwater_engine::query::request::{Record, ScoredPoint};

use super::reads::Read;
use super::{Shared, find};

/// Answers several queries, each on a search thread of its own; `encode` gives what is kept of each
/// answer. The first fault, in their order, is the answer to all.
pub(crate) async fn query_each<T: Send + 'static>(
    app: &Shared,
    read: Read,
    name: &str,
    queries: Vec<Query>,
    encode: fn(Vec<ScoredPoint>) -> Result<T>,
) -> Result<Vec<T>> {
    // An unknown collection is refused with no query too.
    find(&*app.engine()?, name)?;
    let running: Vec<_> = queries
        .into_iter()
        .map(|one| {
            let (app, name) = (Shared::clone(app), name.to_owned());
            let job = move |engine: &Engine| encode(query(&*find(engine, &name)?, one)?);
            tokio::spawn(async move { read.run(&app, job).await })
        })
        .collect();
    let mut answers = Vec::with_capacity(running.len());
    for answer in running {
        answers.push(answer.await.map_err(|_| LOST)??);
    }
    Ok(answers)
}

/// A query's task ended without an answer.
const LOST: ApiError = ApiError::Internal("a query met a bug; the log has its place");

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
