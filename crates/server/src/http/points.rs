//! Points: written, deleted, fetched, walked over, counted, searched.

use flatwater_api::convert::query::Query;
use flatwater_api::convert::{
    batch, edits, ids, points, query as queries, records, search as searches, upsert as upserts,
};
use flatwater_api::error::Result;
use flatwater_engine::collection::update::Update;
use flatwater_engine::error::EngineError;
use flatwater_engine::query::request::{PayloadSelector, ScoredPoint, VectorSelector};

use super::input::Input;
use crate::app::reads::Read;
use crate::app::updates::{update, update_in_order};
use crate::app::{self, Shared, blocking, find};

/// Checks the query parameters of a read.
fn read(operation: &'static str, input: &Input) -> Result<Read> {
    input.check_consistency()?;
    Ok(Read {
        operation,
        timeout_s: input.timeout_s()?,
    })
}

/// Applies the update that `decode` reads from the body.
pub(super) async fn change(
    app: Shared,
    input: Input,
    decode: fn(&[u8]) -> Result<Update>,
) -> Result<Vec<u8>> {
    let (wishes, name) = (input.wishes()?, input.part(0));
    let body = input.body(app.options.service.max_request_size_mb).await?;
    let result = update(&app, name, wishes, move || decode(&body)).await?;
    Ok(points::encode_update(result))
}

/// `PUT /collections/{c}/points`.
pub(super) async fn upsert(app: Shared, input: Input) -> Result<Vec<u8>> {
    change(app, input, |body| {
        Ok(Update::Upsert(upserts::decode_upsert(body)?))
    })
    .await
}

/// `POST /collections/{c}/points/delete`.
pub(super) async fn delete(app: Shared, input: Input) -> Result<Vec<u8>> {
    change(app, input, points::decode_delete).await
}

/// `POST /collections/{c}/points/payload`.
pub(super) async fn set_payload(app: Shared, input: Input) -> Result<Vec<u8>> {
    change(app, input, points::decode_set_payload).await
}

/// `PUT /collections/{c}/points/payload`.
pub(super) async fn overwrite_payload(app: Shared, input: Input) -> Result<Vec<u8>> {
    change(app, input, edits::decode_overwrite_payload).await
}

/// `POST /collections/{c}/points/payload/delete`.
pub(super) async fn delete_payload(app: Shared, input: Input) -> Result<Vec<u8>> {
    change(app, input, edits::decode_delete_payload).await
}

/// `POST /collections/{c}/points/payload/clear`.
pub(super) async fn clear_payload(app: Shared, input: Input) -> Result<Vec<u8>> {
    change(app, input, edits::decode_clear_payload).await
}

/// `PUT /collections/{c}/points/vectors`.
pub(super) async fn update_vectors(app: Shared, input: Input) -> Result<Vec<u8>> {
    change(app, input, edits::decode_update_vectors).await
}

/// `POST /collections/{c}/points/vectors/delete`.
pub(super) async fn delete_vectors(app: Shared, input: Input) -> Result<Vec<u8>> {
    change(app, input, edits::decode_delete_vectors).await
}

/// `POST /collections/{c}/points/batch`.
pub(super) async fn update_batch(app: Shared, input: Input) -> Result<Vec<u8>> {
    let (wishes, name) = (input.wishes()?, input.part(0));
    let body = input.body(app.options.service.max_request_size_mb).await?;
    let updates = blocking(move || batch::decode_updates(&body)).await?;
    let results = update_in_order(&app, &name, wishes, updates).await?;
    Ok(batch::encode_updates(&results))
}

/// `POST /collections/{c}/points`.
pub(super) async fn retrieve(app: Shared, input: Input) -> Result<Vec<u8>> {
    let (read, name) = (read("Retrieve", &input)?, input.part(0));
    let body = input.body(app.options.service.max_request_size_mb).await?;
    let job = move |engine: &_| {
        let collection = find(engine, &name)?;
        let request = points::decode_retrieve(&body)?;
        records::encode_records(&app::points::retrieve(&collection, &request)?)
    };
    read.run(&app, job).await
}

/// `GET /collections/{c}/points/{id}`.
pub(super) async fn get(app: Shared, input: Input) -> Result<Vec<u8>> {
    let (read, name) = (read("Retrieve", &input)?, input.part(0));
    let id = ids::decode_path_id(&input.part(1))?;
    let job = move |engine: &_| {
        let collection = find(engine, &name)?;
        let found = collection.retrieve(&[id], &PayloadSelector::All, &VectorSelector::All)?;
        match found.first() {
            Some(record) => records::encode_record(record),
            None => Err(EngineError::PointNotFound(id.to_string()).into()),
        }
    };
    read.run(&app, job).await
}

/// `POST /collections/{c}/points/scroll`.
pub(super) async fn scroll(app: Shared, input: Input) -> Result<Vec<u8>> {
    let (read, name) = (read("Scroll", &input)?, input.part(0));
    let body = input.body(app.options.service.max_request_size_mb).await?;
    let job = move |engine: &_| {
        let collection = find(engine, &name)?;
        records::encode_page(&collection.scroll(&points::decode_scroll(&body)?)?)
    };
    read.run(&app, job).await
}

/// `POST /collections/{c}/points/count`.
pub(super) async fn count(app: Shared, input: Input) -> Result<Vec<u8>> {
    let (read, name) = (read("Count", &input)?, input.part(0));
    let body = input.body(app.options.service.max_request_size_mb).await?;
    let job = move |engine: &_| {
        let collection = find(engine, &name)?;
        let filter = points::decode_count(&body)?;
        Ok(points::encode_count(collection.count(filter.as_ref())?))
    };
    read.run(&app, job).await
}

/// `POST /collections/{c}/points/query`.
pub(super) async fn query(app: Shared, input: Input) -> Result<Vec<u8>> {
    let (read, name) = (read("Search", &input)?, input.part(0));
    let body = input.body(app.options.service.max_request_size_mb).await?;
    let job = move |engine: &_| {
        let collection = find(engine, &name)?;
        let query = queries::decode_query(&body)?;
        records::encode_scored(&app::points::query(&collection, query)?)
    };
    read.run(&app, job).await
}

/// `POST /collections/{c}/points/query/batch`.
pub(super) async fn query_batch(app: Shared, input: Input) -> Result<Vec<u8>> {
    read_each(app, input, batch::decode_queries, |found| {
        records::encode_scored(&found)
    })
    .await
}

/// `POST /collections/{c}/points/search`.
pub(super) async fn search(app: Shared, input: Input) -> Result<Vec<u8>> {
    let (read, name) = (read("Search", &input)?, input.part(0));
    let body = input.body(app.options.service.max_request_size_mb).await?;
    let job = move |engine: &_| {
        let collection = find(engine, &name)?;
        let query = searches::decode_search(&body)?;
        records::encode_scored_list(&app::points::query(&collection, query)?)
    };
    read.run(&app, job).await
}

/// `POST /collections/{c}/points/search/batch`.
pub(super) async fn search_batch(app: Shared, input: Input) -> Result<Vec<u8>> {
    read_each(app, input, batch::decode_searches, |found| {
        records::encode_scored_list(&found)
    })
    .await
}

/// Answers the queries of a batch, each on a search thread of its own, in their order.
async fn read_each(
    app: Shared,
    input: Input,
    decode: fn(&[u8]) -> Result<Vec<Query>>,
    encode: fn(Vec<ScoredPoint>) -> Result<Vec<u8>>,
) -> Result<Vec<u8>> {
    let (read, name) = (read("Search", &input)?, input.part(0));
    let body = input.body(app.options.service.max_request_size_mb).await?;
    let queries = blocking(move || decode(&body)).await?;
    let answers = app::points::query_each(&app, read, &name, queries, encode).await?;
    Ok(batch::encode_answers(&answers))
}
