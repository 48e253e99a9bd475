//! Refusals as gRPC knows them.

use axum::body::Body;
use axum::http::Response;
use flatwater_api::error::ApiError;
use flatwater_api::status::grpc_refusal;
use tonic::metadata::MetadataMap;
use tonic::{Code, Status};

/// Code, text and, when a retry makes sense, `retry-after` in the metadata.
pub(super) fn status(error: &ApiError) -> Status {
    let refusal = grpc_refusal(error);
    // What a user did wrong is the user's to know; what went wrong here is the operator's.
    if refusal.code == 500 || refusal.code == 507 {
        tracing::error!("{}", refusal.text);
    } else {
        tracing::debug!("{:?}: {}", refusal.grpc, refusal.text);
    }
    let code = Code::from_i32(refusal.grpc as i32);
    let mut metadata = MetadataMap::new();
    if let Some(seconds) = refusal.retry_after_s {
        metadata.insert("retry-after", seconds.into());
    }
    Status::with_metadata(code, refusal.text, metadata)
}

/// A whole answer that carries nothing but the refusal.
pub(super) fn response(error: &ApiError) -> Response<Body> {
    status(error).into_http()
}
