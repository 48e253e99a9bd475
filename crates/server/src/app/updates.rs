//! Updates: decoded and validated on a blocking thread, acknowledged from the engine's threads.

use std::sync::Arc;
use std::time::Duration;

use flatwater_api::error::{ApiError, Result};
use flatwater_engine::collection::update::{Update, UpdateResult, UpdateStatus};
use flatwater_engine::collection::{Collection, PreparedUpdate};
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout_at};

use super::{App, blocking, find};

/// When an update without a `timeout` gives up: never (centuries).
const NO_TIMEOUT_S: u64 = 1 << 34;

/// How the request wants its update.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wishes {
    /// Whether the answer waits for the sync.
    pub(crate) wait: bool,
    /// Seconds; `None` = as long as it takes.
    pub(crate) timeout_s: Option<u64>,
}

/// Applies the update that `decode` makes to the collection and returns its acknowledgement; `None` if
/// that did not come in time.
///
/// 1. A blocking thread finds the collection, decodes, validates and hands over; past the time limit
///    here nothing is known to be accepted, so the answer is 408.
/// 2. The acknowledgement comes by a channel. Past the time limit here the update *is* accepted, so
///    the answer is Qdrant's `wait_timeout`.
pub(crate) async fn update(
    app: &App,
    name: String,
    wishes: Wishes,
    decode: impl FnOnce() -> Result<Update> + Send + 'static,
) -> Result<Option<UpdateResult>> {
    let engine = app.engine()?;
    let prepare = move || {
        let collection = find(&engine, &name)?;
        let update = collection.prepare(decode()?)?;
        Ok((collection, update))
    };
    submit(app, wishes, prepare).await
}

/// [`update`] of what `prepare` makes on a blocking thread.
async fn submit(
    app: &App,
    wishes: Wishes,
    prepare: impl FnOnce() -> Result<(Arc<Collection>, PreparedUpdate)> + Send + 'static,
) -> Result<Option<UpdateResult>> {
    let Wishes { wait, timeout_s } = wishes;
    let after_s = timeout_s.unwrap_or(NO_TIMEOUT_S).min(NO_TIMEOUT_S);
    let deadline = Instant::now() + Duration::from_secs(after_s);
    let (sender, acknowledgement) = oneshot::channel();
    let decoders = Arc::clone(&app.decoders);
    let handed_over = async {
        let permit = decoders.acquire_owned().await;
        blocking(move || {
            let _permit = permit;
            let (collection, update) = prepare()?;
            // The receiver is gone when the time limit has passed.
            let on_ack = Box::new(move |result| drop(sender.send(result)));
            Ok(collection.submit(update, wait, on_ack)?)
        })
        .await
    };
    match timeout_at(deadline, handed_over).await {
        Ok(result) => result?,
        Err(_) => {
            return Err(ApiError::Timeout {
                operation: "Update",
                after_s,
            });
        }
    }
    match timeout_at(deadline, acknowledgement).await {
        Ok(Ok(result)) => Ok(Some(result?)),
        Ok(Err(_)) => Err(ApiError::Internal("the update was not acknowledged")),
        Err(_) => Ok(None),
    }
}

/// Applies updates one after another and returns their acknowledgements. All are validated before the
/// first one is applied. What fails after that (a full disk, new vectors of a point that is not there)
/// ends it: those before it are applied, as in Qdrant.
///
/// With `wait` the last one waits for a sync that covers all before it.
pub(crate) async fn update_in_order(
    app: &App,
    name: &str,
    wishes: Wishes,
    updates: Vec<Update>,
) -> Result<Vec<Option<UpdateResult>>> {
    // An unknown collection is refused with no update too. All go to this one, whatever comes to have
    // its name meanwhile.
    let collection = find(&*app.engine()?, name)?;
    let prepared = {
        let collection = Arc::clone(&collection);
        let prepare = move |update| -> Result<PreparedUpdate> { Ok(collection.prepare(update)?) };
        blocking(move || updates.into_iter().map(prepare).collect::<Result<Vec<_>>>()).await?
    };
    let last = prepared.len().saturating_sub(1);
    let mut results = Vec::with_capacity(prepared.len());
    for (at, one) in prepared.into_iter().enumerate() {
        let wait = wishes.wait && at == last;
        let (wishes, collection) = (Wishes { wait, ..wishes }, Arc::clone(&collection));
        results.push(submit(app, wishes, move || Ok((collection, one))).await?);
    }
    let is_synced = results.last().is_some_and(Option::is_some);
    if wishes.wait && is_synced {
        for result in results.iter_mut().flatten() {
            result.status = UpdateStatus::Completed;
        }
    }
    Ok(results)
}
