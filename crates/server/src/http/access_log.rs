//! One line a request, except for the paths that probes ask for all the time.

use std::time::Instant;

use axum::extract::Request;
use axum::middleware::Next;
use axum::response::Response;

use super::Peer;

/// Paths that are not logged, as in Qdrant.
const QUIET: [&str; 6] = [
    "/",
    "/metrics",
    "/telemetry",
    "/healthz",
    "/readyz",
    "/livez",
];

/// Logs the request once it is answered.
pub(super) async fn log(request: Request, next: Next) -> Response {
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
    tracing::info!(
        target: "flatwater::access",
        "{} \"{method} {target}\" {} {:.6}",
        peer.as_deref().unwrap_or("-"),
        response.status().as_u16(),
        started.elapsed().as_secs_f64()
    );
    response
}
