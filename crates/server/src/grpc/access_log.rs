//! One line a call, except for those that probes make all the time; and gzip for those who use it.

use std::time::Instant;

use axum::extract::Request;
use axum::http::HeaderName;
use axum::middleware::Next;
use axum::response::Response;
use tonic::{Code, Status};

/// Calls that are not logged.
const QUIET: [&str; 2] = ["/qdrant.Qdrant/HealthCheck", "/grpc.health.v1.Health/Check"];

/// How the message of a request is compressed, and how its answer may be.
const ENCODING: HeaderName = HeaderName::from_static("grpc-encoding");
const ACCEPT_ENCODING: HeaderName = HeaderName::from_static("grpc-accept-encoding");

/// Logs the call once it is answered; the code of an answer with a message is told after it, so a call
/// that has begun to answer counts as served.
pub(super) async fn log(mut request: Request, next: Next) -> Response {
    // Most clients say that they can read gzip, whether or not it helps them. Compressing takes longer
    // than a local network, so only those get it who compress what they send.
    if !request.headers().contains_key(ENCODING) {
        request.headers_mut().remove(ACCEPT_ENCODING);
    }
    let path = request.uri().path().to_owned();
    if QUIET.contains(&path.as_str()) {
        return next.run(request).await;
    }
    let started = Instant::now();
    let response = next.run(request).await;
    let code = Status::from_header_map(response.headers()).map_or(Code::Ok, |status| status.code());
    tracing::info!(
        target: "flatwater::access",
        "gRPC {path} {code:?} {:.6}",
        started.elapsed().as_secs_f64()
    );
    response
}
