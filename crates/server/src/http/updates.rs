//! Updates: decoded and validated on a blocking thread, acknowledged from the engine's threads.

use std::sync::Arc;
use std::time::Duration;

use flatwater_api::convert::points::encode_update;
use flatwater_api::error::{ApiError, Result};
use flatwater_engine::collection::update::Update;
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout_at};

use super::app::{App, blocking, find};
use super::input::Input;

/// When an update without a `timeout` gives up: never (centuries).
const NO_TIMEOUT_S: u64 = 1 << 34;

/// How the request wants its update.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wishes {
    wait: bool,
    timeout_s: Option<u64>,
}

impl Wishes {
    /// Reads `wait`, `timeout` and `ordering`.
    pub(super) fn of(input: &Input) -> Result<Self> {
        input.check_ordering()?;
        Ok(Self {
            wait: input.flag("wait")?,
            timeout_s: input.timeout_s()?,
        })
    }
}

/// Applies the update that `decode` makes to the collection and answers with its acknowledgement.
///
/// 1. A blocking thread finds the collection, decodes, validates and hands over; past the time limit
///    here nothing is known to be accepted, so the answer is 408.
/// 2. The acknowledgement comes by a channel. Past the time limit here the update *is* accepted, so
///    the answer is Qdrant's `wait_timeout`.
pub(super) async fn update(
    app: &App,
    name: String,
    wishes: Wishes,
    decode: impl FnOnce() -> Result<Update> + Send + 'static,
) -> Result<Vec<u8>> {
    let engine = app.engine()?;
    let Wishes { wait, timeout_s } = wishes;
    let after_s = timeout_s.unwrap_or(NO_TIMEOUT_S).min(NO_TIMEOUT_S);
    let deadline = Instant::now() + Duration::from_secs(after_s);
    let (sender, acknowledgement) = oneshot::channel();
    let decoders = Arc::clone(&app.decoders);
    let handed_over = async {
        let permit = decoders.acquire_owned().await;
        blocking(move || {
            let _permit = permit;
            let collection = find(&engine, &name)?;
            let update = decode()?;
            // The receiver is gone when the time limit has passed.
            let on_ack = Box::new(move |result| drop(sender.send(result)));
            Ok(collection.update(update, wait, on_ack)?)
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
        Ok(Ok(result)) => Ok(encode_update(Some(result?))),
        Ok(Err(_)) => Err(ApiError::Internal("the update was not acknowledged")),
        Err(_) => Ok(encode_update(None)),
    }
}
