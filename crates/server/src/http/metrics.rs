//! `GET /metrics`: numbers for Prometheus.

use std::time::Instant;

use axum::body::Body;
use axum::extract::State;
use axum::http::HeaderValue;
use axum::http::header::CONTENT_TYPE;
use axum::response::Response;
use flatwater_api::error::{ApiError, Result};

use super::input::Input;
use super::reply;
use crate::app::{Shared, blocking};
use crate::metrics;

/// The text.
pub(super) async fn text(State(app): State<Shared>, input: Input) -> Response {
    let started = Instant::now();
    let written = match check(&input) {
        Ok(()) => blocking(move || app.metrics()).await,
        Err(error) => Err(error),
    };
    match written {
        Ok(text) => {
            let mut response = Response::new(Body::from(text));
            let kind = HeaderValue::from_static(metrics::CONTENT_TYPE);
            response.headers_mut().insert(CONTENT_TYPE, kind);
            response
        }
        Err(error) => reply::envelope(started, Err(error)),
    }
}

/// Qdrant's parameters that would change the text.
fn check(input: &Input) -> Result<()> {
    input.timeout_s()?;
    for name in ["anonymize", "per_collection"] {
        if input.flag(name)? {
            return Err(ApiError::NotServed(format!("{name}=true")));
        }
    }
    Ok(())
}
