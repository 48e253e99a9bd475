//! The REST interface: paths of Qdrant's to thin handlers.
//!
//! Around every request, from the outside in: the path is normalised, the access log written, CORS
//! answered, a large answer compressed, the API key checked, the body decompressed, a panic turned into
//! a 500. A handler gives the JSON of the result or a refusal; the
//! envelope is put around it in one place ([`reply`]).

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::middleware;
use axum::response::Response;
use axum::routing::{MethodRouter, delete, get, post, put};
use tower::ServiceExt;
use tower::util::MapRequest;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::cors::{self, CorsLayer};

use flatwater_api::error::Result;

mod access;
mod access_log;
mod collections;
mod dashboard;
mod encoding;
mod ext;
mod input;
mod metrics;
mod not_served;
mod path;
mod points;
mod reply;
mod service;

#[cfg(test)]
mod tests;

use crate::app::Shared;
use input::Input;

/// Makes a handler of a function that gives the JSON text of the result.
macro_rules! endpoint {
    ($function:path) => {
        |State(app): State<Shared>, input: Input| answer(app, input, $function)
    };
}

async fn answer<F, Answer>(app: Shared, input: Input, function: F) -> Response
where
    F: FnOnce(Shared, Input) -> Answer,
    Answer: Future<Output = Result<Vec<u8>>>,
{
    let started = input.started;
    reply::envelope(started, function(app, input).await)
}

/// `/metrics` alone, for a port of its own.
pub(crate) fn metrics_service(app: Shared) -> Router {
    Router::new()
        .route("/metrics", get(metrics::text))
        .fallback(not_served::answer)
        .with_state(app)
        .layer(encoding::of_answers())
}

/// The whole interface as one service.
pub(crate) fn service(app: Shared) -> MapRequest<Router, fn(Request) -> Request> {
    let cors = app.options.service.enable_cors;
    let mut router = routes()
        .0
        .fallback(not_served::answer)
        .method_not_allowed_fallback(not_served::answer)
        .with_state(Arc::clone(&app))
        .layer(CatchPanicLayer::custom(reply::panicked))
        .layer(encoding::of_requests())
        .layer(middleware::from_fn(encoding::refuse_unknown))
        .layer(middleware::from_fn_with_state(
            Arc::clone(&app),
            access::check,
        ))
        .layer(encoding::of_answers());
    if cors {
        router = router.layer(any_origin());
    }
    router
        .layer(middleware::from_fn_with_state(app, access_log::log))
        .map_request(path::normalise)
}

/// Pages of any origin may call. The headers that a browser asks for are named in the answer: `*`
/// would leave out `authorization`.
fn any_origin() -> CorsLayer {
    CorsLayer::new()
        .allow_origin(cors::Any)
        .allow_methods(cors::Any)
        .allow_headers(cors::AllowHeaders::mirror_request())
        .expose_headers(cors::Any)
}

/// Paths and their handlers. Each answer carries the path as it is written here, see [`Endpoint`].
#[derive(Default)]
struct Routes(Router<Shared>);

impl Routes {
    fn route(self, path: &'static str, methods: MethodRouter<Shared>) -> Self {
        let named = middleware::map_response(move |mut response: Response| async move {
            response.extensions_mut().insert(Endpoint(path));
            response
        });
        Self(self.0.route(path, methods.route_layer(named)))
    }

    fn merge(self, other: Self) -> Self {
        Self(self.0.merge(other.0))
    }
}

/// The path that a request was routed by: what answers are counted under.
#[derive(Clone, Copy, Debug)]
struct Endpoint(&'static str);

fn routes() -> Routes {
    collection_routes()
        .merge(point_routes())
        .merge(ext_routes())
}

fn ext_routes() -> Routes {
    Routes::default()
        .route("/ext/jobs", get(endpoint!(ext::all_jobs)))
        .route(
            "/ext/collections/{collection_name}/segments",
            get(endpoint!(ext::segments)),
        )
        .route(
            "/ext/collections/{collection_name}/jobs",
            get(endpoint!(ext::jobs)),
        )
        .route(
            "/ext/collections/{collection_name}/jobs/{job_id}",
            delete(endpoint!(ext::cancel_job)),
        )
        .route(
            "/ext/collections/{collection_name}/plan",
            post(endpoint!(ext::plan)),
        )
}

fn collection_routes() -> Routes {
    let collection: MethodRouter<Shared> = get(endpoint!(collections::info))
        .put(endpoint!(collections::create))
        .patch(endpoint!(collections::patch))
        .delete(endpoint!(collections::delete));
    Routes::default()
        .route("/", get(service::root))
        .route("/healthz", get(service::alive))
        .route("/livez", get(service::alive))
        .route("/readyz", get(service::ready))
        .route("/metrics", get(metrics::text))
        .route("/dashboard", get(dashboard::page))
        .route("/dashboard/{*rest}", get(dashboard::page))
        .route("/collections", get(endpoint!(collections::list)))
        .route("/aliases", get(endpoint!(collections::aliases)))
        .route(
            "/collections/aliases",
            post(endpoint!(collections::change_aliases)),
        )
        .route("/collections/{collection_name}", collection)
        .route(
            "/collections/{collection_name}/aliases",
            get(endpoint!(collections::aliases_of)),
        )
        .route(
            "/collections/{collection_name}/exists",
            get(endpoint!(collections::exists)),
        )
        .route(
            "/collections/{collection_name}/index",
            put(endpoint!(collections::create_index)),
        )
        .route(
            "/collections/{collection_name}/index/{field_name}",
            delete(endpoint!(collections::delete_index)),
        )
        .route(
            "/collections/{collection_name}/memory",
            get(endpoint!(collections::memory)),
        )
        .route(
            "/collections/{collection_name}/optimizations",
            get(endpoint!(collections::optimizations)),
        )
}

fn point_routes() -> Routes {
    let points: MethodRouter<Shared> =
        put(endpoint!(points::upsert)).post(endpoint!(points::retrieve));
    let payload: MethodRouter<Shared> =
        post(endpoint!(points::set_payload)).put(endpoint!(points::overwrite_payload));
    Routes::default()
        .route("/collections/{collection_name}/points", points)
        .route(
            "/collections/{collection_name}/points/{id}",
            get(endpoint!(points::get)),
        )
        .route(
            "/collections/{collection_name}/points/delete",
            post(endpoint!(points::delete)),
        )
        .route(
            "/collections/{collection_name}/points/batch",
            post(endpoint!(points::update_batch)),
        )
        .route("/collections/{collection_name}/points/payload", payload)
        .route(
            "/collections/{collection_name}/points/payload/delete",
            post(endpoint!(points::delete_payload)),
        )
        .route(
            "/collections/{collection_name}/points/payload/clear",
            post(endpoint!(points::clear_payload)),
        )
        .route(
            "/collections/{collection_name}/points/vectors",
            put(endpoint!(points::update_vectors)),
        )
        .route(
            "/collections/{collection_name}/points/vectors/delete",
            post(endpoint!(points::delete_vectors)),
        )
        .route(
            "/collections/{collection_name}/points/scroll",
            post(endpoint!(points::scroll)),
        )
        .route(
            "/collections/{collection_name}/points/count",
            post(endpoint!(points::count)),
        )
        .route(
            "/collections/{collection_name}/points/query",
            post(endpoint!(points::query)),
        )
        .route(
            "/collections/{collection_name}/points/query/batch",
            post(endpoint!(points::query_batch)),
        )
        .route(
            "/collections/{collection_name}/points/search",
            post(endpoint!(points::search)),
        )
        .route(
            "/collections/{collection_name}/points/search/batch",
            post(endpoint!(points::search_batch)),
        )
}

/// Peer of a request, for the access log.
type Peer = axum::extract::ConnectInfo<SocketAddr>;
