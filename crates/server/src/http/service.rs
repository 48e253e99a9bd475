//! Who the server is and how it is.

use axum::extract::State;
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;
use flatwater_api::{QDRANT_TITLE, QDRANT_VERSION};
use serde_json::json;

use super::reply;
use crate::app::Shared;

/// Header that carries our own version; the body is what Qdrant's clients compare.
const VERSION_HEADER: &str = "x-flatwater-version";

/// `GET /`.
pub(super) async fn root() -> Response {
    let mut body = json!({ "title": QDRANT_TITLE, "version": QDRANT_VERSION });
    if let (Some(commit), Some(map)) = (option_env!("FLATWATER_COMMIT"), body.as_object_mut()) {
        map.insert("commit".to_owned(), json!(commit));
    }
    let mut response = reply::json(StatusCode::OK, body.to_string().into_bytes());
    let version = HeaderValue::from_static(env!("CARGO_PKG_VERSION"));
    response.headers_mut().insert(VERSION_HEADER, version);
    response
}

/// `GET /healthz` and `GET /livez`: the process answers.
pub(super) async fn alive() -> Response {
    reply::text(StatusCode::OK, "healthz check passed")
}

/// `GET /readyz`: collections are loaded.
pub(super) async fn ready(State(app): State<Shared>) -> Response {
    if app.is_ready() {
        reply::text(StatusCode::OK, "all shards are ready")
    } else {
        reply::text(StatusCode::SERVICE_UNAVAILABLE, "some shards are not ready")
    }
}
