//! Who the server is (`qdrant.Qdrant/HealthCheck`), and whether it serves (`grpc.health.v1.Health`).

use flatwater_api::{QDRANT_TITLE, QDRANT_VERSION};
use qdrant_client::qdrant::qdrant_server::Qdrant;
use qdrant_client::qdrant::{HealthCheckReply, HealthCheckRequest};
use tonic::codegen::BoxStream;
use tonic::{Request, Response, Status};
use tonic_health::pb;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_server::Health;

use super::call::Answer;
use super::not_served::not_served_error;
use crate::app::Shared;

/// Names that may be asked for; the empty one is the server as a whole.
const SERVICES: [&str; 5] = [
    "",
    "qdrant.Qdrant",
    "qdrant.Collections",
    "qdrant.Points",
    "grpc.health.v1.Health",
];

/// Both services.
#[derive(Clone, Debug)]
pub(super) struct Service {
    app: Shared,
}

impl Service {
    pub(super) fn new(app: Shared) -> Self {
        Self { app }
    }
}

#[tonic::async_trait]
impl Qdrant for Service {
    async fn health_check(
        &self,
        _request: Request<HealthCheckRequest>,
    ) -> Answer<HealthCheckReply> {
        Ok(Response::new(HealthCheckReply {
            title: QDRANT_TITLE.to_owned(),
            version: QDRANT_VERSION.to_owned(),
            commit: option_env!("FLATWATER_COMMIT").map(str::to_owned),
        }))
    }
}

#[tonic::async_trait]
impl Health for Service {
    async fn check(
        &self,
        request: Request<pb::HealthCheckRequest>,
    ) -> Answer<pb::HealthCheckResponse> {
        let name = &request.get_ref().service;
        if !SERVICES.contains(&name.as_str()) {
            return Err(Status::not_found("no such service"));
        }
        let status = if self.app.is_ready() {
            ServingStatus::Serving
        } else {
            ServingStatus::NotServing
        };
        Ok(Response::new(pb::HealthCheckResponse {
            status: status.into(),
        }))
    }

    type WatchStream = BoxStream<pb::HealthCheckResponse>;

    async fn watch(&self, _request: Request<pb::HealthCheckRequest>) -> Answer<Self::WatchStream> {
        // Qdrant does not serve it either.
        Err(not_served_error("grpc.health.v1.Health/Watch"))
    }
}
