//! Paths of our own, below `/ext/`.

use flatwater_api::convert::{collections, jobs as work, segments};
use flatwater_api::error::Result;
use flatwater_engine::clock;
use flatwater_engine::error::EngineError;

use super::input::Input;
use crate::app::{Shared, blocking, find};

/// `GET /ext/collections/{collection_name}/segments`.
pub(super) async fn segments(app: Shared, input: Input) -> Result<Vec<u8>> {
    let engine = app.engine()?;
    let name = input.part(0);
    blocking(move || {
        let list = find(&engine, &name)?.segments()?;
        Ok(segments::encode_segments(&list, clock::unix_ms()))
    })
    .await
}

/// `GET /ext/collections/{collection_name}/jobs`.
pub(super) async fn jobs(app: Shared, input: Input) -> Result<Vec<u8>> {
    let engine = app.engine()?;
    let name = input.part(0);
    blocking(move || {
        let collection = find(&engine, &name)?;
        Ok(work::encode_jobs(&collection.jobs(), &collection.counts()))
    })
    .await
}

/// `GET /ext/jobs`: those of all collections.
pub(super) async fn all_jobs(app: Shared, _input: Input) -> Result<Vec<u8>> {
    let engine = app.engine()?;
    blocking(move || {
        let all: Vec<_> = engine
            .open_collections()
            .into_iter()
            .map(|(name, collection)| (name, collection.jobs(), collection.counts()))
            .collect();
        Ok(work::encode_all_jobs(&all))
    })
    .await
}

/// `DELETE /ext/collections/{collection_name}/jobs/{job_id}`: asks a job to stop.
pub(super) async fn cancel_job(app: Shared, input: Input) -> Result<Vec<u8>> {
    let engine = app.engine()?;
    let collection = find(&engine, &input.part(0))?;
    let id = work::decode_job_id(&input.part(1))?;
    if !collection.cancel_job(id) {
        return Err(EngineError::JobNotFound(id).into());
    }
    Ok(collections::encode_done(true))
}

/// `POST /ext/collections/{collection_name}/plan`: what the optimizers would do under other settings.
pub(super) async fn plan(app: Shared, input: Input) -> Result<Vec<u8>> {
    let engine = app.engine()?;
    let name = input.part(0);
    let body = input.body(app.options.service.max_request_size_mb).await?;
    blocking(move || {
        let collection = find(&engine, &name)?;
        let config = work::decode_plan(&body, &collection.config())?;
        Ok(work::encode_plan(&collection.dry_run(&config)))
    })
    .await
}
