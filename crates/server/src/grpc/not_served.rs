//! Calls of Qdrant's that are not served yet, and calls that nobody knows: UNIMPLEMENTED, by name.

use axum::body::Body;
use axum::extract::Request;
use axum::http::Response;
use flatwater_api::error::ApiError;

use super::status::{response, status};

/// Methods of a service that are not served yet: method, request, answer, name of the call. To serve
/// one, its line becomes an `async fn` of the service.
macro_rules! not_served {
    ($($method:ident($request:ident) -> $answer:ident, $call:literal;)*) => {$(
        // What `tonic::async_trait` makes of an `async fn`; it does not look into macros.
        fn $method<'life0, 'async_trait>(
            &'life0 self,
            _request: tonic::Request<qdrant_client::qdrant::$request>,
        ) -> std::pin::Pin<
            Box<
                dyn Future<Output = $crate::grpc::call::Answer<qdrant_client::qdrant::$answer>>
                    + Send
                    + 'async_trait,
            >,
        >
        where
            'life0: 'async_trait,
            Self: 'async_trait,
        {
            let error = $crate::grpc::not_served::not_served_error($call);
            Box::pin(std::future::ready(Err(error)))
        }
    )*};
}
pub(super) use not_served;

/// The refusal of a call by its name.
pub(super) fn not_served_error(call: &str) -> tonic::Status {
    status(&ApiError::CallNotServed(call.to_owned()))
}

/// First part of the names of Qdrant's services.
const PACKAGE: &str = "/qdrant.";

/// Answers a call that no service took.
pub(super) async fn answer(request: Request) -> Response<Body> {
    let path: String = request.uri().path().chars().take(200).collect();
    response(&match path.strip_prefix(PACKAGE) {
        Some(call) => ApiError::CallNotServed(call.to_owned()),
        None => ApiError::UnknownPath(path),
    })
}
