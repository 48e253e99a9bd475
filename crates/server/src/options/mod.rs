//! Options of the process: built-in defaults < file < environment.
//!
//! [`defs`] is the one table; reading (`load`) and the page docs/config.md ([`docs`]) follow from it.

use std::fmt;
use std::path::PathBuf;

use flatwater_engine::config::EngineConfig;
use flatwater_engine::config::collection::CollectionConfig;

pub mod defs;
pub mod docs;

mod load;
mod unserved;

pub use load::{Loaded, OptionsError, from_layers, load};

/// All options, filled in.
#[derive(Clone, Debug)]
pub struct Options {
    /// Level or list of levels of the log.
    pub log_level: String,
    /// The interfaces of REST and gRPC.
    pub service: Service,
    /// Where data is kept.
    pub storage_path: PathBuf,
    /// Threads and limits of time.
    pub performance: Performance,
    /// What a new collection gets where its creator says nothing; it has no vectors.
    pub collection: CollectionConfig,
}

/// The interfaces of REST and gRPC.
#[derive(Clone, Debug)]
pub struct Service {
    /// Address to listen on.
    pub host: String,
    /// Port of REST; 0 takes any free one.
    pub http_port: u16,
    /// Port of gRPC; 0 takes any free one, `None` = off.
    pub grpc_port: Option<u16>,
    /// Largest body of REST, MB of 1,048,576 bytes.
    pub max_request_size_mb: usize,
    /// Largest message of gRPC, in the same MB.
    pub max_grpc_message_size_mb: usize,
    /// What the names of all metrics begin with; empty for nothing.
    pub metrics_prefix: String,
    /// Port of `/metrics` alone, which needs no key; 0 takes any free one, `None` = off.
    pub metrics_port: Option<u16>,
    /// Whether browsers of any origin may call.
    pub enable_cors: bool,
    /// Key that may do everything.
    pub api_key: Option<ApiKey>,
    /// Another one, for the time of a change of keys.
    pub alt_api_key: Option<ApiKey>,
    /// Key that may read.
    pub read_only_api_key: Option<ApiKey>,
}

impl Service {
    /// Whether requests need a key.
    #[must_use]
    pub fn is_guarded(&self) -> bool {
        let keys = [&self.api_key, &self.alt_api_key, &self.read_only_api_key];
        keys.iter().any(|key| key.is_some())
    }
}

/// A secret: it is not shown by `Debug`.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey(String);

impl ApiKey {
    /// Takes the text of a key.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text, to compare with.
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApiKey(..)")
    }
}

/// Threads and limits of time.
#[derive(Clone, Copy, Debug)]
pub struct Performance {
    /// Threads that run searches, 0 = one per core.
    pub max_search_threads: usize,
    /// Searches that may wait for a thread.
    pub search_queue_max: usize,
    /// Seconds a read may take when the request does not say.
    pub search_timeout_sec: u64,
    /// Threads of background work: 0 = one per core, negative = so many fewer.
    pub optimizer_cpu_budget: i64,
}

impl Options {
    /// The defaults of the table.
    #[must_use]
    pub fn built_in() -> Self {
        let mut options = Self {
            log_level: String::new(),
            service: Service {
                host: String::new(),
                http_port: 0,
                grpc_port: None,
                max_request_size_mb: 0,
                max_grpc_message_size_mb: 0,
                metrics_prefix: String::new(),
                metrics_port: None,
                enable_cors: false,
                api_key: None,
                alt_api_key: None,
                read_only_api_key: None,
            },
            storage_path: PathBuf::new(),
            performance: Performance {
                max_search_threads: 0,
                search_queue_max: 0,
                search_timeout_sec: 0,
                optimizer_cpu_budget: 0,
            },
            collection: CollectionConfig::default(),
        };
        for def in &defs::OPTIONS {
            let Some(default) = def.default else {
                continue;
            };
            let setting = def.kind.parse(default);
            (def.set)(
                &mut options,
                setting.expect("a test parses every default of the table"),
            );
        }
        options
    }

    /// The engine's share, with `cores` to fill in what is automatic.
    #[must_use]
    pub fn engine(&self, cores: usize) -> EngineConfig {
        let budget = self.performance.optimizer_cpu_budget;
        let magnitude = usize::try_from(budget.unsigned_abs()).unwrap_or(usize::MAX);
        let background_threads = if budget < 0 {
            cores.saturating_sub(magnitude).max(1)
        } else {
            magnitude
        };
        EngineConfig {
            storage_path: self.storage_path.clone(),
            search_threads: self.performance.max_search_threads,
            search_queue_max: self.performance.search_queue_max,
            background_threads,
        }
    }
}
