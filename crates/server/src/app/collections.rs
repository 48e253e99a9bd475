//! Collections made and removed.

use flatwater_api::error::Result;
use flatwater_api::validate;
use flatwater_engine::config::collection::CollectionConfig;

use super::{App, Shared, blocking, find};

/// Creates a collection with the settings that `decode` reads over the configured defaults.
pub(crate) async fn create(
    app: Shared,
    name: String,
    decode: impl FnOnce(&CollectionConfig) -> Result<CollectionConfig> + Send + 'static,
) -> Result<()> {
    let engine = app.engine()?;
    validate::collection_name(&name)?;
    blocking(move || {
        let config = decode(&app.options.collection)?;
        engine.create_collection(&name, config)?;
        tracing::info!("Created collection {name:?}");
        Ok(())
    })
    .await
}

/// Deletes a collection; false if there was none.
pub(crate) async fn delete(app: Shared, name: String) -> Result<bool> {
    let engine = app.engine()?;
    blocking(move || {
        let is_name = validate::collection_name(&name).is_ok();
        let deleted = is_name && engine.delete_collection(&name)?;
        if deleted {
            tracing::info!("Deleted collection {name:?}");
        }
        Ok(deleted)
    })
    .await
}

/// Replaces the settings of a collection by what `decode` makes of them.
pub(crate) async fn patch(
    app: &App,
    name: String,
    decode: impl FnOnce(&CollectionConfig) -> Result<CollectionConfig> + Send + 'static,
) -> Result<()> {
    let engine = app.engine()?;
    blocking(move || find(&engine, &name)?.reconfigure(decode)).await
}

/// Aliases and what they mean, of one collection or of all.
pub(crate) fn aliases(app: &App, collection: Option<&str>) -> Result<Vec<(String, String)>> {
    let engine = app.engine()?;
    if let Some(name) = collection {
        find(&engine, name)?;
    }
    let aliases = engine.aliases();
    let listed = aliases
        .iter()
        .filter(|(_, target)| collection.is_none_or(|name| name == target.as_str()));
    Ok(listed
        .map(|(alias, target)| (alias.clone(), target.clone()))
        .collect())
}
