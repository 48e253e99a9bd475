//! Settings of the process and of a collection, as the engine uses them (all values filled in).

pub mod collection;

use std::path::PathBuf;

/// Settings of one engine.
#[derive(Clone, Debug)]
pub struct EngineConfig {
    /// Folder that holds everything; created when missing.
    pub storage_path: PathBuf,
    /// Threads that run searches; 0 means one per core.
    pub search_threads: usize,
    /// Searches that may wait for a thread; past it a search is refused (at least 1,024).
    pub search_queue_max: usize,
    /// Threads of the background pool; 0 means one per core.
    pub background_threads: usize,
}
