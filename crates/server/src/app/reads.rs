//! Reads run on the engine's search threads, bounded by its queue and by the request's time limit.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use flatwater_api::error::{ApiError, Result};
use flatwater_engine::engine::Engine;
use tokio::sync::oneshot;

use super::App;

/// A read: what it is called in messages, and its time limit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Read {
    /// As Qdrant's messages name it.
    pub(crate) operation: &'static str,
    /// Seconds; `None` = the configured ones.
    pub(crate) timeout_s: Option<u64>,
}

impl Read {
    /// Runs `job` on a search thread; a job that nobody waits for any more is not begun.
    pub(crate) async fn run<T: Send + 'static>(
        self,
        app: &App,
        job: impl FnOnce(&Engine) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let engine = app.engine()?;
        let (sender, answer) = oneshot::channel();
        let of_job = Arc::clone(&engine);
        engine.spawn_search(Box::new(move || {
            if sender.is_closed() {
                return;
            }
            let result = catch_unwind(AssertUnwindSafe(|| job(&of_job)));
            // The engine's last reference must not be dropped by one of its own threads.
            drop(of_job);
            // The receiver is gone when the time limit has passed.
            let _ = sender.send(result.unwrap_or(Err(LOST)));
        }))?;
        let after_s = self
            .timeout_s
            .unwrap_or(app.options.performance.search_timeout_sec);
        match tokio::time::timeout(Duration::from_secs(after_s), answer).await {
            Ok(result) => result.unwrap_or(Err(LOST)),
            Err(_) => Err(ApiError::Timeout {
                operation: self.operation,
                after_s,
            }),
        }
    }
}

/// The job ended without an answer.
const LOST: ApiError = ApiError::Internal("the search met a bug; the log has its place");
