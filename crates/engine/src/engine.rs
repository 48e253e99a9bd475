//! The engine: opens a storage folder, holds its collections, shuts down.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use arc_swap::ArcSwap;
use flatwater_index::Row;
use flatwater_index::hnsw::Params;
use flatwater_segment::dir::{DirLock, Directory, FsDirectory};
use flatwater_segment::growing::spec::{SegmentSpec, VectorSpec};
use parking_lot::Mutex;
use uuid::Uuid;

pub use crate::collection::Collection;
use crate::collection::files::CollectionFile;
use crate::config::EngineConfig;
use crate::config::collection::CollectionConfig;
use crate::error::{EngineError, Result};
use crate::optimizer::indexing::Indexer;
use crate::pool::bell::Bell;
use crate::pool::search::{SearchJob, SearchPool};
use crate::shard::{Shard, ShardOptions};
pub use crate::update::OnAck;

type Collections = BTreeMap<String, Arc<Collection>>;

/// KB of vectors in a segment for each indexing thread when `max_segment_size` is not set: Qdrant's
/// own rule (1.19, section 1.2 of its settings), at most 8 threads.
const SEGMENT_KB_PER_THREAD: u64 = 256_000;

/// Graph seed: levels follow from it and the row, so a rebuilt graph has the same levels.
const LEVEL_SEED: u64 = 0x666c_6174_7761_7465;

/// An open storage folder. Share it behind an `Arc`.
///
/// Every call but [`Engine::spawn_search`] and [`Engine::collection`] may block on files.
#[derive(Debug)]
pub struct Engine {
    dir: Arc<dyn Directory>,
    _lock: Box<dyn DirLock>,
    collections: Arc<ArcSwap<Collections>>,
    /// Held while a collection is created or deleted.
    change: Mutex<()>,
    search: SearchPool,
    bell: Bell,
    stop: Arc<AtomicBool>,
    indexer: Mutex<Option<JoinHandle<()>>>,
}

impl Engine {
    /// Opens `config.storage_path`, recovering every collection.
    ///
    /// # Errors
    /// `Io` if the folder cannot be opened or another process holds it, `Corrupt` with file and
    /// offset if acknowledged bytes do not check.
    pub fn open(config: EngineConfig) -> Result<Arc<Self>> {
        let root = FsDirectory::open(&config.storage_path)?;
        Self::open_in(Arc::new(root), config)
    }

    /// Opens a storage in any kind of directory; `config.storage_path` is only told in messages then.
    ///
    /// # Errors
    /// As [`Engine::open`].
    pub fn open_in(root: Arc<dyn Directory>, config: EngineConfig) -> Result<Arc<Self>> {
        let lock = root.lock()?;
        let dir = root.subdir("collections")?;
        let bell = Bell::default();
        let mut opened = Collections::new();
        // A killed process may have left names that it had not synced. What is built on them from here on must
        // not go with them at a power loss.
        root.sync()?;
        dir.sync()?;
        dir.sweep()?;
        for folder in dir.subdirs()? {
            let collection_dir = dir.subdir(&folder)?;
            collection_dir.sync()?;
            match CollectionFile::read(collection_dir.as_ref())? {
                Some(file) => {
                    let name = file.name.clone();
                    tracing::info!(collection = name, "recovering");
                    let collection = open_collection(&collection_dir, folder, file, &bell)?;
                    opened.insert(name, Arc::new(collection));
                }
                // A creation that did not finish, or a deletion that did not.
                None => dir.remove_subdir(&folder)?,
            }
        }
        let collections = Arc::new(ArcSwap::from_pointee(opened));
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let or_cores = |threads: usize| if threads == 0 { cores } else { threads };
        let stop = Arc::new(AtomicBool::new(false));
        let listed = Arc::clone(&collections);
        let indexer = Indexer {
            bell: bell.clone(),
            stop: Arc::clone(&stop),
            threads: or_cores(config.background_threads),
            targets: Box::new(move || {
                listed
                    .load()
                    .values()
                    .map(|collection| collection.indexing_target())
                    .collect()
            }),
        };
        let thread = std::thread::Builder::new()
            .name("background".to_owned())
            .spawn(move || indexer.run())
            .map_err(|source| EngineError::Io {
                operation: "starting the background thread",
                path: config.storage_path.clone(),
                source,
            })?;
        Ok(Arc::new(Self {
            dir,
            _lock: lock,
            collections,
            change: Mutex::new(()),
            search: SearchPool::start(or_cores(config.search_threads), config.search_queue_max)?,
            bell,
            stop,
            indexer: Mutex::new(Some(thread)),
        }))
    }

    /// Names of all collections, sorted.
    #[must_use]
    pub fn collections(&self) -> Vec<String> {
        self.collections.load().keys().cloned().collect()
    }

    /// Creates a collection.
    ///
    /// # Errors
    /// `CollectionExists`, `Io`, `DiskFull`. Which names are allowed is the caller's to check.
    pub fn create_collection(&self, name: &str, config: CollectionConfig) -> Result<()> {
        let _change = self.change.lock();
        if self.stop.load(Ordering::Acquire) {
            return Err(EngineError::Stopping);
        }
        if self.collections.load().contains_key(name) {
            return Err(EngineError::CollectionExists(name.to_owned()));
        }
        let folder = self.folder_of(name);
        if self.dir.exists(&folder)? {
            // Left by a creation or deletion that failed; its points must not come back.
            self.dir.remove_subdir(&folder)?;
        }
        let made = self.make_collection(name, config, &folder);
        if made.is_err() {
            // Best effort: a folder whose configuration was written would be a collection at the next start.
            drop(self.dir.remove_subdir(&folder));
        }
        let collection = Arc::new(made?);
        self.replace(|collections| {
            collections.insert(name.to_owned(), Arc::clone(&collection));
        });
        Ok(())
    }

    /// Folder of a new collection: its name, or a name of ours where the system would not take it (too
    /// long with the suffix of a temporary file, or such a suffix itself) or another collection has it.
    fn folder_of(&self, name: &str) -> String {
        let is_taken = || {
            let collections = self.collections.load();
            collections.values().any(|other| other.folder() == name)
        };
        match flatwater_segment::dir::check_name(name) {
            Ok(()) if !is_taken() => name.to_owned(),
            _ => format!("~{}", Uuid::new_v4()),
        }
    }

    fn make_collection(
        &self,
        name: &str,
        config: CollectionConfig,
        folder: &str,
    ) -> Result<Collection> {
        let dir = self.dir.subdir(folder)?;
        // Any seed serves; the id of the collection is as random as the rows are not.
        let seed = Uuid::new_v4().as_u128() as u64;
        let file = CollectionFile::new(name, config, seed);
        file.write(dir.as_ref())?;
        open_collection(&dir, folder.to_owned(), file, &self.bell)
    }

    /// Deletes a collection and its files; false if there was none. Searches that run keep what
    /// they hold; the space is free when the last of them is done.
    ///
    /// # Errors
    /// `Io`: the collection is as it was. `SyncFailed`: it is gone, and a crash may bring it back.
    pub fn delete_collection(&self, name: &str) -> Result<bool> {
        let _change = self.change.lock();
        let Some(collection) = self.collections.load().get(name).cloned() else {
            return Ok(false);
        };
        let folder = collection.folder();
        let dir = self.dir.subdir(folder)?;
        CollectionFile::remove(dir.as_ref())?;
        // From here on the folder is a leftover, whatever fails: nothing more may be written to it.
        self.replace(|collections| {
            collections.remove(name);
        });
        collection.shard().abandon();
        let without_file = dir.sync();
        // Each of the two alone makes the deletion durable.
        if let Err(error) = self.dir.remove_subdir(folder) {
            without_file?;
            tracing::warn!(%error, name, "files of a deleted collection are left for the next start");
        }
        Ok(true)
    }

    /// A collection by name. Lock-free.
    ///
    /// # Errors
    /// `CollectionNotFound`.
    pub fn collection(&self, name: &str) -> Result<Arc<Collection>> {
        let found = self.collections.load().get(name).cloned();
        found.ok_or_else(|| EngineError::CollectionNotFound(name.to_owned()))
    }

    /// Runs `job` on a search thread. Does not block.
    ///
    /// # Errors
    /// `Refused` when too many searches wait, `Stopping`.
    pub fn spawn_search(&self, job: SearchJob) -> Result<()> {
        self.search.spawn(job)
    }

    /// Stops background work, works off accepted updates, takes a checkpoint of every shard.
    /// Idempotent. Takes about as long as syncing what was written last.
    ///
    /// # Errors
    /// None today; a checkpoint that fails is logged, and the log keeps what it would have held.
    pub fn shutdown(&self) -> Result<()> {
        let _change = self.change.lock();
        self.stop.store(true, Ordering::Release);
        self.bell.ring();
        if let Some(thread) = self.indexer.lock().take()
            && thread.join().is_err()
        {
            tracing::error!("the background thread had panicked");
        }
        self.search.stop();
        for collection in self.collections.load().values() {
            collection.shard().stop();
        }
        Ok(())
    }

    fn replace(&self, change: impl FnOnce(&mut Collections)) {
        let mut collections = Collections::clone(&self.collections.load());
        change(&mut collections);
        self.collections.store(Arc::new(collections));
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        if let Err(error) = self.shutdown() {
            tracing::error!(%error, "shutdown failed");
        }
    }
}

fn open_collection(
    dir: &Arc<dyn Directory>,
    folder: String,
    file: CollectionFile,
    bell: &Bell,
) -> Result<Collection> {
    let spec = Arc::new(segment_spec(&file.config, file.rotation_seed));
    let options = ShardOptions {
        spec: Arc::clone(&spec),
        log_file_bytes: (file.config.wal.wal_capacity_mb.max(1) as u64) << 20,
        // 0 would sync all the time; a hundredth of a second is as good and leaves the thread idle.
        flush_interval: match file.config.optimizers.flush_interval_sec {
            0 => Duration::from_millis(10),
            seconds => Duration::from_secs(seconds),
        },
        background: bell.clone(),
    };
    let shard = Shard::open(&dir.subdir("shard0")?, &options)?;
    Ok(Collection::new(folder, file.config, spec, shard))
}

/// What the segments of a collection are made of.
fn segment_spec(config: &CollectionConfig, seed: u64) -> SegmentSpec {
    let vectors: Vec<VectorSpec> = config
        .vectors
        .iter()
        .map(|(name, vector)| {
            let hnsw = config.hnsw.with(vector.hnsw);
            let params = (hnsw.m > 0).then_some(Params {
                m: hnsw.m,
                ef_construct: hnsw.ef_construct,
                seed: LEVEL_SEED,
            });
            VectorSpec::new(name, vector.size, vector.distance, params, seed)
        })
        .collect();
    let row_bytes = config
        .vectors
        .values()
        .map(|v| v.size as u64 * 4)
        .max()
        .unwrap_or(4);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let auto_kb = SEGMENT_KB_PER_THREAD * cores.min(8) as u64;
    let segment_kb = config
        .optimizers
        .max_segment_size
        .map_or(auto_kb, |kb| kb as u64);
    let rows_max = (segment_kb.saturating_mul(1024) / row_bytes).clamp(1, ROWS_MAX);
    SegmentSpec {
        vectors,
        rows_max: rows_max as Row,
    }
}

/// Rows that a segment may hold at most, whatever `max_segment_size` says: row numbers are 32 bits,
/// and one operation may overshoot.
const ROWS_MAX: u64 = 1 << 31;
