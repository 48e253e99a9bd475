//! `/dashboard`: what runs here and what to try. It needs no key and tells nothing of the data.

use axum::extract::State;
use axum::http::header::{CONTENT_TYPE, X_FRAME_OPTIONS};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use flatwater_api::QDRANT_VERSION;

use crate::app::Shared;

/// The page; words in double braces are filled in.
const PAGE: &str = include_str!("dashboard.html");

/// Headers of the page: it is shown in no frame (Qdrant's rule), and loads nothing.
const HEADERS: [(HeaderName, HeaderValue); 3] = [
    (
        CONTENT_TYPE,
        HeaderValue::from_static("text/html; charset=utf-8"),
    ),
    (X_FRAME_OPTIONS, HeaderValue::from_static("DENY")),
    (
        HeaderName::from_static("content-security-policy"),
        HeaderValue::from_static("default-src 'none'; style-src 'unsafe-inline'"),
    ),
];

/// `GET /dashboard` and everything below it.
pub(super) async fn page(State(app): State<Shared>) -> Response {
    let state = if app.is_ready() {
        "ready"
    } else {
        "starting or stopping: collections are not served at this moment"
    };
    let service = &app.options.service;
    let (key, header) = if service.is_guarded() {
        ("needed", " -H \"api-key: $API_KEY\"")
    } else {
        (
            "none: anyone who reaches the port can read and change everything",
            "",
        )
    };
    let grpc = match app.grpc_port() {
        Some(port) => format!("port {port}"),
        None => "off (<code>service.grpc_port</code>)".to_owned(),
    };
    let page = PAGE
        .replace("{{version}}", env!("CARGO_PKG_VERSION"))
        .replace("{{qdrant}}", QDRANT_VERSION)
        .replace("{{state}}", state)
        .replace("{{grpc}}", &grpc)
        .replace("{{key}}", key)
        .replace("{{header}}", header);
    (StatusCode::OK, HEADERS, page).into_response()
}
