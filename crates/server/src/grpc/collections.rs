//! The service `qdrant.Collections`.

use std::time::Instant;

use flatwater_api::error::Result;
use flatwater_api::grpc::collections;
use qdrant_client::qdrant;
use qdrant_client::qdrant::collections_server::Collections;
use tonic::Request;

use super::call::{Answer, answer, timeout_s};
use super::not_served::not_served;
use crate::app::{self, Shared, blocking, find};

/// The service.
#[derive(Clone, Debug)]
pub(super) struct Service {
    app: Shared,
}

impl Service {
    pub(super) fn new(app: Shared) -> Self {
        Self { app }
    }

    async fn info(&self, name: String) -> Result<qdrant::CollectionInfo> {
        let engine = self.app.engine()?;
        blocking(move || Ok(collections::encode_info(&find(&engine, &name)?.info()))).await
    }

    async fn names(&self) -> Result<Vec<qdrant::CollectionDescription>> {
        let engine = self.app.engine()?;
        blocking(move || Ok(collections::encode_names(engine.collections()))).await
    }

    async fn create_of(&self, mut message: qdrant::CreateCollection) -> Result<bool> {
        timeout_s(message.timeout)?;
        let name = std::mem::take(&mut message.collection_name);
        let decode = move |defaults: &_| collections::decode_create(message, defaults);
        app::collections::create(Shared::clone(&self.app), name, decode).await?;
        Ok(true)
    }

    async fn update_of(&self, mut message: qdrant::UpdateCollection) -> Result<bool> {
        timeout_s(message.timeout)?;
        let name = std::mem::take(&mut message.collection_name);
        let decode = move |current: &_| collections::decode_update(message, current);
        app::collections::patch(&self.app, name, decode).await?;
        Ok(true)
    }

    async fn change_aliases(&self, message: qdrant::ChangeAliases) -> Result<bool> {
        timeout_s(message.timeout)?;
        let engine = self.app.engine()?;
        blocking(move || {
            engine.change_aliases(&collections::decode_alias_actions(message)?)?;
            Ok(true)
        })
        .await
    }

    async fn delete_of(&self, message: qdrant::DeleteCollection) -> Result<bool> {
        timeout_s(message.timeout)?;
        app::collections::delete(Shared::clone(&self.app), message.collection_name).await
    }
}

/// That it is done, or that there was nothing to do.
fn done(result: bool, time: f64) -> qdrant::CollectionOperationResponse {
    qdrant::CollectionOperationResponse { result, time }
}

#[tonic::async_trait]
impl Collections for Service {
    async fn get(
        &self,
        request: Request<qdrant::GetCollectionInfoRequest>,
    ) -> Answer<qdrant::GetCollectionInfoResponse> {
        let started = Instant::now();
        let info = self.info(request.into_inner().collection_name).await;
        answer(started, info, |info, time| {
            qdrant::GetCollectionInfoResponse {
                result: Some(info),
                time,
            }
        })
    }

    async fn list(
        &self,
        _request: Request<qdrant::ListCollectionsRequest>,
    ) -> Answer<qdrant::ListCollectionsResponse> {
        let started = Instant::now();
        answer(started, self.names().await, |collections, time| {
            qdrant::ListCollectionsResponse { collections, time }
        })
    }

    async fn create(
        &self,
        request: Request<qdrant::CreateCollection>,
    ) -> Answer<qdrant::CollectionOperationResponse> {
        let started = Instant::now();
        answer(started, self.create_of(request.into_inner()).await, done)
    }

    async fn delete(
        &self,
        request: Request<qdrant::DeleteCollection>,
    ) -> Answer<qdrant::CollectionOperationResponse> {
        let started = Instant::now();
        answer(started, self.delete_of(request.into_inner()).await, done)
    }

    async fn collection_exists(
        &self,
        request: Request<qdrant::CollectionExistsRequest>,
    ) -> Answer<qdrant::CollectionExistsResponse> {
        let (started, name) = (Instant::now(), request.into_inner().collection_name);
        let exists = self.app.engine().map(|engine| find(&engine, &name).is_ok());
        answer(started, exists, |exists, time| {
            qdrant::CollectionExistsResponse {
                result: Some(qdrant::CollectionExists { exists }),
                time,
            }
        })
    }

    async fn update(
        &self,
        request: Request<qdrant::UpdateCollection>,
    ) -> Answer<qdrant::CollectionOperationResponse> {
        let started = Instant::now();
        answer(started, self.update_of(request.into_inner()).await, done)
    }

    async fn update_aliases(
        &self,
        request: Request<qdrant::ChangeAliases>,
    ) -> Answer<qdrant::CollectionOperationResponse> {
        let started = Instant::now();
        answer(
            started,
            self.change_aliases(request.into_inner()).await,
            done,
        )
    }

    async fn list_collection_aliases(
        &self,
        request: Request<qdrant::ListCollectionAliasesRequest>,
    ) -> Answer<qdrant::ListAliasesResponse> {
        let (started, name) = (Instant::now(), request.into_inner().collection_name);
        let listed = app::collections::aliases(&self.app, Some(&name));
        answer(started, listed, collections::encode_aliases)
    }

    async fn list_aliases(
        &self,
        _request: Request<qdrant::ListAliasesRequest>,
    ) -> Answer<qdrant::ListAliasesResponse> {
        let started = Instant::now();
        let listed = app::collections::aliases(&self.app, None);
        answer(started, listed, collections::encode_aliases)
    }

    not_served! {
        collection_cluster_info(CollectionClusterInfoRequest) -> CollectionClusterInfoResponse,
            "Collections/CollectionClusterInfo";
        update_collection_cluster_setup(UpdateCollectionClusterSetupRequest)
            -> UpdateCollectionClusterSetupResponse, "Collections/UpdateCollectionClusterSetup";
        create_shard_key(CreateShardKeyRequest) -> CreateShardKeyResponse,
            "Collections/CreateShardKey";
        delete_shard_key(DeleteShardKeyRequest) -> DeleteShardKeyResponse,
            "Collections/DeleteShardKey";
        list_shard_keys(ListShardKeysRequest) -> ListShardKeysResponse,
            "Collections/ListShardKeys";
    }
}
