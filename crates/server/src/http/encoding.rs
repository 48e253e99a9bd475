//! Compressed bodies: gzip in, gzip out.

use std::time::Instant;

use axum::extract::Request;
use axum::http::HeaderValue;
use axum::http::header::CONTENT_ENCODING;
use axum::middleware::Next;
use axum::response::Response;
use flatwater_api::error::ApiError;
use tower_http::CompressionLevel;
use tower_http::compression::CompressionLayer;
use tower_http::compression::predicate::SizeAbove;
use tower_http::decompression::RequestDecompressionLayer;

use super::reply;

/// Answers from this size on are compressed, for who accepts it. Ten segments of 1,460 bytes are what
/// TCP sends before the first acknowledgement (RFC 6928): a smaller answer arrives in the same round
/// trip either way, and would only get later by the time that compression takes.
const COMPRESSED_FROM_BYTES: u16 = 14_600;

/// Decompresses bodies of requests. The limit of their size counts what comes out.
pub(super) fn of_requests() -> RequestDecompressionLayer {
    RequestDecompressionLayer::new().gzip(true)
}

/// Compresses answers, at the level that costs the least time.
pub(super) fn of_answers() -> CompressionLayer<SizeAbove> {
    CompressionLayer::new()
        .gzip(true)
        .quality(CompressionLevel::Fastest)
        .compress_when(SizeAbove::new(COMPRESSED_FROM_BYTES))
}

/// Answers a request whose body is compressed in another way.
pub(super) async fn refuse_unknown(request: Request, next: Next) -> Response {
    let is_known = |value: &HeaderValue| value == "gzip" || value == "identity";
    if request
        .headers()
        .get_all(CONTENT_ENCODING)
        .iter()
        .all(is_known)
    {
        return next.run(request).await;
    }
    reply::envelope(Instant::now(), Err(ApiError::BodyEncoding))
}
