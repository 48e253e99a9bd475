//! Everything without a handler: paths that Qdrant has get a 400 that says so, the rest a 404.

use std::time::Instant;

use axum::extract::Request;
use axum::response::Response;
use flatwater_api::error::ApiError;

use super::reply;

/// Endpoints of Qdrant's that are not served yet: methods, and the path with `*` for a name. A `**`
/// at the end stands for anything below.
const ENDPOINTS: [(&str, &str); 26] = [
    ("GET", "/telemetry"),
    ("GET DELETE", "/issues"),
    ("GET PUT", "/quotas"),
    ("GET POST", "/logger"),
    ("GET", "/stacktrace"),
    ("GET", "/profiler/**"),
    ("GET POST", "/audit/**"),
    ("GET POST PUT DELETE", "/snapshots"),
    ("GET POST PUT DELETE", "/snapshots/**"),
    ("GET POST", "/cluster"),
    ("GET POST PUT DELETE", "/cluster/**"),
    ("GET POST PUT", "/collections/*/cluster"),
    ("POST", "/collections/*/facet"),
    ("GET POST PUT", "/collections/*/shards"),
    ("GET POST PUT DELETE", "/collections/*/shards/**"),
    ("GET POST", "/collections/*/snapshots"),
    ("GET POST PUT DELETE", "/collections/*/snapshots/**"),
    ("PUT DELETE", "/collections/*/vectors/*"),
    ("POST", "/collections/*/truncate_unapplied_wal"),
    ("POST", "/collections/*/points/query/groups"),
    ("POST", "/collections/*/points/search/groups"),
    ("POST", "/collections/*/points/search/matrix/**"),
    ("POST", "/collections/*/points/recommend"),
    ("POST", "/collections/*/points/recommend/**"),
    ("POST", "/collections/*/points/discover"),
    ("POST", "/collections/*/points/discover/**"),
];

/// Answers a request that no handler took.
pub(super) async fn answer(request: Request) -> Response {
    let (method, path) = (request.method().as_str(), request.uri().path());
    let error = match find(method, path) {
        Some(pattern) => ApiError::NotServed(format!("{method} {}", pattern.replace('*', "..."))),
        None => {
            let shown: String = path.chars().take(200).collect();
            ApiError::UnknownPath(format!("{method} {shown}"))
        }
    };
    reply::envelope(Instant::now(), Err(error))
}

/// The pattern of the known endpoint that the request is for.
fn find(method: &str, path: &str) -> Option<&'static str> {
    let found = ENDPOINTS.into_iter().find(|(methods, pattern)| {
        methods.split(' ').any(|known| known == method) && matches(pattern, path)
    });
    found.map(|(_, pattern)| pattern)
}

fn matches(pattern: &str, path: &str) -> bool {
    let mut parts = path.split('/');
    for expected in pattern.split('/') {
        match (expected, parts.next()) {
            ("**", rest) => return rest.is_some(),
            (_, None) => return false,
            ("*", Some(_)) => {}
            (word, Some(part)) if word == part => {}
            _ => return false,
        }
    }
    parts.next().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_endpoints_are_told_from_unknown_ones() {
        for (method, path) in [
            ("POST", "/collections/a/facet"),
            ("POST", "/collections/a/points/query/groups"),
            ("POST", "/collections/a/points/search/matrix/pairs"),
            ("POST", "/collections/a/points/discover/batch"),
            ("GET", "/telemetry"),
            ("DELETE", "/collections/a/snapshots/x"),
        ] {
            assert!(find(method, path).is_some(), "{method} {path}");
        }
        for (method, path) in [
            ("GET", "/nope"),
            ("POST", "/telemetry"),
            ("GET", "/collections/a/nope"),
            ("POST", "/collections/a/points/nope"),
            ("PATCH", "/collections"),
        ] {
            assert_eq!(find(method, path), None, "{method} {path}");
        }
    }
}
