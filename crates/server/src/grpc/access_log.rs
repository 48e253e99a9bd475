//! Each call is counted, and told in one line, except for those that probes make all the time; and gzip
//! for those who use it.

use std::time::Instant;

use axum::extract::{Request, State};
use axum::http::HeaderName;
use axum::middleware::Next;
use axum::response::Response;
use tonic::{Code, Status};

use crate::app::Shared;
use crate::metrics::Verb;

/// Calls that are neither logged nor counted.
const QUIET: [&str; 2] = ["/qdrant.Qdrant/HealthCheck", "/grpc.health.v1.Health/Check"];

/// How the message of a request is compressed, and how its answer may be.
const ENCODING: HeaderName = HeaderName::from_static("grpc-encoding");
const ACCEPT_ENCODING: HeaderName = HeaderName::from_static("grpc-accept-encoding");

/// Counts and logs the call once it is answered; the code of an answer with a message is told after it, so
/// a call that has begun to answer counts as served.
pub(super) async fn log(State(app): State<Shared>, mut request: Request, next: Next) -> Response {
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
    let took = started.elapsed();
    let (calls, number) = (&app.answered.grpc, code as u16);
    if is_of_a_service(code) {
        calls.record(Verb::Call, &path, number, took);
    } else {
        calls.record_known(Verb::Call, &path, number, took);
    }
    tracing::info!(
        target: "flatwater::access",
        "gRPC {path} {code:?} {:.6}",
        took.as_secs_f64()
    );
    response
}

/// Whether a service gave the answer: then there is a call of that name. The others may be names that a
/// client made up.
fn is_of_a_service(code: Code) -> bool {
    !matches!(
        code,
        Code::Unimplemented | Code::Unauthenticated | Code::PermissionDenied
    )
}
