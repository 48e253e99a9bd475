//! Collections made and removed.

use flatwater_api::error::Result;
use flatwater_api::validate;
use flatwater_engine::config::collection::CollectionConfig;

use super::{Shared, blocking};

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
