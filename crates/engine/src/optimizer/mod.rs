//! Background work: rows go into graphs, full segments are sealed, small ones merged, dead rows dropped,
//! graphs built anew under other settings.
//!
//! 1. `policy`: what is to be done, pure; `gather` collects the facts for it.
//! 2. `jobs` and `progress`: what runs, how far it is, how it ended; `costs`: how long it took, and so how
//!    long other work will take.
//! 3. `indexer` and `rewriter`: the two threads that do it, on one budget of workers.

pub mod costs;
pub mod gather;
pub mod indexer;
pub mod jobs;
pub mod policy;
pub mod progress;
pub mod rewriter;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread::JoinHandle;

use crate::config::collection::OptimizerConfig;
use crate::error::{EngineError, Result};
use crate::pool::background::BackgroundWorkers;
use crate::pool::bell::Bell;
use crate::shard::Shard;
use crate::shard::view::ShardView;
use costs::Costs;
use indexer::Indexer;
use jobs::Jobs;
use policy::Plan;
use rewriter::Rewriter;

/// A shard to work on, with its jobs and settings.
#[derive(Clone, Debug)]
pub struct Target {
    /// The shard.
    pub shard: Arc<Shard>,
    /// Its jobs.
    pub jobs: Arc<Jobs>,
    /// Its collection's settings.
    pub config: OptimizerConfig,
    /// Threads that one of its graphs may be built with; 0 = all there are.
    pub threads_max: usize,
}

impl Target {
    /// The plan for `view`, one of the shard's.
    fn plan(&self, view: &ShardView) -> Plan {
        gather::plan(view, &self.jobs, &self.config, &self.shard.spec())
    }

    /// Whether one more job may run beside those at work.
    fn has_room(&self) -> bool {
        let limit = self.config.max_optimization_threads;
        limit.is_none_or(|limit| self.jobs.running() < limit)
    }
}

/// Shards of the open collections, asked anew each time.
pub(crate) type Targets = Arc<dyn Fn() -> Vec<Target> + Send + Sync>;

/// Starts the threads; they run until `stop` is set and `bell` is rung.
///
/// # Errors
/// `Io` if a thread cannot be started.
pub(crate) fn start(
    bell: &Bell,
    stop: &Arc<AtomicBool>,
    threads: usize,
    targets: Targets,
    costs: Arc<Costs>,
) -> Result<Vec<JoinHandle<()>>> {
    let workers = BackgroundWorkers::new(threads);
    let rewriter = Rewriter {
        bell: Bell::default(),
        stop: Arc::clone(stop),
        workers: workers.clone(),
        targets: Arc::clone(&targets),
        costs: Arc::clone(&costs),
    };
    let indexer = Indexer {
        bell: bell.clone(),
        stop: Arc::clone(stop),
        workers,
        targets,
        costs,
        rewriter: rewriter.bell.clone(),
    };
    Ok(vec![
        spawn("indexer", move || indexer.run())?,
        spawn("rewriter", move || rewriter.run())?,
    ])
}

fn spawn(name: &str, body: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>> {
    let thread = std::thread::Builder::new().name(name.to_owned());
    thread.spawn(body).map_err(|source| EngineError::Io {
        operation: "starting a background thread",
        path: PathBuf::from(name),
        source,
    })
}
