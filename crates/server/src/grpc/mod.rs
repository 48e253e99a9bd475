//! The gRPC interface: the services of the crate `qdrant-client` over the same operations as REST.
//!
//! Around every call, from the outside in: the log is written, the API key checked, faults that tonic
//! finds before a service does are told in our words, a panic turned into INTERNAL. A call gives a
//! message or a refusal ([`call`]); the conversions are those of `flatwater_api::grpc`.

use std::any::Any;
use std::future::Future;

use axum::body::Body;
use axum::http::Response;
use axum::{Router, middleware};
use flatwater_api::error::ApiError;
use qdrant_client::qdrant::collections_server::CollectionsServer;
use qdrant_client::qdrant::points_server::PointsServer;
use qdrant_client::qdrant::qdrant_server::QdrantServer;
use tokio::net::TcpListener;
use tonic::codec::CompressionEncoding;
use tonic::service::Routes;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tonic_health::pb::health_server::HealthServer;
use tower_http::catch_panic::CatchPanicLayer;

mod access;
mod access_log;
mod call;
mod collections;
mod faults;
mod health;
mod not_served;
mod points;
mod status;

#[cfg(test)]
mod tests;

use crate::app::Shared;

/// Bytes in a megabyte of `service.max_grpc_message_size_mb`.
const MB: usize = 1_048_576;

/// Bytes that a client may send ahead on one call, and on a connection. With the 64 KB of HTTP/2 a
/// message of 64 MB would wait for a thousand acknowledgements.
const STREAM_WINDOW_BYTES: u32 = 1 << 20;
const CONNECTION_WINDOW_BYTES: u32 = 4 << 20;

/// Serves until `stop` is over and the calls in flight have ended.
pub(crate) async fn serve(
    listener: TcpListener,
    app: Shared,
    stop: impl Future<Output = ()>,
) -> Result<(), tonic::transport::Error> {
    let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
    Server::builder()
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .serve_with_incoming_shutdown(router(app), incoming, stop)
        .await
}

/// Gives a service the limit of messages, and gzip in both directions.
macro_rules! tuned {
    ($service:expr, $limit:expr) => {
        $service
            .max_decoding_message_size($limit)
            .accept_compressed(CompressionEncoding::Gzip)
            .send_compressed(CompressionEncoding::Gzip)
    };
}

/// All services.
fn router(app: Shared) -> Router {
    let limit_mb = app.options.service.max_grpc_message_size_mb;
    let limit = limit_mb.saturating_mul(MB);
    let collections = collections::Service::new(app.clone());
    let points = points::Service::new(app.clone());
    let health = health::Service::new(app.clone());
    Routes::new(tuned!(PointsServer::new(points), limit))
        .add_service(tuned!(CollectionsServer::new(collections), limit))
        .add_service(tuned!(QdrantServer::new(health.clone()), limit))
        .add_service(tuned!(HealthServer::new(health), limit))
        .into_axum_router()
        .fallback(not_served::answer)
        .layer(CatchPanicLayer::custom(panicked))
        .layer(middleware::from_fn_with_state(limit_mb, faults::retell))
        .layer(middleware::from_fn_with_state(app.clone(), access::check))
        .layer(middleware::from_fn_with_state(app, access_log::log))
}

/// A call panicked: the hook has logged where, the process lives on.
fn panicked(_panic: Box<dyn Any + Send>) -> Response<Body> {
    let error = ApiError::Internal("the request met a bug; the log has its place");
    status::response(&error)
}
