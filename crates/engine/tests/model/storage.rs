//! Where a run stores: in a directory that can lose what was not synced, or in real files.

use std::path::Path;
use std::sync::Arc;

use flatwater_engine::config::EngineConfig;
use flatwater_engine::engine::Engine;
use flatwater_engine::error::Result;
use flatwater_segment::dir::fault::{FaultDirectory, Unsynced};

#[derive(Debug)]
pub(crate) enum Storage {
    Memory(Arc<FaultDirectory>),
    Files(tempfile::TempDir),
}

impl Storage {
    pub(crate) fn new(on_files: bool) -> Self {
        if on_files {
            Self::Files(tempfile::tempdir().unwrap())
        } else {
            Self::Memory(Arc::new(FaultDirectory::new()))
        }
    }

    pub(crate) fn open(&self) -> Result<Arc<Engine>> {
        match self {
            Self::Memory(dir) => open_in(dir),
            Self::Files(folder) => Engine::open(config(folder.path())),
        }
    }

    /// Ends the process that holds `engine`; what it left is stored here from now on.
    pub(crate) fn kill(&mut self, engine: Arc<Engine>) {
        match self {
            Self::Memory(dir) => {
                dir.faults().stop();
                drop(engine);
                *dir = Arc::new(dir.after_kill().unwrap());
            }
            // A copy of files that change meanwhile is no moment of any process, and ours cannot be killed
            // alone: it stops. The Python suite kills real servers.
            Self::Files(_) => drop(engine),
        }
    }

    /// Cuts the power; `seed` chooses what is left of the bytes that were not synced. Real files lose nothing.
    pub(crate) fn cut_power(&mut self, engine: Arc<Engine>, seed: u64) {
        match self {
            Self::Memory(dir) => {
                dir.faults().stop();
                drop(engine);
                *dir = Arc::new(dir.after_power_loss(Unsynced::Seeded(seed)).unwrap());
            }
            Self::Files(_) => self.kill(engine),
        }
    }
}

pub(crate) fn open_in(dir: &Arc<FaultDirectory>) -> Result<Arc<Engine>> {
    Engine::open_in(Arc::clone(dir) as _, config(Path::new("fault:")))
}

fn config(storage_path: &Path) -> EngineConfig {
    EngineConfig {
        storage_path: storage_path.to_owned(),
        search_threads: 1,
        search_queue_max: 0,
        background_threads: 2,
    }
}
