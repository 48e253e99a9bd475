//! What `/metrics` tells, in the text format of Prometheus.
//!
//! 1. `requests` are counted as they are answered.
//! 2. `collections` are computed from their views when somebody asks, so that one that was deleted
//!    leaves nothing behind.
//! 3. `process`: what the kernel knows of this process.
//! 4. `families` writes series under their names. Those of Qdrant's have Qdrant's names and labels, ours
//!    begin with `flatwater_`.

mod collections;
mod families;
mod process;
mod requests;

use std::fmt;
use std::sync::Arc;

use flatwater_api::{QDRANT_TITLE, QDRANT_VERSION};
use flatwater_engine::engine::Engine;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, prometheus_text};
use prometheus_client::registry::Registry;

use families::{Families, NO_LABELS, label};
pub(crate) use requests::{Requests, Verb};

/// Type of the text.
pub(crate) const CONTENT_TYPE: &str = prometheus_text::CONTENT_TYPE;

/// Requests that were answered, by interface.
#[derive(Debug)]
pub(crate) struct Answered {
    /// REST: by method, path as it is routed, and status.
    pub(crate) rest: Requests,
    /// gRPC: by path and code.
    pub(crate) grpc: Requests,
}

impl Default for Answered {
    fn default() -> Self {
        Self {
            rest: Requests::new(100..=599, 200),
            grpc: Requests::new(0..=16, 0),
        }
    }
}

/// One scrape: what is asked, when it is written.
#[derive(Debug)]
struct Scrape {
    prefix: String,
    engine: Option<Arc<Engine>>,
    answered: Arc<Answered>,
}

/// The whole text. `engine` is none while it is being opened: then there are no collections yet.
///
/// Blocks: for a few files of `/proc`. Takes no lock that a search or a write takes.
pub(crate) fn text(
    prefix: &str,
    engine: Option<Arc<Engine>>,
    answered: &Arc<Answered>,
) -> Result<String, fmt::Error> {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Scrape {
        prefix: prefix.to_owned(),
        engine,
        answered: Arc::clone(answered),
    }));
    let mut text = String::new();
    prometheus_text::encode(&mut text, &registry)?;
    Ok(text)
}

impl Collector for Scrape {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut out = Families::new(encoder, &self.prefix);
        let app = [
            label("name", QDRANT_TITLE),
            label("version", QDRANT_VERSION),
        ];
        out.gauges("app_info", "Who answers, and as which version.", [(app, 1)])?;
        let recovery = "Whether the process only recovers collections.";
        out.gauge("app_status_recovery_mode", recovery, 0)?;
        let own = [label("version", env!("CARGO_PKG_VERSION"))];
        out.gauges("flatwater_info", "Our own version.", [(own, 1)])?;
        let is_ready = i64::from(self.engine.is_some());
        out.gauge(
            "flatwater_ready",
            "Whether all collections are loaded.",
            is_ready,
        )?;
        if let Some(engine) = &self.engine {
            collections::encode(&mut out, engine)?;
            let load = engine.search_load();
            let searches = [
                (
                    "flatwater_searches_waiting",
                    "Reads that wait for a thread.",
                    load.waiting,
                ),
                ("flatwater_searches_running", "Reads at work.", load.running),
                (
                    "flatwater_search_threads",
                    "Threads that run reads.",
                    load.threads,
                ),
            ];
            for (name, help, value) in searches {
                out.gauges(name, help, [(NO_LABELS, value as i64)])?;
            }
        }
        self.answered.rest.encode(&mut out, "rest")?;
        self.answered.grpc.encode(&mut out, "grpc")?;
        process::encode(&mut out)
    }
}
