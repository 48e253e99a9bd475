//! Answers: envelope, code, headers.

use std::any::Any;
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;
use flatwater_api::envelope;
use flatwater_api::error::{ApiError, Result};
use flatwater_api::status::refusal;

const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// The JSON text of a result or a refusal in Qdrant's envelope.
pub(super) fn envelope(started: Instant, answer: Result<Vec<u8>>) -> Response {
    match answer {
        Ok(result) => json(
            StatusCode::OK,
            envelope::success(&result, started.elapsed()),
        ),
        Err(error) => refused(started.elapsed(), &error),
    }
}

fn refused(elapsed: Duration, error: &ApiError) -> Response {
    let refusal = refusal(error);
    // What a user did wrong is the user's to know; what went wrong here is the operator's.
    if refusal.code == 500 || refusal.code == 507 {
        tracing::error!("{}", refusal.text);
    } else {
        tracing::debug!("{}: {}", refusal.code, refusal.text);
    }
    let code = StatusCode::from_u16(refusal.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = json(code, envelope::error(&refusal.text, elapsed));
    if let Some(seconds) = refusal.retry_after_s {
        response
            .headers_mut()
            .insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

/// A JSON body with a code.
pub(super) fn json(code: StatusCode, body: Vec<u8>) -> Response {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = code;
    response.headers_mut().insert(CONTENT_TYPE, JSON);
    response
}

/// Plain text with a code.
pub(super) fn text(code: StatusCode, text: &'static str) -> Response {
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = code;
    let plain = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, plain);
    response
}

/// A handler panicked: the hook has logged where, the process lives on.
pub(super) fn panicked(_panic: Box<dyn Any + Send>) -> Response {
    refused(
        Duration::ZERO,
        &ApiError::Internal("the request met a bug; the log has its place"),
    )
}
