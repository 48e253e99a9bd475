//! Each answer is counted, and told in one line, except for the paths that probes ask for all the time.

use std::time::Instant;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;

use super::{Endpoint, Peer};
use crate::app::Shared;
use crate::metrics::Verb;

/// Paths that are neither logged nor counted, as in Qdrant.
const QUIET: [&str; 6] = [
    "/",
    "/metrics",
    "/telemetry",
    "/healthz",
    "/readyz",
    "/livez",
];

/// Counts and logs the request once it is answered.
pub(super) async fn log(State(app): State<Shared>, request: Request, next: Next) -> Response {
    if QUIET.contains(&request.uri().path()) {
        return next.run(request).await;
    }
    let started = Instant::now();
    let method = request.method().clone();
    let target = request.uri().clone();
    let peer = request
        .extensions()
        .get::<Peer>()
        .map(|peer| peer.0.ip().to_string());
    let response = next.run(request).await;
    let (took, code) = (started.elapsed(), response.status().as_u16());
    // Only answers of an endpoint name one: what clients make up is not counted.
    let endpoint = response.extensions().get::<Endpoint>();
    if let (Some(Endpoint(path)), Some(verb)) = (endpoint, Verb::of(method.as_str())) {
        app.answered.rest.record(verb, path, code, took);
    }
    tracing::info!(
        target: "flatwater::access",
        "{} \"{method} {target}\" {code} {:.6}",
        peer.as_deref().unwrap_or("-"),
        took.as_secs_f64()
    );
    response
}
