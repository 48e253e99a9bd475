//! Which requests read, and the check of their key.

use std::time::Instant;

use axum::extract::{Request, State};
use axum::http::Method;
use axum::middleware::Next;
use axum::response::Response;

use super::reply;
use crate::app::Shared;
use crate::auth::{self, Need};

/// Paths that need no key, as in Qdrant; the last one with all below it.
const OPEN: [&str; 5] = ["/", "/healthz", "/livez", "/readyz", "/dashboard"];

/// Requests by POST below `/collections/{c}` that read.
const READS_BY_POST: [&str; 8] = [
    "points",
    "points/scroll",
    "points/count",
    "points/query",
    "points/search",
    "points/recommend",
    "points/discover",
    "facet",
];

/// Of these, those with variants below them (`points/query/batch`).
const WITH_VARIANTS: [&str; 4] = [
    "points/query",
    "points/search",
    "points/recommend",
    "points/discover",
];

/// Answers a request whose key is missing or wrong, or may not do this; passes the others on.
pub(super) async fn check(State(app): State<Shared>, request: Request, next: Next) -> Response {
    let need = need(request.method(), request.uri().path());
    match auth::check(&app.options.service, request.headers(), need) {
        Ok(()) => next.run(request).await,
        Err(error) => reply::envelope(Instant::now(), Err(error)),
    }
}

/// What a request is about to do. Whatever is not known to read, writes.
fn need(method: &Method, path: &str) -> Need {
    let is_get = *method == Method::GET || *method == Method::HEAD;
    if is_get && (OPEN.contains(&path) || path.starts_with("/dashboard/")) {
        return Need::Nothing;
    }
    if is_get || (*method == Method::POST && reads_by_post(path)) {
        return Need::Read;
    }
    Need::Write
}

fn reads_by_post(path: &str) -> bool {
    // A dry run changes nothing.
    let plan = path.strip_prefix("/ext/collections/");
    if plan
        .and_then(|rest| rest.split_once('/'))
        .is_some_and(|(_, below)| below == "plan")
    {
        return true;
    }
    let below = path
        .strip_prefix("/collections/")
        .and_then(|rest| rest.split_once('/'))
        .map(|(_, below)| below);
    let Some(below) = below else {
        return false;
    };
    let is_variant = |of: &&str| {
        below
            .strip_prefix(*of)
            .is_some_and(|rest| rest.starts_with('/'))
    };
    READS_BY_POST.contains(&below) || WITH_VARIANTS.iter().any(is_variant)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_known_to_read_is_a_read() {
        for (method, path, expected) in [
            ("GET", "/", Need::Nothing),
            ("GET", "/readyz", Need::Nothing),
            ("GET", "/dashboard", Need::Nothing),
            ("GET", "/dashboard/assets/x.js", Need::Nothing),
            ("POST", "/dashboard", Need::Write),
            ("GET", "/dashboards", Need::Read),
            ("GET", "/collections", Need::Read),
            ("GET", "/metrics", Need::Read),
            ("GET", "/collections/healthz", Need::Read),
            ("PUT", "/collections/a", Need::Write),
            ("PATCH", "/collections/a", Need::Write),
            ("DELETE", "/collections/a", Need::Write),
            ("POST", "/collections/aliases", Need::Write),
            ("POST", "/collections/a/points", Need::Read),
            ("PUT", "/collections/a/points", Need::Write),
            ("POST", "/collections/a/points/scroll", Need::Read),
            ("POST", "/collections/a/points/scroll/x", Need::Write),
            ("POST", "/collections/a/points/count", Need::Read),
            ("POST", "/collections/a/points/query", Need::Read),
            ("POST", "/collections/a/points/query/batch", Need::Read),
            (
                "POST",
                "/collections/a/points/search/matrix/pairs",
                Need::Read,
            ),
            ("POST", "/collections/a/points/querys", Need::Write),
            ("POST", "/collections/a/facet", Need::Read),
            ("POST", "/collections/a/points/delete", Need::Write),
            ("POST", "/collections/a/points/payload", Need::Write),
            ("POST", "/collections/a/points/batch", Need::Write),
            (
                "POST",
                "/collections/a/points/payload/points/query",
                Need::Write,
            ),
            ("POST", "/points/query", Need::Write),
            ("GET", "/ext/collections/a/jobs", Need::Read),
            ("DELETE", "/ext/collections/a/jobs/x", Need::Write),
            ("POST", "/ext/collections/a/plan", Need::Read),
            ("POST", "/ext/collections/a/b/plan", Need::Write),
            ("POST", "/collections/a/plan", Need::Write),
        ] {
            let method = method.parse().unwrap();
            assert_eq!(need(&method, path), expected, "{method} {path}");
        }
    }
}
