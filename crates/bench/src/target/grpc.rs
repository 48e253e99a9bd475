//! A server by gRPC: searches and writes with the messages that Qdrant's own client sends, as the
//! published study did. What is managed goes by REST, which alone has `/optimizations`.

use std::collections::HashMap;
use std::future::Future;
use std::time::{Duration, Instant};

use qdrant_client::qdrant::point_id::PointIdOptions;
use qdrant_client::qdrant::points_client::PointsClient;
use qdrant_client::qdrant::points_selector::PointsSelectorOneOf;
use qdrant_client::qdrant::{
    Condition, DeletePoints, Filter, PointId, PointStruct, PointsIdsList, PointsSelector,
    SearchParams, SearchPoints, UpsertPoints, Value as GrpcValue, Vectors,
};
use serde_json::Value;
use tokio::runtime::Runtime;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Response, Status};

use super::rest::own_runtime;
use super::{Batch, Failure, Found, Place, Rest, Search, Session, Subject, Target, Verb};

/// A server that speaks Qdrant's gRPC and REST.
#[derive(Clone, Debug)]
pub(crate) struct Grpc {
    pub(crate) place: Place,
    /// The same server by REST.
    pub(crate) rest: Rest,
}

impl Target for Grpc {
    fn kind(&self) -> &'static str {
        "grpc"
    }

    fn place(&self) -> String {
        format!("grpc://{}, {}", self.place.authority(), self.rest.place())
    }

    fn version(&self) -> Result<String, Failure> {
        self.rest.version()
    }

    fn process(&self) -> Option<u32> {
        self.rest.process()
    }

    fn manage(&self, verb: Verb, path: &str, body: Option<&Value>) -> Result<Value, Failure> {
        self.rest.manage(verb, path, body)
    }

    fn session(&self, subject: &Subject) -> Result<Box<dyn Session>, Failure> {
        let runtime = own_runtime()?;
        let broken = |error: tonic::transport::Error| Failure::Connection(error.to_string());
        let endpoint = Endpoint::from_shared(format!("http://{}", self.place.authority()));
        let endpoint = endpoint.map_err(broken)?.tcp_nodelay(true);
        let channel = runtime.block_on(endpoint.connect()).map_err(broken)?;
        let api_key =
            match &self.rest.api_key {
                None => None,
                Some(key) => Some(key.parse().map_err(|_| {
                    Failure::Connection(String::from("the api key is not plain text"))
                })?),
            };
        Ok(Box::new(GrpcSession {
            client: PointsClient::new(channel),
            runtime,
            subject: subject.clone(),
            api_key,
            timeout: self.rest.timeout,
        }))
    }
}

struct GrpcSession {
    client: PointsClient<Channel>,
    runtime: Runtime,
    subject: Subject,
    api_key: Option<MetadataValue<Ascii>>,
    timeout: Duration,
}

impl GrpcSession {
    fn request<T>(&self, message: T) -> Request<T> {
        let mut request = Request::new(message);
        if let Some(key) = &self.api_key {
            request.metadata_mut().insert("api-key", key.clone());
        }
        request
    }
}

fn wait_for<T>(
    runtime: &Runtime,
    limit: Duration,
    call: impl Future<Output = Result<Response<T>, Status>>,
) -> Result<T, Failure> {
    let answer = runtime.block_on(async { tokio::time::timeout(limit, call).await });
    match answer {
        Err(_) => Err(Failure::Timeout(limit)),
        Ok(Ok(response)) => Ok(response.into_inner()),
        Ok(Err(status)) if status.code() == Code::DeadlineExceeded => Err(Failure::Timeout(limit)),
        Ok(Err(status)) if status.code() == Code::Unavailable => {
            Err(Failure::Connection(status.message().to_owned()))
        }
        Ok(Err(status)) => Err(Failure::Refused {
            status: status.code().to_string(),
            message: status.message().to_owned(),
        }),
    }
}

impl Session for GrpcSession {
    fn search(&mut self, search: &Search<'_>) -> Result<Found, Failure> {
        let begin = Instant::now();
        let name = &self.subject.vector;
        let keyword = search.keyword.map(|keyword| {
            let wanted = Condition::matches(keyword.field.clone(), keyword.value.clone());
            Filter::must([wanted])
        });
        let message = SearchPoints {
            collection_name: self.subject.collection.clone(),
            vector: search.vector.to_vec(),
            filter: keyword,
            limit: search.limit as u64,
            params: search.ef.map(|ef| SearchParams {
                hnsw_ef: Some(ef as u64),
                ..SearchParams::default()
            }),
            vector_name: (!name.is_empty()).then(|| name.clone()),
            ..SearchPoints::default()
        };
        let request = self.request(message);
        let called = Instant::now();
        #[allow(
            deprecated,
            reason = "the published study and bfb send it, and every version serves it"
        )]
        let call = self.client.search(request);
        let answer = wait_for(&self.runtime, self.timeout, call)?;
        let answered = Instant::now();
        let ids: Option<Vec<u64>> = answer
            .result
            .iter()
            .map(|point| number(point.id.as_ref()?))
            .collect();
        Ok(Found {
            ids: ids.ok_or_else(|| Failure::Unreadable(String::from("an id is no number")))?,
            server: Duration::try_from_secs_f64(answer.time).ok(),
            own: (called - begin) + answered.elapsed(),
        })
    }

    fn upsert(&mut self, batch: &Batch, wait: bool) -> Result<(), Failure> {
        let name = &self.subject.vector;
        let point = |(index, &id): (usize, &u64)| {
            let vector = batch.vector(index).to_vec();
            let vectors = if name.is_empty() {
                Vectors::from(vector)
            } else {
                Vectors::from(HashMap::from([(name.clone(), vector)]))
            };
            let payload = batch.keywords.get(index).map_or_else(HashMap::new, |word| {
                HashMap::from([(word.field.clone(), GrpcValue::from(word.value.clone()))])
            });
            PointStruct {
                id: Some(PointId::from(id)),
                vectors: Some(vectors),
                payload,
            }
        };
        let message = UpsertPoints {
            collection_name: self.subject.collection.clone(),
            wait: Some(wait),
            points: batch.ids.iter().enumerate().map(point).collect(),
            ..UpsertPoints::default()
        };
        let request = self.request(message);
        wait_for(&self.runtime, self.timeout, self.client.upsert(request))?;
        Ok(())
    }

    fn delete(&mut self, ids: &[u64], wait: bool) -> Result<(), Failure> {
        let list = PointsIdsList {
            ids: ids.iter().map(|&id| PointId::from(id)).collect(),
        };
        let message = DeletePoints {
            collection_name: self.subject.collection.clone(),
            wait: Some(wait),
            points: Some(PointsSelector {
                points_selector_one_of: Some(PointsSelectorOneOf::Points(list)),
            }),
            ..DeletePoints::default()
        };
        let request = self.request(message);
        wait_for(&self.runtime, self.timeout, self.client.delete(request))?;
        Ok(())
    }
}

fn number(id: &PointId) -> Option<u64> {
    match id.point_id_options.as_ref()? {
        PointIdOptions::Num(id) => Some(*id),
        PointIdOptions::Uuid(_) => None,
    }
}
