//! Which calls read, and the check of their key.

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;

use super::status::response;
use crate::app::Shared;
use crate::auth::{self, Need};

/// Calls that need no key, as in Qdrant.
const OPEN: [&str; 3] = [
    "/qdrant.Qdrant/HealthCheck",
    "/grpc.health.v1.Health/Check",
    "/grpc.health.v1.Health/Watch",
];

/// Calls of `qdrant.Collections` that read.
const COLLECTIONS_READS: [&str; 7] = [
    "Get",
    "List",
    "ListAliases",
    "ListCollectionAliases",
    "ListShardKeys",
    "CollectionClusterInfo",
    "CollectionExists",
];

/// Calls of `qdrant.Points` that read.
const POINTS_READS: [&str; 17] = [
    "Get",
    "Scroll",
    "Count",
    "Query",
    "QueryBatch",
    "QueryGroups",
    "Search",
    "SearchBatch",
    "SearchGroups",
    "SearchMatrixPairs",
    "SearchMatrixOffsets",
    "Recommend",
    "RecommendBatch",
    "RecommendGroups",
    "Discover",
    "DiscoverBatch",
    "Facet",
];

/// Answers a call whose key is missing or wrong, or may not do this; passes the others on.
pub(super) async fn check(State(app): State<Shared>, request: Request, next: Next) -> Response {
    match auth::check(
        &app.options.service,
        request.headers(),
        need(request.uri().path()),
    ) {
        Ok(()) => next.run(request).await,
        Err(error) => response(&error),
    }
}

/// What a call is about to do. Whatever is not known to read, writes.
fn need(path: &str) -> Need {
    if OPEN.contains(&path) {
        return Need::Nothing;
    }
    let reads = match path.strip_prefix('/').and_then(|path| path.split_once('/')) {
        Some(("qdrant.Collections", call)) => COLLECTIONS_READS.contains(&call),
        Some(("qdrant.Points", call)) => POINTS_READS.contains(&call),
        Some(("qdrant.Snapshots", call)) => matches!(call, "List" | "ListFull"),
        _ => false,
    };
    if reads { Need::Read } else { Need::Write }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_known_to_read_is_a_read() {
        for (path, expected) in [
            ("/qdrant.Qdrant/HealthCheck", Need::Nothing),
            ("/grpc.health.v1.Health/Check", Need::Nothing),
            ("/qdrant.Collections/Get", Need::Read),
            ("/qdrant.Collections/Create", Need::Write),
            ("/qdrant.Collections/Update", Need::Write),
            ("/qdrant.Points/Query", Need::Read),
            ("/qdrant.Points/Facet", Need::Read),
            ("/qdrant.Points/Upsert", Need::Write),
            ("/qdrant.Points/UpdateBatch", Need::Write),
            ("/qdrant.Points/get", Need::Write),
            ("/qdrant.Snapshots/Create", Need::Write),
            ("/qdrant.PointsInternal/Get", Need::Write),
            ("/x", Need::Write),
            ("", Need::Write),
        ] {
            assert_eq!(need(path), expected, "{path}");
        }
    }
}
