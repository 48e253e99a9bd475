//! `/collections` and what hangs below one, points apart.

use std::sync::Arc;

use flatwater_api::convert::{
    aliases, collections, memory, optimizations, patch as patches, payload, points,
};
use flatwater_api::error::Result;
use flatwater_api::validate;
use flatwater_engine::collection::update::Update;

use super::input::Input;
use super::points::change;
use crate::app::updates::update;
use crate::app::{self, Shared, blocking, find};

/// `GET /collections`.
pub(super) async fn list(app: Shared, _input: Input) -> Result<Vec<u8>> {
    let engine = app.engine()?;
    blocking(move || Ok(collections::encode_names(&engine.collections()))).await
}

/// `GET /collections/{c}/exists`.
pub(super) async fn exists(app: Shared, input: Input) -> Result<Vec<u8>> {
    let engine = app.engine()?;
    Ok(collections::encode_exists(
        find(&engine, &input.part(0)).is_ok(),
    ))
}

/// `GET /collections/{c}`.
pub(super) async fn info(app: Shared, input: Input) -> Result<Vec<u8>> {
    let engine = app.engine()?;
    let name = input.part(0);
    blocking(move || Ok(collections::encode_info(&find(&engine, &name)?.info()))).await
}

/// `PUT /collections/{c}`.
pub(super) async fn create(app: Shared, input: Input) -> Result<Vec<u8>> {
    app.engine()?;
    input.timeout_s()?;
    let name = input.part(0);
    validate::collection_name(&name)?;
    let body = input.body(app.options.service.max_request_size_mb).await?;
    let decode = move |defaults: &_| collections::decode_create(&body, defaults);
    app::collections::create(app, name, decode).await?;
    Ok(collections::encode_done(true))
}

/// `PATCH /collections/{c}`.
pub(super) async fn patch(app: Shared, input: Input) -> Result<Vec<u8>> {
    input.timeout_s()?;
    let name = input.part(0);
    let body = input.body(app.options.service.max_request_size_mb).await?;
    let decode = move |current: &_| patches::decode_patch(&body, current);
    app::collections::patch(&app, name, decode).await?;
    Ok(collections::encode_done(true))
}

/// `POST /collections/aliases`.
pub(super) async fn change_aliases(app: Shared, input: Input) -> Result<Vec<u8>> {
    input.timeout_s()?;
    let engine = app.engine()?;
    let body = input.body(app.options.service.max_request_size_mb).await?;
    blocking(move || {
        engine.change_aliases(&aliases::decode_actions(&body)?)?;
        Ok(collections::encode_done(true))
    })
    .await
}

/// `GET /aliases`.
pub(super) async fn aliases(app: Shared, _input: Input) -> Result<Vec<u8>> {
    Ok(aliases::encode_aliases(&app::collections::aliases(
        &app, None,
    )?))
}

/// `GET /collections/{c}/aliases`.
pub(super) async fn aliases_of(app: Shared, input: Input) -> Result<Vec<u8>> {
    let name = input.part(0);
    Ok(aliases::encode_aliases(&app::collections::aliases(
        &app,
        Some(&name),
    )?))
}

/// `DELETE /collections/{c}`: false if there was none.
pub(super) async fn delete(app: Shared, input: Input) -> Result<Vec<u8>> {
    input.timeout_s()?;
    let deleted = app::collections::delete(app, input.part(0)).await?;
    Ok(collections::encode_done(deleted))
}

/// `PUT /collections/{c}/index`.
pub(super) async fn create_index(app: Shared, input: Input) -> Result<Vec<u8>> {
    change(app, input, |body| {
        let (field, schema) = payload::decode_field_index(body)?;
        Ok(Update::CreateFieldIndex { field, schema })
    })
    .await
}

/// `DELETE /collections/{c}/index/{field}`.
pub(super) async fn delete_index(app: Shared, input: Input) -> Result<Vec<u8>> {
    let (wishes, name, field) = (input.wishes()?, input.part(0), input.part(1));
    let decode = move || {
        Ok(Update::DeleteFieldIndex {
            field: payload::decode_field_name(&field)?,
        })
    };
    let result = update(&app, name, wishes, decode).await?;
    Ok(points::encode_update(result))
}

/// `GET /collections/{collection_name}/memory`.
pub(super) async fn memory(app: Shared, input: Input) -> Result<Vec<u8>> {
    let engine = app.engine()?;
    let name = input.part(0);
    blocking(move || {
        let report = find(&engine, &name)?.memory()?;
        Ok(memory::encode_memory(&report))
    })
    .await
}

/// `GET /collections/{c}/optimizations`.
pub(super) async fn optimizations(app: Shared, input: Input) -> Result<Vec<u8>> {
    let engine = app.engine()?;
    let limit = input.count("completed_limit")?;
    let limit = limit.map_or(optimizations::COMPLETED_LIMIT_DEFAULT, |limit| {
        usize::try_from(limit).unwrap_or(usize::MAX)
    });
    let parts = optimizations::decode_parts(input.text("with").unwrap_or_default(), limit)?;
    let name = input.part(0);
    let of_engine = Arc::clone(&engine);
    blocking(move || {
        let report = find(&of_engine, &name)?.optimizations();
        Ok(optimizations::encode_report(&report, parts))
    })
    .await
}
