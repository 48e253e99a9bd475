//! The service `qdrant.Points`.

use std::time::Instant;

use flatwater_api::convert::points::Retrieve;
use flatwater_api::convert::query::Query;
use flatwater_api::error::Result;
use flatwater_api::grpc::{batch, edits, ids, index, points, query, records};
use flatwater_engine::collection::update::Update;
use flatwater_engine::query::request::ScoredPoint;
use qdrant_client::qdrant;
use qdrant_client::qdrant::points_server::Points;
use tonic::Request;

use super::call::{Answer, Change, Lookup, answer};
use super::not_served::not_served;
use crate::app::reads::Read;
use crate::app::{self, Shared, blocking, updates};

/// The service.
#[derive(Clone, Debug)]
pub(super) struct Service {
    app: Shared,
}

impl Service {
    pub(super) fn new(app: Shared) -> Self {
        Self { app }
    }

    /// Applies the update that `decode` makes of the message.
    async fn change<M: Change>(
        &self,
        request: Request<M>,
        decode: fn(M) -> Result<Update>,
    ) -> Answer<qdrant::PointsOperationResponse> {
        let started = Instant::now();
        let mut message = request.into_inner();
        let applied = async {
            let (wishes, name) = (message.wishes()?, message.take_name());
            updates::update(&self.app, name, wishes, move || decode(message)).await
        };
        answer(started, applied.await, |result, time| {
            qdrant::PointsOperationResponse {
                result: Some(points::encode_update(result)),
                time,
                usage: None,
            }
        })
    }
}

impl Service {
    async fn query_each(
        &self,
        read: Read,
        name: &str,
        queries: Vec<Query>,
    ) -> Result<Vec<qdrant::BatchResult>> {
        let encode = |found: Vec<ScoredPoint>| {
            Ok(qdrant::BatchResult {
                result: records::encode_scored(found),
            })
        };
        app::points::query_each(&self.app, read, name, queries, encode).await
    }
}

#[tonic::async_trait]
impl Points for Service {
    async fn upsert(
        &self,
        request: Request<qdrant::UpsertPoints>,
    ) -> Answer<qdrant::PointsOperationResponse> {
        self.change(request, points::decode_upsert).await
    }

    async fn delete(
        &self,
        request: Request<qdrant::DeletePoints>,
    ) -> Answer<qdrant::PointsOperationResponse> {
        self.change(request, points::decode_delete).await
    }

    async fn set_payload(
        &self,
        request: Request<qdrant::SetPayloadPoints>,
    ) -> Answer<qdrant::PointsOperationResponse> {
        self.change(request, points::decode_set_payload).await
    }

    async fn overwrite_payload(
        &self,
        request: Request<qdrant::SetPayloadPoints>,
    ) -> Answer<qdrant::PointsOperationResponse> {
        self.change(request, edits::decode_overwrite_payload).await
    }

    async fn delete_payload(
        &self,
        request: Request<qdrant::DeletePayloadPoints>,
    ) -> Answer<qdrant::PointsOperationResponse> {
        self.change(request, edits::decode_delete_payload).await
    }

    async fn clear_payload(
        &self,
        request: Request<qdrant::ClearPayloadPoints>,
    ) -> Answer<qdrant::PointsOperationResponse> {
        self.change(request, edits::decode_clear_payload).await
    }

    async fn update_vectors(
        &self,
        request: Request<qdrant::UpdatePointVectors>,
    ) -> Answer<qdrant::PointsOperationResponse> {
        self.change(request, edits::decode_update_vectors).await
    }

    async fn delete_vectors(
        &self,
        request: Request<qdrant::DeletePointVectors>,
    ) -> Answer<qdrant::PointsOperationResponse> {
        self.change(request, edits::decode_delete_vectors).await
    }

    async fn update_batch(
        &self,
        request: Request<qdrant::UpdateBatchPoints>,
    ) -> Answer<qdrant::UpdateBatchResponse> {
        let (started, mut message) = (Instant::now(), request.into_inner());
        let applied = async {
            let (wishes, name) = (message.wishes()?, message.take_name());
            let updates = blocking(move || batch::decode_updates(message)).await?;
            updates::update_in_order(&self.app, &name, wishes, updates).await
        };
        answer(started, applied.await, |results, time| {
            let result = results.into_iter().map(points::encode_update).collect();
            qdrant::UpdateBatchResponse {
                result,
                time,
                usage: None,
            }
        })
    }

    async fn create_field_index(
        &self,
        request: Request<qdrant::CreateFieldIndexCollection>,
    ) -> Answer<qdrant::PointsOperationResponse> {
        self.change(request, index::decode_create).await
    }

    async fn delete_field_index(
        &self,
        request: Request<qdrant::DeleteFieldIndexCollection>,
    ) -> Answer<qdrant::PointsOperationResponse> {
        self.change(request, index::decode_delete).await
    }

    async fn get(&self, request: Request<qdrant::GetPoints>) -> Answer<qdrant::GetResponse> {
        let (started, message) = (Instant::now(), request.into_inner());
        let found = message.run(&self.app, |collection, message| {
            let request: Retrieve = points::decode_get(message)?;
            let found = app::points::retrieve(collection, &request)?;
            Ok(records::encode_records(found))
        });
        answer(started, found.await, |result, time| qdrant::GetResponse {
            result,
            time,
            usage: None,
        })
    }

    async fn scroll(
        &self,
        request: Request<qdrant::ScrollPoints>,
    ) -> Answer<qdrant::ScrollResponse> {
        let (started, message) = (Instant::now(), request.into_inner());
        let page = message.run(&self.app, |collection, message| {
            let page = collection.scroll(&points::decode_scroll(message)?)?;
            let next = page.next_offset.map(ids::encode);
            Ok((next, records::encode_records(page.points)))
        });
        answer(started, page.await, |(next_page_offset, result), time| {
            qdrant::ScrollResponse {
                next_page_offset,
                result,
                time,
                usage: None,
            }
        })
    }

    async fn count(&self, request: Request<qdrant::CountPoints>) -> Answer<qdrant::CountResponse> {
        let (started, message) = (Instant::now(), request.into_inner());
        let count = message.run(&self.app, |collection, message| {
            let filter = points::decode_count(message)?;
            Ok(collection.count(filter.as_ref())?)
        });
        answer(started, count.await, |count, time| qdrant::CountResponse {
            result: Some(qdrant::CountResult { count }),
            time,
            usage: None,
        })
    }

    async fn query(&self, request: Request<qdrant::QueryPoints>) -> Answer<qdrant::QueryResponse> {
        let (started, message) = (Instant::now(), request.into_inner());
        let found = message.run(&self.app, |collection, message| {
            let query = query::decode_query(message)?;
            let found = app::points::query(collection, query)?;
            Ok(records::encode_scored(found))
        });
        answer(started, found.await, |result, time| qdrant::QueryResponse {
            result,
            time,
            usage: None,
        })
    }

    async fn search(
        &self,
        request: Request<qdrant::SearchPoints>,
    ) -> Answer<qdrant::SearchResponse> {
        let (started, message) = (Instant::now(), request.into_inner());
        let found = message.run(&self.app, |collection, message| {
            let query = query::decode_search(message)?;
            let found = app::points::query(collection, query)?;
            Ok(records::encode_scored(found))
        });
        answer(started, found.await, |result, time| {
            qdrant::SearchResponse {
                result,
                time,
                usage: None,
            }
        })
    }

    async fn query_batch(
        &self,
        request: Request<qdrant::QueryBatchPoints>,
    ) -> Answer<qdrant::QueryBatchResponse> {
        let (started, mut message) = (Instant::now(), request.into_inner());
        let found = async {
            let (read, name) = (message.read()?, message.take_name());
            let queries = batch::decode_queries(message)?;
            self.query_each(read, &name, queries).await
        };
        answer(started, found.await, |result, time| {
            qdrant::QueryBatchResponse {
                result,
                time,
                usage: None,
            }
        })
    }

    async fn search_batch(
        &self,
        request: Request<qdrant::SearchBatchPoints>,
    ) -> Answer<qdrant::SearchBatchResponse> {
        let (started, mut message) = (Instant::now(), request.into_inner());
        let found = async {
            let (read, name) = (message.read()?, message.take_name());
            let queries = batch::decode_searches(message)?;
            self.query_each(read, &name, queries).await
        };
        answer(started, found.await, |result, time| {
            qdrant::SearchBatchResponse {
                result,
                time,
                usage: None,
            }
        })
    }

    not_served! {
        create_vector_name(CreateVectorNameRequest) -> PointsOperationResponse,
            "Points/CreateVectorName";
        delete_vector_name(DeleteVectorNameRequest) -> PointsOperationResponse,
            "Points/DeleteVectorName";
        search_groups(SearchPointGroups) -> SearchGroupsResponse, "Points/SearchGroups";
        recommend(RecommendPoints) -> RecommendResponse, "Points/Recommend";
        recommend_batch(RecommendBatchPoints) -> RecommendBatchResponse, "Points/RecommendBatch";
        recommend_groups(RecommendPointGroups) -> RecommendGroupsResponse, "Points/RecommendGroups";
        discover(DiscoverPoints) -> DiscoverResponse, "Points/Discover";
        discover_batch(DiscoverBatchPoints) -> DiscoverBatchResponse, "Points/DiscoverBatch";
        query_groups(QueryPointGroups) -> QueryGroupsResponse, "Points/QueryGroups";
        facet(FacetCounts) -> FacetResponse, "Points/Facet";
        search_matrix_pairs(SearchMatrixPoints) -> SearchMatrixPairsResponse,
            "Points/SearchMatrixPairs";
        search_matrix_offsets(SearchMatrixPoints) -> SearchMatrixOffsetsResponse,
            "Points/SearchMatrixOffsets";
    }
}
