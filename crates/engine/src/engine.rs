//! The engine: opens a storage folder, holds its collections, shuts down.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use arc_swap::ArcSwap;
use flatwater_segment::dir::{DirLock, Directory, FsDirectory};
use parking_lot::Mutex;
use uuid::Uuid;

use crate::aliases::{self, AliasAction, Aliases};
pub use crate::collection::Collection;
use crate::collection::files::CollectionFile;
use crate::collection::spec::{flush_interval, segment_spec};
use crate::config::EngineConfig;
use crate::config::collection::CollectionConfig;
use crate::error::{EngineError, Result};
use crate::optimizer;
use crate::optimizer::costs::Costs;
use crate::pool::bell::Bell;
use crate::pool::search::{SearchJob, SearchLoad, SearchPool};
use crate::shard::{Shard, ShardOptions};
pub use crate::update::OnAck;

type Collections = BTreeMap<String, Arc<Collection>>;

/// An open storage folder. Share it behind an `Arc`.
///
/// Every call but [`Engine::spawn_search`] and [`Engine::collection`] may block on files.
#[derive(Debug)]
pub struct Engine {
    /// The storage folder; `dir` in it holds the collections.
    root: Arc<dyn Directory>,
    dir: Arc<dyn Directory>,
    _lock: Box<dyn DirLock>,
    collections: Arc<ArcSwap<Collections>>,
    aliases: ArcSwap<Aliases>,
    /// Whether the file of aliases still has some of collections that are gone, since it could not be written.
    aliases_are_unwritten: AtomicBool,
    /// Held while a collection is created or deleted, or aliases change.
    change: Mutex<()>,
    search: SearchPool,
    bell: Bell,
    /// What background work has cost.
    costs: Arc<Costs>,
    stop: Arc<AtomicBool>,
    background: Mutex<Vec<JoinHandle<()>>>,
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
        let costs = Arc::new(Costs::open(Arc::clone(&root)));
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
                    let collection = open_collection(&collection_dir, folder, file, &bell, &costs)?;
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
        let targets = move || {
            let listed = listed.load();
            let collections = listed.values();
            collections.map(|c| c.optimizer_target()).collect()
        };
        let threads = or_cores(config.background_threads);
        let background =
            optimizer::start(&bell, &stop, threads, Arc::new(targets), Arc::clone(&costs))?;
        let aliases = aliases::read(root.as_ref())?;
        let engine = Self {
            root,
            aliases: ArcSwap::from_pointee(aliases),
            aliases_are_unwritten: AtomicBool::new(false),
            dir,
            _lock: lock,
            collections,
            change: Mutex::new(()),
            search: SearchPool::start(or_cores(config.search_threads), config.search_queue_max)?,
            bell,
            costs,
            stop,
            background: Mutex::new(background),
        };
        // A deletion may have been killed after the collection and before its aliases.
        engine.forget_aliases_of_none();
        Ok(Arc::new(engine))
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
        let is_taken =
            self.collections.load().contains_key(name) || self.aliases.load().contains_key(name);
        if is_taken {
            return Err(EngineError::CollectionExists(name.to_owned()));
        }
        if self.aliases_are_unwritten.load(Ordering::Acquire) {
            // Aliases of the collection that had this name must not lead to the new one.
            self.write_aliases(&self.aliases.load())?;
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
        open_collection(&dir, folder.to_owned(), file, &self.bell, &self.costs)
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
        self.forget_aliases_of_none();
        Ok(true)
    }

    /// Changes aliases: all of `actions` or none, durably.
    ///
    /// # Errors
    /// `CollectionNotFound` for a target or an alias that is not there, `CollectionExists` for an alias
    /// that is the name of a collection; `Io`, `DiskFull`.
    pub fn change_aliases(&self, actions: &[AliasAction]) -> Result<()> {
        let _change = self.change.lock();
        let collections = self.collections.load();
        let is_collection = |name: &str| collections.contains_key(name);
        let changed = aliases::apply(&self.aliases.load(), actions, is_collection)?;
        self.write_aliases(&changed)?;
        self.aliases.store(Arc::new(changed));
        Ok(())
    }

    /// Aliases with their collections, in the order of aliases.
    #[must_use]
    pub fn aliases(&self) -> Arc<Aliases> {
        self.aliases.load_full()
    }

    /// Forgets the aliases of collections that are gone. If the file cannot be written now, it is before a
    /// collection is created.
    fn forget_aliases_of_none(&self) {
        let collections = self.collections.load();
        let mut kept = Aliases::clone(&self.aliases.load());
        kept.retain(|_, target| collections.contains_key(target.as_str()));
        if kept == **self.aliases.load() {
            return;
        }
        if let Err(error) = self.write_aliases(&kept) {
            tracing::warn!(%error, "aliases of a deleted collection are left in their file");
            self.aliases_are_unwritten.store(true, Ordering::Release);
        }
        self.aliases.store(Arc::new(kept));
    }

    fn write_aliases(&self, aliases: &Aliases) -> Result<()> {
        aliases::write(self.root.as_ref(), aliases)?;
        self.aliases_are_unwritten.store(false, Ordering::Release);
        Ok(())
    }

    /// A collection by name or alias. Lock-free.
    ///
    /// # Errors
    /// `CollectionNotFound`.
    pub fn collection(&self, name: &str) -> Result<Arc<Collection>> {
        let collections = self.collections.load();
        let found = collections.get(name).or_else(|| {
            let aliases = self.aliases.load();
            collections.get(aliases.get(name)?)
        });
        found
            .cloned()
            .ok_or_else(|| EngineError::CollectionNotFound(name.to_owned()))
    }

    /// Runs `job` on a search thread. Does not block.
    ///
    /// # Errors
    /// `Refused` when too many searches wait, `Stopping`.
    pub fn spawn_search(&self, job: SearchJob) -> Result<()> {
        self.search.spawn(job)
    }

    /// How busy the search threads are now.
    #[must_use]
    pub fn search_load(&self) -> SearchLoad {
        self.search.load()
    }

    /// The open collections with their names, sorted. Lock-free.
    #[must_use]
    pub fn open_collections(&self) -> Vec<(String, Arc<Collection>)> {
        let collections = self.collections.load();
        let open = collections.iter();
        open.map(|(name, collection)| (name.clone(), Arc::clone(collection)))
            .collect()
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
        for thread in self.background.lock().drain(..) {
            if thread.join().is_err() {
                tracing::error!("a background thread had panicked");
            }
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
    costs: &Arc<Costs>,
) -> Result<Collection> {
    let spec = Arc::new(segment_spec(&file.config, file.rotation_seed));
    let options = ShardOptions {
        spec: Arc::clone(&spec),
        log_file_bytes: (file.config.wal.wal_capacity_mb.max(1) as u64) << 20,
        flush_interval: flush_interval(&file.config),
        background: bell.clone(),
    };
    let shard = Shard::open(&dir.subdir("shard0")?, &options)?;
    let dir = Arc::clone(dir);
    let costs = Arc::clone(costs);
    Ok(Collection::new(folder, dir, file, spec, shard, costs))
}
