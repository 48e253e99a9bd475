//! What the handlers of REST and gRPC share: state, reads, updates.

pub(crate) mod collections;
pub(crate) mod points;
pub(crate) mod reads;
pub(crate) mod updates;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use flatwater_api::error::{ApiError, Result};
use flatwater_api::validate;
use flatwater_engine::engine::{Collection, Engine};
use flatwater_engine::error::EngineError;
use tokio::sync::Semaphore;

use crate::metrics::{self, Answered};
use crate::options::Options;

/// Shared by reference.
pub(crate) type Shared = Arc<App>;

/// State of the process as handlers see it.
#[derive(Debug)]
pub(crate) struct App {
    /// Options.
    pub(crate) options: Options,
    /// What was answered, for `/metrics`.
    pub(crate) answered: Arc<Answered>,
    /// How many bodies of updates are decoded at once: decoding takes a core each.
    pub(crate) decoders: Arc<Semaphore>,
    grpc_port: OnceLock<u16>,
    engine: OnceLock<Arc<Engine>>,
    stopping: AtomicBool,
}

impl App {
    /// A process whose engine is not open yet.
    pub(crate) fn starting(options: Options, cores: usize) -> Shared {
        // Two a core: one decodes while the other waits for room in the writer's queue.
        let decoders = Arc::new(Semaphore::new(2 * cores.max(1)));
        let (engine, stopping) = (OnceLock::new(), AtomicBool::new(false));
        Arc::new(Self {
            options,
            answered: Arc::default(),
            decoders,
            grpc_port: OnceLock::new(),
            engine,
            stopping,
        })
    }

    /// The engine is open: requests are served from now on.
    pub(crate) fn opened(&self, engine: Arc<Engine>) {
        // Set once, by the start; a second engine would be a bug and is dropped.
        let _ = self.engine.set(engine);
    }

    /// gRPC listens on this port.
    pub(crate) fn grpc_listens(&self, port: u16) {
        // Set once, by the start.
        let _ = self.grpc_port.set(port);
    }

    /// Port of gRPC, unless it is off.
    pub(crate) fn grpc_port(&self) -> Option<u16> {
        self.grpc_port.get().copied()
    }

    /// No new work is taken.
    pub(crate) fn stop(&self) {
        self.stopping.store(true, Ordering::Release);
    }

    /// Whether requests are served.
    pub(crate) fn is_ready(&self) -> bool {
        self.engine().is_ok()
    }

    /// What `/metrics` tells; without collections as long as they are being loaded.
    ///
    /// Blocks: for a few files of `/proc`.
    pub(crate) fn metrics(&self) -> Result<String> {
        let engine = self.engine().ok();
        metrics::text(&self.options.service.metrics_prefix, engine, &self.answered)
            .map_err(|_| ApiError::Internal("the metrics could not be written"))
    }

    /// The engine, if it is open and not stopping.
    pub(crate) fn engine(&self) -> Result<Arc<Engine>> {
        if self.stopping.load(Ordering::Acquire) {
            return Err(ApiError::Engine(EngineError::Stopping));
        }
        let engine = self.engine.get().map(Arc::clone);
        engine.ok_or(ApiError::Unavailable(
            "the server is starting, collections are being loaded",
        ))
    }
}

/// A collection by its name; a name that none can have is a collection that does not exist.
pub(crate) fn find(engine: &Engine, name: &str) -> Result<Arc<Collection>> {
    if validate::collection_name(name).is_err() {
        return Err(EngineError::CollectionNotFound(name.to_owned()).into());
    }
    Ok(engine.collection(name)?)
}

/// Runs what may block (files, a full queue) on a thread that may.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        // The hook of panics has logged where it was.
        Err(_) => Err(ApiError::Internal(
            "the request met a bug; the log has its place",
        )),
    }
}
